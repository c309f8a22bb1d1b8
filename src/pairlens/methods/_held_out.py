"""Judging a view by pairs that it did not see: distances, their AUC, and how pure the must-links look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.supervision import Constraints

__all__ = ["DEFAULT_PURITY", "FEWEST_FOR_PURITY", "HeldOut", "PairFolds", "auc", "auc_error", "held_out_distances"]

QUANTILES = np.linspace(0.2, 0.8, 13)
MAX_PAIRS = 20_000
"""Pairs that take part in cross-validation; of more, so many are drawn."""
FEWEST_FOR_PURITY = 8
"""Pairs of a kind below which purity is not estimated."""
DEFAULT_PURITY = 0.6
"""What it is taken for then."""


@dataclass(frozen=True)
class PairFolds:
    """Folds over pairs, drawn once, so that views can be compared on the same ones.

    Attributes
    ----------
    known : Constraints
        The pairs that take part.
    splits : tuple of (train, held out) Constraints
    """

    known: Constraints
    splits: tuple[tuple[Constraints, Constraints], ...]

    @classmethod
    def draw(cls, known: Constraints, n_splits: int, random_state: Any) -> PairFolds:
        """Draw so many folds, fewer if there are fewer pairs."""
        if known.n_pairs > MAX_PAIRS:
            known = known.sample(MAX_PAIRS, random_state)
        return cls(known, tuple(known.split(min(n_splits, known.n_pairs), random_state)))

    def __iter__(self) -> Iterator[tuple[Constraints, Constraints]]:
        return iter(self.splits)


@dataclass(frozen=True)
class HeldOut:
    """Squared distances of pairs in views that did not see them, over twice the total variance of the view.

    Attributes
    ----------
    must, cannot : arrays of shape (n_pairs, n_dims)
        Column d - 1 holds the distances in the first d directions.
    known : Constraints
        The pairs, in the order of the rows of the two arrays.
    """

    must: NDArray[np.float64]
    cannot: NDArray[np.float64]
    known: Constraints

    def auc(self, n_dims: int) -> float:
        """AUC with which distance in so many directions tells the two kinds apart."""
        return auc(self.must[:, n_dims - 1], self.cannot[:, n_dims - 1])

    @property
    def error(self) -> float:
        """Standard error of an AUC."""
        return auc_error(len(self.must), len(self.cannot))

    def purity(self) -> float:
        r"""Estimated share of must-links that behave like must-links.

        Of the wrong ones a share as large as of the cannot-links lies beyond any distance t; so
        :math:`1 - \min_t P(\text{must} > t) / P(\text{cannot} > t)`, t over the 20 to 80 % quantiles of the
        cannot-links, shares counted (x + 1) / (N + 2).
        """
        must, cannot = self.must[:, -1], self.cannot[:, -1]
        thresholds = np.quantile(cannot, QUANTILES)
        beyond = [(np.count_nonzero(d[:, None] > thresholds, axis=0) + 1) / (len(d) + 2) for d in (must, cannot)]
        return float(1 - np.min(beyond[0] / beyond[1]))

    def smallest_good_dimension(self) -> int:
        """The fewest directions whose AUC is within one standard error of the best."""
        scores = np.array([self.auc(d) for d in range(1, self.must.shape[1] + 1)])
        return int(np.argmax(scores >= scores.max() - self.error)) + 1


def held_out_distances(embed: Callable[[Constraints], NDArray[np.float64]], folds: PairFolds) -> HeldOut:
    """Embed with some of the pairs and measure the others, fold by fold.

    Parameters
    ----------
    embed : callable
        ``embed(pairs)`` gives the embedded rows, best directions first.
    folds : PairFolds
    """
    must: list[NDArray[np.float64]] = []
    cannot: list[NDArray[np.float64]] = []
    order: list[Constraints] = []
    for train, rest in folds:
        Z = embed(train)
        centred = Z - Z.mean(axis=0)
        variance = np.cumsum(np.einsum("ij,ij->j", centred, centred)) / len(Z)
        scale = 2 * np.where(variance > 0, variance, 1.0)
        for pairs, found in ((rest.must_link, must), (rest.cannot_link, cannot)):
            found.append(np.cumsum((Z[pairs[:, 0]] - Z[pairs[:, 1]]) ** 2, axis=1) / scale)
        order.append(rest)
    width = min(part.shape[1] for part in must)
    must_distance, cannot_distance = (np.concatenate([part[:, :width] for part in parts]) for parts in (must, cannot))
    # Folds come in their own order; the tables of the constraints are sorted.
    must_order = _sorted_order(np.concatenate([part.must_link for part in order]))
    cannot_order = _sorted_order(np.concatenate([part.cannot_link for part in order]))
    return HeldOut(must_distance[must_order], cannot_distance[cannot_order], folds.known)


def _sorted_order(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.lexsort((pairs[:, 1], pairs[:, 0]))


def auc(must: NDArray[np.float64], cannot: NDArray[np.float64]) -> float:
    """Share of comparisons in which the must-link is the shorter one; ties count half. NaN without both kinds."""
    if len(must) == 0 or len(cannot) == 0:
        return float("nan")
    ordered = np.sort(cannot)
    longer = len(cannot) - np.searchsorted(ordered, must, side="right")
    ties = np.searchsorted(ordered, must, side="right") - np.searchsorted(ordered, must, side="left")
    return float((longer + 0.5 * ties).sum() / (len(must) * len(cannot)))


def auc_error(n_must: int, n_cannot: int) -> float:
    r"""Standard error of an AUC of so many pairs, :math:`\sqrt{1/(12 n_M) + 1/(12 n_C)}`."""
    if min(n_must, n_cannot) == 0:
        return float("nan")
    return float(np.sqrt(1 / (12 * n_must) + 1 / (12 * n_cannot)))
