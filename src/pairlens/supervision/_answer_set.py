"""What all kinds of answers have in common: immutable, aligned with the rows of X, with mistakes and folds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pairlens._sklearn import as_generator
from pairlens.supervision._pairs import IntArray, as_n_samples, as_rows, check_count, check_fits, freeze
from pairlens.supervision._sampling import check_fraction, draw_distinct


class AnswerSet:
    """Answers in one or more tables of rows; immutable, and cut by scikit-learn like an array with an entry per row."""

    __slots__ = ("_n_samples",)
    _n_samples: int | None

    _TABLES: ClassVar[tuple[str, ...]]
    """What the tables are called in errors."""
    _EXAMPLE: ClassVar[str]
    """How to build one, for errors."""

    # Without this, Python would iterate by asking for [0], [1], ...
    __iter__: ClassVar[None] = None

    def _fill(self, **values: Any) -> None:
        if hasattr(self, "_n_samples"):
            raise AttributeError(
                f"{type(self).__name__} are immutable: __init__ cannot be called again; build new ones"
            )
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _derived(cls, **values: Any) -> Self:
        """An object of parts that are checked already."""
        new = object.__new__(cls)
        new._fill(**values)
        return new

    def _take(self, rows: IntArray) -> Self:
        raise NotImplementedError

    @property
    def n_samples(self) -> int | None:
        """Number of rows of the X that the row numbers refer to, None if it is unknown."""
        return self._n_samples

    def _require_n_samples(self) -> int:
        if self._n_samples is None:
            raise TypeError(
                f"these {type(self).__name__} do not know how many rows X has, so they cannot be cut along with it; "
                f"give n_samples=len(X) when building them, or call .with_n_samples(len(X))"
            )
        return self._n_samples

    def __len__(self) -> int:
        return self._require_n_samples()

    @property
    def shape(self) -> tuple[int]:
        """``(n_samples,)``, by which scikit-learn sees that it must cut this along with X."""
        return (self._require_n_samples(),)

    def __getitem__(self, rows: Any) -> Self:
        """The pairs among some rows, renumbered.

        Parameters
        ----------
        rows : array of int, boolean mask, slice, or the tuple ``(rows, ...)``
            The rows to keep, in their new order. Where a row comes more than once (a bootstrap sample), every
            copy of it inherits its pairs; the copies are linked with each other only where labels say so.
        """
        return self._take(as_rows(rows, self._require_n_samples()))

    def __bool__(self) -> bool:
        # Python would ask for the length, which may be unknown.
        return True

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} are immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} are immutable: {name} cannot be deleted")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays come out of a pickle writeable.
        for value in state.values():
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, np.ndarray):
                    freeze(part)
        self._fill(**state)

    def _described_rows(self) -> str:
        return "an unknown number of rows" if self._n_samples is None else f"{self._n_samples} rows"

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
        number = check_count(n_splits, name="n_splits", least=2)
        if number > sum(sizes):
            raise ValueError(f"n_splits={number} folds need at least as many pairs; there are {sum(sizes)}")
        return (
            (
                self._with(*(table.select(~mask) for table, mask in zip(tables, held_out))),
                self._with(*(table.select(mask) for table, mask in zip(tables, held_out))),
            )
            for held_out in _folds(sizes, number, as_generator(random_state))
        )

    def where(self, *chosen: NDArray[np.bool_]) -> Self:
        """Return some of the answers, about the same rows: one mask for each kind, in the order they are listed in."""
        return self._with(*(table.select(mask) for table, mask in zip(self._listed(), chosen, strict=True)))

    def _merged_n_samples(self, kind: type[AnswerSet], others: tuple[Any, ...]) -> int | None:
        """The number of rows of all that are merged; TypeError if one of them is not of this kind."""
        for other in others:
            if not isinstance(other, kind):
                raise TypeError(f"merge takes {kind.__name__}, got {type(other).__name__}")
        return common_n_samples(self._n_samples, *(other._n_samples for other in others))


def common_n_samples(*sizes: int | None) -> int | None:
    """The number of rows on which all agree; None where it is unknown to all."""
    known = sorted({size for size in sizes if size is not None})
    if len(known) > 1:
        raise ValueError(f"n_samples must agree: one side is about {known[0]} rows and another about {known[-1]}")
    return as_n_samples(known[0]) if known else None


def _folds(sizes: tuple[int, ...], n_splits: int, rng: np.random.Generator) -> Iterator[tuple[NDArray[np.bool_], ...]]:
    """For every fold and every table of pairs, the mask of what is held out: each spread evenly."""
    offsets = np.cumsum((0, *sizes))
    # The next table goes on where the last one ended, so that the folds differ by one pair at most.
    fold_of = [(rng.permutation(size) + offset) % n_splits for size, offset in zip(sizes, offsets)]
    return (tuple(fold == k for fold in fold_of) for k in range(n_splits))
