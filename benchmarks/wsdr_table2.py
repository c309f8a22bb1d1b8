"""Table 2 of the WSDR paper, measured and printed beside the paper, with the controls that it lacks.

Pairwise accuracy (%) on held-out rows of three data sets for d = 5, 10, 15, 20. Five folds over the rows, repeated with
several seeds; features are standardised on the training part; targets are cut into bins of equal frequency (the paper
does not say how), and every pair of different bins is a preference. A view is ranked by a RankSVM with C = 10 after one
rescaling of all its coordinates; "C by cv" means chosen on the training part alone. The folder of the data sets is
taken from the environment variable ``PAIRLENS_DATA``.

    python -m benchmarks.wsdr_table2 [--quick] [--seeds 1 2 3 4 5]
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens.methods.lfda import LFDA
from pairlens.methods.lpp import LPP
from pairlens.metrics import pairwise_accuracy
from pairlens.preference.gbwsdr import GBWSDR
from pairlens.preference.lmca import LMCA
from pairlens.preference.pairs import Pairs
from pairlens.preference.ranking import embedded_ranking
from pairlens.preference.ranksvm import RankSVM
from pairlens.preference.wsdr import WSDR
from pairlens.supervision import Preferences

Rows = NDArray[np.float64]
DIMENSIONS = (5, 10, 15, 20)
BINS = {"pyrimidines": 3, "triazines": 4, "wpbc": 4}
TITLES = {"pyrimidines": "Pyrimidines", "triazines": "Triazines", "wpbc": "Wisconsin"}
PAPER = {
    "LPP": ((78.9, 82.8, 83.3, 83.7), (63.9, 69.5, 70.8, 71.4), (63.3, 64.8, 64.4, 64.2)),
    "LFDA": ((88.7, 88.5, 88.6, 88.2), (56.2, 57.5, 58.6, 53.6), (65.4, 65.3, 67.4, 70.8)),
    "LMCA": ((88.1, 89.2, 87.8, 88.2), (67.0, 72.3, 72.0, 71.9), (67.0, 66.9, 69.5, 69.5)),
    "WSDR": ((90.8, 91.1, 90.4, 90.2), (72.7, 72.6, 72.7, 73.1), (69.4, 69.7, 69.5, 69.4)),
    "GBWSDR": ((90.0, 91.3, 90.9, 90.8), (74.1, 74.1, 74.3, 76.5), (69.9, 69.6, 69.5, 69.6)),
}
"""The paper's values by method, data set (in the order of BINS) and d."""


@dataclass(frozen=True)
class Fold:
    """One training part and one held-out part, with their preferences."""

    X: Rows
    levels: NDArray[np.int64]
    X_test: Rows
    test: Preferences

    def view(self, estimator: object) -> float:
        """Accuracy of a ranking of a view that brings none of its own."""
        Z = estimator.fit(self.X, self.levels).transform(self.X)  # type: ignore[attr-defined]
        known = Preferences.from_scores(self.levels)
        weights = embedded_ranking(Z, Pairs.of(known.pairs, len(Z)))
        return pairwise_accuracy(estimator.transform(self.X_test) @ weights, self.test)  # type: ignore[attr-defined]

    def ranker(self, estimator: RankSVM | WSDR | GBWSDR | Pipeline) -> float:
        """Accuracy of an estimator that ranks."""
        return pairwise_accuracy(estimator.fit(self.X, self.levels).decision_function(self.X_test), self.test)


METHODS: dict[str, Callable[[Fold, int], float]] = {
    "PCA": lambda fold, d: fold.view(PCA(d)),
    "PCA, ranking's C by cv": lambda fold, d: fold.ranker(make_pipeline(PCA(d), RankSVM(C="cv", random_state=0))),
    "LPP": lambda fold, d: fold.view(LPP(d, n_neighbors=7)),
    "LFDA": lambda fold, d: fold.view(LFDA(d, n_neighbors=7)),
    "LMCA": lambda fold, d: fold.view(LMCA(d)),
    "RankSVM, all features, C by cv": lambda fold, d: fold.ranker(RankSVM(C="cv", random_state=0)),
    "WSDR, C by cv": lambda fold, d: fold.ranker(WSDR(d, C="cv", random_state=0)),
    "WSDR squared, C by cv": lambda fold, d: fold.ranker(WSDR(d, C="cv", angle_loss="squared", random_state=0)),
    "WSDR, C = 1": lambda fold, d: fold.ranker(WSDR(d)),
    "WSDR squared, C = 1": lambda fold, d: fold.ranker(WSDR(d, angle_loss="squared")),
    "GBWSDR, trees by cv": lambda fold, d: fold.ranker(GBWSDR(d, random_state=0)),
    "GBWSDR, 30 trees": lambda fold, d: fold.ranker(GBWSDR(d, n_estimators=30, random_state=0)),
}
ONCE = "RankSVM, all features, C by cv"
"""The method for which d does not matter."""


