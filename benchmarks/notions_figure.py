"""The picture of the league of notions: the same rows by several notions, as PairMap, t-SNE and UMAP show them.

python -m benchmarks.notions_figure
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.league import DOCS
from benchmarks.maps_figure import grid, save_figure
from benchmarks.notions import NOTHING, SETTINGS, NotionTask
from benchmarks.notions_table import ALONE

__all__ = ["save"]

CASES = (
    *("penguins:species", "penguins:sex", "crabs:sp", "crabs:sex"),
    *("glyphs:letter", "glyphs:bold", "coil20:object", "coil20:pose"),
)
SHOWN = ("PairMap", "t-SNE", "UMAP")
SETTING = SETTINGS[2]


def save(path: Path) -> None:
    """Draw into a PNG file: columns are cases, rows are methods, colours are the notion that was asked for."""
    views = {
        (method, case): NotionTask(case, NOTHING if method in ALONE else SETTING, 0, method, "").view()[:4]
        for case in CASES
        for method in SHOWN
    }
    save_figure(lambda: grid(SHOWN, CASES, views), path)


if __name__ == "__main__":
    save(DOCS / "pictures" / "notions.png")
