"""Folds over what is known, drawn once, so that several views are compared on the same ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pairlens.exceptions import ConflictWarning
from pairlens.supervision import Constraints

MAX_PAIRS = 20_000
"""Most pairs that take part in a cross-validation; from more, this many are drawn."""
PAIRS_PER_ROW = 2
"""More pairs than this for each row in them imply one another."""


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
    def draw(cls, known: Constraints, n_splits: int, random_state: Any) -> PairFolds:
        """Folds over the pairs: each is held out once, and its rows may be in other pairs that are not.

        Parameters
        ----------
        known : Constraints
            Of more than 20,000 pairs, that many are drawn.
        n_splits : int
            Number of folds; fewer if there are fewer pairs.
        random_state : int, RandomState, Generator or None
        """
        known = _at_most(known, random_state)
        return cls(known, tuple(known.split(min(n_splits, known.n_pairs), random_state)))

    @classmethod
    def draw_rows(cls, known: Constraints, n_splits: int, random_state: Any) -> PairFolds:
        """Folds over the rows in pairs: learnt from are the pairs without a row in the fold, held out all others.

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
        rng = random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)
        rows = rng.permutation(known.rows)
        splits = []
        for fold in np.array_split(rows, min(n_splits, len(rows))):
            out = np.zeros(len(known), dtype=bool)
            out[fold] = True
            must, cannot = (np.asarray(out[pairs].any(axis=1)) for pairs in (known.must_link, known.cannot_link))
            splits.append((_selected(known, ~must, ~cannot), _selected(known, must, cannot)))
        return cls(known, tuple(splits))

    @classmethod
    def draw_independent(cls, known: Constraints, n_splits: int, random_state: Any) -> PairFolds:
        """Folds over the pairs, or over the rows where there are more than two pairs for each row in them.

        Parameters are those of :meth:`draw`.
        """
        draw = cls.draw if known.n_pairs <= PAIRS_PER_ROW * len(known.rows) else cls.draw_rows
        return draw(known, n_splits, random_state)

    def __iter__(self) -> Iterator[tuple[Constraints, Constraints]]:
        return iter(self.splits)

    def __len__(self) -> int:
        return len(self.splits)


def _at_most(known: Constraints, random_state: Any) -> Constraints:
    return known.sample(MAX_PAIRS, random_state) if known.n_pairs > MAX_PAIRS else known


def _selected(known: Constraints, must: NDArray[np.bool_], cannot: NDArray[np.bool_]) -> Constraints:
    """Some of the pairs, with their weights."""
    with warnings.catch_warnings():
        # Contradictions were reported when the constraints were built.
        warnings.simplefilter("ignore", ConflictWarning)
        return Constraints(
            known.must_link[must],
            known.cannot_link[cannot],
            len(known),
            must_link_weight=known.must_link_weight[must],
            cannot_link_weight=known.cannot_link_weight[cannot],
            on_conflict="warn",
        )
