r"""Who attracts whom in the map: evidence of answers, how probable it is that rows belong together, and affinities.

docs/maps.md defines them, in rules 2, 4 and 5.

Nothing of size n x n is formed: the mean of the evidence is that of sums of columns, :math:`s_{ij}` is found for the
pairs that are asked for, and pairs that labels imply stay implied: :math:`A` is then summed over the rows of each
label. Probabilities of any pairs (:meth:`PairMap.pair_proba`) come from a model of its own, without the diffusion
space, in which new rows are means of training rows and so nearer to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens import engines
from pairlens.engines import Float64, FloatArray, IntArray, NearGraph
from pairlens.graphs.nearest import nearest_rows
from pairlens.judging import probability
from pairlens.judging.probability import PairModel
from pairlens.learning.spaces import Fold, effective_answers
from pairlens.supervision import Constraints

WALK_ON = 0.9
SMOOTHING = 0.1
WALK_ACCURACY = 1e-5
"""Relative accuracy of A. Entries of rows that are far apart are about 1 / n, and an error of 1e-3 of that remains."""
CACHED_BYTES = 1 << 19
MOST_ROWS = 2000
"""Rows in listed pairs, each a column of A, up to which all pairs count; of more rows, 1,000 pairs are drawn."""
OF_NEW_ROWS = [0, 1, 2, 4]
"""Columns of the distances that new rows have as training rows do: not those in the diffusion space."""
PARTNERS = 40
STRENGTH = 3.0
STEPS = 100
ACCURACY = 1e-13
"""Difference of the logarithm of the perplexity at which the search for the width ends."""


@dataclass(frozen=True)
class Evidence:
    """Evidence about the rows, carried to all of them.

    `reach` has the columns of A of the rows in pairs, then their sums over the rows of each label; `must` and `cannot`
    are what these columns say of each other, and `level` is the mean of all evidence, times 0.1.
    """

    reach: FloatArray
    must: sparse.csr_matrix
    cannot: sparse.csr_matrix
    level: float

    def __call__(self, left: FloatArray, right: FloatArray, pairs: IntArray | None = None) -> Float64:
        """Return s of pairs of rows, given by their rows of A: row by row, or by their numbers in `pairs`.

        It is fastest with the pairs of a left row in a run.
        """
        count = len(left) if pairs is None else len(pairs)
        if self.level == 0 or count == 0:
            return np.zeros(count)
        friends, strangers = left @ self.must, left @ self.cannot
        if pairs is None:
            for_it, against = (np.einsum("ij,ij->i", told, right) for told in (friends, strangers))
        else:
            for_it, against = np.empty((2, count), dtype=np.float32)
            stops = np.append(np.flatnonzero(np.diff(pairs[:, 0])) + 1, count)
            # Rows of A are long, and fetching them takes most of the time: that of a run of pairs is fetched once.
            with engines.one_thread():
                for start, stop in pairwise([0, *stops]):
                    row, others = pairs[start, 0], right[pairs[start:stop, 1]]
                    for_it[start:stop], against[start:stop] = others @ friends[row], others @ strangers[row]
        return np.asarray((for_it - against) / (for_it + against + self.level), dtype=np.float64)

    def of_pairs(self, pairs: IntArray) -> Float64:
        """Return s of pairs of training rows, given by their numbers."""
        rows, place = np.unique(pairs, return_inverse=True)
        reach = self.reach[rows]
        return self(reach, reach, place.reshape(pairs.shape))


def evidence_of(graph: Any, known: Constraints, rows: IntArray | None = None) -> Evidence:
    r"""Carry pairs along the random walk over a graph, in float32, to all rows or to some in ascending order.

    The walk is reversible: with the degrees d of the graph, :math:`d_i A_{ij} = d_j A_{ji}`. So the rows of A that are
    asked for follow from their own columns, of which there may be fewer than rows in pairs.
    """
    n = graph.walk.shape[0]
    explicit = known.explicit
    if len(explicit.rows) > MOST_ROWS:
        explicit = explicit.sample(MOST_ROWS // 2, random_state=0)
    paired = explicit.rows
    labels = np.full(n, -1) if known.labels is None else known.labels
    labelled = np.flatnonzero(labels >= 0)
    n_labels = int(labels.max(initial=-1)) + 1
    groups = sparse.csc_matrix((np.ones(len(labelled)), (labelled, labels[labelled])), shape=(n, n_labels))
    starts = sparse.hstack([_columns_of(paired, n), groups], format="csc", dtype=np.float32)
    on_device = not sparse.issparse(graph.walk)
    if on_device or rows is None or len(rows) >= starts.shape[1]:
        reach = graph.spread_columns(starts.toarray(), WALK_ON, WALK_ACCURACY) if on_device else _spread(graph, starts)
        total = reach.sum(axis=0, dtype=np.float64)
        reach = reach if rows is None else reach[rows]
    else:
        degree = np.asarray(graph.symmetric_weights().sum(axis=1)).ravel()
        back = _spread(graph, _columns_of(rows, n)) * degree[:, None].astype(np.float32)
        reach = np.ascontiguousarray((starts.T @ back).T) / degree[rows, None].astype(np.float32)
        total = starts.T @ (degree * engines.spread_over(graph.walk, 1 / degree, WALK_ON))
    # A labelled row is in its label's group, and counts as its own friend there.
    alone = sparse.diags((labels[paired] < 0).astype(np.float64), shape=(len(paired), len(paired)))
    must = _between(paired, explicit.must_link, explicit.must_link_weight) + alone
    cannot = _between(paired, explicit.cannot_link, explicit.cannot_link_weight)
    same = sparse.identity(n_labels)
    other = sparse.csr_matrix(np.ones((n_labels, n_labels)) - np.eye(n_labels))
    for_it = sparse.block_diag([must, same], format="csr")
    against = sparse.block_diag([cannot, other], format="csr")
    level = SMOOTHING * float(total @ (for_it + against) @ total) / n**2
    return Evidence(reach, for_it.astype(np.float32), against.astype(np.float32), level)


def _columns_of(rows: IntArray, n: int) -> sparse.csc_matrix:
    """Return columns of the identity."""
    ones = np.ones(len(rows), dtype=np.float32)
    return sparse.csc_matrix((ones, (rows, np.arange(len(rows)))), shape=(n, len(rows)))


def _spread(graph: NearGraph, starts: sparse.csc_matrix) -> FloatArray:
    """Return A times columns, of which as many are taken at a time as the cache of a core holds."""
    walk = graph.walk.astype(np.float32)
    result = np.empty(starts.shape, dtype=np.float32)
    for block in engines.row_blocks(starts.shape[1], 4 * starts.shape[0], CACHED_BYTES):
        result[:, block] = engines.spread_over(walk, starts[:, block].toarray(), WALK_ON, accuracy=WALK_ACCURACY)
    return result


def _between(rows: IntArray, pairs: IntArray, weight: Float64) -> sparse.csr_matrix:
    """Return pairs as a symmetric matrix over the rows that occur in any, the mean of their weights being 1."""
    place = np.searchsorted(rows, pairs)
    mean = float(weight.mean()) if len(weight) else 0.0
    weight = weight / mean if mean > 0 else weight
    return engines.weight_matrix(place, weight, len(rows))


def with_evidence(lengths: Float64, evidence: Float64) -> Float64:
    """Return lengths of pairs in the spaces with one minus the evidence beside them, in columns."""
    return np.column_stack([lengths, 1 - evidence])


@dataclass(frozen=True)
class HeldOutPairs:
    """Held-out pairs with their distances in spaces that did not see them; a pair may occur in two folds."""

    pairs: IntArray
    same: NDArray[np.bool_]
    weight: Float64
    distances: Float64
    fold: IntArray

    def once(self, values: Float64 | IntArray) -> tuple[IntArray, NDArray[np.bool_], Float64]:
        """Return every pair once, its answer, and the mean of its values."""
        # Two answers about one pair may contradict each other: both are listed.
        said = np.column_stack([self.pairs, self.same])
        _, first, back, times = np.unique(said, axis=0, return_index=True, return_inverse=True, return_counts=True)
        return self.pairs[first], self.same[first], np.bincount(back.ravel(), values) / times


@dataclass(frozen=True)
class Judgement:
    """The judgement of held-out pairs, whose weights add up to at most the number `effective` of answers they count as.

    `model` gives the probability that two rows belong together from their distances: of pairs that are answered as
    often "same" as the given ones (:func:`judged`), or of random pairs (:meth:`of_random_pairs`); `share` is that of
    pairs that belong together there. `answers` is the model of any pair, new rows included, as often "same" as the
    given ones, of which `answered` is the share of must-links.
    """

    model: PairModel
    share: float
    answers: PairModel
    answered: float
    effective: float
    held_out: HeldOutPairs

    def pair_proba(self, distances: Float64, rate: float | None) -> Float64:
        """Return probabilities of pairs, at the base rate of the answers or at another one."""
        model = self.answers if rate is None else self.answers.at_base_rate(self.answered, rate)
        return model(distances[:, OF_NEW_ROWS])

    def together(self) -> tuple[NDArray[np.bool_], Float64]:
        """Return the answer of every pair, and its probability to belong together by a model fitted without it."""
        held_out = self.held_out
        together = np.empty(len(held_out.pairs))
        for number in np.unique(held_out.fold):
            inside = held_out.fold == number
            # Not only the spaces: the probability too comes from other pairs than those it is of.
            part = held_out.distances[~inside], held_out.same[~inside], held_out.weight[~inside]
            together[inside] = probability.fit_pair_model(*part)(held_out.distances[inside])
        _, same, together = held_out.once(together)
        return same, together

    def suspicion(self) -> tuple[IntArray, NDArray[np.bool_], Float64]:
        """Return every pair, its answer, and the probability that the answer is wrong by models fitted without it."""
        held_out = self.held_out
        return held_out.once(
            probability.suspicion_of(held_out.distances, held_out.same, held_out.weight, held_out.fold)
        )

    def fold(self) -> NDArray[np.int64] | None:
        """Return the fold in which every pair was held out; None if some were in two."""
        held_out = self.held_out
        pairs, _, fold = held_out.once(held_out.fold)
        return fold.astype(np.int64) if len(pairs) == len(held_out.pairs) else None

    def mistakes(self) -> float:
        """Return the estimated share of wrong answers."""
        held_out = self.held_out
        probable = probability.fit_with_mistakes(held_out.distances, held_out.same, held_out.weight)[1]
        return float(probable @ probability.MISTAKES)

    def of_random_pairs(self, distances: Float64) -> Judgement:
        """Return the same with the model at the base rate that the distances of random pairs of rows suggest."""
        rate = probability.base_rate(self.model, distances, self.share, self.effective)
        return replace(self, model=self.model.at_base_rate(self.share, rate), share=rate)


def judged(known: Constraints, folds: Sequence[Fold], distances: Sequence[Float64]) -> Judgement | None:
    """Calibrate probabilities by the held-out pairs of the folds, with their distances; None if there are no folds."""
    if not folds:
        return None
    effective = effective_answers(known)
    weight = np.concatenate([fold.weight for fold in folds])
    weight = weight * min(1.0, effective / float(weight.sum()))
    held_out = HeldOutPairs(
        np.concatenate([fold.pairs for fold in folds]),
        np.concatenate([fold.same for fold in folds]),
        weight,
        np.concatenate(distances),
        np.repeat(np.arange(len(folds)), [len(fold.pairs) for fold in folds]),
    )
    share = float(np.average(held_out.same, weights=weight))
    return Judgement(
        model=probability.fit_pair_model(held_out.distances, held_out.same, weight),
        share=share,
        answers=probability.fit_moderated_model(held_out.distances[:, OF_NEW_ROWS], held_out.same, weight),
        answered=share,
        effective=effective,
        held_out=held_out,
    )


@np.errstate(under="ignore")
def perplexity_weights(squared: Float64, perplexity: float) -> Float64:
    r"""Return weights :math:`\exp(-\beta_i d_{ij}^2)` with sum 1 whose entropy is the logarithm of the perplexity.

    Newton's method in :math:`\log \beta`, kept inside a bracket. A row whose nearest neighbours tie cannot have fewer
    than there are of them, and has equal weights on these; one with fewer neighbours than the perplexity has all equal.
    """
    n, k = squared.shape
    wanted = np.log(perplexity)
    shifted = squared - squared.min(axis=1, keepdims=True)
    size = shifted.mean(axis=1)
    weights = np.full((n, k), 1.0 / k)
    if wanted >= np.log(k) or not size.any():
        return weights
    # In units of their mean, so that the bracket suits every row.
    ties = np.count_nonzero(shifted == 0, axis=1)
    searched = np.flatnonzero((size > 0) & (np.log(ties) < wanted))
    stuck = (size > 0) & (np.log(ties) >= wanted)
    weights[stuck] = (shifted[stuck] == 0) / ties[stuck, None]
    distance = shifted[searched] / size[searched, None]
    low, high = np.full(len(searched), -60.0), np.full(len(searched), 60.0)
    beta = np.zeros(len(searched))
    open_rows = np.arange(len(searched))
    for _ in range(STEPS):
        near = distance[open_rows]
        width = np.exp(beta[open_rows])[:, None]
        p = np.exp(-width * near)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        mean = np.einsum("ij,ij->i", p, near)
        error = width[:, 0] * mean + np.log(total[:, 0]) - wanted
        weights[searched[open_rows]] = p
        # Entropy falls as beta grows.
        low[open_rows] = np.where(error > 0, beta[open_rows], low[open_rows])
        high[open_rows] = np.where(error > 0, high[open_rows], beta[open_rows])
        slope = -(width[:, 0] ** 2) * (np.einsum("ij,ij->i", p, near**2) - mean**2)
        # Where all weight is on one neighbour, or on all alike, the slope is rounding.
        steep = slope < -1e-12
        step = beta[open_rows] - error / np.where(steep, slope, -1.0)
        inside = steep & (step > low[open_rows]) & (step < high[open_rows])
        beta[open_rows] = np.where(inside, step, (low[open_rows] + high[open_rows]) / 2)
        open_rows = open_rows[np.abs(error) > ACCURACY]
        if not len(open_rows):
            break
    return weights


def neighbor_affinities(nearest: IntArray, distance: Float64, perplexity: float) -> sparse.csr_matrix:
    """Return Q, symmetric and with sum 1, from the neighbours of each row and their distances."""
    n, k = nearest.shape
    weights = perplexity_weights(distance**2, perplexity)
    directed = sparse.csr_matrix((weights.ravel(), nearest.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return ((directed + directed.T) / (2 * n)).tocsr()


def attracted(n: int, perplexity: float) -> tuple[int, float]:
    """Return the number of neighbours (3 x perplexity) and the perplexity, clipped to (n - 1) / 3 - 1."""
    perplexity = max(1.0, min(perplexity, (n - 1) / 3 - 1))
    return min(n - 1, int(3 * perplexity)), perplexity


def tsne_affinities(
    V: Float64, perplexity: float, *, found: tuple[IntArray, Float64] | None = None
) -> sparse.csr_matrix:
    """Return Q of rows in a metric, with the nearest rows and distances that were `found` where they are known."""
    k, perplexity = attracted(len(V), perplexity)
    nearest, distance = nearest_rows(V, k) if found is None else found
    return neighbor_affinities(nearest[:, :k], distance[:, :k], perplexity)


def random_partners(n: int, rng: np.random.Generator) -> IntArray:
    """Return distinct pairs of rows, in which each row occurs about 40 times; all pairs if there are fewer."""
    count = n * PARTNERS // 2
    if n * (n - 1) // 2 <= count:
        return np.column_stack(np.triu_indices(n, 1))
    left = rng.integers(0, n, count)
    # Any row but the row itself.
    right = (left + rng.integers(1, n, count)) % n
    key = np.unique(np.minimum(left, right) * n + np.maximum(left, right))
    return np.column_stack([key // n, key % n])


@dataclass(frozen=True)
class LongRange:
    """The long-range term: weights of pairs with sum 1 over both directions, and its strength against Q."""

    weights: sparse.csr_matrix
    strength: float

    @property
    def share(self) -> float:
        """Share of all attraction that is long-range."""
        return self.strength / (1 + self.strength)


def long_range(pairs: IntArray, together: Float64, rate: float, n: int) -> LongRange | None:
    """Return the long-range term of pairs with these probabilities; None if none is above one half.

    `rate` is the share of pairs that belong together among random ones.
    """
    pull = np.maximum(0.0, 2 * together - 1)
    if not pull.any():
        return None
    strength = STRENGTH * min(1.0, float(pull.mean()) / rate)
    kept = pull > 0
    return LongRange(engines.weight_matrix(pairs[kept], pull[kept] / (2 * pull.sum()), n), strength)


def joined(near: sparse.csr_matrix, far: LongRange | None) -> sparse.csr_matrix:
    """Return both attractions together, with sum 1."""
    if far is None:
        return near
    return ((near + far.strength * far.weights) / (1 + far.strength)).tocsr()
