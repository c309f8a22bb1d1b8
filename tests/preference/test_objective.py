"""The large-margin objective against its definition, its own other forms, and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlens.preference.objective import (
    Objective,
    Pairs,
    angle_squared,
    angle_tiled,
    largest_differences,
    smoothed_hinge,
)
from tests.oracles import preference as oracle

LOSSES = [
    pytest.param({"gamma2": 1.0}, id="closed"),
    pytest.param({"gamma2": 1.7}, id="closed-wide-margin"),
    pytest.param({"gamma2": 0.5}, id="tiled"),
    pytest.param({"gamma2": 0.0}, id="tiled-right-angle"),
    pytest.param({"gamma2": 0.5, "sigma": 0.0}, id="tiled-plain-hinge"),
    pytest.param({"gamma2": 1.0, "sigma": 0.0}, id="closed-plain-hinge"),
    pytest.param({"gamma2": 1.0, "sigma": 5.0}, id="closed-always-in-the-corner"),
    pytest.param({"gamma2": 1.0, "squared": True}, id="squared"),
    pytest.param({"gamma2": 1.4, "squared": True}, id="squared-wide-margin"),
    pytest.param({"gamma2": 1.0, "C": 0.0}, id="distance-only"),
    pytest.param({"gamma2": 0.3, "gamma1": 30.0}, id="all-distances-active"),
    pytest.param({"gamma2": 0.3, "gamma1": 1e-3}, id="no-distance-active"),
]


def problem(seed: int, n: int = 8, D: int = 4, d: int = 3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    Z = 0.4 * X @ rng.normal(size=(D, d))
    every = [(i, j) for i in range(n) for j in range(n) if i < j]
    chosen = rng.permutation(len(every))[: n + 3]
    pairs = np.array([every[c] if c % 2 else every[c][::-1] for c in chosen])
    return X, Z, pairs, rng.uniform(0.2, 2.0, size=len(pairs))


def build(X, pairs, weight, *, gamma1=1.0, gamma2=1.0, C=0.7, sigma=0.1, squared=False) -> Objective:
    return Objective(
        Pairs.of(pairs, len(X), weight), sigma * largest_differences(X, pairs), gamma1, gamma2, C, sigma, squared
    )


@pytest.mark.parametrize("options", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_value_is_the_definition(options, seed):
    X, Z, pairs, weight = problem(seed)
    expected = oracle.objective(X, Z, pairs.tolist(), weight.tolist(), **{"C": 0.7, **options})
    assert build(X, pairs, weight, **options)(Z)[0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("options", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_gradient_is_that_of_finite_differences(options, seed):
    X, Z, pairs, weight = problem(seed)
    objective = build(X, pairs, weight, **options)
    numerical = oracle.numerical_gradient(lambda A: objective(A)[0], Z)
    assert np.linalg.norm(objective(Z)[1] - numerical) <= 1e-6 * max(1e-3, np.linalg.norm(numerical))


def test_two_terms_add_up():
    X, Z, pairs, weight = problem(0)
    objective = build(X, pairs, weight, gamma2=0.5)
    whole, distance, angle = (
        objective(Z),
        objective(Z, angle=False),
        objective(Z, distance=False),
    )
    assert whole[0] == pytest.approx(distance[0] + angle[0], rel=1e-14)
    np.testing.assert_allclose(whole[1], distance[1] + angle[1], rtol=1e-12, atol=1e-15)


def test_paper_sums_over_both_orders_of_every_pair():
    X, Z, pairs, _ = problem(1)
    M, C = len(pairs), 0.3
    printed = oracle.paper_objective(Z, pairs.tolist(), gamma1=1.0, gamma2=0.6, C=C)
    ours = build(X, pairs, None, gamma2=0.6, sigma=0.0, C=2 * C * M)(Z)[0]
    assert printed == pytest.approx(2 * M * ours, rel=1e-12)


def unit_vectors(seed: int, count: int, d: int):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(count, d)) + 0.5
    P /= np.linalg.norm(P, axis=1, keepdims=True)
    P[count // 3] = 0.0  # a pair of coincident rows
    weight = rng.uniform(0.1, 1.0, size=count)
    return P, weight / weight.sum()


def angle_closed(P, weight, gamma2):
    """The angle term for gamma2 >= 1, and its gradient with respect to the unit vectors P."""
    total = weight @ P
    return gamma2 - float(total @ total), np.outer(-2 * weight, total)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    count=st.integers(1, 700),
    d=st.integers(1, 12),
    gamma2=st.floats(1, 3),
    tile=st.integers(7, 300),
)
def test_closed_form_is_the_tiled_form(seed, count, d, gamma2, tile):
    P, weight = unit_vectors(seed, count, d)
    value, gradient = angle_closed(P, weight, gamma2)
    tiled_value, tiled_gradient = angle_tiled(P, weight, gamma2, 0.0, tile)
    assert abs(value - tiled_value) <= 1e-12 * gamma2
    # At gamma2 = 1 a vector and itself meet at the corner of the hinge, where any slope is right; it acts along the
    # vector, and only what acts across it reaches the embedding.
    across, tiled_across = (g - np.sum(P * g, axis=1, keepdims=True) * P for g in (gradient, tiled_gradient))
    assert np.linalg.norm(across - tiled_across) <= 1e-12 * max(1e-3, np.linalg.norm(gradient))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gamma2", [1.0, 1.5])
def test_closed_form_gives_the_gradient_of_the_tiled_form(seed, gamma2, monkeypatch):
    X, Z, pairs, weight = problem(seed, n=40, D=6, d=4)
    objective = build(X, pairs, weight, gamma2=gamma2)
    value, gradient = objective(Z)
    # The squared hinge leaves the closed form, and here it is not squared.
    monkeypatch.setattr(
        "pairlens.preference.objective.angle_squared", lambda P, weight, gamma2: angle_tiled(P, weight, gamma2, 0.0, 16)
    )
    tiled_value, tiled_gradient = replace(objective, squared=True)(Z)
    assert abs(value - tiled_value) <= 1e-12 * value
    assert np.linalg.norm(gradient - tiled_gradient) <= 1e-12 * np.linalg.norm(gradient)


@pytest.mark.parametrize("gamma2", [0.5, -0.5])
def test_tiles_do_not_change_the_result(gamma2):
    P, weight = unit_vectors(0, 533, 5)
    value, gradient = angle_tiled(P, weight, gamma2, 0.1, 533)
    for tile in (7, 100, 256):
        other_value, other_gradient = angle_tiled(P, weight, gamma2, 0.1, tile)
        assert other_value == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(other_gradient, gradient, rtol=1e-10, atol=1e-15)


def test_squared_form_is_the_sum_over_combinations():
    P, weight = unit_vectors(2, 40, 4)
    expected = sum(w * v * (1.2 - p @ q) ** 2 for p, w in zip(P, weight) for q, v in zip(P, weight))
    assert angle_squared(P, weight, 1.2)[0] == pytest.approx(expected, rel=1e-12)


def test_coincident_rows_have_no_gradient_and_do_no_harm():
    X, _, pairs, weight = problem(5)
    i, j = pairs[0]
    X[i] = X[j]
    Z = X[:, :3] * 0.3
    for options in ({"gamma2": 1.0}, {"gamma2": 0.4}, {"gamma2": 1.0, "squared": True}):
        objective = build(X, pairs, weight, **options)
        value, gradient = objective(Z)
        assert value == pytest.approx(
            oracle.objective(X, Z, pairs.tolist(), weight.tolist(), C=0.7, **options), rel=1e-12
        )
        assert np.all(np.abs(gradient) < 10)
        alone = build(X, pairs[:1], None, **options)
        assert not alone(Z)[1].any()


def test_a_doubled_pair_is_a_pair_of_weight_two():
    X, Z, pairs, _ = problem(6)
    twice = np.concatenate([pairs, pairs[:2]])
    weight = np.where(np.arange(len(pairs)) < 2, 2.0, 1.0)
    for options in ({"gamma2": 1.0}, {"gamma2": 0.4}):
        value, gradient = build(X, twice, None, **options)(Z)
        expected, expected_gradient = build(X, pairs, weight, **options)(Z)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, expected_gradient, atol=1e-14)


@pytest.mark.parametrize("options", LOSSES)
def test_moving_and_turning_the_view_changes_nothing(options):
    X, Z, pairs, weight = problem(7)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    objective = build(X, pairs, weight, **options)
    value, gradient = objective(Z)
    other_value, other_gradient = objective(Z @ turn + 5.0)
    assert other_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(other_gradient, gradient @ turn, atol=1e-12)


@given(t=st.floats(-3, 3), width=st.floats(1e-3, 2))
@settings(max_examples=50, deadline=None)
def test_smoothed_hinge_is_the_maximum_of_the_paper(t, width):
    value, slope = smoothed_hinge(np.array([t]), width)
    assert value[0] == pytest.approx(oracle.hinge(t, width), abs=1e-12)
    assert value[0] == pytest.approx(oracle.smoothed_by_maximum(t, width), abs=1e-9)
    assert 0 <= slope[0] <= 1


def test_largest_differences_of_dense_and_sparse_rows():
    from scipy import sparse

    X, _, pairs, _ = problem(8)
    expected = [max(abs(X[i] - X[j])) for i, j in pairs]
    np.testing.assert_allclose(largest_differences(X, pairs), expected)
    for kind in (sparse.csr_array, sparse.csr_matrix):
        np.testing.assert_allclose(largest_differences(kind(X), pairs), expected)
