"""metric-learn 0.7.0 beside pairlens: the values of its objectives, its metrics, and the processor time both take.

metric-learn does not run with current scikit-learn, so it needs an environment of its own:

    python -m venv other
    other/bin/pip install metric-learn==0.7.0 scikit-learn==1.5.2 "numpy<2.3"
    python benchmarks/bench_metric_learn.py record other/bin/python   # tests/fixtures/metric_learn.npz, on small sets
    python benchmarks/bench_metric_learn.py speed other/bin/python    # 2,000 rows, 50 features, method by method
    python benchmarks/bench_metric_learn.py quality other/bin/python 2   # what both take, and what it is worth

Each method of theirs runs in a process of its own, directly before ours, with one thread. "quality" runs both in a
process of their own with as many threads as are given, on half of the rows of three sets, and tells the 1-NN accuracy
of the other half (of MLKR, whose target is a number, R² of 5-NN) beside processor and wall time. Both have their
defaults: theirs makes up to 1,000 steps of LMNN and MLKR from the identity, ours up to 100 of limited-memory BFGS.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIXTURE = Path(__file__).parents[1] / "tests" / "fixtures" / "metric_learn.npz"
METHODS = ("RCA", "ITML", "LSML", "SCML", "LMNN", "MLKR")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Arrays = dict[str, NDArray[Any]]


def small_set() -> Arrays:
    """Wine, standardised, with answers of every kind drawn from its classes; its first feature is a target."""
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import StandardScaler

    X, y = load_wine(return_X_y=True)
    return answers(StandardScaler().fit_transform(X[:, 1:]), y, X[:, 0], 150)


def large_set(n: int = 2_000, f: int = 50) -> Arrays:
    """Five groups in ten of the features, the rest is noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, n)
    X = rng.standard_normal((n, f))
    X[:, :10] += 1.5 * rng.standard_normal((5, 10))[y]
    return answers(X, y, X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(n), 1_000)


def answers(X: NDArray[np.float64], y: NDArray[np.int64], target: NDArray[np.float64], count: int) -> Arrays:
    """Rows, classes, numbers, and pairs, triplets and quadruplets by the classes."""
    rng = np.random.default_rng(1)
    a = rng.integers(len(y), size=count)
    near = np.array([rng.choice(np.flatnonzero((y == y[i]) & (np.arange(len(y)) != i))) for i in a])
    far = np.array([rng.choice(np.flatnonzero(y != y[i])) for i in a])
    other = np.roll(np.arange(count), 1)
    pairs = np.concatenate([np.stack([a, near], 1), np.stack([a, far], 1)])
    return {
        "X": X,
        "y": y,
        "target": target,
        "pairs": pairs,
        "signs": np.repeat([1, -1], count),
        "triplets": np.stack([a, near, far], 1),
        "quadruplets": np.stack([a, near, a[other], far[other]], 1),
        "bounds": np.percentile(np.sum((X[pairs[:, 0]] - X[pairs[:, 1]]) ** 2, axis=1), (5, 95)),
        "chunks": np.where(np.arange(len(y)) < 2 * count, y, -1),
    }


