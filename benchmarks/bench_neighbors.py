"""The blocked self-join against exact peers, in one run: time as a ratio, and peak memory beyond the data.

Ours, faiss (``IndexFlatL2``) and scikit-learn (brute force or its choice of tree) find the 5 nearest rows of every row.
Each data set has a fresh process, in which ours and faiss take turns and the best of each counts: other work on the
machine then weighs less. The folder of the data sets is taken from the environment variable ``PAIRLENS_DATA``.

    python -m benchmarks.bench_neighbors [--quick]
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import neighbors

K = 5
MIB = 2.0**20


@dataclass(frozen=True)
class Measured:
    seconds: float
    peak_mib: float
    result: Any


def resident() -> float:
    """Resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def measure(task: Callable[[], Any]) -> Measured:
    """Run a task once; sample how far resident memory rises above where it stood."""
    before = resident()
    peak = before
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    try:
        result = task()
    finally:
        seconds = time.perf_counter() - began
        peak = max(peak, resident())
        done.set()
        watcher.join()
    return Measured(seconds, peak - before, result)


def load(name: str, n_rows: int | None = None) -> NDArray[np.float32]:
    folder = os.environ.get("PAIRLENS_DATA")
    if folder is None:
        raise SystemExit("set PAIRLENS_DATA to the folder of the data sets")
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as arrays:
        X = arrays["X"][:n_rows]
    if name.startswith("kddcup"):
        low, span = X.min(axis=0), np.ptp(X, axis=0)
        X = (X - low) / np.where(span > 0, span, 1)
    return np.ascontiguousarray(X, dtype=np.float32)


def ours(X: NDArray[np.float32]) -> NDArray[np.float64]:
    return neighbors(X, n_nearest=K).nearest_distance


def faiss_nearest(X: NDArray[np.float32]) -> NDArray[np.float64]:
    import faiss

    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X)
    squared, _ = index.search(X, K + 1)
    return np.sqrt(np.maximum(squared[:, 1:], 0.0))


def sklearn_nearest(X: NDArray[np.float32]) -> NDArray[np.float64]:
    from sklearn.neighbors import NearestNeighbors

    algorithm = "brute" if X.shape[1] > 50 else "auto"
    return NearestNeighbors(n_neighbors=K, algorithm=algorithm, n_jobs=-1).fit(X).kneighbors()[0]


def compare(name: str, n_rows: int | None, with_sklearn: bool, rounds: int) -> dict[str, float]:
    """Measure one data set, in whatever process this is called."""
    X = load(name, n_rows)
    neighbors(X[:100], n_nearest=1)  # wakes the threads
    turns = [(measure(lambda: ours(X)), measure(lambda: faiss_nearest(X))) for _ in range(rounds)]
    mine, faiss = (min(turn[who].seconds for turn in turns) for who in (0, 1))
    return {
        "rows": X.shape[0],
        "columns": X.shape[1],
        "ours_s": mine,
        "faiss_s": faiss,
        "ratio": mine / faiss,
        "sklearn_s": measure(lambda: sklearn_nearest(X)).seconds if with_sklearn else float("nan"),
        "peak_mib": turns[0][0].peak_mib,
    }


def main(quick: bool = False) -> dict[str, dict[str, float]]:
    """Print a table of times and ratios, and return it by data set."""
    cases = [
        ("isolet", 3000 if quick else None, True, 3),
        ("letter", 5000 if quick else None, True, 3),
        ("kddcup99_10pct", 5000 if quick else 100_000, quick, 2),
        ("mnist", 5000 if quick else None, quick, 2),
    ]
    table: dict[str, dict[str, float]] = {}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as fresh:
        for case in cases:
            table[case[0]] = row = fresh.submit(compare, *case).result()
            if len(table) == 1:
                print(" " * 16 + "".join(f"{column:>11}" for column in row))
            print(f"{case[0]:16}" + "".join(f"{value:11.5g}" for value in row.values()), flush=True)
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few thousand rows of each set")
    main(parser.parse_args().quick)
