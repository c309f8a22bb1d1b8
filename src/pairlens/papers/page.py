"""The page of all results of the full profile, from what is stored."""

from __future__ import annotations

from pathlib import Path

from pairlens._atomic import write_atomically
from pairlens.experiments import Store
from pairlens.papers.catalogue import experiments
from pairlens.papers.experiment import Experiment
from pairlens.papers.results import Results
from pairlens.papers.tables import Section, markdown, section

__all__ = ["page_text", "write_page"]

HEAD = """# Reproduction of the papers' experiments

Written by `pairlens reproduce --page docs/reproduction.md` from the stored results of the full profile
(`make reproduce-full`); do not edit it by hand. `pairlens reproduce list` names the experiments,
`pairlens reproduce NAME --profile full` runs one of them.

Where the papers leave something open, the protocols are the readings that fit the printed numbers best; notes next to
the numbers say what does not reproduce."""


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


OVERVIEW = ("| experiment | table | method | mean absolute difference | numbers | limit |", "|---|---|---|---|---|---|")


def _overview(shown: Section) -> list[str]:
    lines = []
    for table in shown.tables:
        for one in table.differences:
            limit = f"{one.limit}: {one.verdict}" if one.verdict else ""
            lines.append(f"| {shown.name} | {table.title} | {one.method} | {one.mean:.4f} | {one.count} | {limit} |")
    return lines
