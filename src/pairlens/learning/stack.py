r"""One metric from several spaces: held-out answers say how much each of them counts.

The distances of held-out pairs in the spaces enter a logistic model whose slopes are not negative
(:mod:`pairlens.judging.probability`), and the shares s are its slopes per standard deviation over their sum. The spaces
stand side by side with the total variances

.. math::
    \frac{n_0 d + m s}{n_0 + m}, \qquad d = (0.5, 0.3, 0, 0.2), \quad n_0 = 30,

for m answers: without answers the rows as they are count half, and the default counts as 30 answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import Float64, IntArray, Rows, pair_squared_distances
from pairlens.judging.held_out import PairFolds, auc
from pairlens.judging.probability import FEWEST_OF_A_KIND, fit_pair_model
from pairlens.learning.learner import REPEATS
from pairlens.learning.spaces import PreparedRows, Seen, TaughtSpaces
from pairlens.spectral.rowspace import symmetric
from pairlens.supervision import Constraints

SPACES = ("rows", "linear", "kernel", "diffusion")
DEFAULT_SHARES = np.array([0.5, 0.3, 0.0, 0.2])
DEFAULT_COUNTS = 30.0
"""Answers that the default shares count as."""
FOLDS = 5
FEWEST_HELD_OUT = 5


def effective_answers(known: Constraints) -> float:
    """Return the number of answers that pairs count as: the sum of their weights, at most two for each row in them.

    So a pair that follows from others counts once: by its weight, or by the limit, never by both.
    """
    return min(known.must_link_total + known.cannot_link_total, 2.0 * len(known.rows))


def pair_lengths(left: Iterable[Float64], right: Iterable[Float64]) -> Float64:
    r"""Return distances of pairs, given by both of their rows in several spaces, over :math:`\sqrt 2`, in columns."""
    return np.column_stack([np.sqrt(np.einsum("ij,ij->i", a - b, a - b) / 2) for a, b in zip(left, right)])


def listed_lengths(spaces: Iterable[Rows], pairs: IntArray) -> Float64:
    """Return the same for pairs of rows that are given by their numbers."""
    return np.column_stack([np.sqrt(pair_squared_distances(space, pairs) / 2) for space in spaces])


def side_by_side(spaces: Sequence[Float64], shares: Float64) -> Float64:
    """Return spaces of total variance 1 side by side, with these total variances instead; those of 0 are left out."""
    return np.hstack([np.sqrt(share) * space for space, share in zip(spaces, shares) if share > 0])


def principal(rows: Float64, k: int) -> tuple[Float64, Float64]:
    """Return the variances of the leading principal components of centred rows, and their directions in columns."""
    values, vectors = symmetric(rows.T @ rows / len(rows), k)
    kept = values > 1e-12 * values.max(initial=0.0)
    return values[kept], vectors[:, kept]


@dataclass(frozen=True)
class Fold:
    """Pairs that were learned from, pairs that were held out, and the rows in the spaces that the former taught."""

    train: Constraints
    rest: Constraints
    spaces: TaughtSpaces
    seen: Seen

    @property
    def pairs(self) -> IntArray:
        """The held-out pairs, must-links first."""
        return np.concatenate([self.rest.must_link, self.rest.cannot_link])

    @property
    def same(self) -> NDArray[np.bool_]:
        """The answers: whether each pair was said to belong together."""
        return np.repeat([True, False], [self.rest.n_must_link, self.rest.n_cannot_link])

    @property
    def weight(self) -> Float64:
        """The weights of the held-out pairs."""
        return np.concatenate([self.rest.must_link_weight, self.rest.cannot_link_weight])

    def lengths(self, plain: Rows) -> Float64:
        """Return their lengths in the spaces, those of the rows as they are first."""
        return listed_lengths((plain, *self.seen.spaces), self.pairs)


@dataclass(frozen=True)
class Stack:
    """The taught spaces with the training rows in them, and how much each space counts.

    There are no folds with fewer than three pairs of a kind; `drawn` are the same folds without what was learned.
    `shares` are the total variances, of sum 1, of the rows as they are and of the taught spaces, and `aucs` say how
    well distance in each tells held-out pairs apart, NaN without folds.
    """

    spaces: TaughtSpaces
    seen: Seen
    folds: tuple[Fold, ...]
    drawn: PairFolds | None
    shares: Float64
    aucs: Float64

    @classmethod
    def of(
        cls,
        prepared: PreparedRows,
        plain: Rows,
        known: Constraints,
        rng: np.random.Generator,
        *,
        kernel_columns: int = 2,
    ) -> Stack:
        """Teach the spaces, once with all pairs and once for each fold, and weigh them by the held-out pairs.

        `plain` are the rows as they are, of total variance 1.
        """
        seed = int(rng.integers(2**31))
        spaces, seen = prepared.teach(known, seed, kernel_columns=kernel_columns, repeats=REPEATS)
        drawn, folds = None, []
        if min(known.n_must_link, known.n_cannot_link) >= FEWEST_OF_A_KIND:
            drawn = PairFolds.draw_independent(known, FOLDS, rng, keys=prepared.linear.keys(known.rows))
            for train, rest in drawn:
                folds.append(Fold(train, rest, *prepared.teach(train, seed, kernel_columns=kernel_columns)))
        if sum(len(fold.pairs) for fold in folds) < FEWEST_HELD_OUT:
            return cls(spaces, seen, (), None, DEFAULT_SHARES, np.full(len(SPACES), np.nan))
        lengths = np.concatenate([fold.lengths(plain) for fold in folds])
        same = np.concatenate([fold.same for fold in folds])
        weight = np.concatenate([fold.weight for fold in folds])
        effective = effective_answers(known)
        slopes = fit_pair_model(lengths, same, weight * min(1.0, effective / weight.sum())).slopes
        slopes = slopes * lengths.std(axis=0)
        found = slopes / slopes.sum() if slopes.sum() > 0 else DEFAULT_SHARES
        shares = (DEFAULT_COUNTS * DEFAULT_SHARES + effective * found) / (DEFAULT_COUNTS + effective)
        aucs = np.array([auc(column[same], column[~same]) for column in lengths.T])
        return cls(spaces, seen, tuple(folds), drawn, shares, aucs)

    def described(self, names: Sequence[str] = SPACES) -> dict[str, dict[str, float]]:
        """Return how much each of some spaces counts among them, and its held-out AUC."""
        chosen = [SPACES.index(name) for name in names]
        total = float(self.shares[chosen].sum())
        return {
            name: {"weight": float(self.shares[at]) / total, "auc": float(self.aucs[at])}
            for name, at in zip(names, chosen)
        }

    def __iter__(self) -> Iterator[Fold]:
        return iter(self.folds)


def what_answers_decide(space_weights: Mapping[str, Mapping[str, float]], auc: float | None) -> str | None:
    """Return how much answers decide, and what they add; None if there were too few to hold any out.

    The arguments are `space_weights_` and `auc_` of a fitted :class:`~pairlens.PairMap` or :class:`~pairlens.PairLens`.

    >>> what_answers_decide({"linear": {"weight": 1.0, "auc": 0.9}}, 0.97)
    'Your answers decide all of this view. It tells your held-out pairs apart with AUC 0.97.'
    """
    if auc is None or math.isnan(auc):
        return None
    rows = space_weights.get("rows")
    if rows is None:
        return f"Your answers decide all of this view. It tells your held-out pairs apart with AUC {auc:.2f}."
    return (
        f"Your answers decide {1 - rows['weight']:.0%} of this map. The rows alone would tell your held-out pairs "
        f"apart with AUC {rows['auc']:.2f}; what the map has learned does with {auc:.2f}."
    )
