"""Weighted k-means on points: seeds and moves against loops, optima against trying all partitions."""

from __future__ import annotations

from copy import deepcopy
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlens.cluster.skkmeans import (
    WeightedPoints,
    exchange_pass,
    exchanged,
    greedy_seeds,
    lloyd,
    mixed_centers,
    move_costs,
    weighted_kmeans,
)


def cost(rows, weight, labels):
    """Sum of weighted squared distances to the weighted mean of the cluster, cluster by cluster."""
    total = 0.0
    for cluster in set(labels):
        inside = [i for i in range(len(rows)) if labels[i] == cluster]
        mean = sum(weight[i] * rows[i] for i in inside) / sum(weight[i] for i in inside)
        total += sum(weight[i] * float(((rows[i] - mean) ** 2).sum()) for i in inside)
    return total


def drawn_points(seed, n, f=3, grid=False):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, (n, f)).astype(float) if grid else rng.standard_normal((n, f))
    return WeightedPoints.of(rows, rng.integers(1, 5, n).astype(float))


def means(points, labels, k):
    return np.array(
        [np.average(points.rows[labels == c], axis=0, weights=points.weight[labels == c]) for c in range(k)]
    )


@pytest.mark.parametrize("k", [2, 5, 9])
def test_each_seed_leaves_the_least_potential_of_those_drawn(k):
    points = drawn_points(k, 60)
    rng = np.random.default_rng(7)
    same_draws = deepcopy(rng)
    seeds = greedy_seeds(points, k, rng)
    assert seeds.shape == (k, 3)
    mass = points.weight
    for step in range(k):
        drawn = same_draws.choice(60, size=2 + int(np.log(k)), p=mass / mass.sum())

        def potential(row, before=seeds[:step]):
            centers = [*before, points.rows[row]]
            return sum(w * min(((x - c) ** 2).sum() for c in centers) for x, w in zip(points.rows, points.weight))

        best = min(drawn, key=potential)
        np.testing.assert_array_equal(seeds[step], points.rows[best])
        mass = np.array(
            [w * min(((x - c) ** 2).sum() for c in seeds[: step + 1]) for x, w in zip(points.rows, points.weight)]
        )


def test_greedy_seeds_cost_less_than_single_draws():
    points = drawn_points(0, 200)

    def potential(centers):
        return float(points.weight @ points.squared_distances(centers).min(axis=1))

    def plain(rng):
        """k-means++ with one draw for each centre."""
        centers = points.rows[rng.choice(200, size=1, p=points.weight / points.weight.sum())]
        while len(centers) < 8:
            mass = points.weight * points.squared_distances(centers).min(axis=1)
            centers = np.vstack([centers, points.rows[rng.choice(200, p=mass / mass.sum())]])
        return centers

    greedy = np.mean([potential(greedy_seeds(points, 8, np.random.default_rng(seed))) for seed in range(40)])
    assert greedy < 0.9 * np.mean([potential(plain(np.random.default_rng(seed))) for seed in range(40)])


def test_seeds_are_distinct_points():
    points = WeightedPoints.of(np.repeat([[0.0, 1], [3, 1], [0.3, 0.7]], 4, axis=0), np.ones(12))
    for seed in range(10):
        assert len(np.unique(greedy_seeds(points, 5, np.random.default_rng(seed)), axis=0)) == 3
    kept = np.array([[0.0, 1], [3, 1]])
    np.testing.assert_array_equal(greedy_seeds(points, 3, np.random.default_rng(0), kept), [*kept, [0.3, 0.7]])


def test_cost_of_every_move():
    points = drawn_points(3, 25)
    labels = np.arange(25) % 4
    labels[labels == 3] = 2
    labels[7] = 3  # alone, so that it may not leave
    total = np.bincount(labels, points.weight)
    costs = move_costs(points.squared_distances(means(points, labels, 4)), points.weight, labels, total)
    before = cost(points.rows, points.weight, labels)
    for i, cluster in product(range(25), range(4)):
        if i == 7:
            assert costs[i, cluster] == (0 if cluster == 3 else np.inf)
            continue
        moved = labels.copy()
        moved[i] = cluster
        assert costs[i, cluster] == pytest.approx(cost(points.rows, points.weight, moved) - before, abs=1e-9)


