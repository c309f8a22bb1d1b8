r"""Scatters of what people know: must-links, cannot-links and the chunklets that must-links form.

Pairs that labels imply are never listed. With :math:`n_c` rows in class c of N labelled rows, class means :math:`m_c`
and the mean m of the labelled rows,

.. math::
    S_M = \sum_c n_c W_c, \qquad S_C = \sum_c (N - n_c) W_c + N \sum_c n_c (m_c - m)(m_c - m)',

where :math:`W_c` is the scatter of class c about its mean.

Scatters of pairs add up over batches of rows. Functions that take :class:`SummedPairs` in place of
:class:`~pairlens.Constraints` return what was summed up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import IntArray, group_means, group_scatter, pair_scatter
from pairlens.spectral.rowspace import Matrix, RowSpace
from pairlens.supervision import Constraints

if TYPE_CHECKING:
    from pairlens.spectral.batches import Space


@dataclass(frozen=True)
class ScatterSum:
    """A scatter over pairs or groups of rows, and how many entered it."""

    scatter: Matrix
    count: int

    def __add__(self, other: ScatterSum) -> ScatterSum:
        return ScatterSum(self.scatter + other.scatter, self.count + other.count)

    def mean(self) -> Matrix:
        """Return the scatter divided by the number of what entered it."""
        return self.scatter / max(1, self.count)


@dataclass(frozen=True)
class SummedPairs:
    """What methods need to know of pairs whose rows are gone: how many there were, and their scatters.

    Attributes
    ----------
    n_must_link, n_cannot_link : int
    must_link_total, cannot_link_total : float
        Sums of their weights.
    sums : dict of ScatterSum
        Scatters by their names in :data:`SUMS`.
    """

    n_must_link: int
    n_cannot_link: int
    must_link_total: float
    cannot_link_total: float
    sums: dict[str, ScatterSum]

    def __add__(self, other: SummedPairs) -> SummedPairs:
        return SummedPairs(
            self.n_must_link + other.n_must_link,
            self.n_cannot_link + other.n_cannot_link,
            self.must_link_total + other.must_link_total,
            self.cannot_link_total + other.cannot_link_total,
            {name: self.sums[name] + other.sums[name] for name in self.sums},
        )

    @property
    def n_pairs(self) -> int:
        return self.n_must_link + self.n_cannot_link

    def along(self, basis: Matrix) -> SummedPairs:
        """Return the same with scatters in the coordinates of a basis, which is in columns."""
        sums = {name: ScatterSum(basis.T @ part.scatter @ basis, part.count) for name, part in self.sums.items()}
        return replace(self, sums=sums)


def unsupervised(space: Space) -> tuple[Matrix, Matrix]:
    """Return what attracts and what repels when nothing is known: the identity and the covariance, which is PCA."""
    return np.eye(space.dim), space.covariance()


def must_link_scatter(space: Space, pairs: Constraints | SummedPairs) -> Matrix:
    """Sum weight times the outer product of the difference over must-links."""
    if isinstance(pairs, SummedPairs):
        return pairs.sums["must_link"].scatter.copy()
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


def cannot_link_scatter(space: Space, pairs: Constraints | SummedPairs) -> Matrix:
    """Sum weight times the outer product of the difference over cannot-links."""
    if isinstance(pairs, SummedPairs):
        return pairs.sums["cannot_link"].scatter.copy()
    assert isinstance(space, RowSpace)
    explicit = pairs.explicit
    scatter = pair_scatter(space.rows, explicit.cannot_link, explicit.cannot_link_weight)
    if pairs.labels is not None:
        size = _sizes(pairs.labels)
        scatter += group_scatter(space.rows, pairs.labels, weight=size.sum() - size)
        scatter += size.sum() * between_scatter(space, pairs.labels)
    return scatter


def mean_pair_scatters(space: Space, pairs: Constraints | SummedPairs) -> tuple[Matrix, Matrix]:
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


def chunklet_covariance(space: Space, pairs: Constraints | SummedPairs) -> Matrix:
    """Return the covariance of the rows of chunklets about the means of their chunklets."""
    if isinstance(pairs, SummedPairs):
        return pairs.sums["chunklets"].mean()
    assert isinstance(space, RowSpace)
    return _inside_chunklets(space, pairs.chunklets()).mean()


def chunklet_scatters(space: Space, pairs: Constraints | SummedPairs) -> tuple[Matrix, Matrix]:
    """Return :func:`chunklet_covariance`, and the mean outer difference of the means of chunklets.

    The mean is over those that a cannot-link joins, each pair of chunklets once. A row in no chunklet is one by itself.
    """
    if isinstance(pairs, SummedPairs):
        return pairs.sums["chunklets"].mean(), pairs.sums["between_chunklets"].mean()
    assert isinstance(space, RowSpace)
    chunklets = pairs.chunklets()
    return _inside_chunklets(space, chunklets).mean(), _joined_chunklets(space, pairs, chunklets).mean()


def _inside_chunklets(space: RowSpace, chunklets: IntArray) -> ScatterSum:
    return ScatterSum(group_scatter(space.rows, chunklets), int(np.count_nonzero(chunklets >= 0)))


def _joined_chunklets(space: RowSpace, pairs: Constraints, chunklets: IntArray) -> ScatterSum:
    # Rows in no pair are in no difference of means: a batch may have many of them.
    group = chunklets.copy()
    single = np.setdiff1d(pairs.rows, np.flatnonzero(group >= 0), assume_unique=True)
    group[single] = chunklets.max(initial=-1) + 1 + np.arange(len(single))
    means = group_means(space.rows, group)
    joined = np.concatenate([group[pairs.explicit.cannot_link], _label_groups(pairs, group)])
    joined = np.unique(np.sort(joined, axis=1), axis=0)
    joined = joined[joined[:, 0] != joined[:, 1]]
    difference = means[joined[:, 0]] - means[joined[:, 1]]
    return ScatterSum(difference.T @ difference, len(joined))


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
    "must_link": lambda space, pairs: ScatterSum(must_link_scatter(space, pairs), pairs.n_must_link),
    "cannot_link": lambda space, pairs: ScatterSum(cannot_link_scatter(space, pairs), pairs.n_cannot_link),
    "chunklets": lambda space, pairs: _inside_chunklets(space, pairs.chunklets()),
    "between_chunklets": lambda space, pairs: _joined_chunklets(space, pairs, pairs.chunklets()),
}
"""Scatters of the pairs among the rows of a batch, which add up over batches."""
