"""Say which answers a view satisfies and how it compares: the lines, figures and tables of pairs and preferences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._markup import Markup, joined, number, tag
from pairlens._text import count
from pairlens.engines import IntArray, Rows, pair_squared_distances
from pairlens.judging import HeldOutScore, SuspiciousPairs, auc, auc_standard_error
from pairlens.report._points import Colours, Names
from pairlens.report._sections import figure, section, table, with_error
from pairlens.report._views import FittedView
from pairlens.selection.comparison import ViewJudgement
from pairlens.supervision import Constraints, Preferences

MAX_PAIRS = 20_000
"""Pairs that are judged; of more, this many are drawn."""
RANDOM_PAIRS = 10_000
TABLE_ROWS = 15
MAX_LINES = 2_000
MANY_ROWS = 20_000
"""Rows of pairs up to which all of them are drawn, where not all rows can be."""
TIMES = " \N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class Material:
    """Hold all that the parts of a page are made of."""

    fitted: FittedView
    judgement: ViewJudgement
    names: Names
    colours: Colours
    seed: int

    @property
    def method(self) -> str:
        """The name of the method."""
        return type(self.fitted.estimator).__name__


@dataclass(frozen=True)
class Lines:
    """Hold pairs of one kind that can be drawn.

    `judged` says for the view and for each control which of them it satisfies. `listed` are those in the table of pairs
    most violated, which are drawn from the start.
    """

    kind: str
    pairs: IntArray
    judged: tuple[NDArray[np.bool_], ...]
    listed: NDArray[np.bool_]


@dataclass(frozen=True)
class PairList:
    """Hold must-links, then cannot-links, as a list; there are `total` of them, more than listed where too many."""

    pairs: IntArray
    must: NDArray[np.bool_]
    total: int


def list_pairs(constraints: Constraints, seed: int, suspicious: SuspiciousPairs | None = None) -> PairList:
    """Return the pairs, or 20,000 of them: where labels imply them, those that the model has judged."""
    total = constraints.n_pairs
    if suspicious is not None and constraints.labels is not None:
        must = suspicious.link > 0
        order = np.lexsort((suspicious.pairs[:, 1], suspicious.pairs[:, 0], ~must))
        return PairList(suspicious.pairs[order], must[order], total)
    if total > MAX_PAIRS or constraints.labels is not None:
        constraints = constraints.sample(min(total, MAX_PAIRS), random_state=seed)
    pairs = np.concatenate([constraints.must_link, constraints.cannot_link])
    must = np.repeat([True, False], [constraints.n_must_link, constraints.n_cannot_link])
    return PairList(pairs, must, total)


def typical(Z: Rows, seed: int) -> float:
    """Return the median distance of random pairs of rows."""
    rng = np.random.default_rng(seed)
    n = Z.shape[0]
    first = rng.integers(n, size=RANDOM_PAIRS)
    second = (first + rng.integers(1, n, size=RANDOM_PAIRS)) % n
    return float(np.sqrt(np.median(pair_squared_distances(Z, np.stack([first, second], axis=1)))))


@dataclass(frozen=True)
class Judged:
    """Say which pairs a view satisfies: must-links up to a threshold, and cannot-links beyond it.

    The threshold `separates` the two kinds best; else it is the median distance of random pairs of rows.
    """

    distance: NDArray[np.float64]
    threshold: float
    separates: bool
    satisfied: NDArray[np.bool_]


def judge(Z: Rows, known: PairList, seed: int) -> Judged:
    """Compare the distances of the pairs with a threshold of the view.

    It is the distance that separates must-links from cannot-links best: the largest mean of the share of must-links up
    to it and of cannot-links beyond it. Where there is one kind only, or no distance does better than chance, it is the
    median distance of random pairs of rows.
    """
    distance = np.sqrt(pair_squared_distances(Z, known.pairs))
    threshold = _best_threshold(distance[known.must], distance[~known.must])
    separates = threshold is not None
    if threshold is None:
        threshold = typical(Z, seed)
    return Judged(distance, threshold, separates, (distance <= threshold) == known.must)


def _best_threshold(must: NDArray[np.float64], cannot: NDArray[np.float64]) -> float | None:
    if len(must) == 0 or len(cannot) == 0:
        return None
    levels = np.unique(np.concatenate([must, cannot]))
    if len(levels) == 1:
        return None
    between = (levels[:-1] + levels[1:]) / 2
    # Neighbouring numbers may have no number between them, and rounding must not put the upper one below its threshold.
    between = np.where(between < levels[1:], between, levels[:-1])
    short = np.searchsorted(np.sort(must), between, side="right") / len(must)
    long = 1 - np.searchsorted(np.sort(cannot), between, side="right") / len(cannot)
    best = int(np.argmax(short + long))
    return float(between[best]) if short[best] + long[best] > 1 else None


@dataclass(frozen=True)
class Violations:
    """Hold the pairs that are most violated, the worst first, by their places in the list of the pairs.

    `factor` is by how much each misses the threshold: 2 is a must-link twice as long, or a cannot-link half as long.
    `suspicion` is what the model thinks: the probability that the answer is wrong, from a view that did not see it.
    """

    order: IntArray
    factor: NDArray[np.float64]
    suspicion: NDArray[np.float64] | None
    n_standing_out: int = 0


def violations(suspicious: SuspiciousPairs | None, known: PairList, judged: Judged) -> Violations:
    """Order pairs by the suspicion of the model where it has one of these pairs, else by how far they miss.

    Listed are the pairs that are violated, and those that stand out as wrong.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = judged.distance / judged.threshold
        factor = np.where(known.must, ratio, 1 / ratio)
    factor = np.where(judged.satisfied, 0.0, np.nan_to_num(factor, nan=1.0, posinf=np.inf))
    suspicion = _suspicion(suspicious, known)
    if suspicious is None or suspicion is None:
        worst = np.argsort(-factor, kind="stable")
        order = worst[~judged.satisfied[worst]][:TABLE_ROWS]
        return Violations(order, factor[order], None)
    order = np.argsort(-suspicion, kind="stable")
    stands_out = suspicion > suspicious.threshold
    order = order[stands_out[order] | ~judged.satisfied[order]][:TABLE_ROWS]
    return Violations(order, factor[order], suspicion[order], int(stands_out.sum()))


