"""The figures of the papers that explain a method, and what the methods learn from pictures, drawn on empty figures.

They need no stored results: toys are computed here, learned directions from the data sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from pairlens import BWDR, DSP, WBDR, WSDR, Constraints, Preferences, transform_constraints
from reproduction.checks.theory import BAD_LINK, GOOD_LINK, compressed_basis, null_space_values, quadratic_points
from reproduction.experiment import Array
from reproduction.prepare import loaded

COLOURS = ("C0", "C1")


def _bare(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])


def draw_compression(figure: Any) -> None:
    """BWDR's Figure 1: two classes, and the same with equal within-class difference in every direction."""
    rng = np.random.default_rng(3)
    shape = np.array([[2.0, 1.4], [0.0, 0.5]])
    X = np.concatenate([rng.standard_normal((60, 2)) @ shape, rng.standard_normal((60, 2)) @ shape + (0.4, 2.2)])
    y = np.repeat([0, 1], 60)
    pairs = Constraints.from_labels(y, n_pairs=400, random_state=0).must_link
    differences = X[pairs[:, 0]] - X[pairs[:, 1]]
    V, _ = compressed_basis(differences.T @ differences, 2)
    figure.set_size_inches(7, 3.2)
    for place, (rows, title) in enumerate(((X, "(a) original"), (X @ V, "(b) transformed by $V_c$")), start=1):
        axes = figure.add_subplot(1, 2, place)
        for label in (0, 1):
            axes.scatter(*rows[y == label].T, s=9, color=COLOURS[label], marker="os"[label])
        part = (rows[pairs[:, 0]] - rows[pairs[:, 1]]).T
        values, vectors = np.linalg.eigh(part @ part.T / len(pairs))
        turn = np.linspace(0, 2 * np.pi, 80)
        ring = (vectors * np.sqrt(values)) @ np.array([np.cos(turn), np.sin(turn)])
        axes.plot(*(ring + rows.mean(axis=0)[:, None]), color="0.3", linewidth=1)
        axes.set_aspect("equal")
        _bare(axes, title)


def _null_space(figure: Any, link: tuple[int, int]) -> None:
    x, y = quadratic_points()
    phi = np.column_stack([x, x**2])
    values = null_space_values(link)
    figure.set_size_inches(9, 2.8)
    lines, space, projected = (figure.add_subplot(1, 3, place) for place in (1, 2, 3))
    for label in (0, 1):
        chosen = y == label
        look = {"s": 14, "color": COLOURS[label], "marker": "os"[label]}
        lines.scatter(x[chosen], np.zeros(chosen.sum()), **look)
        space.scatter(*phi[chosen].T, **look)
        projected.scatter(values[chosen], np.zeros(chosen.sum()), **look)
    for axes, points in ((lines, np.c_[x, 0 * x]), (space, phi), (projected, np.c_[values, 0 * x])):
        axes.scatter(*points[list(link)].T, s=60, color="black", marker="x")
    start, step = phi[link[0]], phi[link[1]] - phi[link[0]]
    space.annotate("", xy=start + step, xytext=start, arrowprops={"arrowstyle": "->", "color": "blue"})
    normal = np.array([-step[1], step[0]]) / np.linalg.norm(step)
    space.plot(*np.array([-4 * normal, 4 * normal]).T, linestyle=":", color="0.4")
    space.set_xlim(-2.3, 2.3)
    space.set_ylim(-0.4, 4.3)
    for axes in (lines, projected):
        axes.set_yticks([])
    lines.set_title("(a) input", fontsize=9)
    space.set_title("(b) feature space $[x, x^2]$", fontsize=9)
    projected.set_title("(c) null space of the must-link", fontsize=9)


def draw_good_link(figure: Any) -> None:
    """DSP's Figure 1: a must-link whose null space separates the clusters."""
    _null_space(figure, GOOD_LINK)


def draw_bad_link(figure: Any) -> None:
    """DSP's Figure 2: one whose null space mixes them."""
    _null_space(figure, BAD_LINK)


