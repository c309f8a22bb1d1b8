"""Define what all kinds of answers share: immutable, aligned with the rows of X, split, flipped, and kept in files."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._optional import require
from pairlens._sklearn import as_generator, check_routing
from pairlens.supervision.answers import AnswerColumns, read_file, read_frame, write_file
from pairlens.supervision.conflicts import OnConflict
from pairlens.supervision.inputs import as_n_samples, as_rows, check_count, check_fraction, check_rows, common_n_samples
from pairlens.supervision.pairs import AnswerTable, IntArray, draw_distinct, freeze


class AnswerSet:
    """Hold answers about rows in one or more tables; scikit-learn slices it like an array with an entry per row."""

    __slots__ = ("_n_samples", "_tables")
    _n_samples: int | None
    _tables: tuple[AnswerTable, ...]

    _ARGUMENTS: ClassVar[tuple[str, ...]]
    """The argument of ``__init__`` that each table comes from."""
    _KINDS: ClassVar[tuple[str, ...]]
    """The name of one answer of each table."""
    _EXAMPLE: ClassVar[str]
    """How to build one, for errors."""

    # Without this, Python would iterate by asking for [0], [1], ...
    __iter__: ClassVar[None] = None

    def _with(self, *tables: AnswerTable) -> Self:
        """Return other answers, which are checked already, about the same rows."""
        return self._derived(_tables=tables, _n_samples=self._n_samples)

    def _listed(self) -> tuple[AnswerTable, ...]:
        """Return the tables with every answer in them, also those that are stored in another way."""
        return self._tables

    def _sizes(self) -> tuple[int, ...]:
        """Return the number of answers of each kind."""
        return tuple(table.size for table in self._tables)

    def _take(self, rows: IntArray) -> Self:
        """Return the answers among some rows, renumbered."""
        raise NotImplementedError

    def _flipped(self, tables: tuple[AnswerTable, ...], chosen: list[NDArray[np.bool_]]) -> tuple[AnswerTable, ...]:
        """Return the tables with the chosen answers turned into their opposites."""
        raise NotImplementedError

    def _columns(self, ids: ArrayLike | None) -> dict[str, NDArray[Any]]:
        """Return the columns of a file of the answers; `ids` name the rows."""
        raise NotImplementedError

    @classmethod
    def _read(cls, table: AnswerColumns, ids: ArrayLike | None, n_samples: int | None, on_conflict: OnConflict) -> Self:
        """Read the answers of a table."""
        raise NotImplementedError

    def _fill(self, **values: Any) -> None:
        if hasattr(self, "_n_samples"):
            raise AttributeError(
                f"{type(self).__name__} are immutable: __init__ cannot be called again; build new ones"
            )
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _derived(cls, **values: Any) -> Self:
        """Return an object of parts that are checked already."""
        new = object.__new__(cls)
        new._fill(**values)
        return new

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
        _freeze_all(tuple(state.values()))
        self._fill(**state)

    @property
    def n_samples(self) -> int | None:
        """Number of rows of the X that the row numbers refer to, None if it is unknown."""
        return self._n_samples

    @property
    def _n_rows(self) -> int:
        if self._n_samples is not None:
            return self._n_samples
        return max(table.n_rows for table in self._tables)

    @property
    def shape(self) -> tuple[int]:
        """The shape ``(n_samples,)``, by which scikit-learn sees that it must slice this along with X."""
        return (len(self),)

    def __len__(self) -> int:
        if self._n_samples is None:
            raise TypeError(
                f"these {type(self).__name__} do not know how many rows X has, so they cannot be sliced along with it; "
                "give n_samples=len(X) when building them, or call .with_n_samples(len(X))"
            )
        return self._n_samples

    def __bool__(self) -> bool:
        # Python would ask for the length, which may be unknown.
        return True

    def __getitem__(self, rows: Any) -> Self:
        """Return the answers among some rows, renumbered in the order of a list, mask, slice or ``(rows, ...)``.

        Where a row comes more than once (a bootstrap sample), every copy of it inherits its answers; the copies are
        linked with each other only where labels say so.
        """
        check_routing(type(self).__name__.lower())
        return self._take(as_rows(rows, len(self)))

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        """Raise a TypeError: answers are not an array of labels."""
        name = type(self).__name__
        raise TypeError(f"{name} are not labels: pass {name.lower()}= to fit, as in fit(X, {name.lower()}=...)")

    def __repr__(self) -> str:
        rows = "an unknown number of rows" if self._n_samples is None else f"{self._n_samples} rows"
        counts = (f"{size} {name}{'' if size == 1 else 's'}" for size, name in zip(self._sizes(), self._KINDS))
        return f"{type(self).__name__}({', '.join(counts)} over {rows})"

    def with_n_samples(self, n_samples: int) -> Self:
        """Return the same answers, for an X of `n_samples` rows.

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
        for table, name in zip(self._tables, self._ARGUMENTS):
            check_rows(table.members, size, name)
        return self._resized(size)

    def _resized(self, n_samples: int | None) -> Self:
        return self._derived(_tables=self._tables, _n_samples=n_samples)

    def where(self, *chosen: NDArray[np.bool_]) -> Self:
        """Return some of the answers, about the same rows: one mask for each kind, in the order they are listed in."""
        return self._with(*(table.select(mask) for table, mask in zip(self._listed(), chosen, strict=True)))

    def flip(self, fraction: float, random_state: Any = None) -> Self:
        """Return answers with mistakes: a random share of them becomes the opposite.

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
        return self._with(*self._flipped(tables, np.split(chosen, np.cumsum(sizes)[:-1])))

    def split(self, n_splits: int = 5, random_state: Any = None) -> Iterator[tuple[Self, Self]]:
        """Return folds over the answers: (train, held out) answers about the same rows.

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
        sizes = [table.size for table in tables]
        number = check_count(n_splits, "n_splits", least=2, most=sum(sizes), of="answers")
        rng = as_generator(random_state)
        # The next table goes on where the last one ended, so that the folds differ by one answer at most.
        offsets = np.cumsum([0, *sizes])
        fold_of = [(rng.permutation(size) + offset) % number for size, offset in zip(sizes, offsets)]
        return (
            (
                self._with(*(table.select(fold != k) for table, fold in zip(tables, fold_of))),
                self._with(*(table.select(fold == k) for table, fold in zip(tables, fold_of))),
            )
            for k in range(number)
        )

    def _merged_n_samples(self, kind: type[AnswerSet], others: tuple[Any, ...]) -> int | None:
        """Return the number of rows of all that are merged; TypeError if one of them is not of this kind."""
        for other in others:
            if not isinstance(other, kind):
                raise TypeError(f"merge takes {kind.__name__}, got {type(other).__name__}")
        return common_n_samples(self._n_samples, *(other._n_samples for other in others))

    def to_frame(self, ids: ArrayLike | None = None) -> Any:
        """Return a pandas DataFrame with one answer per row.

        The columns of Constraints are a, b, link ("must" or "cannot") and weight, those of Preferences better, worse
        and weight.

        Parameters
        ----------
        ids : array-like of shape (n_samples,), default=None
            Names of the rows of X, in place of row numbers.

        Examples
        --------
        >>> from pairlens.supervision import Constraints, Preferences
        >>> Constraints([(0, 1)], [(1, 2)], n_samples=3).to_frame(ids=["x", "y", "z"])
           a  b    link  weight
        0  x  y    must     1.0
        1  y  z  cannot     1.0
        >>> Preferences([(2, 0)], n_samples=3).to_frame(ids=["x", "y", "z"])
          better worse  weight
        0      z     x     1.0
        """
        pandas = require("pandas", extra="io", purpose=f"{type(self).__name__}.to_frame")
        return pandas.DataFrame(self._columns(ids))

    def to_file(self, path: str | PathLike[str], ids: ArrayLike | None = None) -> None:
        """Write a CSV (.csv), TSV (.tsv) or JSON-lines (.jsonl, .ndjson) file with the columns of :meth:`to_frame`.

        Parameters
        ----------
        path : str or path
            Where to; the ending of the name chooses the format.
        ids : array-like of shape (n_samples,), default=None
            Names of the rows of X, in place of row numbers.

        Examples
        --------
        >>> import os, tempfile
        >>> from pairlens.supervision import Constraints
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "answers.csv")
        ...     Constraints([(0, 1)], n_samples=3).to_file(path)
        ...     Constraints.from_file(path, n_samples=3)
        Constraints(1 must-link, 0 cannot-links over 3 rows)
        """
        write_file(path, self._columns(ids))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        ids: ArrayLike | None = None,
        n_samples: int | None = None,
        on_conflict: OnConflict = None,
    ) -> Self:
        """Read answers from a table with one of them per row.

        The columns of Constraints are ``a`` and ``b``, the two rows, and ``kind`` (or ``link``), the answer: must-link
        (must, same, true, 1) or cannot-link (cannot, different, false, -1). Those of Preferences are ``better`` and
        ``worse``; or a, b and kind with the word prefer. Those of Triplets are a, near and far, those of Quadruplets a,
        b, c and d. The column ``weight`` may be missing. Constraints also take a label table of Splink:
        ``unique_id_l``, ``unique_id_r`` and ``clerical_match_score``.

        Parameters
        ----------
        frame : DataFrame or mapping
            A pandas, polars or other table with named columns.
        ids : array-like of shape (n_samples,), default=None
            Names of the rows of X, in order, where the table names rows. It holds row numbers if None.
        n_samples : int, default=None
            Number of rows of X, ``len(ids)`` where `ids` is given.
        on_conflict : {"raise", "warn", "drop"}, default=None
            See the class.

        Examples
        --------
        >>> from pairlens.supervision import Constraints, Preferences
        >>> answers = {"a": ["x", "y"], "b": ["y", "z"], "kind": ["same", "different"]}
        >>> Constraints.from_frame(answers, ids=["x", "y", "z"]).to_lists()
        ([(0, 1)], [(1, 2)])
        >>> Preferences.from_frame({"better": [2], "worse": [0]}).pairs
        array([[2, 0]])
        """
        return cls._read(read_frame(frame), ids, n_samples, on_conflict)

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        ids: ArrayLike | None = None,
        n_samples: int | None = None,
        on_conflict: OnConflict = None,
    ) -> Self:
        """Read answers from a CSV or TSV file with a header (.csv, .tsv) or a JSON-lines file (.jsonl, .ndjson).

        Cells may be separated by commas, semicolons, tabs or bars.

        Parameters
        ----------
        path : str or path
            The file.
        ids, n_samples, on_conflict
            As for :meth:`from_frame`. Ids that are numbers in `ids` and text in the file, or the other way round,
            are compared as text. An answer weighs 1 where its line has no weight: an empty cell in a CSV file, none or
            null in a JSON line.

        Raises
        ------
        AnswerError
            If the file or an entry of it cannot be read; it holds the file, the line, the column and the value.

        Examples
        --------
        See :meth:`to_file`.
        """
        return cls._read(read_file(path), ids, n_samples, on_conflict)


def _freeze_all(parts: tuple[Any, ...]) -> None:
    for part in parts:
        if isinstance(part, np.ndarray):
            freeze(part)
        elif isinstance(part, tuple):
            _freeze_all(part)
