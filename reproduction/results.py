"""Stored results, and the few questions that tables, figures and claims ask of them."""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from pairlens._atomic import write_atomically
from pairlens._text import TableWriter
from reproduction.experiment import Column, Experiment, Result, Unit, Value
from reproduction.tasks import Store

STORED = Path(__file__).parent / "stored"
"""Folder of the results of the full profile that are in the repository."""
DIGITS = 6
"""Significant digits of a stored number."""


R = TypeVar("R")


class Found(Protocol):
    """Where results are found: a :class:`Store`, or an :class:`Archive`."""

    def read(self, task: Unit, parse: Callable[[Any], R]) -> list[R] | None:
        """Return the results of a unit, or None if it is not finished."""

    def unfinished(self, tasks: Iterable[Unit]) -> list[Unit]:
        """Return the units without results."""


class Archive:
    """The results of the full profile in the repository: one file for each paper, with the day of each experiment.

    Results are kept under the fingerprint of what was run, as in a :class:`Store`: those of an experiment that is
    defined otherwise now are not found. Units of one set mostly have the same methods, measures and conditions, which
    are written once.
    """

    def __init__(self, folder: Path = STORED) -> None:
        self.folder = folder
        self._groups: dict[str, Any] = {}
        for path in sorted(folder.glob("*.json.gz")):
            self._groups |= json.loads(gzip.decompress(path.read_bytes()))

    def read(self, task: Unit, parse: Callable[[Any], R]) -> list[R] | None:
        """Return the results of a unit, or None if it is not there."""
        group, _, name = task.key.partition("/")
        for block in self._groups.get(group, {"blocks": []})["blocks"]:
            if name in block["units"]:
                return [
                    parse([*what, value]) for what, value in zip(block["results"], block["units"][name], strict=True)
                ]
        return None

    def unfinished(self, tasks: Iterable[Unit]) -> list[Unit]:
        """Return the units without results."""
        return [task for task in tasks if not self._has(task)]

    def _has(self, task: Unit) -> bool:
        group, _, name = task.key.partition("/")
        return any(name in block["units"] for block in self._groups.get(group, {"blocks": []})["blocks"])

    def date(self, experiment: Experiment) -> str:
        """Return the day on which the last of its results was computed."""
        groups = {unit.key.partition("/")[0] for unit in experiment.units()}
        return max((self._groups[group]["date"] for group in groups if group in self._groups), default="")

    def add(self, name: str, experiments: Iterable[Experiment], store: Store) -> None:
        """Write the file of a paper: what its experiments have in the store, and else what was there before."""
        kept: dict[str, Any] = {}
        for experiment in experiments:
            for unit in experiment.units():
                group, _, place = unit.key.partition("/")
                new = store.read(unit, list)
                rows = new if new is not None else self.read(unit, list)
                if rows is None:
                    continue
                found = kept.setdefault(group, {"date": self._groups.get(group, {"date": ""})["date"], "blocks": []})
                if new is not None:
                    found["date"] = max(found["date"], _day(store.path(unit)))
                _put(found["blocks"], place, rows)
        self._groups |= kept
        text = json.dumps(kept, separators=(",", ":"), sort_keys=True)
        # Without a time in the file, equal results give equal bytes.
        write_atomically(self.folder / f"{name}.json.gz", gzip.compress(text.encode(), mtime=0))


def _put(blocks: list[Any], place: str, rows: list[Any]) -> None:
    """Put the results of a unit to those with the same methods, measures and conditions."""
    what = [list(row[:-1]) for row in rows]
    block = next((one for one in blocks if one["results"] == what), None)
    if block is None:
        block = {"results": what, "units": {}}
        blocks.append(block)
    block["units"][place] = [_short(row[-1]) for row in rows]


