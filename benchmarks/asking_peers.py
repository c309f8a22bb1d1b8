"""Asking beside its peers: which group is every row in, after so many questions?

    python -m benchmarks.asking_peers --draws 3 --jobs 16   # every set; writes docs/asking_peers.jsonl
    python -m benchmarks.asking_peers --sets wine glass --wrong 0 0.1 --methods Asker COBRAS
    python -m benchmarks.asking_peers --held-out            # rows that cannot be asked about
    python -m benchmarks.asking_peers --many                # sets of ten groups and more, counted in looks
    python -m benchmarks.asking_peers --only-print          # the tables, from the results that are there
    python -m benchmarks.asking_peers --write               # the same on the page, with the picture

Data come from the folders in the environment variables ``PAIRLENS_DATA`` and ``PAIRLENS_NOTIONS``. Peers that are not
installed are named and left out: ``pip install --no-deps cobras_ts active-semi-supervised-clustering metric-learn``.

Protocol. Of sets with more than 300 rows (600 with many groups) so many are drawn, in proportion to their classes;
columns are z-scores. Any row may be asked about, and questions are answered by the labels, a share of them wrongly,
always the same way for the same rows. After 20, 50, 100 and 200 questions every row has to be in a group: the adjusted
Rand index (ARI) is that of all rows. With ``--held-out`` a third of the rows cannot be asked about and nobody sees
them before; their ARI counts. A method that cannot place new rows gives them the group of the nearest row. The number
of groups is not told, except to those marked with a star, which cannot do without. A question compares two rows. Those
who choose no questions get as many random pairs; label spreading gets labels of random rows, each of which costs
(k + 1) / 2 questions, as a row is compared with half of the groups until its own is found.

A *look* is one screen: a row beside typical rows of up to eight groups ("Asker, screens"), two rows, or one row that is
named ("labels": PairClusters, label spreading or logistic regression of the rows, as many of which are named as there
are looks).
"""

from __future__ import annotations

import argparse
import os
import textwrap
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.clusters import labelled_rows
from benchmarks.maps_figure import save_figure
from benchmarks.maps_table import filled_page
from benchmarks.measure import read_lines, run_lines
from pairlens import Constraints, PairClusters, SKKMeans
from pairlens.asking import Asker, Question
from reproduction.figures import MARKERS

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = DOCS / "asking_peers.jsonl"
BEGIN = "<!-- generated: benchmarks.asking_peers -->"
SETS = (
    *("wine", "glass", "letter_abcd", "vehicle", "breast", "segmentation_test", "mfeat_zer", "pendigits"),
    *("balance", "heart", "ionosphere", "iris", "seeds", "wdbc", "coil20", "mfeat_fac", "usps", "semeion", "sonar"),
)
MANY = (
    *("mfeat_zer", "pendigits", "semeion", "coil20", "usps", "mfeat_fac", "mfeat_kar", "mfeat_fou", "digits"),
    *("isolet5", "umist", "letter", "mnist6000", "debian"),
)
"""Sets of ten groups and more, and sentence embeddings (debian, of eight groups)."""
POINTS = (20, 50, 100, 200)
MOST_ROWS, MOST_OF_MANY = 300, 600
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

    def answer(self, question: Question) -> str:
        """Return the answer to a question; a wrong one on a screen is any of the others."""
        if question.kind == "same":
            return "same" if self.same(*question.rows) else "different"
        row, *others = question.rows
        true = next((str(at) for at, other in enumerate(others, 1) if self.y[row] == self.y[other]), "none")
        rng = np.random.default_rng([self.seed, *sorted(question.rows)])
        if rng.random() >= self.wrong:
            return true
        return str(rng.choice([word for word in question.answers if word not in (true, "unsure")]))

    def random_pairs(self, n_pairs: int) -> Constraints:
        """Return the answers about random pairs."""
        rng = np.random.default_rng(self.seed)
        drawn: dict[tuple[int, int], bool] = {}
        while len(drawn) < n_pairs:
            i, j = sorted(rng.choice(len(self.y), 2, replace=False).tolist())
            drawn[i, j] = self.same(i, j)
        must, cannot = ([pair for pair, same in drawn.items() if same is said] for said in (True, False))
        return Constraints(must, cannot, n_samples=len(self.y), on_conflict="warn")


