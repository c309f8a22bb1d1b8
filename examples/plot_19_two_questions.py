"""
The same rows, two questions, two maps
======================================

Penguins can be compared by species or by sex. Their four measurements show the species first, and so does t-SNE, which
uses no answers. PairMap draws the same rows according to the question: 60 answers to "the same species?" give one map,
60 answers to "the same sex?" another.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from pairlens import Constraints, PairMap
from pairlens.datasets import load_penguins

penguins = load_penguins()
known = np.array([sex is not None for sex in penguins.sex])
X = penguins.data[known]
notions = {"species": penguins.species[known], "sex": penguins.sex[known]}

# %%
# Nothing but the question differs: the rows, the number of answers and all parameters are the same.
maps = {"t-SNE, no answers": TSNE(random_state=0).fit_transform(scale(X))}
for question, labels in notions.items():
    pairs = Constraints.from_labels(labels, n_pairs=60, random_state=0)
    maps[f"PairMap, the same {question}?"] = PairMap(random_state=0).fit_transform(X, constraints=pairs)

# %%
# Each column is one map, coloured by species above and by sex below. ARI compares the clusters that k-means finds in
# the map with the true groups: 1 if the map shows them, 0 if it does not.
figure, grid = plt.subplots(2, 3, figsize=(12, 8), layout="constrained")
for row, (notion, labels) in zip(grid, notions.items()):
    for axes, (title, Z) in zip(row, maps.items()):
        groups = np.unique(labels)
        for group in groups:
            axes.scatter(*Z[labels == group].T, s=10, label=group)
        clusters = KMeans(len(groups), n_init=10, random_state=0).fit_predict(Z)
        axes.set(
            title=title, xticks=[], yticks=[], xlabel=f"{notion}: ARI {adjusted_rand_score(labels, clusters):z.2f}"
        )
    row[0].legend(title=notion)
plt.show()
