"""Time and memory of every method over n, and the power of n that they grow with.

The table of ``docs/scaling.md`` is printed by ``python -m benchmarks.bench_scaling``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from benchmarks.measure import best_time, peak_memory, report
from pairlens import (
    BWDR,
    CFLD,
    CLPP,
    CMM,
    DCA,
    DSP,
    GBWSDR,
    LFDA,
    LMCA,
    LPP,
    LPPSI,
    NPSSDR,
    RCA,
    SDA,
    SLPP,
    SSDR,
    WBDR,
    WSDR,
    Constraints,
    KernelBWDR,
    KernelLPPSI,
    KernelNullSpace,
    KernelWBDR,
    LinearPairLens,
    PairLens,
    Preferences,
    RankSVM,
    SKKMeans,
    SODRPaC,
)
from pairlens.methods.base import LinearPairTransformer

MIB = 1 << 20
N_FEATURES, N_PAIRS, LARGEST_LABELLED = 50, 1000, 2000
SUMS: tuple[type[LinearPairTransformer], ...] = (BWDR, WBDR, SSDR, CMM, RCA, CFLD, DCA, SLPP, LFDA)
NEIGHBOURS: tuple[type[LinearPairTransformer], ...] = (LPP, LPPSI, CLPP, NPSSDR, SDA, SODRPaC, LinearPairLens, DSP)
OTHERS: tuple[type[Any], ...] = (KernelBWDR, KernelWBDR, PairLens, KernelNullSpace, SKKMeans, KernelLPPSI, LMCA)
PREFERENCES: tuple[type[Any], ...] = (WSDR, RankSVM, GBWSDR)


def table(n: int) -> tuple[np.ndarray, Constraints]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, n)
    hidden = 2 * rng.standard_normal((5, 6))[labels] + rng.standard_normal((n, 6))
    X = hidden @ rng.standard_normal((6, N_FEATURES)) + rng.standard_normal((n, N_FEATURES))
    some = rng.choice(n, min(n, LARGEST_LABELLED), replace=False)
    known = np.full(n, -1)
    known[some] = labels[some]
    return X.astype(np.float32), Constraints.from_labels(known, n_pairs=N_PAIRS, random_state=0)


def fit_one(cls: type[Any], X: np.ndarray, known: Constraints) -> None:
    """Fit a method with two directions, or what comes nearest to that."""
    if cls in PREFERENCES:
        # The first of a pair over the second, as the first feature says.
        pairs = np.concatenate([known.must_link, known.cannot_link])
        better = X[pairs[:, 0], 0] > X[pairs[:, 1], 0]
        given = Preferences(np.where(better[:, None], pairs, pairs[:, ::-1]), n_samples=len(X))
        (RankSVM() if cls is RankSVM else cls(2, random_state=0)).fit(X, preferences=given)
        return
    special = {
        SKKMeans: lambda: SKKMeans(5, random_state=0),
        KernelNullSpace: KernelNullSpace,
    }
    exactly = {"neighbors": "exact"} if cls in NEIGHBOURS else {}
    special.get(cls, lambda: cls(2, **exactly))().fit(X, constraints=known)


def main(quick: bool = False) -> dict[str, float]:
    warnings.simplefilter("ignore", UserWarning)
    figures: dict[str, float] = {}
    for title, methods, sizes in (
        ("Sums over pairs and rows", SUMS, (20_000, 200_000) if quick else (10_000, 100_000, 1_000_000)),
        ("Neighbours of all rows, exact", NEIGHBOURS, (2_000, 8_000) if quick else (2_000, 8_000, 32_000)),
        ("Kernels, learned spaces, labels", OTHERS, (500, 2_000) if quick else (500, 2_000, 8_000)),
        ("Preferences", PREFERENCES, (2_000, 8_000) if quick else (2_000, 8_000, 32_000)),
    ):
        tables = {n: table(n) for n in sizes}
        rows = [_row("PCA (scikit-learn)", lambda X, _: PCA(2, svd_solver="covariance_eigh").fit(X), tables, figures)]
        for cls in methods:
            rows.append(_row(cls.__name__, lambda X, known, cls=cls: fit_one(cls, X, known), tables, figures))
        report(
            f"{title}: {N_FEATURES} features, float32, {N_PAIRS:,} pairs; seconds and MiB beyond X",
            rows,
            ("", *(f"n = {n:,}" for n in sizes), "time grows as"),
        )
    return figures


def _row(name: str, fit, tables: dict[int, tuple[np.ndarray, Constraints]], figures: dict[str, float]):  # type: ignore[no-untyped-def]
    cells, seconds = [], []
    for n, (X, known) in tables.items():
        started = time.perf_counter()
        memory = peak_memory(lambda X=X, known=known: fit(X, known))
        once = time.perf_counter() - started
        seconds.append(once if once > 5 else best_time(lambda X=X, known=known: fit(X, known), 2))
        cells.append(f"{seconds[-1]:.2f} s, {memory / MIB:.0f}")
        figures[f"{name} {n}"] = seconds[-1]
    sizes = list(tables)
    power = np.log(seconds[-1] / seconds[-2]) / np.log(sizes[-1] / sizes[-2])
    return (name, *cells, f"n^{power:.1f}")


if __name__ == "__main__":
    main()