def _suspicion(found: SuspiciousPairs | None, known: PairList) -> NDArray[np.float64] | None:
    """Return the suspicion of each pair; None if the model has none, or judged other pairs than these."""
    if found is None:
        return None
    of = {(*pair, link > 0): value for pair, link, value in zip(found.pairs.tolist(), found.link, found.suspicion)}
    values = [of.get((a, b, must)) for (a, b), must in zip(known.pairs.tolist(), known.must.tolist())]
    return None if None in values else np.array(values, dtype=np.float64)


@dataclass(frozen=True)
class Ranked:
    """Hold preferences (better, worse), those that the model's ranking contradicts most first; there are `total` of
    them.

    `margin` is by how much the better row scores higher, in standard deviations of the scores.
    """

    pairs: IntArray
    margin: NDArray[np.float64]
    total: int

    @property
    def satisfied(self) -> NDArray[np.bool_]:
        """Return whether the better row scores higher."""
        return self.margin > 0


def rank(estimator: Any, rows: Rows, preferences: Preferences, seed: int) -> Ranked | None:
    """Judge preferences by the scores of the model; None if it gives none."""
    try:
        scores = np.asarray(estimator.decision_function(rows), dtype=np.float64)
    except (AttributeError, ValueError):
        # A model of another kind, or one that was fitted without preferences.
        return None
    pairs = preferences.pairs
    if len(pairs) > MAX_PAIRS:
        pairs = pairs[np.sort(np.random.default_rng(seed).choice(len(pairs), MAX_PAIRS, replace=False))]
    margin = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    deviation = scores.std()
    margin = margin / deviation if deviation > 0 else np.zeros(len(pairs))
    order = np.argsort(margin, kind="stable")
    return Ranked(pairs[order], margin[order], preferences.n_pairs)


