"""Grow sums of regression trees with a vector in each leaf by either of two libraries, and keep them as arrays.

Both libraries grow the same trees: splits by the variance of the targets, the mean in each leaf. scikit-learn searches
every threshold and has nothing to set up, which wins on few rows; XGBoost works on histograms, which wins on many.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.engines import Float64, row_blocks

ORDINARY = 1e30
"""Both libraries compare in 32 bits: features whose largest value is above this, or below its inverse, are rescaled."""

BLOCK_BYTES = 1 << 20
"""Bytes of the rows that go through the trees at a time."""


class TreeOptions(NamedTuple):
    """Hold how trees are grown."""

    max_depth: int
    learning_rate: float
    min_samples_leaf: int
    n_jobs: int | None
    seed: int


def units_of(X: Float64) -> Float64 | None:
    """Return factors that bring features into the range of 32-bit numbers; None if they are there already.

    Powers of two, which change no digit. Trees split by the order of values, which stays.
    """
    largest = np.abs(X).max(axis=0, initial=0.0)
    extreme = (largest > ORDINARY) | ((largest > 0) & (largest < 1 / ORDINARY))
    return np.where(extreme, np.ldexp(1.0, -np.frexp(largest)[1]), 1.0) if extreme.any() else None


def comparable(X: Float64, units: Float64 | None) -> Float64:
    """Return a copy of rows in the range of 32-bit numbers; what lies beyond stays on the same side of all splits."""
    rows = np.array(X, dtype=np.float64) if units is None else X * units
    return np.clip(rows, -ORDINARY, ORDINARY, out=rows)


@dataclass(frozen=True)
class TreeSum:
    """Hold a sum of trees as arrays, the nodes of one tree after those of another, from their roots.

    A row goes from a node to the second child if its feature, times its unit and in 32 bits, is above the threshold,
    else to the first: always to a later node, but a leaf leads to itself and adds its value.
    """

    roots: NDArray[Any]
    children: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    value: NDArray[Any]
    units: Float64 | None

    @classmethod
    def empty(cls, n_outputs: int) -> TreeSum:
        """Return the sum of no trees."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, np.empty((0, 2), dtype=np.int64), none, np.empty(0), np.empty((0, n_outputs)), None)

    @classmethod
    def of(cls, trees: list[tuple[Any, Any, Any, Any]], units: Float64 | None) -> TreeSum:
        """Join trees, each of children (negative for leaves), features, thresholds and values."""
        sizes = np.array([len(tree[0]) for tree in trees])
        roots = np.cumsum(sizes) - sizes
        children, feature, threshold, value = (np.concatenate(parts) for parts in zip(*trees))
        is_leaf = children[:, 0] < 0
        children = np.where(
            is_leaf[:, None], np.arange(len(children))[:, None], children + np.repeat(roots, sizes)[:, None]
        )
        return cls(roots, children, np.where(is_leaf, 0, feature), threshold, value, units)

    def predict(self, X: Float64) -> Float64:
        """Return the sum of the trees for each row, of shape (n_rows, n_outputs)."""
        total = np.zeros((len(X), self.value.shape[1]), dtype=self.value.dtype)
        children = self.children.ravel()
        for block in row_blocks(len(X), 8 * X.shape[1], BLOCK_BYTES):
            rows = comparable(X[block], self.units).astype(np.float32)
            cells, start = rows.ravel(), np.arange(len(rows)) * rows.shape[1]
            for root in self.roots:
                node, before = np.full(len(rows), root), None
                while before is None or (node != before).any():
                    before = node
                    above = cells.take(start + self.feature.take(node)) > self.threshold.take(node)
                    node = children.take(2 * node + above)
                total[block] += self.value[node]
        return total.astype(np.float64)

    def check(self, n_features: int, n_outputs: int) -> None:
        """Raise ValueError if a sum from a file does not fit a model, or if following its trees might never end."""
        count = len(self.children)
        shapes = [part.shape for part in (self.children, self.feature, self.threshold, self.value)]
        if shapes != [(count, 2), (count,), (count,), (count, n_outputs)] or self.roots.ndim != 1:
            raise ValueError("the arrays of the trees differ in length")
        own = np.arange(count)[:, None]
        is_leaf = (self.children == own).all(axis=1, keepdims=True)
        if ((self.children >= count) | ((self.children <= own) & ~is_leaf)).any():
            raise ValueError("a tree has a child out of place")
        for name, part, limit in (("root", self.roots, count), ("feature", self.feature, n_features)):
            if part.dtype.kind != "i" or ((part < 0) | (part >= limit)).any():
                raise ValueError(f"a tree has a {name} out of range")
        if self.children.dtype.kind != "i" or (self.units is not None and self.units.shape != (n_features,)):
            raise ValueError("the trees do not fit the number of features")


