"""Asking beside its peers: which group is every row in, after so many questions?

    python -m benchmarks.asking_peers                # every set; writes docs/asking_peers.json
    python -m benchmarks.asking_peers --sets wine glass --wrong 0 0.1 --methods Asker COBRAS
    python -m benchmarks.asking_peers --only-print   # the table, from the results that are there

Data come from the folder in the environment variable ``PAIRLENS_DATA``. Peers that are not installed are named and left
out: ``pip install --no-deps cobras_ts active-semi-supervised-clustering metric-learn``.

Protocol. Of sets with more than 300 rows so many are drawn, in proportion to their classes; columns are z-scores. Any
row may be asked about, and questions are answered by the labels, a share of them wrongly, always the same way for the
same two rows. After 20, 50, 100 and 200 questions every row has to be in a group: the adjusted Rand index (ARI) is that
of all rows. The number of groups is not told, except to those marked with a star, which cannot do without. A question
compares two rows. Those who choose no questions get as many random pairs; label spreading gets labels of random rows,
each of which costs (k + 1) / 2 questions, as a row is compared with half of the groups until its own is found.
"""

from __future__ import annotations

import argparse
import json
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.clusters import labelled_rows
from pairlens import Constraints, PairClusters, SKKMeans
from pairlens.asking import Asker

RESULTS = Path(__file__).parent.parent / "docs" / "asking_peers.json"
SETS = (
    *("wine", "glass", "letter_abcd", "vehicle", "breast", "segmentation_test", "mfeat_zer", "pendigits"),
    *("balance", "heart", "ionosphere", "iris", "seeds", "wdbc", "coil20", "mfeat_fac", "usps", "semeion", "sonar"),
)
POINTS = (20, 50, 100, 200)
MOST_ROWS = 300
INSTALL = "pip install --no-deps cobras_ts active-semi-supervised-clustering metric-learn"
Record = dict[str, Any]


class Oracle:
    """Answers whether two rows belong together, always the same way for the same two."""

    def __init__(self, y: Any, wrong: float, seed: int) -> None:
        self.y, self.wrong, self.seed = y, wrong, seed

    def same(self, i: int, j: int) -> bool:
        """Return the answer."""
        i, j = sorted((int(i), int(j)))
        lies = np.random.default_rng([self.seed, i, j]).random() < self.wrong
        return bool(self.y[i] == self.y[j]) != lies

    def random_pairs(self, n_pairs: int) -> Constraints:
        """Return the answers about random pairs."""
        rng = np.random.default_rng(self.seed)
        drawn: dict[tuple[int, int], bool] = {}
        while len(drawn) < n_pairs:
            i, j = sorted(rng.choice(len(self.y), 2, replace=False).tolist())
            drawn[i, j] = self.same(i, j)
        must, cannot = ([pair for pair, same in drawn.items() if same is said] for said in (True, False))
        return Constraints(must, cannot, n_samples=len(self.y), on_conflict="warn")


Found = dict[int, Any]
"""Labels of all rows by the number of questions."""


def asker(X: Any, _: int, oracle: Oracle) -> Found:
    """Place rows, and put the others in groups."""
    asking, found = Asker(X, random_state=oracle.seed), {}
    for number in range(1, POINTS[-1] + 1):
        question = asking.ask()
        if question is not None:
            asking.tell(question, "same" if oracle.same(*question.rows) else "different")
        if number in POINTS:
            found[number] = asking.predict()
    return found


def random_pairs(X: Any, _: int, oracle: Oracle) -> Found:
    """Learn from pairs that nobody chose."""
    return {
        m: PairClusters(random_state=oracle.seed).fit_predict(X, constraints=oracle.random_pairs(m)) for m in POINTS
    }


