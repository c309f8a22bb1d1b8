"""SKK-means: must-linked rows stay together, the cost is that of kernel k-means, and what a clusterer promises."""

from __future__ import annotations

import pickle

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
from pairlens.cluster.skkmeans import SKKMeans
from pairlens.exceptions import SupervisionWarning
from pairlens.kernels import delta_to_gamma
from pairlens.methods.kernel import KernelNullSpace
from tests.oracles.dsp import kernel_kmeans_cost

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
    with pytest.raises(ValueError, match="n_clusters=7 must be at most the number of rows, 6"):
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
