"""What all kinds of answers can do with their answers, whatever these say: mistakes, folds, other numbers of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pairlens._random import as_generator
from pairlens.supervision._algebra import check_n_splits, folds
from pairlens.supervision._aligned import common_n_samples
from pairlens.supervision._pairs import as_n_samples, check_fits
from pairlens.supervision._sampling import check_fraction, draw_distinct
from pairlens.supervision._tabular import TabularAnswers

__all__ = ["AnswerSet"]


class AnswerSet(TabularAnswers):
    """Answers in one or more tables of rows."""

    __slots__ = ()

    _TABLES: ClassVar[tuple[str, ...]]
    """What the tables are called in errors."""

    def _tables(self) -> tuple[Any, ...]:
        """The tables that are stored, one for each of `_TABLES`."""
        raise NotImplementedError

    def _listed(self) -> tuple[Any, ...]:
        """The tables with every answer in them, also those that are stored in another way."""
        return self._tables()

    def _with(self, *tables: Any) -> Self:
        """The same rows with other answers, which are checked already."""
        raise NotImplementedError

    def _turned(self, tables: tuple[Any, ...], chosen: list[NDArray[np.bool_]]) -> tuple[Any, ...]:
        """The tables with the chosen answers turned into their opposites."""
        raise NotImplementedError

    def _resized(self, n_samples: int | None) -> Self:
        """The same answers about another number of rows."""
        raise NotImplementedError

    @property
    def _n_rows(self) -> int:
        if self._n_samples is not None:
            return self._n_samples
        return max(table.n_rows for table in self._tables())

    def with_n_samples(self, n_samples: int) -> Self:
        """The same answers, for an X of `n_samples` rows.

        Parameters
        ----------
        n_samples : int
            Number of rows of X, more than the largest row number.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([(0, 4)]).with_n_samples(6)
        Constraints(1 must-link, 0 cannot-links over 6 rows)
        """
        size = as_n_samples(n_samples)
        self._check_fits(size)
        return self._resized(size)

    def _check_fits(self, n_samples: int | None) -> None:
        for table, name in zip(self._tables(), self._TABLES):
            check_fits(table.members, n_samples, name=name)

    def flip(self, fraction: float, random_state: Any = None) -> Self:
        """Answers with mistakes: a random share of them becomes the opposite.

        A must-link becomes a cannot-link and the other way round; of a preference the worse row becomes the
        better, of a comparison the farther pair the closer.

        Parameters
        ----------
        fraction : float
            The share, in [0, 1], of all answers.
        random_state : int, RandomState, Generator or None, default=None
            Makes the draw repeatable.

        Examples
        --------
        >>> from pairlens.supervision import Constraints, Preferences
        >>> Constraints([(0, 1), (2, 3)], n_samples=4).flip(0.5, random_state=0)
        Constraints(1 must-link, 1 cannot-link over 4 rows)
        >>> Preferences([(0, 1), (2, 3)], n_samples=4).flip(1).pairs
        array([[1, 0],
               [3, 2]])
        """
        tables = self._listed()
        sizes = [table.size for table in tables]
        chosen = np.zeros(sum(sizes), dtype=bool)
        count = round(check_fraction(fraction, zero=True) * len(chosen))
        chosen[draw_distinct(len(chosen), count, as_generator(random_state))] = True
        return self._with(*self._turned(tables, np.split(chosen, np.cumsum(sizes)[:-1])))

    def split(self, n_splits: int = 5, random_state: Any = None) -> Iterator[tuple[Self, Self]]:
        """Folds over the answers: (train, held out) answers about the same rows.

        Must-links and cannot-links are each spread evenly over the folds.

        Parameters
        ----------
        n_splits : int, default=5
            Number of folds, from 2 to the number of answers.
        random_state : int, RandomState, Generator or None, default=None
            Makes the folds repeatable.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> pairs = Constraints([(0, 1), (1, 2), (3, 4)], [(0, 4)], n_samples=5)
        >>> [held_out.n_pairs for train, held_out in pairs.split(2, random_state=0)]
        [2, 2]
        """
        tables = self._listed()
        sizes = tuple(table.size for table in tables)
        number = check_n_splits(n_splits, sum(sizes))
        return (
            (
                self._with(*(table.select(~mask) for table, mask in zip(tables, held_out))),
                self._with(*(table.select(mask) for table, mask in zip(tables, held_out))),
            )
            for held_out in folds(sizes, number, as_generator(random_state))
        )

    def _merged_n_samples(self, kind: type[AnswerSet], others: tuple[Any, ...]) -> int | None:
        """The number of rows of all that are merged; TypeError if one of them is not of this kind."""
        for other in others:
            if not isinstance(other, kind):
                raise TypeError(f"merge takes {kind.__name__}, got {type(other).__name__}")
        return common_n_samples(self._n_samples, *(other._n_samples for other in others))
