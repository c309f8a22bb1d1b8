"""What the paper of SODRPaC says, checked against results, and the figures that are not curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pairlens.methods.sodrpac import LAM_GRID, THETA_GRID
from pairlens.papers._subclass_views import blobs
from pairlens.papers.experiment import Array, Value
from pairlens.papers.results import Results

__all__ = [
    "CANNOT_ONLY",
    "KINDS",
    "OTHERS",
    "SPREADS",
    "always_best",
    "best_regions",
    "choice_of_parameters",
    "clpp_below_pca",
    "degrades",
    "draw_surfaces",
    "draw_toy",
    "gain_from_transformation",
    "good_on_subclasses",
    "grows",
    "manifold_helps",
    "misled",
    "small_lambda",
    "smoother",
    "ssdr_gets_worse",
    "theta_hardly_matters",
]

OTHERS = ("PCA", "SSDR", "CMM", "CLPP", "NPSSDR")
CANNOT_ONLY = "lam 32, cannot-links only"
SPREADS, KINDS = (1.5, 2.0), ("intra", "inter", "mixed")
"""The toys: spread of the noise, and which blobs must-links join."""


def _cells(results: Results, method: str, key: str) -> dict[tuple[str, Value, Value], float]:
    """Mean accuracy by set, dimension and number (or share) of pairs."""
    found = {}
    part = results.select(method=method, measure="accuracy")
    for name in sorted({row.set for row in part.rows}):
        of_set = part.select(set=name)
        for value in of_set.values(key):
            for d in of_set.values("l"):
                cell = of_set.select(at={key: value, "l": d}).cell("point" if method == "SOD*" else "")
                if cell is not None:
                    found[name, d, value] = cell.mean
    if not found:
        raise LookupError(method)
    return found


def _over_sets(cells: Mapping[tuple[str, Value, Value], float], d: Value, value: Value) -> float:
    found = [mean for (_, *where), mean in cells.items() if where == [d, value]]
    if not found:
        raise LookupError(f"{d}, {value}")
    return float(np.mean(found))


def always_best(results: Results) -> tuple[bool, str]:
    rivals = [_cells(results, name, "constraints") for name in OTHERS]
    words, holds = [], True
    for ours in ("SODfix", "SOD*"):
        cells = _cells(results, ours, "constraints")
        best = sum(mean >= max(rival[where] for rival in rivals) for where, mean in cells.items())
        words.append(f"{ours} in {best} of {len(cells)} cells")
        holds &= best == len(cells)
    return holds, "best of six: " + ", ".join(words)


def grows(results: Results) -> tuple[bool, str]:
    cells = _cells(results, "SODfix", "constraints")
    few, many = min(v for _, _, v in cells), max(v for _, _, v in cells)
    pairs = {d: (_over_sets(cells, d, few), _over_sets(cells, d, many)) for d in sorted({d for _, d, _ in cells})}
    words = ", ".join(f"l = {d}: {a:.3f} to {b:.3f}" for d, (a, b) in pairs.items())
    return all(b > a for a, b in pairs.values()), f"SODfix, mean over the sets, {few} to {many} constraints: {words}"


def ssdr_gets_worse(results: Results) -> tuple[bool, str]:
    cells = _cells(results, "SSDR", "constraints")
    few, many = min(v for _, _, v in cells), max(v for _, _, v in cells)
    falls = {(name, d): cells[name, d, many] - cells[name, d, few] for name, d, _ in cells}
    worst = sorted(falls, key=lambda where: falls[where])[:3]
    words = ", ".join(f"{name} at l = {d} {cells[name, d, few]:.3f} to {cells[name, d, many]:.3f}" for name, d in worst)
    return falls[worst[0]] < -0.02, f"{few} to {many} constraints: {words}"


def clpp_below_pca(results: Results) -> tuple[bool, str]:
    clpp, pca = (_cells(results, name, "constraints") for name in ("CLPP", "PCA"))
    few = min(v for _, _, v in clpp)
    below = sorted({name for name, d, v in clpp if v == few and clpp[name, d, v] < pca[name, d, v]})
    return len(below) >= 3, f"{few} constraints, below in at least one dimension: {', '.join(below)}"


def choice_of_parameters(results: Results) -> tuple[bool, str]:
    ours, tuned = (_cells(results, name, "constraints") for name in ("SOD_loo", "SSDR_loo"))
    many = max(v for _, _, v in ours)
    pairs = {d: (_over_sets(ours, d, many), _over_sets(tuned, d, many)) for d in sorted({d for _, d, _ in ours})}
    words = ", ".join(f"l = {d}: {a:.3f} against {b:.3f}" for d, (a, b) in pairs.items())
    return all(a > b + 0.005 for a, b in pairs.values()), f"mean over the sets at {many} constraints: {words}"


def good_on_subclasses(results: Results) -> tuple[bool, str]:
    names = sorted({row.set for row in results.rows if row.set.endswith("2") and not row.set.startswith("monks")})
    words, holds = [], True
    cells = {name: _cells(results, name, "constraints") for name in (*OTHERS, "SODfix")}
    many = max(v for _, _, v in cells["SODfix"])
    for d in sorted({d for _, d, _ in cells["SODfix"]}):
        means = {method: float(np.mean([found[name, d, many] for name in names])) for method, found in cells.items()}
        words.append(f"l = {d}: " + ", ".join(f"{method} {mean:.3f}" for method, mean in means.items()))
        holds &= max(means, key=lambda method: means[method]) == "SODfix"
    return holds, f"mean over the merged sets at {many} constraints, " + "; ".join(words)


def smoother(results: Results) -> tuple[bool, str]:
    """Much smoother: a range of less than three quarters of the next one's."""
    words, holds = [], True
    cells = {name: _cells(results, name, "share") for name in (*OTHERS[1:], "SODfix")}
    for d in sorted({d for _, d, _ in cells["SODfix"]}):
        ranges = {method: _mean_range(found, d) for method, found in cells.items()}
        words.append(f"l = {d}: " + ", ".join(f"{method} {value:.3f}" for method, value in ranges.items()))
        holds &= ranges["SODfix"] < 0.75 * min(value for method, value in ranges.items() if method != "SODfix")
    return holds, "range over the shares below 1, mean over the sets, " + "; ".join(words)


