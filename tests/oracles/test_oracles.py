"""The oracles are checked on facts known from elsewhere, so that they can be trusted as a reference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.manifold._locally_linear import barycenter_kneighbors_graph
from sklearn.neighbors import kneighbors_graph

from tests import oracles
from tests.oracles import Solution, base, chunklets, linear, subspace_angle
from tests.oracles.base import Array, Pairs
from tests.oracles.facts import ANGLE, all_pairs, lda_directions, some_pairs

# Helpers -------------------------------------------------------------------------------------------------


def test_laplacian_form_equals_the_loop_over_pairs(iris: tuple[Array, Array]) -> None:
    X, y = iris
    must, _ = some_pairs(y, 300, 0)
    weights = np.random.default_rng(1).uniform(size=300)
    W = np.zeros((len(X), len(X)))
    for (i, j), w in zip(must, weights):
        W[i, j] = W[j, i] = w
    Xc = base.centre(X)
    S = base.pair_scatter(X, must, weights)
    np.testing.assert_allclose(Xc.T @ base.laplacian(W) @ Xc, S, atol=1e-10)
    np.testing.assert_allclose(base.mean_pair_scatter(X, must, weights), S / weights.sum())


def test_all_pairs_scatter_is_the_class_sum(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = all_pairs(y)
    expected = np.zeros((X.shape[1], X.shape[1]))
    for label in np.unique(y):
        expected += (y == label).sum() ** 2 * np.cov(X[y == label].T, bias=True)
    np.testing.assert_allclose(base.pair_scatter(X, must), expected, atol=1e-8)
    total = len(X) ** 2 * np.cov(X.T, bias=True)
    np.testing.assert_allclose(base.pair_scatter(X, cannot), total - expected, atol=1e-8)


def test_neighbours_agree_with_sklearn_where_nothing_is_tied(wine: tuple[Array, Array]) -> None:
    X, _ = wine
    assert base.rows_with_tied_neighbours(X, 5) == []
    graph = kneighbors_graph(X, 5).toarray() > 0
    np.testing.assert_array_equal(base.knn_edges(X, 5), graph | graph.T)


def test_ties_go_to_the_smaller_index() -> None:
    X = np.array([[0.0], [1.0], [-1.0], [2.0]])
    assert base.neighbour_lists(X, 1) == [[1], [0], [0], [1]]
    assert base.rows_with_tied_neighbours(X, 1) == [0, 1]
    duplicates = np.zeros((4, 2))
    assert base.neighbour_lists(duplicates, 2) == [[1, 2], [0, 2], [0, 1], [0, 1]]


def test_heat_by_hand() -> None:
    X = np.array([[0.0, 0.0], [6.0, 8.0]])
    assert base.default_theta(X) == pytest.approx(25.0)
    assert base.heat(X)[0, 1] == pytest.approx(math.exp(-4.0))
    assert base.heat(X, theta=50.0)[0, 1] == pytest.approx(math.exp(-2.0))


def test_ratio_drops_the_null_space() -> None:
    A, B = np.diag([1.0, 8.0, 9.0]), np.diag([1.0, 2.0, 1e-12])
    W, mu = base.max_ratio(A, B, 3)
    np.testing.assert_allclose(mu, [4.0, 1.0])
    np.testing.assert_allclose(np.abs(W), [[0.0, 1 / math.sqrt(2), 0.0], [1.0, 0.0, 0.0]], atol=1e-12)
    assert base.min_ratio(A, B, 1)[1] == pytest.approx([1.0])
    assert base.min_ratio(A, np.zeros((3, 3)), 2)[0].shape == (0, 3)


def test_angles_and_differences() -> None:
    P = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert subspace_angle(P, np.array([[2.0, 3.0, 0.0], [0.0, -5.0, 0.0]])) == pytest.approx(0.0, abs=1e-12)
    assert subspace_angle(P, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])) == pytest.approx(math.pi / 4)
    assert oracles.relative_difference([2.0], [1.0]) == pytest.approx(0.5)
    assert oracles.relative_difference([0.0], [0.0]) == 0.0


# BWDR and WBDR -------------------------------------------------------------------------------------------


def test_bwdr_and_wbdr_share_directions_at_threshold_one(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 500, 2)
    b = oracles.bwdr(X, must, cannot, 4, threshold=1.0)
    w = oracles.wbdr(X, must, cannot, 4, threshold=1.0)
    for one, two in zip(b.components, w.components):
        cosine = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
        assert abs(cosine) == pytest.approx(1.0, abs=1e-9)
    first = eigh(b.repel, eigvals_only=True)[-1]
    last = eigh(w.attract, eigvals_only=True)[0]
    np.testing.assert_allclose(b.components @ b.repel @ b.components.T, first * np.eye(4), atol=1e-8 * first)
    np.testing.assert_allclose(w.components @ w.attract @ w.components.T, last * np.eye(4), atol=1e-8 * last)
    generalised = eigh(w.repel, w.attract, eigvals_only=True)[::-1][:4]
    np.testing.assert_allclose(w.eigenvalues / last, generalised)
    np.testing.assert_allclose(first / b.eigenvalues, generalised)
    assert oracles.relative_difference(b.attract, w.attract) == 0.0


def test_threshold_index_by_hand() -> None:
    values = np.array([5.0, 3.0, 1.0, 1.0, 0.0])
    assert linear.threshold_index(values, 0.8, 1, 4) == 2
    assert linear.threshold_index(values, 0.85, 1, 4) == 2
    assert linear.threshold_index(values, 0.4, 1, 4) == 1  # no i at all, raised to K
    assert linear.threshold_index(values, 0.4, 3, 4) == 3
    assert linear.threshold_index(values, 1.0, 1, 4) == 4
    assert linear.threshold_index(values, 1.0, 9, 4) == 4


def test_bwdr_ignores_must_links_when_i_is_k(wine: tuple[Array, Array]) -> None:
    X, y = load_wine(return_X_y=True)  # raw: one feature holds nearly all the scatter
    must, cannot = some_pairs(y, 500, 3)
    b = oracles.bwdr(X, must, cannot, 2)
    top, _ = base.largest_eigenvectors(b.repel, 2)
    assert subspace_angle(b.components, top) < ANGLE


def test_bwdr_returns_at_most_the_rank_of_the_cannot_links(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 100, 4)
    assert oracles.bwdr(X, must, cannot[:3], 5).components.shape == (3, 13)
    assert oracles.bwdr(X, must, [], 5).components.shape == (0, 13)


def test_wbdr_with_a_singular_within_scatter(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 400, 5)
    w = oracles.wbdr(X, must[:4], cannot, 3)
    floored = w.attract.copy()
    values, vectors = eigh(floored)
    values = np.maximum(values, 1e-8 * values[-1])
    safe = (vectors * values) @ vectors.T
    reference = eigh(w.repel, safe)[1][:, ::-1][:, :3].T
    assert subspace_angle(w.components, reference) < 1e-5
    none = oracles.wbdr(X, [], cannot, 3)
    assert subspace_angle(none.components, base.largest_eigenvectors(none.repel, 3)[0]) < ANGLE


def test_wbdr_compresses_only_the_first_directions(wine: tuple[Array, Array]) -> None:
    """``V'S_W V = diag(l_i, ..., l_i, l_{i+1}, ..., l_p)`` (the proof of the paper's proposition 4)."""
    X, y = wine
    must, cannot = some_pairs(y, 500, 6)
    w = oracles.wbdr(X, must, cannot, 2, threshold=0.7)
    values = eigh(w.attract, eigvals_only=True)[::-1]
    i = int(np.sum(np.cumsum(values) / values.sum() <= 0.7))
    assert 2 < i < 12
    V = eigh(w.attract)[1][:, ::-1] * np.r_[np.sqrt(values[i - 1] / values[:i]), np.ones(13 - i)]
    np.testing.assert_allclose(
        V.T @ w.attract @ V, np.diag(np.r_[np.full(i, values[i - 1]), values[i:]]), atol=1e-8 * values[0]
    )
    top = eigh(V.T @ w.repel @ V)[1][:, ::-1][:, :2]
    assert subspace_angle(w.components, (V @ top).T) < ANGLE


def test_shrinkage_by_hand(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 39, 7)
    S_W, S_B = linear.within_between(X, must, cannot[:26], "auto")
    raw_W, raw_B = linear.within_between(X, must, cannot[:26])
    assert np.trace(S_W) == pytest.approx(13.0)
    assert np.trace(S_B) == pytest.approx(13.0)
    np.testing.assert_allclose(S_W, 0.75 * raw_W * 13 / np.trace(raw_W) + 0.25 * np.eye(13), atol=1e-12)
    total = X.T @ X
    expected = 2 / 3 * raw_B * 13 / np.trace(raw_B) + 1 / 3 * total * 13 / np.trace(total)
    np.testing.assert_allclose(S_B, expected, atol=1e-12)
    nothing_W, nothing_B = linear.within_between(X, [], [], 0.3)
    np.testing.assert_array_equal(nothing_W, np.eye(13))
    np.testing.assert_allclose(nothing_B, total * 13 / np.trace(total))


@pytest.mark.parametrize("method", [oracles.bwdr, oracles.wbdr])
def test_full_shrinkage_is_pca(method: Callable[..., Solution], wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 50, 8)
    solution = method(X, must, cannot, 3, shrinkage=1.0, threshold=1.0)
    assert subspace_angle(solution.components, PCA(3).fit(X).components_) < ANGLE


@pytest.mark.parametrize("method", [oracles.bwdr, oracles.wbdr, oracles.ssdr, oracles.cmm, oracles.npssdr])
def test_a_pair_of_weight_two_counts_twice(method: Callable[..., Solution], wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 60, 9)
    weighted = method(X, must, cannot, 3, w_must=np.full(60, 2.0), w_cannot=np.r_[2.0, np.ones(59)])
    repeated = method(X, must + must, [*cannot, cannot[0]], 3)
    np.testing.assert_allclose(weighted.attract, repeated.attract, atol=1e-10)
    np.testing.assert_allclose(weighted.repel, repeated.repel, atol=1e-10)
    assert subspace_angle(weighted.components, repeated.components) < ANGLE


# SSDR, CMM, NPSSDR ---------------------------------------------------------------------------------------


def test_ssdr_without_pairs_is_pca(wine: tuple[Array, Array]) -> None:
    X, _ = wine
    solution = oracles.ssdr(X, [], [], 3)
    assert subspace_angle(solution.components, PCA(3).fit(X).components_) < ANGLE
    np.testing.assert_allclose(solution.components @ solution.components.T, np.eye(3), atol=1e-12)


def test_ssdr_is_its_double_sum(iris: tuple[Array, Array]) -> None:
    """SSDR's paper: ``1/(2 n^2) sum_ij + alpha/(2 n_C) sum_C - beta/(2 n_M) sum_M`` is the "half" reading."""
    X, y = iris
    must, cannot = some_pairs(y, 40, 10)
    every = list(itertools.combinations(range(len(X)), 2))
    objective = base.pair_scatter(X, every) / len(X) ** 2
    objective += 0.5 * base.pair_scatter(X, cannot) / 40 - 10.0 * base.pair_scatter(X, must) / 40
    half = oracles.ssdr(X, must, cannot, 2, normalization="half")
    np.testing.assert_allclose(half.repel - half.attract, objective, atol=1e-10)
    full = oracles.ssdr(X, must, cannot, 2, alpha=0.5, beta=10.0)
    np.testing.assert_allclose(full.repel - full.attract, objective, atol=1e-10)
    assert not np.allclose(oracles.ssdr(X, must, cannot, 2).attract, half.attract)