def real_sets() -> dict[str, tuple[Arrays, Arrays]]:
    """Halves of three sets with answers about the first, standardised; the target is the first principal component."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    result = {}
    for name, loader in (("wine", load_wine), ("breast cancer", load_breast_cancer), ("digits", load_digits)):
        X, y = loader(return_X_y=True)
        X, order = StandardScaler().fit_transform(X), np.random.default_rng(0).permutation(len(y))[:1200]
        target = PCA(1).fit_transform(X)[:, 0]
        half = len(order) // 2
        train, test = order[:half], order[half:]
        result[name] = answers(X[train], y[train], target[train], 300), {"X": X[test], "y": y[test], "t": target[test]}
    return result


def worth(method: str, components: NDArray[np.float64], train: Arrays, test: Arrays) -> float:
    """1-NN accuracy of the other half, or R² of 5-NN for a number."""
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    number = method == "MLKR"
    model = KNeighborsRegressor(5) if number else KNeighborsClassifier(1)
    model.fit(train["X"] @ components.T, train["target" if number else "y"])
    return float(model.score(test["X"] @ components.T, test["t" if number else "y"]))


def quality(python: str, threads: str, methods: list[str]) -> None:
    """What both take, and what it is worth."""
    env = dict.fromkeys(ONE_THREAD, threads)
    for name, (train, test) in real_sets().items():
        for method in methods:
            line: dict[str, Any] = {"set": name, "method": method, "threads": int(threads)}
            for side, by in (("theirs", python), ("ours", sys.executable)):
                components, processor, wall = run_apart(by, side, method, train, env=env)
                line[side] = {"processor": processor, "wall": wall, "worth": worth(method, components, train, test)}
            print(json.dumps(line), flush=True)


def theirs(method: str, data: Arrays, *, precise: bool = False) -> tuple[NDArray[np.float64], float]:
    """The map that metric-learn finds by default or, where it can, precisely, and the processor time of its fit."""
    import metric_learn

    X = data["X"]
    made = {
        "RCA": lambda: (metric_learn.RCA(), (X, data["chunks"])),
        "ITML": lambda: (metric_learn.ITML(preprocessor=X), (data["pairs"], data["signs"])),
        "LSML": lambda: (metric_learn.LSML(preprocessor=X), (data["quadruplets"],)),
        "SCML": lambda: (metric_learn.SCML(preprocessor=X, random_state=0), (data["triplets"],)),
        "LMNN": lambda: (metric_learn.LMNN(init="identity"), (X, data["y"])),
        "MLKR": lambda: (metric_learn.MLKR(init="identity"), (X, data["target"])),
    }
    model, given = made[method]()
    if precise and method == "ITML":
        model.set_params(tol=1e-6, max_iter=10_000)
    more = {"bounds": data["bounds"].copy()} if method == "ITML" else {}
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*given, **more)
    return np.asarray(model.components_), time.process_time() - start


def ours(method: str, data: Arrays) -> tuple[NDArray[np.float64], float]:
    """The map that pairlens finds, and the processor time of its fit."""
    import pairlens
    from pairlens import Constraints, Quadruplets, Triplets

    X, n = data["X"], len(data["X"])
    made = {
        "RCA": lambda: (pairlens.RCA(X.shape[1]), {"constraints": Constraints.from_chunklets(data["chunks"])}),
        "ITML": lambda: (
            pairlens.ITML(None, bounds=tuple(data["bounds"])),
            {"constraints": Constraints(data["pairs"][data["signs"] == 1], data["pairs"][data["signs"] == -1], n)},
        ),
        "LSML": lambda: (pairlens.LSML(None), {"quadruplets": Quadruplets(data["quadruplets"], n)}),
        "SCML": lambda: (pairlens.SCML(None, random_state=0), {"triplets": Triplets(data["triplets"], n)}),
        "LMNN": lambda: (pairlens.LMNN(None), {"y": data["y"]}),
        "MLKR": lambda: (pairlens.MLKR(None), {"y": data["target"]}),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, given = made[method]()
        start = time.process_time()
        model.fit(X, **given)
    return np.asarray(model.components_), time.process_time() - start


def run_theirs(python: str, method: str, data: Arrays, *, precise: bool = False) -> tuple[NDArray[np.float64], float]:
    """:func:`theirs` in the environment that has metric-learn."""
    return run_apart(python, "precisely" if precise else "theirs", method, data, env=ONE_THREAD)[:2]


def run_apart(
    python: str, side: str, method: str, data: Arrays, *, env: dict[str, str]
) -> tuple[NDArray[np.float64], float, float]:
    """The map of one side in a process of its own, its processor time and its wall time."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "data.npz"), Path(folder, "result.npz")
        np.savez(source, **data)
        command = [python, __file__, "worker", side, method, str(source), str(result)]
        path = {} if side == "ours" else {"PYTHONPATH": ""}
        subprocess.run(command, check=True, env={**os.environ, **env, **path})
        with np.load(result) as found:
            return found["components"], float(found["seconds"]), float(found["wall"])


def work(side: str, method: str, source: str, result: str) -> None:
    """Fit one side to rows from a file, twice, and write the second time: what the first imports does not count."""
    with np.load(source) as found:
        data = dict(found)
    for _ in range(2):
        began = time.perf_counter()
        components, seconds = (
            ours(method, data) if side == "ours" else theirs(method, data, precise=side == "precisely")
        )
        wall = time.perf_counter() - began
    np.savez(result, components=components, seconds=seconds, wall=wall)


def record(python: str) -> None:
    """Write what metric-learn finds on the small set."""
    data = small_set()
    found = {f"components/{method}": run_theirs(python, method, data, precise=True)[0] for method in METHODS}
    FIXTURE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FIXTURE, **data, **found)


def speed(python: str, methods: list[str]) -> None:
    """Processor time of both, method by method."""
    data, little = large_set(), small_set()
    for method in methods:
        # What is imported at the first fit is no part of the method.
        ours(method, little)
        _, their_time = run_theirs(python, method, data)
        _, our_time = ours(method, data)
        print(
            json.dumps({"method": method, "theirs_s": their_time, "ours_s": our_time, "ratio": their_time / our_time})
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["record", "speed", "quality", "worker"])
    parser.add_argument("arguments", nargs="+")
    given = parser.parse_args()
    if given.task == "worker":
        work(*given.arguments)
    elif given.task == "record":
        record(given.arguments[0])
    elif given.task == "quality":
        python, threads, *methods = given.arguments
        quality(python, threads, methods or list(METHODS[1:]))
    else:
        os.environ.update(ONE_THREAD)
        speed(given.arguments[0], given.arguments[1:] or list(METHODS))


if __name__ == "__main__":
    sys.exit(main())
