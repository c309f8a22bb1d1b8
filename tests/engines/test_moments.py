"""Count, mean and scatter in parts are those of the whole, also far from zero."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlens.engines import Moments


@given(cuts=st.lists(st.integers(1, 99), max_size=6), seed=st.integers(0, 1000), shift=st.sampled_from([0.0, 1e6]))
def test_parts_in_any_order_are_the_whole(cuts, seed, shift):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 4)) + shift
    X[:, 2] = 0.1
    parts = [Moments.of(part) for part in np.split(X, np.unique(cuts)) if len(part)]
    merged = reduce(Moments.merge, [parts[i] for i in rng.permutation(len(parts))])
    exact = np.asarray(X, dtype=np.longdouble)
    mean = exact.mean(axis=0)
    scatter = (exact - mean).T @ (exact - mean)
    assert merged.n == 100
    np.testing.assert_allclose(merged.mean, mean.astype(float), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(merged.about(merged.mean), scatter.astype(float), rtol=1e-8, atol=1e-8)
    assert merged.varies.tolist() == [True, True, False, True]


def test_a_constant_column_that_differs_between_parts_varies():
    zeros, ones = Moments.of(np.zeros((3, 2))), Moments.of(np.ones((2, 2)))
    assert not zeros.varies.any()
    assert zeros.merge(ones).varies.all()
    assert zeros.merge(ones).mean == pytest.approx([0.4, 0.4])
