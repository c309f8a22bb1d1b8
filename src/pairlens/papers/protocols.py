"""What the protocols of several papers share: folds, views in many dimensions from one fit, and scores of a view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pairlens.methods.base import LinearPairTransformer
from pairlens.papers.experiment import Array, Codes, Method, Unit
from pairlens.supervision import Constraints

__all__ = ["SharedFits", "fold", "kmeans_labels", "leading", "nearest_accuracy"]


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


def leading(Z: Array, dims: Iterable[int]) -> Iterator[tuple[int, Array]]:
    """The leading columns, for methods whose directions do not depend on how many are kept."""
    for d in dims:
        yield d, Z[:, :d]


class SharedFits:
    """Linear maps of several methods for several dimensions, learned from the same rows and pairs.

    Coordinates and scatters are the larger part of a fit. They do not depend on how many directions are kept, and BWDR
    and WBDR have the same; so they are computed once. The eigenproblem is solved once for the largest dimension, or
    once for each where a method asks for it.
    """

    def __init__(self, X: Array, known: Constraints) -> None:
        self.X, self.known = X, known
        self._scatters: dict[Any, Any] = {}

    def maps(self, method: Method, dims: Iterable[int], *, each: bool) -> Iterator[tuple[int, Array, Array]]:
        """For each dimension that the features allow: the dimension, the mean, and the directions in columns."""
        possible = [d for d in dims if d <= self.X.shape[1]]
        if each:
            for d in possible:
                yield d, *self._map(method, d)
        else:
            mean, directions = self._map(method, max(possible))
            for d, part in leading(directions, possible):
                yield d, mean, part

    def _map(self, method: Method, d: int) -> tuple[Array, Array]:
        model = method.build(n_components=d)
        if not isinstance(model, LinearPairTransformer):
            fitted = model.fit(self.X)
            return fitted.mean_, fitted.components_.T
        space, scatters, mean = self._scatters_of(model)
        _, directions = model._solve(*(scatter.copy() for scatter in scatters))
        model.mean_ = mean
        model._keep(space, directions, self.X)
        return mean, model.components_.T

    def _scatters_of(self, model: LinearPairTransformer) -> tuple[Any, Any, Array]:
        solved_by = {"n_components", "threshold"}
        params = {key: value for key, value in model.get_params().items() if key not in solved_by}
        key = (type(model)._scatters, type(model)._rows_used, repr(sorted(params.items())))
        if key not in self._scatters:
            space, local = model._fit_coordinates(self.X, self.known)
            self._scatters[key] = space, model._scatters(space, local), model.mean_
        return self._scatters[key]