class ConstraintPart:
    """Describe must-links and cannot-links."""

    def __init__(self, material: Material, constraints: Constraints) -> None:
        self._material = material
        suspicious = None if material.judgement.pairs is None else material.judgement.pairs.suspicious
        self._known = known = list_pairs(constraints, material.seed, suspicious)
        views = (material.fitted.Z, *(control.Z for control in material.judgement.controls))
        self._judged = tuple(judge(Z, known, material.seed) for Z in views)
        self._found = violations(suspicious, known, self._judged[0])
        drawn = _drawn(len(known.pairs), self._found.order, material.seed)
        listed = np.isin(drawn, self._found.order)
        self.lines = [
            Lines(
                kind,
                known.pairs[drawn[chosen]],
                tuple(judged.satisfied[drawn[chosen]] for judged in self._judged),
                listed[chosen],
            )
            for kind, of_kind in (("must", known.must), ("cannot", ~known.must))
            if (chosen := of_kind[drawn]).any()
        ]
        all_rows = np.unique(known.pairs)
        self.rows = all_rows if len(all_rows) <= MANY_ROWS else np.unique(known.pairs[drawn])
        self.described = tuple(
            f"{int(judged.satisfied.sum()):,} of {len(judged.satisfied):,} pairs satisfied" for judged in self._judged
        )
        self.figures = self._figures()

    def _figures(self) -> list[Markup]:
        view, pca = self._judged[:2]
        n, n_must = len(self._known.pairs), int(self._known.must.sum())
        counted = f"{n_must:,} must-link, {n - n_must:,} cannot-link" if n == self._known.total else f"{n:,} judged"
        satisfied = joined(f"{int(view.satisfied.sum()):,}", " ", tag("small", f"of {n:,}"))
        figures = [
            figure("pairs", f"{self._known.total:,}", counted),
            figure("satisfied in the view", satisfied, f"{int(pca.satisfied.sum()):,} in PCA"),
        ]
        judgement = self._material.judgement
        if judgement.pairs is not None:
            beside = "; ".join(str(verdict) for verdict in judgement.verdicts)
            figures.append(figure("held-out pair AUC", with_error(judgement.score), beside))
        return figures

    def sections(self, place: IntArray) -> list[Markup]:
        """Return the rule, the counts and the AUC; and the pairs most violated. `place` is that of each drawn row."""
        return [self._counts(), *([] if len(self._found.order) == 0 else [self._violations(place)])]

    def _counts(self) -> Markup:
        material, known, parts = self._material, self._known, self._judged
        names = [material.method, *(control.name for control in material.judgement.controls)]
        rows: list[list[Any]] = [
            [kind, f"{chosen.sum():,}", *(_share(part.satisfied[chosen]) for part in parts)]
            for kind, chosen in (("must-links", known.must), ("cannot-links", ~known.must))
            if chosen.any()
        ]
        rows.append(["all pairs", f"{len(known.pairs):,}", *(_share(part.satisfied) for part in parts)])
        rows.append(["threshold", "", *(number(part.threshold) for part in parts)])
        said = [
            f"Of the {known.total:,} pairs, {len(known.pairs):,} drawn at random are judged here."
            if known.total > len(known.pairs)
            else "",
            _rule(parts[0], names[1:]),
            f"{material.method} has learned from these pairs, so that it satisfies most of them says little. The "
            "held-out AUC says how well it does with others.",
            f"No pair is violated. {_standing_out(self._found)}" if len(self._found.order) == 0 else "",
        ]
        caption = "Satisfied pairs, in the view and in views that see no pair"
        counts = table(caption, ["", "pairs", *names], rows, numeric=range(1, 2 + len(names)))
        return section(
            "pairs",
            "Pairs",
            tag("p", " ".join(filter(None, said))),
            tag("div", counts, self._scores(), class_="columns"),
        )

    def _scores(self) -> Markup | None:
        """Return the AUC of the view, the controls and all features on the same pairs, and the verdicts."""
        material, judged = self._material, self._material.judgement.pairs
        known = self._known
        if known.must.all() or not known.must.any():
            return None
        rows: list[list[Any]] = []
        if judged is not None:
            known = PairList(judged.pairs, judged.same, known.total)
            folds = f", {count(len(judged.score.folds), 'fold')}" if judged.score.folds else ""
            rows.append([material.method, with_error(judged.score), f"held-out pairs{folds}"])
        views = [(each.name, each.Z) for each in material.judgement.controls]
        said = [f"{material.method} is {verdict}" for verdict in material.judgement.verdicts] or [""] * len(views)
        for (name, Z), verdict in zip([*views, ("all features", material.fitted.rows)], [*said, ""]):
            distance = pair_squared_distances(Z, known.pairs)
            value = auc(distance[known.must], distance[~known.must])
            error = auc_standard_error(value, int(known.must.sum()), int((~known.must).sum()))
            what = verdict.replace(f"{material.method} is too few pairs", "Too few pairs") or "nothing is learned"
            rows.append([name, with_error(HeldOutScore(value, error, ())), what])
        caption = (
            "Held-out pair AUC: the probability that a must-link is shorter than a cannot-link, ± its standard error; "
            "0.50 is chance. All are judged by the same pairs"
        )
        return table(caption, ["", "AUC", ""], rows, numeric=(1,))

    def _violations(self, place: IntArray) -> Markup:
        known, found, view = self._known, self._found, self._judged[0]
        names, colours = self._material.names, self._material.colours
        if found.suspicion is not None:
            how = (
                f"{_standing_out(found)} The table lists the answers that the view violates and those that stand out, "
                f"ordered by the suspicious_pairs() of {self._material.method}: the probability that an answer is "
                "wrong, estimated from views that did not see it."
            )
        else:
            how = (
                f"Ordered by how far the distance misses the threshold: 2{TIMES} is a must-link twice as long, or a "
                "cannot-link half as long."
            )
        label = ["label"] if colours.given else []
        head = ["row", *label, "row", *label, "kind", *([] if found.suspicion is None else ["suspicion"])]
        body = []
        for at, k in enumerate(found.order):
            cells: list[Markup] = []
            for row in known.pairs[k]:
                cells.append(tag("td", names.shown(row)))
                if colours.given:
                    cells.append(tag("td", tag("bdi", colours.text(row))))
            cells.append(tag("td", "must-link" if known.must[k] else "cannot-link"))
            if found.suspicion is not None:
                cells.append(tag("td", f"{found.suspicion[at]:.0%}", class_="n"))
            missed = f"{number(found.factor[at], 2)}{TIMES}" if found.factor[at] else None
            satisfied = bool(view.satisfied[k])
            cells.append(tag("td", number(view.distance[k]), class_="n"))
            cells.append(tag("td", missed, class_="n"))
            cells.append(tag("td", "satisfied" if satisfied else "violated", class_=None if satisfied else "bad"))
            cells.append(tag("td", _show_button(place[known.pairs[k]]), class_="screen"))
            body.append(tag("tr", *cells))
        listed = _pair_table([*head, "distance", "misses by", "in the view"], body, len(known.pairs))
        return section("violated", "Pairs most violated", tag("p", how), listed)


