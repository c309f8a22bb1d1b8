"""Metrics against loops over pairs, rows and ranks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from pairlens import Preferences, metrics

labelings = st.integers(2, 12).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n) for _ in range(2)])
)


@given(labelings)
@settings(deadline=None)
def test_pair_counting_scores(labels):
    true, predicted = labels
    pairs = [(true[i] == true[j], predicted[i] == predicted[j]) for i, j in combinations(range(len(true)), 2)]
    both = sum(t and p for t, p in pairs)
    precision_base, recall_base = sum(p for _, p in pairs), sum(t for t, _ in pairs)
    if precision_base + recall_base:
        assert metrics.pairwise_f_score(true, predicted) == pytest.approx(2 * both / (precision_base + recall_base))
    same = [t == p for t, p in pairs if t]
    different = [t == p for t, p in pairs if not t]
    expected = np.mean([np.mean(part) for part in (same, different) if part])
    assert metrics.normalized_rand_score(true, predicted) == pytest.approx(expected)
    assert metrics.rand_score(true, predicted) == pytest.approx(np.mean([t == p for t, p in pairs]))


def test_one_cluster_scores_half():
    assert metrics.normalized_rand_score([0, 0, 1, 1, 1], [0] * 5) == 0.5


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


def test_pairwise_accuracy_counts_weights_and_ties():
    preferences = Preferences([(0, 1), (1, 2), (2, 3)], n_samples=4, weight=[1.0, 2.0, 1.0])
    assert metrics.pairwise_accuracy([4, 3, 3, 5], preferences) == pytest.approx((1 + 2 * 0.5 + 0) / 4)
    with pytest.raises(ValueError, match="at least one preference"):
        metrics.pairwise_accuracy([1.0], Preferences(n_samples=1))
    with pytest.raises(ValueError, match="row 3, but there are only 2 scores"):
        metrics.pairwise_accuracy([1.0, 2.0], preferences)


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
