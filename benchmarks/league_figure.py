"""The picture of the league: mean ARI over the number of pairs, for each number of directions and share of errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.league_table import BASELINE, TITLES, Scores
from reproduction.figures import MARKERS, repeatable_style

__all__ = ["save"]

SHOWN = {
    "PairLens": "C0",
    "LinearPairLens": "C1",
    "KernelBWDR": "C2",
    "KernelWBDR": "C3",
    "WBDR": "C4",
    "BWDR": "C5",
    "SODRPaC": "C6",
    "DSP": "C8",
}
"""This library's own and the papers' methods; all others are grey."""
CONTROLS = {BASELINE: "--", "raw features": ":"}


def save(tables: Mapping[str, Scores], path: Path) -> None:
    """Draw the scores for each number of directions into a PNG file."""
    with repeatable_style():
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(tables).savefig(path, metadata={"Software": None})


def draw(tables: Mapping[str, Scores]) -> Any:
    """A Matplotlib figure: columns are numbers of directions, rows are shares of wrong answers."""
    from matplotlib.figure import Figure

    noises = sorted({noise for scores in tables.values() for _, noise in scores.settings})
    figure = Figure(figsize=(3.8 * len(tables), 2.9 * len(noises) + 0.6), layout="constrained")
    panels = figure.subplots(len(noises), len(tables), sharex=True, sharey=True, squeeze=False)
    handles: dict[str, Any] = {}
    for column, (dim, scores) in enumerate(tables.items()):
        mean = scores.ari.mean(axis=2)
        for row, noise in enumerate(noises):
            axes = panels[row, column]
            places = [place for place, setting in enumerate(scores.settings) if setting[1] == noise]
            pairs = [scores.settings[place][0] for place in places]
            for name, values in zip(scores.methods, mean):
                (line,) = axes.plot(pairs, values[places], label=name, **_look(name))
                handles[name if name in SHOWN or name in CONTROLS else "other methods"] = line
            axes.set_xscale("log")
            axes.set_xticks(pairs, [str(count) for count in pairs])
            axes.minorticks_off()
            axes.grid(alpha=0.25)
            axes.set_title(f"{TITLES[dim]}, {noise:.0%} wrong", fontsize=10)
            if column == 0:
                axes.set_ylabel("mean ARI")
            if row == len(noises) - 1:
                axes.set_xlabel("answered pairs")
    order = [name for name in (*SHOWN, *CONTROLS, "other methods") if name in handles]
    figure.legend([handles[name] for name in order], order, loc="outside lower center", ncols=6, fontsize=9)
    return figure


def _look(name: str) -> dict[str, Any]:
    if name in CONTROLS:
        return {"color": "black", "linestyle": CONTROLS[name], "linewidth": 1.5, "zorder": 3}
    if name not in SHOWN:
        return {"color": "0.8", "linewidth": 0.8, "zorder": 1}
    marker = MARKERS[list(SHOWN).index(name)]
    width = 2.4 if name == "PairLens" else 1.5
    return {"color": SHOWN[name], "marker": marker, "markersize": 4, "linewidth": width, "zorder": 4}
