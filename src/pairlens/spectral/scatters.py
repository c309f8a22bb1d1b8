r"""Scatters of what people know: must-links, cannot-links and the chunklets that must-links form.

Pairs that labels imply are never listed. With :math:`n_c` rows in class c of N labelled rows, class means :math:`m_c`
and the mean m of the labelled rows,

.. math::
    S_M = \sum_c n_c W_c, \qquad S_C = \sum_c (N - n_c) W_c + N \sum_c n_c (m_c - m)(m_c - m)',

where :math:`W_c` is the scatter of class c about its mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairlens.engines.blocks import IntArray
from pairlens.engines.scatter import group_means, group_scatter, pair_scatter
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints

__all__ = [
    "between_scatter",
    "cannot_link_scatter",
    "chunklet_covariance",
    "must_link_degrees",
    "must_link_scatter",
]

Matrix = NDArray[np.float64]


def must_link_scatter(space: RowSpace, known: Constraints) -> Matrix:
    """Sum over must-links of weight times the outer product of the difference."""
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
    return group_scatter(space.rows, codes) / max(1, int(np.count_nonzero(codes >= 0)))


def _sizes(codes: IntArray) -> NDArray[np.float64]:
    return np.bincount(codes[codes >= 0]).astype(np.float64)
