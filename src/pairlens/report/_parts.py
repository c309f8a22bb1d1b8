"""What a page says about constraints and about preferences: lines, numbers and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pairlens._markup import Markup, joined, tag
from pairlens.engines import IntArray
from pairlens.judging import HeldOutScore
from pairlens.report import _answer_sections as answer_sections
from pairlens.report import _sections as sections
from pairlens.report._pairs import TABLE_ROWS, Judged, auc_unlearnt, judge, list_pairs, rank, violations
from pairlens.report._points import Colours, Names
from pairlens.report._views import Control, FittedView
from pairlens.selection import held_out_accuracy, held_out_auc
from pairlens.supervision import Constraints, Preferences

MAX_LINES = 2_000
MANY_ROWS = 20_000
"""Rows of pairs up to which all of them are drawn, where not all rows can be."""


@dataclass(frozen=True)
class Material:
    """All that the parts of a page are made of.

    Attributes
    ----------
    model : estimator or Pipeline
    X : array-like
        The rows as the model takes them.
    fitted : FittedView
        What the model makes of them.
    controls : tuple of Control
        What is made of them without pairs; PCA first.
    names : Names
    colours : Colours
    held_out : HeldOutScore or None
        The held-out score, if it is known already.
    n_splits, seed : int
    """

    model: Any
    X: Any
    fitted: FittedView
    controls: tuple[Control, ...]
    names: Names
    colours: Colours
    held_out: HeldOutScore | None
    n_splits: int
    seed: int

    @property
    def method(self) -> str:
        """The name of the method."""
        return type(self.fitted.estimator).__name__


@dataclass(frozen=True)
class Lines:
    """Pairs of one kind that are drawn, and whether the view and the controls satisfy them."""

    kind: str
    pairs: IntArray
    judged: tuple[NDArray[np.bool_], ...]


class Places:
    """Where rows stand among those that are drawn."""

    def __init__(self, n_rows: int, drawn: IntArray | None) -> None:
        self._place = np.arange(n_rows)
        if drawn is not None:
            self._place[:] = -1
            self._place[drawn] = np.arange(len(drawn))

    def __call__(self, rows: IntArray) -> IntArray:
        """The places of rows that are drawn."""
        return self._place[rows]


class Part(Protocol):
    """A part of the page that draws lines."""

    lines: list[Lines]
    rows: IntArray
    """Rows that must be drawn."""
    figures: list[Markup]
    described: tuple[str, ...]
    """One line about the view, and one about each control."""

    def sections(self, places: Places) -> list[Markup]:
        """The text and the tables."""


class ConstraintPart:
    """Must-links and cannot-links."""

    def __init__(self, material: Material, constraints: Constraints, preferences: Preferences | None) -> None:
        self._material = material
        self._known = known = list_pairs(constraints, material.seed)
        views = (material.fitted.Z, *(control.Z for control in material.controls))
        self._judged = tuple(judge(Z, known, material.seed) for Z in views)
        self._found = violations(material.fitted.estimator, known, self._judged[0])
        drawn = _drawn(len(known.pairs), self._found.order, material.seed)
        self.lines = [
            Lines(kind, known.pairs[lines], tuple(judged.satisfied[lines] for judged in self._judged))
            for kind, of_kind in (("must", known.must), ("cannot", ~known.must))
            if len(lines := drawn[of_kind[drawn]])
        ]
        all_rows = np.unique(known.pairs)
        self.rows = all_rows if len(all_rows) <= MANY_ROWS else np.unique(known.pairs[drawn])
        self.described = tuple(_described(judged) for judged in self._judged)
        self._scores = self._all_scores(constraints, preferences)
        self.figures = self._figures()

    def _all_scores(
        self, constraints: Constraints, preferences: Preferences | None
    ) -> list[tuple[str, HeldOutScore, str]]:
        """AUC of the model, of the controls and of all features; empty if there is one kind of pair only."""
        material, known = self._material, self._known
        if known.must.all() or not known.must.any():
            return []
        rows = []
        score = material.held_out
        if score is None and material.n_splits >= 2 and hasattr(material.fitted.estimator, "transform"):
            score = held_out_auc(
                material.model,
                material.X,
                constraints,
                preferences=preferences,
                n_splits=material.n_splits,
                random_state=material.seed,
            )
        if score is not None:
            how = f"held-out pairs, {len(score.folds)} folds" if score.folds else "held-out pairs; too few of a kind"
            rows.append((material.method, score, how))
        n_splits = material.n_splits if score is None else len(score.folds)
        for name, Z, how in (
            *((control.told, control.Z, "the same pairs; it sees none") for control in material.controls),
            ("all features", material.fitted.rows, "the same pairs; nothing is learnt"),
        ):
            rows.append((name, auc_unlearnt(Z, constraints, n_splits, material.seed), how))
        return rows

    def _figures(self) -> list[Markup]:
        view, pca = self._judged[:2]
        n = len(self._known.pairs)
        n_must = int(self._known.must.sum())
        pairs = sections.figure(
            "pairs",
            f"{self._known.total:,}",
            f"{n_must:,} must-link, {n - n_must:,} cannot-link" if n == self._known.total else f"{n:,} judged",
        )
        satisfied = joined(f"{int(view.satisfied.sum()):,}", " ", tag("small", f"of {n:,}"))
        figures = [pairs, sections.figure("satisfied in the view", satisfied, f"{int(pca.satisfied.sum()):,} in PCA")]
        if self._scores:
            controls = self._material.controls
            of_controls = self._scores[-1 - len(controls) : -1]
            if len(self._scores) == len(controls) + 2:
                beside = ", ".join(f"{control.name} {one[1].mean:.2f}" for control, one in zip(controls, of_controls))
                figures.append(
                    sections.figure(
                        "held-out pair AUC", sections.with_error(self._scores[0][1]), f"{beside}, chance 0.50"
                    )
                )
        return figures

    def sections(self, places: Places) -> list[Markup]:
        """The rule, the counts and the AUC; and the pairs most violated."""
        material, view = self._material, self._judged[0]
        where = [_where(places(self._known.pairs[k])) for k in self._found.order]
        return [
            answer_sections.pairs_section(
                self._known,
                [(material.method, view), *((c.name, j) for c, j in zip(material.controls, self._judged[1:]))],
                self._scores,
            ),
            answer_sections.violations_section(
                self._known, view, self._found, where, material.names, material.colours, material.method
            ),
        ]


class PreferencePart:
    """Preferences."""

    def __init__(self, material: Material, preferences: Preferences) -> None:
        self._material = material
        self._ranked = ranked = rank(material.fitted.estimator, material.fitted.rows, preferences, material.seed)
        self._score: HeldOutScore | None = None
        self.lines: list[Lines] = []
        self.rows: IntArray = np.empty(0, dtype=np.int64)
        self.figures: list[Markup] = []
        n_controls = len(material.controls)
        self.described: tuple[str, ...] = ("",) * (1 + n_controls)
        if ranked is None:
            return
        self._worst = np.arange(min(TABLE_ROWS, int((~ranked.satisfied).sum())))
        drawn = _drawn(len(ranked.pairs), self._worst, material.seed)
        # Controls rank nothing: their panels show what the model satisfies.
        satisfied = ranked.satisfied[drawn]
        self.lines = [Lines("prefer", ranked.pairs[drawn], (satisfied,) * (1 + n_controls))]
        self.rows = np.unique(ranked.pairs[drawn])
        n, right = len(ranked.pairs), int(ranked.satisfied.sum())
        coloured = f"coloured by the ranking of {material.method}"
        self.described = (f"{right:,} of {n:,} preferences satisfied", *(coloured,) * n_controls)
        self.figures = [sections.figure("preferences satisfied", joined(f"{right:,}", " ", tag("small", f"of {n:,}")))]
        self._score = material.held_out
        if self._score is None and material.n_splits >= 2:
            self._score = held_out_accuracy(
                material.model, material.X, preferences, n_splits=material.n_splits, random_state=material.seed
            )
        if self._score is not None:
            self.figures.append(sections.figure("held-out accuracy", sections.with_error(self._score), "chance 0.50"))

    def sections(self, places: Places) -> list[Markup]:
        """What is satisfied, and what is contradicted most."""
        material, ranked = self._material, self._ranked
        where = [] if ranked is None else [_where(places(ranked.pairs[k])) for k in self._worst]
        return [answer_sections.preferences_section(ranked, self._score, where, material.names, material.method)]


def _described(judged: Judged) -> str:
    return f"{int(judged.satisfied.sum()):,} of {len(judged.satisfied):,} pairs satisfied"


def _drawn(n_pairs: int, first: IntArray, seed: int) -> IntArray:
    """The pairs to draw, sorted: all, or 2,000 with the `first` among them."""
    if n_pairs <= MAX_LINES:
        return np.arange(n_pairs)
    others = np.setdiff1d(np.arange(n_pairs), first)
    sample = np.random.default_rng(seed).choice(others, MAX_LINES - len(first), replace=False)
    return np.sort(np.concatenate([sample, first]))


def _where(pair: IntArray) -> str:
    return " ".join(str(place) for place in pair.tolist())
