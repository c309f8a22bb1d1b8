"""What the paper of WSDR and GB-WSDR says of its tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reproduction.checks import Verdict, all_or_some, counted, paired
from reproduction.experiment import Value
from reproduction.results import Results


def ahead(results: Results, *, ours: Sequence[str], others: Sequence[str], sets: Mapping[str, str]) -> Verdict:
    """Each of ours ahead of each of the others on every set, by more than two standard errors."""
    cases, words = [], []
    for one in ours:
        for other in others:
            here = [(title, *paired(results, one, other, name)) for name, title in sets.items()]
            cases += [gap > 2 * error for _, gap, error in here]
            shown = ", ".join(f"{title} {gap:+.1f} ± {error:.1f}" for title, gap, error in here)
            words.append(f"{one} minus {other}: {shown}")
    return all_or_some(cases), f"clearly ahead in {sum(cases)} of {len(cases)} comparisons; {'; '.join(words)}"


def ahead_in_cells(results: Results, *, ours: Sequence[str], others: Sequence[str], needed: float) -> Verdict:
    """Ours above all others in nearly all cells of D and d."""
    part, wins, total = results.select(measure="accuracy"), 0, 0
    for D in part.values("D"):
        for d in part.values("d"):
            at = {"D": D, "d": d}
            best = max(part.mean(name, "accuracy", at=at) for name in others)
            wins += sum(part.mean(name, "accuracy", at=at) > best for name in ours)
            total += len(ours)
    if not total:
        raise LookupError("cells")
    return counted(wins, total, needed * total), f"above the best of {', '.join(others)} in {wins} of {total} cells"


def triazines_in_five(results: Results) -> Verdict:
    """On Triazines in five dimensions the others are around 60 per cent, WSDR above 70, GB-WSDR higher still."""
    names = ("LPP", "LFDA", "LMCA", "WSDR, C by cv", "GBWSDR, trees by cv")
    found = {name: results.mean(name, "accuracy", set="triazines", at={"d": 5}) for name in names}
    *others, wsdr, trees = found.values()
    words = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
    return all_or_some([max(others) < 67.5, wsdr > 70, trees > wsdr]), words


def trees_do_not_overfit(results: Results) -> Verdict:
    """Thirty trees rank no worse than a number of trees chosen on held-out rows, by more than one point."""
    sets = ("pyrimidines", "triazines", "wpbc")
    gaps = {name: paired(results, "GBWSDR, 30 trees", "GBWSDR, trees by cv", name) for name in sets}
    words = ", ".join(f"{name} {gap:+.1f} ± {error:.1f}" for name, (gap, error) in gaps.items())
    return all_or_some([gap > -1 for gap, _ in gaps.values()]), f"30 trees less a chosen number: {words}"


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
    words, cases = [], []
    part = results.select(set="bookcrossing", measure="objective")
    if not len(part):
        raise LookupError("Book-Crossing")
    last = part.values("iteration")[-1]
    for method in ("WSDR, alternating directions", "GBWSDR"):
        for C in part.values("C"):
            start, ten, end = (part.mean(method, "objective", at={"C": C, "iteration": i}) for i in (0, 10, last))
            share = (start - ten) / (start - end)
            words.append(f"{method}, C = {C:g}: {100 * share:.0f} % of the decrease")
            cases.append(share >= 0.9)
    return all_or_some(cases), ", ".join(words)


def _precision(results: Results) -> dict[str, dict[Value, float]]:
    part = results.select(measure="mAP")
    if not len(part):
        raise LookupError("mAP")
    return {m: {d: part.mean(m, "mAP", at={"d": d}) for d in part.values("d")} for m in part.methods()}


def better_precision(results: Results) -> Verdict:
    """WSDR and GB-WSDR above LPP, LFDA and LMCA in every dimension."""
    found = _precision(results)
    rivals = [found[name] for name in ("LPP", "LFDA", "LMCA")]
    words, above = [], []
    for name in ("WSDR, C by cv", "GBWSDR, trees by cv"):
        above += [value > max(rival[d] for rival in rivals) for d, value in found[name].items()]
        words.append(f"{name}: " + ", ".join(f"d={d} {v:.3f}" for d, v in found[name].items()))
    best = ", ".join(f"d={d} {max(rival[d] for rival in rivals):.3f}" for d in rivals[0])
    words.append(f"best of the three: {best}")
    return all_or_some(above), f"above in {sum(above)} of {len(above)} cases; {'; '.join(words)}"


def trees_more_precise(results: Results) -> Verdict:
    """GB-WSDR above WSDR in every dimension."""
    found = _precision(results)
    gaps = {d: value - found["WSDR, C by cv"][d] for d, value in found["GBWSDR, trees by cv"].items()}
    return all_or_some([gap > 0 for gap in gaps.values()]), ", ".join(f"d={d}: {gap:+.3f}" for d, gap in gaps.items())


def lead_in_few_dimensions(results: Results) -> Verdict:
    """The gap to the best of LPP, LFDA and LMCA falls from the first to the last dimension."""
    found = _precision(results)
    gaps = {
        d: value - max(found[name][d] for name in ("LPP", "LFDA", "LMCA"))
        for d, value in found["WSDR, C by cv"].items()
    }
    first, *_, last = gaps.values()
    return first > max(last, 0), "WSDR ahead by " + ", ".join(f"{gap:+.3f} at d={d}" for d, gap in gaps.items())
