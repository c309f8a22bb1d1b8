"""Whether ``pair_proba`` means what it says: of the pairs that are called p, is a share of p the same?

For the sets of ``make league`` (folder in the environment variable ``PAIRLENS_DATA`` for those that are not in the
repository) a view is fitted to z-scored training rows with 200 right answers about random pairs of them. Random pairs
of the *test* rows, which no fit saw, are sorted into tenths by their probability; the gap of a tenth is the share of
same pairs in it less its mean probability. Pairs of all sets and splits are pooled, each set with the same weight.

    python -m benchmarks.bench_calibration
    python -m benchmarks.bench_calibration --splits 0 --sets wine iris --methods WBDR

With ``--picture FILE`` the curves are drawn. The form of the model was chosen on splits 0 to 5 and 20 to 31; the
default, splits 6 to 8, and the splits 40 to 48 confirm.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pairlens
from benchmarks.league import QUICK, Job, labelled_sets
from benchmarks.measure import report

METHODS = ("PairLens", "LinearPairLens", "PairMap", "WBDR", "KernelWBDR", "ITML")
N_PAIRS = 200
N_TESTED = 2000
TENTHS = 10
PROMISED = 0.05
CONFIRMING = (6, 7, 8)


def view_of(method: str, split: int) -> Any:
    """A view in two directions; of a map only what decides about pairs."""
    chosen: dict[str, Any] = {"max_iter": 0, "early_exaggeration_iter": 0} if method == "PairMap" else {}
    cls = getattr(pairlens, method)
    if "random_state" in cls().get_params():
        chosen["random_state"] = split
    return cls(2, **chosen)


def measured(method: str, name: str, split: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Probabilities of random pairs of test rows, and whether they are the same."""
    warnings.simplefilter("ignore")
    train, _, test, y, pairs = Job(name, split, N_PAIRS, 0.0, QUICK.max_rows).prepare()
    view = view_of(method, split).fit(train, constraints=pairs)
    if not view.is_calibrated:
        view.calibrate(train, constraints=pairs)
    a, b = np.random.default_rng(split).integers(0, len(y), (2, N_TESTED))
    a, b = a[a != b], b[a != b]
    return view.pair_proba(test[a], test[b]), y[a] == y[b]


def reliability(parts: list[tuple[NDArray[np.float64], NDArray[np.bool_]]]) -> NDArray[np.float64]:
    """Mean probability, share of same pairs and share of all pairs, for each tenth; rows of NaN where it is empty."""
    p, same = (np.concatenate(column) for column in zip(*parts))
    tenth = np.minimum((p * TENTHS).astype(int), TENTHS - 1)
    counts = np.bincount(tenth, minlength=TENTHS)
    with np.errstate(invalid="ignore"):
        means = (np.bincount(tenth, values, TENTHS) / counts for values in (p, same))
        return np.column_stack([*means, counts / len(p)])


def draw(curves: dict[str, NDArray[np.float64]], path: Path) -> None:
    """Share of same pairs over probability, a line for each method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.fill_between([0, 1], [-PROMISED, 1 - PROMISED], [PROMISED, 1 + PROMISED], color="0.92", lw=0)
    axes.plot([0, 1], [0, 1], color="0.6", lw=1)
    for method, curve in curves.items():
        axes.plot(curve[:, 0], curve[:, 1], marker="o", ms=3.5, lw=1.2, label=method)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability said", ylabel="share of same pairs", aspect="equal")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def main(methods: list[str], sets: list[str], splits: list[int], picture: Path | None, jobs: int) -> dict[str, float]:
    """Print the gaps of all tenths, and return the largest of each method."""
    with Pool(jobs) as pool:
        curves = {
            method: reliability(pool.starmap(measured, product([method], sets, splits), chunksize=1))
            for method in methods
        }
    gaps = {method: curve[:, 1] - curve[:, 0] for method, curve in curves.items()}
    rows = [(method, *(f"{gap:+.3f}" for gap in gap), f"{np.nanmax(abs(gap)):.3f}") for method, gap in gaps.items()]
    header = ("method", *(f"{k / TENTHS:.1f}-{(k + 1) / TENTHS:.1f}" for k in range(TENTHS)), "largest")
    report(f"{N_PAIRS} pairs, {len(sets)} sets x {len(splits)} splits: same pairs less probability", rows, header)
    if picture is not None:
        draw(curves, picture)
    return {f"{method} largest gap": float(np.nanmax(abs(gap))) for method, gap in gaps.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--sets", nargs="+", default=list(QUICK.sets))
    parser.add_argument("--splits", nargs="+", type=int, default=list(CONFIRMING))
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    main(options.methods, labelled_sets(options.sets), options.splits, options.picture, options.jobs)
