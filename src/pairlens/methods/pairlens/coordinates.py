"""The coordinates of the first stage: principal components of z-scored rows, with the way back to the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines import Rows, column_means, project
from pairlens.engines.torch import TensorRows, torch
from pairlens.spectral.eigen import symmetric
from pairlens.spectral.rowspace import RowSpace, row_space

KEPT_VARIANCE = 0.99
LEAST_COORDINATES = 10
"""Principal components that are kept however little of the variance they hold."""


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
        if sparse.issparse(X):
            return (X @ sparse.diags(1 / self.scale)).tocsr()
        if isinstance(X, TensorRows):
            values = X.tensor.double()
            mean, scale = (torch.from_numpy(part).to(values.device) for part in (self.mean, self.scale))
            return TensorRows((values - mean) / scale)
        return (X - self.mean) / self.scale


def exact_means(X: Rows) -> NDArray[np.float64]:
    """Means of the columns to the accuracy of float64; those of float32 rows are accurate to 1e-6 at first."""
    mean = column_means(X)
    if isinstance(X, np.ndarray) and X.dtype == np.float32:
        mean = mean + column_means(X - mean)
    return mean


def column_deviations(X: Rows, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations of the columns; infinite for constant ones, which makes them zero instead of noise."""
    if sparse.issparse(X):
        # The stored entries about the mean, then the zeros: the difference of two large sums would lose all digits.
        stored = X.tocsc()
        filled = np.diff(stored.indptr)
        column = np.repeat(np.arange(X.shape[1]), filled)
        difference = stored.data - mean[column]
        unit = np.abs(mean)
        np.maximum.at(unit, column, np.abs(difference))
        unit[unit == 0] = 1.0
        of_stored = np.bincount(column, (difference / unit[column]) ** 2, X.shape[1])
        square = (of_stored + (X.shape[0] - filled) * (mean / unit) ** 2) / X.shape[0]
    elif isinstance(X, TensorRows):
        centred = X.tensor.double() - torch.from_numpy(mean).to(X.tensor.device)
        largest = centred.abs().amax(dim=0)
        largest[largest == 0] = 1.0
        square = centred.div_(largest).square_().mean(dim=0).cpu().numpy()
        unit = largest.cpu().numpy()
    else:
        difference = X - mean
        # In units of the largest, squares neither overflow nor vanish.
        unit = np.maximum(difference.max(axis=0), -difference.min(axis=0))
        unit[unit == 0] = 1.0
        difference /= unit
        square = column_means(np.square(difference, out=difference))
    deviation = unit * np.sqrt(square)
    return np.where(deviation > 1e-10 * np.maximum(np.abs(mean), 1e-300), deviation, np.inf)


def column_scale(X: Rows, mean: NDArray[np.float64], standardize: bool) -> NDArray[np.float64]:
    """What columns are divided by: their deviations, or 1 where their scale is kept; constant ones become zero."""
    deviation = column_deviations(X, mean)
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
    if isinstance(X, TensorRows):
        scaled = Standardiser(np.zeros(len(mean)), scale)(X)
    else:
        scaled = (X @ sparse.diags(1 / scale)).tocsr() if sparse.issparse(X) else X / scale
    space = row_space(scaled, mean / scale, anchors=anchors)
    values, vectors = symmetric(space.total_scatter())
    values = np.maximum(values, 0.0)
    share = np.cumsum(values) / max(values.sum(), np.finfo(float).tiny)
    enough = int(np.searchsorted(share, KEPT_VARIANCE - 1e-12)) + 1
    usable = int(np.count_nonzero(values > 1e-12 * values.max(initial=0.0)))
    kept = min(max(enough, at_least), usable)
    basis = vectors[:, :kept]
    size = float(np.sqrt(values[:kept].sum() / X.shape[0])) if kept else 1.0
    principal: Rows
    if isinstance(space.rows, TensorRows):
        principal = TensorRows(project(space.rows, space.offset, basis.T / size))
    else:
        principal = (np.asarray(space.rows @ basis) - space.offset @ basis) / size
    return RowSpace(principal, np.zeros(kept), _basis=_StandardisedBasis(space, scale, basis, size))
