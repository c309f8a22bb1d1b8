"""Answers as data frames and files, for every kind of them."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

from numpy.typing import ArrayLike, NDArray

from pairlens.supervision._answer_set import AnswerSet
from pairlens.supervision._conflicts import OnConflict
from pairlens.supervision._tables import Source, read_file, read_frame, to_dataframe, write_file


class Reading(NamedTuple):
    """How to read a table of answers: the arguments of :meth:`TabularAnswers.from_frame`."""

    renamed: dict[str, str]
    weight: str | None
    ids: ArrayLike | None
    n_samples: int | None
    on_conflict: OnConflict

    def name(self, column: str) -> str:
        """What a column is called in this table."""
        return self.renamed.get(column, column)


class TabularAnswers(AnswerSet):
    """Answers that are read from and written to tables with one answer per row."""

    __slots__ = ()

    _COLUMNS: ClassVar[tuple[str, ...]]
    """The columns of a table, beside that of the weights."""

    def _columns(self, ids: ArrayLike | None) -> dict[str, NDArray[Any]]:
        """The columns of the answers and their weights, rows named by `ids`."""
        raise NotImplementedError

    @classmethod
    def _from_source(cls, source: Source, how: Reading) -> Self:
        """Read the answers of a table."""
        raise NotImplementedError

    def to_frame(self, ids: ArrayLike | None = None) -> Any:
        """A pandas DataFrame with one answer per row.

        The columns of Constraints are a, b, link ("must" or "cannot") and weight, those of Preferences better, worse
        and weight.

        Parameters
        ----------
        ids : array-like of shape (n_samples,), default=None
            Names of the rows of X, to stand in the frame in place of row numbers.

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
        return to_dataframe(self._columns(ids), purpose=f"{type(self).__name__}.to_frame")

    def to_file(self, path: str | PathLike[str], ids: ArrayLike | None = None) -> None:
        """Write a CSV (.csv), TSV (.tsv) or JSON-lines (.jsonl, .ndjson) file with the columns of :meth:`to_frame`.

        Parameters
        ----------
        path : str or path
            Where to; the ending of the name says which kind.
        ids : array-like of shape (n_samples,), default=None
            Names of the rows of X, to stand in the file in place of row numbers.

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
        weight: str | None = "weight",
        on_conflict: OnConflict = None,
        **columns: str,
    ) -> Self:
        """Answers from a table with one of them per row.

        Parameters
        ----------
        frame : DataFrame or mapping
            A pandas, polars or other table with named columns.
        ids : array-like of shape (n_samples,), default=None
            Names of the rows of X, in order, where the table names rows. It holds row numbers if None.
        n_samples : int, default=None
            Number of rows of X, ``len(ids)`` where `ids` is given.
        weight : str or None, default="weight"
            The column of the weights; all weigh 1 where the table does not have it.
        on_conflict : {"raise", "warn", "drop"}, default=None
            See the class.
        **columns : str
            Columns that have another name. Constraints have ``a``, ``b`` and ``link``: the two rows, and the answer
            (must or cannot, must-link or cannot-link, same or different, 1 or -1, true or false), in a column named
            kind or link if nothing is said. Preferences have ``better`` and ``worse``; or, if nothing is said and the
            table has no such columns, a, b and kind with the word prefer.

        Examples
        --------
        >>> from pairlens.supervision import Constraints, Preferences
        >>> answers = {"a": ["x", "y"], "b": ["y", "z"], "kind": ["same", "different"]}
        >>> Constraints.from_frame(answers, ids=["x", "y", "z"]).to_lists()
        ([(0, 1)], [(1, 2)])
        >>> Preferences.from_frame({"won": [2], "lost": [0]}, better="won", worse="lost").pairs
        array([[2, 0]])
        """
        cls._check_names(columns)
        return cls._from_source(read_frame(frame), Reading(columns, weight, ids, n_samples, on_conflict))

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        ids: ArrayLike | None = None,
        n_samples: int | None = None,
        weight: str | None = "weight",
        on_conflict: OnConflict = None,
        **columns: str,
    ) -> Self:
        """Answers from a CSV or TSV file with a header (.csv, .tsv) or a JSON-lines file (.jsonl, .ndjson).

        Cells may be separated by commas, semicolons, tabs or bars.

        Parameters
        ----------
        path : str or path
            The file.
        ids, n_samples, weight, on_conflict, **columns
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
        cls._check_names(columns)
        return cls._from_source(read_file(path), Reading(columns, weight, ids, n_samples, on_conflict))

    @classmethod
    def _check_names(cls, columns: dict[str, str]) -> None:
        for name in columns:
            if name not in cls._COLUMNS:
                raise TypeError(f"{cls.__name__} have no column {name!r}; they have {', '.join(cls._COLUMNS)}")
