"""The results in a folder as one HTML page: no script, no other file, the same bytes for the same results."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path

from pairlens._markup import Markup, joined, plain, policy_hash, tag
from reproduction.tables import ClaimShown, Difference, FigureShown, Grid, Heading, Number, Section, TableShown

TITLE = "Reproduction of the papers' experiments"
LEAD = (
    "Written by `python -m reproduction` from the results in this folder. Where the papers leave something open, the "
    "protocols are the readings that fit the printed numbers best; notes next to the numbers say what does not "
    "reproduce."
)
KINDS = {".svg": "image/svg+xml", ".png": "image/png"}
MANY_COLUMNS = 10
"""With more, a table gets smaller type, so that most of it is seen at once on a laptop."""

WITHIN, OUTSIDE, OPEN = "✓", "✗", "?"
LIMITS = (
    f"{WITHIN} and {OUTSIDE} say whether this one difference is within the limit that the mean of its method has to "
    "keep."
)


@dataclass(frozen=True)
class Entry:
    """An experiment on the page.

    Parameters
    ----------
    section : Section
    pictures : mapping of str to sequence of Path
        By name of the figure, files that show the same; the smallest goes into the page.
    reason : str
        Why a figure that is not in `pictures` is not there.
    """

    section: Section
    pictures: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    reason: str = ""


def report_html(entries: Sequence[Entry], *, left_out: Iterable[str] = ()) -> str:
    """The page.

    Parameters
    ----------
    entries : sequence of Entry
        In the order of the page.
    left_out : iterable of str
        A sentence for each output in the folder that is not on the page.
    """
    style = files("reproduction").joinpath("report.css").read_text(encoding="utf-8")
    # Nothing is loaded and nothing runs, whatever a name or a note holds.
    policy = f"default-src 'none'; style-src {policy_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    head = joined(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("title", TITLE),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(style)),
    )
    rest = list(left_out)
    body = joined(
        tag("a", "Skip to the experiments", class_="skip", href="#experiments"),
        tag("header", tag("h1", TITLE), tag("p", _text(LEAD), class_="soft")),
        tag(
            "main",
            _contents(entries),
            _overview(entries),
            tag("div", *map(_experiment, entries), id="experiments"),
            tag("section", tag("h2", "Not on this page"), _items(rest)) if rest else None,
        ),
        tag("footer", tag("p", "pairlens")),
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def _contents(entries: Sequence[Entry]) -> Markup:
    items = (
        tag("li", tag("a", one.section.title, href=f"#{_id(one.section)}"), tag("small", _short(one.section)))
        for one in entries
    )
    listed = tag("ul", *items, class_="contents") if entries else tag("p", "There are no results.")
    return tag("section", tag("h2", "Contents"), tag("nav", listed, aria_label="Experiments"), id="contents")


def _short(section: Section) -> str:
    """What an experiment comes to, in a line."""
    found = [one.reproduced for table in section.tables for one in table.differences if one.reproduced is not None]
    parts = [section.name]
    if found:
        parts.append(f"limits kept: {sum(found)} of {len(found)}")
    if section.claims:
        holding = sum(claim.holds is True for claim in section.claims)
        parts.append(f"statements of the paper that hold: {holding} of {len(section.claims)}")
    return " · ".join(parts)


def _overview(entries: Sequence[Entry]) -> Markup | None:
    rows = [
        tag(
            "tr",
            tag("th", tag("a", entry.section.name, href=f"#{_id(entry.section)}"), scope="row"),
            tag("td", table.title),
            *_difference_cells(one),
        )
        for entry in entries
        for table in entry.section.tables
        for one in table.differences
    ]
    if not rows:
        return None
    head = _head("experiment", "table", *DIFFERENCE_HEAD)
    return tag(
        "section",
        tag("h2", "Mean absolute differences from the papers"),
        tag("div", tag("table", head, tag("tbody", *rows), class_="words"), class_="scroll"),
    )


DIFFERENCE_HEAD = ("method", "mean absolute difference", "numbers", "limit")


def _difference_cells(one: Difference) -> Iterable[Markup]:
    yield tag("td", one.method)
    yield tag("td", f"{one.mean:.4f}", class_="n")
    yield tag("td", one.count, class_="n")
    verdict = None if one.limit is None else joined(f"{one.limit}: ", _verdict(one.reproduced, "within", "not within"))
    yield tag("td", verdict)


def _experiment(entry: Entry) -> Markup:
    section = entry.section
    return tag(
        "section",
        tag("a", "Contents", class_="up", href="#contents"),
        tag("h2", section.title),
        tag("p", f"python -m reproduction {section.name}", class_="soft note"),
        *(tag("p", _text(text)) for text in section.text),
        _items(section.sets, class_="note"),
        *map(_table, section.tables),
        *(_figure(entry, figure) for figure in section.figures),
        _claims(section.claims),
        joined(tag("h3", "Notes"), _items(section.notes, class_="note")) if section.notes else None,
        class_="experiment",
        id=_id(section),
    )


def _table(table: TableShown) -> Markup:
    legend = []
    if table.compared:
        legend.append("Cells: measured ± standard deviation; below it the paper's number / the difference.")
    if any(number.within is not None for _, numbers in table.grid.rows for number in numbers):
        legend.append(LIMITS)
    if table.best:
        legend.append(table.best)
    return joined(
        tag("h3", table.title),
        tag("p", _text(table.text)) if table.text else None,
        tag("p", " ".join(legend), class_="soft note") if legend else None,
        _grid(table.grid, table.title),
        tag("ol", *(tag("li", _text(note)) for note in table.notes), class_="note") if table.notes else None,
        _differences(table.differences),
    )


def _differences(found: Sequence[Difference]) -> Markup | None:
    if not found:
        return None
    rows = (tag("tr", *_difference_cells(one)) for one in found)
    body = tag("table", _head(*DIFFERENCE_HEAD), tag("tbody", *rows), class_="words")
    return tag("div", body, class_="scroll")


def _grid(grid: Grid, title: str) -> Markup:
    rows = (tag("tr", _heading(heading, "row"), *map(_cell, numbers)) for heading, numbers in grid.rows)
    columns = (_heading(heading, "col") for heading in grid.columns)
    head = tag("thead", tag("tr", tag("th", grid.corner, scope="col"), *columns))
    # What scrolls must be reachable by keyboard.
    return tag(
        "div",
        tag("table", head, tag("tbody", *rows), class_="dense" if len(grid.columns) > MANY_COLUMNS else None),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=plain(title),
    )


def _head(*names: str) -> Markup:
    number = ("mean absolute difference", "numbers")
    return tag(
        "thead", tag("tr", *(tag("th", name, scope="col", class_="n" if name in number else None) for name in names))
    )


def _heading(heading: Heading, scope: str) -> Markup:
    return tag("th", heading.text, _mark(heading.note), scope=scope)


def _cell(number: Number) -> Markup:
    measured = number.measured or ("not measured" if number.paper else "")
    below = None
    if number.paper:
        difference = number.difference.replace("-", "\N{MINUS SIGN}")
        sign = _verdict(number.within, difference, difference) if difference else None
        below = tag("span", number.paper, " / " if difference else None, sign, class_="printed")
    return tag("td", measured, _mark(number.note), below)


def _verdict(good: bool | None, within: str, outside: str) -> Markup:
    """A word with a sign, and a colour for those who see it; without a limit only the word."""
    if good is None:
        return joined(within)
    return tag("span", f"{within} {WITHIN}" if good else f"{outside} {OUTSIDE}", class_="within" if good else "outside")


def _figure(entry: Entry, figure: FigureShown) -> Markup:
    paths = entry.pictures.get(figure.name, ())
    title = tag("h3", figure.title)
    if not paths:
        reason = tag("p", "No picture: ", _text(entry.reason or "there are no results."), class_="soft note")
        return joined(title, reason, _numbers(figure, opened=True))
    picture = Markup(f'<img alt="{escape(plain(figure.title))}" src="{_data_uri(paths)}">')
    return joined(title, tag("figure", picture), _numbers(figure, opened=False))


def _numbers(figure: FigureShown, *, opened: bool) -> Markup | None:
    if not figure.panels:
        return None
    shown = (tag("div", tag("h4", title), _grid(grid, title)) for title, grid in figure.panels)
    return tag("details", tag("summary", "The numbers"), tag("div", *shown, class_="panels"), open=opened)


def _data_uri(paths: Sequence[Path]) -> str:
    """The smallest of the files. As an image an SVG cannot run or load anything, and its names meet no others."""
    contents = [(path.read_bytes(), KINDS[path.suffix]) for path in paths]
    content, kind = min(contents, key=lambda pair: len(pair[0]))
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _claims(claims: Sequence[ClaimShown]) -> Markup | None:
    if not claims:
        return None
    signs: dict[bool | str | None, tuple[str, str]] = {True: (WITHIN, "within"), False: (OUTSIDE, "outside")}
    items = []
    for claim in claims:
        sign, look = signs.get(claim.holds, (OPEN, "soft"))
        verdict = tag("strong", tag("span", sign, class_="sign", aria_hidden="true"), claim.verdict, class_=look)
        numbers = tag("small", " (", _text(claim.numbers), ")") if claim.numbers else None
        items.append(tag("li", verdict, ": ", _text(claim.text), numbers))
    return joined(tag("h3", "What the paper says"), tag("ul", *items, class_="claims"))


def _items(lines: Sequence[str], class_: str | None = None) -> Markup | None:
    return tag("ul", *(tag("li", _text(line)) for line in lines), class_=class_) if lines else None


def _mark(note: int | None) -> Markup | None:
    return None if note is None else tag("sup", f" [{note}]")


def _text(text: str) -> Markup:
    """A sentence; what is between backticks is code, as in the Markdown."""
    parts = re.split(r"`([^`]+)`", text)
    return joined(*(tag("code", part) if i % 2 else part for i, part in enumerate(parts)))


def _id(section: Section) -> str:
    return "experiment-" + re.sub(r"[^\w-]", "-", section.name)
