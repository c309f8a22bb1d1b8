"""The protocols of the paper of BWDR and WBDR; ``bwdr.toml`` has the experiments."""

from __future__ import annotations

from collections.abc import Iterator

from pairlens.metrics import cumulative_purity
from pairlens.supervision import Constraints
from reproduction.experiment import Result, Unit
from reproduction.protocols import fold, kmeans_labels, linear_maps, nearest_accuracy
from reproduction.scores import normalized_rand_score


def cross_validated(unit: Unit) -> Iterator[Result]:
    """One fold: learn from a share of the pairs of the training rows, score the held-out rows in each dimension."""
    settings, X, y = unit.settings, unit.X, unit.y
    train, test = fold(unit, settings["folds"], y)
    n_classes = int(y.max()) + 1
    for share in settings["shares"]:
        seed = unit.seed("pairs", unit.part, share)
        pairs = Constraints.from_labels(y[train], fraction=share, random_state=seed)
        for method in unit.methods:
            each = method.name in settings["fitted_for_each_dimension"]
            condition = {"C": share} if len(settings["shares"]) > 1 else {}
            condition |= {name: method.params[name] for name in settings.get("swept", ())}
            for d, mean, directions in linear_maps(method, X[train], pairs, settings["dims"], each=each):
                held_out = (X[test] - mean) @ directions
                at = {**condition, "dim": d}
                if "1-NN" in settings["evaluators"]:
                    learned = (X[train] - mean) @ directions
                    accuracy = nearest_accuracy(learned, y[train], held_out, y[test], zscore=True)
                    yield Result(method.name, accuracy, "accuracy", at)
                if "k-means" in settings["evaluators"]:
                    seed = unit.seed("k-means", unit.part)
                    found = kmeans_labels(held_out, n_classes, n_init=settings["n_init"], seed=seed)
                    yield Result(method.name, normalized_rand_score(y[test], found), "balanced rand", at)


def purity(unit: Unit) -> Iterator[Result]:
    """Learn from a share of all pairs of all rows, and look at the neighbours of these rows."""
    X, y = unit.X, unit.y
    share = unit.data.params["share"]
    pairs = Constraints.from_labels(y, fraction=share, random_state=unit.seed("pairs"))
    for method in unit.methods:
        for _, mean, directions in linear_maps(method, X, pairs, [unit.settings["dim"]], each=False):
            shares = cumulative_purity((X - mean) @ directions, y, max(unit.settings["neighbors"]))
            for k in unit.settings["neighbors"]:
                yield Result(method.name, float(shares[k - 1]), "purity", {"k": k})
