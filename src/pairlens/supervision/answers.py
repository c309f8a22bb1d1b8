"""Files and data frames of answers of all kinds: the one format that the library and the command line read and write.

A table has one answer per row, with these columns:

a, b
    The two rows, by number from 0 on or by id.
kind (or link)
    must-link (must, same, true, 1), cannot-link (cannot, different, false, -1), or prefer (better, >): a is better.
weight
    How much the answer counts; 1 where the table does not say.

Preferences alone may have the columns better and worse in place of a, b and kind. Files are CSV or TSV with a header,
separated by commas, semicolons, tabs or bars, or JSON lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.exceptions import AnswerError
from pairlens.supervision._conflicts import OnConflict
from pairlens.supervision._entries import ANSWER_KINDS, ENDS, KIND_COLUMNS, read_kinds, read_rows, read_weights
from pairlens.supervision._pairs import IntArray
from pairlens.supervision._tables import Table, file_format, read_file, write_file
from pairlens.supervision.constraints import Constraints
from pairlens.supervision.preferences import Preferences

__all__ = ["ANSWER_KINDS", "AnswerFile", "Answers", "file_format", "listed_answers", "read_answers", "write_answers"]

WEIGHT = "weight"


@dataclass(frozen=True)
class Answers:
    """Answers of all kinds about the same rows.

    Attributes
    ----------
    constraints : Constraints
        Which rows belong together and which do not.
    preferences : Preferences
        Which row is better.
    """

    constraints: Constraints
    preferences: Preferences

    def counts(self) -> dict[str, int]:
        """Number of distinct pairs of each kind."""
        return {
            "must_link": self.constraints.n_must_link,
            "cannot_link": self.constraints.n_cannot_link,
            "prefer": self.preferences.n_pairs,
        }


@dataclass(frozen=True)
class AnswerFile:
    """The lines of a file of answers, before it is known which rows of X they are about.

    Attributes
    ----------
    kind : array of str
        One of :data:`ANSWER_KINDS` for every line.
    weight : array of float or None
        The weight of every line; None where the file has none.
    """

    _table: Table
    kind: NDArray[Any]
    weight: NDArray[np.float64] | None

    @classmethod
    def read(cls, path: str | PathLike[str]) -> AnswerFile:
        """Read the lines of a file."""
        source = read_file(path)
        if not source.names:
            raise AnswerError(f"{source.title} is empty", "it should hold one answer per line", file=source.file)
        column = source.find(*KIND_COLUMNS) or KIND_COLUMNS[0]
        table = source.table((*ENDS, column), WEIGHT)
        return cls(table, read_kinds(table, column, preferences=True), read_weights(table, WEIGHT))

    @property
    def ends(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """What stands in the columns a and b."""
        return self._table.columns["a"], self._table.columns["b"]

    @property
    def names(self) -> NDArray[Any]:
        """The distinct rows that the lines name, as text."""
        named = [column.astype(str) for column in self.ends]
        return np.unique(np.concatenate(named)) if len(self.kind) else np.empty(0, dtype=str)

    def rows(self, ids: ArrayLike | None, n_samples: int | None) -> IntArray:
        """The numbers of the two rows of every line, shape (n_lines, 2)."""
        return read_rows(self._table, ENDS, ids, n_samples)[0]

    def answers(self, ids: ArrayLike | None, n_samples: int | None, on_conflict: OnConflict = None) -> Answers:
        """The lines as answers about rows; see :func:`read_answers`."""
        rows, size = read_rows(self._table, ENDS, ids, n_samples)
        must, cannot, prefer = (self.kind == kind for kind in ANSWER_KINDS)

        def weight(chosen: NDArray[np.bool_]) -> NDArray[np.float64] | None:
            return None if self.weight is None else self.weight[chosen]

        constraints = Constraints(
            rows[must],
            rows[cannot],
            size,
            must_link_weight=weight(must),
            cannot_link_weight=weight(cannot),
            on_conflict=on_conflict,
        )
        return Answers(constraints, Preferences(rows[prefer], size, weight=weight(prefer), on_conflict=on_conflict))


def read_answers(
    path: str | PathLike[str],
    *,
    ids: ArrayLike | None = None,
    n_samples: int | None = None,
    on_conflict: OnConflict = None,
) -> Answers:
    """Read a file of must-links, cannot-links and preferences.

    Parameters
    ----------
    path : str or path
        A file with the columns a, b, kind and perhaps weight; see :mod:`pairlens.supervision.answers`.
    ids : array-like of shape (n_samples,), default=None
        Names of the rows of X, in order, where the file names rows. It holds row numbers if None.
    n_samples : int, default=None
        Number of rows of X, ``len(ids)`` where `ids` is given.
    on_conflict : {"raise", "warn", "drop"}, default=None
        See :class:`~pairlens.Constraints`.

    Returns
    -------
    Answers
        With the attributes ``constraints`` and ``preferences``.

    Raises
    ------
    AnswerError
        If the file or an entry of it cannot be read; it holds the file, the line, the column and the value.

    See Also
    --------
    Constraints.from_file, Preferences.from_file : Files of one kind.

    Examples
    --------
    >>> import os, tempfile
    >>> from pairlens.supervision import read_answers
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "answers.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("a;b;kind\\nx;y;same\\ny;z;different\\nz;x;prefer\\n")
    ...     answers = read_answers(path, ids=["x", "y", "z"])
    >>> answers.constraints
    Constraints(1 must-link, 1 cannot-link over 3 rows)
    >>> answers.preferences.pairs
    array([[2, 0]])
    """
    return AnswerFile.read(path).answers(ids, n_samples, on_conflict)


def listed_answers(known: Constraints | Preferences) -> tuple[IntArray, NDArray[Any], NDArray[np.float64]]:
    """The rows of each answer, shape (n_answers, 2), its kind and its weight."""
    if isinstance(known, Preferences):
        return known.pairs, np.repeat(ANSWER_KINDS[2], known.n_pairs), known.weight
    pairs = np.concatenate([known.must_link, known.cannot_link])
    kind = np.repeat(ANSWER_KINDS[:2], [known.n_must_link, known.n_cannot_link])
    return pairs, kind, np.concatenate([known.must_link_weight, known.cannot_link_weight])


def write_answers(
    path: str | PathLike[str],
    a: NDArray[Any],
    b: NDArray[Any],
    kind: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
) -> None:
    """Write a file of answers of all kinds, whole or not at all.

    Parameters
    ----------
    path : str or path
        Where to; the ending (.csv, .tsv, .jsonl, .ndjson) says which kind.
    a, b : arrays of shape (n_answers,)
        Numbers or ids of the two rows.
    kind : array of shape (n_answers,)
        One of :data:`ANSWER_KINDS` each.
    weight : array of shape (n_answers,), default=None
        Left out where all are 1.
    """
    columns: dict[str, NDArray[Any]] = {"a": a, "b": b, "kind": kind}
    if weight is not None and not (weight == 1).all():
        columns[WEIGHT] = weight
    write_file(path, columns)
