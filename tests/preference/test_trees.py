"""Sums of trees: they split by the order of values, whatever the unit of these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pairlens.preference.gbwsdr import SklearnTrees, TreeOptions, XGBoostTrees

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
    return trees


@pytest.mark.parametrize("kind", [SklearnTrees, XGBoostTrees])
@pytest.mark.parametrize(
    "unit", [2.0**490, 2.0**-460, np.array([1.0, 2.0**490, 2.0**-460])], ids=["large", "small", "mixed"]
)
def test_trees_split_alike_in_every_unit(kind, unit):
    """Both libraries compare numbers of 32 bits, whose largest is 3e38 and whose smallest is 1e-45."""
    plain, scaled = grown(kind, X).finished(), grown(kind, X * np.asarray(unit)).finished()
    assert np.ptp(plain.predict(X), axis=0).min() > 0.5
    np.testing.assert_array_equal(scaled.predict(X * np.asarray(unit)), plain.predict(X))


def test_trees_as_arrays_give_what_those_of_the_library_give():
    xgboost = pytest.importorskip("xgboost")
    # Values at the thresholds, in 32 bits and beside them, go the same way.
    rows = np.concatenate([X, np.round(X, 1), X.astype(np.float32), np.nextafter(X.astype(np.float32), 9)])
    plain = grown(SklearnTrees, X)
    theirs = sum(tree.predict(rows) for tree in plain._trees)
    np.testing.assert_allclose(plain.finished().predict(rows), 0.5 * theirs, rtol=1e-14)
    boosted = grown(XGBoostTrees, X)
    theirs = boosted._booster.predict(xgboost.DMatrix(rows), output_margin=True)
    np.testing.assert_array_equal(boosted.finished().predict(rows), theirs)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("children", np.zeros((5, 2), dtype=int), "differ in length"),
        ("children", 0, "child out of place"),
        ("children", 10**6, "child out of place"),
        ("feature", 3, "feature out of range"),
        ("feature", -1, "feature out of range"),
        ("roots", 10**6, "root out of range"),
        ("units", np.ones(4), "number of features"),
        ("value", np.zeros((5, 3)), "differ in length"),
    ],
)
def test_trees_that_could_not_be_followed_are_refused(name, value, message):
    good = grown(SklearnTrees, X).finished()
    good.check(3, 2)
    if isinstance(value, int):
        changed = getattr(good, name).copy()
        changed.flat[2] = value
        value = changed
    with pytest.raises(ValueError, match=message):
        replace(good, **{name: value}).check(3, 2)


@pytest.mark.parametrize("kind", [SklearnTrees, XGBoostTrees])
def test_rows_beyond_all_that_was_seen_fall_on_the_outer_side(kind):
    trees = grown(kind, X).finished()
    assert trees.units is None
    np.testing.assert_array_equal(trees.predict(X * 1e100), trees.predict(X * 1e30))
