"""GBWSDR: a nonlinear view from preferences, by boosted trees of either of two libraries.

Both libraries grow the same trees: splits by the variance of the targets, the mean in each leaf. scikit-learn searches
every threshold and has nothing to set up, which wins on few rows; XGBoost works on histograms, which wins on many.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pairlens._optional import require
from pairlens._sklearn import AUTO, COUNT, POSITIVE, Interval, StrOptions, estimator, parameter
from pairlens.engines import Float64, Rows, checked_rows, fitting_threads, is_dask, map_rows, project, row_blocks
from pairlens.exceptions import MissingExtraError
from pairlens.preference._base import MarginTransformer
from pairlens.preference.objective import Objective, Pairs
from pairlens.preference.ranksvm import accuracy, embedded_ranking, folds
from pairlens.preference.wsdr import LinearProblem, solve_lbfgs, starting_map
from pairlens.spectral.rowspace import RowSpace, fix_signs
from pairlens.supervision import Preferences

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


class SklearnTrees:
    """Grow a sum of trees of scikit-learn over the rows that it was made with."""

    def __init__(self, X: Float64, n_outputs: int, options: TreeOptions) -> None:
        self.n_outputs, self.options = n_outputs, options
        self.units = units_of(X)
        self._rows = comparable(X, self.units)
        self._trees: list[Any] = []

    def grow(self, targets: Float64) -> None:
        """Add a tree that is fitted to targets, of shape (n_rows, n_outputs)."""
        from sklearn.tree import DecisionTreeRegressor

        tree = DecisionTreeRegressor(
            max_depth=self.options.max_depth,
            min_samples_leaf=self.options.min_samples_leaf,
            random_state=self.options.seed + len(self._trees),
        )
        self._trees.append(tree.fit(self._rows, targets))

    def last(self, X: Float64) -> Float64:
        """Return what the last tree adds to other rows."""
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
    """Grow trees of XGBoost with vector leaves, as :class:`SklearnTrees`.

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
        self._booster.boost(self._rows, self._count, grad=-targets, hess=np.ones_like(targets))
        self._count += 1

    def last(self, X: Float64) -> Float64:
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


XGBOOST_ROWS = 10_000
"""From this many rows on, XGBoost is the faster of the two tree libraries."""

LINEAR_ITERATIONS = 40
LINEAR_REG = 0.1
"""Iterations and ridge of the linear view that ``init="wsdr"`` starts from, the defaults of WSDR."""


