"""The area under the ROC curve with which distance tells must-links from cannot-links, and its standard error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._warnings import warn_user
from pairlens.engines import IntArray, Rows, pair_squared_distances
from pairlens.exceptions import SupervisionWarning
from pairlens.supervision import Constraints

CHANCE = 0.5
"""The AUC of distances that say nothing about the pairs."""
MAX_SCORED_PAIRS = 1_000_000


@dataclass(frozen=True)
class HeldOutScore:
    """A score of held-out pairs or preferences.

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


def auc(must: NDArray[np.float64], cannot: NDArray[np.float64]) -> float:
    """Share of comparisons in which the must-link is the shorter one; ties count half. NaN without both kinds.

    Examples
    --------
    >>> import numpy as np
    >>> auc(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    if len(must) == 0 or len(cannot) == 0:
        return float("nan")
    ordered = np.sort(cannot)
    longer = len(cannot) - np.searchsorted(ordered, must, side="right")
    ties = np.searchsorted(ordered, must, side="right") - np.searchsorted(ordered, must, side="left")
    return float((longer + 0.5 * ties).sum() / (len(must) * len(cannot)))


def auc_standard_error(auc: float, n_must: int, n_cannot: int) -> float:
    r"""Standard error of an AUC by Hanley and McNeil's formula [1]_, the one of the whole library.

    .. math::
        \frac{A (1 - A) + (n_M - 1)(Q_1 - A^2) + (n_C - 1)(Q_2 - A^2)}{n_M n_C}, \quad
        Q_1 = \frac{A}{2 - A}, \; Q_2 = \frac{2 A^2}{1 + A}

    is its square. A counts as if one more pair of the rarer kind had come out half right, so that the error of a
    perfect AUC from a handful of pairs is not zero. NaN without pairs of both kinds.

    At chance, A = 0.5, it is :math:`\sqrt{(n_M + n_C + 1) / (12 n_M n_C)}`, the standard deviation of the statistic of
    Mann and Whitney where distance says nothing. Two views are compared by that margin, because it does not depend on
    which of them is judged.

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
    if fewer == 0:
        return float("nan")
    a = (max(auc, 1 - auc) * fewer + 0.5) / (fewer + 1)
    first, second = a / (2 - a), 2 * a**2 / (1 + a)
    variance = (a * (1 - a) + (n_must - 1) * (first - a**2) + (n_cannot - 1) * (second - a**2)) / (n_must * n_cannot)
    return float(np.sqrt(variance))


def share_standard_error(share: float, count: int) -> float:
    """Standard error of a share of `count` answers, as if one more had come out half right: never zero.

    Examples
    --------
    >>> round(share_standard_error(1.0, 10), 2)
    0.07
    """
    smoothed = (share * count + 0.5) / (count + 1)
    return float(np.sqrt(smoothed * (1 - smoothed) / count))


def pair_auc(embedded: Rows, known: Constraints, sample_weight: ArrayLike | None = None) -> float:
    """Area under the ROC curve with which distance in a view tells must-links from cannot-links.

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
        share = np.asarray(sample_weight, dtype=np.float64)
        if share.shape != (embedded.shape[0],) or not (np.isfinite(share).all() and (share >= 0).all()):
            raise ValueError(
                f"sample_weight must hold {embedded.shape[0]} finite numbers of at least 0, one for each row."
            )
        weight = weight * share[pairs].prod(axis=1)
    together = np.repeat([True, False], [len(must), len(cannot)])
    return float(roc_auc_score(together, -pair_squared_distances(embedded, pairs), sample_weight=weight))


def _scored_pairs(known: Constraints) -> list[tuple[IntArray, NDArray[np.float64]]]:
    """Pairs and weights of both kinds; where labels imply very many of a kind, some drawn stand for those.

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
