"""Files of answered pairs: CSV or JSON lines with the columns a, b, kind and perhaps weight."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._atomic import atomic_path
from pairlens.io._csv import sniff
from pairlens.supervision import Constraints, Preferences
from pairlens.supervision import _tables as tables
from pairlens.supervision._conflicts import OnConflict

__all__ = ["KINDS", "Answers", "RawPairs", "read_preferences", "read_raw", "resolve", "write_pairs"]

KINDS = ("must-link", "cannot-link", "prefer")
"""The words of the column `kind`: together, apart, and a over b."""

NAMES = ("kind", "link")
"""What the column may be called."""

PREFER = ("prefer", "preferred", "preference", "better", ">")


@dataclass(frozen=True)
class RawPairs:
    """The lines of a file, before anybody knows which rows they are about.

    Attributes
    ----------
    source : str
        Name of the file.
    table : Table
        The columns a, b, kind and, if the file has it, weight.
    kind : array of str
        One of :data:`KINDS` for every line.
    """

    source: str
    table: tables.Table
    kind: NDArray[Any]

    def part(self, wanted: NDArray[np.bool_]) -> tables.Table:
        """Some of the lines."""
        lines = np.flatnonzero(wanted)
        columns = {name: values[wanted] for name, values in self.table.columns.items()}
        return tables.Table(columns, lambda row: self.table.place(int(lines[row])))

    @property
    def names(self) -> NDArray[Any]:
        """The distinct rows that the lines name, as text."""
        columns = [self.table.columns[end].astype(str) for end in ("a", "b")]
        return np.unique(np.concatenate(columns)) if columns[0].size else np.empty(0, dtype=str)


@dataclass(frozen=True)
class Answers:
    """What a file says about the rows of a table."""

    constraints: Constraints
    preferences: Preferences

    @property
    def count(self) -> int:
        """Number of distinct pairs."""
        return self.constraints.n_pairs + self.preferences.n_pairs


def read_raw(path: str | Path) -> RawPairs:
    """Read the lines of a file of pairs."""
    source = Path(path)
    table = _read(source, ("a", "b"), NAMES)
    words = np.char.lower(np.char.strip(table.columns["kind"].astype(str)))
    preferred = np.isin(words, PREFER)
    rest = RawPairs(source.name, table, words).part(~preferred)
    kind = np.full(len(words), KINDS[2], dtype="<U11")
    try:
        kind[~preferred] = np.where(tables.read_links(rest, "kind"), KINDS[0], KINDS[1])
    except ValueError as error:
        raise ValueError(
            f"{str(error).partition(': expected')[0]}: expected must-link, cannot-link or prefer"
        ) from None
    return RawPairs(source.name, table, kind)


def read_preferences(
    path: str | Path, ids: NDArray[Any] | None, n_rows: int, on_conflict: OnConflict = None
) -> Preferences:
    """Read a file of preferences: the columns better and worse, or those of a file of pairs with the kind prefer."""
    source = Path(path)
    if {"better", "worse"} <= set(_names(source)):
        table = _read(source, ("better", "worse"), ())
        pairs, _ = _ends(table, ("better", "worse"), ids, n_rows)
        weight = tables.read_weights(table, "weight")
        return Preferences(pairs, n_rows, weight=weight, on_conflict=on_conflict)
    raw = read_raw(source)
    others = int((raw.kind != KINDS[2]).sum())
    if others:
        raise ValueError(f"{source.name} has {others} lines of other kinds than prefer: give it by --pairs")
    return resolve(raw, ids, n_rows, on_conflict).preferences


def resolve(raw: RawPairs, ids: NDArray[Any] | None, n_rows: int, on_conflict: OnConflict = None) -> Answers:
    """The lines as pairs of rows.

    Parameters
    ----------
    raw : RawPairs
    ids : array of shape (n_rows,), optional
        Names of the rows; the lines hold row numbers, counted from 0, without it.
    n_rows : int
        Number of rows.
    on_conflict : {"raise", "warn", "drop"}, optional
        See :class:`~pairlens.Constraints`.
    """
    parts = []
    for kind in KINDS:
        table = raw.part(raw.kind == kind)
        pairs, _ = _ends(table, ("a", "b"), ids, n_rows)
        parts.append((pairs, tables.read_weights(table, "weight")))
    (must, must_weight), (cannot, cannot_weight), (better, better_weight) = parts
    constraints = Constraints(
        must,
        cannot,
        n_rows,
        must_link_weight=must_weight,
        cannot_link_weight=cannot_weight,
        on_conflict=on_conflict,
    )
    return Answers(constraints, Preferences(better, n_rows, weight=better_weight, on_conflict=on_conflict))


def write_pairs(
    path: str | Path, a: NDArray[Any], b: NDArray[Any], kind: NDArray[Any], weight: NDArray[np.float64] | None = None
) -> None:
    """Write a file of pairs, whole or not at all."""
    columns: dict[str, NDArray[Any]] = {"a": a, "b": b, "kind": kind}
    if weight is not None and not (weight == 1).all():
        columns["weight"] = weight
    with atomic_path(path) as partial:
        tables.write_file(partial, columns)


def _ends(
    table: tables.Table, names: tuple[str, str], ids: NDArray[Any] | None, n_rows: int
) -> tuple[NDArray[np.int64], int | None]:
    try:
        return tables.read_ends(table, names, ids, n_rows)
    except ValueError as error:
        text = str(error)
        if ids is None and "row number" in text:
            text = text.replace("; to name rows otherwise, give ids", "")
            text += "; if the lines name rows by an id, say which column of the data holds it with --id"
        raise ValueError(text.replace("ids has no such id", "the data has no such id")) from None


def _read(path: Path, ends: tuple[str, str], kinds: tuple[str, ...]) -> tables.Table:
    """The two ends, the kind under the name "kind" if there are kinds, and the weight if there is one."""
    header = _names(path)
    kind = next((name for name in kinds if name in header), None)
    wanted = [*ends, *([] if kind is None else [kind])]
    if (kinds and kind is None) or any(name not in header for name in ends):
        expected = ",".join([*ends, *kinds[:1]])
        raise ValueError(
            f"{path.name} must start with the header {expected} (and perhaps weight), but starts with "
            f"{','.join(header)[:60]!r}"
            if header
            else f"{path.name} is empty"
        )
    if path.suffix.lower() in (".csv", ".tsv"):
        text = _with_commas(tables._text(path), path)
        lines, columns = tables._read_csv(text, path.name, tuple(wanted), "weight")
        table = tables.Table(
            {name: np.array(values, dtype=str) for name, values in columns.items()},
            lambda row: f"line {lines[row]} of {path.name}",
        )
    else:
        table = tables.read_file(path, tuple(wanted), "weight")
    renamed = {("kind" if name == kind else name): values for name, values in table.columns.items()}
    return tables.Table(renamed, table.place)


def _names(path: Path) -> list[str]:
    """The names of the columns of a CSV file, or of the entries of the first line of JSON."""
    if path.suffix.lower() in (".csv", ".tsv"):
        if not tables._text(path).strip():
            raise ValueError(f"{path.name} is empty")
        try:
            return list(sniff(path).names)
        except ValueError as error:
            if "no header" in str(error) or "columns named" in str(error):
                raise ValueError(f"{path.name} must start with the header a,b,kind (and perhaps weight)") from None
            raise
    suffix = path.suffix.lower()
    if suffix not in (".jsonl", ".ndjson"):
        raise ValueError(f"{path.name} must end in .csv, .tsv, .jsonl or .ndjson to be read as pairs")
    for number, line in enumerate(io.StringIO(tables._text(path), newline=None), start=1):
        if line.strip():
            return list(tables._json_object(line, number, path.name))
    raise ValueError(f"{path.name} is empty")


def _with_commas(text: str, path: Path) -> str:
    delimiter = sniff(path).delimiter
    if delimiter == ",":
        return text
    result = io.StringIO()
    csv.writer(result, lineterminator="\n").writerows(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    return result.getvalue()
