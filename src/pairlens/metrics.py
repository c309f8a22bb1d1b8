"""Scores for what comes out of a view: neighbourhoods and rankings."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from pairlens.engines import neighbors
from pairlens.exceptions import ArgumentError, InputError
from pairlens.supervision import Preferences

__all__ = ["cumulative_purity", "mean_average_precision", "pairwise_accuracy"]


def cumulative_purity(Z: ArrayLike, y: ArrayLike, n_neighbors: int = 10) -> NDArray[np.float64]:
    """Return the share of rows of the same label among the k nearest, averaged over rows, for k = 1 ... n_neighbors.

    Parameters
    ----------
    Z : array-like of shape (n_samples, n_features)
        Rows, usually embedded ones.
    y : array-like of shape (n_samples,)
        Labels.
    n_neighbors : int, default=10
        Largest k, from 1 to n_samples - 1.

    Returns
    -------
    purity : array of shape (n_neighbors,)

    Examples
    --------
    >>> from pairlens.metrics import cumulative_purity
    >>> cumulative_purity([[0.0], [0.1], [5.0], [5.2]], [0, 0, 1, 1], n_neighbors=2).tolist()
    [1.0, 0.5]
    """
    rows = check_array(Z, dtype=[np.float64, np.float32])
    labels = np.asarray(column_or_1d(y))
    check_consistent_length(rows, labels)
    largest = len(rows) - 1
    try:
        count = index(n_neighbors)
    except TypeError:
        count = 0
    if not 1 <= count <= largest:
        reason = f"must be a whole number from 1 to n_samples - 1, which is {largest}"
        raise ArgumentError("n_neighbors", n_neighbors, reason)
    nearest = neighbors(rows, n_nearest=count).nearest
    same = (labels[nearest] == labels[:, None]).mean(axis=0)
    return np.cumsum(same) / np.arange(1, count + 1)


def pairwise_accuracy(scores: ArrayLike, preferences: Preferences) -> float:
    """Return the share of preferences whose better row has the higher score; ties count half, weights count.

    Examples
    --------
    >>> from pairlens import Preferences
    >>> from pairlens.metrics import pairwise_accuracy
    >>> pairwise_accuracy([3.0, 2.0, 1.0], Preferences([(0, 1), (2, 1)], n_samples=3))
    0.5
    """
    if not isinstance(preferences, Preferences):
        raise TypeError(
            f"preferences must be a pairlens.Preferences, got {type(preferences).__name__}; "
            "make one of pairs (better, worse) by Preferences(pairs, n_samples=len(scores))"
        )
    score = _scores(scores)
    if preferences.n_pairs == 0:
        raise InputError("pairwise_accuracy needs at least one preference", argument="preferences")
    last = int(preferences.pairs.max())
    if last >= len(score):
        raise ArgumentError("preferences", last, f"must name rows below {len(score)}, the number of scores")
    better, worse = score[preferences.pairs].T
    return float(np.average((better > worse) + 0.5 * (better == worse), weights=preferences.weight))


def mean_average_precision(relevant: ArrayLike, scores: ArrayLike, groups: ArrayLike | None = None) -> float:
    r"""Compute the mean over queries of the average precision of their ranking by score.

    The average precision of a query is the mean, over its relevant rows, of the share of relevant rows at or above the
    row in the ranking; rows with equal scores share the worst rank among them, so a constant score earns nothing by the
    order of the rows.

    Parameters
    ----------
    relevant : array-like of shape (n_samples,)
        1 (or True) for relevant rows, 0 for others.
    scores : array-like of shape (n_samples,)
        Higher is ranked first.
    groups : array-like of shape (n_samples,), optional
        Query of each row; one query by default. Queries with no relevant row are left out.

    Examples
    --------
    >>> from pairlens.metrics import mean_average_precision
    >>> mean_average_precision([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6])
    0.8333333333333333
    """
    hit = _relevance(relevant)
    score = _scores(scores)
    query = np.zeros(len(score), dtype=np.int64)
    if groups is not None:
        query = np.unique(column_or_1d(groups), return_inverse=True)[1]
    check_consistent_length(hit, score, query)
    if not hit.any():
        raise InputError("mean_average_precision needs at least one relevant row", argument="relevant")
    order = np.lexsort((-score, query))
    query, score, hit = query[order], score[order], hit[order]
    start = np.searchsorted(query, query)
    hits = np.cumsum(hit, dtype=np.int64)
    hits -= (hits - hit)[start]
    position = np.arange(len(query))
    # The last row of each run of equal scores in a query stands for the whole run.
    changes = np.flatnonzero((np.diff(query) != 0) | (np.diff(score) != 0))
    last = np.append(changes, len(query) - 1)
    end_of_run = last[np.searchsorted(last, position)]
    precision = hits[end_of_run] / (end_of_run - start + 1)
    count = np.bincount(query, hit)
    total = np.bincount(query, precision * hit)
    return float((total[count > 0] / count[count > 0]).mean())


def _scores(scores: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(column_or_1d(check_array(scores, ensure_2d=False, dtype=np.float64)))


def _relevance(relevant: ArrayLike) -> NDArray[np.bool_]:
    values = np.asarray(column_or_1d(relevant))
    known = values if values.dtype.kind in "biuf" else np.array([_zero_or_one(value) for value in values.tolist()])
    wrong = ~np.isin(known, (0, 1))
    if wrong.any():
        row = int(wrong.argmax())
        reason = "must be 1 or True where relevant, 0 or False elsewhere"
        raise ArgumentError(f"relevant[{row}]", values.tolist()[row], reason)
    return known.astype(bool)


def _zero_or_one(value: Any) -> int:
    """Return 0 or 1, or -1 for anything else."""
    return int(value) if isinstance(value, (int, float)) and value in (0, 1) else -1