@estimator
class GBWSDR(MarginTransformer):
    r"""Large-margin weakly supervised dimensionality reduction with boosted trees.

    Minimises the objective of :class:`WSDR` over functions :math:`\varphi = \varphi_0 + \alpha \sum_t h_t`: each
    :math:`h_t` is a regression tree with a vector in each leaf, fitted to the negative gradient
    :math:`-\partial J / \partial \varphi(x_i)`, and :math:`\varphi_0` is a linear view.

    Choose it when what is better depends on thresholds and combinations of features, and there are enough preferences
    to afford it. It fits the given preferences ever more closely, so the number of trees decides: leave it to
    ``n_estimators="auto"``. On the paper's data it ranks better than the linear methods on one set of three only.

    Parameters
    ----------
    n_estimators : int or "auto", default="auto"
        Number of trees. "auto" grows trees while the pairwise accuracy on held-out preferences improves, as the mean
        of `cv` folds in which rows are held out, and then fits the best number to all; none at all may be best, and
        then the view is the linear one.
    max_depth : int, default=4
        Depth of the trees.
    learning_rate : float, default=0.1
        Step :math:`\alpha`.
    min_samples_leaf : int, default=5
        Fewest rows in a leaf. XGBoost ignores such a limit for two dimensions and more; there, leaves hold at least
        this many rows on average.
    C : float, default=1.0
        Weight of the angles; see :class:`WSDR`, which can choose it.
    init : {"pca", "wsdr"}, default="pca"
        The linear view :math:`\varphi_0`.
    backend : {"auto", "sklearn", "xgboost"}, default="auto"
        Whose trees. "auto" takes XGBoost (``pip install 'pairlens[boost]'``) from 10,000 rows in preferences on, if it
        is installed.
    max_trees : int, default=200
        Most trees that "auto" tries.
    n_iter_no_change : int, default=15
        "auto" stops after this many trees without a better accuracy.
    cv : int, default=3
        Number of folds of "auto".
    n_jobs : int or None, default=None
        Threads of XGBoost; its own choice if None.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The linear view that the trees add to.
    n_estimators_ : int
        Number of trees.
    backend_ : str
        The tree library used.
    loss_curve_ : list of float
        The objective at the start and after each tree.
    validation_curve_ : list of float
        Mean held-out pairwise accuracy after 0, 1, 2, ... trees; for "auto" only.

    See Also
    --------
    WSDR : The linear view.

    Notes
    -----
    The two libraries grow the same trees where `min_samples_leaf` is 1 and no feature has more than 256 distinct
    values. Trees are grown on the rows that occur in preferences. Without preferences the result is that of PCA.

    A dask array is collected up to the setting `gather_bytes`, and refused beyond; `transform` of one is lazy.

    References
    ----------
    .. [1] Chang Xu, Dacheng Tao, Chao Xu, Yong Rui, "Large-margin weakly supervised dimensionality reduction",
       ICML 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pairlens import GBWSDR, Preferences
    >>> X, y = load_diabetes(return_X_y=True)
    >>> worse = Preferences.from_scores(y, n_pairs=2000, random_state=0)
    >>> view = GBWSDR(n_components=2, n_estimators=20, random_state=0).fit(X, preferences=worse)
    >>> view.transform(X).shape
    (442, 2)
    >>> bool(view.score(X, y) > 0.75)
    True
    """

    n_estimators: int | str = parameter(Interval(Integral, 0, None, closed="left"), AUTO, default="auto")
    max_depth: int = parameter(COUNT, default=4)
    learning_rate: float = parameter(POSITIVE, default=0.1)
    min_samples_leaf: int = parameter(COUNT, default=5)
    init: str = parameter(StrOptions({"pca", "wsdr"}), default="pca")
    backend: str = parameter(StrOptions({"auto", "sklearn", "xgboost"}), default="auto")
    max_trees: int = parameter(COUNT, default=200)
    n_iter_no_change: int = parameter(COUNT, default=15)
    cv: int = parameter(default=3)
    n_jobs: int | None = parameter(Interval(Integral, None, None, closed="neither"), None, default=None)

    def _learn(self, rows: Rows, known: Preferences, rng: np.random.Generator) -> None:
        space, directions = self._start(rows, known)
        self.backend_ = self._choose_backend(len(known.rows))
        if known.n_pairs == 0:
            self._keep_principal(space, directions, rows)
            self._trees = TreeSum.empty(len(directions))
            self.n_estimators_ = 0
            return
        objective, boosting = self._prepare(rows, known, space, directions, rng)
        with fitting_threads(len(known.rows) * rows.shape[1] * len(directions)):
            count = self._search(objective, boosting, rng) if self.n_estimators == "auto" else int(self.n_estimators)
            final = boosting(objective)
            self.loss_curve_ = [*(final.step() for _ in range(count)), objective(final.Z)[0]]
            self.ranking_ = embedded_ranking(final.Z, objective.pairs)
        self.n_estimators_ = count
        self.components_ = space.lift(final.linear.T).astype(rows.dtype)
        self._trees = final.trees.finished()

    def _prepare(
        self, rows: Rows, known: Preferences, space: RowSpace, directions: Float64, rng: np.random.Generator
    ) -> tuple[Objective, Callable[[Objective], _Boosting]]:
        """Return the objective over the rows in preferences, and how trees grow for it or for a part of it."""
        objective, used = self._objective(rows, known, float(self.C))
        inside = rows[used].astype(np.float64)
        coordinates = np.asarray(space.rows[used], dtype=np.float64)
        seed = int(rng.integers(2**31 - 2**16))
        options = TreeOptions(self.max_depth, float(self.learning_rate), self.min_samples_leaf, self.n_jobs, seed)

        def boosting(part: Objective) -> _Boosting:
            linear = self._linear_view(part, coordinates, directions)
            offset = space.offset @ linear.T
            return _Boosting(part, inside, coordinates @ linear.T - offset, linear, self.backend_, options)

        return objective, boosting

    def _read(self, X: Any, *, fitting: bool) -> Rows:
        return checked_rows(self, X, fitting=fitting, accept_sparse=False, in_memory=fitting or not is_dask(X))

    def _choose_backend(self, n_used: int) -> str:
        """Return the library that grows the trees, for this number of rows in preferences."""
        if self.backend != "auto":
            return self.backend
        if n_used < XGBOOST_ROWS:
            return "sklearn"
        try:
            require("xgboost", extra="boost", purpose="GBWSDR")
        except MissingExtraError:
            return "sklearn"
        return "xgboost"

    def _linear_view(self, objective: Objective, rows: Float64, directions: Float64) -> Float64:
        linear = fix_signs(starting_map(directions, rows, objective))
        if self.init == "pca":
            return linear
        return solve_lbfgs(LinearProblem(rows, objective, LINEAR_REG), linear, LINEAR_ITERATIONS, 1e-8).L

    def _search(
        self,
        objective: Objective,
        boosting: Callable[[Objective], _Boosting],
        rng: np.random.Generator,
    ) -> int:
        """Return the number of trees with the best held-out accuracy, all folds growing side by side."""
        runs: list[Iterator[float]] = []
        for train, scored in folds(objective.pairs, self.cv, rng):
            part = objective.select(train)
            runs.append(boosting(part).held_out(objective.pairs.select(scored)))
        curve: list[float] = []
        for scores in zip(*runs):
            curve.append(float(np.mean(scores)))
            since_best = len(curve) - 1 - int(np.argmax(curve))
            if since_best >= self.n_iter_no_change or len(curve) > self.max_trees:
                break
        self.validation_curve_ = curve
        return int(np.argmax(curve))

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Map rows: the linear view plus what the trees add.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)

        Returns
        -------
        Z : array of shape (n_samples, n_components)
            A dask array, not computed yet, for a dask array or data frame.
        """
        check_is_fitted(self)
        rows: Rows = self._read(X, fitting=False)
        view: NDArray[Any] = map_rows(
            rows, partial(_boosted_view, self.mean_, self.components_, self._trees), self._n_features_out
        )
        return view


def _boosted_view(mean: NDArray[Any], linear: NDArray[Any], trees: TreeSum, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the linear view of rows in memory, and what the trees add."""
    return np.asarray(project(rows, mean, linear) + trees.predict(rows))


