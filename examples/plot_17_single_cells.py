"""
Single cells
============

Counts of 600 genes in 1,500 simulated cells of six types from three donors. Differences between donors hide the types
in PCA. An expert has named five cells of each type for each donor. ``pairlens.anndata.embed`` learns from them and from
all cells, and stores the view where scanpy expects it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from anndata import AnnData
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

import pairlens.anndata

rng = np.random.default_rng(0)
names = np.array(["B", "CD4 T", "CD8 T", "NK", "monocyte", "dendritic"])
kind, donor = rng.integers(6, size=1500), rng.integers(3, size=1500)
markers, shifts = np.zeros((6, 600)), rng.normal(0, 0.9, (3, 600))
for number in range(6):
    markers[number, 15 * number : 15 * number + 15] = 1.4
rates = rng.gamma(1.0, 0.5, 600) * np.exp(markers[kind] + shifts[donor] + rng.normal(0, 0.3, (1500, 1)))
counts = rng.poisson(rates * rng.gamma(4.0, 0.25, rates.shape))

# %%
# Five named cells of each type and donor; all others are "Unknown".
frame = pd.DataFrame(
    {"true": names[kind], "donor": donor, "cell_type": "Unknown"}, index=[f"c{i}" for i in range(1500)]
)
for _, cells in frame.groupby(["true", "donor"]):
    frame.loc[cells.index[:5], "cell_type"] = cells["true"].iloc[0]
adata = AnnData(np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True)), obs=frame)
adata.obsm["X_pca"] = PCA(30, random_state=0).fit_transform(adata.X)

pairlens.anndata.embed(adata, labels="cell_type", unknown="Unknown")
print({name: round(adata.uns["pairlens"][name], 2) for name in ("auc", "auc_error")})

# %%
# Each cell without a name gets the type of its nearest named cell in the picture.
known = (adata.obs["cell_type"] != "Unknown").to_numpy()
panels = [("PCA", "X_pca", donor, "donor"), ("PCA", "X_pca", kind, "type"), ("PairLens", "X_pairlens", kind, "type")]
figure, row = plt.subplots(1, 3, figsize=(12.5, 4.2), layout="constrained")
for axes, (title, key, colour, shown) in zip(row, panels):
    Z = adata.obsm[key][:, :2]
    right = KNeighborsClassifier(1).fit(Z[known], kind[known]).score(Z[~known], kind[~known])
    axes.scatter(*Z.T, c=colour, cmap="Set1" if shown == "donor" else "tab10", s=6, vmax=9)
    verdict = f"\n{right:.0%} of the other cells get their type" if shown == "type" else ""
    axes.set(title=f"{title}, coloured by {shown}{verdict}", xticks=[], yticks=[])
handles = [plt.Line2D([], [], marker="o", linestyle="", color=f"C{number}") for number in range(6)]
row[2].legend(handles, names, frameon=False, fontsize=8)
plt.show()
