"""Write the parts of the page as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._markup import Markup, joined, number, plain, tag
from pairlens._text import count
from pairlens.judging import HeldOutScore
from pairlens.learning.spaces import what_answers_decide
from pairlens.report._views import MAX_AXES

TOP_FEATURES = 10
MOST_BARS = 30
MOST_LISTED = 12
MOST_COLUMNS = 200
ON_DEMAND = ("violated", "satisfied")
"""Pairs that are not drawn from the start: they would hide the points."""
SPACES = {
    "rows": ("rows as they are", "scaled columns, without any answer"),
    "linear": ("linear", "weighted sums of the columns"),
    "kernel": ("kernel", "curved directions, for groups that no plane separates"),
    "diffusion": ("diffusion", "chains of near rows"),
}
"""What the spaces of a map are called, and what they are."""


def section(key: str, title: str, *content: Any) -> Markup:
    """Return a part of the page with its heading."""
    return tag("section", tag("h2", title, id=f"{key}-title"), *content, id=key, aria_labelledby=f"{key}-title")


def figure(name: str, value: Any, beside: Any = None) -> Markup:
    """Return one of the numbers at the top."""
    inside = joined(tag("span", value, class_="value"), tag("br"), tag("span", beside, class_="beside"))
    return tag("div", tag("dt", name), tag("dd", inside if beside else tag("span", value, class_="value")))


def with_error(score: HeldOutScore) -> Markup:
    """Return a score and its standard error."""
    if np.isnan(score.mean):
        return Markup("unknown")
    return joined(f"{score.mean:.2f}", " ", tag("small", f"± {score.standard_error:.2f}"))


def table(caption: Any, head: Sequence[Any], rows: Sequence[Sequence[Any]], *, numeric: Sequence[int] = ()) -> Markup:
    """Return a table; the first column names the rows."""

    def cell(kind: str, column: int, value: Any, scope: str | None = None) -> Markup:
        return tag(kind, value, class_="n" if column in numeric else None, scope=scope)

    top = tag("tr", *(cell("th", k, text, "col") for k, text in enumerate(head)))
    body = [
        tag("tr", *(cell("th" if k == 0 else "td", k, value, None if k else "row") for k, value in enumerate(row)))
        for row in rows
    ]
    content = tag("caption", caption) if caption else None, tag("thead", top), tag("tbody", *body)
    return tag("div", tag("table", *content), class_="scroll block")


def panel(key: str, title: str, axes: Sequence[str], described: str, caption: str) -> Markup:
    """Return a plot with its heading; selects for the axes where there is a choice."""
    selects = None
    if len(axes) > 2:
        options = [
            [tag("option", name.partition(" (")[0], value=k, selected=k == chosen) for k, name in enumerate(axes)]
            for chosen in (0, 1)
        ]
        selects = tag(
            "div",
            *(
                tag("label", f"{name} ", tag("select", *options[k], id=f"{key}-{axis}"))
                for k, (name, axis) in enumerate((("Horizontal", "x"), ("Vertical", "y")))
            ),
            class_="axes",
        )
    overlay = tag("svg", class_="overlay", id=f"{key}-overlay", aria_hidden="true")
    return tag(
        "figure",
        tag("div", tag("h3", title), tag("span", described, class_="note"), class_="top"),
        selects,
        tag(
            "div",
            tag("div", class_="plot", id=f"{key}-plot", role="group", aria_label=f"Scatter plot: {title}"),
            overlay,
            class_="stage",
        ),
        tag("figcaption", caption),
        class_="panel",
    )


def view_section(
    panels: Sequence[Markup],
    kinds: Sequence[str],
    others: Sequence[str],
    *,
    has_colours: bool,
    n_axes: int,
    n_drawn: int,
    n_rows: int,
) -> Markup:
    """Return the scatter plots and what controls them."""
    words = {"must": "must-links", "cannot": "cannot-links", "prefer": "preferences (a dot at the better row)"}

    def box(key: str, text: str, style: str) -> Markup:
        return tag(
            "label",
            tag("input", type="checkbox", data_show=key, checked=key not in ON_DEMAND, class_="screen"),
            tag("span", class_=f"key {style}"),
            text,
        )

    pairs = None
    if kinds:
        pairs = tag(
            "fieldset",
            tag("legend", "Pairs"),
            box("listed", "most violated", "violated"),
            box("violated", "all violated", "violated"),
            box("satisfied", "satisfied", "satisfied"),
            *(box(kind, words[kind], f"{kind} any") for kind in kinds),
        )
    notes = []
    if n_drawn < n_rows:
        notes.append(
            f"{n_drawn:,} of the {n_rows:,} rows are drawn: those of the drawn pairs and a random sample of the others."
        )
    if n_axes > 2:
        choice = f"any two of the first {MAX_AXES}" if n_axes > MAX_AXES else "any two of them"
        notes.append(f"The view has {n_axes} directions. The plots show {choice}; distances are those in all {n_axes}.")
    equal = tag("label", tag("input", type="checkbox", id="equal"), "same scale on both axes")
    find = tag(
        "label",
        "Find row ",
        tag("input", type="search", id="find", autocomplete="off", spellcheck="false", size=12),
    )
    return section(
        "view",
        f"The view, beside that of {' and of '.join(others)}",
        *(tag("p", note, class_="note") for note in notes),
        tag("noscript", tag("p", "The plots need JavaScript; all tables below do without.")),
        tag("ul", class_="legend", id="legend", aria_label="Labels; press one to hide or show its rows")
        if has_colours
        else None,
        tag(
            "div",
            pairs,
            tag("span", equal, class_="screen", hidden=n_axes == 1),
            tag("span", find, " ", tag("output", class_="found", id="found", for_="find"), class_="screen"),
            class_="controls",
        ),
        tag("div", *panels, class_="plots" if len(panels) < 3 else "plots three"),
    )


def features_section(
    effects: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
    axes: Sequence[str],
    names: Sequence[str],
    steps: Sequence[str],
) -> Markup:
    """Return the features that weigh most in each direction."""
    if weight is None:
        how = (
            "The view is not linear, so no feature has one weight in it. Shown is the correlation of each feature with "
            "each axis of the view: what goes along with it, not what makes it."
        )
    else:
        how = (
            "The view is linear. Shown is how far one standard deviation of a feature moves a row along the direction: "
            "its weight times its standard deviation."
        )
        if steps:
            how += f" Features are in the units that {' and '.join(steps)} give{'s' if len(steps) == 1 else ''} them."
    blocks = []
    for effect, axis in zip(effects, axes):
        order = np.argsort(-np.abs(effect), kind="stable")[:TOP_FEATURES]
        order = order[effect[order] != 0]
        largest = 1.0 if weight is None else float(np.abs(effect).max(initial=0))
        lines = [
            (
                tag("th", tag("bdi", plain(names[k])), scope="row", title=plain(names[k])),
                _bar(effect[k] / largest),
                number(effect[k], 2),
            )
            for k in order
        ]
        content = _bars(axis, lines) if lines else tag("p", "No feature.")
        blocks.append(tag("div", tag("h3", axis[0].upper() + axis[1:]), content, class_="block"))
    top = "" if len(names) <= TOP_FEATURES else f" The {TOP_FEATURES} strongest of {len(names):,} features."
    return section("features", "Features", tag("p", how + top), tag("div", *blocks, class_="columns"))


def _bars(caption: str, lines: Sequence[tuple[Markup, Markup, str]]) -> Markup:
    """Return a table of a heading, a bar and a number on each line."""
    rows = [tag("tr", heading, tag("td", bar), tag("td", value, class_="n")) for heading, bar, value in lines]
    return tag("table", tag("caption", caption, class_="hidden"), tag("tbody", *rows), class_="weights")


def _bar(share: float) -> Markup:
    """Return a bar from the middle, to the right if positive."""
    width = 50 * min(1.0, abs(float(share)))
    side = "left:50%" if share >= 0 else f"left:{50 - width:.2f}%"
    inside = tag("i", class_=None if share >= 0 else "minus", style=f"{side};width:{width:.2f}%")
    return tag("span", inside, class_="bar", aria_hidden="true")


def spaces_section(space_weights: Mapping[str, Mapping[str, float]], auc: float) -> Markup | None:
    """Say how much the answers decide, and from which spaces a view is made; None if no pair could be held out."""
    said = what_answers_decide(space_weights, auc)
    if said is None:
        return None
    shares = {name: float(space["weight"]) for name, space in space_weights.items()}
    bar = tag(
        "div",
        *(tag("i", class_=f"space-{name}", style=f"width:{100 * share:.2f}%") for name, share in shares.items()),
        class_="shares",
        aria_hidden="true",
    )
    rows = []
    for name, space in space_weights.items():
        called, what = SPACES[name]
        named = joined(tag("span", class_=f"dot space-{name}", aria_hidden="true"), " ", called)
        rows.append([named, f"{shares[name]:.0%}", f"{space['auc']:.2f}", what])
    caption = (
        "Shares of the spaces in the distance that this view is made of, and how well distance in each of them alone "
        "tells held-out pairs apart"
    )
    if "rows" in space_weights:
        caption += "; the AUC under Pairs is that of distance in the picture"
    return section(
        "spaces",
        "What your answers decide",
        tag("p", said),
        bar,
        table(caption, ["space", "share", "AUC", ""], rows, numeric=(1, 2)),
    )


def columns_section(columns: Sequence[Mapping[str, Any]]) -> Markup:
    """Say what was done with each column of a table of mixed columns."""
    rows = [
        [
            tag("bdi", plain(column["name"])),
            column["role"],
            f"{column['n_features']:,}" if column["n_features"] else "left out",
            number(column["weight"]) if column["n_features"] else "",
            f"{column['n_missing']:,}" if column["n_missing"] else "",
            plain(column["note"]),
        ]
        for column in columns[:MOST_COLUMNS]
    ]
    used = sum(1 for column in columns if column["n_features"])
    caption = f"{used:,} of {count(len(columns), 'column')} used"
    if len(columns) > len(rows):
        caption += f"; the first {len(rows)} are listed"
    return section(
        "columns",
        "Columns",
        tag(
            "p",
            "How each column of the table was read, and how many features it became. They are scaled as a block, so "
            "that a category of many words does not drown a number.",
        ),
        table(caption, ["column", "read as", "features", "weight", "missing", ""], rows, numeric=(2, 3, 4)),
    )


def eigenvalues_section(values: NDArray[np.float64], name: str) -> Markup:
    """Return the eigenvalues of the method's problem."""
    largest = float(np.abs(values).max()) or 1.0
    lines = []
    for k, value in enumerate(values[:MOST_BARS].tolist()):
        inside = tag("i", style=f"left:0;width:{100 * abs(value) / largest:.2f}%")
        bar = tag("span", inside, class_="bar one", aria_hidden="true")
        lines.append((tag("th", f"direction {k + 1}", scope="row"), bar, number(value, 4)))
    more = f" Shown are the first {MOST_BARS} of {len(values)}." if len(values) > MOST_BARS else ""
    return section(
        "eigenvalues",
        "Eigenvalues",
        tag(
            "p",
            f"Of the problem that {name} solves. They compare its directions with each other, not with other methods.",
            more,
        ),
        tag("div", _bars("Eigenvalues", lines), class_="columns"),
    )


