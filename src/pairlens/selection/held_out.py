"""How well a view tells pairs apart that it did not see."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from pairlens.exceptions import SupervisionWarning
from pairlens.judging import HeldOutScore, PairFolds, auc_standard_error, pair_auc, share_standard_error
from pairlens.selection.fitting import fit_model, learns_from
from pairlens.supervision import Constraints, Preferences
from pairlens.supervision.combined import combine

FEWEST = 2
"""Pairs of each kind below which none can be held out: one to learn from and one to judge by."""


NOTHING = HeldOutScore(float("nan"), float("nan"), ())


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
    fold holds out pairs of both kinds; with fewer pairs of a kind than `n_splits` there are as many folds as those. Of
    more than 20,000 pairs, 20,000 are drawn. The rows of held-out pairs may be in other pairs too, so
    what is measured is new answers about the same table, not new rows.

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
    (5, 1.0)
    """
    known = combine(None, constraints, _n_rows(X))
    fewest = min(known.n_must_link, known.n_cannot_link)
    if fewest < FEWEST:
        return NOTHING
    draw = PairFolds.draw(known, min(n_splits, fewest), random_state)
    if min(draw.known.n_must_link, draw.known.n_cannot_link) < len(draw):
        # A draw of 20,000 from very many pairs of one kind and a handful of the other.
        return NOTHING
    scores = []
    for done, (train, rest) in enumerate(draw):
        if on_fold is not None:
            on_fold(done, len(draw))
        fitted = _fitted(model, X, train, preferences)
        scores.append(pair_auc(np.asarray(fitted.transform(X), dtype=np.float64), rest))
    mean = float(np.mean(scores))
    error = auc_standard_error(mean, draw.known.n_must_link, draw.known.n_cannot_link)
    return HeldOutScore(mean, error, tuple(scores))


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
        raise ValueError(f"{type(model).__name__} does not learn from preferences; give WSDR, GBWSDR or RankSVM.")
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
    return HeldOutScore(mean, share_standard_error(mean, known.n_pairs), tuple(scores))


def _fitted(model: Any, X: ArrayLike, constraints: Constraints | None, preferences: Preferences | None) -> Any:
    # That a fold has too few pairs says nothing about all of them.
    with warnings.catch_warnings(action="ignore", category=SupervisionWarning):
        return fit_model(clone(model), X, constraints, preferences)


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
