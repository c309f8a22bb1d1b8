"""DSP at scale: the exact path against faiss and against dense matrices, landmarks against all rows.

Each case runs in a fresh process, so that peaks of memory are its own. Times are of one run on a machine that may do
other things: read the ratios. The folder of the data sets is taken from the environment variable ``PAIRLENS_DATA``.

    python -m benchmarks.bench_dsp [--quick] [--cases mnist pendigits mixture agreement]

mnist      70,000 x 784, 200 must-links and 200 cannot-links: the whole fit against faiss's exact search for the 5
           nearest rows.
pendigits  10,992 x 16, 200 + 200 pairs: the fit against dense n x n matrices with full sorts, one BLAS thread each.
mixture    1,000,000 x 50, a mixture of 30 Gaussians: from 50,000 landmarks.
agreement  all rows and half of them as landmarks, real data: angle between the subspaces, F-score of k-means.
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

from benchmarks.measure import peak_memory, report
from pairlens import Constraints
from pairlens.engines import config_context
from pairlens.kernels import delta_to_gamma
from pairlens.methods.dsp import DSP

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
    return {
        "rows": len(X),
        "fit_s": fit_s,
        "peak GiB of the process": peak / GIB,
        "GiB before": base / GIB,
    }


def agreement(quick: bool) -> Result:
    from sklearn.cluster import KMeans

    from reproduction.scores import pairwise_f_score

    result: Result = {}
    for name, n_rows, r in (
        ("pendigits", None, 5),
        ("letter", 5000 if quick else None, 8),
        ("mnist", 3000 if quick else 20_000, 20),
    ):
        X, y = load(name, n_rows)
        pairs = Constraints.from_labels(y, per_class=20, random_state=0)
        models = {}
        for how in ("exact", "approx"):
            with config_context(landmark_rows=len(X) // 2):
                models[how] = DSP(r, neighbors=how, random_state=0, tol=1e-6).fit(X, constraints=pairs)
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