def _mean_range(cells: Mapping[tuple[str, Value, Value], float], d: Value) -> float:
    by_set: dict[str, list[float]] = {}
    for (name, dim, share), mean in cells.items():
        if dim == d and share != 1:
            by_set.setdefault(name, []).append(mean)
    return float(np.mean([np.ptp(means) for means in by_set.values()]))


def degrades(results: Results) -> tuple[bool, str]:
    ours, pca = _cells(results, "SODfix", "share"), _cells(results, "PCA", "share")
    words, holds = [], True
    for d in sorted({d for _, d, _ in ours}):
        half, all_must, base = _over_sets(ours, d, 0.5), _over_sets(ours, d, 1.0), _over_sets(pca, d, 1.0)
        words.append(f"l = {d}: {half:.3f} at share 0.5, {all_must:.3f} at 1, PCA {base:.3f}")
        holds &= all_must < half - 0.02
    return holds, "; ".join(words)


def _toy_mean(results: Results, method: str, sy: float, kind: str) -> float:
    return results.mean(method, "accuracy", set=f"toy_{sy}_{kind}")


def misled(results: Results) -> tuple[bool, str]:
    names = ("SSDR", "CMM", "CLPP", "NPSSDR", "lam 8", "lam 32")
    found = {(m, sy): _toy_mean(results, m, sy, "inter") for m in names for sy in SPREADS}
    words = "; ".join(f"sy {sy}: " + ", ".join(f"{m} {found[m, sy]:.3f}" for m in names) for sy in SPREADS)
    return all((value > 0.9) == m.startswith("lam") for (m, _), value in found.items()), words


def manifold_helps(results: Results) -> tuple[bool, str]:
    words, holds = [], True
    for sy in SPREADS:
        bare, best = (_toy_mean(results, name, sy, "inter") for name in ("lam 0", "lam 32"))
        words.append(f"sy {sy}: {bare:.3f} without, {best:.3f} with lam 32")
        holds &= best > bare
    return holds, "; ".join(words)


def gain_from_transformation(results: Results) -> tuple[bool, str]:
    words, holds = [], True
    for sy in SPREADS:
        with_must, without = (_toy_mean(results, name, sy, "inter") for name in ("lam 32", CANNOT_ONLY))
        words.append(f"sy {sy}: {with_must:.3f} with the must-links transformed, {without:.3f} without them")
        holds &= with_must > without + 0.005
    return holds, "; ".join(words)


def small_lambda(results: Results) -> tuple[bool, str]:
    gaps = {(name, d): grid.max() - _small(grid).max() for name, d, grid in _surfaces(results)}
    near = sum(gap < 0.02 for gap in gaps.values())
    words = ", ".join(f"{name} l = {d} {gap:.3f}" for (name, d), gap in gaps.items())
    return near > len(gaps) / 2, f"less than 0.02 below the best in {near} of {len(gaps)}: {words}"


