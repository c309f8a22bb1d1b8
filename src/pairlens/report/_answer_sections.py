"""The parts of the page about answers: held-out pairs, answers that the view contradicts, preferences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._markup import Markup, count, number, tag
from pairlens.judging import HeldOutScore
from pairlens.judging.suspicion import STANDS_OUT
from pairlens.report._pairs import Judged, PairList, Ranked, Violations
from pairlens.report._points import Colours, Names
from pairlens.report._sections import section, table, with_error

TIMES = " \N{MULTIPLICATION SIGN}"


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
