r"""Kernel features: coordinates in which inner products are (nearly) those of a kernel.

With anchor rows a and :math:`K_{aa} = U \Lambda U'`, the features of a row x are
:math:`K(x, a)\, U \Lambda^{-1/2}`. If the anchors are all training rows, their inner products are exactly the kernel
matrix; with fewer anchors this is the Nystroem approximation. With :math:`K_{aa}` centred and the leading eigenvectors
kept, the features are kernel principal components.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import Kernel, Rows, evenly_spaced, kernel_matrix, kernel_product, median_gamma, rows_in_memory
from pairlens.spectral.rowspace import range_basis

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

    def __call__(self, X: Rows) -> Rows:
        """Return features of rows: an array, or rows on the device of a tensor."""
        return kernel_product(X, self)

    def along(self, directions: NDArray[np.float64]) -> KernelFeatures:
        """Return the map to the features along directions, which are columns; few of them are computed at once."""
        return replace(self, combination=self.combination @ directions, offset=self.offset @ directions)


def kernel_features(
    X: Rows, *, kernel: Kernel, gamma: float | str | None, rank: int | None = None, center: bool = False
) -> KernelFeatures:
    """Choose anchors and build the map.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    kernel : str or callable
        A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`.
    gamma : float, "auto" or None
        Its width; "auto" is one over the median squared distance.
    rank : int, optional
        Number of leading features to keep; all by default.
    center : bool, default=False
        Whether the features have mean zero over the anchors: kernel principal components.
    """
    width = median_gamma(X) if gamma == "auto" else gamma
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
