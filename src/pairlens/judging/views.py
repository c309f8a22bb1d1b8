r"""Measure pairs in a view: their distance, how well it tells must-links from cannot-links, and their probability.

A linear view :math:`z = L (x - m)` measures two rows by

.. math::
    d(u, v) = \lVert L (u - v) \rVert = \sqrt{(u - v)' M (u - v)}, \qquad M = L' L.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._warnings import warn_user
from pairlens.engines import Float64, IntArray, Rows, pair_squared_distances
from pairlens.exceptions import ArgumentError, InputError, SupervisionWarning
from pairlens.judging.held_out import CHANCE
from pairlens.supervision import Constraints
from pairlens.supervision.combined import combine, pair_shares

MAX_SCORED_PAIRS = 1_000_000


def pair_distance(view: Any, A: ArrayLike, B: ArrayLike) -> NDArray[Any]:
    """Return distances of pairs of rows in a view.

    Parameters
    ----------
    view : fitted transformer or Pipeline
        Whatever has :meth:`transform`.
    A, B : array-like or CSR matrices of shape (n_pairs, n_features)
        Row i of A and row i of B are one pair.

    Returns
    -------
    distances : array of shape (n_pairs,)

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pairlens import WBDR
    >>> from pairlens.judging import pair_distance
    >>> X, y = load_wine(return_X_y=True)
    >>> view = make_pipeline(StandardScaler(), WBDR(2)).fit(X, y)
    >>> pair_distance(view, X[:2], X[[3, 100]]).shape
    (2,)
    """
    left, right = _plain(view.transform(A)), _plain(view.transform(B))
    check_paired(left, right)
    return ((left - right) ** 2).sum(1) ** 0.5


def check_paired(left: Any, right: Any) -> None:
    """Raise an ArgumentError unless both sides of the pairs have the same number of rows."""
    if left.shape[0] != right.shape[0]:
        reason = f"must have {left.shape[0]} rows, as many as A: row i of A and row i of B are one pair"
        raise ArgumentError("B", right.shape[0], reason)


def _plain(view: Any) -> Any:
    """Return an embedding without the names that set_output gave it."""
    return view.to_numpy() if hasattr(view, "to_numpy") else view


def pair_auc(embedded: Rows, known: Constraints, sample_weight: ArrayLike | None = None) -> float:
    """Return the area under the ROC curve with which distance in a view tells must-links from cannot-links.

    Without pairs of both kinds there is nothing to tell apart: 0.5, with a warning. So a fold of a cross-validation
    that happens to hold none is neutral between the candidates.

    Parameters
    ----------
    embedded : array, CSR matrix or rows of an engine, of shape (n_samples, n_dims)
        The view.
    known : Constraints
        The pairs; of more than a million that labels imply, a million are drawn with a fixed seed.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows; a pair counts by the product of the weights of its rows, times its own.
    """
    from sklearn.metrics import roc_auc_score

    known = combine(None, known, embedded.shape[0])
    if known.n_must_link == 0 or known.n_cannot_link == 0:
        warn_user(
            f"score found {known.n_must_link} must-links and {known.n_cannot_link} cannot-links among the rows and "
            "needs both kinds, so it is 0.5. With few pairs, cross-validate over the pairs (Constraints.split) and not "
            "over the rows.",
            SupervisionWarning,
        )
        return CHANCE
    (must, must_weight), (cannot, cannot_weight) = _scored_pairs(known)
    pairs, weight = np.concatenate([must, cannot]), np.concatenate([must_weight, cannot_weight])
    if sample_weight is not None:
        weight = weight * pair_shares(sample_weight, pairs, embedded.shape[0])
    together = np.repeat([True, False], [len(must), len(cannot)])
    return float(roc_auc_score(together, -pair_squared_distances(embedded, pairs), sample_weight=weight))


def _scored_pairs(known: Constraints) -> list[tuple[IntArray, NDArray[np.float64]]]:
    """Return pairs and weights of both kinds; where labels imply very many of a kind, some drawn stand for those.

    Pairs that were given count all the same, with their weights.
    """
    if known.labels is None or known.n_pairs <= MAX_SCORED_PAIRS:
        return [_of_kind(known, must) for must in (True, False)]
    implied = Constraints.from_labels(known.labels)
    drawn = implied.sample(min(MAX_SCORED_PAIRS, implied.n_pairs), random_state=0)
    scored = []
    for must in (True, False):
        if (known.n_must_link if must else known.n_cannot_link) <= MAX_SCORED_PAIRS // 2:
            scored.append(_of_kind(known, must))
            continue
        (given, weight), (some, some_weight) = _of_kind(known.explicit, must), _of_kind(drawn, must)
        stands_for = (implied.n_must_link if must else implied.n_cannot_link) / max(len(some), 1)
        scored.append((np.concatenate([given, some]), np.concatenate([weight, stands_for * some_weight])))
    return scored


def _of_kind(known: Constraints, must: bool) -> tuple[IntArray, NDArray[np.float64]]:
    return (known.must_link, known.must_link_weight) if must else (known.cannot_link, known.cannot_link_weight)


@dataclass(frozen=True)
class Metric:
    """Distance of two rows in a linear view, as scikit-learn takes it: ``metric=view.get_metric()``."""

    components: NDArray[Any]

    def __call__(self, u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
        """Return the distance of two rows, or its square."""
        offset = self.components @ (np.asarray(u, dtype=np.float64) - np.asarray(v, dtype=np.float64))
        found = float(offset @ offset)
        return found if squared else found**0.5


def pair_proba(view: Any, A: ArrayLike, B: ArrayLike, *, base_rate: float | None = None) -> Float64:
    """Return the probability that rows belong together, by a view or by a Pipeline that ends in one.

    Parameters
    ----------
    view : fitted estimator or Pipeline
        With `pair_proba`, or a Pipeline whose last step has it.
    A, B : array-like or CSR matrices of shape (n_pairs, n_features)
        Row i of A and row i of B are one pair.
    base_rate : float in (0, 1), optional
        Share of pairs that belong together among those to be judged, if it is another than the view learned.

    Returns
    -------
    together : array of shape (n_pairs,)

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pairlens import WBDR, Constraints
    >>> from pairlens.judging import pair_proba
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    >>> view = make_pipeline(StandardScaler(), WBDR(2)).fit(X, wbdr__constraints=pairs)
    >>> _ = view[-1].calibrate(view[:-1].transform(X), constraints=pairs)
    >>> pair_proba(view, X[[0, 0]], X[[1, 100]]) > 0.5
    array([ True, False])
    """
    if hasattr(view, "steps"):
        if len(view.steps) > 1:
            A, B = view[:-1].transform(A), view[:-1].transform(B)
        view = view.steps[-1][1]
    if not hasattr(view, "pair_proba"):
        raise InputError(
            f"{type(view).__name__} gives no probabilities of pairs: it does not learn from pairs", argument="view"
        )
    return np.asarray(view.pair_proba(A, B, base_rate=base_rate))


def in_memory(view: Any) -> Float64:
    """Return an embedding as an array, whatever it came as."""
    view = view.to_numpy() if hasattr(view, "to_numpy") else view.cpu() if hasattr(view, "cpu") else view
    return np.asarray(view, dtype=np.float64)
