"""The parts of the page, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._markup import Markup, count, joined, number, plain, tag
from pairlens.judging import HeldOutScore
from pairlens.judging.suspicion import STANDS_OUT
from pairlens.report._pairs import Judged, PairList, Ranked, Violations
from pairlens.report._points import Colours, Names
from pairlens.report._views import MAX_AXES, Weights

TOP_FEATURES = 10
TIMES = " \N{MULTIPLICATION SIGN}"
MOST_BARS = 30
MOST_LISTED = 12
MOST_COLUMNS = 200


def section(key: str, title: str, *content: Any) -> Markup:
    """A part of the page with its heading."""
    return tag("section", tag("h2", title, id=f"{key}-title"), *content, id=key, aria_labelledby=f"{key}-title")


def figure(name: str, value: Any, beside: Any = None) -> Markup:
    """One of the numbers at the top."""
    inside = joined(tag("span", value, class_="value"), tag("br"), tag("span", beside, class_="beside"))
    return tag("div", tag("dt", name), tag("dd", inside if beside else tag("span", value, class_="value")))


def with_error(score: HeldOutScore) -> Markup:
    """A score and its standard error."""
    if np.isnan(score.mean):
        return Markup("unknown")
    return joined(f"{score.mean:.2f}", " ", tag("small", f"± {score.standard_error:.2f}"))


def table(caption: Any, head: Sequence[Any], rows: Sequence[Sequence[Any]], *, numeric: Sequence[int] = ()) -> Markup:
    """A table; the first column names the rows."""

    def cell(kind: str, column: int, value: Any, scope: str | None = None) -> Markup:
        return tag(kind, value, class_="n" if column in numeric else None, scope=scope)

    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption) if caption else None,
            tag("thead", tag("tr", *(cell("th", k, text, "col") for k, text in enumerate(head)))),
            tag(
                "tbody",
                *(
                    tag("tr", *(cell("th" if k == 0 else "td", k, v, None if k else "row") for k, v in enumerate(row)))
                    for row in rows
                ),
            ),
        ),
        class_="scroll block",
    )


def panel(key: str, title: str, axes: Sequence[str], described: str, caption: str) -> Markup:
    """A plot with its heading; selects for the axes where there is a choice."""
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
    """The scatter plots and what controls them."""
    words = {"must": "must-links", "cannot": "cannot-links", "prefer": "preferences (a dot at the better row)"}

    def box(key: str, text: str, style: str) -> Markup:
        return tag(
            "label",
            tag("input", type="checkbox", data_show=key, checked=True, class_="screen"),
            tag("span", class_=f"key {style}"),
            text,
        )

    pairs = None
    if kinds:
        pairs = tag(
            "fieldset",
            tag("legend", "Pairs"),
            box("satisfied", "satisfied", "satisfied"),
            box("violated", "violated", "violated"),
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


def pairs_section(
    known: PairList, judged: Sequence[tuple[str, Judged]], scores: Sequence[tuple[str, HeldOutScore, str]]
) -> Markup:
    """How many pairs are satisfied, in the view and in the controls, by what rule, and how held-out ones come out."""
    names, parts = zip(*judged)
    rows: list[list[Any]] = []
    for kind, chosen in (("must-links", known.must), ("cannot-links", ~known.must)):
        if chosen.any():
            rows.append([kind, f"{chosen.sum():,}", *(_share(part.satisfied[chosen]) for part in parts)])
    rows.append(["all pairs", f"{len(known.pairs):,}", *(_share(part.satisfied) for part in parts)])
    rows.append(["threshold", "", *(number(part.threshold) for part in parts)])
    drawn = None
    if known.total > len(known.pairs):
        drawn = f"Of the {known.total:,} pairs, {len(known.pairs):,} drawn at random are judged here. "
    return section(
        "pairs",
        "Pairs",
        tag("p", drawn, _rule(parts[0], names[1:]), " ", _learnt_from(names[0])),
        tag(
            "div",
            table(
                "Satisfied pairs, in the view and in what sees no pair",
                ["", "pairs", *names],
                rows,
                numeric=range(1, 2 + len(names)),
            ),
            _scores_table(scores) if scores else None,
            class_="columns",
        ),
    )


def without_pairs() -> Markup:
    """What is said where there are none."""
    return section("pairs", "Pairs", tag("p", "No pairs were given, so there is nothing to judge the view by."))


def _rule(view: Judged, others: Sequence[str]) -> str:
    said = "A must-link is satisfied if its rows are no farther apart than a threshold, a cannot-link if they are. "
    if view.separates:
        return (
            said
            + "The threshold is the distance in the view that separates the two kinds best (the mean of the shares of "
            f"satisfied must-links and cannot-links is largest); {' and '.join(others)} "
            f"{'has its' if len(others) == 1 else 'have their'} own by the same rule."
        )
    return said + (
        "The threshold is the median distance of random pairs of rows: there is one kind of pair only, or no distance "
        "separates the two."
    )


def _learnt_from(name: str) -> str:
    return (
        f"{name} has learnt from these pairs, so it is no merit that it satisfies most of them. How well it does with "
        "others is what the held-out AUC says."
    )


def _scores_table(scores: Sequence[tuple[str, HeldOutScore, str]]) -> Markup:
    rows = [[name, with_error(score), how] for name, score, how in scores]
    caption = (
        "Held-out pair AUC: the probability that a must-link is shorter than a cannot-link, ± its standard error; 0.50 "
        "is chance"
    )
    return table(caption, ["", "AUC", "judged by"], rows, numeric=(1,))


def _share(satisfied: NDArray[np.bool_]) -> str:
    if len(satisfied) == 0:
        return "none"
    return f"{satisfied.sum():,} ({satisfied.mean():.0%})"


def violations_section(
    known: PairList, judged: Judged, found: Violations, places: Sequence[str], names: Names, colours: Colours, name: str
) -> Markup:
    """The pairs most violated."""
    suspicious = found.suspicion is not None
    heading = "Pairs most violated"
    if len(found.order) == 0:
        return section("violated", heading, tag("p", f"No pair is violated. {_standing_out(found)}".strip()))
    if suspicious:
        how = (
            f"{_standing_out(found)} The table lists the answers that the view violates and those that stand out, "
            f"ordered by the suspicious_pairs() of {name}: the probability that an answer is wrong, estimated from "
            "views that did not see it."
        )
    else:
        how = (
            f"Ordered by how far the distance misses the threshold: 2{TIMES} is a must-link twice as long, or a "
            "cannot-link half as long."
        )
    head = ["row", *(["label"] if colours.given else []), "row", *(["label"] if colours.given else []), "kind"]
    head += [*(["suspicion"] if suspicious else []), "distance", "misses by", "in the view"]
    body = []
    for place, k in enumerate(found.order):
        cells: list[Markup] = []
        for row in known.pairs[k]:
            cells.append(tag("td", names.shown(row)))
            if colours.given:
                cells.append(tag("td", tag("bdi", colours.text(row))))
        cells.append(tag("td", "must-link" if known.must[k] else "cannot-link"))
        if found.suspicion is not None:
            cells.append(tag("td", f"{found.suspicion[place]:.0%}", class_="n"))
        cells.append(tag("td", number(judged.distance[k]), class_="n"))
        cells.append(tag("td", f"{number(found.factor[place], 2)}{TIMES}" if found.factor[place] else None, class_="n"))
        satisfied = bool(judged.satisfied[k])
        cells.append(tag("td", "satisfied" if satisfied else "violated", class_=None if satisfied else "bad"))
        cells.append(tag("td", _show_button(places[place]), class_="screen"))
        body.append(tag("tr", *cells))
    return section("violated", heading, tag("p", how), _pair_table(head, body, len(found.order), len(known.pairs)))


def _standing_out(found: Violations) -> str:
    """How many answers look wrong; nothing if the model does not say."""
    if found.suspicion is None:
        return ""
    n = int(np.count_nonzero(found.suspicion > STANDS_OUT))
    if n == 0:
        return "No answer stands out as wrong."
    return f"{count(n, 'answer')} {'stands' if n == 1 else 'stand'} out: more probably wrong than right."


def _show_button(place: str) -> Markup:
    return tag("button", "show", type="button", data_pair=place, aria_pressed="false")


def _pair_table(
    head: Sequence[str], body: Sequence[Markup], n_shown: int, n_pairs: int, width: str | None = "wide"
) -> Markup:
    numeric = {"suspicion", "distance", "misses by", "margin"}
    cells = [tag("th", text, scope="col", class_="n" if text in numeric else None) for text in head]
    cells.append(tag("th", tag("span", "show in the plots", class_="hidden"), scope="col", class_="screen"))
    return tag(
        "div",
        tag(
            "table",
            tag(
                "caption",
                f"{n_shown} of {count(n_pairs, 'pair')}",
            ),
            tag("thead", tag("tr", *cells)),
            tag("tbody", *body),
            class_=width,
        ),
        class_="scroll",
    )


def preferences_section(
    ranked: Ranked | None, score: HeldOutScore | None, worst: Sequence[str], names: Names, name: str
) -> Markup:
    """Which preferences the ranking of the model gets right."""
    if ranked is None:
        return section(
            "preferences",
            "Preferences",
            tag(
                "p", f"{name} does not score rows, or was fitted without preferences, so it can say nothing about them."
            ),
        )
    n_right, n_all = int(ranked.satisfied.sum()), len(ranked.pairs)
    said = f"{n_right:,} of {n_all:,} ({ranked.satisfied.mean():.0%})" if n_all else "none were given"
    drawn = f", drawn at random from {ranked.total:,}" if ranked.total > n_all else ""
    text = [
        f"A preference is satisfied if the model scores the better row higher: {said}{drawn}. It has learnt from these."
    ]
    if score is not None and not np.isnan(score.mean):
        text.append(
            f"Of preferences that were held out ({len(score.folds)} folds), {score.mean:.0%} ± "
            f"{score.standard_error:.0%} come out right; 50% is chance."
        )
    if not worst:
        return section("preferences", "Preferences", *(tag("p", part) for part in text))
    body = [
        tag(
            "tr",
            *(tag("td", names.shown(row)) for row in ranked.pairs[k]),
            tag("td", number(ranked.margin[k], 2), class_="n"),
            tag("td", _show_button(place), class_="screen"),
        )
        for k, place in enumerate(worst)
    ]
    return section(
        "preferences",
        "Preferences",
        *(tag("p", part) for part in text),
        tag("p", "Those most contradicted first; the margin is in standard deviations of the scores."),
        _pair_table(["better", "worse", "margin"], body, len(worst), n_all, width=None),
    )


def features_section(weights: Weights, axes: Sequence[str], names: Sequence[str], steps: Sequence[str]) -> Markup:
    """The features that weigh most in each direction."""
    if weights.weight is None:
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
    for effect, axis in zip(weights.effect, axes):
        order = np.argsort(-np.abs(effect), kind="stable")[:TOP_FEATURES]
        order = order[effect[order] != 0]
        largest = 1.0 if weights.weight is None else float(np.abs(effect).max(initial=0))
        rows = [
            tag(
                "tr",
                tag("th", tag("bdi", plain(names[k])), scope="row", title=plain(names[k])),
                tag("td", _bar(effect[k] / largest)),
                tag("td", number(effect[k], 2), class_="n"),
            )
            for k in order
        ]
        content = tag("table", tag("caption", axis, class_="hidden"), tag("tbody", *rows), class_="weights")
        blocks.append(
            tag(
                "div",
                tag("h3", axis[0].upper() + axis[1:]),
                content if rows else tag("p", "No feature."),
                class_="block",
            )
        )
    top = "" if len(names) <= TOP_FEATURES else f" The {TOP_FEATURES} strongest of {len(names):,} features."
    return section("features", "Features", tag("p", how + top), tag("div", *blocks, class_="columns"))


def _bar(share: float) -> Markup:
    """A bar from the middle, to the right if positive."""
    width = 50 * min(1.0, abs(float(share)))
    side = "left:50%" if share >= 0 else f"left:{50 - width:.2f}%"
    inside = tag("i", class_=None if share >= 0 else "minus", style=f"{side};width:{width:.2f}%")
    return tag("span", inside, class_="bar", aria_hidden="true")


def columns_section(columns: Sequence[Mapping[str, Any]]) -> Markup:
    """What was done with each column of a table of mixed columns."""
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


def eigenvalues_section(values: NDArray[np.float64] | None, name: str) -> Markup:
    """The eigenvalues of the method's problem."""
    if values is None or len(values) == 0:
        return section("eigenvalues", "Eigenvalues", tag("p", f"{name} solves no eigenproblem, so there are none."))
    largest = float(np.abs(values).max()) or 1.0
    rows = [
        tag(
            "tr",
            tag("th", f"direction {k + 1}", scope="row"),
            tag(
                "td",
                tag(
                    "span",
                    tag("i", style=f"left:0;width:{100 * abs(value) / largest:.2f}%"),
                    class_="bar one",
                    aria_hidden="true",
                ),
            ),
            tag("td", number(value, 4), class_="n"),
        )
        for k, value in enumerate(values[:MOST_BARS].tolist())
    ]
    more = f" Shown are the first {MOST_BARS} of {len(values)}." if len(values) > MOST_BARS else ""
    return section(
        "eigenvalues",
        "Eigenvalues",
        tag(
            "p",
            f"Of the problem that {name} solves. They compare its directions with each other, not with other methods.",
            more,
        ),
        tag(
            "div",
            tag("table", tag("caption", "Eigenvalues", class_="hidden"), tag("tbody", *rows), class_="weights"),
            class_="columns",
        ),
    )


def run_section(model: Sequence[tuple[str, Mapping[str, Any]]], run: Mapping[str, Any] | None) -> Markup:
    """What was run, with which parameters, and how long it took."""
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
