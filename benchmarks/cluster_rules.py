"""Variants of PairClusters side by side (development)."""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, pairwise_distances, silhouette_score
from threadpoolctl import threadpool_limits

from benchmarks.clusters import DEVELOPMENT, SETTINGS, drawn_pairs, labelled_rows
from benchmarks.measure import read_lines, run_lines
from pairlens import PairLens
from pairlens.cluster import grouping, learned
from pairlens.cluster.mixture import Evidence, fit_mixture, likeliest, matched
from pairlens.cluster.pairclusters import settled
from pairlens.learning.stack import effective_answers

LEARN = ((10, 10), (2, 10), (4, 10), (4, 5))
SCORES = {"base": (1, 30), "sil60": (1, 60), "er2": (2, 30), "er2sil60": (2, 60)}
LABELS = {
    "place": None, "now": (1.0, 0.0, 1.0), "e1.5": (1.5, 0.0, 1.0), "e2": (2.0, 0.0, 1.0), "e.05": (1.0, 0.05, 1.0),
    "e.1": (1.0, 0.1, 1.0), "c.5": (1.0, 0.0, 0.5), "c.5e1.5": (1.5, 0.0, 0.5), "c.5e.1": (1.0, 0.1, 0.5),
    "c.25": (1.0, 0.0, 0.25),
}  # fmt: skip


def judged(y: Any, labels: Any, chance: Any, free: Any) -> list[Any]:
    """Tenths: rows, said, right; the class of a group is that of linked rows and every second other."""
    judge, test = np.ones(len(y), dtype=bool), free[::2]
    judge[test] = False
    right = np.zeros(len(test), dtype=bool)
    for at, row in enumerate(test):
        inside = judge & (labels == labels[row])
        right[at] = inside.any() and np.bincount(y[inside]).argmax() == y[row]
    tenth = np.minimum((chance[test] * 10).astype(int), 9)
    return [
        np.bincount(tenth, minlength=10).tolist(),
        np.round(np.bincount(tenth, chance[test], minlength=10), 2).tolist(),
        np.bincount(tenth, right, minlength=10).astype(int).tolist(),
    ]


