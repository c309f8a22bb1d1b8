"""The results as Markdown: a section of an experiment, and the page of all results of the full profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from reproduction.catalogue import Paper
from reproduction.experiment import Experiment
from reproduction.results import Archive, Results
from reproduction.tables import (
    VERDICTS,
    ClaimShown,
    Difference,
    Grid,
    Heading,
    Number,
    Section,
    TableShown,
    run_state,
    section,
)

HEAD = """# The papers, claim by claim

Written by `python -m reproduction --docs docs` from the stored results of the full profile in `reproduction/stored`
(`make reproduce-full` computes them again); do not edit it by hand. `python -m reproduction list` names the
experiments, `python -m reproduction NAME --profile full` runs one of them.

Where the papers leave something open, the protocols are the readings that fit the printed numbers best; notes next to
the numbers say what does not reproduce."""
CLAIMS = """A row for each main sentence: of the abstracts and conclusions, of what is proved, and of what the text says
of each table and figure. The verdict is computed from the measured numbers by a rule in `reproduction/checks`; "±" is
a standard error over folds, runs or sets. "Holds in part" means: for some of the sets, dimensions or cases, but not as
generally as it is said. Limits such as 0.02 are ours, and most were set after first results had been seen. The sections
below have the details."""
KERNELS = """`OPENBLAS_CORETYPE=Haswell` gives the stored numbers (tried with a unit of each of 19
experiments). With other kernels of OpenBLAS some differ by more than rounding: directions of cFLD and RCA beyond those
that the classes determine, and WSDR where its objective has several minima."""
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
            continue
        for title, numbers in figure.panels:
            parts += [title, grid(numbers)]
    if shown.claims:
        parts += [below + "What the paper says", _list(map(_claim_line, shown.claims))]
    if shown.notes:
        parts += [below + "Notes", _list(shown.notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table_lines(table: TableShown) -> list[str]:
    legend = "Cells: paper / measured ± standard deviation / difference." if table.compared else ""
    notes = "\n".join(f"{i}. {text}" for i, text in enumerate(table.notes, start=1))
    parts = [table.text, " ".join(filter(None, [legend, table.best])), grid(table.grid), notes]
    if table.differences:
        parts += ["Mean absolute difference from the paper:", _list(map(_difference_line, table.differences))]
    return parts


def _difference_line(one: Difference) -> str:
    verdict = f"; {one.verdict} the limit {one.limit}" if one.verdict else ""
    return f"{one.method}: {one.mean:.4f} over {one.count} number{'s' if one.count > 1 else ''}{verdict}"


def _claim_line(claim: ClaimShown) -> str:
    return f"{claim.verdict}: {claim.text}" + (f" ({claim.numbers})" if claim.holds is not None else "")


def grid(shown: Grid) -> str:
    """The numbers as a table."""
    lines = [[shown.corner, *map(_marked, shown.columns)]]
    lines += [[_marked(heading), *map(_cell, numbers)] for heading, numbers in shown.rows]
    return table(lines)


def table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as a table, the first as its head."""
    head, *body = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])


def claims_table(found: Iterable[tuple[str | None, ClaimShown]]) -> str:
    """Claims with their verdicts, each with the title of its paper if there is one."""
    claims = list(found)
    titled = any(title for title, _ in claims)
    lines = [[*(["paper"] if titled else []), "where", "what it says", "verdict", "measured"]]
    for title, claim in claims:
        cells = [claim.where, claim.text, f"**{claim.verdict}**", claim.summary]
        lines.append([*([title or ""] if titled else []), *(cell.replace("|", "\\|") for cell in cells)])
    return table(lines)


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


def page_text(
    found: list[Paper], archive: Archive, pictures: Mapping[str, str], claims: Iterable[tuple[str, str, ClaimShown]]
) -> str:
    """The page: every claim with its verdict, then the experiments with their pictures, and what was not run.

    Parameters
    ----------
    found : list of Paper
    archive : Archive
    pictures : mapping of str to str
        Files by stem: "EXPERIMENT-FIGURE", or "PAPER-PICTURE".
    claims : iterable of (name, title, claim)
    """
    judged = [(title, claim) for _, title, claim in claims]
    of_papers = [(title, claim) for title, claim in judged if claim.where != "ours"]
    count = Counter(claim.verdict for _, claim in of_papers)
    summary = ", ".join(f"{verdict}: {count[verdict]}" for verdict in VERDICTS.values() if count[verdict])
    parts = ["## Which sentences of the papers hold", CLAIMS, f"Of {len(of_papers)} statements, {summary}."]
    parts.append(claims_table(of_papers))
    sections, overview, missing, partial = [], [], [], []
    for paper in found:
        for picture in paper.pictures:
            image = pictures[f"{paper.name}-{picture.name}"]
            sections.append(f"## {picture.title}\n\n{picture.text}\n\n![{picture.title}]({image})")
        for experiment in paper.experiments:
            shown = _stored(experiment, archive)
            if shown is None:
                missing.append(f"- {experiment.name}: {experiment.title}")
                continue
            overview += _overview(shown)
            units = experiment.units()
            if left := len(archive.unfinished(units)):
                partial.append(f"{experiment.name} ({len(units) - left} of {len(units)})")
            images = {
                figure.name: pictures[stem]
                for figure in shown.figures
                if (stem := _stem(shown.name, figure.name)) in pictures
            }
            sections.append(markdown(shown, level=2, images=images).rstrip())
    if partial:
        parts.append(
            f"Some experiments were run in part only, and what is said of them rests on that: {', '.join(partial)}."
        )
    parts += [KERNELS, "\n".join(["## How far the numbers are from the printed ones", "", *OVERVIEW, *overview])]
    if missing:
        sections.append("## Not run\n\n" + "\n".join(missing))
    return "\n\n".join([HEAD, *parts, *sections]) + "\n"


def _stored(experiment: Experiment, archive: Archive) -> Section | None:
    """What is shown of the sets of an experiment that have results; None without any."""
    units = experiment.units()
    missing = archive.unfinished(units)
    gone = {(unit.data.name, unit.run, unit.part) for unit in missing}
    there = {unit.data.name for unit in units if (unit.data.name, unit.run, unit.part) not in gone}
    part = experiment.only(sets=there) if len(there) < len(experiment.sets) else experiment
    if not part.sets:
        return None
    state = f"{run_state(experiment)} Computed on {archive.date(part)}."
    if missing:
        state += (
            f" Only {len(units) - len(missing)} of {len(units)} parts of all runs are stored: the rest was not run."
        )
    if names := ", ".join(data.heading for data in experiment.sets if data.name not in there):
        state += f" Not run: {names}."
    return section(part, Results.stored(part, archive), state=state)


def _stem(experiment: str, figure: str) -> str:
    return f"{experiment}-{figure}" if figure else experiment


def _overview(shown: Section) -> list[str]:
    lines = []
    for table in shown.tables:
        for one in table.differences:
            limit = f"{one.limit}: {one.verdict}" if one.verdict else ""
            lines.append(f"| {shown.name} | {table.title} | {one.method} | {one.mean:.4f} | {one.count} | {limit} |")
    return lines
