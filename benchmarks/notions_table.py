"""The summary of the league of notions, which is kept in docs/notions.json, and the tables made of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.maps_table import NAMES, OURS, mean_and_error
from benchmarks.notions_cases import GROUPS
from benchmarks.placed import Array

__all__ = ["BEGIN", "Summary", "tables"]

BEGIN = "<!-- generated: benchmarks.league --notions -->"
KEPT = (*NAMES, "seconds")
TITLES = {
    "minor": "Notions that are not the dominant structure",
    "dominant": "Notions that are the dominant structure",
    "rest": "Ordinary sets",
}
NOTHING = "0"
"""The one setting of methods that see no answer."""
ALONE = ("t-SNE", "UMAP")
"""Methods that see no answer: one map serves all settings."""
BY_CASE = [
    *((m, s) for m in (OURS, "PairLens", "LinearPairLens") for s in ("60", "200")),
    *((m, NOTHING) for m in ALONE),
]
"""Methods and settings in the table by case."""


@dataclass(frozen=True)
class Summary:
    """Means over draws.

    Attributes
    ----------
    draws : int
    tag : str
        The version of pairlens.
    means : dict of case, method and setting to the scores of KEPT
        Methods that see no answer have the setting NOTHING for all.
    """

    draws: int
    tag: str
    means: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]

    @classmethod
    def of(cls, results: Iterable[Any], draws: int, tag: str) -> Summary:
        """Return the means of results; a method that lacks a draw of a setting is left out there."""
        found: dict[tuple[str, str, str], dict[int, Any]] = {}
        for result in results:
            found.setdefault((result.case, result.method, result.setting), {})[result.draw] = result
        means: dict[str, dict[str, dict[str, list[float]]]] = {}
        for (case, method, setting), by_draw in found.items():
            if set(by_draw) >= set(range(draws)):
                chosen = [[getattr(by_draw[draw], what) for what in KEPT] for draw in range(draws)]
                values = np.mean(chosen, axis=0).round(4).tolist()
                means.setdefault(case, {}).setdefault(method, {})[setting] = values
        return cls(draws, tag, means)

    @classmethod
    def read(cls, text: str) -> Summary:
        """Return the summary that a text holds."""
        return cls(**json.loads(text))

    def written(self) -> str:
        """Return the summary as JSON, a line for each case and method."""
        cases = [
            f" {json.dumps(case)}: {{\n"
            + ",\n".join(f"  {json.dumps(method)}: {json.dumps(values)}" for method, values in methods.items())
            + "\n }"
            for case, methods in self.means.items()
        ]
        head = f'"draws": {self.draws},\n"tag": {json.dumps(self.tag)},\n"means": '
        return "{\n" + head + "{\n" + ",\n".join(cases) + "\n}\n}\n"

    def cases(self, group: str) -> list[str]:
        """Return the cases of a group that have results."""
        return [case for case in GROUPS[group] if case in self.means]

    def methods(self, group: str, settings: Sequence[str]) -> list[str]:
        """Return the methods that have results of all cases of a group in all settings."""
        cases = self.cases(group)
        known = dict.fromkeys(method for case in cases for method in self.means[case])
        return [m for m in known if all(self.value(case, m, s) is not None for case in cases for s in settings)]

    def scores(self, group: str, method: str, settings: Sequence[str], what: str = "ari") -> Array:
        """Return the scores of a method: rows are settings, columns are cases."""
        return np.array([[self.value(case, method, s, what) for case in self.cases(group)] for s in settings])

    def value(self, case: str, method: str, setting: str, what: str = "ari") -> float | None:
        """Return one score, or None if there is none."""
        by_setting = self.means[case].get(method, {})
        values = by_setting.get(setting, by_setting.get(NOTHING))
        return None if values is None else values[KEPT.index(what)]


def tables(summary: Summary, settings: Sequence[str], command: str) -> str:
    """Return the generated part of the page: what it comes to in sentences, and all tables."""
    lines = [f"`{command}`, pairlens {summary.tag}, {summary.draws} draws. Standard errors over cases are in brackets."]
    lines += ["", *sentences(summary, settings)]
    for group, title in TITLES.items():
        if cases := summary.cases(group):
            lines += ["", f"## {title}", "", f"{len(cases)} cases: {', '.join(cases)}.", ""]
            lines += group_table(summary, group, settings)
            lines += difference_table(summary, group, settings)
    lines += case_table(summary)
    return "\n".join(lines) + "\n"


def sentences(summary: Summary, settings: Sequence[str]) -> list[str]:
    """Return for each group what PairMap reaches, beside the maps that see no answer."""
    lines = []
    for group, title in TITLES.items():
        methods = summary.methods(group, settings)
        if OURS in methods:
            ours = [f"{row.mean():z.3f} ({s})" for s, row in zip(settings, summary.scores(group, OURS, settings))]
            alone = [f"{m} {summary.scores(group, m, settings).mean():.3f}" for m in methods if m in ALONE]
            beside = f"; {' and '.join(alone)}, which see no answer" if alone else ""
            lines.append(f"- {title}: mean ARI of {OURS} by number of pairs {', '.join(ours)}{beside}.")
    return lines


def group_table(summary: Summary, group: str, settings: Sequence[str]) -> list[str]:
    """Return ARI by method and setting with standard errors, and the means of the other scores over the settings."""
    others = [what for what in NAMES if what != "ari"]
    lines = [
        "| ARI | " + " | ".join(settings) + " | " + " | ".join(NAMES[what] for what in others) + " | seconds |",
        "|---|" + "--:|" * (len(settings) + len(others) + 1),
    ]
    methods = summary.methods(group, settings)
    ari = {method: summary.scores(group, method, settings) for method in methods}
    best = np.max([values.mean(axis=1) for values in ari.values()], axis=0)
    for method in methods:
        cells = [
            f"**{mean:.3f}** ({error:.3f})" if mean == top else f"{mean:.3f} ({error:.3f})"
            for (mean, error), top in zip(map(mean_and_error, ari[method]), best)
        ]
        cells += [f"{summary.scores(group, method, settings, what).mean():.3f}" for what in others]
        cells.append(f"{np.median(summary.scores(group, method, settings, 'seconds')):.1f}")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def difference_table(summary: Summary, group: str, settings: Sequence[str]) -> list[str]:
    """Return PairMap less each other method over all settings, and the cases in which it is ahead."""
    methods = summary.methods(group, settings)
    if OURS not in methods or len(methods) == 1:
        return []
    lines = ["", f"| {OURS} less | " + " | ".join(NAMES.values()) + " |", "|---|" + "--:|" * len(NAMES)]
    for method in methods:
        if method != OURS:
            cells = []
            for what in NAMES:
                ours, theirs = (summary.scores(group, m, settings, what).mean(axis=0) for m in (OURS, method))
                mean, error = mean_and_error(ours - theirs)
                cells.append(f"{mean:+.3f} ({error:.3f}), {(ours > theirs).sum()} of {len(ours)}")
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def case_table(summary: Summary) -> list[str]:
    """Return the ARI of each notion of the sets that have several."""
    heads = [f"{method}, {setting}" if setting != NOTHING else method for method, setting in BY_CASE]
    lines = ["", "## Case by case", "", "| ARI | " + " | ".join(heads) + " |", "|---|" + "--:|" * len(heads)]
    for case in (*summary.cases("minor"), *summary.cases("dominant")):
        found = [summary.value(case, method, setting) for method, setting in BY_CASE]
        lines.append(f"| {case} | " + " | ".join("" if v is None else f"{v:z.2f}" for v in found) + " |")
    return lines
