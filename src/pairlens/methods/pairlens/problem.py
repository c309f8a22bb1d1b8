r"""The pair problem of PairLens, and the first stage, which solves it in principal components of the rows.

Pairs spread to their neighbours, and a local prior calls near rows alike.

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

The strength c of the prior follows from how must-links behave when they are held out (:meth:`FirstStage.fit`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines import (
    IntArray,
    NearGraph,
    Rows,
    along,
    rows_in_memory,
    take_rows,
    unit_variance,
    weighted_scatter,
)
from pairlens.graphs.nearest import near_graph
from pairlens.judging import HeldOutDistances, PairFolds, held_out_distances
from pairlens.judging.held_out import DEFAULT_PURITY, FEWEST_FOR_PURITY
from pairlens.spectral.eigen import Matrix, Pencil, generalized
from pairlens.supervision import Constraints

RIDGE = 1e-9
N_NEIGHBORS = 10
SPREAD = 0.5
IOTA = 0.2
FOLDS = 5
FEWEST_FOR_FOLDS = 2
"""Pairs of a kind below which nothing is held out."""
PURITY_STRENGTH = 3.0
PURITY_COLUMNS = 10


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


@dataclass(frozen=True)
class FirstStage:
    """What depends on the rows alone: coordinates, neighbours and local scatter. Any pairs can be solved in it.

    Attributes
    ----------
    problem : PairProblem
        The rows in the coordinates of :func:`~pairlens.spectral.rowspace.principal_rows`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from pairlens import Constraints
    >>> from pairlens.methods.pairlens import FirstStage, exact_means, principal_rows
    >>> X, y = load_wine(return_X_y=True)
    >>> stage = FirstStage.of(principal_rows(X, exact_means(X)).rows)
    >>> few, more = (Constraints.from_labels(y, n_pairs=n, random_state=0) for n in (20, 200))
    >>> [stage.view(pairs, strength=3.0, k=2).shape for pairs in (few, more)]
    [(178, 2), (178, 2)]
    """

    problem: PairProblem

    @property
    def nearest(self) -> IntArray:
        """The nearest rows of each row there, of shape (n, n_neighbors)."""
        return self.problem.graph.indices

    @classmethod
    def of(
        cls,
        rows: Rows,
        *,
        n_neighbors: int = N_NEIGHBORS,
        spread: float = SPREAD,
        search: str = "auto",
    ) -> FirstStage:
        """Prepare rows in principal components; `search` is the parameter `neighbors` of the methods."""
        graph = near_graph(rows, n_neighbors, search=search)
        return cls(PairProblem.of(rows, graph, spread=spread, iota=IOTA))

    def columns(self, known: Constraints, strength: float, k: int) -> Rows:
        """The rows in the k leading directions for these pairs, with a prior of the given strength, where they are."""
        return self.problem.along(self.problem.solve(known, strength, k)[1])

    def view(self, known: Constraints, strength: float, k: int) -> NDArray[np.float64]:
        """The same as an array in memory."""
        return np.asarray(rows_in_memory(self.columns(known, strength, k)))

    def held_out(self, folds: PairFolds, strength: float, k: int) -> HeldOutDistances:
        """Distances of held-out pairs in the k leading directions."""
        return held_out_distances(lambda train: self.view(train, strength, k), folds)

    def fit(self, known: Constraints, *, prior: float | str = "auto", random_state: Any = None) -> FirstFit:
        """Choose the strength of the prior from how held-out must-links behave: 2 / purity, unless it is given."""
        fewest = min(known.n_must_link, known.n_cannot_link)
        folds = PairFolds.draw(known, FOLDS, random_state) if fewest >= FEWEST_FOR_FOLDS else None
        purity = DEFAULT_PURITY
        if folds is not None and fewest >= FEWEST_FOR_PURITY:
            purity = self.held_out(folds, PURITY_STRENGTH, PURITY_COLUMNS).purity()
        strength = 2.0 / max(purity, 0.1) if prior == "auto" else float(prior)
        return FirstFit(self, known, folds, purity, strength)


@dataclass(frozen=True)
class FirstFit:
    """The first stage with pairs, and with a prior that suits them.

    Attributes
    ----------
    stage : FirstStage
    known : Constraints
    folds : PairFolds or None
        None with fewer than two pairs of a kind.
    purity : float
        Estimated share of must-links that behave like must-links.
    strength : float
        The c of the prior.
    """

    stage: FirstStage
    known: Constraints
    folds: PairFolds | None
    purity: float
    strength: float

    def directions(self, k: int) -> Pencil:
        """The k leading directions."""
        return self.stage.problem.solve(self.known, self.strength, k)

    def columns(self, k: int, known: Constraints | None = None) -> Rows:
        """The rows in the k leading directions, for other pairs with the same prior if some are given."""
        return self.stage.columns(self.known if known is None else known, self.strength, k)

    def held_out(self, k: int) -> HeldOutDistances | None:
        """Distances of held-out pairs in the k leading directions; None with fewer than two pairs of a kind."""
        return None if self.folds is None else self.stage.held_out(self.folds, self.strength, k)
