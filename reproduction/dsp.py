"""The protocols of the journal paper of DSP and SKK-means; ``dsp.toml`` has the experiments."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.metrics import adjusted_rand_score, rand_score

from pairlens.kernels import delta_to_gamma
from pairlens.methods.locality import LPP
from pairlens.spectral.rowspace import Matrix, Pencil, attract_whitened
from pairlens.supervision import Constraints
from reproduction.experiment import Array, Codes, Method, Result, Unit
from reproduction.protocols import fold, kmeans_labels
from reproduction.scores import pairwise_f_score

SCORES = {"F": pairwise_f_score, "Rand": rand_score, "ARI": adjusted_rand_score}


class _ScaledLPP(LPP):
    """LPP with 0/1 weights and directions scaled so that w' A w = 1, the reading that fits the paper's column best."""

    def __init__(self, n_components: int = 2) -> None:
        # A width beyond all distances makes every weight of the heat kernel 1.
        super().__init__(n_components, gamma=1e-12)

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        return attract_whitened(attract, repel, k)


def clustered(unit: Unit) -> Iterator[Result]:
    """Learn a view of all rows from p pairs, cluster it, and compare the clusters with the classes."""
    X, y = unit.X, unit.y
    for per_class in (0, *unit.settings["pairs"]):
        known = _pairs(unit, y, per_class) if per_class else None
        for method in unit.methods:
            if (method.name in unit.settings["unsupervised"]) == (known is None):
                at = {"pairs": per_class} if per_class else {}
                model = _fit(_model(unit, method), X, known)
                labels = model.labels_ if isinstance(model, ClusterMixin) else _kmeans(unit, model.transform(X))
                if model.get_params().get("gamma") == "search":
                    yield Result(method.name, (0.5 / model.gamma_) ** 0.5, "delta", at)
                yield from _scores(method.name, y, labels, at)
    yield from _scores("one cluster", y, np.zeros_like(y), {})


def generalised(unit: Unit) -> Iterator[Result]:
    """Learn from p pairs of four folds, and cluster the fifth in the view."""
    X, y = unit.X, unit.y
    train, test = fold(unit, unit.settings["folds"], y)
    known = _pairs(unit, y[train], unit.settings["pairs"])
    yield from _scores("full feature", y[test], _kmeans(unit, X[test]), {})
    for method in unit.methods:
        for name, changes in {"": {}, **unit.data.params["variants"]}.items():
            model = _model(unit, method, **changes)
            Z = model.fit(X[train], constraints=known).transform(X[test])
            yield Result(method.name + name, (0.5 / model.gamma_) ** 0.5, "delta")
            yield from _scores(method.name + name, y[test], _kmeans(unit, Z), {})


def over_dimensions(unit: Unit) -> Iterator[Result]:
    """Learn a view from p pairs, where p belongs to the part, and cluster its leading dimensions."""
    X, y = unit.X, unit.y
    per_class = unit.settings["pairs"][unit.part]
    known = _pairs(unit, y, per_class)
    dims = [d for d in unit.settings["dims"] if d <= X.shape[1]]
    for method in unit.methods:
        unsupervised = method.name in unit.settings["unsupervised"]
        if unsupervised and unit.part > 0:
            continue
        model = _model(unit, method).set_params(n_components=max(dims))
        Z = _fit(model, X, None if unsupervised else known).transform(X)
        for d in dims:
            if d <= Z.shape[1]:
                at = {"dim": d} if unsupervised else {"dim": d, "pairs": per_class}
                yield Result(method.name, 1 - pairwise_f_score(y, _kmeans(unit, Z[:, :d])), "error", at)


def timed(unit: Unit) -> Iterator[Result]:
    """CPU seconds to learn from a fifth of the rows and to reduce all; for methods that learn online, to do both."""
    X, y = unit.X, unit.y
    part = np.sort(np.random.default_rng(unit.seed("rows")).choice(len(y), len(y) // 5, replace=False))
    for method in unit.methods:
        online = method.name in unit.settings["learn_online"]
        rows = slice(None) if online else part
        known = None if method.name in unit.settings["unsupervised"] else _pairs(unit, y[rows], unit.settings["pairs"])
        start = time.process_time()
        model = _fit(_model(unit, method), X[rows], known)
        learned = time.process_time()
        model.transform(X)
        done = time.process_time()
        if not online:
            yield Result(method.name, learned - start, "training")
        yield Result(method.name, done - (start if online else learned), "online")


def growing(unit: Unit) -> Iterator[Result]:
    """CPU seconds to learn from more and more rows, with as many pairs each time."""
    X, y = unit.X, unit.y
    order = np.random.default_rng(unit.seed("rows")).permutation(len(y))
    for n in unit.settings["rows"]:
        rows = np.sort(order[:n])
        known = _pairs(unit, y[rows], unit.settings["pairs"])
        for method in unit.methods:
            start = time.process_time()
            _fit(_model(unit, method), X[rows], None if method.name in unit.settings["unsupervised"] else known)
            yield Result(method.name, time.process_time() - start, "seconds", {"n": n})


def _pairs(unit: Unit, y: Codes, per_class: int) -> Constraints:
    return Constraints.from_labels(y, per_class=per_class, random_state=unit.seed("pairs", unit.part, per_class))


def _kmeans(unit: Unit, Z: Array) -> Codes:
    n_clusters = int(unit.y.max()) + 1
    return kmeans_labels(Z, n_clusters, n_init=unit.settings["n_init"], seed=unit.seed("k-means", unit.part))


def _scores(method: str, y: Codes, labels: Codes, at: dict[str, Any]) -> Iterator[Result]:
    for measure, score in SCORES.items():
        yield Result(method, float(score(y, labels)), measure, at)


def _model(unit: Unit, method: Method, **changes: Any) -> Any:
    """The estimator with what the data set decides: dimensions, width of the kernel, clusters; and with the seed.

    `changes` replace what the data set decides, or are other parameters of the estimator.
    """
    params, model = {**unit.data.params, **changes}, method.build()
    delta = params["delta"]
    decided = {
        "n_components": params["dims"],
        "gamma": delta if isinstance(delta, str) else delta_to_gamma(delta),
        "n_clusters": int(unit.y.max()) + 1,
        "random_state": unit.seed("method"),
        "verbose": 0,
        **{key: value for key, value in changes.items() if key not in unit.data.params},
    }
    known = model.get_params()
    return model.set_params(
        **{key: value for key, value in decided.items() if key in known and key not in method.params}
    )


def _fit(model: Any, X: Array, known: Constraints | None) -> Any:
    return model.fit(X) if known is None else model.fit(X, constraints=known)
