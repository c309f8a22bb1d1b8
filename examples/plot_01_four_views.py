"""
One table, four views
=====================

Handwritten digits in four views: PCA, t-SNE (a neighbour map like UMAP), and PairLens and PairMap with 30 answered
questions. PCA and t-SNE use no answers. The colours are the true digits. The number is the share of rows whose nearest
neighbour in the picture is the same digit.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from pairlens import Constraints, PairLens, PairMap
from pairlens.metrics import cumulative_purity

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]

# %%
# A person answers 30 questions of the form "the same digit?".
pairs = Constraints.from_labels(y, n_pairs=30, random_state=0)
print(pairs)

# %%
# t-SNE draws clear islands. It cannot use answers, and it cannot place a new row; PairLens and PairMap do both.
# PairLens gives features for other tools, PairMap a map to look at.
views = {
    "PCA": PCA(2).fit_transform(X),
    "t-SNE": TSNE(random_state=0, init="pca").fit_transform(X),
    "PairLens, 30 answers": PairLens(2, random_state=0).fit_transform(X, constraints=pairs),
    "PairMap, 30 answers": PairMap(random_state=0).fit_transform(X, constraints=pairs),
}

figure, row = plt.subplots(1, 4, figsize=(15, 4), layout="constrained")
for axes, (title, Z) in zip(row, views.items()):
    points = axes.scatter(*Z.T, c=y, cmap="tab10", s=10)
    axes.set(title=f"{title} (1-NN {cumulative_purity(Z, y, 1)[0]:.2f})", xticks=[], yticks=[])
figure.colorbar(points, ax=row, ticks=range(10), label="digit")
plt.show()
