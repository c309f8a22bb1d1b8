"""Checks of what the papers say: each takes results and returns whether the statement holds, and numbers in words.

They raise ``LookupError`` where a result is missing; the statement is then open. The files of the papers name them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pairlens.methods.sodrpac import LAM_GRID, THETA_GRID
from reproduction.experiment import Array, Value
from reproduction.results import Results

Verdict = tuple[bool, str]
Means = dict[tuple[str, Value, Value], float]
"""Mean accuracy by set, dimension, and number (or share) of pairs."""


def _listed(values: Mapping[str, float], where: str, separator: str = ": ") -> str:
    return where + separator + ", ".join(f"{name} {value:.3f}" for name, value in values.items())


# ----------------------------------------------------------------------------------------------------- BWDR and WBDR


def _of_all(results: Results, set: str, measure: str, at: Mapping[str, Value]) -> dict[str, float]:
    """The means of all methods, in their order."""
    found = {method: results.mean(method, measure, set=set, at=at) for method in results.methods()}
    if not found:
        raise LookupError(set)
    return found


def mostly_above(results: Results, *, set: str, first: str, second: str) -> Verdict:
    """One method above another, in more than half of the dimensions."""
    dims = results.select(set=set, method=first, measure="accuracy").values("dim")
    pairs = {
        int(d): tuple(results.mean(method, "accuracy", set=set, at={"dim": d}) for method in (first, second))
        for d in dims
    }
    if not pairs:
        raise LookupError(set)
    wins = sum(one > other for one, other in pairs.values())
    words = ", ".join(f"d={d}: {one:.3f} against {other:.3f}" for d, (one, other) in pairs.items() if d % 2)
    return wins > len(pairs) / 2, f"in {wins} of {len(pairs)} dimensions; {words}"


def among_best(results: Results, *, set: str, method: str, places: int = 1) -> Verdict:
    """A method among the best in nine dimensions."""
    found = _of_all(results, set, "accuracy", {"dim": 9})
    return found[method] >= sorted(found.values())[-places], _listed(found, "d=9")


def worst(results: Results, *, set: str, method: str) -> Verdict:
    """A method below all others in nine dimensions."""
    found = _of_all(results, set, "accuracy", {"dim": 9})
    return found[method] == min(found.values()), _listed(found, "d=9")


def reach(results: Results, *, level: float, methods: Sequence[str], sets: Sequence[str]) -> Verdict:
    """Methods above a level on all sets in nine dimensions."""
    found = {
        f"{method} on {name}": results.mean(method, "accuracy", set=name, at={"dim": 9})
        for method in methods
        for name in sets
    }
    return all(value > level for value in found.values()), _listed(found, "d=9")


def purest(results: Results, *, set: str, method: str) -> Verdict:
    """A method with the highest purity, for few and for many neighbours."""
    found = {k: _of_all(results, set, "purity", {"k": k}) for k in (1, 10, 60)}
    words = "; ".join(_listed(values, f"k={k}") for k, values in found.items())
    return all(values[method] == max(values.values()) for values in found.values()), words


def overtakes(results: Results, *, set: str, method: str) -> Verdict:
    """A method whose purity is the highest for many neighbours, but not for one."""
    first, last = (_of_all(results, set, "purity", {"k": k}) for k in (1, 60))
    holds = first[method] < max(first.values()) and last[method] == max(last.values())
    return holds, f"{_listed(first, 'k=1')}; {_listed(last, 'k=60')}"


def few_pairs_suffice(results: Results, *, shares: Mapping[str, float]) -> Verdict:
    """From a share of the pairs on, never more than 0.02 below the accuracy at the largest share."""
    words, holds = [], True
    for name, share in shares.items():
        for method in ("BWDR", "WBDR"):
            part = results.select(set=name, method=method, measure="accuracy")
            later = [float(c) for c in part.values("C") if float(c) >= share]
            means = [results.mean(method, "accuracy", set=name, at={"C": c}, best_over="dim") for c in later]
            if not means:
                raise LookupError(name)
            holds &= min(means) > means[-1] - 0.02
            words.append(f"{method} on {name}: lowest {min(means):.3f}, at the largest share {means[-1]:.3f}")
    return holds, "; ".join(words)


# --------------------------------------------------------------------------------------------------------------- DSP


def lowest_error(results: Results, *, set: str) -> Verdict:
    """DSP below all others for every number of pairs and every dimension that it has."""
    lost, count = [], 0
    errors = results.select(set=set, measure="error")
    for pairs in errors.values("pairs"):
        for d in errors.values("dim"):
            ours = errors.select(method="DSP", at={"pairs": pairs, "dim": d}).cell()
            others = [errors.select(method=method, at={"dim": d}).cell() for method in ("PCA", "LPP")]
            others += [errors.select(method=m, at={"dim": d, "pairs": pairs}).cell() for m in ("SLPP", "LPPSI")]
            best = min((cell.mean for cell in others if cell is not None), default=None)
            if ours is None or best is None:
                continue
            count += 1
            if ours.mean > best:
                lost.append(f"{pairs} pairs, dimension {d}: {ours.mean:.3f} against {best:.3f}")
    if not count:
        raise LookupError(set)
    if not lost:
        return True, f"in all {count} cases"
    shown = "; ".join(lost[:3]) + ("; ..." if len(lost) > 3 else "")
    return False, f"lowest in {count - len(lost)} of {count} cases; not at {shown}"


# ------------------------------------------------------------------------------------------------------------ SODRPaC

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
    words, holds = [], True
    for ours in ("SODfix", "SOD*"):
        means = _means(results, ours, "constraints")
        best = sum(mean >= max(rival[where] for rival in rivals) for where, mean in means.items())
        words.append(f"{ours} in {best} of {len(means)} cells")
        holds &= best == len(means)
    return holds, "best of six: " + ", ".join(words)


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


def good_on_subclasses(results: Results) -> Verdict:
    """SODRPaC best in the mean over the sets of merged classes."""
    names = sorted({row.set for row in results.rows if row.set.endswith("2") and not row.set.startswith("monks")})
    words, holds = [], True
    means = {name: _means(results, name, "constraints") for name in (*OTHERS, "SODfix")}
    _, many = _fewest_and_most(means["SODfix"])
    for d in _dims(means["SODfix"]):
        over = {method: float(np.mean([found[name, d, many] for name in names])) for method, found in means.items()}
        words.append(_listed(over, f"l = {d}"))
        holds &= max(over, key=lambda method: over[method]) == "SODfix"
    return holds, f"mean over the merged sets at {many} constraints, " + "; ".join(words)


def smoother(results: Results) -> Verdict:
    """Much smoother: a range of less than three quarters of the next one's."""
    words, holds = [], True
    means = {name: _means(results, name, "share") for name in (*OTHERS[1:], "SODfix")}
    for d in _dims(means["SODfix"]):
        ranges = {method: _mean_range(found, d) for method, found in means.items()}
        words.append(_listed(ranges, f"l = {d}"))
        holds &= ranges["SODfix"] < 0.75 * min(value for method, value in ranges.items() if method != "SODfix")
    return holds, "range over the shares below 1, mean over the sets, " + "; ".join(words)


