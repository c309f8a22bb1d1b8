"""The protocols of the paper of WSDR and GB-WSDR; ``wsdr.toml`` has the experiments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from inspect import signature
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens.metrics import cumulative_purity, mean_average_precision, pairwise_accuracy
from pairlens.preference.objective import Pairs
from pairlens.preference.ranksvm import RankSVM, embedded_ranking
from pairlens.supervision import Preferences
from reproduction.experiment import Array, Codes, Result, Unit
from reproduction.prepare import loaded


def all_features(n_components: int, **params: Any) -> RankSVM:  # noqa: ARG001
    """A ranking without a view: a control that the paper lacks."""
    return RankSVM(**params)


def components_then_ranking(n_components: int, **params: Any) -> Pipeline:
    """Principal components and a ranking with its own C: the other control."""
    return make_pipeline(PCA(n_components, svd_solver="full"), RankSVM(**params))


def rank_accuracy(model: Any, X: Array, levels: Codes, X_test: Array, test: Preferences) -> float:
    """Pairwise accuracy in per cent on held-out rows; views that bring no ranking get a RankSVM with C = 10."""
    model.fit(X, levels)
    if hasattr(model, "decision_function"):
        return 100 * pairwise_accuracy(model.decision_function(X_test), test)
    return 100 * pairwise_accuracy(model.transform(X_test) @ _weights(model.transform(X), levels), test)


def _weights(Z: Array, levels: Codes) -> Array:
    return embedded_ranking(Z, Pairs.of(Preferences.from_scores(levels).pairs, len(Z)))


def ranking(unit: Unit) -> Iterator[Result]:
    """One fold of Table 2: targets as levels of equal frequency, every pair of different levels a preference."""
    X, levels = unit.X, binned(unit.y, unit.data.params["levels"])
    train, test = _fold(unit, len(X))
    scaler = StandardScaler().fit(X[train])
    yield from _measured(
        unit, scaler.transform(X[train]), levels[train], scaler.transform(X[test]), levels[test], unit.settings["dims"]
    )


def binned(y: Array, n_levels: int) -> Codes:
    """Targets cut into levels of equal frequency."""
    edges = np.quantile(y, np.linspace(0, 1, n_levels + 1)[1:-1])
    return np.searchsorted(edges, y, side="left").astype(np.int64)


def _fold(unit: Unit, n: int) -> tuple[Codes, Codes]:
    # Splits 1, 2, ... as in the measurements of the specification, which numbers compare with.
    folds = KFold(5, shuffle=True, random_state=unit.run + 1)
    train, test = list(folds.split(np.zeros(n)))[unit.part]
    return train, test


def _measured(
    unit: Unit, X: Array, levels: Codes, X_test: Array, levels_test: Codes, dims: Iterable[int], **at: int
) -> Iterator[Result]:
    """Held-out accuracy of every method in every dimension; without held-out preferences there is nothing to say."""
    held_out = Preferences.from_scores(levels_test)
    if not held_out.n_pairs or len(np.unique(levels)) < 2:
        return
    for method in unit.methods:
        accuracy = float("nan")
        for place, d in enumerate(dims):
            if place == 0 or method.make is not all_features:
                accuracy = rank_accuracy(method.build(n_components=d), X, levels, X_test, held_out)
            yield Result(method.name, accuracy, "accuracy", {**at, "d": d})


def films(unit: Unit) -> Iterator[Result]:
    """One person: learn from 70 % of the films that they rated; features are the ratings of the most active people."""
    settings = unit.settings
    user, film, rating = numbered(unit.data.source or unit.data.name)
    count = np.bincount(user)
    low, high = settings["ratings"]
    people = np.random.default_rng(unit.experiment.seed).permutation(np.flatnonzero((count >= low) & (count <= high)))
    person = people[unit.part]
    seen, own = film[user == person], rating[user == person]
    train, test = train_test_split(np.arange(len(seen)), test_size=0.3, random_state=unit.seed("split", unit.part))
    for D in settings["reference"]:
        features = film_features(unit.data.source or unit.data.name, D)
        scaler = StandardScaler().fit(features[seen[train]])
        X, X_test = scaler.transform(features[seen[train]]), scaler.transform(features[seen[test]])
        yield from _measured(unit, X, own[train], X_test, own[test], settings["dims"], D=D)


def books(unit: Unit) -> Iterator[Result]:
    """One reader in turn: learn from 70 % of the books that they rated; features are the ratings of all the others."""
    features, rated, own = reader(unit.bunch, unit.part)
    if len(rated) < unit.settings["fewest"]:
        return
    train, test = train_test_split(np.arange(len(rated)), test_size=0.3, random_state=unit.seed("split", unit.part))
    scaler = StandardScaler().fit(features[rated[train]])
    X, X_test = scaler.transform(features[rated[train]]), scaler.transform(features[rated[test]])
    yield from _measured(unit, X, own[train], X_test, own[test], unit.settings["dims"])


def toys(unit: Unit) -> Iterator[Result]:
    """Views in two dimensions, with every row, and how well they suit a ranking."""
    X, levels = unit.X, _levels(unit)
    rows = np.flatnonzero(levels >= 0)
    if count := unit.data.params.get("of_each"):
        rng = np.random.default_rng(unit.seed("rows"))
        rows = np.concatenate(
            [rng.choice(np.flatnonzero(levels == c), count, replace=False) for c in np.unique(levels[rows])]
        )
    scaler = StandardScaler().fit(X[rows])
    Z_in, y = scaler.transform(X[rows]), levels[rows]
    pairs = Preferences.from_scores(y)
    for method in unit.methods:
        Z = np.asarray(method.build(n_components=2).fit(Z_in, y).transform(Z_in))
        steps = Z[pairs.pairs[:, 0]] - Z[pairs.pairs[:, 1]]
        length = np.linalg.norm(steps, axis=1, keepdims=True)
        directions = np.divide(steps, length, out=np.zeros_like(steps), where=length > 0)
        yield Result(method.name, float(np.sum(directions.mean(axis=0) ** 2)), "mean cosine")
        yield Result(method.name, 100 * pairwise_accuracy(Z @ _weights(Z, y), pairs), "ranking")
        yield Result(method.name, 100 * float(cumulative_purity(Z, y, 1)[0]), "1-NN")
        if unit.run == 0:
            for i, (row, level) in enumerate(zip(Z, y)):
                for axis, value in zip("xy", row):
                    yield Result(method.name, float(value), axis, {"row": i, "level": int(level)})


def clicks(unit: Unit) -> Iterator[Result]:
    """Pictures as queries: learn from noisy clicks which candidates fit, and rank those of new queries.

    A query is a picture, its candidates are others, half of them of the same class, and the features of a candidate are
    how much each pixel differs from the query's. Clicks are counts around one rate for the same class and around
    another for the rest. Learners of preferences see which candidate of a query has more clicks; the others see
    whether a candidate has more than a threshold, as in the paper. Held-out queries are judged by the classes.
    """
    settings, rng = unit.settings, np.random.default_rng(unit.seed("queries"))
    X, fits, counts, query = _candidates(unit.X, unit.y, settings, rng)
    learned = query < settings["queries"]
    scaler = StandardScaler().fit(X[learned])
    X, test = scaler.transform(X[learned]), scaler.transform(X[~learned])
    known = Preferences.from_scores(counts[learned], groups=query[learned])
    labels = (counts[learned] > settings["threshold"]).astype(np.int64)
    for method in unit.methods:
        for d in settings["dims"]:
            model = method.build(n_components=d)
            if "preferences" in signature(model.fit).parameters:
                model.fit(X, preferences=known)
            else:
                model.fit(X, labels)
            if hasattr(model, "decision_function"):
                scores = model.decision_function(test)
            else:
                scores = model.transform(test) @ embedded_ranking(model.transform(X), Pairs.of(known.pairs, len(X)))
            yield Result(method.name, mean_average_precision(fits[~learned], scores, query[~learned]), "mAP", {"d": d})


def _candidates(
    X: Array, y: Codes, settings: Mapping[str, Any], rng: np.random.Generator
) -> tuple[Array, Codes, Codes, Codes]:
    """Features of all candidates, whether they are of the query's class, their clicks, and the number of the query."""
    total, each = settings["queries"] + settings["new_queries"], settings["candidates"]
    features, fits = [], []
    for row in rng.choice(len(X), total, replace=False):
        same = rng.choice(np.flatnonzero((y == y[row]) & (np.arange(len(y)) != row)), each // 2, replace=False)
        other = rng.choice(np.flatnonzero(y != y[row]), each - each // 2, replace=False)
        rows = np.concatenate([same, other])
        features.append(np.abs(X[rows] - X[row]))
        fits.append(y[rows] == y[row])
    fit = np.concatenate(fits).astype(np.int64)
    counts = rng.poisson(np.where(fit == 1, *settings["rates"])).astype(np.int64)
    return np.concatenate(features), fit, counts, np.repeat(np.arange(total), each)


def _levels(unit: Unit) -> Codes:
    """The level of each class, the higher the better; -1 for rows that do not take part."""
    order = unit.data.params["worst_to_best"]
    levels = np.full(int(unit.y.max()) + 1, -1)
    levels[list(order)] = np.arange(len(order))
    return levels[unit.y]


def convergence(unit: Unit) -> Iterator[Result]:
    """The objective after each iteration (each tree), for one reader or one training fold."""
    if unit.data.params["readers"]:
        R = np.asarray(unit.bunch["R"])
        busiest = np.argsort(-np.sum(~np.isnan(R), axis=0), kind="stable")
        features, rated, levels = reader(unit.bunch, int(busiest[unit.run]))
        X = features[rated]
    else:
        train, _ = _fold(unit, len(unit.X))
        X, levels = unit.X[train], binned(unit.y, unit.data.params["levels"])[train]
    X = StandardScaler().fit_transform(X)
    for C in unit.settings["C"]:
        for method in unit.methods:
            curve = method.build(n_components=unit.settings["d"], C=C).fit(X, levels).loss_curve_
            for i in unit.settings["iterations"]:
                # A solver that has stopped stays where it is.
                value = curve[min(i, len(curve) - 1)]
                yield Result(method.name, float(value), "objective", {"C": C, "iteration": i})


# ------------------------------------------------------------------------------------------------------------ ratings


@lru_cache(maxsize=1)
def numbered(name: str) -> tuple[Codes, Codes, Codes]:
    """User and film of each rating, both numbered from 0, and the rating."""
    bunch = loaded(name)
    user, film = (np.unique(bunch[key], return_inverse=True)[1] for key in ("user", "item"))
    return user, film, np.asarray(bunch["rating"], dtype=np.int64)


@lru_cache(maxsize=4)
def film_features(name: str, n_reference: int) -> Array:
    """One row for each film, one column for each of the most active people, their median where they gave no rating."""
    user, film, rating = numbered(name)
    reference = np.argsort(-np.bincount(user), kind="stable")[:n_reference]
    column = np.full(user.max() + 1, -1)
    column[reference] = np.arange(n_reference)
    known = column[user] >= 0
    table = np.full((film.max() + 1, n_reference), np.nan)
    table[film[known], column[user[known]]] = rating[known]
    return np.where(np.isnan(table), np.nanmedian(table, axis=0), table)


def reader(bunch: Mapping[str, Any], reader: int) -> tuple[Array, Codes, Codes]:
    """Features of all books, which of them the reader rated, and how."""
    R = np.asarray(bunch["R"], dtype=np.float64)
    others = np.delete(R, reader, axis=1)
    others = others[:, ~np.isnan(others).all(axis=0)]
    rated = np.flatnonzero(~np.isnan(R[:, reader]))
    features = np.where(np.isnan(others), np.nanmedian(others, axis=0), others)
    return features, rated, R[rated, reader].astype(np.int64)
