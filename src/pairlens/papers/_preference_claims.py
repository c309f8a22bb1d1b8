"""What the paper of WSDR says, checked against results, and the figures that are not curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pairlens.papers.results import Results

__all__ = [
    "CONTROL",
    "OURS",
    "PCA_CONTROL",
    "TREES",
    "angles_close",
    "beats_controls",
    "beats_rivals",
    "books_beat_rivals",
    "digits_in_order",
    "draw_grids",
    "draw_views",
    "fast",
    "films_beat_controls",
    "films_beat_rivals",
    "trees_beat_linear",
]

CONTROL, PCA_CONTROL = "RankSVM, all features, C by cv", "PCA, ranking's C by cv"
OURS, TREES = "WSDR, C by cv", "GBWSDR, trees by cv"
RANKED = {"pyrimidines": "Pyrimidines", "triazines": "Triazines", "wpbc": "Wisconsin"}
FILMS = {"movielens1m": "MovieLens"}
BOOKS = {"bookcrossing": "Book-Crossing"}
RIVALS = ("LPP", "LFDA", "LMCA")


def _paired(results: Results, ours: str, other: str, set: str) -> tuple[float, float]:
    """Mean over folds of the difference, and its standard error."""
    gaps = []
    one, two = (results.select(set=set, method=name, measure="accuracy") for name in (ours, other))
    for run, part in sorted({(row.run, row.part) for row in one.rows}):
        means = [rows.filter(lambda row: (row.run, row.part) == (run, part)).numbers() for rows in (one, two)]  # noqa: B023
        if all(map(len, means)):
            gaps.append(means[0].mean() - means[1].mean())
    if len(gaps) < 2:
        raise LookupError(f"{ours} and {other} on {set}")
    return float(np.mean(gaps)), float(np.std(gaps, ddof=1) / np.sqrt(len(gaps)))


def _ahead(results: Results, ours: Iterable[str], others: Iterable[str], sets: Mapping[str, str]) -> tuple[bool, str]:
    """Whether each of ours is ahead of each of the others on every set, by more than two standard errors."""
    holds, words = True, []
    for one in ours:
        for other in others:
            here = [(title, *_paired(results, one, other, name)) for name, title in sets.items()]
            holds &= all(gap > 2 * error for _, gap, error in here)
            listed = ", ".join(f"{title} {gap:+.1f} ± {error:.1f}" for title, gap, error in here)
            words.append(f"{one} minus {other}: {listed}")
    return holds, "; ".join(words)


def beats_rivals(results: Results) -> tuple[bool, str]:
    return _ahead(results, (OURS, TREES), RIVALS, RANKED)


def trees_beat_linear(results: Results) -> tuple[bool, str]:
    return _ahead(results, (TREES,), (OURS,), RANKED)


def beats_controls(results: Results) -> tuple[bool, str]:
    return _ahead(results, (OURS,), (CONTROL, PCA_CONTROL), RANKED)


def films_beat_rivals(results: Results) -> tuple[bool, str]:
    return _ahead(results, (OURS, TREES), RIVALS, FILMS)


def films_beat_controls(results: Results) -> tuple[bool, str]:
    return _ahead(results, (OURS, TREES), (CONTROL, PCA_CONTROL), FILMS)


def books_beat_rivals(results: Results) -> tuple[bool, str]:
    return _ahead(results, (OURS,), (*RIVALS, CONTROL, PCA_CONTROL), BOOKS)


def angles_close(results: Results) -> tuple[bool, str]:
    names = ("PCA", "LMCA", "WSDR")
    cosine = {name: results.mean(name, "mean cosine", set="umist") for name in names}
    correct = {name: results.mean(name, "ranking", set="umist") for name in names}
    words = ", ".join(f"{name}: mean cosine {cosine[name]:.2f}, {correct[name]:.1f} % ranked right" for name in names)
    return max(cosine, key=lambda name: cosine[name]) == "WSDR" and correct["WSDR"] > 99, words


def digits_in_order(results: Results) -> tuple[bool, str]:
    names = ("PCA", "LMCA", "WSDR", "GBWSDR, 100 trees")
    correct = {name: results.mean(name, "ranking", set="usps") for name in names}
    near = {name: results.mean(name, "1-NN", set="usps") for name in names}
    words = ", ".join(f"{name}: {correct[name]:.1f} % ranked right, 1-NN {near[name]:.1f} %" for name in names)
    return correct["GBWSDR, 100 trees"] > correct["LMCA"] + 2, words


def fast(results: Results) -> tuple[bool, str]:
    """Fast: nine tenths of the decrease over all iterations within the first ten."""
    words, holds = [], True
    part = results.select(set="bookcrossing", measure="objective")
    if not len(part):
        raise LookupError("Book-Crossing")
    last = part.values("iteration")[-1]
    for method in ("WSDR, alternating directions", "GBWSDR"):
        for C in part.values("C"):
            start, ten, end = (part.mean(method, "objective", at={"C": C, "iteration": i}) for i in (0, 10, last))
            share = (start - ten) / (start - end)
            words.append(f"{method}, C = {C:g}: {100 * share:.0f} % of the decrease")
            holds &= share >= 0.9
    return holds, "; ".join(words)


def draw_views(figure: Any, results: Results) -> None:
    """The rows of the first run in each view, coloured by level."""
    coordinates = results.filter(lambda row: row.result.measure in ("x", "y"))
    there = [(name, method) for name in ("umist", "usps") for method in coordinates.select(set=name).methods()]
    columns = max(1, len(coordinates.methods()))
    n_rows = -(-len(there) // columns)
    figure.set_size_inches(3.2 * columns, 3.2 * n_rows)
    for place, (name, method) in enumerate(there):
        x, y = (coordinates.select(set=name, method=method, measure=axis) for axis in "xy")
        axes = figure.add_subplot(n_rows, columns, place + 1)
        for level in x.values("level"):
            across, up = (part.select(at={"level": level}).numbers() for part in (x, y))
            axes.scatter(across, up, s=14, color=f"C{level}", label=str(level))
        axes.set_title(f"{name.upper()}, {method}", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.legend(title="level", fontsize=7, title_fontsize=7)


def draw_grids(figure: Any, results: Results) -> None:
    """Accuracy of each method by number of reference users and dimension, on one scale."""
    methods = results.methods()
    part = results.select(measure="accuracy")
    D, d = part.values("D"), part.values("d")
    grids = {
        name: np.array([[part.mean(name, "accuracy", at={"D": a, "d": b}) for a in D] for b in d]) for name in methods
    }
    low, high = min(grid.min() for grid in grids.values()), max(grid.max() for grid in grids.values())
    columns = 4
    n_rows = -(-len(methods) // columns)
    figure.set_size_inches(3.4 * columns, 3 * n_rows)
    for place, (name, grid) in enumerate(grids.items()):
        axes = figure.add_subplot(n_rows, columns, place + 1)
        axes.imshow(grid, origin="lower", vmin=low, vmax=high, cmap="viridis", aspect="auto")
        for i, j in np.ndindex(grid.shape):
            axes.text(j, i, f"{grid[i, j]:.1f}", ha="center", va="center", color="white", fontsize=8)
        axes.set_xticks(range(len(D)), [str(value) for value in D])
        axes.set_yticks(range(len(d)), [str(value) for value in d])
        axes.set_xlabel("reference users D")
        axes.set_ylabel("dimension d")
        axes.set_title(name, fontsize=9)
