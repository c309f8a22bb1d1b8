r"""The pair learner: pairs weighed against a prior, in coordinates where the total scatter is the identity.

In whitened coordinates Y (n x p, :math:`Y'Y = n I`), with the scatters of the pairs and a prior :math:`W_0` of what
differs inside a group,

.. math::
    S_M = \frac{1}{2 n_M} \sum_{M} (y_i - y_j)(y_i - y_j)', \quad
    W = \frac{n_M S_M + c p W_0}{n_M + c p}, \quad B = \frac{n_C S_C + \mathrm{tr}(S_C) I}{n_C + p},

the directions are :math:`B v = \mu W v` with :math:`v' W v = 1`, each times :math:`\sqrt{1 - 1 / \mu}`. Pairs may
spread: each end i becomes the distribution :math:`g_i = (1 - a)(I - a P')^{-1} e_i` over the random walk P of a
neighbour graph. The scatter of spread pairs is :math:`Y' \mathrm{diag}(G w) Y - C - C'` with
:math:`C = \sum w_{ij} \mu_i \mu_j'` and :math:`\mu = G' Y`; G is never formed. docs/pairlens.md says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, sparse

from pairlens import engines
from pairlens._sklearn import as_generator
from pairlens.engines import Float64, IntArray, NearGraph, Rows
from pairlens.graphs.nearest import near_graph
from pairlens.judging import held_out
from pairlens.judging.held_out import HeldOutDistances, PairFolds
from pairlens.spectral.rowspace import LEAST_VARIANCE, Matrix, Pencil, symmetric
from pairlens.supervision import Constraints

N_COLUMNS = 15
"""Most directions that are worth while."""
N_NEIGHBORS = 10
SPREAD = 0.5
LOCAL_SHARE = 0.8
LEAST_WEIGHT = 0.01
"""Least of the squared weights of a direction, so that a view has as many columns as it was asked for."""
FOLDS = 5
REPEATS, FEWEST_TO_DRAW_ONCE = 2, 100
"""How often folds are drawn to choose a prior, and the number of pairs from which once is enough."""
PURITY_COLUMNS = 10
LEAST_PURITY = 0.1
MOST_WRONG = 0.2
"""Share of wrong answers beyond which must-links are not distrusted further."""
FEWEST_FOR_FOLDS = 2
"""Pairs of a kind below which nothing is held out."""


@dataclass(frozen=True)
class Prior:
    """Describe what differs inside a group before any pair is known.

    By `shape`, differences inside groups are alike in all directions of the rows ("iso"), like those of near rows
    ("local"), or in proportion to all differences ("white", which does not depend on any invertible linear map of the
    features). "rows" and "near" are "iso" and "local" with a strength that is measured along the rows and not along
    whitened coordinates: they are far stronger in coordinates of little variance. `spread` is the a of the spreading, 0
    leaving pairs alone; with the strength c the prior counts as c p pairs.
    """

    shape: str
    spread: float = 0.0
    strength: float = 1.0


CAUTIOUS = Prior("near", SPREAD, 2.0)
"""What is taken unless held-out pairs clearly ask for another: it trusts the rows most."""
PRIORS = (
    CAUTIOUS,
    *(Prior(shape, a, c) for c in (3.0, 1.0) for a in (SPREAD, 0.0) for shape in ("local", "iso")),
)
"""The priors that held-out pairs choose from."""


Scatters = tuple[Matrix, Matrix, float, float]
"""Of must-links and of cannot-links, and how many pairs of each there are."""


@dataclass(frozen=True)
class FoldProblems:
    """Folds with what every prior needs of them.

    `scatters` has, for each spread, those of the pairs that each fold learns from, and `apart` the differences of the
    must-links and of the cannot-links that it holds out.
    """

    folds: PairFolds
    scatters: dict[float, list[Scatters]]
    apart: list[tuple[Float64, Float64]]


@dataclass(frozen=True)
class PairLearner:
    """Hold whitened rows with all that the problem needs of them, so that a set of pairs costs one small eigenproblem.

    The rows are centred, with total scatter n I; `values` are the variances of the coordinates before. Some priors need
    the graph of near rows and `smooth`, the rows spread over it. `shapes` has the priors by shape.
    """

    rows: Rows
    values: Float64
    graph: NearGraph | None
    smooth: Rows | None
    shapes: dict[str, Matrix]

    @classmethod
    def of(
        cls,
        rows: Rows,
        values: Float64,
        *,
        near: bool = False,
        search: str = "auto",
        graph: NearGraph | None = None,
    ) -> PairLearner:
        """Prepare whitened rows.

        `near` finds near rows by `search`, the parameter `neighbors` of the methods, in the coordinates before they
        were whitened, unless a graph of them is given.
        """
        p, along_rows = len(values), np.diag(1 / values)
        shapes = {"iso": _to_trace(along_rows), "rows": along_rows, "white": np.eye(p)}
        if not p:
            # Rows that are all equal have no coordinates, and any prior there is empty.
            return cls(rows, values, None, None, {**shapes, "local": along_rows, "near": along_rows})
        if graph is None and not near:
            return cls(rows, values, None, None, shapes)
        if graph is None:
            graph = near_graph(engines.rescaled(rows, scale=np.sqrt(values.sum() / values)), N_NEIGHBORS, search=search)
        listed = engines.pair_scatter(rows, engines.listed_pairs(graph.indices))
        shapes["local"] = LOCAL_SHARE * _to_trace(listed) + (1 - LOCAL_SHARE) * shapes["iso"]
        size = float(values @ np.diag(listed))
        shapes["near"] = LOCAL_SHARE * listed * (p / size if size > 0 else 1.0) + (1 - LOCAL_SHARE) * along_rows
        return cls(rows, values, graph, graph.spread(rows, SPREAD), shapes)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.values)

    @property
    def nearest(self) -> IntArray:
        """The near rows that each row lists."""
        assert self.graph is not None
        return self.graph.indices

    def keys(self, rows: IntArray, *, whitened_only: bool = False) -> Float64:
        """Return a number for each of these rows that does not depend on the rows' order, and 0 for all other rows.

        The numbers rank the rows by the squared length of the whitened row, which does not depend on the features'
        units or on any other linear map of them. Where there are as many coordinates as rows less one, all of these
        lengths are equal; the length before the rows were whitened decides then, unless `whitened_only` is true.
        """
        keys = np.zeros(self.rows.shape[0])
        squared = engines.take_rows(self.rows, rows) ** 2
        lengths = (
            [squared.sum(axis=1)] if whitened_only else [squared.sum(axis=1), squared @ self.values / self.values.sum()]
        )
        _, rank = np.unique(np.round(np.column_stack(lengths), 9), axis=0, return_inverse=True)
        keys[rows] = 1 + rank.ravel()
        return keys

    def along(self, directions: Matrix) -> Float64:
        """Return the rows along directions, which are columns, in memory."""
        return np.asarray(engines.rows_in_memory(engines.along(self.rows, directions)))

    def directions(self, known: Constraints, prior: Prior, k: int = N_COLUMNS) -> Pencil:
        """Return the ratios of the k leading directions for these pairs, and the weighted directions in columns."""
        return weighted(*self.matrices(known, prior), k)

    def matrices(self, known: Constraints, prior: Prior) -> tuple[Matrix, Matrix]:
        """Return W, which attracts, and B, which repels."""
        return self._matrices(self._scatters([known], prior.spread)[0], prior)

    def held_out(self, folds: PairFolds | FoldProblems, prior: Prior, k: int = N_COLUMNS) -> HeldOutDistances:
        """Return distances of held-out pairs in the k leading directions."""
        problems = self.problems(folds, [prior]) if isinstance(folds, PairFolds) else folds

        def measure(scatters: Scatters, pairs: tuple[Float64, Float64]) -> tuple[Float64, Float64]:
            directions = weighted(*self._matrices(scatters, prior), k)[1]
            # Rows have unit variance along every coordinate.
            variance = np.cumsum(np.einsum("ij,ij->j", directions, directions))
            scale = 2 * np.where(variance > 0, variance, 1.0)
            must, cannot = (np.cumsum((difference @ directions) ** 2, axis=1) / scale for difference in pairs)
            return must, cannot

        found = map(measure, problems.scatters[prior.spread], problems.apart)
        return held_out.gathered_distances(problems.folds, found)

    def problems(self, folds: PairFolds, priors: Sequence[Prior]) -> FoldProblems:
        """Return what these priors need of folds."""
        trains = [train for train, _ in folds]
        scatters = {spread: self._scatters(trains, spread) for spread in {prior.spread for prior in priors}}

        def differences(pairs: IntArray) -> Float64:
            return engines.take_rows(self.rows, pairs[:, 0]) - engines.take_rows(self.rows, pairs[:, 1])

        apart = [(differences(rest.must_link), differences(rest.cannot_link)) for _, rest in folds]
        return FoldProblems(folds, scatters, apart)

    def plain_auc(self, known: Constraints) -> float:
        """Return the AUC with which distance in the coordinates before they were whitened tells pairs apart."""

        def squared(pairs: IntArray) -> Float64:
            return np.asarray(
                (engines.take_rows(self.rows, pairs[:, 0]) - engines.take_rows(self.rows, pairs[:, 1])) ** 2
                @ self.values
            )

        return held_out.auc(squared(known.must_link), squared(known.cannot_link))

    def _matrices(self, scatters: Scatters, prior: Prior) -> tuple[Matrix, Matrix]:
        p = self.dim
        S_M, S_C, n_must, n_cannot = scatters
        within, between = self.shapes[prior.shape], np.eye(p)
        # What the traces are compared in: whitened coordinates, or those of the rows.
        measure = self.values if prior.shape in ("rows", "near") else np.ones(p)
        size = float(measure @ np.diag(S_M))
        if size > 0:
            within = within * (size / float(measure @ np.diag(within)))
            within = (n_must * S_M + prior.strength * p * within) / (n_must + prior.strength * p)
        size = float(np.trace(S_C))
        if size > 0:
            between = (n_cannot * S_C + size * between) / (n_cannot + p)
        return within, between

    def _scatters(self, sets: Sequence[Constraints], spread: float) -> list[Scatters]:
        """Return the scatters of must-links and of cannot-links, and how many pairs these count as, of several sets."""
        parts = [self._part(known, spread, same=same) for known in sets for same in (True, False)]
        ends = np.stack([ends for _, ends, _ in parts], axis=1)
        if spread and self.graph is not None:
            # All sets share one iteration over the graph.
            ends = self.graph.spread_back(ends, spread)
        found = []
        for (cross, _, total), weight in zip(parts, ends.T):
            scatter = cross
            if weight.any():
                scatter = (
                    engines.weighted_scatter(self.rows, weight=weight, offset=np.zeros(self.dim)) - cross - cross.T
                )
            found.append((scatter / (2 * max(total, 1e-300)), total))
        return [(S_M, S_C, n_must, n_cannot) for (S_M, n_must), (S_C, n_cannot) in zip(found[::2], found[1::2])]

    def _part(self, known: Constraints, spread: float, *, same: bool) -> tuple[Matrix, Float64, float]:
        """Return what a scatter of pairs is made of: a matrix, weights of the rows, and the number of pairs.

        Without weights the matrix is the scatter itself; with weights it is C. Pairs that labels imply are not listed.
        """
        given, labels = known.explicit, known.labels
        pairs, weight = (
            (given.must_link, given.must_link_weight) if same else (given.cannot_link, given.cannot_link_weight)
        )
        total = known.must_link_total if same else known.cannot_link_total
        rows = self.rows if self.smooth is None or not spread else self.smooth
        left, right = engines.take_rows(rows, pairs[:, 0]), engines.take_rows(rows, pairs[:, 1])
        ends = np.zeros(self.rows.shape[0])
        if not spread and labels is None:
            difference = left - right
            return (difference * weight[:, None]).T @ difference, ends, total
        cross = (left * weight[:, None]).T @ right
        np.add.at(ends, pairs.ravel(), np.repeat(weight, 2))
        if labels is not None:
            member = np.flatnonzero(labels >= 0)
            mu, code = engines.take_rows(rows, member), labels[member]
            size = np.bincount(code).astype(np.float64)
            sums = np.asarray(sparse.csr_matrix((np.ones(len(member)), (code, np.arange(len(member))))) @ mu)
            everything = sums.sum(axis=0)
            cross += (sums.T @ sums - mu.T @ mu if same else np.outer(everything, everything) - sums.T @ sums) / 2
            ends[member] += size[code] - 1 if same else size.sum() - size[code]
        return cross, ends, total


def whitened(rows: Rows, graph: NearGraph | None) -> tuple[PairLearner, Matrix]:
    """Return a learner of any rows, and the basis for which its coordinates are ``(rows - mean) @ basis``.

    Near rows may have been found in other coordinates.
    """
    mean = engines.column_means(rows)
    values, vectors = symmetric(engines.weighted_scatter(rows, offset=mean, is_mean=True) / rows.shape[0])
    kept = values > LEAST_VARIANCE * values.max(initial=0.0)
    basis = vectors[:, kept] / np.sqrt(values[kept])
    return PairLearner.of(engines.along(rows, basis, origin=mean), values[kept], graph=graph), basis


def weighted(within: Matrix, between: Matrix, k: int) -> Pencil:
    r"""Return the leading :math:`\mu` of :math:`B v = \mu W v`, and v times the square root of :math:`1 - 1 / \mu`."""
    p = len(within)
    if p == 0:
        return np.empty(0), np.empty((0, 0))
    # The prior is positive definite, so W is.
    ratios, directions = linalg.eigh(between, within, subset_by_index=(max(p - k, 0), p - 1), check_finite=False)
    ratios, directions = ratios[::-1], directions[:, ::-1]
    return ratios, directions * np.sqrt(np.maximum(1 - 1 / np.maximum(ratios, 1e-300), LEAST_WEIGHT))


@dataclass(frozen=True)
class Choice:
    """The prior that tells held-out pairs apart best, and the purity of the must-links.

    Purity is the estimated share of those that behave like must-links. The folds are the first that were drawn; None
    with fewer than two pairs of a kind.
    """

    prior: Prior
    folds: PairFolds | None
    purity: float

    def trusted(self, learner: PairLearner, known: Constraints, prior: Prior, k: int) -> Prior:
        """Return a prior for another learner, the stronger the less it makes of held-out must-links."""
        folds = [] if self.folds is None or not learner.dim else [self.folds]
        return _cautious(prior, _purity(known, (learner.held_out(drawn, prior, k) for drawn in folds)))


def least_purity(n_must: float, n_cannot: float) -> float:
    r"""Return the share of right must-links if a fifth of all answers is wrong; negative if none need be right.

    If a share e is wrong, :math:`e N_C` of the must-links are, :math:`N_C` being the number of pairs that differ. With
    :math:`n_C = (1 - e) N_C + e N_M` and :math:`n_M = (1 - e) N_M + e N_C` it is
    :math:`((1 - e) n_C - e n_M) / (1 - 2 e)`.

    Examples
    --------
    >>> round(least_purity(30, 30), 2), round(least_purity(30, 60), 2)
    (0.8, 0.53)
    """
    e = MOST_WRONG
    differ = ((1 - e) * n_cannot - e * n_must) / (1 - 2 * e)
    return min(1.0, 1 - e * differ / n_must) if n_must else 0.0


def _purity(known: Constraints, distances: Iterable[HeldOutDistances]) -> float:
    """Return the share of must-links that behave like must-links when they are held out.

    Must-links that are hard to generalise look like wrong ones, so it is at least what a fifth of wrong answers would
    leave of them.
    """
    measured = []
    if min(known.n_must_link, known.n_cannot_link) >= held_out.FEWEST_FOR_PURITY:
        measured = [each.purity() for each in distances]
    least = least_purity(known.n_must_link, known.n_cannot_link)
    return max(float(np.mean(measured)) if measured else held_out.DEFAULT_PURITY, least)


def _cautious(prior: Prior, purity: float) -> Prior:
    return replace(prior, strength=prior.strength / max(purity, LEAST_PURITY))


def choose_prior(
    learner: PairLearner,
    known: Constraints,
    random_state: Any,
    *,
    priors: Sequence[Prior] = PRIORS,
    repeats: int = REPEATS,
) -> Choice:
    """Choose the prior whose AUC of held-out pairs is highest, or the first where must-links cannot be trusted.

    Of random answers about many groups few are must-links, and a wrong one in five among the cannot-links outnumbers
    them. How many must-links behave like must-links, their purity, held-out pairs tell too; it is not taken to be lower
    than a fifth of wrong answers would make it. The first prior has a lead of 2 (1 - purity) standard errors of an AUC
    at chance, and the strength of the chosen one is divided by the purity. With fewer than two pairs of a kind the
    first prior is taken. Where pairs are few, folds are drawn `repeats` times.
    """
    fewest = min(known.n_must_link, known.n_cannot_link)
    if fewest < FEWEST_FOR_FOLDS:
        return Choice(priors[0], None, held_out.DEFAULT_PURITY)
    rng = as_generator(random_state)
    keys = learner.keys(known.rows, whitened_only=all(prior.shape == "white" for prior in priors))
    times = repeats if priors[1:] and known.n_pairs < FEWEST_TO_DRAW_ONCE else 1
    folds = [PairFolds.draw_independent(known, FOLDS, rng, keys=keys) for _ in range(times)]
    problems = [learner.problems(drawn, priors) for drawn in folds] if learner.dim else []

    def distances(prior: Prior, k: int) -> Iterator[HeldOutDistances]:
        return (learner.held_out(each, prior, k) for each in problems)

    best = 0
    if problems and len(priors) > 1:
        aucs = [[each.auc(each.must.shape[1]) for each in distances(prior, N_COLUMNS)] for prior in priors]
        # Last digits do not choose.
        scores = np.round(np.nan_to_num(np.mean(aucs, axis=1)), 9)
        best = int(np.argmax(scores))
    purity = _purity(known, distances(priors[best], PURITY_COLUMNS))
    if best:
        lead = 2 * (1 - purity) * held_out.auc_standard_error(held_out.CHANCE, known.n_must_link, known.n_cannot_link)
        if scores[best] <= scores[0] + lead:
            best, purity = 0, _purity(known, distances(priors[0], PURITY_COLUMNS))
    return Choice(_cautious(priors[best], purity), folds[0], purity)


def _to_trace(S: Matrix) -> Matrix:
    """Scale to a trace of the number of coordinates."""
    trace = np.trace(S)
    return S * (len(S) / trace) if trace > 0 else S
