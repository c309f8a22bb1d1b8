"""metric-learn 0.7.0 beside pairlens: the time that both take to the same value of one objective.

    pip install --no-deps metric-learn==0.7.0
    python -m benchmarks.bench_metric_learn race [--threads 1] [--busy] [--methods LMNN ...] [--to FILE]
    python -m benchmarks.bench_metric_learn table FILE    # the table of docs/comparisons.md
    python -m benchmarks.bench_metric_learn record        # tests/fixtures/metric_learn.npz, on a small set

metric-learn passes an argument to scikit-learn that has been renamed since; here it is passed by its new name.

race: both learn from half of the rows of three sets, all directions from the identity on, with their other defaults.
Each side is fitted with more and more iterations up to its default, in a process of its own. All maps are judged by the
same code: the objective that the paper and both libraries state (of SCML, whose directions differ, the mean hinge of
the triplets). The goal of both is the value that the worse of the two ends with, less than a thousandth of the way from
the identity aside. The time of a side is that of its shortest fit that reaches the goal, the best of three. Beside it
are the times of the whole fits, and the 1-NN accuracy of the other half (of MLKR R² of 5-NN) after these. `--threads`
is the number of threads of BLAS and OpenMP; with `--busy` another process keeps each core busy.
"""

from __future__ import annotations

