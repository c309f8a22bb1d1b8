"""Candidates of groupings with what speaks for each, to choose a rule from (development)."""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from threadpoolctl import threadpool_limits

from benchmarks.clusters import CONFIRMATION, DEVELOPMENT, SETTINGS, drawn_pairs, labelled_rows
from benchmarks.measure import read_lines, run_lines
from pairlens import PairClusters, PairLens
from pairlens.cluster.grouping import candidates, expected_rand, first_guesses, named_groups
from pairlens.cluster.learned import SamePairs, _principal
from pairlens.cluster.mixture import Evidence, Mixture, fit_mixture, likeliest, matched
from pairlens.judging.held_out import measured_distances
from pairlens.learning.spaces import PreparedRows, RawSpace
from pairlens.learning.stack import Stack, side_by_side
from pairlens.spectral.rowspace import Standardiser, symmetric

WIDE = 24


def own_view(spaces: Any, shares: Any, kernel: int, columns: int) -> Any:
    linear, ker, walk = spaces
    ker = ker[:, :kernel]
    total = ker.var(axis=0).sum()
    ker = ker / np.sqrt(total) if total > 0 else ker
    rows = side_by_side((linear, ker, walk), shares)
    values, vectors = symmetric(rows.T @ rows / len(rows), min(columns, rows.shape[1]))
    return rows @ vectors[:, values > 1e-12 * values.max(initial=0.0)]


def mistakes_of(labels: Any, known: Any) -> list[int]:
    must, cannot = known.must_link, known.cannot_link
    return [
        int((labels[must[:, 0]] != labels[must[:, 1]]).sum()),
        int((labels[cannot[:, 0]] == labels[cannot[:, 1]]).sum()),
    ]


def sil(Z: Any, labels: Any) -> float:
    if not 1 < len(np.unique(labels)) < len(labels):
        return 0.0
    return round(float(silhouette_score(Z, labels)), 4)