@given(seed=st.integers(0, 2**31), n=st.integers(6, 60), k=st.integers(2, 5), grid=st.booleans())
@settings(max_examples=60, deadline=None)
def test_moves_never_raise_the_cost_and_end_where_none_lowers_it(seed, n, k, grid):
    points = drawn_points(seed, n, grid=grid)
    labels = np.random.default_rng(seed).permutation(np.arange(n) % k)
    centers = means(points, labels, k)
    size = cost(points.rows, points.weight, labels)
    for _ in range(100):
        before = labels.copy()
        labels, centers = exchange_pass(points, before, centers)
        np.testing.assert_allclose(centers, means(points, labels, k), atol=1e-9)
        after = cost(points.rows, points.weight, labels)
        assert after < size or np.array_equal(labels, before)
        size = after
        if np.array_equal(labels, before):
            break
    assert len(np.unique(labels)) == k
    tolerance = 1e-6 * points.scale
    for i, cluster in product(range(n), range(k)):
        moved = labels.copy()
        moved[i] = cluster
        if np.count_nonzero(labels == labels[i]) > 1:
            assert cost(points.rows, points.weight, moved) >= size - tolerance


def test_moves_leave_an_optimum_of_lloyd():
    """2.6 is nearer to the mean 1.3 of its own cluster than to 4, whose cluster it costs less in."""
    points = WeightedPoints.of(np.array([[0.0], [2.6], [4.0], [4.0], [4.0]]), np.ones(5))
    stuck = lloyd(points, np.array([[1.3], [4.0]]), 100)
    np.testing.assert_array_equal(stuck.labels, [0, 0, 1, 1, 1])
    assert stuck.inertia == pytest.approx(2.6**2 / 2)
    moved = exchanged(points, stuck, 100)
    np.testing.assert_array_equal(moved.labels, [0, 1, 1, 1, 1])
    assert moved.inertia == pytest.approx(3 / 4 * 1.4**2)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_all_partitions(seed):
    points = drawn_points(seed, 9, 2)
    partitions = ((0, *labels) for labels in product(range(3), repeat=8))  # the first cluster is that of the first row
    least = min(cost(points.rows, points.weight, labels) for labels in partitions if len(set(labels)) == 3)
    found = weighted_kmeans(points, 3, n_init=5, max_iter=100, rng=np.random.default_rng(seed))
    assert found.inertia == pytest.approx(least)
    assert cost(points.rows, points.weight, found.labels) == pytest.approx(least)


def test_mixed_centers_come_from_both_and_one_is_new():
    points = drawn_points(0, 40)
    first, second = points.rows[:6] + 1e-3, points.rows[:6][::-1] - 1e-3
    mixed = mixed_centers(points, first, second, np.random.default_rng(0))
    known = {tuple(center) for center in np.concatenate([first, second])}
    assert sum(tuple(center) in known for center in mixed) == 5
    assert len(mixed) == 6
    # Matched centres stand for the same cluster, so that no cluster is there twice.
    assert len({tuple(np.round(center, 1)) for center in mixed[:5]}) == 5


def test_empty_clusters_are_seeded_again():
    points = WeightedPoints.of(np.array([[0.0], [0.1], [10.0], [10.1], [50.0]]), np.ones(5))
    found = lloyd(points, np.array([[5.0], [1000.0], [2000.0]]), 100)
    assert len(np.unique(found.labels)) == 3
    assert found.inertia == pytest.approx(0.01)


def test_weights_count_like_repeated_points():
    rng = np.random.default_rng(0)
    rows, weight = rng.standard_normal((30, 2)), rng.integers(1, 4, 30)
    some = WeightedPoints.of(rows, weight.astype(float))
    many = WeightedPoints.of(np.repeat(rows, weight, axis=0), np.ones(weight.sum()))
    costs = [
        weighted_kmeans(points, 3, n_init=30, max_iter=100, rng=np.random.default_rng(0)).inertia
        for points in (some, many)
    ]
    assert costs[0] == pytest.approx(costs[1])
