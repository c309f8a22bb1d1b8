"""Makes notion.png: the same rows by two questions, beside UMAP, which sees no answers.

Run ``python docs/pictures/make_notion_picture.py``; it needs matplotlib and umap-learn. ``--out`` names another folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from PIL import Image
from sklearn.preprocessing import scale
from umap import UMAP

from pairlens import Constraints, PairMap
from pairlens.datasets import load_penguins, make_glyphs

COLOURS = ("#2f6db5", "#e0761b", "#3a8f5c")
GLYPH = 0.028
"""Height of a letter, in parts of the map."""


def maps_of(
    X: NDArray[Any], scaled: NDArray[Any], notions: dict[str, NDArray[Any]], n_answers: int, *, standardize: bool
) -> dict[str, NDArray[Any]]:
    """The map of UMAP, and that of PairMap for each question."""
    maps = {"UMAP: no answers": UMAP(random_state=0, n_jobs=1).fit_transform(scaled)}
    for question, labels in notions.items():
        pairs = Constraints.from_labels(labels, n_pairs=n_answers, random_state=0)
        model = PairMap(standardize=standardize, random_state=0).fit(X, constraints=pairs)
        maps[f"PairMap: {n_answers} answers to “{question}”"] = model.embedding_
    return maps


def draw_letters(axes: Any, Z: NDArray[Any], pictures: NDArray[Any], bold: NDArray[Any]) -> None:
    """Every row as the picture that it is, bold ones in another colour."""
    low, size = Z.min(axis=0), np.ptp(Z, axis=0)
    Z = (Z - low) / size
    for place, picture, heavy in zip(Z, pictures, bold):
        ink = np.empty((*picture.shape, 4))
        ink[..., :3] = to_rgb(COLOURS[int(heavy)])
        ink[..., 3] = picture
        x, y = place
        axes.imshow(ink, extent=(x - GLYPH, x + GLYPH, y - GLYPH, y + GLYPH), interpolation="bilinear")
    axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), aspect="auto")


def draw_penguins(axes: Any, Z: NDArray[Any], species: NDArray[Any], sex: NDArray[Any]) -> None:
    """Species by colour, sex by fill."""
    for colour, kind in zip(COLOURS, np.unique(species)):
        for which, fill in (("female", colour), ("male", "none")):
            chosen = (species == kind) & (sex == which)
            axes.scatter(*Z[chosen].T, s=13, facecolor=fill, edgecolor=colour, linewidth=0.8, label=f"{kind}, {which}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()

    figure, grid = plt.subplots(2, 3, figsize=(12, 7.6), layout="constrained")
    glyphs = make_glyphs(5, letters="ABEHNR", random_state=0)
    notions = {"same letter?": glyphs.letter, "both bold, or neither?": glyphs.bold}
    maps = maps_of(glyphs.data, glyphs.data, notions, 200, standardize=False)
    for axes, (title, Z) in zip(grid[0], maps.items()):
        draw_letters(axes, Z, glyphs.images, glyphs.bold)
        axes.set_title(title, fontsize=11)
    grid[0, 0].set_ylabel("480 pictures of letters, 576 pixels\n(bold ones are orange)", fontsize=10)

    penguins = load_penguins()
    known = np.array([sex is not None for sex in penguins.sex])
    X, species, sex = penguins.data[known], penguins.species[known], penguins.sex[known]
    maps = maps_of(X, scale(X), {"same species?": species, "same sex?": sex}, 60, standardize=True)
    for axes, (title, Z) in zip(grid[1], maps.items()):
        draw_penguins(axes, Z, species, sex)
        axes.set_title(title, fontsize=11)
    grid[1, 0].set_ylabel("333 penguins, 4 measurements", fontsize=10)
    grid[1, 0].legend(fontsize=8, frameon=False, loc="best", handletextpad=0.1)
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("0.8")
    path = options.out / "notion.png"
    figure.savefig(path, dpi=100)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    main()
