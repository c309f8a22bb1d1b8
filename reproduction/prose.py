"""Numbers in the prose of ``docs/*.md`` that come from the stored results.

A number stands between two comments, the first of which says what it is; conditions of the results are further keys::

    <!--= sodrpac-dimension; set=letter_abcd; method=auto; measure=directions; .1f -->4.6<!--/-->

``best=dim`` takes the best mean over a condition, ``set=*`` the mean over all sets, ``each=l`` over all values of a
condition. Whole tables stand between ``<!--= table: EXPERIMENT; TITLE -->`` and ``<!--/-->``, the claims of a paper
between ``<!--= claims: PAPER -->`` and ``<!--/-->``. A number's mark must not begin a line, which would
be HTML then. :func:`filled` writes what the results say into a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import numpy as np

from reproduction.catalogue import experiments, papers
from reproduction.experiment import Value
from reproduction.markdown import claims_table, grid
from reproduction.results import Archive, Results
from reproduction.tables import ClaimShown, judged, section

MARK = re.compile(r"(<!--= (.*?) -->)(.*?)(<!--/-->)", re.S)


def filled(text: str, archive: Archive) -> str:
    """Return a page with the numbers of the stored results between its marks."""
    return MARK.sub(lambda found: found[1] + generated(found[2], archive) + found[4], text)


def generated(mark: str, archive: Archive) -> str:
    """Return what a mark stands for."""
    kind, _, rest = mark.partition(": ")
    if kind == "claims":
        found = [claim for name, _, claim in all_claims(archive) if name == rest]
        return f"\n\n{claims_table([(None, claim) for claim in found])}\n\n"
    if kind == "table":
        name, title = rest.split("; ")
        (experiment,) = experiments([name])
        shown = section(experiment, _results(archive, name))
        return f"\n\n{grid(next(table.grid for table in shown.tables if table.title == title))}\n\n"
    name, *fields, style = mark.split("; ")
    return format(_value(_results(archive, name), dict(field.split("=", 1) for field in fields)), style)


@cache
def _results(archive: Archive, name: str) -> Results:
    (experiment,) = experiments([name])
    return Results.stored(experiment, archive)


def _value(results: Results, fields: Mapping[str, str]) -> float:
    rest = dict(fields)
    name, method, measure = (rest.pop(key) for key in ("set", "method", "measure"))
    best, each = rest.pop("best", ""), rest.pop("each", "")
    part = results.select(method=method, measure=measure, at={key: _parsed(text) for key, text in rest.items()})
    cells = []
    for one in sorted({row.set for row in part.rows}) if name == "*" else [name]:
        of_set = part.select(set=one)
        groups = [of_set.select(at={each: value}) for value in of_set.values(each)] if each else [of_set]
        cells += [cell.mean for group in groups if (cell := group.cell(best)) is not None]
    if not cells:
        raise LookupError(f"no results of {dict(fields)}")
    return float(np.mean(cells))


def _parsed(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@cache
def all_claims(archive: Archive) -> list[tuple[str, str, ClaimShown]]:
    """Return every claim of every paper, judged by the stored results, with the paper's name and title."""
    found = []
    for paper in papers():
        nothing = Results([])
        found += [(paper.name, paper.title, judged(claim, nothing)) for claim in paper.claims]
        for experiment in paper.experiments:
            if experiment.claims:
                results = _results(archive, experiment.name)
                found += [(paper.name, paper.title, judged(claim, results)) for claim in experiment.claims]
    return found