def draw_samples(figure: Any) -> None:
    """DSP's Figure 3: six objects of COIL-20, and six orientations of one."""
    bunch = loaded("coil20")
    X, y = np.asarray(bunch["data"], dtype=np.float64), np.asarray(bunch["target"])
    of_one = np.flatnonzero(y == y[0])
    objects = np.array([np.flatnonzero(y == label)[0] for label in np.unique(y)[::3][:6]])
    figure.set_size_inches(7, 2.1)
    for line, rows in enumerate((objects, of_one[:: len(of_one) // 6][:6])):
        for place, row in enumerate(rows):
            axes = figure.add_subplot(2, 6, line * 6 + place + 1)
            axes.imshow(X[row].reshape(16, 16), cmap="gray")
            _bare(axes, "")


RULES = {
    "(a) basic form": ([("a", "e")], [("a", "c")]),
    "(b) with the enemy's friend": ([("a", "e"), ("c", "d")], [("a", "c")]),
    "(c) proximity": ([("a", "e")], [("b", "c")]),
    "(d) proximity, enemy's friend": ([("a", "e"), ("c", "d")], [("b", "c")]),
}
"""Must-links and cannot-links of the four scenarios of SODRPaC's Figure 2."""
PLACES = {"a": (0.0, 0.0), "b": (0.1, 0.0), "e": (5.0, 5.0), "f": (5.0, -5.0), "c": (10.0, 0.0), "d": (12.0, 3.0)}
SHOWN = {"a": (0.0, 0.0), "b": (0.3, -2.2), "e": (4.0, 4.0), "c": (9.0, 0.0), "d": (11.0, 3.6)}
"""Where the points are, and where they are drawn: a and b, mutual neighbours, would hide each other."""


def draw_rules(figure: Any) -> None:
    """SODRPaC's Figure 2: four scenarios in which must-links become cannot-links, as `transform_constraints` does."""
    names = list(PLACES)
    X = np.array(list(PLACES.values()))
    figure.set_size_inches(9, 2.9)
    for place, (title, (must, cannot)) in enumerate(RULES.items(), start=1):
        friends, enemies = ([(names.index(one), names.index(two)) for one, two in pairs] for pairs in (must, cannot))
        made = transform_constraints(X, Constraints(friends, enemies, len(X)), n_neighbors=1, gamma=1.0)
        axes = figure.add_subplot(1, 4, place)
        for pair, weight in zip(made.cannot_link, made.cannot_link_weight, strict=True):
            one, two = (names[i] for i in pair)
            known = (one, two) in cannot or (two, one) in cannot
            _line(axes, one, two, "red", "-" if known else "--", 1.6 if weight == 1 else 1.0)
        for one, two in must:
            _line(axes, one, two, "tab:blue", "-", 1.6)
        if "proximity" in title:
            _line(axes, "a", "b", "0.5", ":", 1.4)
        for name, (across, up) in SHOWN.items():
            axes.text(
                across, up, name, ha="center", va="center", bbox={"boxstyle": "circle", "fc": "white"}, fontsize=9
            )
        axes.set_xlim(-1.8, 12.8)
        axes.set_ylim(-4, 6)
        _bare(axes, title)
        axes.axis("off")


def _line(axes: Any, one: str, two: str, colour: str, style: str, width: float) -> None:
    axes.plot(*np.array([SHOWN[one], SHOWN[two]]).T, color=colour, linestyle=style, linewidth=width, zorder=0)


def draw_margins(figure: Any) -> None:
    """WSDR's Figure 1: preferences before and after, longer and in one direction."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((24, 4))
    score = X @ (1.0, 0.6, 0.0, 0.0) + 0.2 * rng.standard_normal(24)
    pairs = Preferences.from_scores(score, n_pairs=14, random_state=0)
    before = PCA(2, svd_solver="full").fit_transform(X)
    after = WSDR(2, C=0.1).fit(X, preferences=pairs).transform(X)
    figure.set_size_inches(7, 3.2)
    for place, (Z, title) in enumerate(((before, "before (principal components)"), (after, "after (WSDR)")), start=1):
        axes = figure.add_subplot(1, 2, place)
        axes.scatter(*Z.T, c=score, cmap="viridis", s=16)
        for better, worse in pairs.pairs:
            arrow = {"arrowstyle": "->", "color": "0.4", "linewidth": 0.9}
            axes.annotate("", xy=Z[better], xytext=Z[worse], arrowprops=arrow)
        axes.set_aspect("equal", "datalim")
        _bare(axes, title)


def draw_angles(figure: Any) -> None:
    """WSDR's Figure 2: the more preferences disagree, the fewer weight vectors predict all of them."""
    from matplotlib.patches import Wedge

    cases = {"consistent": (80.0, 90.0), "less so": (55.0, 110.0), "hardly": (20.0, 150.0)}
    figure.set_size_inches(8, 2.1)
    for place, (title, angles) in enumerate(cases.items(), start=1):
        axes = figure.add_subplot(1, 3, place)
        steps = [np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))]) for angle in angles]
        C = np.zeros(2)
        A, B = steps[0] + steps[1], steps[0]
        low, high = max(angles) - 90, min(angles) + 90
        axes.add_patch(Wedge((0.0, 0.0), 2.2, low, high, color="0.85"))
        for name, end, start, side in (("A - B", A, B, 0.1), ("B - C", B, C, 0.2), ("A - C", A, C, -0.12)):
            axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "->", "color": "C0"})
            look: dict[str, Any] = {"ha": "left" if side > 0 else "right", "va": "center", "fontsize": 7}
            axes.text(*((end + start) / 2 + (side, 0)), name, **look)
        for name, point, across, up in (("A", A, 0.0, 0.08), ("B", B, 0.08, 0.0), ("C", C, 0.0, -0.3)):
            axes.plot(*point, "ko", markersize=3)
            axes.text(point[0] + across, point[1] + up, name, fontsize=9)
        axes.set_xlim(-2.3, 2.3)
        axes.set_ylim(-0.5, 2.4)
        axes.set_aspect("equal")
        _bare(axes, f"{title}: {high - low:.0f} degrees for w")