def run_section(model: Sequence[tuple[str, Mapping[str, Any]]], run: Mapping[str, Any] | None) -> Markup:
    """Say what was run, with which parameters, and how long it took."""
    tables = [_facts(title, values) for title, values in model]
    given = {} if run is None else dict(run)
    loose = {key: value for key, value in given.items() if not isinstance(value, Mapping)}
    if loose:
        tables.append(_facts("Run", loose))
    tables += [_facts(str(key), value) for key, value in given.items() if isinstance(value, Mapping)]
    missing = (
        None if run is not None else tag("p", "How it was run, and how long it took, was not recorded.", class_="note")
    )
    return section("run", "What was run", missing, tag("div", *tables, class_="packed"))


def _facts(title: str, values: Mapping[str, Any]) -> Markup:
    heading = plain(title).replace("_", " ")
    heading = heading[:1].upper() + heading[1:]
    if not values:
        return tag("div", tag("h3", heading), tag("p", "All parameters have their defaults."), class_="block")
    seconds = any(word in title.lower() for word in ("timing", "seconds", "time"))
    rows = [
        tag("tr", tag("th", plain(key), scope="row"), tag("td", _fact(value, seconds=seconds)))
        for key, value in values.items()
    ]
    return tag(
        "div",
        tag("h3", heading),
        tag("table", tag("caption", heading, class_="hidden"), tag("tbody", *rows), class_="run"),
        class_="block",
    )


def _fact(value: Any, *, seconds: bool) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, (float, np.floating)):
        return number(value, 3 if seconds else 4) + (" s" if seconds else "")
    if isinstance(value, (int, np.integer)):
        return f"{value}" + (" s" if seconds else "")
    if isinstance(value, Mapping):
        return ", ".join(f"{plain(key)}: {_fact(part, seconds=seconds)}" for key, part in value.items())
    if isinstance(value, (list, tuple)):
        shown = ", ".join(_fact(part, seconds=seconds) for part in value[:MOST_LISTED]) or "none"
        return shown if len(value) <= MOST_LISTED else f"{shown} and {len(value) - MOST_LISTED:,} more"
    if isinstance(value, (str, bytes)):
        return plain(value)
    # The words of other objects may hold addresses, which differ from run to run.
    return type(value).__name__
