"""How steady is the picture: other last digits, another seed, one answer more.

    PAIRLENS_DATA=<folder> python -m benchmarks.steadiness            # ten sets
    python -m benchmarks.steadiness --sets vehicle wine --jobs 2

A map is drawn from 200 random pairs of at most 500 rows. It is drawn again with the last digits of X changed
(relative 1e-12), with another seed, and with one more answer, several times each. *moved* is the root mean square
distance of the rows between two maps after the best turn, mirroring, shift and scale (Procrustes), over the root mean
square size of the map: 0 is the same map, 1.41 an unrelated one. *ARI* is the mean absolute change of the adjusted
Rand index of k-means with the true number of groups.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.league import ROOT, load
from pairlens import Constraints, PairMap

Array = NDArray[np.float64]
SETS = ("vehicle", "wine", "seeds", "glass", "ionosphere", "digits", "segmentation_test", "heart", "wdbc", "mfeat_fou")
ROWS, PAIRS, TIMES = 500, 200, 4
KINDS = ("digits", "seed", "answer")


def moved(one: Array, other: Array) -> float:
    """Return how far rows lie from each other in two maps, after the best similarity, over the size of the map."""
    first, second = (Z - Z.mean(axis=0) for Z in (one, other))
    first, second = (Z / np.sqrt((Z**2).sum() / len(Z)) for Z in (first, second))
    U, values, Vt = np.linalg.svd(second.T @ first)
    turned = second @ (U @ Vt) * (values.sum() / len(first))
    return float(np.sqrt(((first - turned) ** 2).sum() / len(first)))


def draw(X: Array, pairs: Constraints, seed: int) -> Array:
    """Return a map."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PairMap(random_state=seed).fit(X, constraints=pairs).embedding_


def variants(name: str, kind: str) -> tuple[list[Array], NDArray[np.int64]]:
    """Return maps that differ in one thing, and the classes."""
    X, y = load(name, ROWS)
    X = np.asarray(X, dtype=np.float64)
    known = Constraints.from_labels(y).sample(PAIRS + TIMES, random_state=0)
    must, cannot = known.must_link, known.cannot_link
    maps = []
    for number in range(TIMES):
        rng = np.random.default_rng(number)
        rows, seed, pairs = X, 0, Constraints(must, cannot, len(X), on_conflict="warn")
        if kind == "digits":
            rows = X * (1 + 1e-12 * rng.standard_normal(X.shape))
        elif kind == "seed":
            seed = number
        else:
            # All but a few of the answers, one more each time.
            kept = rng.permutation(len(cannot))[: len(cannot) - TIMES + number]
            pairs = Constraints(must, cannot[np.sort(kept)], len(X), on_conflict="warn")
        maps.append(draw(rows, pairs, seed))
    return maps, y


def measure(task: tuple[str, str]) -> dict[str, Any]:
    """Return how far the maps of one set lie apart."""
    name, kind = task
    maps, y = variants(name, kind)
    k = int(y.max()) + 1
    found = [adjusted_rand_score(y, KMeans(k, n_init=10, random_state=0).fit_predict(Z)) for Z in maps]
    pairs = list(combinations(range(len(maps)), 2))
    return {
        "set": name,
        "kind": kind,
        "moved": float(np.mean([moved(maps[i], maps[j]) for i, j in pairs])),
        "ari": float(np.mean(found)),
        "change": float(np.mean([abs(found[i] - found[j]) for i, j in pairs])),
        "most": float(max(found) - min(found)),
    }


def main() -> None:
    """Measure, print a table and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", default=str(ROOT / "results" / "steadiness.json"))
    options = parser.parse_args()
    tasks = [(name, kind) for name in options.sets for kind in KINDS]
    if options.jobs > 1:
        from multiprocessing import Pool

        with Pool(options.jobs) as pool:
            found = pool.map(measure, tasks, chunksize=1)
    else:
        found = [measure(task) for task in tasks]
    print("| set | " + " | ".join(f"{kind}: moved, ARI changes by (most)" for kind in KINDS) + " |")
    print("|---|" + "---|" * len(KINDS))
    for name in options.sets:
        cells = [one for kind in KINDS for one in found if (one["set"], one["kind"]) == (name, kind)]
        print(
            f"| {name} | " + " | ".join(f"{c['moved']:.2f}, {c['change']:.3f} ({c['most']:.3f})" for c in cells) + " |"
        )
    for kind in KINDS:
        cells = [one for one in found if one["kind"] == kind]
        print(
            kind, *(f"{key} {np.mean([one[key] for one in cells]):.3f}" for key in ("moved", "ari", "change", "most"))
        )
    with open(options.out, "w") as file:
        json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
