"""How well a view tells pairs apart that it did not see."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from pairlens.exceptions import SupervisionWarning
from pairlens.methods._held_out import PairFolds
from pairlens.methods._supervision import combine
from pairlens.methods._supervision import held_out_auc as auc_of
from pairlens.selection.fitting import fit_model, learns_from
from pairlens.supervision import Constraints, Preferences

__all__ = ["HeldOutAUC", "auc_standard_error", "held_out_accuracy", "held_out_auc", "share_standard_error"]

FEWEST = 2
"""Pairs of each kind below which none can be held out: one to learn from and one to judge by."""


@dataclass(frozen=True)
class HeldOutAUC:
    """A score of held-out pairs.

    Attributes
    ----------
    mean : float
        Mean over the folds; NaN if there were too few pairs to hold any out.
    standard_error : float
        Standard error of the mean, for the number of pairs there are; NaN if `mean` is.
    folds : tuple of float
        The score of each fold.
    """

    mean: float
    standard_error: float
    folds: tuple[float, ...]


NOTHING = HeldOutAUC(float("nan"), float("nan"), ())


def held_out_auc(
    model: Any,
    X: ArrayLike,
    constraints: Constraints,
    *,
    preferences: Preferences | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
    on_fold: Callable[[int, int], None] | None = None,
) -> HeldOutAUC:
    """Cross-validate a view over the pairs: the AUC with which distance tells held-out pairs apart.

    The model is cloned and fitted to all rows and a part of the pairs, and judged by the others, fold by fold. Every
    fold holds out pairs of both kinds; with fewer pairs of a kind than `n_splits` there are so many folds. Of more than
    20,000 pairs so many are drawn. The rows of held-out pairs may be in other pairs too, so what is measured is new
    answers about the same table, not new rows.

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
    HeldOutAUC
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
    if min(draw.known.n_must_link, draw.known.n_cannot_link) < len(draw.splits):
        # A draw of 20,000 from very many pairs of one kind and a handful of the other.
        return NOTHING
    scores = []
    for done, (train, rest) in enumerate(draw):
        if on_fold is not None:
            on_fold(done, len(draw.splits))
        scores.append(auc_of(_view(_fitted(model, X, train, preferences), X), rest))
    mean = float(np.mean(scores))
    error = auc_standard_error(mean, draw.known.n_must_link, draw.known.n_cannot_link)
    return HeldOutAUC(mean, error, tuple(scores))


def held_out_accuracy(
    model: Any,
    X: ArrayLike,
    preferences: Preferences,
    *,
    n_splits: int = 5,
    random_state: Any = 0,
    on_fold: Callable[[int, int], None] | None = None,
) -> HeldOutAUC:
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
    return HeldOutAUC(mean, share_standard_error(mean, known.n_pairs), tuple(scores))


def share_standard_error(share: float, count: int) -> float:
    """Standard error of a share of so many, as if one more had come out half right: a handful never has none.

    Examples
    --------
    >>> round(share_standard_error(1.0, 10), 2)
    0.07
    """
    smoothed = (share * count + 0.5) / (count + 1)
    return float(np.sqrt(smoothed * (1 - smoothed) / count))


def auc_standard_error(auc: float, n_must: int, n_cannot: int) -> float:
    r"""Standard error of an AUC by Hanley and McNeil's formula [1]_.

    .. math::
        \frac{A (1 - A) + (n_M - 1)(Q_1 - A^2) + (n_C - 1)(Q_2 - A^2)}{n_M n_C}, \quad
        Q_1 = \frac{A}{2 - A}, \; Q_2 = \frac{2 A^2}{1 + A}

    is its square. A counts as if one more pair of the rarer kind had come out half right, so that the error of a
    perfect AUC from a handful of pairs is not zero.

    References
    ----------
    .. [1] J. A. Hanley, B. J. McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC)
       curve", Radiology 143, 1982.

    Examples
    --------
    >>> round(auc_standard_error(1.0, 10, 10), 2), round(auc_standard_error(0.5, 300, 300), 3)
    (0.05, 0.024)
    """
    fewer = min(n_must, n_cannot)
    a = (max(auc, 1 - auc) * fewer + 0.5) / (fewer + 1)
    first, second = a / (2 - a), 2 * a**2 / (1 + a)
    variance = (a * (1 - a) + (n_must - 1) * (first - a**2) + (n_cannot - 1) * (second - a**2)) / (n_must * n_cannot)
    return float(np.sqrt(variance))


def _fitted(model: Any, X: ArrayLike, constraints: Constraints | None, preferences: Preferences | None) -> Any:
    with warnings.catch_warnings():
        # What a fold lacks is no news about the whole.
        warnings.simplefilter("ignore", SupervisionWarning)
        return fit_model(clone(model), X, constraints, preferences)


def _view(fitted: Any, X: ArrayLike) -> Any:
    return np.asarray(fitted.transform(X), dtype=np.float64)


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
