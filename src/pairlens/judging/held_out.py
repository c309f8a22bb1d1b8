"""Held-out pairs: folds over what is known, and distances in views that did not see them.

Folds are drawn once, so that several views are compared on the same ones. Distances tell the AUC of a view with its
standard error, how pure the must-links look, and how many directions it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._sklearn import as_generator
from pairlens.supervision import Constraints

CHANCE = 0.5
"""The AUC of distances that say nothing about the pairs."""
MAX_PAIRS = 20_000
"""Most pairs that take part in a cross-validation; from more, this many are drawn."""
PAIRS_PER_ROW = 2
"""More pairs than this for each row in them imply one another."""
QUANTILES = np.linspace(0.2, 0.8, 13)
FEWEST_FOR_PURITY = 8
"""Pairs of a kind below which purity is not estimated."""
DEFAULT_PURITY = 0.6
"""What it is taken for then."""


@dataclass(frozen=True)
class PairFolds:
    """Folds over pairs.

    Attributes
    ----------
    known : Constraints
        The pairs that take part.
    splits : tuple of (train, held out) Constraints
        Each pair is held out at least once.
    """

    known: Constraints
    splits: tuple[tuple[Constraints, Constraints], ...]

    @classmethod
    def draw(
        cls, known: Constraints, n_splits: int, random_state: Any, *, keys: NDArray[np.float64] | None = None
    ) -> PairFolds:
        """Draw folds over the pairs: each is held out once, and its rows may be in other pairs that are not.

        Parameters
        ----------
        known : Constraints
            Of more than 20,000 pairs, that many are drawn.
        n_splits : int
            Number of folds; fewer if there are fewer pairs.
        random_state : int, RandomState, Generator or None
        keys : array of shape (n_rows,), optional
            A number for each row in pairs. With them the folds depend on these numbers and not on the order of the
            rows.
        """
        known = _at_most(known, random_state)
        n_splits = min(n_splits, known.n_pairs)
        if keys is None:
            return cls(known, tuple(known.split(n_splits, random_state)))
        rng = as_generator(random_state)
        must = _fold_numbers(known.must_link, keys, n_splits, rng)
        # The kind that comes second goes on where the first ended, so that folds are of equal size.
        cannot = (_fold_numbers(known.cannot_link, keys, n_splits, rng) + known.n_must_link) % n_splits
        splits = (
            (known.where(must != fold, cannot != fold), known.where(must == fold, cannot == fold))
            for fold in range(n_splits)
        )
        return cls(known, tuple(splits))

    @classmethod
    def draw_rows(
        cls, known: Constraints, n_splits: int, random_state: Any, *, keys: NDArray[np.float64] | None = None
    ) -> PairFolds:
        """Draw folds over the rows in pairs: learnt from are the pairs without a row in the fold, held out all others.

        Where there are many pairs to a row, they imply one another: of a held-out pair of three known friends the
        other two pairs tell all. Holding out rows prevents that. A pair whose rows are in different folds is held out
        twice.

        Parameters are those of :meth:`draw`.

        Examples
        --------
        >>> from pairlens import Constraints
        >>> triangle = Constraints([(0, 1), (0, 2), (1, 2)], n_samples=3)
        >>> folds = PairFolds.draw_rows(triangle, 3, random_state=0)
        >>> [(train.n_pairs, held_out.n_pairs) for train, held_out in folds]
        [(1, 2), (1, 2), (1, 2)]
        """
        known = _at_most(known, random_state)
        rows = known.rows if keys is None else known.rows[np.argsort(keys[known.rows], kind="stable")]
        rows = as_generator(random_state).permutation(rows)
        splits = []
        for fold in np.array_split(rows, min(n_splits, len(rows))):
            out = np.zeros(len(known), dtype=bool)
            out[fold] = True
            must, cannot = (np.asarray(out[pairs].any(axis=1)) for pairs in (known.must_link, known.cannot_link))
            splits.append((known.where(~must, ~cannot), known.where(must, cannot)))
        return cls(known, tuple(splits))

    @classmethod
    def draw_independent(
        cls, known: Constraints, n_splits: int, random_state: Any, *, keys: NDArray[np.float64] | None = None
    ) -> PairFolds:
        """Draw folds over the pairs, or over the rows where there are more than two pairs for each row in them.

        Parameters are those of :meth:`draw`.
        """
        draw = cls.draw if known.n_pairs <= PAIRS_PER_ROW * len(known.rows) else cls.draw_rows
        return draw(known, n_splits, random_state, keys=keys)

    def __iter__(self) -> Iterator[tuple[Constraints, Constraints]]:
        return iter(self.splits)

    def __len__(self) -> int:
        return len(self.splits)


def _fold_numbers(
    pairs: NDArray[np.int64], keys: NDArray[np.float64], n_splits: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the fold in which each pair is held out, drawn for the pairs in the order of their keys."""
    low, high = np.sort(keys[pairs], axis=1).T
    numbers = np.empty(len(pairs), dtype=np.int64)
    numbers[np.lexsort((low, high))] = rng.permutation(len(pairs)) % n_splits
    return numbers


def _at_most(known: Constraints, random_state: Any) -> Constraints:
    return known.sample(MAX_PAIRS, random_state) if known.n_pairs > MAX_PAIRS else known


def auc(must: NDArray[np.float64], cannot: NDArray[np.float64]) -> float:
    """Return the share of comparisons in which the must-link is the shorter one; ties count half, NaN without both.

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
    r"""Return the standard error of an AUC by Hanley and McNeil's formula [1]_, the one of the whole library.

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
    """Return the standard error of a share of `count` answers, as if one more had come out half right: never zero.

    NaN without answers.

    Examples
    --------
    >>> round(share_standard_error(1.0, 10), 2)
    0.07
    """
    if count == 0:
        return float("nan")
    smoothed = (share * count + 0.5) / (count + 1)
    return float(np.sqrt(smoothed * (1 - smoothed) / count))


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


