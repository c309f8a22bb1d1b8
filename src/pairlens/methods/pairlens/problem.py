r"""The pair problem of PairLens: pairs that spread to their neighbours, with a local prior.

In coordinates Y (n x p, centred, total variance 1) with a graph of the rows whose random walk is P:

- each end i of a pair becomes the distribution :math:`g_i = (1 - a)(I - a P')^{-1} e_i`, so that what is said of a row
  is said of its neighbourhood. The scatter of weighted pairs is then
  :math:`Y' \mathrm{diag}(G w) Y - C - C'`, :math:`C = \sum w_{ij} \mu_i \mu_j'`, :math:`\mu = G' Y`;
- attract :math:`W = (n_M [S_M] + c p W_0) / (n_M + c p)` with the prior
  :math:`W_0 = \iota I + (1 - \iota) [S_{near}]` of the nearest neighbours;
- repel :math:`B = (n_C [S_C] + p [T]) / (n_C + p)` with the total scatter T;

where [S] is S scaled to trace p. G is never formed: :math:`\mu` are rows of
:math:`(1 - a)(I - a P)^{-1} Y` and :math:`G w = (1 - a)(I - a P')^{-1} w`, both by a short iteration that is shared by
all pairs. The nearest neighbours of :math:`S_{near}` are taken as directed lists of weight 1: two rows in each other's
list count twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines import IntArray, NearGraph, Rows, along, take_rows, unit_variance, weighted_scatter
from pairlens.spectral.eigen import Matrix, Pencil, generalized
from pairlens.supervision import Constraints

RIDGE = 1e-9


@dataclass(frozen=True)
class PairProblem:
    """Rows with all that the problem needs of them, so that a set of pairs costs two scatters and one eigenproblem.

    Attributes
    ----------
    rows : array of shape (n, p), or TensorRows
        Centred, of total variance 1.
    mean, size : array of shape (p,) and float
        What was subtracted from them, and then divided by.
    graph : NearGraph
        With the random walk P.
    spread : float
        The a of the spreading.
    smooth : array of shape (n, p), or TensorRows
        The rows, spread over the walk.
    local, total : arrays of shape (p, p)
        The prior of the near rows and the total scatter, scaled to trace p.
    """

    rows: Rows
    mean: NDArray[np.float64]
    size: float
    graph: NearGraph
    spread: float
    smooth: Rows
    local: Matrix
    total: Matrix

    @classmethod
    def of(cls, rows: Rows, graph: NearGraph, *, spread: float, iota: float) -> PairProblem:
        """Prepare rows; they are centred and scaled to total variance 1 here.

        Parameters
        ----------
        rows : array of shape (n, p), or TensorRows
        graph : NearGraph
            Their neighbours, in these or in other coordinates.
        spread : float in [0, 1)
            The a of the spreading: 0 leaves pairs alone.
        iota : float in [0, 1]
            Share of the identity in the local prior.
        """
        Y, mean, size = unit_variance(rows)
        local = iota * np.eye(Y.shape[1]) + (1 - iota) * to_trace(graph.listed_scatter(Y))
        total = to_trace(weighted_scatter(Y, offset=np.zeros(Y.shape[1])))
        return cls(Y, mean, size, graph, spread, graph.spread(Y, spread), local, total)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return int(self.rows.shape[1])

    def along(self, directions: Matrix) -> Rows:
        """The rows along directions, which are columns."""
        return along(self.rows, directions)

    def solve(self, known: Constraints, strength: float, k: int) -> Pencil:
        """The k leading directions for these pairs, with a prior of the given strength c."""
        attract, repel = self.matrices(known, strength)
        return generalized(repel, attract, k)

    def matrices(self, known: Constraints, strength: float) -> tuple[Matrix, Matrix]:
        """W, which attracts, and B, which repels."""
        p = self.dim
        attract, repel = self.local, self.total
        n_must, n_cannot = known.must_link_total, known.cannot_link_total
        if n_must:
            prior = strength * p
            attract = (n_must * to_trace(self.must_link_scatter(known)) + prior * attract) / (n_must + prior)
        if n_cannot:
            repel = (n_cannot * to_trace(self.cannot_link_scatter(known)) + p * repel) / (n_cannot + p)
        return attract + RIDGE * np.eye(p), repel

    def must_link_scatter(self, known: Constraints) -> Matrix:
        """Scatter of the must-links, spread."""
        given = known.explicit
        return self._pair_scatter(given.must_link, given.must_link_weight, known.labels, same=True)

    def cannot_link_scatter(self, known: Constraints) -> Matrix:
        """Scatter of the cannot-links, spread."""
        given = known.explicit
        return self._pair_scatter(given.cannot_link, given.cannot_link_weight, known.labels, same=False)

    def _pair_scatter(
        self, pairs: IntArray, weight: NDArray[np.float64], labels: IntArray | None, *, same: bool
    ) -> Matrix:
        """Scatter of given pairs, and of all that have the same label or different ones; these are never listed."""
        left, right = take_rows(self.smooth, pairs[:, 0]), take_rows(self.smooth, pairs[:, 1])
        cross = (left * weight[:, None]).T @ right
        ends = np.bincount(pairs.ravel(), np.repeat(weight, 2), minlength=self.rows.shape[0]).astype(np.float64)
        if labels is not None:
            member = np.flatnonzero(labels >= 0)
            mu, code = take_rows(self.smooth, member), labels[member]
            size = np.bincount(code).astype(np.float64)
            sums = np.asarray(sparse.csr_matrix((np.ones(len(member)), (code, np.arange(len(member))))) @ mu)
            everything = sums.sum(axis=0)
            cross += (sums.T @ sums - mu.T @ mu if same else np.outer(everything, everything) - sums.T @ sums) / 2
            ends[member] += size[code] - 1 if same else size.sum() - size[code]
        reach = self.graph.spread_back(ends, self.spread)
        return weighted_scatter(self.rows, weight=reach, offset=np.zeros(self.dim)) - cross - cross.T


def to_trace(S: Matrix) -> Matrix:
    """[S]: scaled so that the trace is the number of coordinates."""
    trace = np.trace(S)
    return S * (len(S) / trace) if trace > 0 else S