def run(job: tuple[str, int, float, int]) -> dict[str, Any]:
    name, n_pairs, wrong, draw = job
    X, y = labelled_rows(name)
    k = int(y.max()) + 1
    known = drawn_pairs(y, n_pairs, wrong, zlib.crc32(f"{name}/{n_pairs}/{wrong}/{draw}".encode()))
    with warnings.catch_warnings(action="ignore"), threadpool_limits(1):
        began = time.perf_counter()
        view = PairLens(k - 1, random_state=0).fit(X, constraints=known).transform(X)
        told = KMeans(k, n_init=4, random_state=0).fit_predict(view)
        found = PairClusters(random_state=0).fit(X, constraints=known)
        told_found = PairClusters(k, random_state=0).fit(X, constraints=known)
        standardiser = Standardiser.of(X, standardize=True)
        prepared = PreparedRows.of(X, standardiser, anchors=known.rows, search="auto", stand_for=0)
        plain = RawSpace.of(X, standardiser)(X)
        stack = Stack.of(prepared, plain, known, np.random.default_rng(0), kernel_columns=WIDE)
        shares = stack.shares[1:] / stack.shares[1:].sum()
        Z = own_view(stack.seen.spaces, shares, 10, 10)
        new = own_view(stack.spaces.seen_as_new(stack.seen), shares, 10, 10)
        same, e = None, 0.05
        folds: list[Any] = []
        if stack.drawn is not None:
            views = [own_view(fold.spaces.seen_as_new(fold.seen), shares, 10, 10) for fold in stack]
            pairs = SamePairs.of(measured_distances(stack.drawn, iter(views)), new.var(axis=0))
            same, e = pairs.among(new), pairs.mistakes
            folds = [(fold, fold.seen.spaces) for fold in stack]
        evidence = Evidence.of(known, e)
        soft = Evidence(evidence.rows, evidence.weight / 2)
        D = squareform(pdist(Z))
        record: dict[str, Any] = {
            "set": name, "pairs": n_pairs, "wrong": wrong, "draw": draw, "k": k, "e": round(e, 4),
            "must": known.n_must_link, "kmeans": round(float(adjusted_rand_score(y, told)), 4),
            "now": [found.n_clusters_, round(float(adjusted_rand_score(y, found.labels_)), 4)],
            "nowk": round(float(adjusted_rand_score(y, told_found.labels_)), 4),
            "auc": [round(float(a), 4) for a in stack.aucs], "named": named_groups(known),
        }  # fmt: skip
        numbers = sorted({*candidates(len(X), named_groups(known)), k})
        tree = None if same is None else linkage(squareform(1 - same, checks=False), "average")
        ward = linkage(pdist(Z), "ward")
        rows = []

        def add(kind: str, k_: int, labels: Any, loglik: float = 0.0, others: Any = ()) -> None:
            labels = np.asarray(labels)
            rows.append([
                kind, k_, len(np.unique(labels)), round(float(adjusted_rand_score(y, labels)), 4),
                *mistakes_of(labels, known),
                0.0 if same is None else round(expected_rand(labels, same), 4),
                round(float(silhouette_score(D, labels, metric="precomputed")), 4)
                if 1 < len(np.unique(labels)) < len(labels) else 0.0,
                sil(plain, labels), round(loglik, 2),
                [round(float(adjusted_rand_score(y, other)), 4) for other in others],
            ])  # fmt: skip

        for n in numbers:
            V = own_view(stack.seen.spaces, shares, max(2, n - 1), max(1, n - 1))
            starts = list(first_guesses(Z, n, known, 0))
            add("km", n, starts[0])
            own = KMeans(n, n_init=4, random_state=0).fit_predict(V) if n > 1 else starts[0]
            add("kmV", n, own, sil(V, own))
            for kind, W, start, ev in (
                ("mix", Z, starts[0], evidence), ("chain", Z, starts[-1], evidence), ("soft", Z, starts[0], soft),
                ("mixV", V, own, evidence), ("softV", V, own, soft),
            ):  # fmt: skip
                mixture, q = fit_mixture(W, start, n, ev)
                odds = mixture.log_odds(W)
                labels = np.argmax(q, axis=1)
                others = [np.argmax(odds, axis=1)]
                if same is not None and kind in ("mix", "mixV") and n == k:
                    at = matched(mixture, W[::2], same[::2, ::2])
                    others.append(likeliest(W, at, ev)[0])
                top = odds.max(axis=1, keepdims=True)
                loglik = float((top[:, 0] + np.log(np.exp(odds - top).sum(axis=1))).sum())
                add(kind, n, labels, loglik - W.size / 2 * np.log(mixture.variance), others)
            if tree is not None:
                add("link", n, fcluster(tree, n, "maxclust") - 1)
            add("ward", n, fcluster(ward, n, "maxclust") - 1)
        record["rows"] = rows
        held: dict[int, list[int]] = {}
        for n in numbers if folds else []:
            total = np.zeros(10, dtype=int)
            for fold, spaces in folds:
                W = own_view(spaces, shares, 10, 10)
                V = own_view(spaces, shares, max(2, n - 1), max(1, n - 1))
                ev = Evidence.of(fold.train, e)
                parts = []
                for U in (W, V):
                    km = KMeans(n, n_init=2, random_state=0).fit_predict(U) if n > 1 else np.zeros(len(U), dtype=int)
                    parts += mistakes_of(km, fold.rest)
                    parts += mistakes_of(np.argmax(fit_mixture(U, km, n, ev)[1], axis=1), fold.rest)
                total += np.array([*parts, fold.rest.n_must_link, fold.rest.n_cannot_link])
            held[n] = total.tolist()
        record["held"] = held
        record["seconds"] = round(time.perf_counter() - began, 1)
    return record


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, nargs="+", default=[5])
    parser.add_argument("--sets", nargs="+", default=list(DEVELOPMENT))
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--results", type=Path, required=True)
    chosen = parser.parse_args()
    done = {(r["set"], r["pairs"], r["wrong"], r["draw"]) for r in read_lines(chosen.results)}
    tasks = [(name, *s, d) for d in chosen.draws for name in chosen.sets for s in SETTINGS]
    run_lines(run, [t for t in tasks if t not in done], chosen.results, chosen.jobs)


if __name__ == "__main__":
    main()
