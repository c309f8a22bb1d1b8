"""
Finding wrong answers
=====================

A tenth of 200 answers are wrong. ``suspicious_pairs`` ranks the answers by the probability that they are wrong.
Each one is judged by a view that was fitted without it. We look at the most suspicious pairs of images.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from pairlens import Constraints, PairLens

digits = load_digits()
X, y = digits.data[:600], digits.target[:600]
answers = Constraints.from_labels(y, per_class=10, random_state=0).flip(0.1, random_state=0)

suspects = PairLens(random_state=0).fit(X, constraints=answers).suspicious_pairs()
same = y[suspects.pairs[:, 0]] == y[suspects.pairs[:, 1]]
wrong = same != (suspects.link > 0)
print(f"{wrong.sum()} of {len(wrong)} answers are wrong")
print(f"{wrong[: wrong.sum()].sum()} of the {wrong.sum()} most suspicious answers are wrong")

# %%
# The ten most suspicious answers. A red title is an answer that is indeed wrong.
figure, grid = plt.subplots(2, 5, figsize=(11, 3.6), layout="constrained")
for place, axes in enumerate(grid.flat):
    pair = np.hstack([digits.images[row] for row in suspects.pairs[place]])
    axes.imshow(pair, cmap="gray_r")
    answer = "same" if suspects.link[place] > 0 else "different"
    title = f'answer: "{answer}", {suspects.suspicion[place]:.0%}'
    axes.set_title(title, color="#c0392b" if wrong[place] else "0.2", fontsize=10)
    axes.set_axis_off()
figure.suptitle("Answers by the probability that they are wrong")
plt.show()