import argparse
import functools
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
STEPS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 100, 200, 500, 1000)
"""Iterations that are tried: up to 100 here, and there up to 1,000, of SCML ten times as many, which are small."""
SHORT = 0.3
"""Seconds below which a fit is repeated."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Arrays = dict[str, NDArray[Any]]


def small_set() -> Arrays:
    """Wine, standardised, with answers of every kind drawn from its classes; its first feature is a target."""
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import StandardScaler

    X, y = load_wine(return_X_y=True)
    return answers(StandardScaler().fit_transform(X[:, 1:]), y, X[:, 0], 150)


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
        order = np.random.default_rng(0).permutation(len(y))[:1200]
        half = len(order) // 2
        train, test = order[:half], order[half:]
        X = StandardScaler().fit_transform(X[:, X[train].std(axis=0) > 0])
        target = PCA(1).fit_transform(X)[:, 0]
        result[name] = answers(X[train], y[train], target[train], 300), {"X": X[test], "y": y[test], "t": target[test]}
    return result


def worth(method: str, components: NDArray[np.float64], train: Arrays, test: Arrays) -> float:
    """1-NN accuracy of the other half, or R² of 5-NN for a number."""
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    number = method == "MLKR"
    model = KNeighborsRegressor(5) if number else KNeighborsClassifier(1)
    model.fit(train["X"] @ components.T, train["target" if number else "y"])
    return float(model.score(test["X"] @ components.T, test["t" if number else "y"]))


def objective(method: str, L: NDArray[np.float64], data: Arrays) -> float:
    """What both minimise, at a map."""
    from pairlens import Quadruplets
    from pairlens.preference.comparing import ComparisonResidual
    from pairlens.preference.lmca import LargeMarginNeighbours, target_neighbours
    from pairlens.preference.metric import BoundedPairs, KernelRegression, comparison_pairs, log_det_penalty
    from pairlens.preference.objective import Pairs

    X, n = data["X"], len(data["X"])
    Z = X @ L.T
    if method == "ITML":
        must = data["signs"] == 1
        weight, sign = np.ones(len(must)), np.where(must, 1.0, -1.0)
        pairs = BoundedPairs(Pairs.of(data["pairs"], n), np.where(must, *data["bounds"]), sign, weight, 1.0)
        return pairs(Z)[0] + log_det_penalty(L)[0]
    if method == "LSML":
        known = Quadruplets(data["quadruplets"], n)
        return ComparisonResidual(*comparison_pairs(known))(Z[known.rows])[0] + log_det_penalty(L)[0]
    if method == "SCML":
        a, near, far = data["triplets"].T
        return float(np.maximum(0, 1 + np.square(Z[a] - Z[near]).sum(1) - np.square(Z[a] - Z[far]).sum(1)).mean())
    if method == "LMNN":
        return LargeMarginNeighbours(target_neighbours(X, data["y"], 3), data["y"], 1.0, 0.0)(Z)[0]
    target = data["target"] - data["target"].mean()
    return KernelRegression(target / np.sqrt(target @ target))(Z)[0]


@functools.cache
def metric_learn() -> Any:
    """The package, with the argument that scikit-learn has renamed."""
    import metric_learn
    from metric_learn import _util

    def renamed(check: Any) -> Any:
        @functools.wraps(check)
        def call(*args: Any, force_all_finite: Any = True, **more: Any) -> Any:
            return check(*args, ensure_all_finite=force_all_finite, **more)

        return call

    _util.check_array, _util.check_X_y = renamed(_util.check_array), renamed(_util.check_X_y)
    return metric_learn


def theirs(method: str, data: Arrays, steps: int | None = None, *, precise: bool = False) -> tuple[Any, Arrays]:
    """A model of metric-learn, and what its fit is given."""
    package, X = metric_learn(), data["X"]
    made = {
        "RCA": lambda: (package.RCA(), {"X": X, "chunks": data["chunks"]}),
        "ITML": lambda: (package.ITML(preprocessor=X), {"pairs": data["pairs"], "y": data["signs"]}),
        "LSML": lambda: (package.LSML(preprocessor=X), {"quadruplets": data["quadruplets"]}),
        "SCML": lambda: (package.SCML(preprocessor=X, random_state=0), {"triplets": data["triplets"]}),
        "LMNN": lambda: (package.LMNN(init="identity"), {"X": X, "y": data["y"]}),
        "MLKR": lambda: (package.MLKR(init="identity"), {"X": X, "y": data["target"]}),
    }
    model, given = made[method]()
    if method == "ITML":
        given["bounds"] = data["bounds"].copy()
        if precise:
            model.set_params(tol=1e-6, max_iter=10_000)
    if steps is not None and method != "RCA":
        # SCML keeps the best of the metrics that it looks at, every 5,000 steps by default.
        model.set_params(
            **{"max_iter": 10 * steps, "output_iter": 10 * steps} if method == "SCML" else {"max_iter": steps}
        )
    return model, given


def ours(method: str, data: Arrays, steps: int | None = None) -> tuple[Any, dict[str, Any]]:
    """A model of pairlens, and what its fit is given."""
    import pairlens
    from pairlens import Constraints, Quadruplets, Triplets

    X, n = data["X"], len(data["X"])
    must = data["signs"] == 1
    made: dict[str, Any] = {
        "ITML": lambda: (
            pairlens.ITML(None, bounds=tuple(data["bounds"])),
            {"constraints": Constraints(data["pairs"][must], data["pairs"][~must], n)},
        ),
        "LSML": lambda: (pairlens.LSML(None), {"quadruplets": Quadruplets(data["quadruplets"], n)}),
        "SCML": lambda: (pairlens.SCML(None, random_state=0), {"triplets": Triplets(data["triplets"], n)}),
        "LMNN": lambda: (pairlens.LMNN(None), {"y": data["y"]}),
        "MLKR": lambda: (pairlens.MLKR(None), {"y": data["target"]}),
    }
    model, given = made[method]()
    if steps is not None:
        model.set_params(max_iter=steps)
    return model, {"X": X, **given}


def fits(side: str, method: str, data: Arrays) -> list[dict[str, Any]]:
    """Fits with more and more iterations: the map, processor and wall time of each; the last is the default."""
    most, made = (100, ours) if side == "ours" else (1000, theirs)
    found: list[dict[str, Any]] = []
    warnings.simplefilter("ignore")
    model, given = made(method, data, 1)
    # What the first imports is no part of the method.
    model.fit(**given)
    for steps in [*(steps for steps in STEPS if steps < most), None]:
        times = []
        while not times or (min(times)[1] < SHORT and len(times) < 3):
            model, given = made(method, data, steps)
            processor, wall = time.process_time(), time.perf_counter()
            model.fit(**given)
            times.append((time.process_time() - processor, time.perf_counter() - wall))
        processor, wall = (min(each) for each in zip(*times))
        found.append({"steps": steps or most, "L": model.components_, "processor": processor, "wall": wall})
    return found


def run_apart(side: str, method: str, data: Arrays, threads: int, busy: bool) -> list[dict[str, Any]]:
    """The fits of one side in a process of its own, beside busy ones or not."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0) if busy]
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, result = Path(folder, "data.npz"), Path(folder, "result.npy")
            np.savez(source, **data)
            command = [sys.executable, "-m", "benchmarks.bench_metric_learn", "worker", side, method, source, result]
            env = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
            subprocess.run([str(part) for part in command], check=True, env=env)
            return list(np.load(result, allow_pickle=True))
    finally:
        for process in spinning:
            process.kill()


