"""What the two papers of DSP and SKK-means say of their tables and figures."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from reproduction.checks import IN_PART, Verdict, all_or_some, best_on, counted, listed, paired
from reproduction.results import Results

RIVALS = ("PCA", "LPP", "SLPP", "LPPSI")
UNSUPERVISED = ("K-means", "PCA", "LPP")


def _sets(results: Results) -> list[str]:
    found = sorted({row.set for row in results.rows})
    if not found:
        raise LookupError("no results")
    return found


def against_k_means(results: Results, *, pairs: int, above: bool) -> Verdict:
    """SKK-means above or below K-means on the intrusions, by more than two standard errors."""
    gap, error = paired(results, "SKK-means", "K-means", "kddcup99_subset", "F", at={"pairs": pairs})
    holds = gap > 2 * error if above else gap < -2 * error
    return holds, f"{pairs} pairs: F of SKK-means less that of K-means {gap:+.3f} ± {error:.3f}"


def ahead_on_intrusions(results: Results, *, others: tuple[str, ...]) -> Verdict:
    """DSP above others on the intrusions with 20 and with 5 pairs, by more than two standard errors."""
    words, cases = [], []
    for pairs in (20, 5):
        for other in others:
            gap, error = paired(results, "DSP", other, "kddcup99_subset", "F", at={"pairs": pairs})
            cases.append(gap > 2 * error)
            words.append(f"{other}, {pairs} pairs {gap:+.3f} ± {error:.3f}")
    return all_or_some(cases), "F of DSP less that of " + ", ".join(words)


def same_pattern(results: Results) -> Verdict:
    """F and the Rand index put the methods into nearly the same order."""
    scores: dict[str, list[float]] = {"F": [], "Rand": []}
    for method in results.methods():
        of_method = results.select(method=method).values("pairs")
        for at in [{"pairs": pairs} for pairs in of_method] or [{}]:
            for measure, found in scores.items():
                found.append(results.mean(method, measure, set="kddcup99_subset", at=at))
    if len(scores["F"]) < 3:
        raise LookupError("methods")
    order = float(spearmanr(scores["F"], scores["Rand"]).statistic)
    return order > 0.8, f"rank correlation over {len(scores['F'])} methods {order:.2f}"


def best_f(
    results: Results, *, pairs: int, printed: int, needed: int, without: tuple[str, ...] | list[str] = ()
) -> Verdict:
    """DSP has the best F of five, on as many sets as needed."""
    sets = [name for name in _sets(results) if name not in without]
    wins, words = best_on(results, sets=sets, ours=["DSP"], others=RIVALS, measure="F", at={"pairs": pairs})
    first, *rest = words.split("; ", 1)
    return counted(wins, len(sets), needed), "; ".join([f"{pairs} pairs: {first} ({printed} in print)", *rest])


def satisfactory(results: Results, *, pairs: int, within: float) -> Verdict:
    """DSP is at most a little below the best of the others on every set."""
    gaps = {}
    for name in _sets(results):
        best = max(results.mean(m, "F", set=name, at={"pairs": pairs}) for m in ("SLPP", "LPPSI"))
        best = max(best, *(results.mean(m, "F", set=name) for m in ("PCA", "LPP")))
        gaps[name] = results.mean("DSP", "F", set=name, at={"pairs": pairs}) - best
    lost = {name: gap for name, gap in gaps.items() if gap < 0}
    near = sum(gap >= -within for gap in lost.values())
    words = f"on {near} of the {len(lost)} sets where it is not the best"
    return all_or_some([gap >= -within for gap in lost.values()]), words + listed(lost, ":", " ") * bool(lost)


def never_far_below(results: Results, *, within: float) -> Verdict:
    """With 5 pairs DSP is at most a little below the better of PCA and LPP on every set."""
    gaps = {}
    for name in _sets(results):
        best = max(results.mean(method, "F", set=name) for method in ("PCA", "LPP"))
        gaps[name] = results.mean("DSP", "F", set=name, at={"pairs": 5}) - best
    near = sum(gap >= -within for gap in gaps.values())
    return counted(
        near, len(gaps), len(gaps)
    ), f"not more than {within} below on {near} of {len(gaps)} sets; {listed(gaps, 'F less the better of the two')}"


def improves_on_unsupervised(results: Results, *, pairs: int) -> Verdict:
    """F of DSP is above that of PCA and of LPP by two standard errors over the sets."""
    words, cases = [], []
    for other in ("PCA", "LPP"):
        gaps = [
            results.mean("DSP", "F", set=name, at={"pairs": pairs}) - results.mean(other, "F", set=name)
            for name in _sets(results)
        ]
        mean, error = float(np.mean(gaps)), float(np.std(gaps, ddof=1) / np.sqrt(len(gaps)))
        cases.append(mean > 2 * error)
        words.append(f"{other} {mean:+.3f} ± {error:.3f}")
    return all_or_some(cases), f"{pairs} pairs: F of DSP less that of {', '.join(words)} (mean and error over the sets)"


def others_overfit(results: Results, *, within: float) -> Verdict:
    """With 5 pairs SLPP and LPPSI are below the better of PCA and LPP by more than a little, DSP is not."""
    below = {}
    for method in ("SLPP", "LPPSI", "DSP"):
        count = 0
        for name in _sets(results):
            best = max(results.mean(other, "F", set=name) for other in ("PCA", "LPP"))
            count += results.mean(method, "F", set=name, at={"pairs": 5}) < best - within
        below[method] = count
    holds = all_or_some([below["DSP"] == 0, below["SLPP"] > 0, below["LPPSI"] > 0])
    return holds, f"sets on which F is more than {within} below: " + ", ".join(f"{m} {n}" for m, n in below.items())


def rule_works(results: Results, *, within: float) -> Verdict:
    """The width by the rule gives an F not more than a little below that of the printed width, on every set."""
    words, cases = [], []
    for pairs in (20, 5):
        gaps = {
            name: results.mean("DSP, searched", "F", set=name, at={"pairs": pairs})
            - results.mean("DSP", "F", set=name, at={"pairs": pairs})
            for name in _sets(results)
        }
        near = sum(gap > -within for gap in gaps.values())
        cases.append(counted(near, len(gaps), len(gaps)))
        mean = float(np.mean(list(gaps.values())))
        words.append(f"{pairs} pairs: mean {mean:+.3f}, not more than {within} below on {near} of {len(gaps)}")
    return True if all(case is True for case in cases) else IN_PART if any(cases) else False, ", ".join(words)


def generalises(results: Results, *, needed: int) -> Verdict:
    """F on new rows is higher in the view than in all features, on as many sets as needed."""
    gaps = {}
    for name in _sets(results):
        gap, error = paired(results, "DSP", "full feature", name, "F")
        gaps[name] = (gap, error)
    wins = sum(gap > 0 for gap, _ in gaps.values())
    words = ", ".join(f"{name} {gap:+.3f} ± {error:.3f}" for name, (gap, error) in gaps.items())
    return counted(wins, len(gaps), needed), f"better on {wins} of {len(gaps)} ({needed} in print): {words}"


def quick_online(results: Results) -> Verdict:
    """Reducing rows takes DSP and SLPP less than a tenth of the least time of the others, on every set."""
    ratios = {}
    for name in _sets(results):
        slowest = max(results.mean(method, "online", set=name) for method in ("DSP", "SLPP"))
        quickest = min(results.mean(method, "online", set=name) for method in ("PCA", "LPP", "LPPSI"))
        ratios[name] = quickest / max(slowest, 1e-6)
    words = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
    cases = [ratio > 1 for ratio in ratios.values()]
    return (
        True if all(ratio > 10 for ratio in ratios.values()) else IN_PART if any(cases) else False,
        f"quickest of the others over the slower of the two: {words}",
    )


def slower_training(results: Results) -> Verdict:
    """Training takes DSP longer than SLPP on every set."""
    ratios = {
        name: results.mean("DSP", "training", set=name) / max(results.mean("SLPP", "training", set=name), 1e-6)
        for name in _sets(results)
    }
    words = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
    return all_or_some([ratio > 1 for ratio in ratios.values()]), f"DSP's time over SLPP's: {words}"


def cubic(results: Results) -> Verdict:
    """Training time grows as the cube of the number of rows: eight times for twice the rows."""
    rows = [int(n) for n in results.values("n")]
    if len(rows) < 3:
        raise LookupError("rows")
    times = [results.mean("DSP", "seconds", at={"n": n}) for n in rows]
    power = float(np.log(times[-1] / times[0]) / np.log(rows[-1] / rows[0]))
    return (
        power > 2.5,
        f"grows as n^{power:.1f} from {rows[0]:,} to {rows[-1]:,} rows ({times[0]:.2f} to {times[-1]:.2f} s)",
    )


def stable(results: Results, *, set: str) -> Verdict:
    """With 5 pairs a class the error in ten dimensions and more is within 0.1 of that with 30 pairs."""
    part = results.select(set=set, method="DSP", measure="error")
    dims = [d for d in part.values("dim") if isinstance(d, int) and d >= 10]
    if not dims:
        raise LookupError(set)
    few, many = (
        [
            part.mean("DSP", "error", at={"pairs": p, "dim": d})
            for d in dims
            if len(part.select(at={"pairs": p, "dim": d}))
        ]
        for p in (5, 30)
    )
    if not few or not many:
        raise LookupError(set)
    gap = max(few) - min(many)
    return (
        gap < 0.1,
        f"error at most {max(few):.3f} with 5 pairs, at least {min(many):.3f} with 30 (10 dimensions and more)",
    )


def below_lpp(results: Results, *, set: str, expected: bool) -> Verdict:
    """With 5 pairs and 10 dimensions or fewer SLPP and LPPSI have a larger error than LPP, or (COIL) a smaller one."""
    part = results.select(set=set, measure="error")
    words, cases = [], []
    for method in ("SLPP", "LPPSI"):
        for d in (5, 10):
            mine, lpp = part.mean(method, "error", at={"pairs": 5, "dim": d}), part.mean("LPP", "error", at={"dim": d})
            cases.append((mine > lpp) == expected)
            words.append(f"{method} d={d} {mine:.3f}, LPP {lpp:.3f}")
    return all_or_some(cases), ", ".join(words)


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
    return counted(count - len(lost), count, count), f"lowest in {count - len(lost)} of {count} cases; not at {shown}"
