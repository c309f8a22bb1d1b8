"""The results as Markdown: a section of an experiment, and the page of all results of the full profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pairlens._atomic import write_atomically
from reproduction.catalogue import experiments
from reproduction.experiment import Experiment
from reproduction.results import Results
from reproduction.tables import ClaimShown, Difference, Grid, Heading, Number, Section, TableShown, section
from reproduction.tasks import Store

HEAD = """# Reproduction of the papers' experiments

Written by `python -m reproduction --page docs/reproduction.md` from the stored results of the full profile
(`make reproduce-full`); do not edit it by hand. `python -m reproduction list` names the experiments,
`python -m reproduction NAME --profile full` runs one of them.

Where the papers leave something open, the protocols are the readings that fit the printed numbers best; notes next to
the numbers say what does not reproduce."""
OVERVIEW = ("| experiment | table | method | mean absolute difference | numbers | limit |", "|---|---|---|---|---|---|")


def markdown(shown: Section, *, level: int = 1, images: Mapping[str, str] | None = None) -> str:
    """The section as Markdown.

    Parameters
    ----------
    shown : Section
    level : int
        Of the heading.
    images : mapping of str to str
        File of each figure, by the name of the figure.
    """
    below = "#" * (level + 1) + " "
    parts = ["#" * level + " " + shown.title, *shown.text, _list(shown.sets)]
    for table in shown.tables:
        parts += [below + table.title, *_table_lines(table)]
    for figure in shown.figures:
        parts.append(below + figure.title)
        if image := (images or {}).get(figure.name):
            parts.append(f"![{figure.title}]({image})")
        for title, grid in figure.panels:
            parts += [title, _grid(grid)]
    if shown.claims:
        parts += [below + "What the paper says", _list(map(_claim_line, shown.claims))]
    if shown.notes:
        parts += [below + "Notes", _list(shown.notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table_lines(table: TableShown) -> list[str]:
    legend = "Cells: paper / measured ± standard deviation / difference." if table.compared else ""
    notes = "\n".join(f"{i}. {text}" for i, text in enumerate(table.notes, start=1))
    parts = [table.text, " ".join(filter(None, [legend, table.best])), _grid(table.grid), notes]
    if table.differences:
        parts += ["Mean absolute difference from the paper:", _list(map(_difference_line, table.differences))]
    return parts


def _difference_line(one: Difference) -> str:
    verdict = f"; {one.verdict} the limit {one.limit}" if one.verdict else ""
    return f"{one.method}: {one.mean:.4f} over {one.count} number{'s' if one.count > 1 else ''}{verdict}"


def _claim_line(claim: ClaimShown) -> str:
    return f"{claim.verdict}: {claim.text}" + (f" ({claim.numbers})" if claim.holds is not None else "")


def _grid(grid: Grid) -> str:
    lines = [[grid.corner, *map(_marked, grid.columns)]]
    lines += [[_marked(heading), *map(_cell, numbers)] for heading, numbers in grid.rows]
    head, *body = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])


def _marked(heading: Heading) -> str:
    return heading.text + _mark(heading.note)


def _cell(number: Number) -> str:
    if number.cell is None and number.printed is not None:
        text = f"{number.paper} / not measured"
    else:
        text = " / ".join(filter(None, [number.paper, number.measured, number.difference]))
    return text + _mark(number.note)


def _mark(note: int | None) -> str:
    return "" if note is None else f" [{note}]"


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def write_page(path: Path, store: Store) -> None:
    """Write the page of all experiments that the store has full results of."""
    write_atomically(path, page_text(experiments(), store))


def page_text(found: list[Experiment], store: Store) -> str:
    """The page: experiments with at least one data set complete, and what was not run."""
    parts, overview, missing, timed = [], [], [], []
    for experiment in found:
        line = f"- {experiment.name}: {experiment.title}"
        if experiment.timed:
            timed.append(line)
            continue
        unfinished = {unit.data.name for unit in store.unfinished(experiment.units())}
        complete = experiment.only(sets=[data.name for data in experiment.sets if data.name not in unfinished])
        gone = ", ".join(data.heading for data in experiment.sets if data.name in unfinished)
        if not complete.sets:
            missing.append(line)
            continue
        state = f"Not run in full: {gone}." if gone else ""
        shown = section(complete, Results.stored(complete, store), state=state)
        overview += _overview(shown)
        parts.append(markdown(shown, level=2).rstrip())
    if overview:
        parts.insert(0, "\n".join(["## Overview", "", *OVERVIEW, *overview]))
    if missing:
        parts.append("## Not run\n\n" + "\n".join(missing))
    if timed:
        parts.append("## Times\n\nThey differ from run to run, so they are not on this page.\n\n" + "\n".join(timed))
    return "\n\n".join([HEAD, *parts]) + "\n"


def _overview(shown: Section) -> list[str]:
    lines = []
    for table in shown.tables:
        for one in table.differences:
            limit = f"{one.limit}: {one.verdict}" if one.verdict else ""
            lines.append(f"| {shown.name} | {table.title} | {one.method} | {one.mean:.4f} | {one.count} | {limit} |")
    return lines