class PreferencePart:
    """Describe preferences."""

    def __init__(self, material: Material, ranked: Ranked) -> None:
        self._material, self._ranked = material, ranked
        self._score = material.judgement.accuracy
        n, right = len(ranked.pairs), int(ranked.satisfied.sum())
        self._worst = np.arange(min(TABLE_ROWS, n - right))
        drawn = _drawn(n, self._worst, material.seed)
        n_controls = len(material.judgement.controls)
        # Controls rank nothing: their panels show what the model satisfies.
        judged = (ranked.satisfied[drawn],) * (1 + n_controls)
        self.lines = [Lines("prefer", ranked.pairs[drawn], judged, np.isin(drawn, self._worst))]
        self.rows: IntArray = np.unique(ranked.pairs[drawn])
        coloured = f"coloured by the ranking of {material.method}"
        self.described: tuple[str, ...] = (f"{right:,} of {n:,} preferences satisfied", *(coloured,) * n_controls)
        self.figures = [figure("preferences satisfied", joined(f"{right:,}", " ", tag("small", f"of {n:,}")))]
        if self._score is not None:
            self.figures.append(figure("held-out accuracy", with_error(self._score), "chance 0.50"))

    def sections(self, place: IntArray) -> list[Markup]:
        """Return what is satisfied, and what is contradicted most. `place` is that of each drawn row."""
        ranked, score, names = self._ranked, self._score, self._material.names
        n = len(ranked.pairs)
        drawn = f", drawn at random from {ranked.total:,}" if ranked.total > n else ""
        text = [
            f"A preference is satisfied if the model scores the better row higher: {int(ranked.satisfied.sum()):,} of "
            f"{n:,} ({ranked.satisfied.mean():.0%}){drawn}. It has learned from these."
        ]
        if score is not None and not np.isnan(score.mean):
            text.append(
                f"Of preferences that were held out ({len(score.folds)} folds), {score.mean:.0%} ± "
                f"{score.standard_error:.0%} come out right; 50% is chance."
            )
        listed = None
        if len(self._worst):
            text.append("Those most contradicted first; the margin is in standard deviations of the scores.")
            body = [
                tag(
                    "tr",
                    *(tag("td", names.shown(row)) for row in ranked.pairs[k]),
                    tag("td", number(ranked.margin[k], 2), class_="n"),
                    tag("td", _show_button(place[ranked.pairs[k]]), class_="screen"),
                )
                for k in self._worst
            ]
            listed = _pair_table(["better", "worse", "margin"], body, n, width=None)
        return [section("preferences", "Preferences", *(tag("p", part) for part in text), listed)]


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


