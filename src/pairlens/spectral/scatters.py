r"""Scatters of what people know: must-links, cannot-links and the chunklets that must-links form.

Pairs that labels imply are never listed. With :math:`n_c` rows in class c of N labelled rows, class means :math:`m_c`
and the mean m of the labelled rows,

.. math::
    S_M = \sum_c n_c W_c, \qquad S_C = \sum_c (N - n_c) W_c + N \sum_c n_c (m_c - m)(m_c - m)',

where :math:`W_c` is the scatter of class c about its mean.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import IntArray, group_means, group_scatter, pair_scatter
from pairlens.spectral.batches import ScatterSum, SummedSpace
from pairlens.spectral.eigen import Matrix
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints


def unsupervised(space: RowSpace) -> tuple[Matrix, Matrix]:
    """What attracts and what repels when nothing is known: the identity and the covariance, which makes PCA."""
    return np.eye(space.dim), space.covariance()


def must_link_scatter(space: RowSpace, known: Constraints) -> Matrix:
    """Sum over must-links of weight times the outer product of the difference."""
    if isinstance(space, SummedSpace):
        return space.sum("must_link").scatter.copy()
    explicit = known.explicit
    scatter = pair_scatter(space.rows, explicit.must_link, explicit.must_link_weight)
    if known.labels is not None:
        scatter += group_scatter(space.rows, known.labels, weight=_sizes(known.labels))
    return scatter


def must_link_degrees(known: Constraints) -> NDArray[np.float64]:
    """Total weight of the must-links at each row."""
    explicit = known.explicit
    ends, weight = explicit.must_link, explicit.must_link_weight
    degree = np.bincount(ends.ravel(), np.repeat(weight, 2), minlength=len(known)).astype(np.float64)
    if known.labels is not None:
        labelled = known.labels >= 0
        degree[labelled] += _sizes(known.labels)[known.labels[labelled]] - 1
    return degree


def cannot_link_scatter(space: RowSpace, known: Constraints) -> Matrix:
    """Sum over cannot-links of weight times the outer product of the difference."""
    if isinstance(space, SummedSpace):
        return space.sum("cannot_link").scatter.copy()
    explicit = known.explicit
    scatter = pair_scatter(space.rows, explicit.cannot_link, explicit.cannot_link_weight)
    if known.labels is not None:
        size = _sizes(known.labels)
        scatter += group_scatter(space.rows, known.labels, weight=size.sum() - size)
        scatter += size.sum() * between_scatter(space, known.labels)
    return scatter


def between_scatter(space: RowSpace, codes: IntArray) -> Matrix:
    """Scatter of the group means about the mean of all grouped rows, each weighted by the size of its group."""
    size = _sizes(codes)
    means = group_means(space.rows, codes)
    centred = means - size @ means / size.sum()
    return (centred.T * size) @ centred


def chunklet_covariance(space: RowSpace, codes: IntArray) -> Matrix:
    """Mean over the grouped rows of the outer product of their deviation from the mean of their group."""
    inside = space.sum("chunklets") if isinstance(space, SummedSpace) else _inside_chunklets(space, codes)
    return inside.scatter / max(1, inside.count)


def _inside_chunklets(space: RowSpace, codes: IntArray) -> ScatterSum:
    return ScatterSum(group_scatter(space.rows, codes), int(np.count_nonzero(codes >= 0)))


def between_chunklets(space: RowSpace, known: Constraints, chunklets: IntArray) -> Matrix:
    """Mean outer difference of the means of chunklets that a cannot-link joins, each pair of chunklets once.

    A row in no chunklet is one by itself.
    """
    between = (
        space.sum("between_chunklets") if isinstance(space, SummedSpace) else _joined_chunklets(space, known, chunklets)
    )
    return between.scatter / max(1, between.count)


def _joined_chunklets(space: RowSpace, known: Constraints, chunklets: IntArray) -> ScatterSum:
    # Rows in no pair are in no difference of means: a batch may have many of them.
    group = chunklets.copy()
    single = np.setdiff1d(known.rows, np.flatnonzero(group >= 0), assume_unique=True)
    group[single] = chunklets.max(initial=-1) + 1 + np.arange(len(single))
    means = group_means(space.rows, group)
    joined = np.concatenate([group[known.explicit.cannot_link], _label_groups(known, group)])
    joined = np.unique(np.sort(joined, axis=1), axis=0)
    joined = joined[joined[:, 0] != joined[:, 1]]
    difference = means[joined[:, 0]] - means[joined[:, 1]]
    return ScatterSum(difference.T @ difference, len(joined))


def _label_groups(known: Constraints, group: IntArray) -> IntArray:
    """Pairs of chunklets with different labels."""
    if known.labels is None:
        return np.empty((0, 2), dtype=np.int64)
    groups = np.unique(group[known.labels >= 0])
    groups = groups[groups >= 0]
    return np.column_stack([side.ravel() for side in np.meshgrid(groups, groups)])


def _sizes(codes: IntArray) -> NDArray[np.float64]:
    return np.bincount(codes[codes >= 0]).astype(np.float64)


SUMS: dict[str, Callable[[RowSpace, Constraints], ScatterSum]] = {
    "must_link": lambda space, known: ScatterSum(must_link_scatter(space, known), known.n_must_link),
    "cannot_link": lambda space, known: ScatterSum(cannot_link_scatter(space, known), known.n_cannot_link),
    "chunklets": lambda space, known: _inside_chunklets(space, known.chunklets()),
    "between_chunklets": lambda space, known: _joined_chunklets(space, known, known.chunklets()),
}
"""Scatters of the pairs among the rows of a batch, which add up over batches."""
