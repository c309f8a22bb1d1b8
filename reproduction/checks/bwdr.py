"""What the paper of BWDR and WBDR says of its tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reproduction.checks import Verdict, all_or_some, best_on, counted, listed, paired
from reproduction.experiment import Value
from reproduction.results import Results

OURS = ("BWDR", "WBDR")
OTHERS = ("PCA", "cFLD", "SSDR")


def _sets(results: Results) -> list[str]:
    found = sorted({row.set for row in results.rows})
    if not found:
        raise LookupError("no results")
    return found


def best_on_most(results: Results, *, measure: str, printed: int, needed: int) -> Verdict:
    """One of the two is the best of five, on as many sets as needed."""
    sets = _sets(results)
    wins, words = best_on(results, sets=sets, ours=OURS, others=OTHERS, measure=measure, best_over="dim")
    first, *rest = words.split("; ", 1)
    return counted(wins, len(sets), needed), "; ".join([f"{first} ({printed} in print)", *rest])


def superior(results: Results) -> Verdict:
    """Each of the two is above each of the others in the mean over the sets, 1-NN and k-means together."""
    scores = {
        method: np.array(
            [
                results.mean(method, measure, set=name, best_over="dim")
                for measure in ("accuracy", "balanced rand")
                for name in _sets(results)
            ]
        )
        for method in (*OURS, *OTHERS)
    }
    words, holds = [], []
    for method in OURS:
        gaps = {other: scores[method] - scores[other] for other in OTHERS}
        errors = {other: float(np.std(gap, ddof=1) / np.sqrt(len(gap))) for other, gap in gaps.items()}
        holds += [float(gap.mean()) > 2 * errors[other] for other, gap in gaps.items()]
        shown = (f"{other} by {gap.mean():+.3f} ± {errors[other]:.3f}" for other, gap in gaps.items())
        words.append(f"{method} ahead of {', '.join(shown)}")
    return all_or_some(holds), f"{', '.join(words)} (mean and error over sets and tables)"


def close_where_lost(results: Results, *, set: str, within: float) -> Verdict:
    """BWDR within some distance of the best on one set, which is the only one that is lost."""
    means = {method: results.mean(method, "accuracy", set=set, best_over="dim") for method in (*OURS, *OTHERS)}
    best = max(means, key=lambda method: means[method])
    return max(means.values()) - means[
        "BWDR"
    ] <= within, f"{set}: BWDR {means['BWDR']:.3f}, best {best} {means[best]:.3f}"


def far_apart(results: Results, *, sets: Sequence[str], least: float) -> Verdict:
    """BWDR and WBDR differ by much on the sets named; the set on which they differ most."""
    gaps = {}
    for name in _sets(results):
        one, two = (results.mean(method, "accuracy", set=name, best_over="dim") for method in OURS)
        gaps[name] = abs(one - two)
    most = max(gaps, key=lambda name: gaps[name])
    named = {name: gaps[name] for name in sets}
    return all_or_some(
        [gap > least for gap in named.values()]
    ), f"{listed(named, 'difference')}, most on {most} {gaps[most]:.3f}"


def _curves(results: Results, set: str, methods: Sequence[str] = (*OURS, *OTHERS)) -> dict[str, dict[Value, float]]:
    """Mean accuracy by method and dimension."""
    dims = results.select(set=set, measure="accuracy").values("dim")
    if not dims:
        raise LookupError(set)
    return {m: {d: results.mean(m, "accuracy", set=set, at={"dim": d}) for d in dims} for m in methods}


def ahead_in_few_dimensions(results: Results, *, least: float = 0.1) -> Verdict:
    """In one or two dimensions one of the two is above all others by much, on some sets."""
    gaps = {}
    for name in _sets(results):
        found = _curves(results, name)
        for d in (1, 2):
            gap = max(found[m][d] for m in OURS) - max(found[m][d] for m in OTHERS)
            gaps[f"{name} d={d}"] = gap
    far = sum(gap > least for gap in gaps.values())
    return far > 0, f"ahead by more than {least} in {far} of {len(gaps)} cases; {listed(gaps, 'lead')}"


def best_in_few_dimensions(results: Results, *, sets: Sequence[str]) -> Verdict:
    """In one and two dimensions one of the two is the best of five."""
    cases, words = [], []
    for name in sets:
        found = _curves(results, name)
        for d in (1, 2):
            here = {method: curve[d] for method, curve in found.items()}
            cases.append(max(here[m] for m in OURS) >= max(here.values()))
            words.append(listed(here, f"{name} d={d}"))
    return all_or_some(cases), f"best in {sum(cases)} of {len(cases)} cases; {'; '.join(words)}"


def dominate(results: Results) -> Verdict:
    """One of the two is the best of five in most dimensions."""
    cases = {}
    for name in _sets(results):
        found = _curves(results, name)
        cases[name] = [
            max(found[m][d] for m in OURS) >= max(curve[d] for curve in found.values()) for d in found["BWDR"]
        ]
    every = [case for of_set in cases.values() for case in of_set]
    words = ", ".join(f"{name} {sum(of_set)} of {len(of_set)}" for name, of_set in cases.items())
    return counted(
        sum(every), len(every), len(every) / 2 + 0.5
    ), f"best in {sum(every)} of {len(every)} dimensions; {words}"


def saturates(results: Results) -> Verdict:
    """Accuracy grows up to five dimensions, and from there to nine by less than 0.05 and less than before, mostly."""
    quick, words = [], []
    for name in _sets(results):
        for method, curve in _curves(results, name).items():
            early, late = curve[5] - curve[1], curve[9] - curve[5]
            quick.append(early > 0 and late < min(0.05, early))
            words.append(f"{name} {method} {early:+.3f} then {late:+.3f}")
    return counted(
        sum(quick), len(quick), len(quick) / 2 + 0.5
    ), f"in {sum(quick)} of {len(quick)} curves; {'; '.join(words)}"


def fails(results: Results, *, method: str, set: str, below: float) -> Verdict:
    """A method is far below the best on a set."""
    found = {name: results.mean(name, "accuracy", set=set, best_over="dim") for name in (*OURS, *OTHERS)}
    return max(found.values()) - found[
        method
    ] > below, f"{set}: {method} {found[method]:.3f}, best {max(found.values()):.3f}"


def low_in_few_dimensions(results: Results, *, methods: Sequence[str]) -> Verdict:
    """In one dimension methods are below the better of the two by more than 0.05, usually."""
    gaps = {}
    for name in _sets(results):
        found = _curves(results, name)
        for method in methods:
            gaps[f"{method} on {name}"] = max(found[m][1] for m in OURS) - found[method][1]
    low = sum(gap > 0.05 for gap in gaps.values())
    return counted(
        low, len(gaps), len(gaps) / 2 + 0.5
    ), f"lower by more than 0.05 in {low} of {len(gaps)} cases; {listed(gaps, 'd=1')}"


def much_better_clusters(results: Results, *, set: str) -> Verdict:
    """WBDR above all but BWDR by more than 0.1 in clustering."""
    found = {m: results.mean(m, "balanced rand", set=set, best_over="dim") for m in (*OURS, *OTHERS)}
    best = max(found[m] for m in OTHERS)
    return found[
        "WBDR"
    ] - best > 0.1, f"{set}: WBDR {found['WBDR']:.3f}, best of the others {best:.3f}; {listed(found, 'all')}"


def threshold_shape(results: Results) -> Verdict:
    """Accuracy is low at the smallest threshold, drops somewhere by its error or more, and rises again."""
    words, cases = [], []
    for method in OURS:
        part = results.select(method=method, measure="accuracy")
        values = [float(t) for t in part.values("threshold")]
        if not values:
            raise LookupError(method)
        means = [part.select(at={"threshold": t}).cell("dim") for t in values]
        curve = np.array([cell.mean for cell in means if cell is not None])
        drop = float(np.max(np.maximum.accumulate(curve)[:-1] - curve[1:]))
        cases += [curve[0] < curve.max() - 0.02, drop > 0.005]
        words.append(f"{method} {curve[0]:.3f} at {values[0]:g}, largest drop {drop:.3f}, {curve[-1]:.3f} at 1")
    return all_or_some(cases), ", ".join(words)


def good_at_chosen(results: Results, *, chosen: Mapping[str, float]) -> Verdict:
    """At the thresholds of the paper accuracy is within 0.01 of the best threshold."""
    words, cases = [], []
    for method, t in chosen.items():
        part = results.select(method=method, measure="accuracy")
        here = results.mean(method, "accuracy", at={"threshold": t}, best_over="dim")
        best = max(
            cell.mean for v in part.values("threshold") if (cell := part.select(at={"threshold": v}).cell("dim"))
        )
        cases.append(best - here < 0.01)
        words.append(f"{method} {here:.3f} at {t:g}, best {best:.3f}")
    return all_or_some(cases), ", ".join(words)


def more_pairs_help(results: Results) -> Verdict:
    """Accuracy at the largest share of pairs is above that at the smallest."""
    words, cases = [], []
    for name in _sets(results):
        for method in OURS:
            shares = results.select(set=name, method=method).values("C")
            first, last = (
                results.mean(method, "accuracy", set=name, at={"C": c}, best_over="dim")
                for c in (shares[0], shares[-1])
            )
            cases.append(last > first)
            words.append(f"{method} on {name} {first:.3f} to {last:.3f}")
    return all_or_some(cases), ", ".join(words)


def near_the_best(results: Results, *, set: str, within: float) -> Verdict:
    """Both within some distance of the best in nine dimensions."""
    found = {m: results.mean(m, "accuracy", set=set, at={"dim": 9}) for m in (*OURS, *OTHERS)}
    best = max(found.values())
    return all_or_some([best - found[m] <= within for m in OURS]), listed(found, "d=9")


def low_but_not_worst(results: Results, *, sets: Sequence[str], method: str) -> Verdict:
    """A method whose purity is below that of three others of five, and above the worst by more than 0.05."""
    words, cases = [], []
    for name in sets:
        found = {m: results.mean(m, "purity", set=name, at={"k": 10}) for m in (*OURS, *OTHERS)}
        below = sum(value > found[method] for value in found.values())
        cases += [below >= 3, found[method] - min(found.values()) > 0.05]
        words.append(listed(found, f"{name}, k=10"))
    return all_or_some(cases), ", ".join(words)


def _of_all(results: Results, set: str, measure: str, at: Mapping[str, Value]) -> dict[str, float]:
    """Return the means of all methods, in their order."""
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
    try:
        gap, error = paired(results, first, second, set, at={"dim": 9})
        last = f", at d=9 by {gap:+.3f} ± {error:.3f}"
    except LookupError:
        last = ", from one fold alone"
    words = ", ".join(f"d={d}: {one:.3f} against {other:.3f}" for d, (one, other) in pairs.items() if d % 2)
    return wins > len(pairs) / 2, f"in {wins} of {len(pairs)} dimensions{last}; {words}"


def among_best(results: Results, *, set: str, method: str, places: int = 1) -> Verdict:
    """A method among the best in nine dimensions."""
    found = _of_all(results, set, "accuracy", {"dim": 9})
    return found[method] >= sorted(found.values())[-places], listed(found, "d=9")


def worst(results: Results, *, set: str, method: str) -> Verdict:
    """A method below all others in nine dimensions."""
    found = _of_all(results, set, "accuracy", {"dim": 9})
    return found[method] == min(found.values()), listed(found, "d=9")


def steadier(results: Results, *, sets: Sequence[str], than: str) -> Verdict:
    """The accuracy of both in nine dimensions differs less between the sets than that of another method."""
    ranges = {
        method: float(np.ptp([results.mean(method, "accuracy", set=name, at={"dim": 9}) for name in sets]))
        for method in (*OURS, than)
    }
    return all_or_some([ranges[method] < ranges[than] for method in OURS]), listed(ranges, "range over the sets at d=9")


def reach(results: Results, *, level: float, methods: Sequence[str], sets: Sequence[str]) -> Verdict:
    """Methods above a level on all sets in nine dimensions."""
    found = {
        f"{method} on {name}": results.mean(method, "accuracy", set=name, at={"dim": 9})
        for method in methods
        for name in sets
    }
    return all(value > level for value in found.values()), listed(found, "d=9")


def purest(results: Results, *, set: str, method: str) -> Verdict:
    """A method with the highest purity, for few and for many neighbours."""
    found = {k: _of_all(results, set, "purity", {"k": k}) for k in (1, 10, 60)}
    words = "; ".join(listed(values, f"k={k}") for k, values in found.items())
    return all(values[method] == max(values.values()) for values in found.values()), words


def overtakes(results: Results, *, set: str, method: str) -> Verdict:
    """A method whose purity is the highest for many neighbours, but not for one."""
    first, last = (_of_all(results, set, "purity", {"k": k}) for k in (1, 60))
    holds = first[method] < max(first.values()) and last[method] == max(last.values())
    return holds, f"{listed(first, 'k=1')}; {listed(last, 'k=60')}"


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