Found = dict[int, tuple[Any, Any]]
"""Labels of the rows by the number of questions, and those of new rows."""


def placed_nearest(X: Any, new: Any, labels: Any) -> tuple[Any, Any]:
    """Return labels of the rows, and those of new rows by the nearest row."""
    return labels, KNeighborsClassifier(1).fit(X, labels).predict(new) if len(new) else labels[:0]


def asker(X: Any, new: Any, _: int, oracle: Oracle) -> Found:
    """Place rows, and put the others in groups."""
    return _asked(Asker(X, random_state=oracle.seed), new, oracle)


def screens(X: Any, new: Any, _: int, oracle: Oracle) -> Found:
    """Place rows on screens, each of which counts once."""
    return _asked(Asker(X, screen="placement", random_state=oracle.seed), new, oracle)


def _asked(asking: Asker, new: Any, oracle: Oracle) -> Found:
    found = {}
    for number in range(1, POINTS[-1] + 1):
        question = asking.ask()
        if question is not None:
            asking.tell(question, oracle.answer(question))
        if number in POINTS:
            found[number] = asking.predict(), asking.predict(new) if len(new) else np.zeros(0)
    return found


def random_pairs(X: Any, new: Any, _: int, oracle: Oracle) -> Found:
    """Learn from pairs that nobody chose."""
    found = {}
    for m in POINTS:
        model = PairClusters(random_state=oracle.seed).fit(X, constraints=oracle.random_pairs(m))
        found[m] = model.labels_, model.predict(new) if len(new) else np.zeros(0)
    return found


def cobras(X: Any, new: Any, _: int, oracle: Oracle) -> Found:
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
    return {m: placed_nearest(X, new, np.asarray(steps[min(m, len(steps)) - 1])) for m in POINTS}


def pckmeans(X: Any, new: Any, k: int, oracle: Oracle) -> Found:
    """PCKMeans of random pairs."""
    from active_semi_clustering import PCKMeans  # type: ignore[import-not-found]

    return _constrained(PCKMeans(k), X, new, k, oracle)


def copkmeans(X: Any, new: Any, k: int, oracle: Oracle) -> Found:
    """COP-KMeans of random pairs; k-means where it finds no clustering, as with answers that contradict each other."""
    from active_semi_clustering import COPKMeans

    return _constrained(COPKMeans(k), X, new, k, oracle)


def _constrained(method: Any, X: Any, new: Any, k: int, oracle: Oracle) -> Found:
    found = {}
    for m in POINTS:
        np.random.seed(oracle.seed % 2**32)  # noqa: NPY002
        pairs = oracle.random_pairs(m)
        try:
            labels = method.fit(X, ml=pairs.must_link.tolist(), cl=pairs.cannot_link.tolist()).labels_
        except Exception:
            labels = KMeans(k, n_init=4, random_state=0).fit_predict(X)
        found[m] = placed_nearest(X, new, np.asarray(labels))
    return found


def npu(X: Any, new: Any, k: int, oracle: Oracle) -> Found:
    """NPU chooses the pairs of PCKMeans."""
    from active_semi_clustering import PCKMeans
    from active_semi_clustering.active.pairwise_constraints import NPU  # type: ignore[import-not-found]
    from active_semi_clustering.active.pairwise_constraints.example_oracle import (  # type: ignore[import-not-found]
        MaximumQueriesExceeded,
    )

    class Recording(PCKMeans):  # type: ignore[misc]
        """The clusterer is given all that follows from the answers before each row that is placed."""

        def fit(self, X: Any, ml: Any, cl: Any) -> Any:
            self.seen = list(ml), list(cl)
            return super().fit(X, ml=ml, cl=cl)

    class Counting:
        def __init__(self) -> None:
            self.asked, self.seen = 0, {}

        def query(self, i: int, j: int) -> bool:
            if self.asked in POINTS:
                self.seen[self.asked] = method.seen
            if self.asked == POINTS[-1]:
                raise MaximumQueriesExceeded
            self.asked += 1
            return oracle.same(i, j)

    np.random.seed(oracle.seed % 2**32)  # noqa: NPY002
    method, counting, found = Recording(k), Counting(), {}
    NPU(method).fit(X, oracle=counting)
    for m, (ml, cl) in counting.seen.items():
        try:
            labels = PCKMeans(k).fit(X, ml=ml, cl=cl).labels_
        except Exception:
            labels = KMeans(k, n_init=4, random_state=0).fit_predict(X)
        found[m] = placed_nearest(X, new, np.asarray(labels))
    return found


