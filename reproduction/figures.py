"""Figures of the results, PNG and SVG; equal results give equal files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from pairlens._atomic import write_atomically
from pairlens._optional import require
from reproduction.experiment import Experiment, Figure
from reproduction.results import Results
from reproduction.tables import panels

MARKERS = "os^vDPX*<>hp"


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


def draw(experiment: Experiment, figure: Figure, results: Results) -> Any:
    """A Matplotlib figure, or None without results."""
    require("matplotlib", extra="report", purpose="drawing figures")
    from matplotlib.figure import Figure as Canvas

    if figure.draw is not None:
        if not len(results):
            return None
        canvas = Canvas(layout="constrained")
        figure.draw(canvas, results)
        return canvas
    found = list(panels(experiment, figure, results))
    if not found:
        return None
    columns = min(len(found), 4 if len(found) == 4 else 3)
    n_rows = math.ceil(len(found) / columns)
    canvas = Canvas(figsize=(4.2 * columns, 3.4 * n_rows), layout="constrained")
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
            low = [curve[x].mean - curve[x].std for x in xs]
            high = [curve[x].mean + curve[x].std for x in xs]
            axes.fill_between(xs, low, high, color=f"C{k % 10}", alpha=0.12, linewidth=0)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(figure.x_label or figure.x)
        axes.set_ylabel(figure.y_label or figure.measure)
        axes.grid(alpha=0.3)
        if figure.log_x:
            axes.set_xscale("log")
    canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(6, len(handles)), fontsize=9)
    return canvas


@contextmanager
def repeatable_style() -> Iterator[None]:
    """Settings that make files repeat: names in an SVG come from a fixed salt, and users' own styles do not count."""
    matplotlib = require("matplotlib", extra="report", purpose="drawing figures")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "pairlens", "svg.fonttype": "none", "savefig.dpi": 120})
        yield
