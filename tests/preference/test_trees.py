"""Sums of trees: they split by the order of values, whatever the unit of these."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.preference.trees import SklearnTrees, TreeOptions, XGBoostTrees

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
TARGETS = np.column_stack([np.sign(X[:, 0]), np.sign(X[:, 1] + X[:, 2])])
OPTIONS = TreeOptions(max_depth=3, learning_rate=0.5, min_samples_leaf=2, n_jobs=1, seed=0)


def grown(kind, rows):
    if kind is XGBoostTrees:
        pytest.importorskip("xgboost")
    trees = kind(rows, 2, OPTIONS)
    for _ in range(3):
        trees.grow(TARGETS)
    return trees.without_rows()


@pytest.mark.parametrize("kind", [SklearnTrees, XGBoostTrees])
@pytest.mark.parametrize(
    "unit", [2.0**490, 2.0**-460, np.array([1.0, 2.0**490, 2.0**-460])], ids=["large", "small", "mixed"]
)
def test_trees_split_alike_in_every_unit(kind, unit):
    """Both libraries compare numbers of 32 bits, whose largest is 3e38 and whose smallest is 1e-45."""
    plain, scaled = grown(kind, X), grown(kind, X * np.asarray(unit))
    assert np.ptp(plain.predict(X), axis=0).min() > 0.5
    np.testing.assert_array_equal(scaled.predict(X * np.asarray(unit)), plain.predict(X))


@pytest.mark.parametrize("kind", [SklearnTrees, XGBoostTrees])
def test_rows_beyond_all_that_was_seen_fall_on_the_outer_side(kind):
    trees = grown(kind, X)
    assert trees.units is None
    np.testing.assert_array_equal(trees.predict(X * 1e100), trees.predict(X * 1e30))
