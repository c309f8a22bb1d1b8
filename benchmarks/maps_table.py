"""The tables of the league of maps: means over sets, and differences with standard errors over sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cell", "MapScores", "differences", "filled_page", "tables"]

Array = NDArray[np.float64]
OURS = "PairMap"
ROWS_ALONE = "t-SNE"
BEGIN, END = "<!-- generated: benchmarks.league --maps -->", "<!-- end of generated -->"
NAMES = {"ari": "ARI", "nn1": "1-NN", "nn5": "5-NN", "auc": "AUC"}


@dataclass(frozen=True)
class Cell:
    """The scores of one map; `error` is empty if all went well, and the scores are zero otherwise."""

    set: str
    method: str
    setting: str
    ari: float
    nn1: float
    nn5: float
    auc: float
    seconds: float
    error: str


@dataclass(frozen=True)
class MapScores:
    """One array for each score: axes are methods, settings and sets."""

    methods: list[str]
    settings: list[str]
    sets: list[str]
    values: dict[str, Array]

    @classmethod
    def of(cls, cells: Iterable[Cell], methods: Sequence[str], settings: Sequence[str]) -> MapScores:
        """From cells; a method without answers has one for all settings. Sets that lack a cell are left out."""
        found = {(cell.method, cell.setting, cell.set): cell for cell in cells}
        alone = {method: {s for m, s, _ in found if m == method} for method in methods}

        def at(method: str, setting: str, name: str) -> Cell | None:
            only = alone[method] if len(alone[method]) == 1 else {setting}
            return found.get((method, setting if setting in only else next(iter(only)), name))

        every = sorted({name for _, _, name in found})
        sets = [n for n in every if all(at(m, s, n) is not None for m in methods for s in settings)]
        values = {
            what: np.array([[[getattr(at(m, s, n), what) for n in sets] for s in settings] for m in methods])
            for what in (*NAMES, "seconds")
        }
        return cls(list(methods), list(settings), sets, values)


def mean_and_error(difference: Array) -> tuple[float, float]:
    """Mean over sets and its standard error."""
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.nan
    return float(difference.mean()), float(error)


def differences(scores: MapScores, what: str) -> dict[str, tuple[float, float, int]]:
    """PairMap less each other method, mean over settings first: mean, standard error, and sets in which it is ahead."""
    ours = scores.values[what][scores.methods.index(OURS)].mean(axis=0)
    result = {}
    for number, method in enumerate(scores.methods):
        if method != OURS:
            gap = ours - scores.values[what][number].mean(axis=0)
            result[method] = (*mean_and_error(gap), int((gap > 0).sum()))
    return result


def tables(scores: MapScores, command: str) -> str:
    """The tables as Markdown."""
    n = len(scores.sets)
    lines = [
        f"`{command}`: {n} sets ({', '.join(scores.sets)}).",
        "",
        "| ARI | " + " | ".join(scores.settings) + " | all | 1-NN | 5-NN | AUC | seconds |",
        "|---|" + "--:|" * (len(scores.settings) + 5),
    ]
    best = scores.values["ari"].mean(axis=2).max(axis=0)
    for number, method in enumerate(scores.methods):
        by_setting = scores.values["ari"][number].mean(axis=1)
        cells = [f"**{v:.3f}**" if v == b else f"{v:.3f}" for v, b in zip(by_setting, best)]
        cells += [f"{scores.values[what][number].mean():.3f}" for what in NAMES]
        cells.append(f"{np.median(scores.values['seconds'][number]):.1f}")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "PairMap less the others over all settings, with the standard error over sets, and the sets in which it is "
        "ahead:",
        "",
        "| PairMap less | " + " | ".join(NAMES.values()) + " |",
        "|---|" + "--:|" * len(NAMES),
    ]
    by_score = {what: differences(scores, what) for what in NAMES}
    for method in scores.methods:
        if method != OURS:
            cells = [f"{d:+.3f} ({e:.3f}), {w} of {n}" for d, e, w in (by_score[what][method] for what in NAMES)]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    ours, alone = (scores.methods.index(method) for method in (OURS, ROWS_ALONE))
    lines += [
        "",
        "PairMap less t-SNE of the rows alone, in each setting:",
        "",
        "| | " + " | ".join(scores.settings) + " |",
        "|---|" + "--:|" * len(scores.settings),
    ]
    for what, title in NAMES.items():
        gaps = scores.values[what][ours] - scores.values[what][alone]
        cells = ["{:+.3f} ({:.3f})".format(*mean_and_error(gap)) for gap in gaps]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def filled_page(page: str, text: str, mark: str = BEGIN) -> str:
    """The page with the generated part, which begins with a mark, replaced."""
    before, begin, rest = page.partition(mark)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the tables: put {mark} and {END} into it")
    return f"{before}{mark}\n\n{text}\n{END}{after}"
