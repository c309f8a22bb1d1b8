"""The preference objective and its learners: processor time as ratios in one run, and peak memory.

- one value and gradient of the closed form against the embedding and its pair differences, which it needs anyway;
- the closed form and the tiled form against each other;
- RankSVM against scikit-learn's LinearSVC on explicit differences;
- boosted trees of scikit-learn against those of XGBoost.

    python -m benchmarks.bench_preference [--quick]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.preference.gbwsdr import SklearnTrees, TreeOptions, XGBoostTrees
from pairlens.preference.objective import Objective, Pairs, largest_differences
from pairlens.preference.ranksvm import rank_svm
from pairlens.preference.wsdr import LinearProblem

MIB = 2.0**20
Table = dict[str, dict[str, float]]


def seconds(*tasks: Callable[[], Any], repeats: int = 5) -> list[float]:
    """The least processor time of each task after a run to wake up; they take turns, so that all see one machine."""
    for task in tasks:
        task()
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(repeats):
        for task, taken in zip(tasks, times):
            began = time.process_time()
            task()
            taken.append(time.process_time() - began)
    return [min(taken) for taken in times]


def peak_mib(task: Callable[[], Any]) -> float:
    """Most memory allocated at one time."""
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def random_pairs(rng: np.random.Generator, n: int, count: int) -> NDArray[np.int64]:
    """Distinct rows in each pair, sorted as Preferences keep them."""
    first = rng.integers(n, size=count)
    second = (first + rng.integers(1, n, size=count)) % n
    order = np.lexsort((second, first))
    return np.stack([first[order], second[order]], axis=1)


def closed_form(quick: bool) -> dict[str, float]:
    """Value and gradient with respect to L, beside the embedding and the pair differences alone."""
    n, D, d, M = (10_000, 100, 10, 100_000) if quick else (100_000, 100, 10, 1_000_000)
    rng = np.random.default_rng(0)
    X, L = rng.normal(size=(n, D)), 0.05 * rng.normal(size=(d, D))
    rows = random_pairs(rng, n, M)
    pairs = Pairs.of(rows, n)
    problem = LinearProblem(X, Objective(pairs, 0.1 * largest_differences(X, rows)), reg=0.1)

    def plain() -> NDArray[np.float64]:
        Z = X @ L.T
        return Z[rows[:, 0]] - Z[rows[:, 1]]

    def incidence() -> NDArray[np.float64]:
        return pairs.differences(X @ L.T)

    base, own_base, whole = seconds(plain, incidence, lambda: problem(L))
    half = Pairs.of(rows[::2], n)
    smaller = LinearProblem(X, Objective(half, problem.objective.width[::2]), reg=0.1)
    memory, half_memory = peak_mib(lambda: problem(L)), peak_mib(lambda: smaller(L))
    print(f"closed form, n = {n:,}, D = {D}, d = {d}, {M:,} pairs")
    print(f"  embedding and differences by indexing   {base:.3f} s; by the incidence matrix {own_base:.3f} s")
    print(f"  value and gradient by L                 {whole:.3f} s: {whole / base:.2f} x and {whole / own_base:.2f} x")
    print(f"  peak memory {memory:.0f} MiB, with half of the pairs {half_memory:.0f} MiB")
    return {
        "indexing_s": base,
        "incidence_s": own_base,
        "gradient_s": whole,
        "ratio": whole / base,
        "ratio_incidence": whole / own_base,
        "peak_mib": memory,
        "peak_half_mib": half_memory,
    }


def forms(quick: bool) -> dict[str, float]:
    """The two ways to sum the angle term."""
    n, D, M, d = (100, 30, 2_000, 5) if quick else (190, 30, 9_000, 5)
    rng = np.random.default_rng(0)
    X, L = rng.normal(size=(n, D)), 0.1 * rng.normal(size=(d, D))
    rows = random_pairs(rng, n, M)
    better = X[:, 0] + 0.5 * rng.normal(size=n)
    rows = np.where((better[rows[:, 0]] > better[rows[:, 1]])[:, None], rows, rows[:, ::-1])
    exact = Objective(Pairs.of(rows, n), np.full(M, 0.1), gamma2=0.5)
    closed, tiled = LinearProblem(X, replace(exact, gamma2=1.0), 0.0), LinearProblem(X, exact, 0.0)
    closed_s, tiled_s = seconds(lambda: closed.angle(L), lambda: tiled.angle(L), repeats=3)
    print(
        f"angle term, {M:,} pairs, d = {d}: closed {closed_s:.4f} s, tiled {tiled_s:.3f} s ({tiled_s / closed_s:.0f} x)"
    )
    return {"closed_s": closed_s, "tiled_s": tiled_s}


def ranking(quick: bool) -> dict[str, float]:
    """RankSVM, and the same problem for LinearSVC on the differences of the rows."""
    from sklearn.svm import LinearSVC

    n, D, M = (1_000, 20, 10_000) if quick else (5_000, 50, 100_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D))
    score = X @ rng.normal(size=D) + rng.normal(size=n)
    rows = random_pairs(rng, n, M)
    rows = np.where((score[rows[:, 0]] > score[rows[:, 1]])[:, None], rows, rows[:, ::-1])
    pairs = Pairs.of(rows, n)
    C = 10.0

    def peer() -> NDArray[np.float64]:
        differences = X[rows[:, 0]] - X[rows[:, 1]]
        sign = np.where(np.arange(M) % 2, 1, -1)
        svc = LinearSVC(loss="squared_hinge", dual=False, C=C / M, fit_intercept=False, tol=1e-6)
        return svc.fit(differences * sign[:, None], sign).coef_.ravel()

    ours, theirs = seconds(lambda: rank_svm(X, pairs, C), peer, repeats=2)
    gap = float(np.abs(rank_svm(X, pairs, C)[0] - peer()).max())
    print(
        f"RankSVM, {M:,} pairs, D = {D}: {ours:.3f} s, LinearSVC {theirs:.3f} s ({theirs / ours:.1f} x); gap {gap:.1e}"
    )
    return {"ours_s": ours, "linear_svc_s": theirs, "gap": gap}


def boosting(quick: bool) -> dict[str, float]:
    """Ten trees with vector leaves from each library."""
    n, D, d = (2_000, 20, 5) if quick else (20_000, 50, 10)
    rng = np.random.default_rng(0)
    X, targets = rng.normal(size=(n, D)), rng.normal(size=(n, d))
    targets += np.sign(X[:, :d])
    options = TreeOptions(max_depth=4, learning_rate=0.1, min_samples_leaf=5, n_jobs=1, seed=0)

    def grow(kind: type[SklearnTrees] | type[XGBoostTrees]) -> None:
        trees = kind(X, n_outputs=d, options=options)
        for _ in range(10):
            trees.grow(targets)

    plain, boosted = seconds(lambda: grow(SklearnTrees), lambda: grow(XGBoostTrees), repeats=1)
    print(f"10 trees, n = {n:,}, D = {D}, d = {d}: scikit-learn {plain:.2f} s, XGBoost {boosted:.2f} s")
    return {"sklearn_s": plain, "xgboost_s": boosted}


def main(quick: bool = False) -> Table:
    """Print and return all measurements."""
    return {
        "closed_form": closed_form(quick),
        "forms": forms(quick),
        "ranking": ranking(quick),
        "boosting": boosting(quick),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    main(parser.parse_args().quick)
