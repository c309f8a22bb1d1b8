"""What the paper of SODRPaC says of its figures, which are lost: only its sentences can be checked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pairlens.methods.sodrpac import LAM_GRID, THETA_GRID
from reproduction.checks import IN_PART, Verdict, all_or_some, counted, listed, paired
from reproduction.experiment import Array, Value
from reproduction.results import Results

Means = dict[tuple[str, Value, Value], float]
"""Mean accuracy by set, dimension, and number (or share) of pairs."""

OTHERS = ("PCA", "SSDR", "CMM", "CLPP", "NPSSDR")
CANNOT_ONLY = "lam 32, cannot-links only"
SPREADS = (1.5, 2.0)
"""Of the noise in the toys."""


def _means(results: Results, method: str, key: str) -> Means:
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


def _over_sets(means: Means, d: Value, value: Value) -> float:
    found = [mean for (_, *where), mean in means.items() if where == [d, value]]
    if not found:
        raise LookupError(f"{d}, {value}")
    return float(np.mean(found))


def _dims(means: Means) -> list[Value]:
    return sorted({d for _, d, _ in means})


def _fewest_and_most(means: Means) -> tuple[Value, Value]:
    return min(value for _, _, value in means), max(value for _, _, value in means)


def always_best(results: Results) -> Verdict:
    """SODRPaC at least as good as all others in every cell."""
    rivals = [_means(results, name, "constraints") for name in OTHERS]
    words, cases = [], []
    for ours in ("SODfix", "SOD*"):
        means = _means(results, ours, "constraints")
        best = sum(mean >= max(rival[where] for rival in rivals) for where, mean in means.items())
        words.append(f"{ours} in {best} of {len(means)} cells")
        cases.append(counted(best, len(means), len(means)))
    return True if all(case is True for case in cases) else IN_PART if any(
        cases
    ) else False, "best of six: " + ", ".join(words)


def no_clear_lead(results: Results) -> Verdict:
    """SODRPaC is ahead of the next best by more than two standard errors in less than a tenth of the cells."""
    rivals = {name: _means(results, name, "constraints") for name in OTHERS}
    means, clear = _means(results, "SODfix", "constraints"), 0
    for name, d, value in means:
        rival = max(rivals, key=lambda method: rivals[method][name, d, value])
        gap, error = paired(results, "SODfix", rival, name, at={"constraints": value, "l": d})
        clear += gap > 2 * error
    return clear < len(means) / 10, f"SODfix clearly ahead in {clear} of {len(means)} cells"


def nearly_as_good_inside(results: Results) -> Verdict:
    """With must-links inside the blobs the bare criterion is within 0.05 of SSDR, CMM, CLPP and NPSSDR."""
    words, cases = [], []
    for sy in SPREADS:
        found = {m: results.mean(m, "accuracy", set=f"toy_{sy}_intra") for m in (*OTHERS[1:], "lam 0")}
        cases.append(found["lam 0"] > max(found.values()) - 0.05)
        words.append(listed(found, f"sy {sy}"))
    return all_or_some(cases), ", ".join(words)


def grows(results: Results) -> Verdict:
    """More constraints, higher accuracy, in the mean over the sets."""
    means = _means(results, "SODfix", "constraints")
    few, many = _fewest_and_most(means)
    pairs = {d: (_over_sets(means, d, few), _over_sets(means, d, many)) for d in _dims(means)}
    words = ", ".join(f"l = {d}: {a:.3f} to {b:.3f}" for d, (a, b) in pairs.items())
    return all(b > a for a, b in pairs.values()), f"SODfix, mean over the sets, {few} to {many} constraints: {words}"


def ssdr_gets_worse(results: Results) -> Verdict:
    """More constraints, lower accuracy of SSDR, on some set by more than 0.02."""
    means = _means(results, "SSDR", "constraints")
    few, many = _fewest_and_most(means)
    falls = {(name, d): means[name, d, many] - means[name, d, few] for name, d, _ in means}
    steepest = sorted(falls, key=lambda where: falls[where])[:3]
    words = ", ".join(
        f"{name} at l = {d} {means[name, d, few]:.3f} to {means[name, d, many]:.3f}" for name, d in steepest
    )
    return falls[steepest[0]] < -0.02, f"{few} to {many} constraints: {words}"


def clpp_below_pca(results: Results) -> Verdict:
    """CLPP below PCA on three sets or more with the fewest constraints."""
    clpp, pca = (_means(results, name, "constraints") for name in ("CLPP", "PCA"))
    few, _ = _fewest_and_most(clpp)
    below = sorted({name for name, d, v in clpp if v == few and clpp[name, d, v] < pca[name, d, v]})
    return len(below) >= 3, f"{few} constraints, below in at least one dimension: {', '.join(below)}"


def choice_of_parameters(results: Results) -> Verdict:
    """SODRPaC ahead by 0.005 when SSDR and CMM are tuned in the same way."""
    ours, tuned = (_means(results, name, "constraints") for name in ("SOD_loo", "SSDR_loo"))
    _, many = _fewest_and_most(ours)
    pairs = {d: (_over_sets(ours, d, many), _over_sets(tuned, d, many)) for d in _dims(ours)}
    words = ", ".join(f"l = {d}: {a:.3f} against {b:.3f}" for d, (a, b) in pairs.items())
    return all(a > b + 0.005 for a, b in pairs.values()), f"mean over the sets at {many} constraints: {words}"


def best_on_genes(results: Results) -> Verdict:
    """SODRPaC at least as good as all others on the sets of gene expressions."""
    means = {name: _means(results, name, "constraints") for name in (*OTHERS, "SODfix")}
    words, best = [], []
    for name, d, value in means["SODfix"]:
        here = {method: found[name, d, value] for method, found in means.items()}
        best.append(here["SODfix"] == max(here.values()))
        place = " (last)" if here["SODfix"] == min(here.values()) else ""
        words.append(listed(here, f"{name} l = {d}{place}"))
    last = sum("last" in word for word in words)
    return counted(
        sum(best), len(best), len(best)
    ), f"best in {sum(best)} and last in {last} of {len(best)} cells; " + "; ".join(words)


def good_on_subclasses(results: Results) -> Verdict:
    """SODRPaC best in the mean over the sets of merged classes."""
    names = sorted({row.set for row in results.rows if row.set.endswith("2") and not row.set.startswith("monks")})
    words, cases = [], []
    means = {name: _means(results, name, "constraints") for name in (*OTHERS, "SODfix")}
    _, many = _fewest_and_most(means["SODfix"])
    for d in _dims(means["SODfix"]):
        over = {method: float(np.mean([found[name, d, many] for name in names])) for method, found in means.items()}
        words.append(listed(over, f"l = {d}"))
        cases.append(max(over, key=lambda method: over[method]) == "SODfix")
    return all_or_some(cases), f"mean over the merged sets at {many} constraints, " + ", ".join(words)


def smoother(results: Results) -> Verdict:
    """Much smoother: a range of less than three quarters of the next one's."""
    words, cases = [], []
    means = {name: _means(results, name, "share") for name in (*OTHERS[1:], "SODfix")}
    for d in _dims(means["SODfix"]):
        ranges = {method: _mean_range(found, d) for method, found in means.items()}
        words.append(listed(ranges, f"l = {d}"))
        cases.append(ranges["SODfix"] < 0.75 * min(value for method, value in ranges.items() if method != "SODfix"))
    return all_or_some(cases), "range over the shares below 1, mean over the sets, " + ", ".join(words)


