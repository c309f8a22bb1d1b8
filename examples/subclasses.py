"""True must-links that mislead: two classes of two blobs each, seen by SSDR, CMM, CLPP and SODRPaC.

The blobs of the two classes lie in turns along the horizontal, and every must-link joins the two blobs of a class.
Methods that pull must-links together turn to the vertical, along which the classes are the same. SODRPaC turns the
must-links into cannot-links first.

    python examples/subclasses.py [subclasses.svg]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pairlens import CLPP, CMM, SSDR, Constraints, SODRPaC
from pairlens.datasets import make_subclass_blobs
from pairlens.metrics import cumulative_purity

Array = NDArray[np.float64]

COLOURS = ("#2f6db5", "#d9662b")
INK, FAINT = "#333333", "#9a9a9a"
PANEL, MARGIN, STRIP = 250, 22, 70
SCALE = 24.0
"""Pixels per unit of the data."""
METHODS = (SSDR(1), CMM(1), CLPP(1), SODRPaC(1))


def main(path: Path) -> None:
    X, y, pairs = make_subclass_blobs(kind="inter", random_state=0)
    panels = []
    print(f"{pairs}, all must-links between two blobs\n\n{'method':<10}{'direction':>18}{'1-NN accuracy':>16}")
    for place, method in enumerate(METHODS):
        name = type(method).__name__
        model = method.fit(X, constraints=pairs)
        direction = model.components_[0] / np.linalg.norm(model.components_[0])
        accuracy = float(cumulative_purity(model.transform(X), y, 1)[0])
        print(f"{name:<10}{f'({direction[0]:.2f}, {direction[1]:.2f})':>18}{accuracy:>16.3f}")
        panels.append(panel(place, f"{name}: 1-NN accuracy {accuracy:.2f}", X, y, pairs, direction))
    width, height = len(METHODS) * PANEL + MARGIN, PANEL + STRIP + 2 * MARGIN
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="13"><rect width="{width}" height="{height}" fill="white"/>\n'
        + "\n".join(panels)
        + "\n</svg>\n"
    )
    print(f"\nThe picture is in {path}. Grey lines are must-links, the black one is the direction that was found;")
    print("below it, the rows along this direction.")


def panel(place: int, title: str, X: Array, y: NDArray[np.int64], pairs: Constraints, direction: Array) -> str:
    """The rows with the must-links and the direction, and below them the rows along it."""
    left, top = MARGIN + place * PANEL, MARGIN
    side = PANEL - MARGIN
    middle = np.array([left + side / 2, top + 14 + side / 2])
    centred = X - X.mean(axis=0)
    points = middle + SCALE * centred * [1, -1]
    ends = middle + np.outer([-0.47 * side, 0.47 * side], direction * [1, -1])
    parts = [
        text(left + side / 2, top, title, anchor="middle"),
        f'<rect x="{left}" y="{top + 14}" width="{side}" height="{side}" fill="none" stroke="{FAINT}"/>',
        *(line(points[i], points[j], FAINT, 0.6, opacity=0.55) for i, j in pairs.must_link),
        *(dot(point, COLOURS[label], 2.2) for point, label in zip(points, y)),
        line(*ends, INK, 2.5),
    ]
    parts.append(text(left + side / 2, top + side + STRIP + 20, "the rows along this line", anchor="middle"))
    along = centred @ direction
    jitter = np.random.default_rng(0).uniform(-7, 7, len(X))
    base = top + 14 + side + 0.55 * STRIP
    for label, colour in enumerate(COLOURS):
        height = base + (-11 if label == 0 else 11)
        rows = np.flatnonzero(y == label)
        parts += [dot((left + side / 2 + SCALE * along[i], height + jitter[i]), colour, 1.8) for i in rows]
    return "\n".join(parts)


def line(start: Array, end: Array, colour: str, width: float, opacity: float = 1.0) -> str:
    return (
        f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="{colour}" '
        f'stroke-width="{width}" opacity="{opacity}"/>'
    )


def dot(centre: Array | tuple[float, float], colour: str, radius: float) -> str:
    return f'<circle cx="{centre[0]:.1f}" cy="{centre[1]:.1f}" r="{radius}" fill="{colour}" fill-opacity="0.75"/>'


def text(x: float, y: float, content: str, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{INK}" text-anchor="{anchor}">{content}</text>'


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "subclasses.svg"))
