"""
Classes of several clusters
===========================

Two classes of two blobs each alternate along the horizontal axis. Every must-link connects the two blobs of a class. It
is true, but it misleads methods that pull must-links together. SODRPaC turns the must-links into cannot-links first.
"""

import matplotlib.pyplot as plt
import numpy as np

from pairlens import CLPP, CMM, SSDR, SODRPaC
from pairlens.datasets import make_subclass_blobs
from pairlens.metrics import cumulative_purity

X, y, pairs = make_subclass_blobs(kind="inter", random_state=0)
print(pairs)

# %%
# The black line is the direction that each method found; below it are the rows along that direction.
figure, grid = plt.subplots(
    2, 4, figsize=(12, 4.6), height_ratios=(3, 1), sharex="row", sharey="row", layout="constrained"
)
jitter = np.random.default_rng(0).uniform(-0.4, 0.4, len(X))
for model, (above, below) in zip((SSDR(1), CMM(1), CLPP(1), SODRPaC(1)), grid.T):
    model.fit(X, constraints=pairs)
    direction = model.components_[0] / np.linalg.norm(model.components_[0])
    accuracy = cumulative_purity(model.transform(X), y, 1)[0]
    for a, b in pairs.must_link:
        above.plot(X[[a, b], 0], X[[a, b], 1], color="0.8", linewidth=0.7, zorder=0)
    above.scatter(*X.T, c=y, cmap="coolwarm", s=8)
    middle = X.mean(axis=0)
    above.plot(*(middle + np.outer([-4, 4], direction)).T, color="black", linewidth=2.5)
    above.set(title=f"{type(model).__name__}: 1-NN {accuracy:.2f}", xticks=[], yticks=[], ylim=(-5, 5), aspect="equal")
    below.scatter((X - middle) @ direction, y + jitter, c=y, cmap="coolwarm", s=5)
    below.set(xticks=[], yticks=[])
plt.show()