def _mean_range(means: Means, d: Value) -> float:
    by_set: dict[str, list[float]] = {}
    for (name, dim, share), mean in means.items():
        if dim == d and share != 1:
            by_set.setdefault(name, []).append(mean)
    return float(np.mean([np.ptp(values) for values in by_set.values()]))


def degrades(results: Results) -> Verdict:
    """Accuracy lower by 0.02 where all constraints are must-links."""
    ours, pca = _means(results, "SODfix", "share"), _means(results, "PCA", "share")
    words, cases = [], []
    for d in _dims(ours):
        half, all_must, base = _over_sets(ours, d, 0.5), _over_sets(ours, d, 1.0), _over_sets(pca, d, 1.0)
        words.append(f"l = {d}: {half:.3f} at share 0.5, {all_must:.3f} at 1, PCA {base:.3f}")
        cases.append(all_must < half - 0.02)
    return all_or_some(cases), ", ".join(words)


def cannot_links_matter_more(results: Results) -> Verdict:
    """Accuracy with cannot-links alone is above that with must-links alone by 0.02, in the mean over the sets."""
    means = _means(results, "SODfix", "share")
    ends = {d: (_over_sets(means, d, 0.0), _over_sets(means, d, 1.0)) for d in _dims(means)}
    words = ", ".join(
        f"l = {d}: {none:.3f} with cannot-links alone, {alone:.3f} without" for d, (none, alone) in ends.items()
    )
    return all_or_some([none > alone + 0.02 for none, alone in ends.values()]), words


