"""What the paper says of SODRPaC beyond the table: more pairs, other shares of must-links, merged classes; and the
number of directions that held-out pairs choose, which the paper leaves open.

Mean 1-NN accuracy of 4 x 5-fold cross-validation with z-scored features, all methods with their defaults. The folder of
the data sets is taken from the environment variable ``PAIRLENS_DATA``.

    python -m benchmarks.sodrpac_claims [--quick]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold

from benchmarks.sodrpac_table import draw, load, nearest_accuracy, prepared
from pairlens import CLPP, CMM, NPSSDR, SSDR
from pairlens.methods._supervision import held_out_auc
from pairlens.methods.sodrpac import SODRPaC

SETS = ("monks1", "monks2", "monks3", "letter_abcd", "heart", "ionosphere", "wine", "glass")
MERGED = ("letter2", "wine2", "pendig2", "segment2", "vehicle2", "iris2")
METHODS = (SSDR, CMM, CLPP, NPSSDR, SODRPaC)
SHARES = (0.0, 0.2, 0.5, 0.8, 0.95, 1.0)
DIMS = (2, 4)
Result = dict[tuple[str, str, int], float]


def merged(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Two classes of several subclasses: even against odd class numbers, or the middle one against the others."""
    sources = {"letter2": "letter_abcd", "pendig2": "pendigits", "segment2": "segmentation_test"}
    X, y = load(sources.get(name, name.removesuffix("2")))
    rows = np.random.default_rng(0).permutation(len(X))[:600]
    return X[rows], (y[rows] == 1 if name in ("wine2", "iris2") else y[rows] % 2).astype(np.int64)


def accuracies(names: Iterable[str], repeats: int, n_must: int, n_cannot: int) -> Result:
    """Mean accuracy by set, method and number of dimensions."""
    result: Result = {}
    for name in names:
        X, y = merged(name) if name in MERGED else load(name)
        for repeat in range(repeats):
            splits = StratifiedKFold(5, shuffle=True, random_state=repeat).split(X, y)
            for fold, (train, test) in enumerate(splits):
                A, B = prepared(name, X[train], X[test])
                pairs = draw(y[train], np.random.default_rng(1000 * repeat + fold), n_must, n_cannot)
                models: list[Any] = [PCA(max(DIMS)).fit(A)]
                models += [cls(max(DIMS)).fit(A, constraints=pairs) for cls in METHODS]
                for model in models:
                    Z, Z_test = A @ model.components_.T, B @ model.components_.T
                    for k in DIMS:
                        score = nearest_accuracy(Z[:, :k], y[train], Z_test[:, :k], y[test]) / (5 * repeats)
                        key = (name, type(model).__name__, k)
                        result[key] = result.get(key, 0.0) + score
    return result


def chosen_dimensions(name: str, repeats: int) -> dict[str, tuple[float, float]]:
    """Mean number of directions and accuracy: all features, n_components="auto", and the best held-out `score`."""
    X, y = merged(name) if name in MERGED else load(name)
    found: dict[str, list[tuple[float, float]]] = {"all": [], "auto": [], "score": []}
    for repeat in range(repeats):
        for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=repeat).split(X, y)):
            A, B = prepared(name, X[train], X[test])
            pairs = draw(y[train], np.random.default_rng(1000 * repeat + fold))
            most = int(np.linalg.matrix_rank(A - A.mean(axis=0)))
            W = SODRPaC(most).fit(A, constraints=pairs).components_.T
            auto = SODRPaC("auto", random_state=0).fit(A, constraints=pairs).n_components_
            auc = np.zeros(most)
            for known, held_out in pairs.split(5, random_state=0):
                Z = A @ SODRPaC(most).fit(A, constraints=known).components_.T
                auc += [held_out_auc(Z[:, : k + 1], held_out) for k in range(most)]
            for how, k in (("all", most), ("auto", auto), ("score", int(auc.argmax()) + 1)):
                found[how].append((k, nearest_accuracy(A @ W[:, :k], y[train], B @ W[:, :k], y[test])))
    return {how: tuple(np.mean(values, axis=0)) for how, values in found.items()}  # type: ignore[misc]


def mean_of(result: Result, method: str, k: int) -> float:
    return float(np.mean([value for (_, m, dims), value in result.items() if (m, dims) == (method, k)]))


def show(title: str, rows: dict[str, Result]) -> dict[str, float]:
    names = ["PCA", *(cls.__name__ for cls in METHODS)]
    print(f"\n{title}\n\n| | l | " + " | ".join(names) + " |\n|---|---|" + "---|" * len(names))
    means = {}
    for k in DIMS:
        for label, result in rows.items():
            values = [mean_of(result, name, k) for name in names]
            means |= {f"{title} {label} {k} {name}": value for name, value in zip(names, values)}
            print(f"| {label} | {k} | " + " | ".join(f"{value:.3f}".lstrip("0") for value in values) + " |", flush=True)
    return means


def main(quick: bool = False) -> dict[str, float]:
    """Print the tables as Markdown, and return the means."""
    warnings.simplefilter("ignore")
    repeats = 1 if quick else 4
    names, shares = (("wine",), (0.5, 1.0)) if quick else (SETS, SHARES)
    means = show(
        "Number of constraints, half of them must-links",
        {str(count): accuracies(names, repeats, count // 2, count // 2) for count in (10, 30, 70, 150)},
    )
    by_share = {
        f"{share:g}": accuracies(names, repeats, round(150 * share), 150 - round(150 * share)) for share in shares
    }
    means |= show("Share of must-links among 150 constraints", by_share)
    for k in DIMS:
        spreads = {
            cls.__name__: np.mean(
                [np.ptp([by_share[s][name, cls.__name__, k] for s in by_share if s != "1"]) for name in names]
            )
            for cls in METHODS
        }
        print(f"Range over the shares below 1, l = {k}: " + ", ".join(f"{m} {v:.3f}" for m, v in spreads.items()))
    sets = ("wine2",) if quick else MERGED
    each = {name: accuracies([name], repeats, 75, 75) for name in sets}
    means |= show("Merged classes, 75 must-links and 75 cannot-links", each)
    means |= show("Merged classes, mean", {"all": {key: value for one in each.values() for key, value in one.items()}})
    print("\nDirections and accuracy: all, n_components='auto', best held-out score()\n")
    print("| | all | accuracy | auto | accuracy | score | accuracy |\n|---|---|---|---|---|---|---|")
    for name in sets if quick else (*SETS[3:], *MERGED[:-1]):
        cells = chosen_dimensions(name, 1)
        means |= {f"{name} {how} directions": k for how, (k, _) in cells.items()}
        print(f"| {name} | " + " | ".join(f"{k:.1f} | {a:.3f}" for k, a in cells.values()) + " |", flush=True)
    return means


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="wine only, one repeat")
    main(parser.parse_args().quick)
