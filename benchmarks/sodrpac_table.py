"""SODRPaC and others on the data sets its paper names: the table of docs/sodrpac.md.

1-NN accuracy of repeated stratified 5-fold cross-validation with 75 must-links and 75 cannot-links drawn from the
training folds. Features are standardised with training statistics, except in the sets ending in _raw (codes as they
are) and _oh (one-hot). The folder of the data sets is taken from the environment variable ``PAIRLENS_DATA``.

    python -m benchmarks.sodrpac_table [--repeats 20] [--sets wine heart] [--jobs 2]

Columns: PCA, SSDR, CMM, CLPP, NPSSDR with their defaults. Disc and SODfix: SODRPaC with lam = 0 and lam = 8, both with
theta four times its default. SOD*: of 7 x 2 values of lam and theta those with the best mean accuracy on the TEST
folds, which is optimistic. SOD_loo: for each training fold those with the best leave-one-out accuracy on it, which
takes all training labels. SOD_cv: lam="cv", theta="cv", which takes the 150 pairs and nothing else. SSDR_loo, rand_loo:
the choice of SOD_loo over 14 settings of SSDR and CMM, and over 14 random projections.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold

from pairlens import CLPP, CMM, NPSSDR, SSDR, Constraints
from pairlens.engines.blocks import column_means
from pairlens.graphs.weights import default_theta
from pairlens.methods._subclass import Terms, held_out_scores
from pairlens.methods.cmm import mean_differences
from pairlens.methods.sodrpac import LAM_GRID, THETA_GRID
from pairlens.spectral.eigen import difference
from pairlens.spectral.rowspace import row_space

Array = NDArray[np.float64]

SETS: dict[str, tuple[int, ...]] = {
    **{f"monks{i}": (1, 2, 3, 4) for i in (1, 2, 3)},
    **{f"monks{i}_raw": (1, 2, 3, 4) for i in (1, 2, 3)},
    **{f"monks{i}_oh": (2, 4, 8) for i in (1, 2, 3)},
    "letter_abcd": (2, 4, 8),
    "heart": (1, 2, 4, 6),
    "ionosphere": (2, 4, 8, 16),
    "glass": (2, 4, 6),
    "wine": (2, 4, 6),
}
COLUMNS = (
    *("PCA", "SSDR", "CMM", "CLPP", "NPSSDR", "Disc", "SODfix", "SOD*", "SOD_loo", "SOD_cv", "SSDR_loo", "rand_loo"),
    "all features",
)
LAMS = (0.0, 2.0**-5, 0.5, 2.0, 8.0, 32.0, 128.0)
WIDTHS = (4.0, 0.25)
BETAS = 4.0 ** np.arange(-3, 4)


def load(name: str) -> tuple[Array, NDArray[np.int64]]:
    folder = os.environ.get("PAIRLENS_DATA")
    if folder is None:
        raise SystemExit("set PAIRLENS_DATA to the folder of the data sets")
    source = name.removesuffix("_raw").removesuffix("_oh")
    with np.load(Path(folder) / f"{source}.npz", allow_pickle=False) as arrays:
        X, y = arrays["X"].astype(np.float64), np.unique(arrays["y"], return_inverse=True)[1]
    if name.endswith("_oh"):
        X = np.concatenate([column[:, None] == np.unique(column) for column in X.T], axis=1).astype(np.float64)
    return X, y


def prepared(name: str, train: Array, test: Array) -> tuple[Array, Array]:
    if name.endswith(("_raw", "_oh")):
        return train, test
    mean, spread = train.mean(axis=0), train.std(axis=0)
    spread[spread == 0] = 1
    return (train - mean) / spread, (test - mean) / spread


def draw(y: NDArray[np.int64], rng: np.random.Generator, n_must: int = 75, n_cannot: int = 75) -> Constraints:
    first, second = np.triu_indices(len(y), 1)
    same = y[first] == y[second]
    chosen = (rng.choice(np.flatnonzero(k), n, replace=False) for k, n in ((same, n_must), (~same, n_cannot)))
    must, cannot = (np.column_stack([first[pick], second[pick]]) for pick in chosen)
    return Constraints(must, cannot, len(y))


def nearest_accuracy(Z: Array, y: NDArray[np.int64], Z_test: Array | None = None, y_test: Any = None) -> float:
    """1-NN accuracy on test rows, or leave-one-out where none are given."""
    queries, truth = (Z, y) if Z_test is None else (Z_test, y_test)
    squared = (Z**2).sum(axis=1) - 2 * queries @ Z.T
    if Z_test is None:
        np.fill_diagonal(squared, np.inf)
    return float((y[squared.argmin(axis=1)] == truth).mean())


class Candidates:
    """Directions in columns, best first, for every method and setting, of one training fold."""

    def __init__(self, X: Array, pairs: Constraints, most: int, dims: tuple[int, ...], seed: int) -> None:
        self.most, self.dims, self.seed = most, dims, seed
        self.X, self.pairs = X, pairs
        self.space = row_space(X, column_means(X))
        self.terms = Terms.of(self.space, 3, 5)
        self.made = self.terms.generate(pairs)
        self.width = default_theta(X)

    def sodrpac(self, lam: float, theta: float) -> Array:
        attract = self.terms.together + lam * self.terms.manifold(theta) / len(self.X)
        repel = self.terms.apart(self.pairs, self.made, theta)
        spread = self.space.covariance()
        return self.space.lift(difference(attract + spread, repel + spread, self.most)[1]).T

    def grid(self) -> dict[tuple[float, float], Array]:
        return {(lam, width): self.sodrpac(lam, width * self.width) for width in WIDTHS for lam in LAMS}

    def searched(self) -> Iterator[Array]:
        """For each number of dimensions, the directions at the parameters that held-out pairs choose."""
        scores = held_out_scores(
            self.terms,
            self.pairs,
            lams=LAM_GRID,
            thetas=self.width * THETA_GRID,
            dims=np.array(self.dims),
            unit=float(len(self.X)),
            n_splits=5,
            random_state=self.seed,
        )
        for place, dim in enumerate(self.dims):
            one = replace(scores, dims=np.array([dim]), values=scores.values[..., [place]])
            lam, theta, _ = one.best()
            yield self.sodrpac(lam, theta)

    def ssdr_family(self) -> list[Array]:
        together, apart = mean_differences(self.space, self.pairs)
        spread = self.space.covariance()
        return [
            self.space.lift(difference(beta * together + spread, apart + (1 + share) * spread, self.most)[1]).T
            for beta in BETAS
            for share in (0.0, 1.0)
        ]

    def random(self) -> list[Array]:
        rng = np.random.default_rng(self.seed)
        f = self.X.shape[1]
        return [np.linalg.qr(rng.standard_normal((f, f)))[0][:, : self.most] for _ in range(14)]

    def fixed(self) -> dict[str, Array]:
        found: dict[str, Array] = {"PCA": PCA(self.most).fit(self.X).components_.T}
        for cls in (SSDR, CMM, CLPP, NPSSDR):
            found[cls.__name__] = cls(n_components=self.most).fit(self.X, constraints=self.pairs).components_.T
        return found


def one_fold(
    name: str, X: Array, y: NDArray[np.int64], train: NDArray[np.int64], test: NDArray[np.int64], seed: int
) -> tuple[dict[tuple[str, int], float], dict[int, Array]]:
    """Test accuracy of every column but SOD*, and of all points of its grid."""
    warnings.simplefilter("ignore")
    dims = SETS[name]
    A, B = prepared(name, X[train], X[test])
    rng = np.random.default_rng(seed)
    candidates = Candidates(A, draw(y[train], rng), max(dims), dims, seed)

    def accuracy(W: Array, dim: int) -> float:
        return nearest_accuracy(A @ W[:, :dim], y[train], B @ W[:, :dim], y[test])

    def chosen_by_labels(options: list[Array], dim: int) -> float:
        return accuracy(max(options, key=lambda W: nearest_accuracy(A @ W[:, :dim], y[train])), dim)

    grid = candidates.grid()
    family, random = candidates.ssdr_family(), candidates.random()
    result: dict[tuple[str, int], float] = {}
    for method, W in candidates.fixed().items():
        result |= {(method, dim): accuracy(W, dim) for dim in dims}
    for dim, W in zip(dims, candidates.searched()):
        result["SOD_cv", dim] = accuracy(W, dim)
    everything = nearest_accuracy(A, y[train], B, y[test])
    for dim in dims:
        result["Disc", dim] = accuracy(grid[0.0, 4.0], dim)
        result["SODfix", dim] = accuracy(grid[8.0, 4.0], dim)
        result["SOD_loo", dim] = chosen_by_labels(list(grid.values()), dim)
        result["SSDR_loo", dim] = chosen_by_labels(family, dim)
        result["rand_loo", dim] = chosen_by_labels(random, dim)
        result["all features", dim] = everything
    return result, {dim: np.array([accuracy(W, dim) for W in grid.values()]) for dim in dims}


def one_set(name: str, repeats: int, n_jobs: int) -> dict[tuple[str, int], float]:
    X, y = load(name)
    splits = (
        (train, test, 1000 * repeat + fold)
        for repeat in range(repeats)
        for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=repeat).split(X, y))
    )
    folds = Parallel(n_jobs=n_jobs)(delayed(one_fold)(name, X, y, train, test, seed) for train, test, seed in splits)
    mean = {key: float(np.mean([result[key] for result, _ in folds])) for key in folds[0][0]}
    for dim in SETS[name]:
        mean["SOD*", dim] = float(np.mean([grid[dim] for _, grid in folds], axis=0).max())
        scores = [result["SOD_cv", dim] for result, _ in folds]
        mean["SOD_cv error", dim] = float(np.std(scores, ddof=1) / np.sqrt(len(scores)))
    return mean


def main(
    quick: bool = False, *, repeats: int | None = None, sets: list[str] | None = None, n_jobs: int = 1
) -> dict[str, dict[tuple[str, int], float]]:
    """Print the table as Markdown, and return it by set."""
    names = sets or (["wine"] if quick else list(SETS))
    print("| set | l | " + " | ".join(COLUMNS) + " |")
    print("|---|---|" + "---|" * len(COLUMNS))
    table = {}
    for name in names:
        began = time.perf_counter()
        count = repeats or (1 if quick else 10 if name == "letter_abcd" else 20)
        table[name] = one_set(name, count, n_jobs)
        for dim in SETS[name]:
            cells = (f"{table[name][column, dim]:.3f}".lstrip("0") for column in COLUMNS)
            print(f"| {name} | {dim} | " + " | ".join(cells) + " |", flush=True)
        if quick:
            print(f"{time.perf_counter() - began:.1f} s for {5 * count} folds")
    errors = [value for result in table.values() for (column, _), value in result.items() if column == "SOD_cv error"]
    print(f"\nStandard errors of SOD_cv over the folds: {min(errors):.3f} to {max(errors):.3f}.")
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, help="repeats of 5-fold cross-validation (20; 10 for letter_abcd)")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), help="all by default")
    parser.add_argument("--jobs", type=int, default=1, help="folds to run at a time")
    parser.add_argument("--quick", action="store_true", help="wine only, one repeat")
    given = parser.parse_args()
    main(given.quick, repeats=given.repeats, sets=given.sets, n_jobs=given.jobs)
