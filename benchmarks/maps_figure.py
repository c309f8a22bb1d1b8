"""The picture of the maps: eight sets side by side, with the maps of PairMap, t-SNE and UMAP.

python -m benchmarks.maps_figure
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.league import DOCS, Job
from benchmarks.maps import METHODS, Setting, answers
from benchmarks.placed import Array, Codes, scores
from reproduction.figures import repeatable_style

__all__ = ["grid", "save", "save_figure"]

SETS = ("seeds", "wine", "wdbc", "vehicle", "segmentation_test", "mfeat_zer", "pendigits", "coil20")
SHOWN = ("PairMap", "t-SNE", "UMAP")
SETTING = Setting("R", 200)
ROWS = 300
"""Of each set: more dots would hide each other at this size."""


View = tuple[Array, Codes, Array, Codes]
"""Places and groups of the training rows, places and groups of the test rows."""


def views() -> dict[tuple[str, str], View]:
    """Return the maps by method and set."""
    found = {}
    for name in SETS:
        train, y_train, test, y_test = Job(name, split=0, n_pairs=0, noise=0.0, max_rows=ROWS).prepare()[:4]
        known = answers(SETTING, y_train, name)
        for method in SHOWN:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                laid, placed = METHODS[method](train, test, known)
            found[method, name] = laid, y_train, placed, y_test
    return found


def grid(methods: Sequence[str], names: Sequence[str], views: Mapping[tuple[str, str], View]) -> Any:
    """Return a Matplotlib figure: columns are sets, rows are methods; test rows are placed, colours are true groups."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.0 * len(names), 2.2 * len(methods) + 0.4), layout="constrained")
    axes = figure.subplots(len(methods), len(names), squeeze=False)
    for row, method in enumerate(methods):
        for column, name in enumerate(names):
            laid, y_train, placed, y_test = views[method, name]
            ax = axes[row, column]
            colours = 10 if y_train.max() < 10 else 20
            for Z, y in ((laid, y_train), (placed, y_test)):
                style = {"cmap": f"tab{colours}", "vmin": 0, "vmax": colours - 1, "s": 3, "linewidths": 0}
                ax.scatter(*Z.T, c=y % colours, **style)
            ax.set(xticks=[], yticks=[])
            ax.set_xlabel(f"ARI {scores(laid, y_train, placed, y_test)['ari']:.2f}", fontsize=8)
            for side in ax.spines.values():
                side.set_color("#ccc")
            if row == 0:
                ax.set_title(name, fontsize=9)
            if column == 0:
                ax.set_ylabel(method, fontsize=9)
    return figure


def save_figure(draw: Callable[[], Any], path: Path) -> None:
    """Draw into a PNG file; equal figures give equal files."""
    with repeatable_style():
        path.parent.mkdir(parents=True, exist_ok=True)
        draw().savefig(path, metadata={"Software": None}, dpi=110)


def save(path: Path) -> None:
    """Draw the maps into a PNG file."""
    save_figure(lambda: grid(SHOWN, SETS, views()), path)


if __name__ == "__main__":
    save(DOCS / "pictures" / "maps.png")