def test_cmm_takes_the_better_axis() -> None:
    X = np.array([[0.0, 0.0], [3.0, 1.0], [1.0, 5.0]])
    solution = oracles.cmm(X, [(0, 2)], [(0, 1)], 1)
    np.testing.assert_allclose(solution.repel, [[9.0, 3.0], [3.0, 1.0]])
    np.testing.assert_allclose(solution.attract, [[1.0, 5.0], [5.0, 25.0]])
    assert abs(solution.components[0, 0]) > 0.98


def test_reconstruction_weights_equal_sklearn(wine: tuple[Array, Array]) -> None:
    X, _ = wine
    R = linear.reconstruction_weights(X, 5, 1e-3)
    np.testing.assert_allclose(R.sum(axis=1), 1.0)
    np.testing.assert_allclose(R, barycenter_kneighbors_graph(X, 5, reg=1e-3).toarray(), atol=1e-9)


def test_npssdr_without_the_lle_term_is_cmm(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 80, 11)
    plain, cmm = oracles.npssdr(X, must, cannot, 3, gamma=0.0), oracles.cmm(X, must, cannot, 3)
    assert subspace_angle(plain.components, cmm.components) < ANGLE
    term = oracles.npssdr(X, must, cannot, 3, gamma=1.0).attract - cmm.attract
    R = linear.reconstruction_weights(X)
    expected = np.zeros_like(term)
    for i in range(len(X)):
        residual = X[i] - sum(R[i, j] * X[j] for j in range(len(X)))
        expected += np.outer(residual, residual) / len(X)
    np.testing.assert_allclose(term, expected, atol=1e-10)