def _directions(figure: Any, name: str, shape: tuple[int, int], *, turned: bool, at_most: int = 2000) -> None:
    """Leading directions of PCA, BWDR, WBDR and DSP as pictures."""
    bunch = loaded(name)
    X, y = np.asarray(bunch["data"], dtype=np.float64), np.unique(bunch["target"], return_inverse=True)[1]
    rows = np.random.default_rng(0).permutation(len(X))[:at_most]
    X, y = X[rows], y[rows]
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    pairs = Constraints.from_labels(y, per_class=60, random_state=0)
    count = 5
    models: dict[str, Callable[[], Array]] = {
        "PCA": lambda: PCA(count, svd_solver="covariance_eigh").fit(X).components_,
        "BWDR": lambda: BWDR(count).fit(X, constraints=pairs).components_,
        "WBDR": lambda: WBDR(count).fit(X, constraints=pairs).components_,
        "DSP": lambda: DSP(count, tol=1e-3).fit(X, constraints=pairs).components_,
    }
    figure.set_size_inches(4.6, 3.8)
    for line, (title, fit) in enumerate(models.items()):
        for place, direction in enumerate(fit()):
            axes = figure.add_subplot(len(models), count, line * count + place + 1)
            picture = direction.reshape(shape).T if turned else direction.reshape(shape)
            size = np.abs(picture).max()
            axes.imshow(picture, cmap="gray", vmin=-size, vmax=size)
            axes.set_xticks([])
            axes.set_yticks([])
            if place == 0:
                axes.set_ylabel(title, fontsize=9)


def draw_yaleb(figure: Any) -> None:
    """Directions learned from faces under many lights."""
    _directions(figure, "yaleb", (32, 32), turned=True)


def draw_coil(figure: Any) -> None:
    """Directions learned from objects on a turntable."""
    _directions(figure, "coil20", (16, 16), turned=False)


def draw_mnist(figure: Any) -> None:
    """Directions learned from digits."""
    _directions(figure, "mnist6000", (28, 28), turned=False)


def draw_umist(figure: Any) -> None:
    """Directions for the three kinds of faces of WSDR's Figure 3a, learned from their order or from pairs."""
    bunch = loaded("umist")
    order = {6: 0, 12: 1, 18: 2}
    y = np.unique(bunch["target"], return_inverse=True)[1]
    rows = np.flatnonzero(np.isin(y, list(order)))
    X = StandardScaler().fit_transform(np.asarray(bunch["data"], dtype=np.float64)[rows])
    levels = np.array([order[int(label)] for label in y[rows]])
    pairs = Constraints.from_labels(levels, per_class=60, random_state=0)
    found = {
        "PCA": PCA(3, svd_solver="full").fit(X).components_,
        "WSDR": WSDR(3, C=0.1).fit(X, levels).components_,
        "BWDR": BWDR(3).fit(X, constraints=pairs).components_,
        "WBDR": WBDR(3).fit(X, constraints=pairs).components_,
        "DSP": DSP(3, tol=1e-3).fit(X, constraints=pairs).components_,
    }
    figure.set_size_inches(3.6, 6.2)
    for line, (title, components) in enumerate(found.items()):
        for place, direction in enumerate(components):
            axes = figure.add_subplot(len(found), 3, line * 3 + place + 1)
            size = np.abs(direction).max()
            axes.imshow(direction.reshape(23, 28).T, cmap="gray", vmin=-size, vmax=size)
            axes.set_xticks([])
            axes.set_yticks([])
            if place == 0:
                axes.set_ylabel(title, fontsize=9)
