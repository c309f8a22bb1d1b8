"""The null space of must-links: any pairs that join the same rows give the same kernel, in which they coincide."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from pairlens import Constraints
from pairlens.engines import projected_rows
from pairlens.exceptions import ApproximationWarning
from pairlens.kernels import (
    MAX_LINKED,
    contrasts,
    delta_to_gamma,
    feature_null_space,
    kernel_features,
    linked_sample,
    median_distance,
    must_link_null_space,
    projected_kernel,
)
from pairlens.methods.kernel import KernelNullSpace
from tests.oracles import dsp as oracle


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 3)), [(0, 1), (1, 2), (2, 3), (10, 20), (30, 31), (31, 39)]


def khat(X, must, delta=0.8):
    chunklets = Constraints(must, n_samples=X.shape[0]).chunklets()
    return projected_kernel(X, X, must_link_null_space(X, chunklets, gamma=delta_to_gamma(delta)))


def test_agrees_with_one_column_for_each_pair(table):
    X, must = table
    expected = oracle.projected_kernel(oracle.gaussian(X, 0.8), must)
    np.testing.assert_allclose(khat(X, must), expected, atol=1e-12)


def decimal_distance(X, must, gamma, i, j):
    """The squared projected distance in fifty digits: that of two images, less its part along must-links."""
    with localcontext() as context:
        context.prec = 50
        exact = [[Decimal(float(value)) for value in row] for row in X]

        def kernel(a, b):
            return (-Decimal(gamma) * sum((s - t) ** 2 for s, t in zip(exact[a], exact[b]))).exp()

        def product(first, second):
            return sum(u * v * kernel(a, b) for a, u in first for b, v in second)

        directions = []
        for a, b in must:  # Gram-Schmidt
            direction = {a: Decimal(1), b: Decimal(-1)}
            for other in directions:
                share = product([(a, Decimal(1)), (b, Decimal(-1))], other.items()) / product(
                    other.items(), other.items()
                )
                for row, value in other.items():
                    direction[row] = direction.get(row, Decimal(0)) - share * value
            directions.append(direction)
        difference = [(i, Decimal(1)), (j, Decimal(-1))]
        squared = product(difference, difference)
        for other in directions:
            squared -= product(difference, other.items()) ** 2 / product(other.items(), other.items())
        return float(squared)


@pytest.mark.parametrize("gamma", [1e-8, 1e-4, 0.3])
def test_a_kernel_much_wider_than_the_data_keeps_its_digits(table, gamma):
    """All entries of K are nearly 1, and three must-links leave of the distances what is of second order."""
    X, must = table[0] + 3, [(0, 1), (10, 20), (30, 31)]
    chunklets = Constraints(must, n_samples=len(X)).chunklets()
    F = must_link_null_space(X, chunklets, gamma=gamma).coordinates(X)
    rows = projected_rows(X, F, gamma, chunklets)
    pairs = np.random.default_rng(1).integers(0, len(X), (10, 2))
    expected = [decimal_distance(X, must, gamma, i, j) for i, j in pairs]
    np.testing.assert_allclose(rows.squared_distances(*pairs.T), expected, rtol=1e-5, atol=1e-15 * gamma)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("row", [[1 / 3, 0.7], [1e6, 1 / 3]])
def test_must_links_between_identical_rows_are_no_direction(as_rows, row):
    X = np.array([row] * 7 + [[0.2, 0.1], [0.5, 0.9]])
    space = must_link_null_space(as_rows(X), np.array([0] * 4 + [1] * 3 + [-1] * 2), gamma=0.5)
    assert space.rank == 0


def test_spanning_tree_and_all_pairs_give_the_same_kernel(table):
    """A chain, a star and all pairs of the same chunklets; the dense oracle with all pairs (a singular W) too."""
    X, must = table
    star = [(0, 1), (0, 2), (0, 3), (10, 20), (30, 39), (30, 31)]
    everything = Constraints(must, n_samples=len(X)).closure().must_link
    assert len(everything) > len(must)
    K = khat(X, must)
    np.testing.assert_array_equal(khat(X, star), K)
    np.testing.assert_array_equal(khat(X, everything), K)
    np.testing.assert_allclose(K, oracle.projected_kernel(oracle.gaussian(X, 0.8), everything.tolist()), atol=1e-10)


def test_must_linked_rows_coincide_and_the_distance_formula_holds(table):
    X, must = table
    chunklets = Constraints(must, n_samples=len(X)).chunklets()
    space = must_link_null_space(X, chunklets, gamma=delta_to_gamma(0.8))
    F, K = space.coordinates(X), khat(X, must)
    diagonal = np.diag(K)
    squared = diagonal[:, None] + diagonal - 2 * K
    by_formula = 2 - 2 * oracle.gaussian(X, 0.8) - ((F[:, None] - F[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(by_formula, squared, atol=1e-12)
    for i, j in must:
        np.testing.assert_allclose(K[i], K[j], atol=1e-12)
        assert abs(squared[i, j]) <= space.residual + 1e-12
    assert space.rank == 8 - 2  # linked rows less chunklets
    assert np.linalg.eigvalsh(K).min() > -1e-12


def test_translation_and_float32(table):
    X, must = table
    np.testing.assert_allclose(khat(X + 1e6, must), khat(X, must), atol=1e-8)
    np.testing.assert_allclose(khat(X.astype(np.float32), must), khat(X, must), atol=1e-5)
    np.testing.assert_allclose(khat(sparse.csr_matrix(X), must), khat(X, must), atol=1e-12)


def test_explicit_features_give_the_same_kernel(table):
    X, must = table
    gamma = delta_to_gamma(0.8)
    features = kernel_features(X, kernel="rbf", gamma=gamma)(X)
    basis, residual = feature_null_space(features, Constraints(must, n_samples=len(X)).chunklets())
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-8)
    features -= (features @ basis) @ basis.T
    np.testing.assert_allclose(features @ features.T, khat(X, must), atol=1e-9)
    assert residual < 1e-8


def test_duplicate_rows_lower_the_rank(table):
    X, _ = table
    X[1] = X[0]
    space = must_link_null_space(X, Constraints([(0, 1)], n_samples=40).chunklets(), gamma=1.0)
    assert space.rank == 0
    np.testing.assert_allclose(projected_kernel(X, X, space), oracle.gaussian(X, np.sqrt(0.5)), atol=1e-12)


def test_contrasts_are_orthonormal_and_sum_to_zero():
    H = contrasts(np.array([0, 0, 0, 1, 1, 4, 4, 4, 4])).toarray()
    assert H.shape == (6, 9)
    np.testing.assert_allclose(H @ H.T, np.eye(6), atol=1e-14)
    for rows in (slice(0, 3), slice(3, 5), slice(5, 9)):
        np.testing.assert_allclose(H[:, rows].sum(axis=1), 0, atol=1e-14)


def test_of_very_many_linked_rows_an_even_choice_is_used(monkeypatch):
    chunklets = np.where(np.arange(9000) < 6000, np.arange(9000) % 3, -1)
    with pytest.warns(ApproximationWarning, match="6000 rows are must-linked; the null space is built from"):
        rows = linked_sample(chunklets)
    assert len(rows) <= MAX_LINKED
    np.testing.assert_allclose(np.bincount(chunklets[rows]), 2000 / 3, atol=1)
    pairs = np.repeat(np.arange(3000), 2)
    monkeypatch.setattr("pairlens.kernels.MAX_LINKED", 100)
    with pytest.warns(ApproximationWarning, match="of the 3000 groups"):
        rows = linked_sample(pairs)
    assert (np.bincount(pairs[rows])[np.unique(pairs[rows])] == 2).all()
    assert len(rows) == 100


def test_median_distance():
    X = np.array([[0.0], [1.0], [3.0]])
    assert median_distance(X) == pytest.approx(2.0)
    assert median_distance(np.ones((5, 2))) == 1.0


class TestKernelNullSpace:
    def test_transform_is_the_projected_kernel(self, table):
        X, must = table
        known = Constraints(must, n_samples=40)
        model = KernelNullSpace(gamma=delta_to_gamma(0.8)).fit(X, constraints=known)
        np.testing.assert_allclose(model.transform(X), khat(X, must), atol=1e-14)
        new = np.random.default_rng(1).standard_normal((7, 3))
        one_by_one = np.concatenate([model.transform(row[None]) for row in new])
        np.testing.assert_allclose(model.transform(new), one_by_one, atol=1e-13)
        assert model.rank_ == 6
        assert model.get_feature_names_out()[-1] == "kernelnullspace39"
        plain = KernelNullSpace(gamma=delta_to_gamma(0.8)).fit_transform(X)
        np.testing.assert_allclose(plain, oracle.gaussian(X, 0.8), atol=1e-14)

    def test_other_kernels(self, table):
        X, must = table
        K = KernelNullSpace(kernel="linear").fit_transform(X, constraints=Constraints(must, n_samples=40))
        # Six differences in three dimensions leave nothing.
        np.testing.assert_allclose(K, 0, atol=1e-10)
        poly = KernelNullSpace(kernel="poly", gamma=0.5).fit_transform(X, constraints=Constraints([(0, 1)]))
        np.testing.assert_allclose(poly[0], poly[1], atol=1e-9)

    def test_serves_a_support_vector_machine(self):
        X, y = load_iris(return_X_y=True)
        X, train, test = minmax_scale(X), np.arange(0, 150, 3), np.arange(1, 150, 3)
        known = Constraints.from_labels(y[train], per_class=5, random_state=0)
        kernel = KernelNullSpace().fit(X[train], constraints=known)
        model = SVC(kernel="precomputed", C=100).fit(kernel.transform(X[train]), y[train])
        assert model.score(kernel.transform(X[test]), y[test]) > 0.8

    def test_pairs_are_routed(self, table):
        X, must = table
        known = Constraints(must, n_samples=40)
        with sklearn.config_context(enable_metadata_routing=True):
            K = make_pipeline(KernelNullSpace(gamma=delta_to_gamma(0.8))).fit_transform(X, constraints=known)
        np.testing.assert_allclose(K, khat(X, must), atol=1e-14)

    def test_serves_spectral_clustering(self):
        X, y = make_moons(200, noise=0.05, random_state=0)
        known = Constraints.from_labels(y, per_class=5, random_state=0)
        K = np.maximum(KernelNullSpace(gamma=delta_to_gamma(0.2)).fit_transform(X, constraints=known), 0)
        labels = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(K)
        for i, j in known.must_link:
            assert labels[i] == labels[j]

    def test_errors(self, table):
        X, _ = table
        for name, value in {"gamma": 0.0, "kernel": 3, "tol": 1.0}.items():
            with pytest.raises(ValueError, match=f"'{name}' parameter of KernelNullSpace"):
                KernelNullSpace(**{name: value}).fit(X)
        with pytest.raises(ValueError, match="constraints must be for 40 rows, as many as X has; got 3"):
            KernelNullSpace().fit(X, constraints=Constraints([(0, 1)], n_samples=3))
