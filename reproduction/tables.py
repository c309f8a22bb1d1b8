"""What is shown of the results: paper, measured, difference, and the notes next to the numbers.

:func:`section` makes one structure of an experiment and its results; :mod:`reproduction.markdown` and
:mod:`reproduction.html` write it down. The structure depends on the results only, so equal runs give equal files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reproduction.experiment import FILLS, SCALINGS, Claim, Column, Experiment, Figure, Table, Value
from reproduction.results import Cell, Results

TIMED = (
    "This table holds times: it is not the same from run to run and from machine to machine. Compare ratios inside it."
)


@dataclass(frozen=True)
class Difference:
    """How far the results of a method are from the paper: mean of the absolute differences over `count` numbers."""

    method: str
    mean: float
    count: int
    limit: float | None

    @property
    def reproduced(self) -> bool | None:
        """Whether it is within its limit; None without one."""
        return None if self.limit is None else self.mean <= self.limit

    @property
    def verdict(self) -> str:
        """Whether it is within its limit, in words; empty without one."""
        return {None: "", True: "within", False: "NOT within"}[self.reproduced]


@dataclass(frozen=True)
class Heading:
    """Heading of a row or a column, and the number of its note."""

    text: str
    note: int | None = None


@dataclass(frozen=True)
class Number:
    """What stands in one cell of a table.

    Parameters
    ----------
    cell : Cell or None
        What was measured.
    printed : float or None
        What the paper prints.
    decimals : int
    note : int or None
        Number of its note.
    limit : float or None
        The limit of its method, if the number counts among the differences.
    """

    cell: Cell | None
    printed: float | None = None
    decimals: int = 3
    note: int | None = None
    limit: float | None = None

    @property
    def paper(self) -> str:
        """The paper's number; empty without one."""
        return "" if self.printed is None else f"{self.printed:.{self.decimals}f}"

    @property
    def measured(self) -> str:
        """Mean and standard deviation; empty without results."""
        if self.cell is None:
            return ""
        spread = f" ± {self.cell.std:.{self.decimals}f}" if self.cell.count > 1 else ""
        return f"{self.cell.mean:.{self.decimals}f}{spread}"

    @property
    def difference(self) -> str:
        """Measured less printed, with its sign; empty if one of them is not there."""
        if self.cell is None or self.printed is None:
            return ""
        return f"{self.cell.mean - self.printed:+.{self.decimals}f}"

    @property
    def within(self) -> bool | None:
        """Whether this difference alone is within the limit of its method; None without one."""
        if self.cell is None or self.printed is None or self.limit is None:
            return None
        return abs(self.cell.mean - self.printed) <= self.limit


@dataclass(frozen=True)
class Grid:
    """Numbers in rows and columns."""

    corner: str
    columns: tuple[Heading, ...]
    rows: tuple[tuple[Heading, tuple[Number, ...]], ...]


