"""The coordinates of the first stage: principal components of z-scored rows, with the way back to the features.

Whether features are z-scored at all is the parameter `standardize` of the methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pairlens._sklearn import StrOptions
from pairlens.engines import Rows, along, column_deviations, column_means, rescaled
from pairlens.methods.base import PairTransformer
from pairlens.spectral.eigen import symmetric
from pairlens.spectral.rowspace import RowSpace, row_space
from pairlens.tables.scaled import Scaled

KEPT_VARIANCE = 0.99
LEAST_COORDINATES = 10
"""Principal components that are kept however little of the variance they hold."""


class ScaleAware(PairTransformer):
    """A method with the parameter `standardize`, which looks at X as it was given to `fit`.

    Parameters
    ----------
    standardize : bool or "auto", default="auto"
        Whether to z-score the features. "auto" does, except for the rows of a :class:`TableEncoder`, whose scale it
        keeps. Choose False for features on one scale of their own, such as principal components.

    Attributes
    ----------
    standardized_ : bool
        Whether the features were z-scored.
    """

    _scale_constraints: ClassVar[dict[str, list[Any]]] = {"standardize": ["boolean", StrOptions({"auto"})]}
    standardize: bool | str
    standardized_: bool
    _of_encoder: bool
    """Whether the rows come from a TableEncoder."""

    def _read(self, X: Any, *, fitting: bool) -> Rows:
        if fitting:
            self._of_encoder = isinstance(X, Scaled)
            self.standardized_ = not self._of_encoder if self.standardize == "auto" else bool(self.standardize)
        return super()._read(X, fitting=fitting)


@dataclass(frozen=True)
class _StandardisedBasis:
    """Leading principal components of z-scored rows, scaled by one number, as a basis of a row space."""

    space: RowSpace
    scale: NDArray[np.float64]
    vectors: NDArray[np.float64]
    size: float

    def lift(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Directions in principal components as components in the raw features."""
        return self.space.lift(self.vectors @ (directions / self.size)) / self.scale


@dataclass(frozen=True)
class Standardiser:
    """z-scores by the mean and the deviations of training rows; sparse rows keep their zeros and are only scaled.

    That is enough for what depends on differences of rows, which all the uses here do.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, X: Rows, mean: NDArray[np.float64], *, standardize: bool = True) -> Standardiser:
        return cls(mean, column_scale(X, mean, standardize))

    def __call__(self, X: Rows) -> Rows:
        return rescaled(X, offset=self.mean, scale=self.scale)


def exact_means(X: Rows) -> NDArray[np.float64]:
    """Means of the columns to the accuracy of float64; those of float32 rows are accurate to 1e-6 at first."""
    mean = column_means(X)
    if isinstance(X, np.ndarray) and X.dtype == np.float32:
        mean = mean + column_means(X - mean)
    return mean


def column_scale(X: Rows, mean: NDArray[np.float64], standardize: bool) -> NDArray[np.float64]:
    """What columns are divided by: their deviations, or 1 where their scale is kept; constant ones become zero."""
    deviation = column_deviations(X, mean)
    deviation = np.where(deviation > 1e-10 * np.maximum(np.abs(mean), 1e-300), deviation, np.inf)
    return deviation if standardize else np.where(np.isfinite(deviation), 1.0, np.inf)


def principal_rows(
    X: Rows,
    mean: NDArray[np.float64],
    *,
    standardize: bool = True,
    at_least: int = LEAST_COORDINATES,
    anchors: NDArray[np.int64] | None = None,
) -> RowSpace:
    """Rows, z-scored, in the principal components that hold 99 % of their variance, scaled to total variance 1.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    mean : array of shape (n_features,)
        Of the columns: :func:`exact_means`.
    standardize : bool
        Whether to z-score them; otherwise the columns count with the scale that they have.
    at_least : int
        Number of components that are kept however little of the variance they hold.
    anchors : int array, optional
        Rows that the components must span where not all can: those in pairs.
    """
    scale = column_scale(X, mean, standardize)
    space = row_space(rescaled(X, scale=scale), mean / scale, anchors=anchors)
    values, vectors = symmetric(space.total_scatter())
    values = np.maximum(values, 0.0)
    share = np.cumsum(values) / max(values.sum(), np.finfo(float).tiny)
    enough = int(np.searchsorted(share, KEPT_VARIANCE - 1e-12)) + 1
    usable = int(np.count_nonzero(values > 1e-12 * values.max(initial=0.0)))
    kept = min(max(enough, at_least), usable)
    basis = vectors[:, :kept]
    size = float(np.sqrt(values[:kept].sum() / X.shape[0])) if kept else 1.0
    principal = rescaled(along(space.rows, basis, origin=space.offset), scale=size)
    return RowSpace(principal, np.zeros(kept), _basis=_StandardisedBasis(space, scale, basis, size))
