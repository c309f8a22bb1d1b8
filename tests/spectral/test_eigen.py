"""Eigenproblems: known answers, rank deficiency, signs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlens.methods.bwdr import compress_within, shrink, stretch_between, threshold_index
from pairlens.spectral.rowspace import attract_whitened, difference, fix_signs, generalized, range_basis


def scatter(rng, dim, rank=None):
    rows = rng.standard_normal((rank or 2 * dim, dim))
    return rows.T @ rows


@given(seed=st.integers(0, 10**6), dim=st.integers(2, 7), rank=st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_generalized_solves_the_pencil_on_the_range(seed, dim, rank):
    rng = np.random.default_rng(seed)
    A, B = scatter(rng, dim), scatter(rng, dim, min(rank, dim))
    values, vectors = generalized(A, B, dim)
    assert vectors.shape[1] == min(rank, dim)
    np.testing.assert_allclose(vectors.T @ B @ vectors, np.eye(len(values)), atol=1e-6)
    np.testing.assert_allclose(vectors.T @ A @ vectors, np.diag(values), atol=1e-6 * values.max())
    assert np.all(np.diff(values) <= 1e-9 * values.max())


def test_largest_leaves_out_directions_that_carry_nothing():
    A = np.diag([3.0, 1.0, 0.0])
    assert len(generalized(A, np.eye(3), 3)[0]) == 2
    assert len(generalized(A, np.eye(3), 3, largest=False)[0]) == 3


def test_difference_skips_directions_without_variation():
    attract, repel = np.diag([3.0, 5.0, 0.0]), np.diag([4.0, 1.0, 0.0])
    values, vectors = difference(attract, repel, 3)
    np.testing.assert_allclose(values, [1, -4])
    assert not vectors[2].any()


def test_attract_whitened_scales_to_one_and_survives_zeros():
    rng = np.random.default_rng(0)
    A, B = scatter(rng, 5), scatter(rng, 5)
    _, vectors = attract_whitened(A, B, 3)
    np.testing.assert_allclose(vectors.T @ A @ vectors, np.eye(3), atol=1e-9)
    for attract in (scatter(rng, 5, 2), np.zeros((5, 5))):
        assert np.isfinite(attract_whitened(attract, B, 3)[1]).all()


def test_range_basis_of_zero_is_empty():
    assert range_basis(np.zeros((3, 3)))[1].shape == (3, 0)


def test_signs_do_not_depend_on_the_solver():
    rows = np.array([[0.1, -0.9, 0.2], [0.5, -0.5 - 1e-12, 0.1], [-0.3, 0.1, 0.2]])
    np.testing.assert_array_equal(fix_signs(rows), fix_signs(-rows))
    np.testing.assert_array_equal(fix_signs(rows)[1], rows[1])


def test_stretching_and_compressing_share_directions_at_threshold_one():
    """Both are the generalised eigenvectors of (S_B, S_W), with A' S_B A = l1 I and A' S_W A a multiple of I."""
    rng = np.random.default_rng(0)
    S_W, S_B = scatter(rng, 6), scatter(rng, 6)
    (_, stretched), _ = stretch_between(S_W, S_B, 4, 1.0)
    _, compressed = compress_within(S_W, S_B, 4, 1.0)
    unit = [v / np.linalg.norm(v, axis=0) for v in (stretched, compressed, generalized(S_B, S_W, 4)[1])]
    np.testing.assert_allclose(np.abs(np.sum(unit[0] * unit[1], axis=0)), 1, atol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(unit[0] * unit[2], axis=0)), 1, atol=1e-9)
    np.testing.assert_allclose(stretched.T @ S_B @ stretched, np.linalg.eigvalsh(S_B)[-1] * np.eye(4), atol=1e-7)
    within = compressed.T @ S_W @ compressed
    np.testing.assert_allclose(within, within[0, 0] * np.eye(4), atol=1e-9)


@pytest.mark.parametrize(
    ("threshold", "at_least", "expected"),
    [(0.5, 1, 1), (0.8, 1, 2), (0.79, 1, 1), (1.0, 1, 4), (0.5, 3, 3), (0.1, 9, 4)],
)
def test_threshold_index(threshold, at_least, expected):
    assert threshold_index(np.array([5.0, 3.0, 1.0, 1.0]), threshold, at_least) == expected


def test_compression_without_must_link_variation_is_finite():
    S_B = scatter(np.random.default_rng(0), 5)
    values, vectors = compress_within(np.diag([1.0, 0, 0, 0, 0]), S_B, 3, 1.0)
    assert np.isfinite(vectors).all()
    assert np.isfinite(values).all()


def test_shrinkage_ends_at_its_target():
    rng = np.random.default_rng(0)
    S, T = scatter(rng, 4), scatter(rng, 4)
    np.testing.assert_allclose(shrink(S, T, 1.0), T * 4 / np.trace(T))
    np.testing.assert_allclose(shrink(S, T, 0.0), S * 4 / np.trace(S))
    np.testing.assert_allclose(np.trace(shrink(S, T, 0.3)), 4)


def test_floors_are_where_they_are_documented():
    """1e-8 of the largest for WBDR, 1e-12 for what SLPP and DCA divide by."""
    S_B = np.diag([1.0, 1.0, 1.0])
    _, vectors = compress_within(np.diag([1.0, 1e-6, 0.0]), S_B, 3, 1.0)
    np.testing.assert_allclose(np.sort(np.abs(vectors).max(axis=0)), np.sort([1e-4, 1e-1, 1.0]), rtol=1e-9)
    _, vectors = attract_whitened(np.diag([1.0, 1e-9, 0.0]), S_B, 3)
    np.testing.assert_allclose(np.abs(vectors).max(axis=0), [1e6, 10**4.5, 1.0], rtol=1e-6)
