r"""Kernel features: coordinates in which inner products are (nearly) those of a kernel.

With anchor rows a and :math:`K_{aa} = U \Lambda U'`, the features of a row x are
:math:`K(x, a)\, U \Lambda^{-1/2}`. If the anchors are all training rows, their inner products are exactly the kernel
matrix; with fewer anchors this is the Nystroem approximation. With :math:`K_{aa}` centred and the leading eigenvectors
kept, the features are kernel principal components.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import Rows, evenly_spaced, row_blocks, rows_in_memory
from pairlens.engines.torch import TensorRows, chunks, torch, working_bytes
from pairlens.spectral.eigen import range_basis

Kernel = str | Callable[..., Any]

MEDIAN_ROWS = 1000
ANCHORS = 2000
"""Rows up to which kernel features are exact; of more rows, this many evenly spaced ones are the anchors."""
KERNEL_TOLERANCE = 1e-12
"""Eigenvalues of the kernel matrix of the anchors up to this share of the largest are rounding."""


@dataclass(frozen=True)
class KernelFeatures:
    """The map from rows to kernel features."""

    anchors: Rows
    combination: NDArray[np.float64]
    offset: NDArray[np.float64]
    kernel: Kernel
    gamma: float | None

    def __call__(self, X: Rows) -> Any:
        """Features of rows: an array, or rows on the device of a tensor."""
        if isinstance(X, TensorRows):
            return self._on_device(X)
        result = np.empty((X.shape[0], self.combination.shape[1]))
        for block in row_blocks(X.shape[0], 8 * self.anchors.shape[0]):
            similarity = kernel_matrix(X[block], self.anchors, self.kernel, self.gamma)
            result[block] = similarity @ self.combination - self.offset
        return result

    def _on_device(self, X: TensorRows) -> TensorRows:
        if self.kernel != "rbf" or self.gamma is None:
            raise ValueError(f"kernel={self.kernel!r} is not computed on a device; give X.cpu().numpy().")
        values = X.tensor.double()
        anchors, combination, offset = (
            torch.from_numpy(np.ascontiguousarray(part, dtype=np.float64)).to(values.device)
            for part in (self.anchors, self.combination, self.offset)
        )
        squares = anchors.square().sum(dim=1)
        result = torch.empty((len(values), combination.shape[1]), dtype=torch.float64, device=values.device)
        for part in chunks(len(values), max(256, working_bytes(values.device) // (32 * len(anchors)))):
            rows = values[part]
            squared = torch.addmm(squares, rows, anchors.T, alpha=-2).add_(rows.square().sum(dim=1, keepdim=True))
            result[part] = squared.clamp_(min=0).mul_(-self.gamma).exp_() @ combination - offset
        return TensorRows(result)


def kernel_features(
    X: Rows, *, kernel: Kernel, gamma: float | str | None, rank: int | None = None, center: bool = False
) -> KernelFeatures:
    """Choose anchors and build the map.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    kernel : str or callable
        A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`.
    gamma : float, "median" or None
        Its width; "median" is one over the median squared distance.
    rank : int, optional
        Number of leading features to keep; all by default.
    center : bool, default=False
        Whether the features have mean zero over the anchors: kernel principal components.
    """
    width = median_gamma(X) if gamma == "median" else gamma
    assert not isinstance(width, str)
    anchors = rows_in_memory(X, evenly_spaced(X.shape[0], ANCHORS))
    K = kernel_matrix(anchors, anchors, kernel, width)
    mean = K.mean(axis=0) if center else np.zeros(len(K))
    if center:
        K = K - mean - mean[:, None] + mean.mean()
    values, vectors = range_basis(K, KERNEL_TOLERANCE, at_most=rank)
    combination = vectors / np.sqrt(values)
    # The other two terms of a centred kernel are the same for all anchors, which these combinations do not feel.
    return KernelFeatures(anchors, combination, mean @ combination, kernel, width)


def kernel_matrix(X: Rows, Y: Rows, kernel: Kernel, gamma: float | None) -> NDArray[np.float64]:
    """The kernel between two sets of rows, in float64."""
    from sklearn.metrics.pairwise import pairwise_kernels

    left, right = X.astype(np.float64), Y.astype(np.float64)
    if callable(kernel):
        return np.asarray(pairwise_kernels(left, right, metric=kernel), dtype=np.float64)
    return np.asarray(pairwise_kernels(left, right, metric=kernel, filter_params=True, gamma=gamma))


def median_gamma(X: Rows) -> float:
    """One over the median squared distance of up to 1,000 evenly spaced rows; 1 if they are all equal."""
    from sklearn.metrics.pairwise import euclidean_distances

    rows = rows_in_memory(X, evenly_spaced(X.shape[0], MEDIAN_ROWS)).astype(np.float64)
    squared = euclidean_distances(rows, squared=True)
    median = float(np.median(squared[np.triu_indices_from(squared, 1)]))
    return 1.0 / median if median > 0 else 1.0