def skkmeans(X: Any, new: Any, k: int, oracle: Oracle) -> Found:
    """SKKMeans of the must-links among random pairs."""
    return {
        m: placed_nearest(X, new, SKKMeans(k, random_state=0).fit_predict(X, constraints=oracle.random_pairs(m)))
        for m in POINTS
    }


def spreading(X: Any, new: Any, k: int, oracle: Oracle) -> Found:
    """Label spreading from as many labels as the questions pay for; a wrong one is that of another class."""
    return _labelled(LabelSpreading(kernel="knn", n_neighbors=7), X, new, k, oracle, (k + 1) / 2)


def spread_labels(X: Any, new: Any, k: int, oracle: Oracle) -> Found:
    """Label spreading from as many labels as there are looks."""
    return _labelled(LabelSpreading(kernel="knn", n_neighbors=7), X, new, k, oracle, 1.0)


def regressed_labels(X: Any, new: Any, k: int, oracle: Oracle) -> Found:
    """Logistic regression of as many labels as there are looks."""
    return _labelled(LogisticRegression(max_iter=1000), X, new, k, oracle, 1.0)


def named_rows(X: Any, new: Any, k: int, oracle: Oracle) -> Found:
    """PairClusters of as many labels as there are looks: names that are typed."""
    return _labelled(PairClusters(random_state=oracle.seed), X, new, k, oracle, 1.0)


def _labelled(model: Any, X: Any, new: Any, k: int, oracle: Oracle, cost: float) -> Found:
    rng = np.random.default_rng(oracle.seed)
    order, found = rng.permutation(len(X)), {}
    said = np.where(rng.random(len(X)) < oracle.wrong, (oracle.y + rng.integers(1, k, len(X))) % k, oracle.y)
    for m in POINTS:
        known = order[: max(2, round(m / cost))]
        if len(np.unique(said[known])) == 1:
            found[m] = np.zeros(len(X)), np.zeros(len(new))
            continue
        labels = np.full(len(X), -1)
        labels[known] = said[known]
        if isinstance(model, LogisticRegression):
            all_rows = model.fit(X[known], labels[known]).predict(X)
        else:
            # The others learn from rows without a label too.
            learned = model.fit(X, labels)
            all_rows = learned.transduction_ if isinstance(model, LabelSpreading) else learned.labels_
        if not isinstance(model, PairClusters):
            all_rows = np.array(all_rows)
            all_rows[known] = labels[known]
        found[m] = all_rows, model.predict(new) if len(new) else np.zeros(0)
    return found


def kmeans(X: Any, new: Any, k: int, _: Oracle) -> Found:
    """K-means without answers."""
    return dict.fromkeys(POINTS, placed_nearest(X, new, KMeans(k, n_init=10, random_state=0).fit_predict(X)))


def hdbscan(X: Any, new: Any, *_: Any) -> Found:
    """HDBSCAN without answers; rows that it leaves out are one group."""
    return dict.fromkeys(POINTS, placed_nearest(X, new, HDBSCAN(min_cluster_size=5, copy=True).fit_predict(X)))


