"""Sums of regression trees with a vector in each leaf, grown one at a time, from either of two libraries.

Both grow the same trees: splits by the variance of the targets, the mean in each leaf. scikit-learn searches every
threshold and has nothing to set up, which wins on few rows; XGBoost works on histograms, which wins on many.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from pairlens._optional import require
from pairlens.engines import Float64


@dataclass(frozen=True)
class TreeOptions:
    """How trees are grown."""

    max_depth: int
    learning_rate: float
    min_samples_leaf: int
    n_jobs: int | None
    seed: int


ORDINARY = 1e30
"""Both libraries compare in 32 bits: features whose largest value is above this, or below its inverse, are rescaled."""


def units_of(X: Float64) -> Float64 | None:
    """Return factors that bring features into the range of 32-bit numbers; None if they are there already.

    Powers of two, which change no digit. Trees split by the order of values, which stays.
    """
    largest = np.abs(X).max(axis=0, initial=0.0)
    odd = (largest > ORDINARY) | ((largest > 0) & (largest < 1 / ORDINARY))
    return np.where(odd, np.ldexp(1.0, -np.frexp(largest)[1]), 1.0) if odd.any() else None


def comparable(X: Float64, units: Float64 | None) -> Float64:
    """Return a copy of rows in the range of 32-bit numbers; what lies beyond stays on the same side of all splits."""
    rows = np.array(X, dtype=np.float64) if units is None else X * units
    return np.clip(rows, -ORDINARY, ORDINARY, out=rows)


class Trees(Protocol):
    """A growing sum of trees over rows of X."""

    def grow(self, targets: Float64) -> None:
        """Add a tree that is fitted to targets, of shape (n_rows, d), for the rows it was made with."""

    def last(self, X: Float64) -> Float64:
        """What the last tree adds to other rows."""

    def predict(self, X: Float64) -> Float64:
        """The whole sum."""

    def without_rows(self) -> Trees:
        """The same sum, which cannot grow any more and holds no training rows."""


@dataclass
class SklearnTrees:
    """Trees of scikit-learn."""

    X: Float64 | None
    n_outputs: int
    options: TreeOptions
    trees: list[Any] = field(default_factory=list)
    units: Float64 | None = None

    def __post_init__(self) -> None:
        if self.X is not None:
            self.units = units_of(self.X)
            self.X = comparable(self.X, self.units)

    def grow(self, targets: Float64) -> None:
        """Add a tree."""
        from sklearn.tree import DecisionTreeRegressor

        options = self.options
        tree = DecisionTreeRegressor(
            max_depth=options.max_depth,
            min_samples_leaf=options.min_samples_leaf,
            random_state=options.seed + len(self.trees),
        )
        self.trees.append(tree.fit(self.X, targets))

    def last(self, X: Float64) -> Float64:
        """What the last tree adds."""
        return self.options.learning_rate * self.trees[-1].predict(comparable(X, self.units)).reshape(
            len(X), self.n_outputs
        )

    def predict(self, X: Float64) -> Float64:
        """The whole sum."""
        total = np.zeros((len(X), self.n_outputs))
        if len(X) == 0:  # an empty chunk, which scikit-learn would refuse
            return total
        rows = comparable(X, self.units)
        for tree in self.trees:
            total += tree.predict(rows).reshape(total.shape)
        return self.options.learning_rate * total

    def without_rows(self) -> Trees:
        """The same sum without the training rows."""
        return SklearnTrees(None, self.n_outputs, self.options, self.trees, self.units)


class XGBoostTrees:
    """Trees of XGBoost with vector leaves.

    The second derivative is 1 for each row, so that a leaf holds the mean of its targets and min_child_weight is the
    number of rows in it. XGBoost ignores that limit where leaves hold more than one number, so the number of leaves is
    limited too: a leaf can be smaller, the average leaf cannot.
    """

    units: Float64 | None = None

    def __init__(self, X: Float64, n_outputs: int, options: TreeOptions) -> None:
        xgboost = require("xgboost", extra="boost", purpose='GBWSDR(backend="xgboost")')
        self.n_outputs = n_outputs
        self.units = units_of(X)
        self._rows: Any = xgboost.DMatrix(comparable(X, self.units), label=np.zeros((len(X), n_outputs)))
        self._booster = xgboost.Booster(
            {
                "multi_strategy": "multi_output_tree",
                "tree_method": "hist",
                "max_depth": options.max_depth,
                "max_leaves": max(2, len(X) // options.min_samples_leaf),
                "learning_rate": options.learning_rate,
                "reg_lambda": 0.0,
                "min_child_weight": float(options.min_samples_leaf),
                "base_score": 0.0,
                "seed": options.seed,
                "verbosity": 1,
                **({} if options.n_jobs is None else {"nthread": options.n_jobs}),
            },
            [self._rows],
        )
        self._count = 0

    def grow(self, targets: Float64) -> None:
        """Add a tree."""
        self._booster.boost(self._rows, self._count, grad=-targets, hess=np.ones_like(targets))
        self._count += 1

    def last(self, X: Float64) -> Float64:
        """What the last tree adds."""
        return self._sum(X, self._count - 1)

    def predict(self, X: Float64) -> Float64:
        """The whole sum."""
        return self._sum(X, 0) if self._count else np.zeros((len(X), self.n_outputs))

    def without_rows(self) -> Trees:
        """The same sum without the training rows, which XGBoost cannot pickle."""
        finished = copy(self)
        finished._rows = None
        return finished

    def _sum(self, X: Float64, first: int) -> Float64:
        xgboost = require("xgboost", extra="boost", purpose='GBWSDR(backend="xgboost")')
        # XGBoost refuses arrays that begin at odd addresses, as those that came over the network may; these are new.
        rows = xgboost.DMatrix(comparable(X, self.units))
        margins = self._booster.predict(rows, output_margin=True, iteration_range=(first, self._count))
        return margins.reshape(len(X), self.n_outputs).astype(np.float64)
