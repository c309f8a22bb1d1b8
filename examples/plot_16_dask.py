"""
A million rows with Dask
========================

The table is never in memory as a whole: 50 chunks of 20,000 rows each are generated when needed. One pass over the
chunks fits WBDR from 300 answers. The view stays lazy, and a histogram of it is summed chunk by chunk.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from pairlens import WBDR, Constraints

X, y = load_digits(return_X_y=True)
ROWS, CHUNKS = 20_000, 50


def chunk_of_rows(block_id):
    """Scans with jitter, as if each chunk were a file. The last column is the digit."""
    rng = np.random.default_rng(block_id[0])
    chosen = rng.integers(len(X), size=ROWS)
    return np.c_[X[chosen] + rng.normal(0, 1, (ROWS, X.shape[1])), y[chosen]].astype(np.float32)


columns = X.shape[1] + 1
table = da.map_blocks(chunk_of_rows, chunks=((ROWS,) * CHUNKS, (columns,)), dtype=np.float32)
rows, digit = table[:, :-1], table[:, -1]
print(f"{len(rows):,} rows in {CHUNKS} chunks")

# %%
# The answers are about rows of the first chunk. The scatter is a sum over all chunks.
pairs = Constraints.from_labels(digit[:ROWS].compute(), n_pairs=300, random_state=0)
pairs = Constraints(pairs.must_link, pairs.cannot_link, n_samples=len(rows))
model = WBDR(2).fit(rows, constraints=pairs)
view = model.transform(rows)
print(type(view).__name__, view.shape)

# %%
# One density for each digit. Only the bins come back.
low, high = np.percentile(view[:ROWS].compute(), [0.01, 99.99], axis=0)
edges = [np.linspace(a, b, 161) for a, b in zip(low, high)]
counts = [da.histogram2d(*view.T, bins=edges, weights=(digit == label).astype(float))[0] for label in range(10)]
counts = np.stack(da.compute(*counts))

share = counts / np.maximum(counts.sum(axis=0), 1)
colours = np.einsum("kij,kc->jic", share, plt.get_cmap("tab10")(range(10))[:, :3])
depth = (counts.sum(axis=0) / counts.sum(axis=0).max()).T[..., None] ** 0.35
figure, axes = plt.subplots(figsize=(8, 6), layout="constrained")
axes.imshow(1 - depth * (1 - colours), origin="lower", aspect="auto", interpolation="bilinear")
for label in range(10):
    column, row = np.unravel_index((counts * share)[label].argmax(), share[label].shape)
    axes.text(column, row, label, ha="center", va="center", weight="bold", bbox={"boxstyle": "circle", "fc": "w"})
axes.set(title=f"{len(rows):,} handwritten digits by WBDR, 300 answers", xticks=[], yticks=[])
plt.show()
