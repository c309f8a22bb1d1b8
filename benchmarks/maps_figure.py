"""The picture of the maps: eight sets side by side, with the maps of PairMap, t-SNE and UMAP.

python -m benchmarks.maps_figure
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from benchmarks.league import DOCS, Job
from benchmarks.maps import METHODS, Setting, answers, scores
from pairlens.papers.figures import repeatable_style

__all__ = ["save"]

SETS = ("seeds", "wine", "wdbc", "vehicle", "segmentation_test", "mfeat_zer", "pendigits", "coil20")
SHOWN = ("PairMap", "t-SNE", "UMAP")
SETTING = Setting("R", 200)
ROWS = 300
"""Of each set: more dots would hide each other at this size."""


def draw() -> Any:
    """A Matplotlib figure: columns are sets, rows are methods; test rows are placed, colours are true groups."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.0 * len(SETS), 2.2 * len(SHOWN) + 0.4), layout="constrained")
    axes = figure.subplots(len(SHOWN), len(SETS), squeeze=False)
    for column, name in enumerate(SETS):
        train, y_train, test, y_test = Job(name, split=0, n_pairs=0, noise=0.0, max_rows=ROWS).prepare()[:4]
        known = answers(SETTING, y_train, name)
        for row, method in enumerate(SHOWN):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                laid, placed = METHODS[method](train, test, known)
            ax = axes[row, column]
            for Z, y in ((laid, y_train), (placed, y_test)):
                ax.scatter(*Z.T, c=y % 20, cmap="tab10" if y_train.max() < 10 else "tab20", s=3, linewidths=0)
            ax.set(xticks=[], yticks=[])
            ax.set_xlabel(f"ARI {scores(laid, y_train, placed, y_test)['ari']:.2f}", fontsize=8)
            for side in ax.spines.values():
                side.set_color("#ccc")
            if row == 0:
                ax.set_title(name, fontsize=9)
            if column == 0:
                ax.set_ylabel(method, fontsize=9)
    return figure


def save(path: Path) -> None:
    """Draw into a PNG file."""
    with repeatable_style():
        path.parent.mkdir(parents=True, exist_ok=True)
        draw().savefig(path, metadata={"Software": None}, dpi=110)


if __name__ == "__main__":
    save(DOCS / "pictures" / "maps.png")
