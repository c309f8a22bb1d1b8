"""
When a kernel helps
===================

Three shapes that no line can separate, by WBDR and by its kernel form, from 60 answers each. The kernel solves the
rings in one direction. On the moons and the chess board its first direction is worse than the linear one. A kernel is
not always better, so judge it by held-out pairs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons

from pairlens import WBDR, Constraints, KernelWBDR
from pairlens.metrics import cumulative_purity

rng = np.random.default_rng(0)
chess = rng.uniform(-1, 1, (300, 2))
shapes = {
    "rings": make_circles(300, factor=0.4, noise=0.07, random_state=0),
    "moons": make_moons(300, noise=0.1, random_state=0),
    "chess board": (chess, (chess[:, 0] * chess[:, 1] > 0).astype(int)),
}

# %%
# One direction is enough to see the difference: each view is a histogram of its only coordinate.
figure, grid = plt.subplots(3, 3, figsize=(10, 8), layout="constrained")
for axes, (name, (X, y)) in zip(grid, shapes.items()):
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    axes[0].scatter(*X.T, c=y, cmap="coolwarm", s=8)
    axes[0].set(ylabel=name, xticks=[], yticks=[])
    for place, model in zip(axes[1:], (WBDR(1), KernelWBDR(1))):
        z = model.fit_transform(X, constraints=pairs)
        accuracy = cumulative_purity(z, y, 1)[0]
        place.hist([z[y == 0, 0], z[y == 1, 0]], 30, stacked=True, color=["#3b4cc0", "#b40426"])
        place.set(title=f"{type(model).__name__}: 1-NN {accuracy:.2f}", xticks=[], yticks=[])
plt.show()
