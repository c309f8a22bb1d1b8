"""Rows that came in batches and are gone: what is kept of them, and the coordinates to solve in.

Pairs join rows of one batch, so every scatter of pairs is the sum of those of the batches. Count, mean and total
scatter are merged without loss of digits (:mod:`pairlens.engines.local.moments`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens.engines import Moments, Rows
from pairlens.spectral.rowspace import EXACT_LIMIT, GRAM_TOLERANCE, Basis, Matrix, RowSpace, columns_basis, range_basis
from pairlens.spectral.scatters import SUMS, SummedPairs
from pairlens.supervision import Constraints


@dataclass(frozen=True)
class BatchSums:
    """Keep what partial fits need of the rows and pairs of some batches.

    Attributes
    ----------
    moments : Moments
        Count, mean and scatter of the rows.
    pairs : SummedPairs
        Numbers, weights and scatters of the pairs, in the features.
    dtype : numpy.dtype
        Of the rows; float64 as soon as one batch was.
    """

    moments: Moments
    pairs: SummedPairs
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, rows: Rows, pairs: Constraints, names: Sequence[str]) -> BatchSums:
        """Sum up one batch.

        Parameters
        ----------
        rows : array or CSR matrix of shape (n_samples, n_features)
        pairs : Constraints
            Pairs of these rows.
        names : sequence of str
            The scatters, of :data:`~pairlens.spectral.scatters.SUMS`, that are wanted.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            moments = Moments.of(rows)
            # Squares that overflow float32 could not be recovered in later batches.
            if rows.dtype != np.float64 and not np.isfinite(moments.about(moments.mean)).all():
                return cls.of(rows.astype(np.float64), pairs, names)
            space = RowSpace(rows, moments.mean)
            sums = {name: SUMS[name](space, pairs) for name in names}
        counts = pairs.n_must_link, pairs.n_cannot_link, pairs.must_link_total, pairs.cannot_link_total
        return cls(moments, SummedPairs(*counts, sums), rows.dtype)

    def merge(self, other: BatchSums) -> BatchSums:
        """Return the sums of all batches."""
        dtype = np.promote_types(self.dtype, other.dtype)
        return BatchSums(self.moments.merge(other.moments), self.pairs + other.pairs, dtype)

    def in_coordinates(self) -> tuple[SummedSpace, SummedPairs]:
        """Return the coordinates that :func:`~pairlens.spectral.rowspace.row_space` would choose for all rows at once.

        With them, the scatters of the pairs there.
        """
        n, f = self.moments.n, len(self.moments.mean)
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
        return SummedSpace(n, basis.T @ scatter @ basis, way_back), self.pairs.along(basis)


@dataclass(frozen=True)
class _Directions:
    """An orthonormal basis, in columns."""

    vectors: Matrix

    def lift(self, directions: Matrix) -> Matrix:
        return (self.vectors @ directions).T


@dataclass(frozen=True)
class SummedSpace:
    """The coordinates of rows that are gone, with the sums of a :class:`~pairlens.spectral.rowspace.RowSpace`.

    Attributes
    ----------
    n_rows : int
    total : array of shape (dim, dim)
        Scatter of the rows about their mean.
    """

    n_rows: int
    total: Matrix
    _basis: Basis

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.total)

    def total_scatter(self) -> Matrix:
        """Return the scatter of the rows about their mean."""
        return self.total

    def covariance(self) -> Matrix:
        """Return the total scatter divided by the number of rows."""
        return self.total / self.n_rows

    def lift(self, directions: Matrix) -> Matrix:
        """Return directions in these coordinates (in columns) as components in the features (in rows)."""
        return self._basis.lift(directions)


Space = RowSpace | SummedSpace
"""What scatters of sums over pairs can be computed in."""
