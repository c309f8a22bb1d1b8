"""Which pairs a view satisfies, and which of them look most like mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import IntArray, Rows, pair_squared_distances
from pairlens.judging import HeldOutScore, PairFolds, auc_standard_error, pair_auc
from pairlens.judging.suspicion import STANDS_OUT
from pairlens.supervision import Constraints, Preferences

MAX_PAIRS = 20_000
"""Pairs that are judged; of more, this many are drawn."""
RANDOM_PAIRS = 10_000
TABLE_ROWS = 15


@dataclass(frozen=True)
class PairList:
    """Must-links, then cannot-links, as a list.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2)
    must : bool array of shape (n_pairs,)
    total : int
        How many there are; more than are listed where they were too many.
    """

    pairs: IntArray
    must: NDArray[np.bool_]
    total: int


def list_pairs(constraints: Constraints, seed: int) -> PairList:
    """The pairs, or 20,000 of them."""
    total = constraints.n_pairs
    if total > MAX_PAIRS or constraints.labels is not None:
        constraints = constraints.sample(min(total, MAX_PAIRS), random_state=seed)
    pairs = np.concatenate([constraints.must_link, constraints.cannot_link])
    must = np.repeat([True, False], [constraints.n_must_link, constraints.n_cannot_link])
    return PairList(pairs, must, total)


def typical(Z: Rows, seed: int) -> float:
    """The median distance of random pairs of rows."""
    rng = np.random.default_rng(seed)
    n = Z.shape[0]
    first = rng.integers(n, size=RANDOM_PAIRS)
    second = (first + rng.integers(1, n, size=RANDOM_PAIRS)) % n
    return float(np.sqrt(np.median(pair_squared_distances(Z, np.stack([first, second], axis=1)))))


@dataclass(frozen=True)
class Judged:
    """Which pairs a view satisfies.

    Attributes
    ----------
    distance : array of shape (n_pairs,)
    threshold : float
        A must-link is satisfied up to this distance, a cannot-link beyond it.
    separates : bool
        Whether the threshold is the one that separates the two kinds best; else it is the median distance of random
        pairs of rows.
    satisfied : bool array of shape (n_pairs,)
    """

    distance: NDArray[np.float64]
    threshold: float
    separates: bool
    satisfied: NDArray[np.bool_]


def judge(Z: Rows, known: PairList, seed: int) -> Judged:
    """Compare the distances of the pairs with a threshold of the view.

    It is the distance that separates must-links from cannot-links best: the largest mean of the share of must-links up
    to it and of cannot-links beyond it. Where there is one kind only, or no distance does better than chance, it is the
    median distance of random pairs of rows.
    """
    distance = np.sqrt(pair_squared_distances(Z, known.pairs))
    threshold = _best_threshold(distance[known.must], distance[~known.must])
    separates = threshold is not None
    if threshold is None:
        threshold = typical(Z, seed)
    return Judged(distance, threshold, separates, (distance <= threshold) == known.must)


def _best_threshold(must: NDArray[np.float64], cannot: NDArray[np.float64]) -> float | None:
    if len(must) == 0 or len(cannot) == 0:
        return None
    levels = np.unique(np.concatenate([must, cannot]))
    if len(levels) == 1:
        return None
    between = (levels[:-1] + levels[1:]) / 2
    # Neighbouring numbers may have no number between them, and rounding must not put the upper one below its threshold.
    between = np.where(between < levels[1:], between, levels[:-1])
    short = np.searchsorted(np.sort(must), between, side="right") / len(must)
    long = 1 - np.searchsorted(np.sort(cannot), between, side="right") / len(cannot)
    best = int(np.argmax(short + long))
    return float(between[best]) if short[best] + long[best] > 1 else None


def auc_unlearnt(Z: Rows, constraints: Constraints, n_splits: int, seed: int) -> HeldOutScore:
    """The AUC of a view that learns from no pair, over the same folds as a model that does.

    Parameters
    ----------
    Z : array or CSR matrix of shape (n_samples, n_dims)
    constraints : Constraints
        Pairs of both kinds.
    n_splits : int
        Number of folds; all pairs are one part if it is below 2, or there are too few pairs of a kind.
    seed : int
    """
    n_splits = min(n_splits, constraints.n_must_link, constraints.n_cannot_link)
    draw = PairFolds.draw(constraints, max(2, n_splits), seed)
    parts = [rest for _, rest in draw] if n_splits >= 2 else [draw.known]
    value = float(np.mean([pair_auc(Z, part) for part in parts]))
    return HeldOutScore(value, auc_standard_error(value, draw.known.n_must_link, draw.known.n_cannot_link), ())


@dataclass(frozen=True)
class Violations:
    """The pairs that are most violated, the worst first.

    Attributes
    ----------
    order : int array
        Their places in the list of the pairs.
    factor : array
        By how much each misses the threshold: 2 is a must-link twice as long, or a cannot-link half as long.
    suspicion : array or None
        What the model itself thinks: the probability that the answer is wrong, from a view that did not see it.
    """

    order: IntArray
    factor: NDArray[np.float64]
    suspicion: NDArray[np.float64] | None


def violations(estimator: Any, known: PairList, judged: Judged) -> Violations:
    """By the suspicion of the model where it has one of these pairs, else by how far they miss the threshold.

    Listed are the pairs that are violated, and those that the model thinks wrong more likely than right.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = judged.distance / judged.threshold
        factor = np.where(known.must, ratio, 1 / ratio)
    factor = np.where(judged.satisfied, 0.0, np.nan_to_num(factor, nan=1.0, posinf=np.inf))
    suspicion = _suspicion(estimator, known)
    if suspicion is None:
        worst = np.argsort(-factor, kind="stable")
        order = worst[~judged.satisfied[worst]][:TABLE_ROWS]
        return Violations(order, factor[order], None)
    order = np.argsort(-suspicion, kind="stable")
    order = order[(suspicion[order] > STANDS_OUT) | ~judged.satisfied[order]][:TABLE_ROWS]
    return Violations(order, factor[order], suspicion[order])


