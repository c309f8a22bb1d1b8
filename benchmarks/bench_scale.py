"""Many rows: PairLens, PairMap and methods with a neighbour graph beside umap-learn, and what indexes cost in quality.

    python -m benchmarks.bench_scale [peers] [growth] [exact] [million] [new] [--rows N] [--quick]

Rows have 50 columns: ten groups in eight directions and noise in all of them, which is the hardest case for an index,
for no column can be left out. Seconds are processor time, which other load on the machine does not change, and in one
process; wall time stands beside it.

peers    umap-learn, LinearPairLens(2), PairLens(5) and PairMap on 100,000 rows, 200 pairs; AUC of fresh pairs and share
         of 2,000 rows whose nearest neighbour in the view is of their group. umap-learn is compiled beforehand.
exact    the same lenses with neighbors="exact", for what the index costs in quality.
growth   25,000, 100,000 and 400,000 rows: the power of n with which the time grows.
new      20,000 new rows, models of 100,000.
million  LPP and SODRPaC on 1,000,000 rows, and the angle to the exact result on 50,000.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import subspace_angles
from sklearn.neighbors import NearestNeighbors

from benchmarks.bench_pairlens import blobs
from benchmarks.measure import report
from pairlens import LPP, Constraints, LinearPairLens, PairLens, PairMap, SODRPaC
from pairlens.judging import pair_auc

N_FEATURES, N_PAIRS = 50, 200
LENSES: dict[str, Callable[..., Any]] = {
    "LinearPairLens(2)": lambda **how: LinearPairLens(2, random_state=0, **how),
    "PairLens(5)": lambda **how: PairLens(5, random_state=0, **how),
}
GOALS = {"LinearPairLens(2)": 0.2, "PairLens(5)": 0.5, "PairMap": 1.0}
Line = tuple[str, ...]


def seconds(call: Callable[[], Any]) -> tuple[float, float, Any]:
    """Processor time, wall time and the result."""
    processor, wall = time.process_time(), time.perf_counter()
    result = call()
    return time.process_time() - processor, time.perf_counter() - wall, result


def quality(view: NDArray[Any], y: NDArray[np.int64]) -> tuple[float, float]:
    """AUC of 5,000 fresh pairs, and how many of 2,000 rows have a nearest neighbour of their group."""
    fresh = Constraints.from_labels(y, n_pairs=5000, random_state=99)
    some = np.linspace(0, len(y) - 1, 2000).astype(int)
    found = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(view).kneighbors(view[some], return_distance=False)
    other = np.where(found[:, 0] == some, found[:, 1], found[:, 0])
    return pair_auc(view, fresh), float(np.mean(y[other] == y[some]))


def show(line: Line) -> Line:
    print("   ", *line, flush=True)
    return line


def peers(n: int) -> dict[str, float]:
    """Times beside umap-learn."""
    from umap import UMAP

    X, y = blobs(n, N_FEATURES)
    pairs = Constraints.from_labels(y, n_pairs=N_PAIRS, random_state=0)
    UMAP().fit(X[:1000])
    theirs, wall, view = seconds(lambda: UMAP().fit_transform(X))
    lines = [show(("umap-learn", f"{theirs:.1f}", f"{wall:.1f}", "1.00", "", *(f"{q:.3f}" for q in quality(view, y))))]
    figures = {"umap": theirs}
    for name, make in {**LENSES, "PairMap": lambda: PairMap(random_state=0)}.items():
        ours, wall, model = seconds(lambda make=make: make().fit(X, constraints=pairs))
        view = model.embedding_ if name == "PairMap" else model.transform(X)
        ratio = ours / theirs
        scores = (f"{q:.3f}" for q in quality(view, y))
        lines.append(show((name, f"{ours:.1f}", f"{wall:.1f}", f"{ratio:.2f}", f"{GOALS[name]:.1f}", *scores)))
        figures[f"{name} / umap"] = ratio
    report(
        f"{n:,} x {N_FEATURES}, {N_PAIRS} pairs",
        lines,
        ("", "processor s", "wall s", "ratio", "goal", "AUC of fresh pairs", "1-NN"),
    )
    return figures


def exact(n: int) -> dict[str, float]:
    """What the index costs."""
    X, y = blobs(n, N_FEATURES)
    pairs = Constraints.from_labels(y, n_pairs=N_PAIRS, random_state=0)
    lines, figures = [], {}
    for name, make in LENSES.items():
        for how in ("approx", "exact"):
            ours, wall, model = seconds(lambda make=make, how=how: make(neighbors=how).fit(X, constraints=pairs))
            auc, near = quality(model.transform(X), y)
            figures[f"{name} {how} AUC"], figures[f"{name} {how} 1-NN"] = auc, near
            lines.append(
                show((name, how, f"{ours:.1f}", f"{wall:.1f}", f"{model.auc_:.3f}", f"{auc:.3f}", f"{near:.3f}"))
            )
    report(
        f"Index against exact search, {n:,} x {N_FEATURES}",
        lines,
        ("", "neighbors", "processor s", "wall s", "auc_", "AUC of fresh pairs", "1-NN"),
    )
    return figures


def growth(sizes: tuple[int, ...]) -> dict[str, float]:
    """Powers of n."""
    lines, figures = [], {}
    for name, make in LENSES.items():
        times = []
        for n in sizes:
            X, y = blobs(n, N_FEATURES)
            pairs = Constraints.from_labels(y, n_pairs=N_PAIRS, random_state=0)
            times.append(
                seconds(lambda make=make, X=X, pairs=pairs: make(neighbors="approx").fit(X, constraints=pairs))[0]
            )
            show((name, f"{n:,}", f"{times[-1]:.1f}"))
        power = np.log(times[-1] / times[0]) / np.log(sizes[-1] / sizes[0])
        figures[f"{name} power"] = float(power)
        lines.append((name, *(f"{t:.1f}" for t in times), f"n^{power:.2f}"))
    report("Processor seconds", lines, ("", *(f"n = {n:,}" for n in sizes), "grows as"))
    return figures


def new(n: int) -> dict[str, float]:
    """New rows, the first time, with which an index is made, and again."""
    X, y = blobs(n + 20_000, N_FEATURES)
    train, fresh = X[:n], X[n:]
    pairs = Constraints.from_labels(y[:n], n_pairs=N_PAIRS, random_state=0)
    lines, figures = [], {}
    for name, model in (
        ("PairLens(2)", PairLens(2, guard=False, random_state=0)),
        ("PairLens(5)", LENSES["PairLens(5)"]()),
    ):
        model.fit(train, constraints=pairs)
        first, again = (seconds(lambda model=model: model.transform(fresh))[0] for _ in range(2))
        figures[f"{name} new"] = again
        lines.append(show((name, f"{first:.2f}", f"{again:.2f}")))
    report(f"20,000 new rows, models of {n:,}; processor seconds", lines, ("", "first", "again"))
    return figures


def million(n: int) -> dict[str, float]:
    """Linear methods with a graph of a million rows."""
    X, y = blobs(n, N_FEATURES)
    pairs = Constraints.from_labels(y, n_pairs=N_PAIRS, random_state=0)
    some = min(n, 50_000)
    few, few_pairs = X[:some], Constraints.from_labels(y[:some], n_pairs=N_PAIRS, random_state=0)
    lines, figures = [], {}
    for cls in (LPP, SODRPaC):
        models = [cls(2, neighbors=how).fit(few, constraints=few_pairs).components_ for how in ("exact", "approx")]
        angle = float(np.degrees(subspace_angles(models[0].T, models[1].T).max()))
        ours, wall, _ = seconds(lambda cls=cls: cls(2).fit(X, constraints=pairs))
        figures |= {f"{cls.__name__} s": ours, f"{cls.__name__} angle": angle}
        lines.append(show((cls.__name__, f"{ours:.0f}", f"{wall:.0f}", f"{angle:.2f}°")))
    report(
        f"{n:,} x {N_FEATURES}", lines, ("", "processor s", "wall s", f"angle to the exact directions at {some:,} rows")
    )
    return figures


def main(quick: bool = False, parts: tuple[str, ...] = (), rows: int | None = None) -> dict[str, float]:
    """Print the tables, and return the figures."""
    warnings.simplefilter("ignore", UserWarning)
    n = rows or (30_000 if quick else 100_000)
    all_parts: dict[str, Callable[[], dict[str, float]]] = {
        "peers": lambda: peers(n),
        "exact": lambda: exact(n),
        "growth": lambda: growth((n // 4, n, 4 * n)),
        "new": lambda: new(n),
        "million": lambda: million(10 * n),
    }
    figures: dict[str, float] = {}
    for part in parts or tuple(all_parts):
        figures |= all_parts[part]()
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    main(chosen.quick, tuple(chosen.parts), chosen.rows)
