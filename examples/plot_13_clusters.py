"""
Clusters that respect answers
=============================

k-means cuts moons in the wrong place. SKKMeans clusters in a kernel space in which must-linked rows are one point. A
chain of ten answers along each moon corrects the cut.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from pairlens import Constraints, SKKMeans

X, y = make_moons(300, noise=0.08, random_state=0)
chains = [np.flatnonzero(y == label)[np.argsort(X[y == label, 0])][5::14] for label in (0, 1)]
pairs = Constraints.from_chunklets(chains, n_samples=len(X))

clusterings = {
    "k-means": KMeans(2, n_init=10, random_state=0).fit_predict(X),
    "SKKMeans, no answers": SKKMeans(2, gamma=8.0, random_state=0).fit_predict(X),
    "SKKMeans, two chains": SKKMeans(2, gamma=8.0, random_state=0).fit(X, constraints=pairs).labels_,
}

# %%
figure, row = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
for axes, (title, clusters) in zip(row, clusterings.items()):
    axes.scatter(*X.T, c=clusters, cmap="coolwarm", s=10)
    if "chains" in title:
        for chain in chains:
            axes.plot(*X[chain].T, "o-", color="0.2", markersize=4, linewidth=1)
    axes.set(title=f"{title} (ARI {adjusted_rand_score(y, clusters):.2f})", xticks=[], yticks=[])
plt.show()