def race(methods: list[str], threads: int, busy: bool, path: Path | None) -> None:
    """What both take to the same value."""
    for name, (train, test) in real_sets().items():
        for method in methods:
            data = train
            if method == "MLKR" and len(train["X"]) > 300:
                data = {**train, "X": train["X"][:300], "target": train["target"][:300], "y": train["y"][:300]}
            line: dict[str, Any] = {"set": name, "method": method, "threads": threads, "busy": busy}
            sides = {side: run_apart(side, method, data, threads, busy) for side in ("theirs", "ours")}
            for found in sides.values():
                for fit in found:
                    fit["value"] = objective(method, fit["L"], data)
            start = objective(method, np.eye(data["X"].shape[1]), data)
            end = max(found[-1]["value"] for found in sides.values())
            goal = end + 1e-3 * abs(start - end)
            for side, found in sides.items():
                reached = [fit for fit in found if fit["value"] <= goal]
                line[side] = {
                    "value": found[-1]["value"],
                    "worth": worth(method, found[-1]["L"], data, test),
                    **{f"whole_{clock}": found[-1][clock] for clock in ("processor", "wall")},
                    **{clock: min(fit[clock] for fit in reached) for clock in ("processor", "wall")},
                    "steps": reached[0]["steps"],
                }
            text = json.dumps(line)
            print(text, flush=True)
            if path is not None:
                with path.open("a") as file:
                    file.write(text + "\n")


def table(path: Path) -> None:
    """Print the records of a file as the table of the page."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    cases = sorted({(line["threads"], line["busy"]) for line in lines}, key=lambda case: (case[1], case[0]))
    named = [f"{threads} thread{'s' * (threads > 1)}{', busy' * busy}" for threads, busy in cases]
    print(f"| set | method | {' | '.join(named)} | whole fit | objective | 1-NN, R² |")
    print(f"|---|---|{'--:|' * (len(cases) + 3)}")
    for name, method in dict.fromkeys((line["set"], line["method"]) for line in lines):
        of = {
            (line["threads"], line["busy"]): line for line in lines if (line["set"], line["method"]) == (name, method)
        }
        times = [
            f"{of[case]['theirs']['wall']:.3g}, {of[case]['ours']['wall']:.2g} s" if case in of else ""
            for case in cases
        ]
        first = of[min(of)]
        pair = [(first["theirs"][key], first["ours"][key]) for key in ("whole_wall", "value", "worth")]
        print(
            f"| {name} | `{method}` | {' | '.join(times)} | {pair[0][0]:.3g}, {pair[0][1]:.2g} s "
            f"| {pair[1][0]:.4g}, {pair[1][1]:.4g} | {pair[2][0]:.3f}, {pair[2][1]:.3f} |"
        )


def record() -> None:
    """Write what metric-learn finds on the small set."""
    data, found = small_set(), {}
    for method in METHODS:
        model, given = theirs(method, data, precise=True)
        found[f"components/{method}"] = model.fit(**given).components_
    np.savez_compressed(FIXTURE, **data, **found)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["race", "table", "record", "worker"])
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--methods", nargs="+", choices=METHODS[1:], default=METHODS[1:])
    parser.add_argument("--to", type=Path)
    given = parser.parse_args()
    if given.task == "worker":
        side, method, source, result = given.arguments
        with np.load(source) as arrays:
            np.save(result, np.array(fits(side, method, dict(arrays)), dtype=object))
    elif given.task == "record":
        record()
    elif given.task == "table":
        table(Path(given.arguments[0]))
    else:
        race(given.methods, given.threads, given.busy, given.to)


if __name__ == "__main__":
    main()