# Chunklets -----------------------------------------------------------------------------------------------


def test_chunklets_by_hand() -> None:
    assert chunklets.chunklets([(5, 1), (2, 7), (1, 3), (7, 2)]) == [[1, 3, 5], [2, 7]]
    X = np.array([[0.0], [2.0], [10.0], [14.0], [99.0]])
    assert chunklets.chunklet_scatter(X, [(0, 1), (2, 3)])[0, 0] == pytest.approx((1 + 1 + 4 + 4) / 4)
    contrast = chunklets.chunklet_contrast(X, [(0, 1), (2, 3)], [(0, 2), (1, 3), (0, 4), (0, 1)])
    assert contrast[0, 0] == pytest.approx((11.0**2 + 98.0**2) / 2)


@pytest.mark.parametrize("n_components", [1, 2])
def test_cfld_with_full_labels_spans_lda(wine: tuple[Array, Array], n_components: int) -> None:
    X, y = wine
    solution = oracles.cfld(X, all_pairs(y)[0], [], n_components)
    assert subspace_angle(solution.components, lda_directions(X, y)[:n_components]) < ANGLE
    np.testing.assert_allclose(np.linalg.norm(solution.components, axis=1), 1.0)


def test_rca_whitens_the_chunklet_covariance(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 60, 12)
    full = oracles.rca(X, must, cannot, 13)
    np.testing.assert_allclose(full.components, full.components.T, atol=1e-8)
    np.testing.assert_allclose(full.components @ full.attract @ full.components.T, np.eye(13), atol=1e-8)
    low = oracles.rca(X, must, cannot, 3)
    np.testing.assert_allclose(low.components @ low.attract @ low.components.T, np.eye(3), atol=1e-8)
    assert subspace_angle(low.components, oracles.cfld(X, must, cannot, 3).components) < ANGLE
    few = oracles.rca(X, must[:4], cannot, 13)
    rank = np.linalg.matrix_rank(few.attract)
    projector = few.components @ few.attract @ few.components.T
    np.testing.assert_allclose(projector @ projector, projector, atol=1e-8)
    assert np.trace(projector) == pytest.approx(rank)