def _day(path: Path) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(path.stat().st_mtime))


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True)
class Row:
    """One result with where it is from."""

    set: str
    run: int
    part: int
    result: Result


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation of some results, and the value of the condition that was best."""

    mean: float
    std: float
    count: int
    best_at: Value | None = None


INDEXED = 2000
"""Of more results an index is made."""


def _key(row: Row) -> tuple[str, str, str]:
    return row.set, row.result.method, row.result.measure


def _fits(key: tuple[str, str, str], asked: tuple[str | None, str | None, str | None]) -> bool:
    return asked[0] in (None, key[0]) and asked[1] in (None, key[1]) and asked[2] in (None, key[2])


def _order(row: Row) -> tuple[str, int, int]:
    return row.set, row.run, row.part


class Results:
    """All results of an experiment, in a fixed order."""

    rows: list[Row]

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = sorted(rows, key=_order)

    @classmethod
    def stored(cls, experiment: Experiment, store: Found) -> Results:
        """All results of the finished units of an experiment."""
        rows = []
        for unit in experiment.units():
            found = store.read(unit, Result.from_json) or []
            rows += [Row(unit.data.name, unit.run, unit.part, one) for one in found]
        return cls(rows)

    @classmethod
    def _part(cls, rows: Iterable[Row]) -> Self:
        """Some rows of sorted ones."""
        part = cls.__new__(cls)
        part.rows = list(rows)
        return part

    def __len__(self) -> int:
        return len(self.rows)

    def select(
        self,
        *,
        set: str | None = None,
        method: str | None = None,
        measure: str | None = None,
        at: Mapping[str, Value] | None = None,
    ) -> Results:
        """Those of a data set, a method, a measure, under some conditions."""
        asked = (set, method, measure)
        if asked == (None, None, None):
            found = self
        elif len(self.rows) > INDEXED:
            found = self._part(chain.from_iterable(part for key, part in self._index.items() if _fits(key, asked)))
            found.rows.sort(key=_order)
        else:
            found = self._part(row for row in self.rows if _fits(_key(row), asked))
        if not at:
            return found
        wanted = dict(at).items()
        return self._part(row for row in found.rows if wanted <= row.result.at.items())

    @cached_property
    def _index(self) -> dict[tuple[str, str, str], list[Row]]:
        """Rows by set, method and measure."""
        found: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.rows:
            found.setdefault(_key(row), []).append(row)
        return found

    def values(self, key: str) -> list[Value]:
        """The values of a condition that occur, numbers in order."""
        found = {row.result.at[key] for row in self.rows if key in row.result.at}
        return sorted(found, key=lambda value: (isinstance(value, str), value))

    def methods(self) -> list[str]:
        """The methods that occur, in the order of first occurrence."""
        return list(dict.fromkeys(row.result.method for row in self.rows))

    def numbers(self) -> np.ndarray:
        """The values, without those that are not there (NaN)."""
        numbers = np.array([row.result.value for row in self.rows], dtype=np.float64)
        return numbers[~np.isnan(numbers)]

    def cell(self, best_over: str = "") -> Cell | None:
        """Mean over all rows, or the best of the means over the values of a condition; None without results."""
        if best_over:
            cells = [(self.select(at={best_over: value}).cell(), value) for value in self.values(best_over)]
            found = [(cell, value) for cell, value in cells if cell is not None]
            if not found:
                return None
            cell, value = max(found, key=lambda pair: pair[0].mean)
            return Cell(cell.mean, cell.std, cell.count, value)
        numbers = self.numbers()
        if not len(numbers):
            return None
        return Cell(float(numbers.mean()), float(numbers.std()), len(numbers))

    def mean(
        self,
        method: str,
        measure: str,
        *,
        set: str | None = None,
        at: Mapping[str, Value] | None = None,
        best_over: str = "",
    ) -> float:
        """The mean, for claims; LookupError without results."""
        cell = self.select(set=set, method=method, measure=measure, at=at).cell(best_over)
        if cell is None:
            raise LookupError(f"no results of {method}, {measure}, on {set or 'any set'} at {dict(at or {})}")
        return cell.mean

    def of_column(self, column: Column) -> Results:
        """The results that a column is about."""
        return self.select(method=column.method, measure=column.measure, at=column.at)

    def filter(self, keep: Callable[[Row], bool]) -> Results:
        """Those for which `keep` is true."""
        return self._part(row for row in self.rows if keep(row))

    def to_csv(self) -> str:
        """One line for each result."""
        keys = list(dict.fromkeys(key for row in self.rows for key in row.result.at))
        text = io.StringIO(newline="")
        writer = TableWriter(text)
        writer.row(["set", "run", "part", "method", "measure", *keys, "value"])
        for row in self.rows:
            one = row.result
            conditions = [one.at.get(key, "") for key in keys]
            writer.row([row.set, row.run, row.part, one.method, one.measure, *conditions, repr(float(one.value))])
        return text.getvalue()
