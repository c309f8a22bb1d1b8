"""Results as Markdown: paper, measured, difference, and the notes next to the numbers.

The text depends on the results only, so equal runs give equal files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pairlens.papers.experiment import FILLS, SCALINGS, Claim, Column, Experiment, Figure, Table, Value
from pairlens.papers.results import Cell, Results

__all__ = ["Difference", "differences", "markdown"]

TIMED = (
    "This table holds times: it is not the same from run to run and from machine to machine. Compare ratios inside it."
)


@dataclass(frozen=True)
class Difference:
    """How far the results of a method are from the paper: mean of the absolute differences over so many numbers."""

    method: str
    mean: float
    count: int
    limit: float | None

    @property
    def reproduced(self) -> bool | None:
        """Whether it is within its limit; None without one."""
        return None if self.limit is None else self.mean <= self.limit


def markdown(
    experiment: Experiment,
    results: Results,
    *,
    level: int = 1,
    images: Mapping[str, str] | None = None,
    missing: Iterable[str] = (),
    state: str = "",
) -> str:
    """The page of an experiment.

    Parameters
    ----------
    experiment, results
        What was run and what came out.
    level : int
        Of the heading.
    images : mapping of str to str
        File of each figure, by the name of the figure.
    missing : iterable of str
        Data sets that were left out.
    state : str
        What was run, in a sentence; by default from the experiment.
    """
    parts = ["#" * level + " " + experiment.title, *experiment.text, state or _state(experiment)]
    if gone := list(missing):
        parts.append(f"Left out, because the data are not there: {', '.join(gone)}.")
    if experiment.timed:
        parts.append(TIMED)
    parts.append(_sets(experiment))
    for table in experiment.tables:
        parts += _table(experiment, table, results, level + 1)
    for figure in experiment.figures:
        parts += _figure(experiment, figure, results, level + 1, (images or {}).get(figure.name))
    if experiment.claims:
        parts.append("#" * (level + 1) + " What the paper says")
        parts.append("\n".join(_claim(claim, results) for claim in experiment.claims))
    if remarks := _remarks(experiment):
        parts.append("#" * (level + 1) + " Notes")
        parts.append("\n".join(f"- {note}" for note in remarks))
    return "\n\n".join(part for part in parts if part) + "\n"


def differences(experiment: Experiment, table: Table, results: Results) -> list[Difference]:
    """How far each method of a table is from the paper."""
    by_method: dict[str, list[float]] = {}
    for _, row, part in _rows(experiment, table, results):
        for column in table.columns:
            cell = part.of_column(column).cell(column.best_over)
            if cell is not None and column.compared and row in column.printed:
                by_method.setdefault(column.method, []).append(abs(cell.mean - column.printed[row]))
    return [
        Difference(method, float(np.mean(found)), len(found), table.limits.get(method))
        for method, found in by_method.items()
    ]


def _state(experiment: Experiment) -> str:
    parts = f" of {experiment.parts} parts each" if experiment.parts > 1 else ""
    return f"{experiment.runs} run{'s' if experiment.runs != 1 else ''}{parts} on each data set."


def _sets(experiment: Experiment) -> str:
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
            how = "; ".join(filter(None, [SCALINGS[data.scaling], FILLS[data.fill], label]))
        groups.setdefault(how, []).append(data.heading)
    return "\n".join(f"- {', '.join(names)}: {how}." for how, names in groups.items())


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


def _table(experiment: Experiment, table: Table, results: Results, level: int) -> list[str]:
    rows = list(_rows(experiment, table, results))
    columns = [column for column in table.columns if any(len(part.of_column(column)) for _, _, part in rows)]
    if not rows:
        return []
    notes: dict[str, int] = {}

    def mark(row: str, heading: str) -> str:
        text = table.notes.get((row, heading))
        return "" if text is None else f" [{notes.setdefault(text, len(notes) + 1)}]"

    lines = [[table.row, *(column.heading + mark("", column.heading) for column in columns)]]
    compared = False
    for heading, key, part in rows:
        cells = []
        for column in columns:
            cell = part.of_column(column).cell(column.best_over)
            compared |= key in column.printed
            cells.append(_cell(cell, column.printed.get(key), table.decimals) + mark(key, column.heading))
        lines.append([heading + mark(key, ""), *cells])
    legend = "Cells: paper / measured ± standard deviation / difference." if compared else ""
    best = _best(columns)
    parts = ["#" * level + " " + table.title, table.text, " ".join(filter(None, [legend, best])), _grid(lines)]
    parts.append("\n".join(f"{number}. {text}" for text, number in notes.items()))
    parts.append(_differences(differences(experiment, table, results)))
    return parts


def _best(columns: Sequence[Column]) -> str:
    over = list(dict.fromkeys(column.best_over for column in columns if column.best_over))
    return f"Of the values of {' and '.join(over)}, the one with the largest mean counts." if over else ""


def _cell(cell: Cell | None, printed: float | None, decimals: int) -> str:
    if cell is None:
        return "" if printed is None else f"{printed:.{decimals}f} / not measured"
    measured = f"{cell.mean:.{decimals}f}" + (f" ± {cell.std:.{decimals}f}" if cell.count > 1 else "")
    if printed is None:
        return measured
    return f"{printed:.{decimals}f} / {measured} / {cell.mean - printed:+.{decimals}f}"


def _differences(found: Sequence[Difference]) -> str:
    if not found:
        return ""
    lines = []
    for one in found:
        verdict = ""
        if one.limit is not None:
            verdict = f"; {'within' if one.reproduced else 'NOT within'} the limit {one.limit}"
        lines.append(f"- {one.method}: {one.mean:.4f} over {one.count} number{'s' if one.count > 1 else ''}{verdict}")
    return "Mean absolute difference from the paper:\n\n" + "\n".join(lines)


def _figure(experiment: Experiment, figure: Figure, results: Results, level: int, image: str | None) -> list[str]:
    parts = ["#" * level + " " + figure.title]
    if image is not None:
        parts.append(f"![{figure.title}]({image})")
    if figure.draw is None:
        for title, panel in panels(experiment, figure, results):
            lines = [[figure.x_label or figure.x, *panel]]
            positions = sorted({x for curve in panel.values() for x in curve})
            for x in positions:
                cells = (_cell(curve.get(x), None, 3) for curve in panel.values())
                lines.append([_shown(x), *cells])
            parts += [title, _grid(lines)]
    return parts


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


def _claim(claim: Claim, results: Results) -> str:
    try:
        holds, numbers = claim.check(results)
    except LookupError:
        return f"- open (not all of it was run): {claim.text}"
    return f"- {'holds' if holds else 'does not hold'}: {claim.text} ({numbers})"


def _remarks(experiment: Experiment) -> list[str]:
    of_sets = [f"{data.heading}: {data.note}" for data in experiment.sets if data.note]
    of_methods = [f"{method.name}: {method.note}" for method in experiment.methods if method.note]
    return [*experiment.notes, *of_sets, *of_methods]


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _grid(lines: Sequence[Sequence[str]]) -> str:
    head, *body = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])