def test_dca_with_full_labels_spans_the_class_means(wine: tuple[Array, Array]) -> None:
    """C_b then spans the differences of class means, and the rows diagonalise both scatters."""
    X, y = wine
    must, cannot = all_pairs(y)
    solution = oracles.dca(X, must, cannot, 5)
    assert solution.components.shape == (2, 13)
    means = np.array([X[y == label].mean(axis=0) for label in np.unique(y)])
    assert subspace_angle(solution.components, means[1:] - means[0]) < ANGLE
    np.testing.assert_allclose(solution.components @ solution.attract @ solution.components.T, np.eye(2), atol=1e-8)
    contrast = solution.components @ solution.repel @ solution.components.T
    np.testing.assert_allclose(np.diag(contrast), 1 / solution.eigenvalues)
    assert abs(contrast[0, 1]) < 1e-8 * contrast[0, 0]
    assert oracles.dca(X, must, [], 2).components.shape == (0, 13)


# All of them on real data --------------------------------------------------------------------------------

PAIR_METHODS = ["bwdr", "wbdr", "ssdr", "cmm", "npssdr", "cfld", "rca", "dca", "slpp", "lppsi", "clpp"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["iris", "wine", "sonar", "vehicle"])
def test_every_oracle_runs_on_real_data(real_data: Callable[[str], tuple[Array, Array]], name: str) -> None:
    X, y = real_data(name)
    must, cannot = some_pairs(y, 300, 18)
    solutions = [getattr(oracles, method)(X, must, cannot, 2) for method in PAIR_METHODS]
    solutions += [oracles.lpp(X, 2), oracles.lfda(X, y, 2), oracles.sda(X, y, 2)]
    for solution in solutions:
        assert solution.components.shape[1] == X.shape[1]
        assert len(solution.components) == len(solution.eigenvalues)
        assert np.isfinite(solution.components).all()
        for S in (solution.attract, solution.repel):
            np.testing.assert_allclose(S, S.T, atol=1e-8 * np.abs(S).max(initial=1e-300))


def test_pairs_may_come_in_any_order(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 60, 19)

    def turned(pairs: Pairs) -> list[tuple[int, int]]:
        return [(j, i) for i, j in reversed(pairs)]

    for method in PAIR_METHODS:
        one = getattr(oracles, method)(X, must, cannot, 2)
        two = getattr(oracles, method)(X, turned(must), turned(cannot), 2)
        assert oracles.relative_difference(one.attract, two.attract) < 1e-10, method
        assert oracles.relative_difference(one.repel, two.repel) < 1e-10, method
        assert subspace_angle(one.components, two.components) < 1e-5, method