@dataclass(frozen=True)
class HeldOutDistances:
    """Squared distances of pairs in views that did not see them, over twice the total variance of the view.

    Attributes
    ----------
    must, cannot : arrays of shape (n_pairs, n_dims)
        Column d - 1 holds the distances in the first d directions; the mean over the folds for a pair that was held
        out more than once.
    known : Constraints
        The pairs, in the order of the rows of the two arrays.
    """

    must: NDArray[np.float64]
    cannot: NDArray[np.float64]
    known: Constraints

    def auc(self, n_dims: int) -> float:
        """Return the AUC with which distance in the first directions tells the two kinds apart; NaN in none."""
        if n_dims == 0:
            return float("nan")
        return auc(self.must[:, n_dims - 1], self.cannot[:, n_dims - 1])

    def standard_error(self, auc: float) -> float:
        """Return the standard error of an AUC of these pairs."""
        return auc_standard_error(auc, len(self.must), len(self.cannot))

    @property
    def margin(self) -> float:
        """The difference that an AUC may have by chance: its standard error where distance says nothing."""
        return self.standard_error(CHANCE)

    def purity(self) -> float:
        r"""Return the estimated share of must-links that behave like must-links.

        Of the wrong ones a share as large as of the cannot-links lies beyond any distance t; so
        :math:`1 - \min_t P(\text{must} > t) / P(\text{cannot} > t)`, t over the 20 to 80 % quantiles of the
        cannot-links, shares counted (x + 1) / (N + 2).
        """
        must, cannot = self.must[:, -1], self.cannot[:, -1]
        thresholds = np.quantile(cannot, QUANTILES)
        beyond = [(np.count_nonzero(d[:, None] > thresholds, axis=0) + 1) / (len(d) + 2) for d in (must, cannot)]
        return float(1 - np.min(beyond[0] / beyond[1]))

    def smallest_good_dimension(self) -> int:
        """Return the fewest directions whose AUC is within the margin of the best."""
        scores = np.array([self.auc(d) for d in range(1, self.must.shape[1] + 1)])
        return int(np.argmax(scores >= scores.max() - self.margin)) + 1


def held_out_distances(embed: Callable[[Constraints], NDArray[np.float64]], folds: PairFolds) -> HeldOutDistances:
    """Embed with some of the pairs and measure the others, fold by fold.

    Parameters
    ----------
    embed : callable
        ``embed(pairs)`` gives the embedded rows, best directions first.
    folds : PairFolds
    """
    return measured_distances(folds, (embed(train) for train, _ in folds))


def measured_distances(folds: PairFolds, views: Iterable[NDArray[np.float64]]) -> HeldOutDistances:
    """Return distances of the held-out pairs of each fold in its view, the embedded rows."""

    def measure(Z: NDArray[np.float64], rest: Constraints) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        centred = Z - Z.mean(axis=0)
        variance = np.cumsum(np.einsum("ij,ij->j", centred, centred)) / len(Z)
        scale = 2 * np.where(variance > 0, variance, 1.0)
        must, cannot = (
            np.cumsum((Z[pairs[:, 0]] - Z[pairs[:, 1]]) ** 2, axis=1) / scale
            for pairs in (rest.must_link, rest.cannot_link)
        )
        return must, cannot

    return gathered_distances(folds, (measure(Z, rest) for Z, (_, rest) in zip(views, folds)))


def gathered_distances(
    folds: PairFolds, found: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]]
) -> HeldOutDistances:
    """Gather distances of the held-out must-links and cannot-links of each fold, in the order of the pairs.

    They are squared distances in the first 1, 2, ... directions, over twice their total variance.
    """
    must, cannot = zip(*found)
    return HeldOutDistances(
        _in_order(must, [rest.must_link for _, rest in folds]),
        _in_order(cannot, [rest.cannot_link for _, rest in folds]),
        folds.known,
    )


def _in_order(distances: Sequence[NDArray[np.float64]], pairs: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return the distances of all folds in the lexicographic order of the pairs; of several of a pair the mean."""
    width = min(part.shape[1] for part in distances)
    everything = np.concatenate([part[:, :width] for part in distances])
    distinct, place, count = np.unique(np.concatenate(pairs), axis=0, return_inverse=True, return_counts=True)
    if len(distinct) == len(everything):
        ordered = np.empty_like(everything)
        ordered[place.ravel()] = everything
        return ordered
    total = np.zeros((len(distinct), width))
    np.add.at(total, place.ravel(), everything)
    return np.asarray(total / count[:, None])


def distance_columns(squared: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return distances in the first 1, 2, 4, ... and all directions, from squared ones in 1, 2, 3, ... of them."""
    n_dims = squared.shape[1]
    dims = sorted({n_dims, *(2**power for power in range(n_dims.bit_length()) if 2**power <= n_dims)})
    return np.sqrt(squared[:, np.array(dims) - 1])


def pair_weights(known: Constraints) -> NDArray[np.float64]:
    """Return weights of the must-links, then of the cannot-links, smaller where pairs imply one another."""
    weight = np.concatenate([known.must_link_weight, known.cannot_link_weight])
    # A pair that follows from others counts once: by its weight, or by the limit of two answers a row, never by both.
    total = float(weight.sum())
    return np.asarray(weight * min(1.0, PAIRS_PER_ROW * len(known.rows) / total) if total > 0 else weight)
