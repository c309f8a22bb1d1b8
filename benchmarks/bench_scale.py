"""Many rows: PairLens, PairMap and methods with a neighbour graph beside umap-learn, and what indexes cost in quality.

    python -m benchmarks.bench_scale [peers] [growth] [exact] [new] [million] [angle] [mnist] [kddcup99]
                                     [--rows N] [--only METHOD ...] [--missing] [--print] [--to FILE]

Rows have 50 columns: ten groups in eight directions and noise in all of them, which is the hardest case for an index,
for no column can be left out; 200 pairs. Every case is measured in a process of its own, with processor and wall time
of the fit, the largest memory of the process, AUC of fresh pairs and the share of 2,000 rows whose nearest neighbour in
the view is of their group. Results are appended to a file as they come, benchmarks/results/scale.jsonl unless another
is named; the tables show the last of each case. ``--missing`` measures only cases that the file does not hold,
``--print`` none.

peers    umap-learn, LinearPairLens(2), PairLens(5) and PairMap on N = 100,000 rows. umap-learn is compiled beforehand.
exact    the same methods with neighbors="exact" and "approx", for what the index costs in quality.
growth   N / 4, N and 4 N rows, of PairMap 16 N too: the power of n with which the time grows.
new      20,000 new rows, models of N: the first time and again.
million  10 N rows: umap-learn, the lenses, PairMap, LPP and SODRPaC.
angle    LPP and SODRPaC on N / 2 rows: the largest angle between exact and approximate directions.
mnist, kddcup99
         umap-learn, openTSNE, PaCMAP and PairMap on 70,000 x 784 pictures of digits, and on the tenth of KDD Cup 1999
         with 494,021 x 41, z-scores; data of ``PAIRLENS_DATA``, with the trustworthiness of 2,000 rows too.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import trustworthiness

from benchmarks.bench_pairlens import blobs
from benchmarks.measure import report
from pairlens import LPP, Constraints, LinearPairLens, PairLens, PairMap, SODRPaC
from pairlens.judging import pair_auc

N_FEATURES, N_PAIRS, N_NEW = 50, 200, 20_000
METHODS: dict[str, Callable[[str], Any]] = {
    "umap-learn": lambda how: _umap(),
    "LinearPairLens": lambda how: LinearPairLens(2, neighbors=how, random_state=0),
    "PairLens(5)": lambda how: PairLens(5, neighbors=how, random_state=0),
    "PairMap": lambda how: PairMap(neighbors=how, random_state=0),
    "openTSNE": lambda how: _opentsne(),
    "PaCMAP": lambda how: _pacmap(),
    "LPP": lambda how: LPP(2, neighbors=how),
    "SODRPaC": lambda how: SODRPaC(2, neighbors=how),
}
LENSES = ("LinearPairLens", "PairLens(5)", "PairMap")
GRAPHS = ("LPP", "SODRPaC")
MAPS = ("umap-learn", "openTSNE", "PaCMAP", "PairMap")
SETS = {"mnist": "mnist", "kddcup99": "kddcup99_10pct"}
GOALS = {"LinearPairLens": 0.2, "PairLens(5)": 0.5, "PairMap": 1.0}
GROWTH_GOAL = 1.1
RESULTS = Path(__file__).resolve().parent / "results" / "scale.jsonl"
Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One measurement.

    Attributes
    ----------
    what : {"fit", "new", "angle"}
    method : str
        A key of :data:`METHODS`.
    n : int
    search : {"auto", "exact", "approx"}
    pairs : int
    n_jobs : int
        Threads of PairMap and of openTSNE; umap-learn and PaCMAP take what NUMBA_NUM_THREADS and OMP_NUM_THREADS say.
    data : str
        "blobs", or one of :data:`SETS`, of which all rows are taken.
    """

    what: str
    method: str
    n: int
    search: str = "auto"
    pairs: int = N_PAIRS
    n_jobs: int = 1
    data: str = "blobs"

    def rows(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Rows and their groups."""
        if self.data == "blobs":
            return blobs(self.n, N_FEATURES)
        from sklearn.preprocessing import StandardScaler

        from reproduction.datasets import load

        X, y = load(SETS[self.data], return_X_y=True)
        X = np.asarray(X, dtype=np.float64)
        return X if self.data == "mnist" else StandardScaler().fit_transform(X), np.unique(y, return_inverse=True)[1]

    def measure(self) -> Record:
        """All figures, by name."""
        warnings.simplefilter("ignore", UserWarning)
        figures = {"fit": _fit, "new": _new, "angle": _angle}[self.what](self)
        gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        return {**asdict(self), **figures, "gib": gib}


def _umap() -> Any:
    from umap import UMAP

    UMAP().fit(blobs(1000, N_FEATURES)[0])
    return UMAP()


def _opentsne() -> Any:
    from openTSNE import TSNE

    return TSNE(random_state=0)


def _pacmap() -> Any:
    from pacmap import PaCMAP

    PaCMAP(random_state=0).fit_transform(blobs(1000, N_FEATURES)[0])
    return PaCMAP(random_state=0)


def seconds(call: Callable[[], Any]) -> tuple[float, float, Any]:
    """Processor time, wall time and the result."""
    processor, wall = time.process_time(), time.perf_counter()
    result = call()
    return time.process_time() - processor, time.perf_counter() - wall, result


def quality(view: NDArray[Any], y: NDArray[np.int64]) -> tuple[float, float]:
    """AUC of 5,000 fresh pairs, and how many of 2,000 rows have a nearest neighbour of their group."""
    from sklearn.neighbors import NearestNeighbors

    fresh = Constraints.from_labels(y, n_pairs=5000, random_state=99)
    some = np.linspace(0, len(y) - 1, 2000).astype(int)
    found = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(view).kneighbors(view[some], return_distance=False)
    other = np.where(found[:, 0] == some, found[:, 1], found[:, 0])
    return pair_auc(view, fresh), float(np.mean(y[other] == y[some]))


def _learned(case: Case, X: NDArray[np.float64], y: NDArray[np.int64]) -> tuple[float, float, Any]:
    """Processor and wall time of a fit, and the model."""
    model = METHODS[case.method](case.search)
    if case.method == "openTSNE":
        model.n_jobs = case.n_jobs
    if case.method in ("umap-learn", "openTSNE"):
        return seconds(lambda: model.fit(X))
    if case.method == "PaCMAP":
        return seconds(lambda: model.fit_transform(X))
    if case.n_jobs > 1:
        model.set_params(n_jobs=case.n_jobs)
    pairs = Constraints.from_labels(y, n_pairs=case.pairs, random_state=0)
    return seconds(lambda: model.fit(X, constraints=pairs))


def _fit(case: Case) -> Record:
    X, y = case.rows()
    processor, wall, model = _learned(case, X, y)
    # The largest memory is that of the fit: what follows is the benchmark's own.
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    view = model if case.method in ("openTSNE", "PaCMAP") else getattr(model, "embedding_", None)
    view = np.asarray(model.transform(X) if view is None else view)
    auc, near = quality(view, y)
    figures = {"processor": processor, "wall": wall, "fit_gib": gib, "auc": auc, "near": near}
    if case.data == "blobs":
        return figures
    some = np.random.default_rng(0).choice(len(y), 2000, replace=False)
    return figures | {"rows": len(y), "trust": float(trustworthiness(X[some], view[some], n_neighbors=15))}


def _new(case: Case) -> Record:
    X, y = blobs(case.n + N_NEW, N_FEATURES)
    model = _learned(case, X[: case.n], y[: case.n])[2]
    first, first_wall, _ = seconds(lambda: model.transform(X[case.n :]))
    again, again_wall, _ = seconds(lambda: model.transform(X[case.n :]))
    return {"first": first, "first_wall": first_wall, "again": again, "again_wall": again_wall}


def _angle(case: Case) -> Record:
    from scipy.linalg import subspace_angles

    X, y = blobs(case.n, N_FEATURES)
    models = [_learned(Case("fit", case.method, case.n, how), X, y)[2] for how in ("exact", "approx")]
    return {"degrees": float(np.degrees(subspace_angles(*(model.components_.T for model in models)).max()))}


def cases(part: str, n: int) -> list[Case]:
    """The measurements of a part."""
    if part == "exact":
        return [Case("fit", name, n, how) for name in LENSES for how in ("approx", "exact")]
    if part == "growth":
        sizes = dict.fromkeys(LENSES, (n // 4, n, 4 * n)) | {"PairMap": (n // 4, n, 4 * n, 16 * n)}
        return [Case("fit", name, size, "approx") for name in LENSES for size in sizes[name]]
    if part == "new":
        return [Case("new", name, n) for name in LENSES]
    if part == "million":
        return [Case("fit", name, 10 * n) for name in METHODS]
    if part in SETS:
        return [Case("fit", name, 0, data=part) for name in MAPS]
    if part == "angle":
        return [Case("angle", name, n // 2) for name in GRAPHS]
    return [Case("fit", name, n) for name in ("umap-learn", *LENSES)]


PARTS = ("peers", "exact", "growth", "new", "million", "angle", *SETS)


def measured(case: Case) -> Record:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_scale", "--case", json.dumps(asdict(case))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def read(path: Path) -> dict[Case, Record]:
    """The last result of each case."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    # Earlier records do not name the pairs and the threads, which were as they are by default.
    return {
        Case(**{name: record[name] for name in Case.__dataclass_fields__ if name in record}): record
        for record in records
    }


def show(part: str, n: int, found: dict[Case, Record]) -> dict[str, float]:
    """Print the table of a part, and return its figures."""
    rows = [(case, found[case]) for case in cases(part, n) if case in found]
    figures: dict[str, float] = {}
    if part == "growth":
        lines = []
        for name in LENSES:
            times = {case.n: record["processor"] for case, record in rows if case.method == name}
            if len(times) > 1:
                low, high = min(times), max(times)
                power = float(np.log(times[high] / times[low]) / np.log(high / low))
                figures[f"{name} power"] = power
                listed = ", ".join(f"{size:,}: {spent:.1f}" for size, spent in sorted(times.items()))
                lines.append((name, listed, f"n^{power:.2f}", f"n^{GROWTH_GOAL}"))
        report("Processor seconds", lines, ("", "rows: seconds", "grows as", "goal"))
        return figures
    if part == "new":
        shown = ("first", "first_wall", "again", "again_wall")
        lines = [(case.method, *(f"{record[name]:.2f}" for name in shown)) for case, record in rows]
        figures = {f"{case.method} new": record["first_wall"] for case, record in rows}
        report(f"{N_NEW:,} new rows, models of {n:,}", lines, ("", "processor s", "wall s", "again", "again, wall s"))
        return figures
    if part == "angle":
        figures = {f"{case.method} angle": record["degrees"] for case, record in rows}
        report(
            f"Angle to the exact directions, {n // 2:,} rows", [(k, f"{v:.2f}°") for k, v in figures.items()], ("", "")
        )
        return figures
    theirs = next((record["processor"] for case, record in rows if case.method == "umap-learn"), None)
    lines = []
    for case, record in rows:
        ratio = None if theirs is None else record["processor"] / theirs
        figures[f"{case.method} {case.search}"] = record["processor"]
        lines.append(
            (
                case.method,
                case.search,
                f"{record['processor']:.1f}",
                f"{record['wall']:.1f}",
                "" if ratio is None else f"{ratio:.2f}",
                str(GOALS.get(case.method, "")) if part == "peers" else "",
                f"{record['fit_gib']:.1f}",
                f"{record['auc']:.3f}",
                f"{record['near']:.3f}",
                f"{record['trust']:.3f}" if part in SETS else "",
            )
        )
    header = ("", "neighbors", "processor s", "wall s", "ratio", "goal", "GiB", "AUC of fresh pairs", "1-NN", "trust")
    report(f"{part}: {rows[0][1].get('rows', rows[0][0].n) if rows else n:,} rows, {N_PAIRS} pairs", lines, header)
    return figures


def main(
    parts: Iterable[str] = PARTS,
    n: int = 100_000,
    *,
    only: tuple[str, ...] = (),
    missing: bool = False,
    printing: bool = False,
    path: Path = RESULTS,
) -> dict[str, float]:
    """Measure, print the tables, and return the figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figures: dict[str, float] = {}
    for part in parts:
        for case in [] if printing else cases(part, n):
            if (only and case.method not in only) or (missing and case in read(path)):
                continue
            print(f"{case.what} {case.method}, {case.n:,} rows, neighbors={case.search!r}", file=sys.stderr, flush=True)
            record = measured(case)
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")
        figures |= show(part, n, read(path))
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", default=[], choices=list(METHODS))
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--print", action="store_true", dest="printing")
    parser.add_argument("--to", type=Path, default=RESULTS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.case:
        print(json.dumps(Case(**json.loads(chosen.case)).measure()))
    else:
        main(
            chosen.parts or PARTS,
            chosen.rows,
            only=tuple(chosen.only),
            missing=chosen.missing,
            printing=chosen.printing,
            path=chosen.to.resolve(),
        )
