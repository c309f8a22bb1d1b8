"""The spaces in which PairMap measures rows: as they are, and as pairs have taught methods to see them.

Every space is centred on the training rows and has total variance 1 there, so that distances in different spaces can be
compared and added.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import PCA

from pairlens.engines.blocks import Rows
from pairlens.exceptions import SupervisionWarning
from pairlens.methods._stages import Standardiser, exact_means
from pairlens.methods.kernel_bwdr import KernelBWDR
from pairlens.methods.pairlens import LinearPairLens, PairLens
from pairlens.supervision import Constraints

__all__ = ["Learned", "Raw", "Spaces", "Unit", "fit_learned", "fit_raw"]

Float64 = NDArray[np.float64]

LINEAR_COLUMNS = 15
WIDEST_SPARSE = 2000
"""Columns up to which sparse rows are made dense; wider ones are reduced to their leading principal components."""
SPARSE_COMPONENTS = 200


@dataclass(frozen=True)
class Unit:
    """Centres rows and scales them by one number, so that the training rows have total variance 1."""

    mean: Float64
    size: float

    @classmethod
    def of(cls, rows: Float64) -> Unit:
        mean = rows.mean(axis=0)
        centred = rows - mean
        size = float(np.sqrt(np.einsum("ij,ij->", centred, centred) / len(rows)))
        # Rows that are equal up to rounding stay equal.
        return cls(mean, size if size > 1e-12 * float(np.abs(mean).max(initial=0.0)) else float("inf"))

    def __call__(self, rows: Float64) -> Float64:
        return np.asarray((rows - self.mean) / self.size)


@dataclass(frozen=True)
class Raw:
    """The rows as they are: z-scores, of wide sparse rows in their leading principal components."""

    standardiser: Standardiser
    principal: PCA | None
    unit: Unit

    @property
    def varies(self) -> bool:
        """Whether there is a column that is not constant."""
        return bool(np.isfinite(self.standardiser.scale).any())

    def scores(self, X: Rows) -> Rows:
        """z-scores; sparse rows are scaled only and stay sparse."""
        return self.standardiser(X.astype(np.float64))

    def __call__(self, X: Rows) -> Float64:
        return self.unit(_dense(self.scores(X), self.principal))


def fit_raw(X: Rows) -> Raw:
    """z-scores by the statistics of these rows."""
    standardiser = Standardiser.of(X.astype(np.float64), exact_means(X))
    scores = standardiser(X.astype(np.float64))
    principal = None
    if sparse.issparse(X) and X.shape[1] > WIDEST_SPARSE and X.shape[0] > 2:
        kept = min(SPARSE_COMPONENTS, X.shape[0] - 2)
        principal = PCA(kept, svd_solver="arpack", random_state=0).fit(scores)
    return Raw(standardiser, principal, Unit.of(_dense(scores, principal)))


def _dense(scores: Rows, principal: PCA | None) -> Float64:
    if principal is not None:
        return np.asarray(principal.transform(scores))
    return np.asarray(scores.toarray() if sparse.issparse(scores) else scores)


@dataclass(frozen=True)
class Learned:
    """The spaces that pairs have taught; a method that finds no direction has no columns.

    Attributes
    ----------
    linear : LinearPairLens or None
        15 columns, or all.
    lens : PairLens or None
        Two columns from diffusion coordinates.
    kernel : KernelBWDR or None
        Two columns of the z-scores. None too where no probability is asked for.
    units : tuple of Unit
        In this order.
    """

    linear: LinearPairLens | None
    lens: PairLens | None
    kernel: KernelBWDR | None
    units: tuple[Unit, Unit, Unit]

    def __call__(self, X: Rows, scores: Rows) -> tuple[Float64, Float64, Float64]:
        """Rows in the three spaces; `scores` are their z-scores."""
        rows = X.astype(np.float64)
        found = (_seen(self.linear, rows), _seen(self.lens, rows), _seen(self.kernel, scores))
        return self.units[0](found[0]), self.units[1](found[1]), self.units[2](found[2])


def fit_learned(X: Rows, scores: Rows, known: Constraints, *, varies: bool, kernel: bool, seed: int) -> Learned:
    """Fit the three methods to the rows and what is known about pairs of them; rows without variation teach nothing."""
    if not varies:
        return Learned(None, None, None, (Unit.of(np.empty((X.shape[0], 0))),) * 3)
    rows = X.astype(np.float64)
    with warnings.catch_warnings():
        # What one space lacks is no news about the map.
        warnings.simplefilter("ignore", SupervisionWarning)
        linear = LinearPairLens(min(LINEAR_COLUMNS, X.shape[1]), random_state=seed).fit(rows, constraints=known)
        lens = PairLens(2, guard=False, random_state=seed).fit(rows, constraints=known)
        other = KernelBWDR(2).fit(scores, constraints=known) if kernel else None
    units = (Unit.of(_seen(linear, rows)), Unit.of(_seen(lens, rows)), Unit.of(_seen(other, scores)))
    return Learned(linear, lens, other, units)


def _seen(model: Any, rows: Rows) -> Float64:
    return np.empty((rows.shape[0], 0)) if model is None else np.asarray(model.transform(rows), dtype=np.float64)


@dataclass(frozen=True)
class Spaces:
    """All four spaces."""

    raw: Raw
    learned: Learned

    def __call__(self, X: Rows) -> tuple[Float64, Float64, Float64, Float64]:
        """Rows as they are, and in the spaces of LinearPairLens, PairLens and KernelBWDR."""
        return (self.raw(X), *self.learned(X, self.raw.scores(X)))
