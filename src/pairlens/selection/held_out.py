r"""Judge a view by pairs that it did not see, and say whether it is better than another on the same pairs.

Methods that hold out pairs in `fit` (:class:`~pairlens.PairMap` and the lenses) have judged themselves; others are
fitted again to parts of the pairs. Both give :class:`JudgedPairs`: for each pair the probability p that its rows belong
together, by a model that did not see its answer s.

Two views are compared by the difference of their AUC, :math:`D(w) = A_1(w) - A_2(w)`, where pair i counts with the
weight :math:`w_i` as a must-link and :math:`1 - w_i` as a cannot-link. Few pairs leave much to chance, but random
pairs r of rows have a probability :math:`p_r` too. With m answered pairs

.. math::
    D = D_m(s) + \lambda \bigl(D_r(p_r) - D_m(p)\bigr)

is what answers say, corrected by how unusual the answered pairs are among all pairs, as far as the probabilities
predict the answers: :math:`\lambda \in [0, 1]` makes the variance of D smallest. It is prediction-powered inference
[1]_. The standard error is that of the influence of each answered pair on D, to which the bootstrap comes down, a
little more with few pairs.

In :math:`D_m` the AUC of the view compares only pairs of the same fold, if each was held out once. The models of two
folds have each learned from the other's pairs, so comparisons across folds make a view look worse than it is.

References
----------
.. [1] A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan, T. Zrnic, "Prediction-powered inference", Science 382,
   2023.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from pairlens import judging
from pairlens.engines import Float64, IntArray, Rows, pair_squared_distances, take_rows
from pairlens.exceptions import InputError, SupervisionWarning
from pairlens.judging import HeldOutScore, PairFolds, SuspiciousPairs
from pairlens.judging.held_out import PAIRS_PER_ROW, measured_distances
from pairlens.judging.probability import fit_pair_model
from pairlens.selection.fitting import fit_model, last_step, learns_from
from pairlens.supervision import Constraints, Preferences
from pairlens.supervision.combined import combine

FEWEST = 2
"""Pairs of each kind below which none can be held out: one to learn from and one to judge by."""
FEWEST_TO_COMPARE = 8
"""Pairs of each kind below which two views are not compared."""
MARGIN = 2.0
"""Standard errors by which a view must be ahead of another to be called better."""
UNSEEN = 0.1
"""Difference that one more pair of the rarer kind might have made: few pairs that all agree leave an error."""
REPEATS, FEWEST_TO_DRAW_ONCE = 2, 100
"""How often folds are drawn, and the number of pairs from which once is enough."""
RANDOM_PAIRS = 2_000


NOTHING = HeldOutScore(float("nan"), float("nan"), ())


@dataclass(frozen=True)
class JudgedPairs:
    """Hold answered pairs, judged by models that did not see their answers.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2)
    same : bool array of shape (n_pairs,)
        The answers.
    together : array of shape (n_pairs,)
        Probability that the rows belong together.
    score : HeldOutScore
        The AUC.
    suspicious : SuspiciousPairs or None
        Which answers look wrong, if the model says so.
    fold : int array of shape (n_pairs,) or None
        The fold in which each pair was held out, if it was in one.
    """

    pairs: NDArray[np.int64]
    same: NDArray[np.bool_]
    together: Float64
    score: HeldOutScore
    suspicious: SuspiciousPairs | None = None
    fold: IntArray | None = None

    @classmethod
    def of_fit(cls, model: Any) -> JudgedPairs | None:
        """Return how a fitted model judged itself; None if it does not, or had too few pairs."""
        method = last_step(model)
        if not hasattr(method, "suspicious_pairs"):
            return None
        try:
            found = method.suspicious_pairs()
        except ValueError:
            return None
        score = HeldOutScore(float(method.auc_), float(method.auc_error_), ())
        return cls(found.pairs, found.link > 0, found.together, score, found, found.fold)


def held_out_pairs(
    model: Any,
    X: ArrayLike,
    constraints: Constraints,
    *,
    preferences: Preferences | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
    on_fold: Callable[[int, int], None] | None = None,
) -> JudgedPairs | None:
    """Cross-validate a view over the pairs; None where one of the kinds has fewer than two pairs.

    With fewer than 100 pairs, folds are drawn twice, and a pair has the mean of its two distances. Parameters are those
    of :func:`held_out_auc`.
    """
    known = combine(None, constraints, _n_rows(X))
    fewest = min(known.n_must_link, known.n_cannot_link)
    if fewest < FEWEST:
        return None
    repeats = REPEATS if known.n_pairs < FEWEST_TO_DRAW_ONCE else 1
    draws = [PairFolds.draw(known, min(n_splits, fewest), random_state)]
    if min(draws[0].known.n_must_link, draws[0].known.n_cannot_link) < len(draws[0]):
        # A draw of 20,000 from very many pairs of one kind and a handful of the other.
        return None
    rng = np.random.default_rng(0)
    draws += [PairFolds.draw(draws[0].known, len(draws[0]), rng) for _ in range(repeats - 1)]
    folds = PairFolds(draws[0].known, tuple(split for draw in draws for split in draw))
    scores = []

    def views() -> Iterator[Float64]:
        for done, (train, rest) in enumerate(folds):
            if on_fold is not None:
                on_fold(done, len(folds))
            Z = np.asarray(_fitted(model, X, train, preferences).transform(X), dtype=np.float64)
            scores.append(judging.pair_auc(Z, rest))
            yield Z

    found = measured_distances(folds, views())
    mean = float(np.mean(scores))
    score = HeldOutScore(mean, judging.auc_standard_error(mean, len(found.must), len(found.cannot)), tuple(scores))
    pairs = np.concatenate([folds.known.must_link, folds.known.cannot_link])
    same = np.repeat([True, False], [len(found.must), len(found.cannot)])
    distance = np.sqrt(np.concatenate([found.must[:, -1:], found.cannot[:, -1:]]))
    return JudgedPairs(pairs, same, fit_pair_model(distance, same, np.ones(len(same)))(distance), score)


def held_out_auc(
    model: Any,
    X: ArrayLike,
    constraints: Constraints,
    *,
    preferences: Preferences | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
    on_fold: Callable[[int, int], None] | None = None,
) -> HeldOutScore:
    """Cross-validate a view over the pairs: the AUC with which distance tells held-out pairs apart.

    The model is cloned and fitted to all rows and a part of the pairs, and judged by the others, fold by fold. Every
    fold holds out pairs of both kinds; with fewer pairs of a kind than `n_splits` there are as many folds as those.
    With fewer than 100 pairs folds are drawn twice, and of more than 20,000, 20,000 are drawn. The rows of held-out
    pairs may be in other pairs too, so what is measured is new answers about the same table, not new rows.

    Parameters
    ----------
    model : estimator
        A method, or a pipeline that ends in one; one that takes no pairs (PCA) is fitted without. It is left alone.
    X : array-like of shape (n_samples, n_features)
    constraints : Constraints
        The pairs.
    preferences : Preferences, optional
        Handed to models that learn from them, in every fold.
    n_splits : int, default=5
        Number of folds.
    random_state : int, Generator or None, default=0
        Makes the folds repeatable.
    on_fold : callable, optional
        ``on_fold(done, total)`` is called before each fold, for progress.

    Returns
    -------
    HeldOutScore
        NaN with no folds where one of the kinds has fewer than two pairs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import WBDR, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> result = held_out_auc(WBDR(2), X, Constraints.from_labels(y, n_pairs=60, random_state=0))
    >>> len(result.folds), round(result.mean, 1)
    (10, 1.0)
    """
    options: dict[str, Any] = {"n_splits": n_splits, "random_state": random_state, "on_fold": on_fold}
    found = held_out_pairs(model, X, constraints, preferences=preferences, **options)
    return NOTHING if found is None else found.score


def held_out_accuracy(
    model: Any,
    X: ArrayLike,
    preferences: Preferences,
    *,
    n_splits: int = 5,
    random_state: Any = 0,
    on_fold: Callable[[int, int], None] | None = None,
) -> HeldOutScore:
    """Cross-validate a ranking over the preferences: the share of held-out ones that it gets right.

    Parameters are those of :func:`held_out_auc`; the model must learn from preferences and rank rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import Preferences, RankSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> ordered = Preferences.from_scores(y, n_pairs=40, random_state=0)
    >>> round(held_out_accuracy(RankSVM(C=1.0), X, ordered).mean, 1)
    1.0
    """
    if "preferences" not in learns_from(model):
        raise InputError(
            f"{type(model).__name__} does not learn from preferences",
            argument="model",
            remedy="Give WSDR, GBWSDR or RankSVM.",
        )
    from pairlens.metrics import pairwise_accuracy

    if preferences.n_pairs < FEWEST:
        return NOTHING
    number = min(n_splits, preferences.n_pairs)
    known = preferences if preferences.n_samples is not None else preferences.with_n_samples(_n_rows(X))
    scores, sizes = [], []
    for done, (train, rest) in enumerate(known.split(number, random_state)):
        if on_fold is not None:
            on_fold(done, number)
        fitted = _fitted(model, X, None, train)
        scores.append(pairwise_accuracy(fitted.decision_function(X), rest))
        sizes.append(rest.n_pairs)
    mean = float(np.average(scores, weights=sizes))
    return HeldOutScore(mean, judging.share_standard_error(mean, known.n_pairs), tuple(scores))


@dataclass(frozen=True)
class Verdict:
    """Say whether a view tells pairs apart better than another.

    Attributes
    ----------
    other : str
        Name of the other view.
    difference : float
        Difference of the AUC, positive if the view is better.
    standard_error : float
    n_fewest : int
        Pairs of the rarer kind.
    """

    other: str
    difference: float
    standard_error: float
    n_fewest: int

    @property
    def tells(self) -> bool:
        """Return whether there are enough pairs to tell which of the two is better."""
        return self.n_fewest >= FEWEST_TO_COMPARE and abs(self.difference) > MARGIN * self.standard_error

    def __str__(self) -> str:
        if not self.tells:
            return f"too few pairs to tell from {self.other} ({self.difference:+.2f} ± {self.standard_error:.2f})"
        word = "better" if self.difference > 0 else "worse"
        return f"{word} than {self.other} by {abs(self.difference):.2f} ± {self.standard_error:.2f}"


def verdicts(
    judged: JudgedPairs, others: Mapping[str, Rows], method: Any = None, rows: Rows | None = None
) -> list[Verdict]:
    """Compare a view with others that saw no pair, on the same pairs.

    Parameters
    ----------
    judged : JudgedPairs
        The pairs, judged by the view.
    others : mapping of str to array of shape (n_samples, n_dims)
        The other views, by name; two rows are near in them if their distance is small.
    method : estimator, optional
        The fitted method, whose `pair_proba` says more about the pairs that nobody answered, if it has one.
    rows : array of shape (n_samples, n_features), optional
        The rows as the method takes them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import Constraints, LinearPairLens
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=200, random_state=0)
    >>> view = LinearPairLens(2, random_state=0).fit(X, constraints=pairs)
    >>> found = verdicts(JudgedPairs.of_fit(view), {"sepals": X[:, :2]}, view, X)[0]
    >>> found.tells, found.difference > 0.1
    (True, True)
    """
    n_pairs, n_same = len(judged.same), int(np.count_nonzero(judged.same))
    fewest = min(n_same, n_pairs - n_same)
    random = None
    if fewest and rows is not None and getattr(method, "is_calibrated", False):
        rng, n_rows = np.random.default_rng(0), rows.shape[0]
        left = rng.integers(n_rows, size=RANDOM_PAIRS)
        random = np.column_stack([left, (left + rng.integers(1, n_rows, size=RANDOM_PAIRS)) % n_rows])
        together = np.asarray(method.pair_proba(take_rows(rows, random[:, 0]), take_rows(rows, random[:, 1])))
    # Pairs that labels imply follow from one another: they count as two for each of their rows.
    independent = min(1.0, PAIRS_PER_ROW * len(np.unique(judged.pairs)) / max(n_pairs, 1))
    found = []
    for name, Z in others.items():
        if fewest == 0:
            found.append(Verdict(name, float("nan"), float("nan"), 0))
            continue
        first, second = -judged.together, pair_squared_distances(Z, judged.pairs)
        difference, influence = _difference(judged.same.astype(np.float64), first, second, judged.fold)
        if random is not None:
            by_model, of_model = _difference(judged.together, first, second, judged.fold)
            of_all, _ = _difference(together, -together, pair_squared_distances(Z, random))
            size = float(of_model @ of_model)
            share = min(1.0, max(0.0, float(influence @ of_model) / size)) if size > 0 else 0.0
            difference += share * (of_all - by_model)
            influence = influence - share * of_model
        error = np.hypot(np.sqrt(influence @ influence / independent) / n_pairs, UNSEEN / fewest)
        error *= np.sqrt(fewest / max(fewest - 1, 1))
        found.append(Verdict(name, float(difference), float(error), fewest))
    return found


def _difference(same: Float64, first: Float64, second: Float64, fold: IntArray | None = None) -> tuple[float, Float64]:
    """Return the difference of two AUC, the first inside the folds, and n times the influence of each pair on it.

    `same` is how much each pair counts as a must-link; the rest of 1 counts as a cannot-link.
    """
    longer, shorter = (a - b for a, b in zip(_placements(same, first), _placements(same, second)))
    difference = float(same @ longer / same.sum())
    influence = same / same.mean() * (longer - difference) + (1 - same) / (1 - same).mean() * (shorter - difference)
    if fold is not None:
        parts = [np.flatnonzero(fold == number) for number in np.unique(fold)]
        comparisons = np.array([same[part].sum() * (1 - same[part]).sum() for part in parts])
        if comparisons.any():
            inside = [_auc(same[part], first[part]) for part, count in zip(parts, comparisons) if count]
            difference += np.average(inside, weights=comparisons[comparisons > 0]) - _auc(same, first)
    return difference, influence


def _auc(same: Float64, distance: Float64) -> float:
    return float(same @ _placements(same, distance)[0] / same.sum())


def _placements(same: Float64, distance: Float64) -> tuple[Float64, Float64]:
    """Return the share of cannot-links that are longer than each pair, and of must-links that are shorter."""
    order = np.argsort(distance, kind="stable")
    ends = [np.searchsorted(distance[order], distance, side=side) for side in ("left", "right")]

    def below(weight: Float64) -> Float64:
        total = np.concatenate([[0.0], np.cumsum(weight[order])])
        return (total[ends[0]] + total[ends[1]]) / (2 * total[-1])

    return 1 - below(1 - same), below(same)


def _fitted(model: Any, X: ArrayLike, constraints: Constraints | None, preferences: Preferences | None) -> Any:
    # That a fold has too few pairs says nothing about all of them.
    with warnings.catch_warnings(action="ignore", category=SupervisionWarning):
        return fit_model(clone(model), X, constraints, preferences)


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