@dataclass(frozen=True)
class TableShown:
    """A table with what stands around it; note number k is ``notes[k - 1]``."""

    title: str
    text: str
    compared: bool
    best: str
    grid: Grid
    notes: tuple[str, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class FigureShown:
    """A figure: its name among those of the experiment, and the numbers of each panel if it holds curves."""

    name: str
    title: str
    panels: tuple[tuple[str, Grid], ...]


VERDICTS = {
    True: "holds",
    "in part": "holds in part",
    False: "does not hold",
    "untested": "cannot be tested",
    None: "open (not all of it was run)",
}


@dataclass(frozen=True)
class ClaimShown:
    """A statement of the paper, whether it holds, and the numbers in words.

    `holds` is True, False, "in part", "untested" (the numbers then say why), or None where not all of it was run.
    """

    text: str
    holds: bool | str | None
    numbers: str = ""
    where: str = ""

    @property
    def verdict(self) -> str:
        """Whether it holds, in words."""
        return VERDICTS[self.holds]

    @property
    def summary(self) -> str:
        """The numbers that decide, without the details after the first semicolon."""
        return self.numbers.split("; ", 1)[0]


@dataclass(frozen=True)
class Section:
    """All that is shown of an experiment, in the order of its parts, and the number of results it is made from."""

    name: str
    title: str
    n_results: int
    text: tuple[str, ...]
    sets: tuple[str, ...]
    tables: tuple[TableShown, ...]
    figures: tuple[FigureShown, ...]
    claims: tuple[ClaimShown, ...]
    notes: tuple[str, ...]


def section(experiment: Experiment, results: Results, *, missing: Iterable[str] = (), state: str = "") -> Section:
    """What is shown of an experiment.

    Parameters
    ----------
    experiment, results
        What was run and what came out.
    missing : iterable of str
        Data sets that were left out.
    state : str
        What was run, in a sentence; by default from the experiment.
    """
    text = [*experiment.text, state or run_state(experiment)]
    if gone := list(missing):
        text.append(f"Left out, because the data are not there: {', '.join(gone)}.")
    if experiment.timed:
        text.append(TIMED)
    tables = (_table(experiment, table, results) for table in experiment.tables)
    return Section(
        name=experiment.name,
        title=experiment.title,
        n_results=len(results),
        text=tuple(text),
        sets=tuple(_sets(experiment)),
        tables=tuple(table for table in tables if table is not None),
        figures=tuple(_figure(experiment, figure, results) for figure in experiment.figures),
        claims=tuple(judged(claim, results) for claim in experiment.claims),
        notes=tuple(_remarks(experiment)),
    )


def panels(
    experiment: Experiment, figure: Figure, results: Results
) -> Iterator[tuple[str, dict[str, dict[float, Cell]]]]:
    """Title of each panel and its curves: by method, the cell at each position on the horizontal axis."""
    chosen = results.select(measure=figure.measure, at=figure.at)
    for data in experiment.sets:
        of_set = chosen.select(set=data.name)
        values: list[Value | None] = [None] if figure.panel == "set" else [*of_set.values(figure.panel)]
        for value in values:
            part = of_set if value is None else _with_or_without(of_set, figure.panel, value)
            curves = {
                method: curve
                for method in figure.methods or part.methods()
                if (curve := _curve(part.select(method=method), figure))
            }
            if curves:
                yield data.heading if value is None else f"{data.heading}, {figure.panel} {_shown(value)}", curves


def _with_or_without(results: Results, key: str, value: Value) -> Results:
    """Results under a condition, and those to which it does not apply: they are the same in every panel."""
    return results.filter(lambda row: row.result.at.get(key, value) == value)


def _curve(results: Results, figure: Figure) -> dict[float, Cell]:
    cells = {float(x): results.select(at={figure.x: x}).cell(figure.best_over) for x in results.values(figure.x)}
    return {x: cell for x, cell in cells.items() if cell is not None}


def run_state(experiment: Experiment) -> str:
    """How much is run, in a sentence."""
    parts = f" of {experiment.parts} parts each" if experiment.parts > 1 else ""
    return f"{experiment.runs} run{'s' if experiment.runs != 1 else ''}{parts} on each data set."


def _sets(experiment: Experiment) -> list[str]:
    """How the data are prepared; sets with the same preparation in one line."""
    groups: dict[str, list[str]] = {}
    for data in experiment.sets:
        if data.make is not None:
            how = "made anew for each run"
        else:
            label = "" if data.target == "target" else f"the label is `{data.target}`"
            if data.target_column is not None:
                last = data.target_column == -1
                label = f"the label is {'the last column' if last else f'column {data.target_column}'}"
            scaling = SCALINGS[data.scaling] if data.scaling != "none" else experiment.features
            scaling = f"codes {data.params['codes']}" if "codes" in data.params else scaling
            how = "; ".join(filter(None, [scaling, FILLS[data.fill], label]))
        groups.setdefault(how, []).append(data.heading)
    return [f"{', '.join(names)}: {how}." for how, names in groups.items()]


def _rows(experiment: Experiment, table: Table, results: Results) -> Iterator[tuple[str, str, Results]]:
    """Heading, key of the printed numbers, and results of each row that has some."""
    for data in experiment.sets:
        if table.sets and data.name not in table.sets:
            continue
        of_set = results.select(set=data.name)
        if table.row == "set":
            if any(len(of_set.of_column(column)) for column in table.columns):
                yield data.heading, data.name, of_set
            continue
        for value in of_set.values(table.row):
            heading = _shown(value) if len(experiment.sets) == 1 else f"{data.heading}, {_shown(value)}"
            yield heading, str(value), of_set.select(at={table.row: value})


def _table(experiment: Experiment, table: Table, results: Results) -> TableShown | None:
    """The table, or None without rows."""
    found = list(_rows(experiment, table, results))
    if not found:
        return None
    columns = [column for column in table.columns if any(len(part.of_column(column)) for _, _, part in found)]
    notes: dict[str, int] = {}

    def mark(row: str, heading: str) -> int | None:
        text = table.notes.get((row, heading))
        return None if text is None else notes.setdefault(text, len(notes) + 1)

    headings = tuple(Heading(column.heading, mark("", column.heading)) for column in columns)
    rows = []
    for heading, key, part in found:
        numbers = tuple(_number(table, column, key, part, mark(key, column.heading)) for column in columns)
        rows.append((Heading(heading, mark(key, "")), numbers))
    return TableShown(
        title=table.title,
        text=table.text,
        compared=any(key in column.printed for _, key, _ in found for column in columns),
        best=_best(columns),
        grid=Grid(table.row, headings, tuple(rows)),
        notes=tuple(notes),
        differences=tuple(_differences(table, columns, rows)),
    )


def _differences(
    table: Table, columns: Sequence[Column], rows: Iterable[tuple[Heading, tuple[Number, ...]]]
) -> list[Difference]:
    """How far each method is from the paper."""
    by_method: dict[str, list[float]] = {}
    for _, numbers in rows:
        for column, number in zip(columns, numbers, strict=True):
            if column.compared and number.cell is not None and number.printed is not None:
                by_method.setdefault(column.method, []).append(abs(number.cell.mean - number.printed))
    return [
        Difference(method, float(np.mean(found)), len(found), table.limits.get(method))
        for method, found in by_method.items()
    ]


def _number(table: Table, column: Column, key: str, part: Results, note: int | None) -> Number:
    return Number(
        cell=part.of_column(column).cell(column.best_over),
        printed=column.printed.get(key),
        decimals=table.decimals,
        note=note,
        limit=table.limits.get(column.method) if column.compared else None,
    )


def _best(columns: Sequence[Column]) -> str:
    over = list(dict.fromkeys(column.best_over for column in columns if column.best_over))
    return f"Of the values of {' and '.join(over)}, the one with the largest mean counts." if over else ""


def _figure(experiment: Experiment, figure: Figure, results: Results) -> FigureShown:
    found = []
    if figure.draw is None:
        for title, curves in panels(experiment, figure, results):
            rows = tuple(
                (Heading(_shown(x)), tuple(Number(curve.get(x)) for curve in curves.values()))
                for x in sorted({x for curve in curves.values() for x in curve})
            )
            found.append((title, Grid(figure.x_label or figure.x, tuple(map(Heading, curves)), rows)))
    return FigureShown(figure.name, figure.title, tuple(found))


def judged(claim: Claim, results: Results) -> ClaimShown:
    """The verdict of the results on a claim."""
    if claim.check is None:
        return ClaimShown(claim.text, "untested", claim.because, claim.where)
    try:
        holds, numbers = claim.check(results)
    except LookupError:
        return ClaimShown(claim.text, None, where=claim.where)
    return ClaimShown(claim.text, holds if isinstance(holds, str) else bool(holds), numbers, claim.where)


def _remarks(experiment: Experiment) -> list[str]:
    of_sets = [f"{data.heading}: {data.note}" for data in experiment.sets if data.note]
    of_methods = [f"{method.name}: {method.note}" for method in experiment.methods if method.note]
    return [*experiment.notes, *of_sets, *of_methods]


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
