"""Scatters against loops over pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pairlens.engines import (
    column_means,
    graph_scatter,
    group_means,
    group_scatter,
    pair_scatter,
    pair_squared_distances,
    row_blocks,
    varying_columns,
    weighted_scatter,
)
from pairlens.engines import operations as module


def loop_scatter(X, pairs, weight):
    total = np.zeros((X.shape[1], X.shape[1]))
    for (i, j), w in zip(pairs, weight):
        total += w * np.outer(X[i] - X[j], X[i] - X[j])
    return total


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), f=st.integers(1, 8), m=st.integers(0, 80))
@settings(max_examples=20, deadline=None)
def test_pair_scatter_equals_the_loop(as_rows, offset, seed, n, f, m):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, f)) + (offset if as_rows is np.asarray else 0)
    pairs = rng.integers(0, n, (m, 2))
    weight = rng.random(m)
    expected = loop_scatter(X, pairs, weight)
    atol = 1e-9 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(pair_scatter(as_rows(X), pairs, weight), expected, atol=atol)


def test_both_routes_agree(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 300))
    pairs = rng.integers(0, 60, (5000, 2))
    weight = rng.random(5000)
    by_differences = module._difference_scatter(X, pairs, weight)
    monkeypatch.setattr(module, "_difference_scatter", None)  # the cost rule must choose the Laplacian form here
    np.testing.assert_allclose(pair_scatter(X, pairs, weight), by_differences, rtol=1e-9, atol=1e-8)


def test_float32_is_summed_in_float64():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 6)).astype(np.float32)
    pairs = rng.integers(0, 50_000, (300_000, 2))
    exact = pair_scatter(X.astype(np.float64), pairs)
    assert np.abs(pair_scatter(X, pairs) - exact).max() < 1e-6 * np.abs(exact).max()
    total = weighted_scatter(X.astype(np.float64), offset=column_means(X))
    assert np.abs(weighted_scatter(X, offset=column_means(X)) - total).max() < 1e-6 * np.abs(total).max()


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_weighted_scatter_equals_the_loop(as_rows):
    rng = np.random.default_rng(0)
    X, weight, offset = rng.standard_normal((30, 4)), rng.random(30), rng.standard_normal(4)
    expected = sum(w * np.outer(x - offset, x - offset) for x, w in zip(X, weight))
    np.testing.assert_allclose(weighted_scatter(as_rows(X), weight=weight, offset=offset), expected, atol=1e-12)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_class_sums_equal_the_loop_over_label_implied_pairs(as_rows):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    codes = rng.integers(-1, 3, 40)
    pairs = [(i, j) for i in range(40) for j in range(i) if codes[i] == codes[j] >= 0]
    sizes = np.bincount(codes[codes >= 0]).astype(float)
    expected = loop_scatter(X, pairs, np.ones(len(pairs)))
    np.testing.assert_allclose(group_scatter(as_rows(X), codes, weight=sizes), expected, atol=1e-10)
    means = np.array([X[codes == c].mean(axis=0) for c in range(3)])
    np.testing.assert_allclose(group_means(as_rows(X), codes), means)


def test_no_group_no_scatter():
    assert not group_scatter(np.ones((4, 2)), np.full(4, -1)).any()


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_graph_scatter_is_the_laplacian_form(as_rows):
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((25, 4)), rng.standard_normal((25, 25))
    A = A + A.T
    np.fill_diagonal(A, 0)
    laplacian = np.diag(A.sum(axis=1)) - A
    np.testing.assert_allclose(graph_scatter(as_rows(X), sparse.csr_matrix(A)), X.T @ laplacian @ X, atol=1e-10)


def test_pair_distances():
    rng = np.random.default_rng(0)
    X, pairs = rng.standard_normal((30, 4)) + 1e6, rng.integers(0, 30, (50, 2))
    expected = [np.sum((X[i] - X[j]) ** 2) for i, j in pairs]
    np.testing.assert_allclose(pair_squared_distances(X, pairs), expected)
    np.testing.assert_allclose(pair_squared_distances(sparse.csr_matrix(X), pairs), expected)


def test_blocks_cover_all_rows_once():
    covered = np.concatenate([np.arange(1000)[block] for block in row_blocks(1000, 8, 64 * 8)])
    np.testing.assert_array_equal(covered, np.arange(1000))


def test_varying_columns():
    X = np.ones((200_000, 3))
    X[-1, 1] = 2
    np.testing.assert_array_equal(varying_columns(X), [False, True, False])
    np.testing.assert_array_equal(varying_columns(sparse.csr_matrix([[0, 1], [0, 0]])), [False, True])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 3.0, 1000.0])
def test_total_scatter_near_and_far_from_zero(dtype, offset):
    """Far from zero the rows are centred before they are squared; near it they need not be."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((30_000, 5)) + offset).astype(dtype)
    exact = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    expected = exact.T @ exact
    found = weighted_scatter(X, offset=column_means(X))
    assert np.abs(found - expected).max() < (1e-10 if dtype is np.float64 else 1e-4) * expected.max()