def _mean_range(means: Means, d: Value) -> float:
    by_set: dict[str, list[float]] = {}
    for (name, dim, share), mean in means.items():
        if dim == d and share != 1:
            by_set.setdefault(name, []).append(mean)
    return float(np.mean([np.ptp(values) for values in by_set.values()]))


def degrades(results: Results) -> Verdict:
    """Accuracy lower by 0.02 where all constraints are must-links."""
    ours, pca = _means(results, "SODfix", "share"), _means(results, "PCA", "share")
    words, holds = [], True
    for d in _dims(ours):
        half, all_must, base = _over_sets(ours, d, 0.5), _over_sets(ours, d, 1.0), _over_sets(pca, d, 1.0)
        words.append(f"l = {d}: {half:.3f} at share 0.5, {all_must:.3f} at 1, PCA {base:.3f}")
        holds &= all_must < half - 0.02
    return holds, "; ".join(words)


def _toy_mean(results: Results, method: str, sy: float) -> float:
    return results.mean(method, "accuracy", set=f"toy_{sy}_inter")


def misled(results: Results) -> Verdict:
    """With must-links between the blobs of a class only SODRPaC is above 0.9."""
    names = ("SSDR", "CMM", "CLPP", "NPSSDR", "lam 8", "lam 32")
    found = {sy: {m: _toy_mean(results, m, sy) for m in names} for sy in SPREADS}
    holds = all((value > 0.9) == m.startswith("lam") for values in found.values() for m, value in values.items())
    return holds, "; ".join(_listed(values, f"sy {sy}") for sy, values in found.items())


def manifold_helps(results: Results) -> Verdict:
    """The manifold term improves on the bare criterion."""
    words, holds = [], True
    for sy in SPREADS:
        bare, best = (_toy_mean(results, name, sy) for name in ("lam 0", "lam 32"))
        words.append(f"sy {sy}: {bare:.3f} without, {best:.3f} with lam 32")
        holds &= best > bare
    return holds, "; ".join(words)


def gain_from_transformation(results: Results) -> Verdict:
    """Must-links, transformed, improve on cannot-links alone by 0.005."""
    words, holds = [], True
    for sy in SPREADS:
        with_must, without = (_toy_mean(results, name, sy) for name in ("lam 32", CANNOT_ONLY))
        words.append(f"sy {sy}: {with_must:.3f} with the must-links transformed, {without:.3f} without them")
        holds &= with_must > without + 0.005
    return holds, "; ".join(words)


