"""DSP on the eight data sets of table 4 of its paper: the table of docs/dsp.md.

Pairwise F-score of k-means in half as many dimensions as there are features, beside the paper's and the prototype's of
the specification; Rand and adjusted Rand index, which do not reward putting everything into one cluster; SKK-means in
the full space. Features are scaled to [0, 1], widths are those of the paper, k = 5, k-means is the best of 10 random
starts. "p pairs": for every class p must-links inside it and p cannot-links with one end in it. The folder of the data
sets is taken from the environment variable ``PAIRLENS_DATA``.

    python -m benchmarks.dsp_table4 [--runs 20] [--sets wine iris] [--seed 0]
"""

from __future__ import annotations

import argparse
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, rand_score
from sklearn.preprocessing import minmax_scale

from pairlens import Constraints
from pairlens.cluster.skkmeans import SKKMeans
from pairlens.methods.dsp import DSP
from pairlens.metrics import pairwise_f_score


@dataclass(frozen=True)
class Row:
    """Width, dimensions, and F-scores of the paper's table 4 and of the prototype, by pairs for each class."""

    delta: float
    dims: int
    paper: dict[int, float]
    prototype: dict[int, float]


SETS = {
    "wine": Row(0.6, 6, {20: 0.9588, 5: 0.9322}, {20: 0.966, 5: 0.931}),
    "vehicle": Row(0.9, 9, {20: 0.6042, 5: 0.3604}, {20: 0.621, 5: 0.394}),
    "iris": Row(0.3, 2, {20: 0.9498, 5: 0.9405}, {20: 0.950, 5: 0.929}),
    "balance": Row(0.7, 2, {20: 0.6068, 5: 0.5693}, {20: 0.641, 5: 0.609}),
    "ionosphere": Row(1.0, 17, {20: 0.7211, 5: 0.7145}, {20: 0.721, 5: 0.615}),
    "glass": Row(0.3, 4, {20: 0.3833, 5: 0.4131}, {20: 0.448, 5: 0.451}),
    "breast": Row(1.0, 5, {20: 0.9202, 5: 0.9288}, {20: 0.927, 5: 0.923}),
    "sonar": Row(0.8, 30, {20: 0.5873, 5: 0.5493}, {20: 0.573, 5: 0.536}),
}
SCORES = {"F": pairwise_f_score, "Rand": rand_score, "ARI": adjusted_rand_score}
COLUMNS = ("paper F", "prototype F", "DSP F", "DSP Rand", "DSP ARI", "SKK F", "SKK Rand", "SKK ARI", "one cluster F")


def load(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    folder = os.environ.get("PAIRLENS_DATA")
    if folder is None:
        raise SystemExit("set PAIRLENS_DATA to the folder of the data sets")
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as arrays:
        return minmax_scale(arrays["X"].astype(np.float64)), np.unique(arrays["y"], return_inverse=True)[1]


def one_run(
    X: NDArray[np.float64], y: NDArray[np.int64], row: Row, per_class: int, seed: int, neighbors: str = "exact"
) -> dict[str, float]:
    """All scores with one draw of pairs."""
    pairs = Constraints.from_labels(y, per_class=per_class, random_state=seed)
    n_clusters = int(y.max()) + 1
    model = DSP(row.dims, delta=row.delta, neighbors=neighbors, random_state=seed)
    Z = model.fit_transform(X, constraints=pairs)
    labels = {
        "DSP": KMeans(n_clusters, init="random", n_init=10, random_state=seed).fit_predict(Z),
        "SKK": SKKMeans(n_clusters, delta=row.delta, random_state=seed).fit_predict(X, constraints=pairs),
    }
    return {f"{who} {what}": float(score(y, labels[who])) for who in labels for what, score in SCORES.items()}


def main(
    quick: bool = False,
    *,
    runs: int | None = None,
    sets: list[str] | None = None,
    seed: int = 0,
    neighbors: str = "exact",
) -> dict[tuple[str, int], dict[str, float]]:
    """Print the table as Markdown, and return it by set and pairs."""
    warnings.simplefilter("ignore")
    runs = runs or (2 if quick else 20)
    names = sets or (["wine", "iris"] if quick else list(SETS))
    print("| set | pairs | " + " | ".join(COLUMNS) + " |")
    print("|---|---|" + "---|" * len(COLUMNS))
    table = {}
    for per_class in (20, 5):
        for name in names:
            (X, y), row = load(name), SETS[name]
            scores = [one_run(X, y, row, per_class, seed + run, neighbors) for run in range(runs)]
            mean = {key: float(np.mean([score[key] for score in scores])) for key in scores[0]}
            mean |= {"paper F": row.paper[per_class], "prototype F": row.prototype[per_class]}
            mean["one cluster F"] = pairwise_f_score(y, np.zeros_like(y))
            spread = {key: float(np.std([score[key] for score in scores])) for key in scores[0]}
            cells = [f"{mean[c]:.3f}" + (f"±{spread[c]:.3f}" if c in ("DSP F", "SKK F") else "") for c in COLUMNS]
            print(f"| {name} | {per_class} | " + " | ".join(cells) + " |", flush=True)
            table[name, per_class] = mean
    for other in ("paper", "prototype"):
        deviation = np.mean([abs(mean["DSP F"] - mean[f"{other} F"]) for mean in table.values()])
        print(
            f"\nMean absolute deviation of DSP from the {other}: {deviation:.4f} "
            f"over {len(table)} cells, {runs} runs each."
        )
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help="draws of pairs for each cell, 20 by default")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), help="all by default")
    parser.add_argument("--seed", type=int, default=0, help="of the first draw")
    parser.add_argument("--neighbors", choices=["exact", "approx"], default="exact")
    parser.add_argument("--quick", action="store_true", help="two sets, two runs")
    given = parser.parse_args()
    main(given.quick, runs=given.runs, sets=given.sets, seed=given.seed, neighbors=given.neighbors)
