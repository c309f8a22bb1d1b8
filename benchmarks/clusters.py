"""Clusters: are the groups of PairClusters, which does not know their number, as good as k-means that does?

    python -m benchmarks.clusters --draws 3 --jobs 16   # 42 sets; writes docs/clusters.jsonl
    python -m benchmarks.clusters --only-print          # the tables, from the results that are there
    python -m benchmarks.clusters --write               # the same on the page

Data come from the folder in the environment variable ``PAIRLENS_DATA``.

Protocol. Of sets with more than 600 rows so many are drawn, in proportion to their classes; classes with fewer than
five rows are left out, and missing cells take the mean of their column. 60 or 200 pairs of rows are drawn uniformly and
named by label, a tenth of them wrongly or none. ``PairClusters()`` gets the rows and the pairs. The yardstick is
``PairLens(k - 1)`` with k-means (four starts) in it, which is told the true number of classes k. The adjusted Rand
index (ARI) is that of all rows. A probability is right if the row is of the class of its group: the class that most of
the group's rows in pairs, and of every second one of the others, are of. Only the remaining rows are judged: in a group
of three, a row that helps to name the class is right too often. Constants were chosen on 30 sets; on the other twelve
all was run once.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.maps_table import filled_page
from benchmarks.measure import read_lines, run_lines
from pairlens import Constraints, PairClusters, PairLens
from reproduction.datasets import load

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = DOCS / "clusters.jsonl"
BEGIN = "<!-- generated: benchmarks.clusters -->"
DEVELOPMENT = (
    *("iris", "wine", "glass", "heart", "vehicle", "segmentation_test", "mfeat_zer", "coil20", "semeion", "sonar"),
    *("letter_abcd", "pendigits", "balance", "monks3", "seeds", "breast", "wdbc", "ionosphere", "mfeat_fac"),
    *("mfeat_kar", "usps", "umist", "isolet5", "cnae9", "mnist6000", "climate", "krvskp", "monks1"),
    *("kddcup99_subset", "hepatitis"),
)
CONFIRMATION = (
    *("mfeat_fou", "mfeat_mor", "mfeat_pix", "letter", "monks2", "isolet1", "wpbc", "labor", "digits", "yaleb"),
    *("glioma", "hill_valley_noise"),
)
SETTINGS = tuple((m, wrong) for m in (60, 200) for wrong in (0.0, 0.1))
MOST_ROWS = 600
Record = dict[str, Any]


def labelled_rows(name: str, most: int = MOST_ROWS) -> tuple[Any, Any]:
    """Return the rows of a set and their classes."""
    X, y = load(name, return_X_y=True)
    y = np.unique(y, return_inverse=True)[1]
    keep = np.bincount(y)[y] >= 5
    X, y = np.asarray(X, dtype=np.float64)[keep], np.unique(y[keep], return_inverse=True)[1]
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    if len(X) >= most + int(y.max()) + 1:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=zlib.crc32(name.encode()))
    return X, y


def drawn_pairs(y: Any, n_pairs: int, wrong: float, seed: int) -> Constraints:
    """Return uniform random pairs, named by label, a share of them wrongly."""
    rng = np.random.default_rng(seed)
    drawn: set[tuple[int, int]] = set()
    while len(drawn) < n_pairs:
        i, j = sorted(rng.choice(len(y), 2, replace=False).tolist())
        drawn.add((i, j))
    pairs = np.array(sorted(drawn))[rng.permutation(n_pairs)]
    said = y[pairs[:, 0]] == y[pairs[:, 1]]
    said[rng.choice(n_pairs, round(wrong * n_pairs), replace=False)] ^= True
    return Constraints(pairs[said], pairs[~said], n_samples=len(y))


def run(job: tuple[str, int, float, int]) -> Record:
    """Return what one draw of pairs of one set gives."""
    name, n_pairs, wrong, draw = job
    X, y = labelled_rows(name)
    k = int(y.max()) + 1
    pairs = drawn_pairs(y, n_pairs, wrong, zlib.crc32(f"{name}/{n_pairs}/{wrong}/{draw}".encode()))
    with warnings.catch_warnings(action="ignore"), threadpool_limits(1):
        view = PairLens(k - 1, random_state=0).fit(X, constraints=pairs).transform(X)
        told = KMeans(k, n_init=4, random_state=0).fit_predict(view)
        start = time.perf_counter()
        found = PairClusters(random_state=0).fit(X, constraints=pairs)
        seconds = time.perf_counter() - start
    free = np.setdiff1d(np.arange(len(y)), pairs.rows)[::2]
    naming = np.setdiff1d(np.arange(len(y)), free)
    # Of few rows, all may be in pairs.
    q = found.predict_proba(X[free]) if len(free) else np.zeros((0, found.n_clusters_))
    likeliest, of_class = q.max(axis=1), np.zeros((found.n_clusters_, k))
    np.add.at(of_class, (found.labels_[naming], y[naming]), 1)
    right = of_class.argmax(axis=1)[q.argmax(axis=1)] == y[free]
    tenth = np.minimum((likeliest * 10).astype(int), 9)
    return {
        "set": name,
        "pairs": n_pairs,
        "wrong": wrong,
        "draw": draw,
        "k": k,
        "found": found.n_clusters_,
        "kmeans": round(float(adjusted_rand_score(y, told)), 4),
        "ari": round(float(adjusted_rand_score(y, found.labels_)), 4),
        "rows": np.bincount(tenth, minlength=10).tolist(),
        "said": np.round(np.bincount(tenth, likeliest, minlength=10), 3).tolist(),
        "right": np.bincount(tenth, right, minlength=10).astype(int).tolist(),
        "seconds": round(seconds, 2),
    }


def tables(records: list[Record]) -> str:
    """Return the tables of ``docs/clusters.md``."""
    lines = [
        "| | pairs | wrong | k-means, k known | PairClusters | difference | ahead | groups: log2 error | found / true |"
    ]
    lines.append("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for half, names in (("development", DEVELOPMENT), ("confirmation", CONFIRMATION)):
        for setting in (*SETTINGS, None):
            some = [r for r in records if r["set"] in names and setting in (None, (r["pairs"], r["wrong"]))]
            if some:
                lines.append(_line(half, setting, some))
    for half, names in (
        ("development", DEVELOPMENT),
        ("confirmation", CONFIRMATION),
        ("both", DEVELOPMENT + CONFIRMATION),
    ):
        lines += ["", *_calibration(half, [r for r in records if r["set"] in names])]
    return "\n".join(lines)


def _line(half: str, setting: tuple[int, float] | None, records: list[Record]) -> str:
    names = sorted({r["set"] for r in records})

    def by_set(value: Any) -> Any:
        return np.array([np.mean([value(r) for r in records if r["set"] == name]) for name in names])

    ours, theirs = by_set(lambda r: r["ari"]), by_set(lambda r: r["kmeans"])
    difference = ours - theirs
    error = float(difference.std(ddof=1) / np.sqrt(len(names))) if len(names) > 1 else float("nan")
    ratio = by_set(lambda r: np.log2(r["found"] / r["k"]))
    off = by_set(lambda r: abs(np.log2(r["found"] / r["k"])))
    what = "all | all" if setting is None else f"{setting[0]} | {setting[1]:.0%}"
    return (
        f"| {half} | {what} | {theirs.mean():.3f} | {ours.mean():.3f} | {difference.mean():+.3f} ({error:.3f}) | "
        f"{int((difference > 0).sum())} of {len(names)} | {off.mean():.2f} | {2 ** ratio.mean():.2f} |"
    )


def _calibration(half: str, records: list[Record]) -> list[str]:
    """Return what rows were said to be and are, by tenths of the probability; every run counts the same.

    The last line is the standard error of the difference, over sets.
    """
    records = [r for r in records if sum(r["rows"])]
    if not records:
        return []
    weight = np.array([1 / sum(r["rows"]) for r in records])[:, None]
    names, of_set = np.unique([r["set"] for r in records], return_inverse=True)
    by_set = np.zeros((3, len(names), 10))
    for found, key in zip(by_set, ("rows", "said", "right")):
        np.add.at(found, of_set, weight * np.array([r[key] for r in records]))
    rows, said, right = by_set.sum(axis=1)
    off = by_set[1] - by_set[2] - by_set[0] * ((said - right) / np.where(rows > 0, rows, 1))
    error = np.sqrt((off**2).sum(axis=0) * len(names) / max(len(names) - 1, 1))
    head = "| " + half + " | " + " | ".join(f"{low / 10:.1f}-" for low in range(10)) + " |"
    shown = rows > 0
    line = [f"{a / b:.2f}" if ok else "" for a, b, ok in zip(said, np.where(shown, rows, 1), shown)]
    true = [f"{a / b:.2f}" if ok else "" for a, b, ok in zip(right, np.where(shown, rows, 1), shown)]
    share = [f"{value:.1%}" for value in rows / rows.sum()]
    errors = [f"{a / b:.2f}" if ok else "" for a, b, ok in zip(error, np.where(shown, rows, 1), shown)]
    named = (("said", line), ("right", true), ("rows", share), ("error", errors))
    return [
        head,
        "|---|" + "--:|" * 10,
        *(f"| {name} | " + " | ".join(row) + " |" for name, row in named),
    ]


def main(arguments: list[str] | None = None) -> None:
    """Run what is not there yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=[*DEVELOPMENT, *CONFIRMATION])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only-print", action="store_true")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(arguments)
    done = {(r["set"], r["pairs"], r["wrong"], r["draw"]) for r in read_lines(chosen.results)}
    tasks = [(name, *setting, draw) for draw in range(chosen.draws) for name in chosen.sets for setting in SETTINGS]
    tasks = [] if chosen.only_print or chosen.write else [task for task in tasks if task not in done]
    found = tables(run_lines(run, tasks, chosen.results, chosen.jobs))
    print(found)
    if chosen.write:
        page = DOCS / "clusters.md"
        page.write_text(filled_page(page.read_text(), found + "\n", BEGIN))


if __name__ == "__main__":
    main()
