"""
DSP against LPP
===============

LPP only keeps neighbours together. DSP first maps must-linked rows to one point in a kernel space, then looks for
neighbours, and keeps far rows far. The effect of ten answers per class is visible in the view.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from pairlens import DSP, LPP, Constraints

X, y = load_digits(n_class=6, return_X_y=True)
X, y = X[:600] / 16, y[:600]

views = {"LPP, no answers": LPP(5).fit_transform(X)}
for number in (2, 10):
    pairs = Constraints.from_labels(y, per_class=number, random_state=0)
    views[f"DSP, {number} pairs per class"] = DSP(5, random_state=0).fit_transform(X, constraints=pairs)

# %%
# The first two of five directions. ARI compares k-means clusters in all five with the digits.
figure, row = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
for axes, (title, Z) in zip(row, views.items()):
    clusters = KMeans(6, n_init=10, random_state=0).fit_predict(Z)
    axes.scatter(Z[:, 0], Z[:, 1], c=y, cmap="tab10", s=10)
    low, high = np.percentile(Z[:, :2], [1, 99], axis=0)
    margin = 0.1 * (high - low)
    axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
    axes.set_ylim(low[1] - margin[1], high[1] + margin[1])
    axes.set(title=f"{title} (ARI {adjusted_rand_score(y, clusters):.2f})", xticks=[], yticks=[])
plt.show()