def _share(satisfied: NDArray[np.bool_]) -> str:
    return f"{satisfied.sum():,} ({satisfied.mean():.0%})" if len(satisfied) else "none"


def _standing_out(found: Violations) -> str:
    """Say how many answers look wrong; nothing if the model does not judge them."""
    n = found.n_standing_out
    if found.suspicion is None:
        return ""
    if n == 0:
        return "No answer stands out as wrong."
    return f"{count(n, 'answer')} {'stands' if n == 1 else 'stand'} out as wrong; about 1% of right answers do."


def _show_button(places: IntArray) -> Markup:
    return tag("button", "show", type="button", data_pair=" ".join(map(str, places.tolist())), aria_pressed="false")


def _pair_table(head: Sequence[str], body: Sequence[Markup], n_pairs: int, width: str | None = "wide") -> Markup:
    numeric = {"suspicion", "distance", "misses by", "margin"}
    cells = [tag("th", text, scope="col", class_="n" if text in numeric else None) for text in head]
    cells.append(tag("th", tag("span", "show in the plots", class_="hidden"), scope="col", class_="screen"))
    caption = tag("caption", f"{len(body)} of {count(n_pairs, 'pair')}")
    content = caption, tag("thead", tag("tr", *cells)), tag("tbody", *body)
    return tag("div", tag("table", *content, class_=width), class_="scroll")


def _drawn(n_pairs: int, first: IntArray, seed: int) -> IntArray:
    """Return the pairs that can be drawn, sorted: all, or 2,000 with the `first` among them."""
    if n_pairs <= MAX_LINES:
        return np.arange(n_pairs)
    others = np.setdiff1d(np.arange(n_pairs), first)
    sample = np.random.default_rng(seed).choice(others, MAX_LINES - len(first), replace=False)
    return np.sort(np.concatenate([sample, first]))
