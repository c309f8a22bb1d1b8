"""The picture of the demo over many draws: how well do PairMap, t-SNE and UMAP part the ten digits?

    python -m benchmarks.maps_digits                  # 20 draws of 60 and of 200 pairs: some five minutes of one core
    python -m benchmarks.maps_digits --draws 3

Protocol. All 1,797 digits are laid out. The answers are drawn as in the demo: as many must-links as cannot-links, 3 or
10 of each for every digit. ARI is that of k-means with ten groups (10 starts) in the map. t-SNE (PairMap's layout of
the rows alone) and UMAP see no answers; UMAP is run with several seeds. PairMap and UMAP are given the z-scored pixels
or all pixels on the scale that they share (``standardize=False``). Results are kept as they come, and a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from benchmarks.league import ROOT
from benchmarks.maps_table import mean_and_error
from benchmarks.measure import compute
from pairlens import Constraints, PairMap
from pairlens.methods.pairmap.layout import plain_map
from reproduction.tasks import Store

PER_CLASS = {60: 3, 200: 10}
DRAWS = 20
SEEDS = 5
"""Of UMAP."""
KEPT = " of the pixels as they are"


@dataclass(frozen=True)
class Drawn:
    """One map: of PairMap from `n_pairs` answers, or with none of a method that sees none."""

    method: str
    n_pairs: int
    draw: int

    @property
    def key(self) -> str:
        """Where the result is stored."""
        return f"{self.method}-{self.n_pairs}-{self.draw}".replace(" ", "_")

    @property
    def as_they_are(self) -> bool:
        """Whether the pixels keep their scale."""
        return self.method.endswith(KEPT)

    def compute(self) -> list[dict[str, Any]]:
        """ARI, the share of long-range attraction and the processor time."""
        X, y = load_digits(return_X_y=True)
        began, far = time.process_time(), 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.method.startswith("PairMap"):
                pairs = Constraints.from_labels(y, per_class=PER_CLASS[self.n_pairs], random_state=self.draw)
                model = PairMap(standardize=not self.as_they_are, random_state=0).fit(X, constraints=pairs)
                Z, far = model.embedding_, model.long_range_
            else:
                rows = X if self.as_they_are else StandardScaler().fit_transform(X)
                Z = _umap(rows, self.draw) if self.method.startswith("UMAP") else plain_map(X)
        ari = adjusted_rand_score(y, KMeans(10, n_init=10, random_state=0).fit_predict(Z))
        return [{"ari": float(ari), "long_range": float(far), "seconds": time.process_time() - began}]


def _umap(X: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    from umap import UMAP

    return np.asarray(UMAP(random_state=seed, n_jobs=1).fit_transform(X))


def tasks(draws: int) -> list[Drawn]:
    """All maps, the draws of both numbers of answers side by side."""
    ours = [
        Drawn("PairMap" + scale, n_pairs, draw)
        for draw in range(draws)
        for n_pairs in PER_CLASS
        for scale in ("", KEPT)
    ]
    theirs = [Drawn("UMAP" + scale, 0, seed) for seed in range(SEEDS) for scale in ("", KEPT)]
    return [Drawn("t-SNE", 0, 0), *theirs, *ours]


def main() -> None:
    """Compute what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    store = Store(ROOT / "results" / "maps_digits")
    store.clean()
    everything = tasks(options.draws)
    compute(store.unfinished(everything), store, options.jobs)
    found: dict[tuple[str, int], list[float]] = {}
    for task in everything:
        for row in store.read(task, dict) or []:
            found.setdefault((task.method, task.n_pairs), []).append(row["ari"])
    print("| map | answers | maps | ARI | standard error | lowest | highest |\n|---|--:|--:|--:|--:|--:|--:|")
    for (method, n_pairs), values in found.items():
        mean, error = mean_and_error(np.array(values))
        cells = f"{mean:.3f} | {error:.3f} | {min(values):.2f} | {max(values):.2f}"
        print(f"| {method} | {n_pairs} | {len(values)} | {cells} |")


if __name__ == "__main__":
    main()