def variant(X: Any, y: Any, known: Any, kernel: int, columns: int) -> dict[str, Any]:
    learned.KERNEL_COLUMNS, learned.N_COLUMNS = kernel, columns
    rng = np.random.default_rng(0)
    found = learned.learn(X, known, rng, standardize=True, search="auto", who="x")
    seed = int(rng.integers(grouping.SEEDS))
    chosen = grouping._rows_to_choose_by(found.rows, known.rows, seed)
    Z, local = found.rows[chosen], known[chosen]
    numbers = grouping.candidates(grouping._count_distinct(Z), grouping.named_groups(local))
    same = None if found.same is None else found.same.among(found.as_new[chosen])
    distance = pairwise_distances(Z if same is not None else found.plain[chosen])
    evidence = Evidence.of(local, found.mistakes)
    tried = []
    for k in numbers:
        for start in grouping.first_guesses(Z, k, local, seed):
            mixture, q = fit_mixture(Z, start, k, evidence)
            labels = np.argmax(q, axis=1)
            sil = 0.0
            if 1 < len(np.unique(labels)) < len(labels):
                sil = float(silhouette_score(distance, labels, metric="precomputed"))
            er = 0.0 if same is None else (effective_answers(local) + 5) * grouping.expected_rand(labels, same)
            tried.append((k, mixture, grouping.agreement(labels, local), er, sil))
    result: dict[str, Any] = {"e": round(found.mistakes, 4)}
    done: dict[int, Any] = {}
    free = np.setdiff1d(np.arange(len(y)), known.rows)
    for name, (w_er, w_sil) in SCORES.items():
        best: dict[int, Any] = {}
        for at, (k, _, agree, er, sil) in enumerate(tried):
            value = agree + w_er * er + w_sil * sil
            if k not in best or value > best[k][0] + 0.1:
                best[k] = value, at
        largest = max(value for value, _ in best.values())
        at = next(at for value, at in best.values() if value >= largest - 0.1)
        if at not in done:
            mixture = tried[at][1]
            if same is None:
                mixture = replace(mixture, caution=8.0, exceptions=0.1)
            else:
                some = slice(None, None, 1 + len(Z) // 400)
                mixture = matched(mixture, Z[some], same[some, some])
            aris: dict[str, float] = {}
            for label, how in LABELS.items():
                if how is None:
                    none = Evidence.of(
                        known.where(np.zeros(known.n_must_link, bool), np.zeros(known.n_cannot_link, bool)), 0.1
                    )
                    labels = likeliest(found.rows, mixture, none)[0]
                    chance = mixture.probabilities(found.rows).max(axis=1)
                    tenths = judged(y, labels, chance, free)
                else:
                    e = min(max(found.mistakes * how[0], how[1]), 0.3)
                    used = replace(mixture, caution=max(1.0, mixture.caution * how[2]))
                    labels = settled(found.rows, used, Evidence.of(known, e))[1]
                aris[label] = round(float(adjusted_rand_score(y, labels)), 4)
            done[at] = {"n": len(mixture), "c": [mixture.caution, mixture.exceptions], "ari": aris, "tenths": tenths}
        result[name] = done[at]
    return result


def run(job: tuple[str, int, float, int]) -> dict[str, Any]:
    name, n_pairs, wrong, draw = job
    X, y = labelled_rows(name)
    k = int(y.max()) + 1
    known = drawn_pairs(y, n_pairs, wrong, zlib.crc32(f"{name}/{n_pairs}/{wrong}/{draw}".encode()))
    with warnings.catch_warnings(action="ignore"), threadpool_limits(1):
        began = time.perf_counter()
        view = PairLens(k - 1, random_state=0).fit(X, constraints=known).transform(X)
        told = KMeans(k, n_init=4, random_state=0).fit_predict(view)
        record: dict[str, Any] = {
            "set": name, "pairs": n_pairs, "wrong": wrong, "draw": draw, "k": k,
            "kmeans": round(float(adjusted_rand_score(y, told)), 4),
        }  # fmt: skip
        for kernel, columns in LEARN:
            record[f"{kernel}/{columns}"] = variant(X, y, known, kernel, columns)
        record["seconds"] = round(time.perf_counter() - began, 1)
    return record


def choose(records: list[Any]) -> None:
    """Take the variant that is best in the mean of the settings, if it is so by a standard error; write it into src."""
    import re

    names = sorted({r["set"] for r in records})

    def ari(learn: str, score: str) -> Any:
        return np.array([
            np.mean([r[learn][score]["ari"]["now"] - r["kmeans"] for r in records if r["set"] == name])
            for name in names
        ])  # fmt: skip

    base = ari("10/10", "base")
    gains = {(a, b): ari(a, b) - base for a in (f"{i}/{j}" for i, j in LEARN) for b in SCORES}
    for key, gain in gains.items():
        print(*key, f"{gain.mean():+.4f} ({gain.std(ddof=1) / len(gain) ** 0.5:.4f})")
    best = max(gains, key=lambda key: gains[key].mean())
    if gains[best].mean() < gains[best].std(ddof=1) / len(names) ** 0.5:
        best = ("10/10", "base")
    print("chosen", best)
    kernel, columns = best[0].split("/")
    rand, silhouette = SCORES[best[1]]
    for file, values in (
        ("learned", {"KERNEL_COLUMNS": kernel, "N_COLUMNS": columns}),
        ("grouping", {"RAND": f"{rand}.0", "SILHOUETTE": f"{silhouette}.0"}),
    ):
        path = Path(f"src/pairlens/cluster/{file}.py")
        text = path.read_text()
        for name, value in values.items():
            text = re.sub(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, nargs="+", default=[5])
    parser.add_argument("--sets", nargs="+", default=list(DEVELOPMENT))
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--choose", action="store_true")
    chosen = parser.parse_args()
    if chosen.choose:
        choose(read_lines(chosen.results))
        return
    done = {(r["set"], r["pairs"], r["wrong"], r["draw"]) for r in read_lines(chosen.results)}
    tasks = [(name, *s, d) for d in chosen.draws for name in chosen.sets for s in SETTINGS]
    run_lines(run, [t for t in tasks if t not in done], chosen.results, chosen.jobs)


if __name__ == "__main__":
    main()