def cobras(X: Any, _: int, oracle: Oracle) -> Found:
    """COBRAS, with what its release of 2018 needs of NumPy."""
    if not hasattr(np, "int"):
        setattr(np, "int", int)  # noqa: B010
    from cobras_ts.cobras_kmeans import COBRAS_kmeans  # type: ignore[import-not-found]

    class Querier:
        def query_points(self, i: int, j: int) -> bool:
            return oracle.same(i, j)

        def update_clustering(self, clustering: Any) -> None:
            pass

        def continue_cluster_process(self) -> bool:
            return True

    np.random.seed(oracle.seed % 2**32)  # noqa: NPY002
    steps = COBRAS_kmeans(X, Querier(), POINTS[-1]).cluster()[1]
    return {m: steps[min(m, len(steps)) - 1] for m in POINTS}


def pckmeans(X: Any, k: int, oracle: Oracle) -> Found:
    """PCKMeans of random pairs."""
    from active_semi_clustering import PCKMeans  # type: ignore[import-not-found]

    return _constrained(PCKMeans(k), X, k, oracle)


def copkmeans(X: Any, k: int, oracle: Oracle) -> Found:
    """COP-KMeans of random pairs; k-means where it finds no clustering, as with answers that contradict each other."""
    from active_semi_clustering import COPKMeans

    return _constrained(COPKMeans(k), X, k, oracle)


def _constrained(method: Any, X: Any, k: int, oracle: Oracle) -> Found:
    found = {}
    for m in POINTS:
        np.random.seed(oracle.seed % 2**32)  # noqa: NPY002
        pairs = oracle.random_pairs(m)
        try:
            found[m] = method.fit(X, ml=pairs.must_link.tolist(), cl=pairs.cannot_link.tolist()).labels_
        except Exception:
            found[m] = KMeans(k, n_init=4, random_state=0).fit_predict(X)
    return found


def npu(X: Any, k: int, oracle: Oracle) -> Found:
    """NPU chooses the pairs of PCKMeans."""
    from active_semi_clustering import PCKMeans
    from active_semi_clustering.active.pairwise_constraints import NPU  # type: ignore[import-not-found]
    from active_semi_clustering.active.pairwise_constraints.example_oracle import (  # type: ignore[import-not-found]
        MaximumQueriesExceeded,
    )

    class Counting:
        def __init__(self, most: int) -> None:
            self.left = most

        def query(self, i: int, j: int) -> bool:
            if not self.left:
                raise MaximumQueriesExceeded
            self.left -= 1
            return oracle.same(i, j)

    found = {}
    for m in POINTS:
        np.random.seed(oracle.seed % 2**32)  # noqa: NPY002
        method = PCKMeans(k)
        ml, cl = NPU(method).fit(X, oracle=Counting(m)).pairwise_constraints_
        try:
            found[m] = method.fit(X, ml=ml, cl=cl).labels_
        except Exception:
            found[m] = KMeans(k, n_init=4, random_state=0).fit_predict(X)
    return found


def skkmeans(X: Any, k: int, oracle: Oracle) -> Found:
    """SKKMeans of the must-links among random pairs."""
    return {m: SKKMeans(k, random_state=0).fit_predict(X, constraints=oracle.random_pairs(m)) for m in POINTS}


def spreading(X: Any, k: int, oracle: Oracle) -> Found:
    """Label spreading from as many labels as the questions pay for; a wrong one is that of another class."""
    rng = np.random.default_rng(oracle.seed)
    order, found = rng.permutation(len(X)), {}
    said = np.where(rng.random(len(X)) < oracle.wrong, (oracle.y + rng.integers(1, k, len(X))) % k, oracle.y)
    for m in POINTS:
        known = order[: max(2, round(m / ((k + 1) / 2)))]
        labels = np.full(len(X), -1)
        labels[known] = said[known]
        found[m] = LabelSpreading(kernel="knn", n_neighbors=7).fit(X, labels).transduction_
    return found


def kmeans(X: Any, k: int, _: Oracle) -> Found:
    """K-means without answers."""
    return dict.fromkeys(POINTS, KMeans(k, n_init=10, random_state=0).fit_predict(X))


def hdbscan(X: Any, *_: Any) -> Found:
    """HDBSCAN without answers; rows that it leaves out are one group."""
    return dict.fromkeys(POINTS, HDBSCAN(min_cluster_size=5, copy=True).fit_predict(X))