def theta_hardly_matters(results: Results) -> tuple[bool, str]:
    ranges = {(name, d): float(np.ptp(_small(grid), axis=1).mean()) for name, d, grid in _surfaces(results)}
    words = ", ".join(f"{name} l = {d} {value:.3f}" for (name, d), value in ranges.items())
    return max(ranges.values()) < 0.025, f"mean range over theta: {words}"


def _small(grid: Array) -> Array:
    """The part of a surface where lambda is at most 1/2."""
    return grid[: int(np.searchsorted(np.log2(LAM_GRID), -1, side="right"))]


def best_regions(results: Results) -> tuple[bool, str]:
    words, inside = [], []
    for name, d, grid in _surfaces(results):
        i, j = np.unravel_index(int(grid.argmax()), grid.shape)
        lam, theta = float(np.log2(LAM_GRID[i])), float(np.log2(THETA_GRID[j]))
        inside.append(lam <= 0 or (lam >= 3 and theta >= 0))
        words.append(f"{name} l = {d}: lambda 2^{lam:g}, theta 2^{theta:g} of the default")
    return bool(np.mean(inside) > 0.5), f"{sum(inside)} of {len(inside)} inside; best points: {'; '.join(words)}"


def _surfaces(results: Results) -> Iterator[tuple[str, Value, Array]]:
    """Mean accuracy by lambda and theta, for each set and dimension."""
    part = results.select(method="SODRPaC", measure="accuracy")
    if not len(part):
        raise LookupError("surface")
    for name in sorted({row.set for row in part.rows}):
        for d in part.select(set=name).values("l"):
            yield name, d, _surface(part.select(set=name, at={"l": d}))


def _surface(part: Results) -> Array:
    lams, thetas = part.values("log2 lambda"), part.values("log2 theta")
    total = np.zeros((len(lams), len(thetas)))
    count = np.zeros_like(total)
    for row in part.rows:
        at = row.result.at
        place = lams.index(at["log2 lambda"]), thetas.index(at["log2 theta"])
        total[place] += row.result.value
        count[place] += 1
    return total / count


def draw_surfaces(figure: Any, results: Results) -> None:
    """Accuracy over both parameters, each set in one panel; the line is where PCA is."""
    found = list(_surfaces(results))
    columns = 4
    n_rows = -(-len(found) // columns)
    figure.set_size_inches(3.6 * columns, 3.1 * n_rows)
    for place, (name, d, grid) in enumerate(found):
        axes = figure.add_subplot(n_rows, columns, place + 1)
        pca = results.mean("PCA", "accuracy", set=name, at={"l": d})
        extent = (float(np.log2(THETA_GRID[0])) - 0.5, float(np.log2(THETA_GRID[-1])) + 0.5, -5.5, 10.5)
        image = axes.imshow(grid, origin="lower", aspect="auto", extent=extent, cmap="viridis")
        if grid.min() < pca < grid.max():
            axes.contour(np.log2(THETA_GRID), np.log2(LAM_GRID), grid, levels=[pca], colors="white", linewidths=1)
        axes.set_title(f"{name}, l = {d} (PCA {pca:.3f})", fontsize=9)
        axes.set_xlabel("log2 theta / default")
        axes.set_ylabel("log2 lambda")
        figure.colorbar(image, ax=axes)


def draw_toy(figure: Any, results: Results) -> None:
    """The rows and must-links of the first draw, and the line that each method finds."""
    toys = [(sy, kind) for sy in SPREADS for kind in KINDS]
    there = [(sy, kind) for sy, kind in toys if len(results.select(set=f"toy_{sy}_{kind}"))]
    figure.set_size_inches(3.8 * min(3, len(there)), 3.4 * -(-len(there) // 3))
    shown = ("SSDR", "CMM", "CLPP", "lam 0", "lam 32")
    for place, (sy, kind) in enumerate(there):
        X, y, pairs = blobs(kind, sy, 0)
        axes = figure.add_subplot(-(-len(there) // 3), min(3, len(there)), place + 1)
        for i, j in pairs.must_link:
            axes.plot(*X[[i, j]].T, color="0.8", linewidth=0.5, zorder=0)
        axes.scatter(*X.T, c=[("C0", "C1")[label] for label in y], s=6)
        centre = X.mean(axis=0)
        for k, method in enumerate(shown):
            angle = np.radians(results.filter(lambda row: row.run == 0).mean(method, "line", set=f"toy_{sy}_{kind}"))
            half = 4.0 * np.array([np.cos(angle), np.sin(angle)])
            ends = np.array([centre - half, centre + half])
            axes.plot(*ends.T, color=f"C{k + 2}", linewidth=1.8, label=method if place == 0 else None)
        axes.set_title(f"sy {sy}, {kind}", fontsize=9)
        axes.set_aspect("equal")
    figure.legend(loc="outside lower center", ncols=len(shown), fontsize=9)