METHODS: dict[str, Callable[[Any, Any, int, Oracle], Found]] = {
    "Asker": asker,
    "Asker, screens": screens,
    "PairClusters, random pairs": random_pairs,
    "COBRAS": cobras,
    "NPU + PCKMeans*": npu,
    "PCKMeans*": pckmeans,
    "COP-KMeans*": copkmeans,
    "SKKMeans*": skkmeans,
    "label spreading": spreading,
    "PairClusters of labels": named_rows,
    "label spreading of labels": spread_labels,
    "logistic regression of labels": regressed_labels,
    "k-means*": kmeans,
    "HDBSCAN": hdbscan,
}
IN_LOOKS = (
    *("Asker, screens", "Asker", "PairClusters, random pairs"),
    *("PairClusters of labels", "label spreading of labels", "logistic regression of labels"),
)
"""Methods that are compared by looks."""
DEFAULT = tuple(name for name in METHODS if name not in ("NPU + PCKMeans*", *IN_LOOKS[3:]))
"""NPU compares all rows in Python for every row that it places, which takes minutes a run."""


def rows_of(name: str, most: int) -> tuple[Any, Any]:
    """Return the rows of a set as z-scores and their classes."""
    if name == "debian":
        stored = np.load(Path(os.environ["PAIRLENS_NOTIONS"]) / "debian.npz", allow_pickle=False)
        X, y = stored["X"].astype(np.float64), np.unique(stored["use"], return_inverse=True)[1]
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=0)
    else:
        X, y = labelled_rows(name, most)
    return np.nan_to_num(StandardScaler().fit_transform(X)), y


def run(job: tuple[str, str, str, float, int]) -> Record | None:
    """Return the curve of one method; None if it is not installed."""
    method, protocol, name, wrong, draw = job
    X, y = rows_of(name, MOST_OF_MANY if protocol == "many" else MOST_ROWS)
    new, k = X[:0], int(y.max()) + 1
    if protocol == "held out":
        X, new, y, y_new = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=draw)
    oracle = Oracle(y, wrong, zlib.crc32(f"{name}/{draw}".encode()))
    # A peer makes NumPy raise at underflow when it is imported, for everybody.
    with warnings.catch_warnings(action="ignore"), threadpool_limits(1), np.errstate(all="ignore"):
        try:
            found = METHODS[method](X, new, k, oracle)
        except ImportError as error:
            print(f"{method} is left out: {error}. {INSTALL}")
            return None
    judged = [(y_new, found[m][1]) if protocol == "held out" else (y, found[m][0]) for m in POINTS]
    ari = [round(float(adjusted_rand_score(*pair)), 4) for pair in judged]
    return {"method": method, "protocol": protocol, "set": name, "wrong": wrong, "draw": draw, "ari": ari}


TITLES = {
    "all rows": "{wrong:.0%} wrong, {n} sets: {sets}.",
    "held out": "Rows that could not be asked about, {wrong:.0%} wrong, {n} sets: {sets}.",
    "many": "Looks, {wrong:.0%} wrong, {n} sets of many groups or embeddings: {sets}.",
}


@dataclass(frozen=True)
class Curves:
    """Means of the draws that all methods were run on, of the sets with at least one of them.

    Attributes
    ----------
    draws : dict of str to list of int
        By the set.
    of : dict of str to array of shape (n_sets, n_points)
        By the method, the one that is compared with the others first.
    """

    draws: dict[str, list[int]]
    of: dict[str, Any]

    @classmethod
    def all(cls, records: list[Record]) -> dict[tuple[str, float], Curves]:
        """Return the curves by protocol and share of wrong answers."""
        found = {}
        for protocol, wrong in sorted({(r["protocol"], r["wrong"]) for r in records}):
            some = [r for r in records if (r["protocol"], r["wrong"]) == (protocol, wrong)]
            first = "Asker, screens" if protocol == "many" else "Asker"
            methods = [name for name in METHODS if any(r["method"] == name for r in some)]
            runs = {(r["method"], r["set"], r["draw"]): r["ari"] for r in some}
            common = set.intersection(*({run[1:] for run in runs if run[0] == name} for name in methods))
            draws: dict[str, list[int]] = {}
            for one, draw in sorted(common):
                draws.setdefault(one, []).append(draw)
            if draws and first in methods:
                of = {
                    name: np.array([np.mean([runs[name, one, d] for d in drawn], 0) for one, drawn in draws.items()])
                    for name in (first, *(name for name in methods if name != first))
                }
                found[protocol, wrong] = cls(draws, of)
        return found


