"""
Digits by preference
====================

A person prefers larger digits and compares pairs of images. WSDR learns a view in which better is one direction,
from 200 comparisons and without a single label. The test pictures are drawn where the view places them.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import WSDR, Preferences
from pairlens.metrics import pairwise_accuracy

digits = load_digits(n_class=5)
X, y, images = digits.data[:500], digits.target[:500], digits.images[:500]
train, test = np.arange(500) < 350, np.arange(500) >= 350

answers = Preferences.from_scores(y[train], n_pairs=200, random_state=0)
model = make_pipeline(StandardScaler(), WSDR(2, random_state=0)).fit(X[train], wsdr__preferences=answers)
score = pairwise_accuracy(model.decision_function(X[test]), Preferences.from_scores(y[test]))
print(f"{score:.0%} of the comparisons of test pictures come out right")

# %%
# Sixty test pictures in the view.
Z = model.transform(X[test])[:60]
figure, axes = plt.subplots(figsize=(7.5, 6), layout="constrained")
axes.scatter(*Z.T, alpha=0)
colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, 5))
for place, image, label in zip(Z, images[test], y[test]):
    box = AnnotationBbox(OffsetImage(image, zoom=2.2, cmap="gray_r"), place, pad=0.1)
    box.patch.set(edgecolor=colours[label], linewidth=2)
    axes.add_artist(box)
axes.set(xlabel="first direction", ylabel="second direction", title=f"{score:.0%} of new comparisons are right")
plt.show()
