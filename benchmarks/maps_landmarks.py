"""What landmarks cost a PairMap: groups, nearest neighbours and time, with fewer and fewer rows laid out.

    python -m benchmarks.maps_landmarks               # three draws of 200 pairs: some ten minutes of one core
    python -m benchmarks.maps_landmarks --draws 1

Protocol. All rows of pendigits (10,992) and letter (20,000), 200 random pairs. ARI is that of k-means with the true
number of groups (10 starts) in the map of all rows; 1-NN is the share of rows whose nearest other row in the map is of
their group. Time is the processor time of `fit` as a share of that with all rows laid out, in the same run. Results are
kept as they come, and a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from benchmarks.league import ROOT
from benchmarks.maps_table import mean_and_error
from benchmarks.measure import compute
from pairlens import Constraints, PairMap
from reproduction import datasets
from reproduction.tasks import Store

ALL = 1_000_000
"""More than any set has rows."""
LANDMARKS = {"pendigits": (ALL, 5000, 2500), "letter": (ALL, 10_000, 5000, 3000)}
N_PAIRS = 200
DRAWS = 3


@dataclass(frozen=True)
class Landmarked:
    """One map of all rows of a set, `n_landmarks` of them laid out."""

    set: str
    n_landmarks: int
    draw: int

    @property
    def key(self) -> str:
        """Where the result is stored."""
        return f"{self.set}-{self.n_landmarks}-{self.draw}"

    def compute(self) -> list[dict[str, Any]]:
        """ARI, 1-NN and the processor time of the fit."""
        X, y = datasets.load(self.set, download=False, return_X_y=True)
        pairs = Constraints.from_labels(y, n_pairs=N_PAIRS, random_state=self.draw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.process_time()
            Z = PairMap(n_landmarks=self.n_landmarks, random_state=self.draw).fit_transform(X, constraints=pairs)
            seconds = time.process_time() - began
        groups = KMeans(len(np.unique(y)), n_init=10, random_state=0).fit_predict(Z)
        nearest = NearestNeighbors(n_neighbors=1).fit(Z).kneighbors(return_distance=False)[:, 0]
        near = float(np.mean(y[nearest] == y))
        return [{"rows": len(y), "ari": float(adjusted_rand_score(y, groups)), "nn1": near, "seconds": seconds}]


def main() -> None:
    """Compute what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    store = Store(ROOT / "results" / "maps_landmarks")
    store.clean()
    draws = range(options.draws)
    tasks = [Landmarked(name, count, draw) for draw in draws for name in LANDMARKS for count in LANDMARKS[name]]
    compute(store.unfinished(tasks), store)
    print("| rows | landmarks | ARI (s.e.) | 1-NN (s.e.) | time |\n|---|--:|--:|--:|--:|")
    for name, counts in LANDMARKS.items():
        everything = 0.0
        for count in counts:
            found = [row for draw in draws for row in store.read(Landmarked(name, count, draw), dict) or []]
            seconds = sum(row["seconds"] for row in found)
            everything = everything or seconds
            cells = [mean_and_error(np.array([row[what] for row in found])) for what in ("ari", "nn1")]
            shown = " | ".join(f"{mean:.3f} ({error:.3f})" for mean, error in cells)
            laid = "all" if count == ALL else f"{count:,}"
            print(f"| {name}, {found[0]['rows']:,} | {laid} | {shown} | {seconds / everything:.2f} |")


if __name__ == "__main__":
    main()
