"""Figures of the results, PNG and SVG; equal results give equal files.

Curves are drawn from what an experiment says of them. The functions ``draw_...`` draw what is not a curve, each on an
empty Matplotlib figure; experiments name them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pairlens._atomic import write_atomically
from pairlens._optional import require
from pairlens.datasets import make_subclass_blobs
from pairlens.methods.sodrpac import LAM_GRID, THETA_GRID
from reproduction.checks.sodrpac import surfaces
from reproduction.datasets import names
from reproduction.experiment import Experiment, Figure
from reproduction.results import Archive, Results
from reproduction.tables import panels

if TYPE_CHECKING:
    from reproduction.catalogue import Paper

MARKERS = "os^vDPX*<>hp"
MOST_SHADED = 5
"""Curves up to which their spread is shaded; of more, shades would hide the curves."""
FEW_TICKS = 4
"""Values on the horizontal axis up to which each has its tick."""
WIDE_LABEL = 20
"""Characters of a label beyond which a single panel is wider, to have room for its legend."""
PAGE_DPI, PAGE_WIDTH, PAGE_COLOURS = 84, 860, 128
"""Of the pictures of the page, which are in the repository: dots an inch, and at most so many pixels and colours."""


def save_all(experiment: Experiment, results: Results, folder: Path) -> dict[str, str]:
    """Write each figure that has results; the names of the PNG files by name of the figure."""
    written = {}
    for figure in experiment.figures:
        stem = f"{experiment.name}-{figure.name}" if figure.name else experiment.name
        with repeatable_style():
            drawn = draw(experiment, figure, results)
            if drawn is None:
                continue
            for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
                content = BytesIO()
                drawn.savefig(content, format=kind, metadata=metadata)
                write_atomically(folder / f"{stem}.{kind}", content.getvalue())
        written[figure.name] = f"{stem}.png"
    return written


def save_for_page(papers: Iterable[Paper], archive: Archive, folder: Path) -> None:
    """Write the pictures of the page, small: those that explain, and the figures of all that is stored.

    A picture of data that are not on this machine stays as it is.
    """
    for paper in papers:
        for picture in paper.pictures:
            if set(picture.sets) <= set(names(available=True)):
                with repeatable_style():
                    canvas = _canvas()
                    picture.draw(canvas)
                    _save(canvas, folder / f"{paper.name}-{picture.name}.png")
        for experiment in paper.experiments:
            results = Results.stored(experiment, archive)
            for figure in experiment.figures:
                with repeatable_style():
                    drawn = draw(experiment, figure, results)
                    if drawn is not None:
                        _save(drawn, folder / f"{experiment.name}{'-' * bool(figure.name)}{figure.name}.png")


def _save(drawn: Any, path: Path) -> None:
    """Save few pixels in few colours, which is a third of the size."""
    from PIL import Image

    content, small = BytesIO(), BytesIO()
    width = drawn.get_size_inches()[0]
    drawn.savefig(content, format="png", dpi=min(PAGE_DPI, PAGE_WIDTH / width), metadata={"Software": None})
    Image.open(content).convert("RGB").quantize(PAGE_COLOURS).save(small, format="png", optimize=True)
    write_atomically(path, small.getvalue())


def _canvas() -> Any:
    require("matplotlib", extra="report", purpose="drawing figures")
    from matplotlib.figure import Figure as Canvas

    return Canvas(layout="constrained")


def draw(experiment: Experiment, figure: Figure, results: Results) -> Any:
    """A Matplotlib figure, or None without results."""
    if figure.draw is not None:
        if not len(results):
            return None
        canvas = _canvas()
        figure.draw(canvas, results)
        return canvas
    found = list(panels(experiment, figure, results))
    if not found:
        return None
    columns = min(len(found), 2 if len(found) == 4 else 3)
    n_rows = math.ceil(len(found) / columns)
    canvas = _canvas()
    canvas.set_size_inches(4.2 * columns, 3.4 * n_rows)
    order = list(dict.fromkeys(method for _, curves in found for method in curves))
    handles: dict[str, Any] = {}
    for i, (title, curves) in enumerate(found):
        axes = canvas.add_subplot(n_rows, columns, i + 1)
        for method, curve in curves.items():
            k = order.index(method)
            xs = sorted(curve)
            mean = [curve[x].mean for x in xs]
            (line,) = axes.plot(xs, mean, marker=MARKERS[k % len(MARKERS)], color=f"C{k % 10}", markersize=4)
            handles.setdefault(method, line)
            if len(order) <= MOST_SHADED:
                low = [curve[x].mean - curve[x].std for x in xs]
                high = [curve[x].mean + curve[x].std for x in xs]
                axes.fill_between(xs, low, high, color=f"C{k % 10}", alpha=0.12, linewidth=0)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(figure.x_label or figure.x)
        axes.set_ylabel(figure.y_label or figure.measure)
        axes.grid(alpha=0.3)
        if figure.log_x:
            axes.set_xscale("log")
        elif len(ticks := sorted(set().union(*curves.values()))) <= FEW_TICKS:
            axes.set_xticks(ticks)
        if figure.log_y:
            axes.set_yscale("log")
    if columns == 1 and max(map(len, handles)) > WIDE_LABEL:
        canvas.set_size_inches(5.8, 3.8 * n_rows)
    canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(2 * columns, 6), fontsize=9)
    return canvas


@contextmanager
def repeatable_style() -> Iterator[None]:
    """Settings that make files repeat: names in an SVG come from a fixed salt, and users' own styles do not count."""
    matplotlib = require("matplotlib", extra="report", purpose="drawing figures")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "pairlens", "svg.fonttype": "none", "savefig.dpi": 120})
        yield


