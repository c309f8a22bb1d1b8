"""Measure how often a verdict is false, how many right answers stand out as wrong, and how many wrong ones do.

    python -m benchmarks.verdicts                 # the confirmation sets: six minutes of one core
    python -m benchmarks.verdicts --development   # those on which thresholds were chosen

Protocol. 34, 64 and 200 random pairs, one draw, at most 500 rows. With right answers: whether a PairMap is called
better or worse than PCA and t-SNE, against the sign of the difference over random pairs of rows (P(same) of the map,
distance in the others); and the share of answers that stand out, of PairMap and of the lenses. With a tenth of the
answers wrong: the share of the wrong ones that stand out. The layout has no part in it and is cut short.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from benchmarks.league import load
from benchmarks.measure import report
from pairlens import Constraints, LinearPairLens, PairLens, PairMap
from pairlens.judging import auc
from pairlens.methods.pairmap.layout import plain_map
from pairlens.selection import JudgedPairs, verdicts

DEVELOPMENT = ("iris", "wine", "glass", "ionosphere", "vehicle", "seeds", "semeion", "mfeat_fou", "balance", "heart")
CONFIRMATION = (
    *("wdbc", "breast", "mfeat_zer", "usps", "letter_abcd", "segmentation_test", "hepatitis", "coil20", "isolet5"),
    *("pendigits", "sonar", "mfeat_kar"),
)
MAX_ROWS = 500
N_PAIRS = (34, 64, 200)
DRAWS = 1
WRONG = 0.1
N_RANDOM = 3_000
FEWEST = 4
METHODS = {
    "PairMap": lambda: PairMap(random_state=0, early_exaggeration_iter=1, max_iter=1),
    "LinearPairLens": lambda: LinearPairLens(random_state=0),
    "PairLens": lambda: PairLens(random_state=0),
}


def count_verdicts(
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    pairs: Constraints,
    controls: dict[str, NDArray[np.float64]],
    counts: Counter[str],
) -> None:
    """Count verdicts that are given, and those among them that are false."""
    model = METHODS["PairMap"]().fit(X, constraints=pairs)
    judged = JudgedPairs.of_fit(model)
    assert judged is not None
    random = np.random.default_rng(1).integers(len(X), size=(N_RANDOM, 2))
    random = random[random[:, 0] != random[:, 1]]
    left, right = random.T
    same, near = y[left] == y[right], -model.pair_proba(X[left], X[right])
    for verdict in verdicts(judged, controls, model, X):
        Z = controls[verdict.other]
        distance = np.linalg.norm(Z[left] - Z[right], axis=1)
        truth = auc(near[same], near[~same]) - auc(distance[same], distance[~same])
        counts["all"] += 1
        counts["given"] += verdict.tells
        counts["false"] += verdict.tells and verdict.difference * truth < 0


def count_suspects(X: NDArray[np.float64], y: NDArray[np.int64], pairs: Constraints, counts: Counter[str]) -> None:
    """Count answers that stand out, of each method, among right and among wrong answers."""
    for name, build in METHODS.items():
        found = build().fit(X, constraints=pairs).suspicious_pairs()
        wrong = (y[found.pairs[:, 0]] == y[found.pairs[:, 1]]) != (found.link > 0)
        out = np.arange(len(found)) < len(found.standing_out)
        kind = f"{name} {'mixed' if wrong.any() else 'right'}"
        counts[f"{kind} answers"] += int((wrong | ~wrong.any()).sum())
        counts[f"{kind} out"] += int((out & (wrong | ~wrong.any())).sum())


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--development", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    names = DEVELOPMENT if options.development else CONFIRMATION
    given, suspects = [], []
    for name in names:
        X, y = load(name, MAX_ROWS)
        X = SimpleImputer(strategy="median").fit_transform(X)
        controls = {"PCA": PCA(2).fit_transform(StandardScaler().fit_transform(X)), "t-SNE": plain_map(X)}
        counts: Counter[str] = Counter()
        found: Counter[str] = Counter()
        for n_pairs in N_PAIRS:
            for draw in range(DRAWS):
                pairs = Constraints.from_labels(y, n_pairs=n_pairs, random_state=draw)
                if min(pairs.n_must_link, pairs.n_cannot_link) < FEWEST:
                    continue
                count_verdicts(X, y, pairs, controls, counts)
                count_suspects(X, y, pairs, found)
                count_suspects(X, y, pairs.flip(WRONG, random_state=draw), found)
        given.append([counts[what] for what in ("all", "given", "false")])
        suspects.append([_share(found, method, kind) for kind in ("right", "mixed") for method in METHODS])
        print(name, given[-1], np.round(suspects[-1], 3).tolist(), flush=True)
    total = [str(number) for number in np.sum(given, axis=0)]
    report("Verdicts", [tuple(total)], ("all", "given", "false"))
    means = tuple(f"{share:.4f}" for share in np.mean(suspects, axis=0))
    report("Answers that stand out", [means], tuple(f"{kind} {m}" for kind in ("right", "wrong") for m in METHODS))


def _share(found: Counter[str], method: str, kind: str) -> float:
    return found[f"{method} {kind} out"] / max(found[f"{method} {kind} answers"], 1)


if __name__ == "__main__":
    main()