class Growing(Protocol):
    """Grow a sum of trees over the rows that it was made with."""

    def grow(self, targets: Float64) -> None:
        """Add a tree that is fitted to targets, of shape (n_rows, n_outputs)."""

    def last(self, X: Float64) -> Float64:
        """Return what the last tree adds to other rows."""

    def finished(self) -> TreeSum:
        """Return the trees as arrays."""


class SklearnTrees:
    """Grow trees of scikit-learn."""

    def __init__(self, X: Float64, n_outputs: int, options: TreeOptions) -> None:
        self.n_outputs, self.options = n_outputs, options
        self.units = units_of(X)
        self._rows = comparable(X, self.units)
        self._trees: list[Any] = []

    def grow(self, targets: Float64) -> None:
        """Add a tree."""
        from sklearn.tree import DecisionTreeRegressor

        tree = DecisionTreeRegressor(
            max_depth=self.options.max_depth,
            min_samples_leaf=self.options.min_samples_leaf,
            random_state=self.options.seed + len(self._trees),
        )
        self._trees.append(tree.fit(self._rows, targets))

    def last(self, X: Float64) -> Float64:
        """Return what the last tree adds."""
        added = self._trees[-1].predict(comparable(X, self.units))
        return self.options.learning_rate * added.reshape(len(X), self.n_outputs)

    def finished(self) -> TreeSum:
        """Return the trees as arrays."""
        if not self._trees:
            return TreeSum.empty(self.n_outputs)
        grown = [tree.tree_ for tree in self._trees]
        rate = self.options.learning_rate
        sides = [np.column_stack([tree.children_left, tree.children_right]) for tree in grown]
        parts = [
            (side, t.feature, _rounded_down(t.threshold), rate * t.value[:, :, 0]) for side, t in zip(sides, grown)
        ]
        return TreeSum.of(parts, self.units)


class XGBoostTrees:
    """Grow trees of XGBoost with vector leaves.

    The second derivative is 1 for each row, so that a leaf holds the mean of its targets and min_child_weight is the
    number of rows in it. XGBoost ignores that limit where leaves hold more than one number, so the number of leaves is
    limited too: a leaf can be smaller, the average leaf cannot.
    """

    def __init__(self, X: Float64, n_outputs: int, options: TreeOptions) -> None:
        self._xgboost = require("xgboost", extra="boost", purpose='GBWSDR(backend="xgboost")')
        self.n_outputs = n_outputs
        self.units = units_of(X)
        self._rows: Any = self._xgboost.DMatrix(comparable(X, self.units), label=np.zeros((len(X), n_outputs)))
        self._booster = self._xgboost.Booster(
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
        """Return what the last tree adds."""
        rows = self._xgboost.DMatrix(comparable(X, self.units))
        last = (self._count - 1, self._count)
        margins = self._booster.predict(rows, output_margin=True, iteration_range=last)
        return margins.reshape(len(X), self.n_outputs).astype(np.float64)

    def finished(self) -> TreeSum:
        """Return the trees as arrays; values stay 32-bit numbers, which XGBoost sums as such."""
        if not self._count:
            return TreeSum.empty(self.n_outputs)
        model = json.loads(bytes(self._booster.save_raw("json")))
        parts = []
        for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
            sides = np.column_stack([tree["left_children"], tree["right_children"]])
            # Rows go to the left below the condition, not at it. Some versions number the leaves by their right side.
            sides[sides[:, 0] < 0] = -1
            condition = np.array(tree["split_conditions"], dtype=np.float32)
            value = np.array(tree["base_weights"], dtype=np.float32).reshape(-1, self.n_outputs)
            parts.append((sides, np.array(tree["split_indices"]), np.nextafter(condition, np.float32(-np.inf)), value))
        return TreeSum.of(parts, self.units)


def _rounded_down(threshold: Float64) -> NDArray[np.float32]:
    """Return the largest 32-bit numbers that are not above: 32-bit numbers lie on the same side of both."""
    nearest = threshold.astype(np.float32)
    return np.where(nearest > threshold, np.nextafter(nearest, np.float32(-np.inf)), nearest)