def load(name: str) -> tuple[Rows, NDArray[np.int64]]:
    """Rows, and targets as bins of equal frequency."""
    folder = os.environ.get("PAIRLENS_DATA")
    if folder is None:
        raise SystemExit("set PAIRLENS_DATA to the folder of the data sets")
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"]
    edges = np.quantile(y, np.linspace(0, 1, BINS[name] + 1)[1:-1])
    return X, np.searchsorted(edges, y, side="left")


def folds(name: str, seed: int) -> list[Fold]:
    """The five folds of one repetition."""
    X, levels = load(name)
    result = []
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        scaler = StandardScaler().fit(X[train])
        held_out = Preferences.from_scores(levels[test])
        result.append(Fold(scaler.transform(X[train]), levels[train], scaler.transform(X[test]), held_out))
    return result


def measure(name: str, seeds: list[int], dimensions: tuple[int, ...]) -> dict[str, dict[int, list[float]]]:
    """Accuracies by method and d, one for each fold, all seeds in order."""
    result: dict[str, dict[int, list[float]]] = {method: {d: [] for d in dimensions} for method in METHODS}
    for seed in seeds:
        for fold in folds(name, seed):
            for method, run in METHODS.items():
                for d in dimensions:
                    again = method == ONCE and d != dimensions[0]
                    score = result[method][dimensions[0]][-1] if again else 100 * run(fold, d)
                    result[method][d].append(score)
    return result


def show(name: str, measured: dict[str, dict[int, list[float]]], dimensions: tuple[int, ...]) -> None:
    """One data set: the paper's rows, then ours with the standard deviation over folds, then paired differences."""
    print(f"\n{TITLES[name]:34}" + "".join(f"{f'd = {d}':>14}" for d in dimensions) + f"{'mean over d':>14}")
    for method, by_data in PAPER.items():
        printed = by_data[list(BINS).index(name)]
        values = [value for d, value in zip(DIMENSIONS, printed) if d in dimensions]
        print(f"{'paper: ' + method:34}" + "".join(f"{v:9.1f}     " for v in values) + f"{np.mean(values):9.1f}")
    for method, by_dimension in measured.items():
        cells = "".join(f"{np.mean(v):9.1f} ({np.std(v):.1f})".rjust(14) for v in by_dimension.values())
        print(f"{method:34}{cells}{np.mean(list(by_dimension.values())):9.1f}")
    ours = np.mean(list(measured["WSDR, C by cv"].values()), axis=0)
    for other in ("PCA", "PCA, ranking's C by cv", ONCE, "LFDA", "LMCA", "GBWSDR, trees by cv"):
        gap = ours - np.mean(list(measured[other].values()), axis=0)
        print(f"  WSDR, C by cv minus {other}: {gap.mean():+.1f} +- {gap.std(ddof=1) / np.sqrt(len(gap)):.1f}")


def main(quick: bool = False, seeds: list[int] | None = None, save: str | None = None) -> dict[str, dict[str, float]]:
    """Print the table; return the mean over d by data set and method."""
    seeds = seeds or ([1] if quick else [1, 2, 3, 4, 5])
    dimensions = DIMENSIONS[:1] if quick else DIMENSIONS
    means, everything = {}, {}
    for name in BINS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measured = measure(name, seeds, dimensions)
        show(name, measured, dimensions)
        everything[name] = measured
        means[name] = {method: float(np.mean(list(values.values()))) for method, values in measured.items()}
        if save is not None:
            Path(save).write_text(json.dumps(everything))
    return means


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one repetition, d = 5 only")
    parser.add_argument("--seeds", type=int, nargs="+", help="seeds of the repetitions")
    parser.add_argument("--save", help="also write every accuracy to this JSON file")
    options = parser.parse_args()
    main(options.quick, options.seeds, options.save)
