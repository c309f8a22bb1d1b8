"""SKK-means: its weighted k-means against loops and all partitions, and what must-links promise of the clusters."""

from __future__ import annotations

import pickle
from copy import deepcopy
from itertools import product

import numpy as np
import pytest
import sklearn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, minmax_scale

from pairlens import Constraints
from pairlens.cluster.skkmeans import (
    SKKMeans,
    WeightedPoints,
    exchange_pass,
    exchanged,
    greedy_seeds,
    lloyd,
    mixed_centers,
    move_costs,
    weighted_kmeans,
)
from pairlens.exceptions import InputError, SupervisionWarning
from pairlens.kernels import delta_to_gamma
from pairlens.methods.kernel import KernelNullSpace
from tests.oracles.dsp import kernel_kmeans_cost


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


pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")


def assert_together(labels, must):
    for i, j in must:
        assert labels[i] == labels[j]


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(5, 60),
    f=st.integers(1, 4),
    grid=st.booleans(),
    n_must=st.integers(1, 40),
    n_clusters=st.integers(1, 5),
    delta=st.sampled_from([0.05, 0.5, 2.0, 50.0]),
)
@example(seed=35, n=35, f=1, grid=False, n_must=31, n_clusters=2, delta=0.5)
@settings(max_examples=80, deadline=None)
def test_must_linked_rows_share_a_cluster(seed, n, f, grid, n_must, n_clusters, delta):
    """Whatever the width, with contradicting, chained and far pairs, on grids full of ties; and predict agrees."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, f)).astype(float) if grid else rng.standard_normal((n, f))
    ends = rng.integers(n, size=(n_must, 2))
    must = ends[ends[:, 0] != ends[:, 1]]
    known = Constraints(must, n_samples=n)
    model = SKKMeans(n_clusters, gamma=delta_to_gamma(delta), n_init=2, random_state=seed).fit(X, constraints=known)
    assert_together(model.labels_, must)
    predicted = model.predict(X)
    assert_together(predicted, must)
    np.testing.assert_array_equal(predicted, model.labels_)
    one_by_one = [int(model.predict(row[None])[0]) for row in X[:10]]
    np.testing.assert_array_equal(one_by_one, model.labels_[:10])


def test_a_pair_half_way_between_two_clusters_stays_together():
    """The merged point is equally far from both centres: only rounding could tell its rows apart."""
    X = np.array([[-5.0], [-4.9], [-1.0], [1.0], [4.9], [5.0]])
    known = Constraints([(2, 3)], n_samples=6)
    for seed in range(20):
        model = SKKMeans(2, gamma=delta_to_gamma(1.0), n_init=1, random_state=seed).fit(X, constraints=known)
        assert model.labels_[2] == model.labels_[3]
        assert_together(model.predict(X), [(2, 3)])


def test_cost_is_that_of_kernel_k_means():
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    known = Constraints.from_labels(y, per_class=10, random_state=0)
    model = SKKMeans(3, gamma=delta_to_gamma(0.6), random_state=0).fit(X, constraints=known)
    K = KernelNullSpace(gamma=0.5 / 0.6**2).fit_transform(X, constraints=known)
    assert model.inertia_ == pytest.approx(kernel_kmeans_cost(K, model.labels_), rel=1e-9)
    # No single row, moved with its group, lowers the cost.
    chunklets = known.chunklets()
    for row in range(0, len(X), 7):
        for cluster in range(3):
            moved = model.labels_.copy()
            moved[chunklets == chunklets[row] if chunklets[row] >= 0 else row] = cluster
            assert kernel_kmeans_cost(K, moved) >= model.inertia_ - 1e-6
    assert adjusted_rand_score(y, model.labels_) > 0.8


def test_with_the_linear_kernel_and_no_pairs_it_is_k_means():
    X, _ = make_blobs(300, 5, centers=4, cluster_std=2.0, random_state=0)
    model = SKKMeans(4, kernel="linear", n_init=20, random_state=0).fit(X)
    plain = KMeans(4, n_init=20, random_state=0).fit(X)
    assert adjusted_rand_score(model.labels_, plain.labels_) > 0.99
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-3)


def test_pairs_pull_the_rows_around_them():
    X, y = make_moons(300, noise=0.05, random_state=0)
    free = SKKMeans(2, gamma=delta_to_gamma(0.5), random_state=0).fit(X)
    known = Constraints.from_labels(y, per_class=20, random_state=0)
    led = SKKMeans(2, gamma=delta_to_gamma(0.5), random_state=0).fit(X, constraints=known)
    outside = ~np.isin(np.arange(300), known.rows)
    assert adjusted_rand_score(y[outside], led.labels_[outside]) > 0.3 + adjusted_rand_score(y, free.labels_)


def test_new_rows_go_to_the_nearest_centre():
    X, y = make_blobs(400, 3, centers=3, cluster_std=0.5, random_state=1)
    model = SKKMeans(3, random_state=0).fit(
        X[:300], constraints=Constraints.from_labels(y[:300], per_class=3, random_state=0)
    )
    assert adjusted_rand_score(y[300:], model.predict(X[300:])) == 1


def test_labels_are_must_links():
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    partial = np.where(np.arange(len(y)) % 3 == 0, y, -1)
    by_labels = SKKMeans(3, random_state=0).fit(X, partial)
    by_pairs = SKKMeans(3, random_state=0).fit(X, constraints=Constraints.from_labels(partial))
    np.testing.assert_array_equal(by_labels.labels_, by_pairs.labels_)
    for label in range(3):
        assert len(np.unique(by_labels.labels_[partial == label])) == 1
    np.testing.assert_array_equal(SKKMeans(3, random_state=0).fit_predict(X, partial), by_labels.labels_)


def test_many_rows_take_features_of_some(monkeypatch):
    monkeypatch.setattr("pairlens.kernels.ANCHORS", 400)
    monkeypatch.setattr("pairlens.cluster.skkmeans.ANCHORS", 400)
    monkeypatch.setattr("pairlens.cluster.skkmeans.LARGE_RANK", 50)
    X, y = make_blobs(1500, 8, centers=5, cluster_std=2.0, random_state=0)
    known = Constraints.from_labels(y, per_class=5, random_state=0)
    model = SKKMeans(5, n_init=3, random_state=0).fit(X.astype(np.float32), constraints=known)
    assert model._features.combination.shape == (400, 50)
    assert_together(model.labels_, known.must_link)
    assert_together(model.predict(X.astype(np.float32)), known.must_link)
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_sparse_pickle_and_seeds():
    X, y = make_blobs(80, 4, centers=3, random_state=0)
    known = Constraints.from_labels(y, per_class=3, random_state=0)
    model = SKKMeans(3, random_state=0).fit(X, constraints=known)
    np.testing.assert_array_equal(
        SKKMeans(3, random_state=0).fit(sparse.csr_matrix(X), constraints=known).labels_, model.labels_
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.labels_)
    for state in (np.random.RandomState(0), np.random.default_rng(0), None):
        SKKMeans(3, random_state=state).fit(X)


def test_clusters_are_numbered_by_their_first_row():
    """Whatever the seeds, equal clusterings have equal labels."""
    X, y = make_blobs(80, 4, centers=5, cluster_std=0.3, random_state=0)
    known = Constraints.from_labels(y, per_class=3, random_state=0)
    expected = np.argsort(np.argsort(np.unique(y, return_index=True)[1]))[y]
    for seed in range(10):
        model = SKKMeans(5, random_state=seed).fit(X, constraints=known)
        np.testing.assert_array_equal(model.labels_, expected)
        np.testing.assert_array_equal(model.predict(X), expected)


def test_routing():
    X, y = load_wine(return_X_y=True)
    known = Constraints.from_labels(y, per_class=5, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(MinMaxScaler(), SKKMeans(3, random_state=0)).fit(X, constraints=known)
    assert_together(pipe[-1].labels_, known.must_link)


def test_errors_and_warnings():
    X = np.random.default_rng(0).standard_normal((6, 2))
    with pytest.raises(InputError, match="n_clusters must be at most the number of rows, 6; got 7"):
        SKKMeans(7).fit(X)
    for name, value in {"gamma": 0, "n_init": 0, "max_iter": 0, "kernel": 1, "n_clusters": 0}.items():
        with pytest.raises(ValueError, match=f"'{name}' parameter of SKKMeans"):
            SKKMeans(**{name: value}).fit(X)
    with pytest.raises(ValueError, match="constraints must be for 6 rows, as many as X has; got 3"):
        SKKMeans(2).fit(X, constraints=Constraints([(0, 1)], n_samples=3))
    with pytest.raises(NotFittedError):
        SKKMeans().predict(X)
    with pytest.warns(SupervisionWarning, match="found 2 clusters of the n_clusters=4 asked for"):
        model = SKKMeans(4).fit(X, [0, 0, 0, 1, 1, 1])
    assert set(model.labels_) == {0, 1}
