r"""What answers about a few rows say about any two: must-links and cannot-links carried along by a random walk.

With the walk P of a neighbour graph, :math:`A = 0.1 (I - 0.9 P)^{-1}` restricted to the columns of the rows R that
occur in pairs, :math:`S_+` the must-links between them plus the identity and :math:`S_-` the cannot-links,

.. math::
    e_+ = A S_+ A', \quad e_- = A S_- A', \quad
    s_{ij} = \frac{e_+ - e_-}{e_+ + e_- + 0.1\, \mathrm{mean}(e_+ + e_-)}.

For complete groups this is label spreading. Weights of pairs count by their ratio to the mean of their kind: pairs that
follow from others weigh little where every pair is counted, but here evidence is relative. Nothing of size n x n is
formed: the mean over all pairs of rows is that of sums of columns, and :math:`s_{ij}` is found for the pairs that are
asked for. Pairs that labels imply stay implied: :math:`A` is then summed over the rows of each label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pairlens.engines import EXACT_SPREAD, Float64, IntArray, row_blocks, spread_over
from pairlens.supervision import Constraints

__all__ = ["Evidence", "evidence_of"]


WALK_ON = 0.9
SMOOTHING = 0.1
MOST_ROWS = 2000
"""Rows in listed pairs, each a column of A, up to which all pairs count; of more rows, 1,000 pairs are drawn."""


@dataclass(frozen=True)
class Evidence:
    """What is known about the rows, carried to all of them.

    Attributes
    ----------
    reach : array of shape (n_rows, n_constrained + n_labels)
        A: the columns of the rows in pairs, then their sums over the rows of each label.
    must, cannot : CSR matrices of shape (n_constrained + n_labels,) * 2
        What the columns say of each other.
    level : float
        Mean of all evidence, times 0.1.
    """

    reach: Float64
    must: sparse.csr_matrix
    cannot: sparse.csr_matrix
    level: float

    def __call__(self, left: Float64, right: Float64) -> Float64:
        """s of pairs of rows, given by their rows of A."""
        result = np.zeros(len(left))
        if self.level == 0:
            return result
        for block in row_blocks(len(left), 32 * max(1, self.reach.shape[1])):
            near, far = left[block], right[block]
            for_it = np.einsum("ij,ij->i", near @ self.must, far)
            against = np.einsum("ij,ij->i", near @ self.cannot, far)
            result[block] = (for_it - against) / (for_it + against + self.level)
        return result

    def of_pairs(self, pairs: IntArray) -> Float64:
        """s of pairs of training rows, given by their numbers."""
        result = np.empty(len(pairs))
        for block in row_blocks(len(pairs), 64 * max(1, self.reach.shape[1])):
            result[block] = self(self.reach[pairs[block, 0]], self.reach[pairs[block, 1]])
        return result


def evidence_of(walk: sparse.csr_matrix, known: Constraints, *, accuracy: float = EXACT_SPREAD) -> Evidence:
    """Carry pairs along a random walk.

    Parameters
    ----------
    walk : CSR matrix of shape (n_rows, n_rows)
        Rows sum to 1.
    known : Constraints
    accuracy : float
        Relative accuracy to which the walk is followed.
    """
    n = walk.shape[0]
    explicit = known.explicit
    if len(explicit.rows) > MOST_ROWS:
        explicit = explicit.sample(MOST_ROWS // 2, random_state=0)
    rows = explicit.rows
    start = sparse.csc_matrix((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(n, len(rows)))
    labels = np.full(n, -1) if known.labels is None else known.labels
    labelled = np.flatnonzero(labels >= 0)
    n_labels = int(labels.max(initial=-1)) + 1
    groups = sparse.csc_matrix((np.ones(len(labelled)), (labelled, labels[labelled])), shape=(n, n_labels))
    reach = spread_over(walk, sparse.hstack([start, groups]).toarray(), WALK_ON, accuracy=accuracy)
    # A labelled row is in its label's group, and counts as its own friend there.
    alone = sparse.diags((labels[rows] < 0).astype(np.float64), shape=(len(rows), len(rows)))
    must = _between(rows, explicit.must_link, explicit.must_link_weight) + alone
    cannot = _between(rows, explicit.cannot_link, explicit.cannot_link_weight)
    same = sparse.identity(n_labels)
    other = sparse.csr_matrix(np.ones((n_labels, n_labels)) - np.eye(n_labels))
    for_it = sparse.block_diag([must, same], format="csr")
    against = sparse.block_diag([cannot, other], format="csr")
    total = reach.sum(axis=0)
    return Evidence(reach, for_it, against, SMOOTHING * float(total @ (for_it + against) @ total) / n**2)


def _between(rows: IntArray, pairs: IntArray, weight: Float64) -> sparse.csr_matrix:
    """Pairs as a symmetric matrix over the rows that occur in any, the mean of their weights being 1."""
    place = np.searchsorted(rows, pairs)
    mean = float(weight.mean()) if len(weight) else 0.0
    weight = weight / mean if mean > 0 else weight
    half = sparse.csr_matrix((weight, (place[:, 0], place[:, 1])), shape=(len(rows), len(rows)))
    return half + half.T