METHODS: dict[str, Callable[[Any, int, Oracle], Found]] = {
    "Asker": asker,
    "PairClusters, random pairs": random_pairs,
    "COBRAS": cobras,
    "NPU + PCKMeans*": npu,
    "PCKMeans*": pckmeans,
    "COP-KMeans*": copkmeans,
    "SKKMeans*": skkmeans,
    "label spreading": spreading,
    "k-means*": kmeans,
    "HDBSCAN": hdbscan,
}
DEFAULT = tuple(name for name in METHODS if name != "NPU + PCKMeans*")
"""NPU compares all rows in Python for every question, which takes minutes a run."""


def run(job: tuple[str, str, float, int]) -> Record | None:
    """Return the curve of one method; None if it is not installed."""
    method, name, wrong, draw = job
    X, y = labelled_rows(name, MOST_ROWS)
    X = np.nan_to_num(StandardScaler().fit_transform(X))
    oracle = Oracle(y, wrong, zlib.crc32(f"{name}/{draw}".encode()))
    # A peer makes NumPy raise at underflow when it is imported, for everybody.
    with warnings.catch_warnings(action="ignore"), threadpool_limits(1), np.errstate(all="ignore"):
        try:
            found = METHODS[method](X, int(y.max()) + 1, oracle)
        except ImportError as error:
            print(f"{method} is left out: {error}. {INSTALL}")
            return None
    ari = [round(float(adjusted_rand_score(y, found[m])), 4) for m in POINTS]
    return {"method": method, "set": name, "wrong": wrong, "draw": draw, "ari": ari}


def table(records: list[Record]) -> str:
    """Return the means over the sets that all methods were run on, with the standard errors of what they are behind."""
    lines = []
    for wrong in sorted({r["wrong"] for r in records}):
        some = [r for r in records if r["wrong"] == wrong]
        methods = [name for name in METHODS if any(r["method"] == name for r in some)]
        sets = set.intersection(*({r["set"] for r in some if r["method"] == name} for name in methods))
        curves = {
            name: np.array(
                [np.mean([r["ari"] for r in some if (r["method"], r["set"]) == (name, one)], 0) for one in sorted(sets)]
            )
            for name in methods
        }
        if not sets or "Asker" not in curves:
            continue
        lines += ["", f"{wrong:.0%} wrong, {len(sets)} sets: {', '.join(sorted(sets))}.", ""]
        lines.append("| | " + " | ".join(map(str, POINTS)) + " | Asker ahead at 200 by |")
        lines.append("|---|" + "--:|" * (len(POINTS) + 1))
        for name, curve in curves.items():
            ahead = curves["Asker"][:, -1] - curve[:, -1]
            error = ahead.std(ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else float("nan")
            last = "" if name == "Asker" else f"{ahead.mean():+.3f} ({error:.3f})"
            lines.append(f"| {name} | " + " | ".join(f"{v:.3f}" for v in curve.mean(axis=0)) + f" | {last} |")
    return "\n".join(lines).strip()


def main(arguments: list[str] | None = None) -> None:
    """Run what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--methods", nargs="+", default=list(DEFAULT), choices=list(METHODS))
    parser.add_argument("--wrong", nargs="+", type=float, default=[0.0, 0.1, 0.2])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only-print", action="store_true")
    chosen = parser.parse_args(arguments)
    records: list[Record] = json.loads(chosen.results.read_text()) if chosen.results.exists() else []
    done = {(r["method"], r["set"], r["wrong"], r["draw"]) for r in records}
    jobs = [
        job
        for draw in range(chosen.draws)
        for name in chosen.sets
        for wrong in chosen.wrong
        for method in chosen.methods
        if (job := (method, name, wrong, draw)) not in done and not chosen.only_print
    ]
    with ProcessPoolExecutor(chosen.jobs, mp_context=get_context("spawn")) as pool:
        for record in pool.map(run, jobs):
            if record is not None:
                records.append(record)
                chosen.results.write_text("[\n" + ",\n".join(json.dumps(r) for r in records) + "\n]\n")
    print(table(records))


if __name__ == "__main__":
    main()
