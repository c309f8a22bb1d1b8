r"""Scatters of what people know: must-links, cannot-links and the chunklets that must-links form.

Pairs that labels imply are never listed. With :math:`n_c` rows in class c of N labelled rows, class means :math:`m_c`
and the mean m of the labelled rows,

.. math::
    S_M = \sum_c n_c W_c, \qquad S_C = \sum_c (N - n_c) W_c + N \sum_c n_c (m_c - m)(m_c - m)',

where :math:`W_c` is the scatter of class c about its mean.

Pairs join rows of one batch, so scatters of pairs add up over batches of rows that are gone afterwards
(:class:`BatchSums`). Functions that take these in place of :class:`~pairlens.Constraints` return what was summed up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import IntArray, Moments, Rows, group_means, group_scatter, pair_scatter
from pairlens.exceptions import InputError
from pairlens.spectral.rowspace import EXACT_LIMIT, GRAM_TOLERANCE, Matrix, RowSpace, range_basis
from pairlens.supervision import Constraints

ScatterSum = tuple[Matrix, int]
"""A scatter over pairs or groups of rows, and how many entered it."""


@dataclass(frozen=True)
class BatchSums:
    """Keep what partial fits need of the rows and pairs of some batches.

    In coordinates (:meth:`in_coordinates`) it takes the place of the rows, a
    :class:`~pairlens.spectral.rowspace.RowSpace`, and of the pairs, :class:`~pairlens.Constraints`. The totals are sums
    of weights, and `sums` the scatters by their names in :data:`SUMS`, with how many pairs or rows entered each. The
    orthonormal columns of `basis` are the coordinates, in which `total` is the scatter of the rows about their mean;
    the dtype is float64 as soon as one batch was.
    """

    moments: Moments
    n_must_link: int
    n_cannot_link: int
    must_link_total: float
    cannot_link_total: float
    sums: dict[str, ScatterSum]
    dtype: np.dtype[Any]
    basis: Matrix | None = None
    total: Matrix | None = None

    @classmethod
    def of(cls, rows: Rows, pairs: Constraints, names: Sequence[str]) -> BatchSums:
        """Sum up the scatters of these names, of :data:`SUMS`, over one batch."""
        with np.errstate(over="ignore", invalid="ignore"):
            moments = Moments.of(rows)
            # Squares that overflow float32 could not be recovered in later batches.
            if rows.dtype != np.float64 and not np.isfinite(moments.about(moments.mean)).all():
                return cls.of(rows.astype(np.float64), pairs, names)
            space = RowSpace(rows, moments.mean)
            sums = {name: SUMS[name](space, pairs) for name in names}
        counts = pairs.n_must_link, pairs.n_cannot_link, pairs.must_link_total, pairs.cannot_link_total
        return cls(moments, *counts, sums, rows.dtype)

    def merge(self, other: BatchSums) -> BatchSums:
        """Return the sums of all batches."""
        both = {name: (self.sums[name], other.sums[name]) for name in self.sums}
        return BatchSums(
            self.moments.merge(other.moments),
            self.n_must_link + other.n_must_link,
            self.n_cannot_link + other.n_cannot_link,
            self.must_link_total + other.must_link_total,
            self.cannot_link_total + other.cannot_link_total,
            {name: (mine[0] + theirs[0], mine[1] + theirs[1]) for name, (mine, theirs) in both.items()},
            np.promote_types(self.dtype, other.dtype),
        )

    def in_coordinates(self) -> BatchSums:
        """Return the sums in the coordinates that :func:`~pairlens.spectral.rowspace.row_space` would choose."""
        n, f = self.moments.n, len(self.moments.mean)
        scatter = self.moments.about(self.moments.mean)
        if f > EXACT_LIMIT:
            raise InputError(
                f"X has {f} features, and what is kept of batches is a matrix of {f} x {f}; at most {EXACT_LIMIT} are "
                "taken",
                argument="X",
                remedy="Reduce the features beforehand.",
            )
        if f <= n:
            basis = np.eye(f)[:, self.moments.varies]
        else:
            if not np.isfinite(scatter).all():
                raise FloatingPointError
            _, basis = range_basis(scatter, GRAM_TOLERANCE)
        sums = {name: (basis.T @ part @ basis, count) for name, (part, count) in self.sums.items()}
        return replace(self, sums=sums, basis=basis, total=basis.T @ scatter @ basis)

    @property
    def n_pairs(self) -> int:
        return self.n_must_link + self.n_cannot_link

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.total_scatter())

    def total_scatter(self) -> Matrix:
        """Return the scatter of the rows about their mean."""
        assert self.total is not None
        return self.total

    def covariance(self) -> Matrix:
        """Return the total scatter divided by the number of rows."""
        return self.total_scatter() / self.moments.n

    def lift(self, directions: Matrix) -> Matrix:
        """Return directions in these coordinates (in columns) as components in the features (in rows)."""
        assert self.basis is not None
        return (self.basis @ directions).T


Space = RowSpace | BatchSums
"""What scatters of sums over pairs can be computed in."""


def must_link_scatter(space: Space, pairs: Constraints | BatchSums) -> Matrix:
    """Sum weight times the outer product of the difference over must-links."""
    if isinstance(pairs, BatchSums):
        return pairs.sums["must_link"][0].copy()
    assert isinstance(space, RowSpace)
    explicit = pairs.explicit
    scatter = pair_scatter(space.rows, explicit.must_link, explicit.must_link_weight)
    if pairs.labels is not None:
        scatter += group_scatter(space.rows, pairs.labels, weight=_sizes(pairs.labels))
    return scatter


def must_link_degrees(pairs: Constraints) -> NDArray[np.float64]:
    """Return the total weight of the must-links at each row."""
    explicit = pairs.explicit
    ends, weight = explicit.must_link, explicit.must_link_weight
    degree = np.bincount(ends.ravel(), np.repeat(weight, 2), minlength=len(pairs)).astype(np.float64)
    if pairs.labels is not None:
        labelled = pairs.labels >= 0
        degree[labelled] += _sizes(pairs.labels)[pairs.labels[labelled]] - 1
    return degree


def cannot_link_scatter(space: Space, pairs: Constraints | BatchSums) -> Matrix:
    """Sum weight times the outer product of the difference over cannot-links."""
    if isinstance(pairs, BatchSums):
        return pairs.sums["cannot_link"][0].copy()
    assert isinstance(space, RowSpace)
    explicit = pairs.explicit
    scatter = pair_scatter(space.rows, explicit.cannot_link, explicit.cannot_link_weight)
    if pairs.labels is not None:
        size = _sizes(pairs.labels)
        scatter += group_scatter(space.rows, pairs.labels, weight=size.sum() - size)
        scatter += size.sum() * between_scatter(space, pairs.labels)
    return scatter


def mean_pair_scatters(space: Space, pairs: Constraints | BatchSums) -> tuple[Matrix, Matrix]:
    """Return the mean outer difference of the must-links and of the cannot-links: S_M / n_M and S_C / n_C.

    Without cannot-links the mean over all pairs of rows takes their place; without must-links their term is zero.
    """
    together = must_link_scatter(space, pairs)
    if pairs.n_must_link:
        together /= pairs.must_link_total
    if pairs.n_cannot_link:
        return together, cannot_link_scatter(space, pairs) / pairs.cannot_link_total
    return together, 2 * space.covariance()


def between_scatter(space: RowSpace, codes: IntArray) -> Matrix:
    """Return the scatter of group means about the mean of all grouped rows, each weighted by the size of its group."""
    size = _sizes(codes)
    means = group_means(space.rows, codes)
    centred = means - size @ means / size.sum()
    return (centred.T * size) @ centred


def chunklet_covariances(space: Space, pairs: Constraints | BatchSums) -> tuple[Matrix, Matrix]:
    """Return the covariance of the rows of chunklets about the means of their chunklets, and that of all rows."""
    return _mean("chunklets", space, pairs), space.covariance()


def chunklet_scatters(space: Space, pairs: Constraints | BatchSums) -> tuple[Matrix, Matrix]:
    """Return the covariance inside chunklets, and the mean outer difference of the means of chunklets.

    The mean is over those that a cannot-link joins, each pair of chunklets once. A row in no chunklet is one by itself.
    """
    return _mean("chunklets", space, pairs), _mean("between_chunklets", space, pairs)


def _mean(name: str, space: Space, pairs: Constraints | BatchSums) -> Matrix:
    if isinstance(pairs, BatchSums):
        total, count = pairs.sums[name]
    else:
        assert isinstance(space, RowSpace)
        total, count = SUMS[name](space, pairs)
    return total / max(1, count)


def _inside_chunklets(space: RowSpace, pairs: Constraints) -> ScatterSum:
    chunklets = pairs.chunklets()
    return group_scatter(space.rows, chunklets), int(np.count_nonzero(chunklets >= 0))


def _joined_chunklets(space: RowSpace, pairs: Constraints) -> ScatterSum:
    chunklets = pairs.chunklets()
    # Rows in no pair are in no difference of means: a batch may have many of them.
    group = chunklets.copy()
    single = np.setdiff1d(pairs.rows, np.flatnonzero(group >= 0), assume_unique=True)
    group[single] = chunklets.max(initial=-1) + 1 + np.arange(len(single))
    means = group_means(space.rows, group)
    joined = np.concatenate([group[pairs.explicit.cannot_link], _label_groups(pairs, group)])
    joined = np.unique(np.sort(joined, axis=1), axis=0)
    joined = joined[joined[:, 0] != joined[:, 1]]
    difference = means[joined[:, 0]] - means[joined[:, 1]]
    return difference.T @ difference, len(joined)


def _label_groups(pairs: Constraints, group: IntArray) -> IntArray:
    """Return pairs of chunklets with different labels."""
    if pairs.labels is None:
        return np.empty((0, 2), dtype=np.int64)
    groups = np.unique(group[pairs.labels >= 0])
    groups = groups[groups >= 0]
    return np.column_stack([side.ravel() for side in np.meshgrid(groups, groups)])


def _sizes(codes: IntArray) -> NDArray[np.float64]:
    return np.bincount(codes[codes >= 0]).astype(np.float64)


SUMS: dict[str, Callable[[RowSpace, Constraints], ScatterSum]] = {
    "must_link": lambda space, pairs: (must_link_scatter(space, pairs), pairs.n_must_link),
    "cannot_link": lambda space, pairs: (cannot_link_scatter(space, pairs), pairs.n_cannot_link),
    "chunklets": _inside_chunklets,
    "between_chunklets": _joined_chunklets,
}
"""Scatters of the pairs among the rows of a batch, which add up over batches."""
