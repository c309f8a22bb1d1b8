"""Checks of what the papers say: each takes results and returns whether the statement holds, and numbers in words.

Whether it holds is True, False or "in part". The words begin with what decides it; details follow the first semicolon,
and the table of all claims leaves them out. A check raises ``LookupError`` where a result is missing; the statement is
then open. The files of the papers name the functions of the modules here, each paper those of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reproduction.experiment import Value
from reproduction.results import Results

Verdict = tuple[bool | str, str]
IN_PART = "in part"
At = Mapping[str, Value]


def listed(values: Mapping[str, float], where: str, separator: str = ": ") -> str:
    """Return names with their numbers."""
    return where + separator + ", ".join(f"{name} {value:.3f}" for name, value in values.items())


def counted(wins: int, total: int, needed: float) -> bool | str:
    """Return True from `needed` cases on, "in part" from a half of all on, else False."""
    return True if wins >= needed else IN_PART if 2 * wins >= total else False


def all_or_some(cases: Sequence[bool]) -> bool | str:
    """Return True if all cases hold, False if none does, else "in part"."""
    return True if all(cases) else IN_PART if any(cases) else False


def by_fold(
    results: Results, method: str, measure: str, *, set: str, at: At | None = None, best_over: str = ""
) -> dict[tuple[int, int], float]:
    """Return the mean of each fold, of the value of `best_over` that is best in the mean over all folds.

    Conditions that a method's results do not have, such as the number of pairs for PCA, do not count for it.
    """
    part = results.select(set=set, method=method, measure=measure)
    part = part.select(at={key: value for key, value in (at or {}).items() if part.values(key)})
    cell = part.cell(best_over)
    if cell is None:
        raise LookupError(f"{method}, {measure}, {set}")
    if cell.best_at is not None:
        part = part.select(at={best_over: cell.best_at})
    found: dict[tuple[int, int], list[float]] = {}
    for row in part.rows:
        if not np.isnan(row.result.value):
            found.setdefault((row.run, row.part), []).append(row.result.value)
    return {fold: float(np.mean(values)) for fold, values in found.items()}


def paired(
    results: Results,
    ours: str,
    other: str,
    set: str,
    measure: str = "accuracy",
    *,
    at: At | None = None,
    best_over: str = "",
) -> tuple[float, float]:
    """Return the mean over folds of the difference of two methods, and its standard error."""
    one, two = (by_fold(results, name, measure, set=set, at=at, best_over=best_over) for name in (ours, other))
    if set_of_one := [fold for fold in one if fold not in two and len(two) == 1]:
        # A method that needs no pairs was run once.
        two = dict.fromkeys([*one, *set_of_one], next(iter(two.values())))
    gaps = [mean - two[fold] for fold, mean in one.items() if fold in two]
    if len(gaps) < 2:
        raise LookupError(f"{ours} and {other} on {set}")
    return float(np.mean(gaps)), float(np.std(gaps, ddof=1) / np.sqrt(len(gaps)))


def best_on(
    results: Results,
    *,
    sets: Sequence[str],
    ours: Sequence[str],
    others: Sequence[str],
    measure: str,
    at: At | None = None,
    best_over: str = "",
    decimals: int = 3,
) -> tuple[int, str]:
    """Return on how many sets the best of ours is the best of all, and that in words with the clear losses.

    Means are compared as the tables show them, with so many decimals: those that look equal count as equal.
    """
    wins, lost, clear = 0, [], []
    for name in sets:
        means = {
            method: float(
                np.mean(list(by_fold(results, method, measure, set=name, at=at, best_over=best_over).values()))
            )
            for method in (*ours, *others)
        }
        first, second = (max(group, key=lambda method: means[method]) for group in (ours, others))
        if round(means[first], decimals) >= round(means[second], decimals):
            wins += 1
            continue
        gap, error = paired(results, first, second, name, measure, at=at, best_over=best_over)
        lost.append(f"{name} to {second} by {-gap:.3f} ± {error:.3f}")
        if gap < -2 * error:
            clear.append(name)
    words = f"best on {wins} of {len(sets)} sets, behind by more than two standard errors on {len(clear)}"
    return wins, words + (f"; behind on {', '.join(lost)}" if lost else "")