def _toy_mean(results: Results, method: str, sy: float) -> float:
    return results.mean(method, "accuracy", set=f"toy_{sy}_inter")


def misled(results: Results) -> Verdict:
    """With must-links between the blobs of a class only SODRPaC is above 0.9."""
    names = ("SSDR", "CMM", "CLPP", "NPSSDR", "lam 8", "lam 32")
    found = {sy: {m: _toy_mean(results, m, sy) for m in names} for sy in SPREADS}
    holds = all((value > 0.9) == m.startswith("lam") for values in found.values() for m, value in values.items())
    return holds, ", ".join(listed(values, f"sy {sy}") for sy, values in found.items())


def manifold_helps(results: Results) -> Verdict:
    """The manifold term improves on the bare criterion."""
    words, cases = [], []
    for sy in SPREADS:
        bare, best = (_toy_mean(results, name, sy) for name in ("lam 0", "lam 32"))
        words.append(f"sy {sy}: {bare:.3f} without, {best:.3f} with lam 32")
        cases.append(best > bare)
    return all_or_some(cases), ", ".join(words)


def gain_from_transformation(results: Results) -> Verdict:
    """Must-links, transformed, improve on cannot-links alone by 0.005."""
    words, cases = [], []
    for sy in SPREADS:
        with_must, without = (_toy_mean(results, name, sy) for name in ("lam 32", CANNOT_ONLY))
        words.append(f"sy {sy}: {with_must:.3f} with the must-links transformed, {without:.3f} without them")
        cases.append(with_must > without + 0.005)
    return all_or_some(cases), ", ".join(words)


def small_lambda(results: Results) -> Verdict:
    """With a small lambda, less than 0.02 below the best, on most sets."""
    gaps = {f"{name} l = {d}": grid.max() - _small(grid).max() for name, d, grid in surfaces(results)}
    near = sum(gap < 0.02 for gap in gaps.values())
    return near > len(gaps) / 2, listed(gaps, f"less than 0.02 below the best in {near} of {len(gaps)}; gaps")


def theta_hardly_matters(results: Results) -> Verdict:
    """Where lambda is small, accuracy has a range over theta of less than 0.025."""
    ranges = {f"{name} l = {d}": float(np.ptp(_small(grid), axis=1).mean()) for name, d, grid in surfaces(results)}
    return max(ranges.values()) < 0.025, listed(
        ranges, f"mean range over theta at most {max(ranges.values()):.3f}; all"
    )


def _small(grid: Array) -> Array:
    """The part of a surface where lambda is at most 1/2."""
    return grid[: int(np.searchsorted(np.log2(LAM_GRID), -1, side="right"))]


def best_regions(results: Results) -> Verdict:
    """The best point has a small lambda, or both parameters are large, for more sets than chance would have it."""
    lam, theta = np.log2(LAM_GRID)[:, None], np.log2(THETA_GRID)
    regions = (lam <= 0) | ((lam >= 3) & (theta >= 0))
    words, inside = [], []
    for name, d, grid in surfaces(results):
        i, j = np.unravel_index(int(grid.argmax()), grid.shape)
        inside.append(bool(regions[i, j]))
        words.append(f"{name} l = {d}: lambda 2^{lam[i, 0]:g}, theta 2^{theta[j]:g} of the default")
    share = float(regions.mean())
    return (
        bool(np.mean(inside) > share),
        f"{sum(inside)} of {len(inside)} inside, while the two regions are {100 * share:.0f} % of the grid; best "
        f"points: {'; '.join(words)}",
    )


def surfaces(results: Results) -> Iterator[tuple[str, Value, Array]]:
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