def table(records: list[Record]) -> str:
    """Return the means over the sets that all methods were run on, with the standard errors of what they are behind.

    The number of draws is given with each set that has several.
    """
    lines = []
    for (protocol, wrong), curves in Curves.all(records).items():
        first, sets = next(iter(curves.of)), list(curves.draws)
        names = ", ".join(name if len(drawn) == 1 else f"{name} ({len(drawn)})" for name, drawn in curves.draws.items())
        lines += ["", textwrap.fill(TITLES[protocol].format(wrong=wrong, n=len(sets), sets=names), 118), ""]
        ahead_at = " | ".join(f"ahead at {point} by" for point in POINTS[1:])
        lines.append(f"| {first} is | " + " | ".join(map(str, POINTS)) + f" | {ahead_at} | loses at {POINTS[-2]} on |")
        lines.append("|---|" + "--:|" * (2 * len(POINTS) - 1) + "---|")
        for name, curve in curves.of.items():
            ahead = curves.of[first] - curve
            last = [""] * len(POINTS) if name == first else [*_ahead(ahead), _losses(ahead, sets)]
            lines.append(f"| {name} | " + " | ".join([*(f"{v:.3f}" for v in curve.mean(axis=0)), *last]) + " |")
    return "\n".join(lines).strip()


def figure(records: list[Record]) -> Any:
    """Return the curves of all rows as a Matplotlib figure, one panel for each share of wrong answers."""
    from matplotlib.figure import Figure

    curves = {wrong: found for (protocol, wrong), found in Curves.all(records).items() if protocol == "all rows"}
    drawn = Figure(figsize=(4 * len(curves), 4), layout="constrained")
    panels = drawn.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    for panel, (wrong, found) in zip(panels, curves.items()):
        for number, (name, curve) in enumerate(found.of.items()):
            ours = name.startswith(("Asker", "PairClusters"))
            style = {"lw": 2.2 if ours else 1.2, "ls": "-" if ours else "--", "color": f"C{number % 10}"}
            panel.plot(POINTS, curve.mean(axis=0), marker="o" if ours else MARKERS[number], ms=4, label=name, **style)
        panel.set(title=f"{wrong:.0%} wrong, {len(found.draws)} sets", xlabel="questions", xscale="log")
        panel.set_xticks(POINTS, [str(point) for point in POINTS])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("mean ARI of all rows")
    drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return drawn


def _ahead(ahead: Any) -> list[str]:
    error = ahead.std(axis=0, ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else np.full(len(POINTS), np.nan)
    return [f"{mean:+.3f} ({of:.3f})" for mean, of in zip(ahead.mean(axis=0)[1:], error[1:])]


def _losses(ahead: Any, sets: list[str]) -> str:
    return ", ".join(name for name, value in zip(sets, ahead[:, -2]) if value < 0) or "none"


def main(arguments: list[str] | None = None) -> None:
    """Run what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS))
    parser.add_argument("--wrong", nargs="+", type=float, default=[0.0, 0.1, 0.2])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--held-out", dest="protocol", action="store_const", const="held out", default="all rows")
    parser.add_argument("--many", dest="protocol", action="store_const", const="many")
    parser.add_argument("--only-print", action="store_true")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(arguments)
    many = chosen.protocol == "many"
    done = {(r["method"], r["protocol"], r["set"], r["wrong"], r["draw"]) for r in read_lines(chosen.results)}
    tasks = [
        task
        for draw in range(chosen.draws)
        for name in chosen.sets or (MANY if many else SETS)
        for wrong in chosen.wrong
        for method in chosen.methods or (IN_LOOKS if many else DEFAULT)
        if (task := (method, chosen.protocol, name, wrong, draw)) not in done
        and not (chosen.only_print or chosen.write)
    ]
    records = run_lines(run, tasks, chosen.results, chosen.jobs)
    print(table(records))
    if chosen.write:
        page = DOCS / "clusters.md"
        page.write_text(filled_page(page.read_text(), table(records) + "\n", BEGIN))
        save_figure(lambda: figure(records), DOCS / "pictures" / "asking_peers.png")


if __name__ == "__main__":
    main()
