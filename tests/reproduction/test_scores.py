"""Scores of clusterings against loops over pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproduction import scores

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
        assert scores.pairwise_f_score(true, predicted) == pytest.approx(2 * both / (precision_base + recall_base))
    same = [t == p for t, p in pairs if t]
    different = [t == p for t, p in pairs if not t]
    expected = np.mean([np.mean(part) for part in (same, different) if part])
    assert scores.normalized_rand_score(true, predicted) == pytest.approx(expected)


def test_one_cluster_scores_half():
    assert scores.normalized_rand_score([0, 0, 1, 1, 1], [0] * 5) == 0.5