T = TypeVar("T")


def _panels(figure: Any, items: Iterable[T], *, columns: int, width: float, height: float) -> Iterator[tuple[T, Any]]:
    """Each item with the axes of its panel; sizes are in inches."""
    items = list(items)
    n_rows = -(-len(items) // columns)
    figure.set_size_inches(width * columns, height * n_rows)
    for place, item in enumerate(items):
        yield item, figure.add_subplot(n_rows, columns, place + 1)


def draw_toy(figure: Any, results: Results) -> None:
    """The rows and must-links of the first draw, and the line that each method finds."""
    toys = [(sy, kind) for sy in (1.5, 2.0) for kind in ("intra", "inter", "mixed")]
    there = [(sy, kind) for sy, kind in toys if len(results.select(set=f"toy_{sy}_{kind}"))]
    first = results.filter(lambda row: row.run == 0)
    shown = ("PCA", "SSDR", "CMM", "CLPP", "NPSSDR", "lam 0", "lam 32")
    for (sy, kind), axes in _panels(figure, there, columns=min(3, len(there)), width=3.8, height=3.4):
        X, y, pairs = make_subclass_blobs(kind=kind, sy=sy, random_state=0)  # type: ignore[arg-type]
        for i, j in pairs.must_link:
            axes.plot(*X[[i, j]].T, color="0.8", linewidth=0.5, zorder=0)
        axes.scatter(*X.T, c=[("C0", "C1")[label] for label in y], s=6)
        centre = X.mean(axis=0)
        for k, method in enumerate(shown):
            angle = np.radians(first.mean(method, "line", set=f"toy_{sy}_{kind}"))
            half = 4.0 * np.array([np.cos(angle), np.sin(angle)])
            label = method if (sy, kind) == there[0] else None
            # CMM and NPSSDR are nearly one line.
            look = {"linestyle": "--" if method == "NPSSDR" else "-", "linewidth": 1.8}
            axes.plot(*np.array([centre - half, centre + half]).T, color=f"C{k + 2}", label=label, **look)
        axes.set_title(f"sy {sy}, {kind}", fontsize=9)
        axes.set_aspect("equal")
    figure.legend(loc="outside lower center", ncols=len(shown), fontsize=9)


def draw_surfaces(figure: Any, results: Results) -> None:
    """Accuracy over lambda and theta, each set in one panel; the line is where PCA is."""
    theta, lam = np.log2(THETA_GRID), np.log2(LAM_GRID)
    extent = (float(theta[0]) - 0.5, float(theta[-1]) + 0.5, float(lam[0]) - 0.5, float(lam[-1]) + 0.5)
    for (name, d, grid), axes in _panels(figure, surfaces(results), columns=4, width=2.9, height=2.6):
        pca = results.mean("PCA", "accuracy", set=name, at={"l": d})
        image = axes.imshow(grid, origin="lower", aspect="auto", extent=extent, cmap="viridis")
        if grid.min() < pca < grid.max():
            axes.contour(theta, lam, grid, levels=[pca], colors="white", linewidths=1)
        axes.set_title(f"{name}, l = {d} (PCA {pca:.3f})", fontsize=9)
        axes.set_xlabel("log2 theta / default")
        axes.set_ylabel("log2 lambda")
        figure.colorbar(image, ax=axes)


def draw_views(figure: Any, results: Results) -> None:
    """The rows of the first run in each view, coloured by level."""
    coordinates = results.filter(lambda row: row.result.measure in ("x", "y"))
    there = [(name, method) for name in ("umist", "usps") for method in coordinates.select(set=name).methods()]
    columns = max(1, len(coordinates.methods()))
    for (name, method), axes in _panels(figure, there, columns=columns, width=2.3, height=2.3):
        x, y = (coordinates.select(set=name, method=method, measure=axis) for axis in "xy")
        for level in x.values("level"):
            across, up = (part.select(at={"level": level}).numbers() for part in (x, y))
            axes.scatter(across, up, s=14, color=f"C{level}", label=str(level))
        axes.set_title(f"{name.upper()}, {method}", fontsize=9)
        axes.tick_params(labelsize=7)
        if (name, method) in (there[0], there[-columns]):
            axes.legend(title="level", fontsize=7, title_fontsize=7)


def draw_grids(figure: Any, results: Results) -> None:
    """Accuracy of each method by number of reference users and dimension, on one scale."""
    part = results.select(measure="accuracy")
    D, d = part.values("D"), part.values("d")
    grids = {
        name: np.array([[part.mean(name, "accuracy", at={"D": a, "d": b}) for a in D] for b in d])
        for name in results.methods()
    }
    low, high = min(grid.min() for grid in grids.values()), max(grid.max() for grid in grids.values())
    for (name, grid), axes in _panels(figure, grids.items(), columns=4, width=2.6, height=2.3):
        axes.imshow(grid, origin="lower", vmin=low, vmax=high, cmap="viridis", aspect="auto")
        for i, j in np.ndindex(grid.shape):
            colour = "black" if grid[i, j] > (low + high) / 2 else "white"
            axes.text(j, i, f"{grid[i, j]:.1f}", ha="center", va="center", color=colour, fontsize=8)
        axes.set_xticks(range(len(D)), [str(value) for value in D])
        axes.set_yticks(range(len(d)), [str(value) for value in d])
        axes.set_xlabel("reference users D")
        axes.set_ylabel("dimension d")
        axes.set_title(name, fontsize=9)
