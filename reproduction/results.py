"""Stored results, and the few questions that tables, figures and claims ask of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from pairlens._text import TableWriter
from reproduction.experiment import Column, Experiment, Result, Value
from reproduction.tasks import Store


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


class Results:
    """All results of an experiment, in a fixed order."""

    rows: list[Row]

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = sorted(rows, key=lambda row: (row.set, row.run, row.part))

    @classmethod
    def stored(cls, experiment: Experiment, store: Store) -> Results:
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
        wanted = dict(at or {})
        return self._part(
            row
            for row in self.rows
            if (set is None or row.set == set)
            and (method is None or row.result.method == method)
            and (measure is None or row.result.measure == measure)
            and all(row.result.at.get(key) == value for key, value in wanted.items())
        )

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
