"""Base of the kernel methods: a linear method in kernel features."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pairlens._sklearn import Interval, StrOptions, check_is_fitted
from pairlens.engines import Rows, column_means
from pairlens.kernels.features import kernel_features
from pairlens.methods.base import SpectralPairTransformer
from pairlens.spectral.eigen import fix_signs
from pairlens.spectral.rowspace import RowSpace, row_space
from pairlens.supervision import Constraints

KERNELS = {"additive_chi2", "chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid"}
"""Those of scikit-learn, named here because asking for its list costs an import."""


class KernelPairTransformer(SpectralPairTransformer):
    """Base of the methods whose directions are combinations of kernel functions at rows.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`.
    gamma : float or "median", default="median"
        Width of the kernel; "median" is one over the median squared distance of up to 1,000 evenly spaced rows.
    rank : int, optional
        Number of leading kernel features to work in; all by default. The kernel is exact up to 2,000 rows; of more,
        2,000 evenly spaced ones span the solution (Nystroem), and memory is n x rank.

    Attributes
    ----------
    components_ : array of shape (n_components, n_kernel_features)
        Directions in the coordinates of the kernel.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SpectralPairTransformer._parameter_constraints,
        "kernel": [StrOptions(KERNELS), callable],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | str = "median",
        rank: int | None = None,
    ) -> None:
        super().__init__(n_components)
        self.kernel = kernel
        self.gamma = gamma
        self.rank = rank

    def _fit_coordinates(self, X: Rows, known: Constraints) -> tuple[RowSpace, Constraints]:
        self._features = kernel_features(X, kernel=self.kernel, gamma=self.gamma, rank=self.rank, center=True)
        coordinates = self._features(X)
        # Distances of wide sparse rows are found in the coordinates of their row space, which need no dense copy.
        input_rows = row_space(X, column_means(X)).rows if sparse.issparse(X) else X
        return RowSpace(coordinates, coordinates.mean(axis=0), input_rows=input_rows), known

    def _check_n_components(self, X: Rows) -> None:
        if self.n_components > X.shape[0]:
            raise ValueError(f"n_components={self.n_components} must be at most the number of rows, {X.shape[0]}.")

    def _keep(self, space: RowSpace, directions: NDArray[np.float64], X: Rows) -> None:
        # Kernel features have no order or sign of their own, so the embedded rows decide the signs.
        embedded = ((space.rows - space.offset) @ directions).T
        decided = fix_signs(embedded)
        self.components_ = directions.T * np.where(np.sum(decided * embedded, axis=1) < 0, -1.0, 1.0)[:, None]
        self._offset = self.components_ @ space.offset

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        rows = self._read(X, fitting=False)
        return (self._features(rows) @ self.components_.T - self._offset).astype(rows.dtype, copy=False)