def small_lambda(results: Results) -> Verdict:
    """With a small lambda, less than 0.02 below the best, on most sets."""
    gaps = {f"{name} l = {d}": grid.max() - _small(grid).max() for name, d, grid in surfaces(results)}
    near = sum(gap < 0.02 for gap in gaps.values())
    return near > len(gaps) / 2, _listed(gaps, f"less than 0.02 below the best in {near} of {len(gaps)}")


def theta_hardly_matters(results: Results) -> Verdict:
    """Where lambda is small, accuracy has a range over theta of less than 0.025."""
    ranges = {f"{name} l = {d}": float(np.ptp(_small(grid), axis=1).mean()) for name, d, grid in surfaces(results)}
    return max(ranges.values()) < 0.025, _listed(ranges, "mean range over theta")


def _small(grid: Array) -> Array:
    """The part of a surface where lambda is at most 1/2."""
    return grid[: int(np.searchsorted(np.log2(LAM_GRID), -1, side="right"))]


def best_regions(results: Results) -> Verdict:
    """For most sets the best point has a small lambda, or both parameters are large."""
    words, inside = [], []
    for name, d, grid in surfaces(results):
        i, j = np.unravel_index(int(grid.argmax()), grid.shape)
        lam, theta = float(np.log2(LAM_GRID[i])), float(np.log2(THETA_GRID[j]))
        inside.append(lam <= 0 or (lam >= 3 and theta >= 0))
        words.append(f"{name} l = {d}: lambda 2^{lam:g}, theta 2^{theta:g} of the default")
    return bool(np.mean(inside) > 0.5), f"{sum(inside)} of {len(inside)} inside; best points: {'; '.join(words)}"


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


# --------------------------------------------------------------------------------------------------------------- WSDR


def ahead(results: Results, *, ours: Sequence[str], others: Sequence[str], sets: Mapping[str, str]) -> Verdict:
    """Each of ours ahead of each of the others on every set, by more than two standard errors."""
    holds, words = True, []
    for one in ours:
        for other in others:
            here = [(title, *_paired(results, one, other, name)) for name, title in sets.items()]
            holds &= all(gap > 2 * error for _, gap, error in here)
            listed = ", ".join(f"{title} {gap:+.1f} ± {error:.1f}" for title, gap, error in here)
            words.append(f"{one} minus {other}: {listed}")
    return holds, "; ".join(words)


def _paired(results: Results, ours: str, other: str, set: str) -> tuple[float, float]:
    """Mean over folds of the difference, and its standard error."""
    means = []
    for name in (ours, other):
        by_fold: dict[tuple[int, int], list[float]] = {}
        for row in results.select(set=set, method=name, measure="accuracy").rows:
            if not np.isnan(row.result.value):
                by_fold.setdefault((row.run, row.part), []).append(row.result.value)
        means.append({fold: np.mean(values) for fold, values in by_fold.items()})
    gaps = [mean - means[1][fold] for fold, mean in means[0].items() if fold in means[1]]
    if len(gaps) < 2:
        raise LookupError(f"{ours} and {other} on {set}")
    return float(np.mean(gaps)), float(np.std(gaps, ddof=1) / np.sqrt(len(gaps)))


def angles_close(results: Results) -> Verdict:
    """In the view of WSDR preferences point the same way, and nearly all are ranked right."""
    names = ("PCA", "LMCA", "WSDR")
    cosine = {name: results.mean(name, "mean cosine", set="umist") for name in names}
    correct = {name: results.mean(name, "ranking", set="umist") for name in names}
    words = ", ".join(f"{name}: mean cosine {cosine[name]:.2f}, {correct[name]:.1f} % ranked right" for name in names)
    return max(cosine, key=lambda name: cosine[name]) == "WSDR" and correct["WSDR"] > 99, words


def digits_in_order(results: Results) -> Verdict:
    """In the view of GBWSDR two per cent more pairs are ranked right than in that of LMCA."""
    names = ("PCA", "LMCA", "WSDR", "GBWSDR, 100 trees")
    correct = {name: results.mean(name, "ranking", set="usps") for name in names}
    near = {name: results.mean(name, "1-NN", set="usps") for name in names}
    words = ", ".join(f"{name}: {correct[name]:.1f} % ranked right, 1-NN {near[name]:.1f} %" for name in names)
    return correct["GBWSDR, 100 trees"] > correct["LMCA"] + 2, words


def fast(results: Results) -> Verdict:
    """Nine tenths of the decrease over all iterations within the first ten."""
    words, holds = [], True
    part = results.select(set="bookcrossing", measure="objective")
    if not len(part):
        raise LookupError("Book-Crossing")
    last = part.values("iteration")[-1]
    for method in ("WSDR, alternating directions", "GBWSDR"):
        for C in part.values("C"):
            start, ten, end = (part.mean(method, "objective", at={"C": C, "iteration": i}) for i in (0, 10, last))
            share = (start - ten) / (start - end)
            words.append(f"{method}, C = {C:g}: {100 * share:.0f} % of the decrease")
            holds &= share >= 0.9
    return holds, "; ".join(words)
