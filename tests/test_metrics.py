"""Metrics against loops over rows and ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from pairlens import Constraints, Preferences, metrics
from pairlens.exceptions import ArgumentError


def test_cumulative_purity():
    rng = np.random.default_rng(0)
    Z, y = rng.standard_normal((40, 2)), rng.integers(0, 3, 40)
    expected = np.zeros(5)
    for i in range(40):
        distance = np.linalg.norm(Z - Z[i], axis=1)
        distance[i] = np.inf
        same = y[np.argsort(distance)[:5]] == y[i]
        expected += np.cumsum(same) / np.arange(1, 6)
    np.testing.assert_allclose(metrics.cumulative_purity(Z, y, 5), expected / 40)


@pytest.mark.parametrize("n_neighbors", [0, -1, 4, 2.5, "all", None])
def test_cumulative_purity_names_the_range_of_n_neighbors(n_neighbors):
    with pytest.raises(ArgumentError, match=rf"^n_neighbors must be a whole number from 1 to .*3; got {n_neighbors!r}"):
        metrics.cumulative_purity([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], n_neighbors)


@pytest.mark.parametrize("n_neighbors", [1, np.int8(3)])
def test_cumulative_purity_at_the_ends_of_the_range(n_neighbors):
    purity = metrics.cumulative_purity([[0.0], [1.0], [2.5], [3.0]], [0, 0, 1, 1], n_neighbors)
    np.testing.assert_allclose(purity, [1, 1 / 2, 1 / 3][:n_neighbors])


def test_pairwise_accuracy_counts_weights_and_ties():
    preferences = Preferences([(0, 1), (1, 2), (2, 3)], n_samples=4, weight=[1.0, 2.0, 1.0])
    assert metrics.pairwise_accuracy([4, 3, 3, 5], preferences) == pytest.approx((1 + 2 * 0.5 + 0) / 4)
    with pytest.raises(ValueError, match="at least one preference"):
        metrics.pairwise_accuracy([1.0], Preferences(n_samples=1))
    with pytest.raises(ArgumentError) as refused:
        metrics.pairwise_accuracy([1.0, 2.0], preferences)
    assert (refused.value.argument, refused.value.value) == ("preferences", 3)


@pytest.mark.parametrize("pairs", [[(0, 1)], np.array([(0, 1)]), Constraints([(0, 1)])])
def test_pairwise_accuracy_asks_for_preferences(pairs):
    with pytest.raises(TypeError, match=rf"pairlens.Preferences, got {type(pairs).__name__}; .*Preferences\(pairs"):
        metrics.pairwise_accuracy([2.0, 1.0], pairs)


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_mean_average_precision_is_the_mean_of_scikit_learns_by_query(seed):
    rng = np.random.default_rng(seed)
    relevant, scores = rng.integers(0, 2, 30), rng.integers(0, 8, 30).astype(float)
    groups = rng.integers(0, 4, 30)
    relevant[0] = 1
    expected = [
        average_precision_score(relevant[groups == g], scores[groups == g])
        for g in np.unique(groups)
        if relevant[groups == g].any()
    ]
    assert metrics.mean_average_precision(relevant, scores, groups) == pytest.approx(np.mean(expected))


def test_mean_average_precision_needs_a_relevant_row():
    with pytest.raises(ValueError, match="relevant row"):
        metrics.mean_average_precision([0, 0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("relevant", "argument"),
    [
        ([1, -1, -1], "relevant[1]"),
        ([1.0, 0.0, np.nan], "relevant[2]"),
        ([1, 0.5, 0], "relevant[1]"),
        ([1, 0, 2], "relevant[2]"),
        (np.array([True, None, False]), "relevant[1]"),
        (pd.array([True, False, None], dtype="boolean"), "relevant[2]"),
        (["1", "0", "0"], "relevant[0]"),
    ],
)
def test_relevance_is_yes_or_no(relevant, argument):
    with pytest.raises(ArgumentError) as refused:
        metrics.mean_average_precision(relevant, [3.0, 2.0, 1.0])
    assert refused.value.argument == argument


@pytest.mark.parametrize(
    "relevant",
    [
        [0, 1, 1],
        [False, True, True],
        [0.0, 1.0, 1.0],
        np.array([0, 1, 1], dtype=np.uint8),
        np.array([False, 1, 1.0], dtype=object),
        pd.array([False, True, True], dtype="boolean"),
    ],
)
def test_kinds_of_relevance(relevant):
    assert metrics.mean_average_precision(relevant, [3.0, 2.0, 1.0]) == pytest.approx((1 / 2 + 2 / 3) / 2)
