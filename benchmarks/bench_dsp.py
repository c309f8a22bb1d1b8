"""DSP at scale: the exact path against faiss and against dense matrices, the approximate path against the exact one.

Each case runs in a fresh process, so that peaks of memory are its own. Times are of one run on a machine that may do
other things: read the ratios. The folder of the data sets is taken from the environment variable ``PAIRLENS_DATA``.

    python -m benchmarks.bench_dsp [--quick] [--cases mnist pendigits mixture agreement]

mnist      70,000 x 784, 200 must-links and 200 cannot-links: the whole fit against faiss's exact search for the 5
           nearest rows.
pendigits  10,992 x 16, 200 + 200 pairs: the fit against dense n x n matrices with full sorts, one BLAS thread each.
mixture    1,000,000 x 50, a mixture of 30 Gaussians: the approximate path, recall on a sample of rows.
agreement  exact and approximate on real data: recall of neighbours, angle between the subspaces, F-score of k-means.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, subspace_angles

from benchmarks.measure import report
from pairlens import Constraints
from pairlens.engines.local.projected import LocalProjectedRows
from pairlens.graphs.approximate import approximate_neighbors
from pairlens.kernels.nullspace import delta_to_gamma, median_distance, must_link_null_space
from pairlens.methods.dsp import DSP
from pairlens.selection.measure import peak_memory

K = 5
GIB = 2.0**30
Result = dict[str, float]


def load(name: str, n_rows: int | None = None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    folder = os.environ.get("PAIRLENS_DATA")
    if folder is None:
        raise SystemExit("set PAIRLENS_DATA to the folder of the data sets")
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as arrays:
        X, y = arrays["X"], np.unique(arrays["y"], return_inverse=True)[1]
    chosen = np.random.default_rng(0).permutation(len(X))[:n_rows]
    return np.ascontiguousarray(X[chosen], dtype=np.float32), y[chosen]


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def prepared(X: NDArray[np.floating], pairs: Constraints) -> LocalProjectedRows:
    chunklets, gamma = pairs.chunklets(), delta_to_gamma(median_distance(X))
    F = must_link_null_space(X, chunklets, gamma=gamma).coordinates(X)
    return LocalProjectedRows.of(X, F, gamma, chunklets)


def mnist(quick: bool) -> Result:
    import faiss

    X, y = load("mnist", 10_000 if quick else None)
    X /= 255
    pairs = Constraints.from_labels(y, per_class=20, random_state=0)
    faiss_s, _ = timed(lambda: faiss.knn(X, X, K + 1))
    fits: list[float] = []
    memory = peak_memory(lambda: fits.append(timed(lambda: DSP(20, neighbors="exact").fit(X, constraints=pairs))[0]))
    return {
        "rows": len(X),
        "faiss_s": faiss_s,
        "fit_s": fits[0],
        "fit / faiss": fits[0] / faiss_s,
        "peak GiB beyond the data": memory / GIB,
    }


def dense_dsp(X: NDArray[np.float64], pairs: Constraints, r: int, delta: float) -> NDArray[np.float64]:
    """All n x n matrices, with vectorised NumPy and full sorts: what the paper describes."""
    square = np.einsum("ij,ij->i", X, X)
    D2 = np.maximum(square[:, None] + square - 2 * X @ X.T, 0)
    Kernel = np.exp(-D2 / (2 * delta**2))
    a, b = pairs.must_link.T
    W = Kernel[np.ix_(a, a)] - Kernel[np.ix_(a, b)] - Kernel[np.ix_(b, a)] + Kernel[np.ix_(b, b)]
    w, V = eigh(W)
    keep = w > 1e-10 * w[-1]
    F = (Kernel[:, a] - Kernel[:, b]) @ (V[:, keep] / np.sqrt(w[keep]))
    Kernel -= F @ F.T
    diagonal = np.diag(Kernel).copy()
    P2 = np.maximum(diagonal[:, None] + diagonal - 2 * Kernel, 0)
    graphs = []
    for squared, order in ((P2, 1), (D2, -1)):
        key = order * np.rint(squared / 1e-9)
        np.fill_diagonal(key, np.inf)
        chosen = np.argsort(key, axis=1, kind="stable")[:, :K]
        graph = np.zeros(squared.shape)
        np.put_along_axis(graph, chosen, 1.0, axis=1)
        graph = np.maximum(graph, graph.T)
        if order < 0:
            i, j = pairs.cannot_link.T
            graph[i, j] = graph[j, i] = 1
        graphs.append(graph * (1 - np.sqrt(squared / squared.max())))
    A, B = (X.T @ (np.diag(graph.sum(axis=1)) - graph) @ X for graph in graphs)
    size, basis = eigh(B)
    keep = size > 1e-9 * size[-1]
    whiten = basis[:, keep] / np.sqrt(size[keep])
    values, vectors = eigh(whiten.T @ A @ whiten)
    return (whiten @ vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))).T[:r]


def pendigits(quick: bool) -> Result:
    from threadpoolctl import threadpool_limits

    X32, y = load("pendigits", 4000 if quick else None)
    X = X32.astype(np.float64)
    pairs = Constraints.from_labels(y, per_class=20, random_state=0)
    with threadpool_limits(1):
        DSP(5, gamma=delta_to_gamma(46.0)).fit(X[:500], constraints=pairs[np.arange(500)])
        ours, _ = timed(lambda: DSP(5, gamma=delta_to_gamma(46.0), neighbors="exact").fit(X, constraints=pairs))
        dense, _ = timed(lambda: dense_dsp(X, pairs, 5, 46.0))
    return {"rows": len(X), "fit_s": ours, "dense_s": dense, "dense / fit": dense / ours}


def make_mixture(n: int, *, intrinsic: int | None = None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """30 Gaussians in 50 dimensions: round, or thick in a few directions of their own each."""
    rng = np.random.default_rng(0)
    y = rng.integers(30, size=n)
    X = np.empty((n, 50), dtype=np.float32)
    for c in range(30):
        rows = y == c
        noise = rng.standard_normal((rows.sum(), 50)) * (0.5 if intrinsic is None else 0.1)
        if intrinsic is not None:
            noise += 0.3 * rng.standard_normal((rows.sum(), intrinsic)) @ rng.standard_normal((intrinsic, 50))
        X[rows] = rng.standard_normal(50) + noise
    return X, y


def mixture(quick: bool) -> Result:
    X, y = make_mixture(50_000 if quick else 1_000_000)
    pairs = Constraints.from_labels(y, per_class=5, random_state=0)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    fit_s, _ = timed(lambda: DSP(10, neighbors="approx", random_state=0).fit(X, constraints=pairs))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    rows = prepared(X, pairs)
    found = approximate_neighbors(rows, K, random_state=0)
    near, far = sample_recall(rows, found.nearest, found.farthest, 100)
    return {
        "rows": len(X),
        "fit_s": fit_s,
        "peak GiB of the process": peak / GIB,
        "GiB before": base / GIB,
        "recall of nearest": near,
        "recall of farthest": far,
    }


def sample_recall(
    rows: LocalProjectedRows, nearest: NDArray[np.int64], farthest: NDArray[np.int64], size: int
) -> tuple[float, float]:
    """Share of the true k nearest and farthest of some rows that was found; ties in projected distance by input."""
    group, stands = rows.groups.group, rows.groups.representative
    X, F = rows.X.astype(np.float64), rows.F
    X_square, F_square = (np.einsum("ij,ij->i", A, A) for A in (X, F))
    near, far = [], []
    for row in np.random.default_rng(1).choice(rows.n, size, replace=False):
        point = stands[row]
        in_input, from_point = (X_square + X_square[i] - 2 * X @ X[i] for i in (row, point))
        squared = 2 - 2 * np.exp(-rows.gamma * from_point) - (F_square + F_square[point] - 2 * F @ F[point])
        squared = np.rint(squared[stands] / 1e-9)
        squared[group == group[row]] = -1
        squared[row] = np.inf
        near.append(np.isin(np.lexsort((in_input, squared))[:K], nearest[row]).mean())
        far.append(np.isin(np.argsort(-in_input, kind="stable")[:K], farthest[row]).mean())
    return float(np.mean(near)), float(np.mean(far))


def agreement(quick: bool) -> Result:
    from sklearn.cluster import KMeans

    from pairlens.metrics import pairwise_f_score

    result: Result = {}
    for name, n_rows, r in (
        ("pendigits", None, 5),
        ("letter", 5000 if quick else None, 8),
        ("mnist", 3000 if quick else 20_000, 20),
    ):
        X, y = load(name, n_rows)
        pairs = Constraints.from_labels(y, per_class=20, random_state=0)
        models = {
            how: DSP(r, neighbors=how, random_state=0, tol=1e-6).fit(X, constraints=pairs)
            for how in ("exact", "approx")
        }
        rows = prepared(X, pairs)
        exact, approx = rows.neighbors(K), approximate_neighbors(rows, K, random_state=0)
        for side in ("nearest", "farthest"):
            true, found = getattr(exact, side), getattr(approx, side)
            result[f"{name}: recall of {side}"] = float(np.mean([np.isin(t, f).mean() for t, f in zip(true, found)]))
        result[f"{name}: angle in rad"] = float(
            np.max(subspace_angles(*(model.components_.T.astype(np.float64) for model in models.values())))
        )
        for how, model in models.items():
            labels = KMeans(int(y.max()) + 1, n_init=3, random_state=0).fit_predict(model.transform(X))
            result[f"{name}: F {how}"] = pairwise_f_score(y, labels)
    return result


CASES = {"mnist": mnist, "pendigits": pendigits, "mixture": mixture, "agreement": agreement}


def run(name: str, quick: bool) -> Result:
    warnings.simplefilter("ignore")
    return CASES[name](quick)


def main(quick: bool = False, cases: list[str] | None = None) -> dict[str, Result]:
    """Print a table for each case, and return them."""
    table = {}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as fresh:
        for name in cases or CASES:
            table[name] = fresh.submit(run, name, quick).result()
            report(name, [(key, f"{value:.4g}") for key, value in table[name].items()], ("what", "value"))
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), help="all by default")
    given = parser.parse_args()
    main(given.quick, given.cases)