def _suspicion(estimator: Any, known: PairList) -> NDArray[np.float64] | None:
    """The suspicion of each pair; None if the model has none, or judged other pairs than these."""
    if not hasattr(estimator, "suspicious_pairs"):
        return None
    try:
        found = estimator.suspicious_pairs()
    except ValueError:
        # Too few pairs to hold any out.
        return None
    of = {(*pair, link > 0): value for pair, link, value in zip(found.pairs.tolist(), found.link, found.suspicion)}
    values = [of.get((a, b, must)) for (a, b), must in zip(known.pairs.tolist(), known.must.tolist())]
    return None if None in values else np.array(values, dtype=np.float64)


@dataclass(frozen=True)
class Ranked:
    """Preferences, those that the model's ranking contradicts most first.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2)
        (better, worse).
    margin : array of shape (n_pairs,)
        By how much the better row scores higher, in standard deviations of the scores.
    total : int
        How many there are; more than are listed where they were too many.
    """

    pairs: IntArray
    margin: NDArray[np.float64]
    total: int

    @property
    def satisfied(self) -> NDArray[np.bool_]:
        """Whether the better row scores higher."""
        return self.margin > 0


def rank(estimator: Any, rows: Rows, preferences: Preferences, seed: int) -> Ranked | None:
    """Judge preferences by the scores of the model; None if it gives none."""
    try:
        scores = np.asarray(estimator.decision_function(rows), dtype=np.float64)
    except (AttributeError, ValueError):
        # A model of another kind, or one that was fitted without preferences.
        return None
    pairs = preferences.pairs
    if len(pairs) > MAX_PAIRS:
        pairs = pairs[np.sort(np.random.default_rng(seed).choice(len(pairs), MAX_PAIRS, replace=False))]
    margin = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    deviation = scores.std()
    margin = margin / deviation if deviation > 0 else np.zeros(len(pairs))
    order = np.argsort(margin, kind="stable")
    return Ranked(pairs[order], margin[order], preferences.n_pairs)
