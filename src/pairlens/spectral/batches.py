"""Rows that came in batches and are gone: what is kept of them, and the coordinates to solve in.

Pairs join rows of one batch, so every scatter of pairs is the sum of those of the batches. Count, mean and total
scatter are merged without loss of digits (:mod:`pairlens.engines.local.moments`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import FloatArray, Moments
from pairlens.spectral.eigen import Matrix, range_basis
from pairlens.spectral.rowspace import EXACT_LIMIT, GRAM_TOLERANCE, Basis, RowSpace, columns_basis


@dataclass(frozen=True)
class ScatterSum:
    """A scatter over pairs or groups of rows, and how many entered it."""

    scatter: Matrix
    count: int

    def __add__(self, other: ScatterSum) -> ScatterSum:
        return ScatterSum(self.scatter + other.scatter, self.count + other.count)


@dataclass(frozen=True)
class PairCounts:
    """How many pairs there were: as much of :class:`pairlens.Constraints` as sums of scatters need."""

    n_must_link: int = 0
    n_cannot_link: int = 0
    must_link_total: float = 0.0
    cannot_link_total: float = 0.0

    @classmethod
    def of(cls, known: Any) -> Self:
        return cls(known.n_must_link, known.n_cannot_link, known.must_link_total, known.cannot_link_total)

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(
            self.n_must_link + other.n_must_link,
            self.n_cannot_link + other.n_cannot_link,
            self.must_link_total + other.must_link_total,
            self.cannot_link_total + other.cannot_link_total,
        )

    @property
    def n_pairs(self) -> int:
        return self.n_must_link + self.n_cannot_link

    @property
    def rows(self) -> NDArray[np.int64]:
        """None: the rows are gone."""
        return np.empty(0, dtype=np.int64)

    def chunklets(self) -> NDArray[np.int64]:
        """None: what their groups add up to is in the sums."""
        return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class BatchSums:
    """All that is kept of the rows and pairs of some batches.

    Attributes
    ----------
    moments : Moments
        Count, mean and scatter of the rows.
    pairs : PairCounts
        Numbers and weights of the pairs.
    sums : dict of ScatterSum
        Scatters by name, in the features.
    dtype : numpy.dtype
        Of the rows; float64 as soon as one batch was.
    """

    moments: Moments
    pairs: PairCounts
    sums: dict[str, ScatterSum]
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows in all batches, and of features."""
        return self.moments.n, len(self.moments.mean)

    def astype(self, _dtype: Any) -> BatchSums:
        """Itself: it is in float64."""
        return self

    def merge(self, other: BatchSums) -> BatchSums:
        """What is kept of all batches."""
        return BatchSums(
            self.moments.merge(other.moments),
            self.pairs + other.pairs,
            {name: self.sums[name] + other.sums[name] for name in self.sums},
            np.promote_types(self.dtype, other.dtype),
        )

    def space(self) -> SummedSpace:
        """The coordinates that :func:`~pairlens.spectral.rowspace.row_space` would choose for all rows at once."""
        n, f = self.shape
        scatter = self.moments.about(self.moments.mean)
        if f > EXACT_LIMIT:
            raise ValueError(
                f"X has {f} features, and what is kept of batches is a matrix of {f} x {f}; at most {EXACT_LIMIT} are "
                "taken. Reduce the features beforehand."
            )
        if f <= n:
            varying = np.flatnonzero(self.moments.varies)
            basis = np.eye(f)[:, varying]
            way_back: Basis = columns_basis(varying, f)
        else:
            if not np.isfinite(scatter).all():
                raise FloatingPointError
            _, basis = range_basis(scatter, GRAM_TOLERANCE)
            way_back = _Directions(basis)
        return SummedSpace(
            rows=None,
            n_summed=n,
            offset=np.zeros(basis.shape[1]),
            _basis=way_back,
            total=basis.T @ scatter @ basis,
            sums={name: ScatterSum(basis.T @ part.scatter @ basis, part.count) for name, part in self.sums.items()},
        )


@dataclass(frozen=True)
class _Directions:
    """An orthonormal basis, in columns."""

    vectors: Matrix

    def lift(self, directions: Matrix) -> Matrix:
        return (self.vectors @ directions).T


@dataclass(frozen=True)
class SummedSpace(RowSpace):
    """Coordinates without the rows: their scatters were summed up before."""

    n_summed: int = 0
    total: Matrix | None = None
    sums: dict[str, ScatterSum] | None = None

    @property
    def n_rows(self) -> int:
        return self.n_summed

    @property
    def dim(self) -> int:
        return len(self.offset)

    def total_scatter(self, weight: FloatArray | None = None) -> Matrix:
        assert weight is None
        assert self.total is not None
        return self.total

    def sum(self, name: str) -> ScatterSum:
        """One of the scatters."""
        assert self.sums is not None
        return self.sums[name]
