"""What the protocols of several papers share: folds, views in many dimensions from one fit, and scores of a view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from inspect import signature

import numpy as np

from pairlens.supervision import Constraints
from reproduction.experiment import Array, Codes, Method, Unit


def fold(unit: Unit, n_folds: int, y: Codes) -> tuple[Codes, Codes]:
    """Rows to train on and rows held out, in the fold that is this part of the run."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(n_folds, shuffle=True, random_state=unit.seed("folds"))
    train, test = list(folds.split(np.zeros(len(y)), y))[unit.part]
    return train, test


def kmeans_labels(Z: Array, n_clusters: int, *, n_init: int, seed: int, init: str = "random") -> Codes:
    """Clusters of the rows by k-means, the best of some starts."""
    from sklearn.cluster import KMeans

    labels: Codes = KMeans(n_clusters, init=init, n_init=n_init, random_state=seed).fit_predict(Z)
    return labels


def nearest_accuracy(train: Array, y_train: Codes, test: Array, y_test: Codes, *, zscore: bool) -> float:
    """Accuracy of the nearest training row; `zscore` gives all coordinates the same spread over the training rows."""
    from sklearn.neighbors import KNeighborsClassifier

    if zscore:
        spread = train.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        train, test = train / scale, test / scale
    return float(KNeighborsClassifier(1).fit(train, y_train).score(test, y_test))


def linear_maps(
    method: Method, X: Array, pairs: Constraints, dims: Iterable[int], *, each: bool
) -> Iterator[tuple[int, Array, Array]]:
    """Linear maps for each dimension that the features allow: the dimension, the mean, and the directions in columns.

    Fitted for each dimension, or once for the largest, of which the leading directions are taken.
    """
    possible = [d for d in dims if d <= X.shape[1]]
    for fitted_for in possible if each else [max(possible)]:
        model = method.build(n_components=fitted_for)
        takes_pairs = "constraints" in signature(model.fit).parameters
        model = model.fit(X, constraints=pairs) if takes_pairs else model.fit(X)
        for d in [fitted_for] if each else possible:
            yield d, model.mean_, model.components_[:d].T
