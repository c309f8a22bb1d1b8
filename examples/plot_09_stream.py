"""
A stream of batches
===================

Rows arrive in batches with a few answers each. ``partial_fit`` adds each batch to the sums of WBDR, and only
these sums are kept. Most of the gain comes early; later answers do not raise the AUC at every step.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from pairlens import WBDR, Constraints

X, y = load_digits(n_class=6, return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=300, random_state=0)
new_pairs = Constraints.from_labels(y_new)

model, scores, snapshots = WBDR(2), [], {}
for number, rows in enumerate(np.array_split(np.arange(len(X)), 15), start=1):
    answers = Constraints.from_labels(y[rows], n_pairs=20, random_state=number)
    model.partial_fit(X[rows], constraints=answers)
    scores.append(model.score(X_new, constraints=new_pairs))
    if number in (1, 5, 15):
        snapshots[number] = model.transform(X_new)

# %%
# Three moments of the stream, and the AUC of pairs of new rows after each batch.
figure, row = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
for axes, (number, Z) in zip(row, snapshots.items()):
    axes.scatter(*Z.T, c=y_new, cmap="tab10", s=10)
    axes.set(title=f"after {20 * number} answers", xticks=[], yticks=[])
row[3].plot(20 * np.arange(1, 16), scores, "o-")
row[3].set(xlabel="answers so far", ylabel="AUC of pairs of new rows")
plt.show()