@dataclass
class _Boosting:
    """Grow trees down the gradient of an objective, and keep the view they have reached for all its rows."""

    objective: Objective
    rows: Float64
    Z: Float64
    linear: Float64
    backend: str
    options: TreeOptions

    def __post_init__(self) -> None:
        # Only rows of training pairs have a gradient; the others would pull leaves towards zero.
        self._trained = np.unique(self.objective.pairs.rows)
        kind = XGBoostTrees if self.backend == "xgboost" else SklearnTrees
        self.trees: SklearnTrees | XGBoostTrees = kind(self.rows[self._trained], self.Z.shape[1], self.options)

    def step(self) -> float:
        """Grow one tree; return the objective before it."""
        value, gradient = self.objective(self.Z)
        # The gradient with respect to the mean over rows: the step does not shrink with their number.
        self.trees.grow(-len(self._trained) * gradient[self._trained])
        self.Z = self.Z + self.trees.last(self.rows)
        return value

    def held_out(self, other: Pairs) -> Iterator[float]:
        """Yield the accuracy of a ranking of the view on other pairs, after 0, 1, 2, ... trees."""
        weights = None
        while True:
            weights = embedded_ranking(self.Z, self.objective.pairs, weights)
            yield accuracy(self.Z @ weights, other)
            self.step()
