"""Base of the kernel methods: a linear method in kernel features."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import Interval, StrOptions, check_is_fitted, validate_data
from pairlens.engines.blocks import Rows
from pairlens.kernels.features import kernel_features
from pairlens.methods._base import DTYPES, PairTransformer
from pairlens.spectral.eigen import fix_signs
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints

__all__ = ["KernelPairTransformer"]


class KernelPairTransformer(PairTransformer):
    """Base of the methods whose directions are combinations of kernel functions at rows."""

    _center: ClassVar[bool]
    """Whether the method works in centred kernel features."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PairTransformer._parameter_constraints,
        "kernel": [str, callable],
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
        self._features = kernel_features(X, kernel=self.kernel, gamma=self.gamma, rank=self.rank, center=self._center)
        coordinates = self._features(X)
        offset = coordinates.mean(axis=0) if self._center else np.zeros(coordinates.shape[1])
        return RowSpace(coordinates, offset, seen=X), known

    def _check_n_components(self, X: Rows) -> None:
        if self.n_components > X.shape[0]:
            raise ValueError(f"n_components={self.n_components} must be at most the number of rows, {X.shape[0]}.")

    def _keep(self, space: RowSpace, directions: NDArray[np.float64], X: Rows) -> None:
        self.components_ = fix_signs(directions.T)

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Project rows, those of :meth:`fit` or new ones.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        Z : array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        rows: Rows = validate_data(self, X, dtype=DTYPES, accept_sparse="csr", reset=False)
        return (self._features(rows) @ self.components_.T).astype(rows.dtype, copy=False)
