"""The oracles of methods with neighbour graphs or labels, checked on facts known from elsewhere."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.datasets import make_blobs

from tests import oracles
from tests.oracles import base, labels, locality, subspace_angle
from tests.oracles.base import Array
from tests.oracles.facts import ANGLE, assert_solves_ratio, lda_directions, some_pairs

# Neighbour graphs ----------------------------------------------------------------------------------------


def test_lpp_solves_its_problem(wine: tuple[Array, Array]) -> None:
    X, _ = wine
    assert_solves_ratio(oracles.lpp(X, 4), maximum=False)


def test_lpp_scatter_is_the_loop_over_edges(iris: tuple[Array, Array]) -> None:
    X, _ = iris
    graph, Xc = base.knn_edges(X, 5), base.centre(X)
    theta = np.mean(np.sqrt((Xc**2).sum(axis=1))) ** 2
    attract, repel = np.zeros((4, 4)), np.zeros((4, 4))
    for i, j in itertools.combinations(range(len(X)), 2):
        if graph[i, j]:
            weight = math.exp(-((X[i] - X[j]) ** 2).sum() / theta)
            attract += weight * np.outer(X[i] - X[j], X[i] - X[j])
            repel += weight * (np.outer(Xc[i], Xc[i]) + np.outer(Xc[j], Xc[j]))
    solution = oracles.lpp(X, 2)
    np.testing.assert_allclose(solution.attract, attract, atol=1e-10)
    np.testing.assert_allclose(solution.repel, repel, atol=1e-10)


def test_slpp_by_loops(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 120, 13)
    solution = oracles.slpp(X, must, cannot, 3)
    np.testing.assert_allclose(solution.attract, base.pair_scatter(X, must), atol=1e-9)
    Xc = base.centre(X)
    repel = sum(np.outer(Xc[i], Xc[i]) for pair in must for i in pair)
    repel = repel + sum(np.outer(Xc[i], Xc[i]) for i in {i for pair in must for i in pair})
    np.testing.assert_allclose(solution.repel, repel, atol=1e-9)
    W, A = solution.components, solution.attract
    np.testing.assert_allclose(W @ A @ W.T, np.eye(3), atol=1e-7)
    reference = eigh(A, solution.repel)
    np.testing.assert_allclose(solution.eigenvalues, reference[0][:3])
    assert subspace_angle(W, reference[1][:, :3].T) < ANGLE


def test_slpp_survives_fewer_links_than_features(wine: tuple[Array, Array]) -> None:
    X, y = wine
    solution = oracles.slpp(X, some_pairs(y, 4, 14)[0], [], 3)
    assert solution.components.shape == (3, 13)
    assert np.isfinite(solution.components).all()


def test_lppsi_solves_its_problem(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 100, 15)
    assert_solves_ratio(oracles.lppsi(X, must, cannot, 3), maximum=False)
    free, lpp = oracles.lppsi(X, [], [], 3), oracles.lpp(X, 3)
    assert oracles.relative_difference(free.attract, lpp.attract) == 0.0
    assert subspace_angle(free.components, lpp.components) < ANGLE


def test_lppsi_graphs_by_hand() -> None:
    X = np.array([[0.0], [1.0], [2.1], [3.3], [5.0]])
    Ss, Sd = locality.lppsi_graphs(X, [(0, 3)], [(1, 2), (0, 4)], n_neighbors=1, theta=1.0)
    similar = {(int(i), int(j)) for i, j in np.argwhere(Ss) if i < j}
    assert similar == {(0, 1), (0, 3), (2, 3), (3, 4)}
    assert Ss[0, 3] == pytest.approx(math.exp(-(3.3**2)))
    assert Sd[1, 2] == pytest.approx(math.exp(-(1.1**2)))
    np.testing.assert_array_equal(Ss, Ss.T)


def test_lppsi_matrices_are_the_loops_over_pairs(iris: tuple[Array, Array]) -> None:
    X, y = iris[0][::5], iris[1][::5]
    must, cannot = some_pairs(y, 20, 20)
    edges = base.knn_edges(X, 3)
    K = locality.rbf(X, 2.0)
    H = np.eye(len(X)) - 1 / len(X)
    rows = {"linear": base.centre(X), "kernel": H @ K @ H}
    found = {
        "linear": oracles.lppsi(X, must, cannot, 2, n_neighbors=3, beta=0.7, theta=4.0),
        "kernel": oracles.kernel_lppsi(X, must, cannot, 2, n_neighbors=3, beta=0.7, theta=4.0, delta=2.0),
    }
    for kind, Z in rows.items():
        attract, repel = np.zeros((Z.shape[1],) * 2), np.zeros((Z.shape[1],) * 2)
        for i, j in itertools.combinations(range(len(X)), 2):
            weight = math.exp(-((X[i] - X[j]) ** 2).sum() / 4.0)
            outer = weight * np.outer(Z[i] - Z[j], Z[i] - Z[j])
            if (i, j) in cannot:
                attract -= 0.7 * outer
            elif (i, j) in must or edges[i, j]:
                attract += outer
                repel += weight * (np.outer(Z[i], Z[i]) + np.outer(Z[j], Z[j]))
        np.testing.assert_allclose(found[kind].attract, attract, atol=1e-9)
        np.testing.assert_allclose(found[kind].repel, repel, atol=1e-9)


def test_kernel_lppsi_solves_its_problem(iris: tuple[Array, Array]) -> None:
    X, y = iris
    must, cannot = some_pairs(y, 60, 16)
    solution = oracles.kernel_lppsi(X, must, cannot, 3, delta=2.0)
    assert solution.dual is not None
    assert solution.dual.shape == (3, len(X))
    np.testing.assert_allclose(solution.dual @ solution.repel @ solution.dual.T, np.eye(3), atol=1e-6)
    quotients = np.diag(solution.dual @ solution.attract @ solution.dual.T)
    np.testing.assert_allclose(quotients, solution.eigenvalues, rtol=1e-6)
    K = locality.rbf(X, 2.0)
    assert K[0, 1] == pytest.approx(math.exp(-((X[0] - X[1]) ** 2).sum() / 8.0))
    random = np.random.default_rng(0).normal(size=(200, len(X)))
    tried = np.einsum("ij,jk,ik->i", random, solution.attract, random)
    tried = tried / np.einsum("ij,jk,ik->i", random, solution.repel, random)
    assert solution.eigenvalues[0] <= tried.min()


def test_clpp_affinity_by_hand() -> None:
    X = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])
    A0, A = locality.clpp_affinity(X, [(0, 2)], [(0, 4), (1, 4)], n_neighbors=1, theta=1.0)
    h = math.exp(-1.0)
    expected = np.zeros((6, 6))
    # edges 01, 23, 45; the must-link 02 goes on to 12 and 03, the cannot-links 04 and 14 to 05 and 15
    for i, j, v in [(0, 1, h), (2, 3, h), (4, 5, h)]:
        expected[i, j] = expected[j, i] = v
    np.testing.assert_allclose(A0, expected)
    for i, j, v in [(0, 2, 1.0), (0, 4, -1.0), (1, 4, -1.0), (1, 2, h), (0, 3, h), (0, 5, -h), (1, 5, -h)]:
        expected[i, j] = expected[j, i] = v
    np.testing.assert_allclose(A, expected)


def test_clpp_contributions_to_one_pair_are_summed() -> None:
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    _, A = locality.clpp_affinity(X, [(0, 2)], [(1, 3)], n_neighbors=1, theta=1.0)
    np.testing.assert_allclose(A[1, 2], 0.0, atol=1e-15)  # +h through 1 near 0, -h through 2 near 3
    np.testing.assert_allclose(A[0, 3], 0.0, atol=1e-15)
    assert (A[0, 2], A[1, 3]) == (1.0, -1.0)


def test_clpp_solves_its_problem(wine: tuple[Array, Array]) -> None:
    X, y = wine
    must, cannot = some_pairs(y, 60, 17)
    assert_solves_ratio(oracles.clpp(X, must, cannot, 3), maximum=False)
    assert subspace_angle(oracles.clpp(X, [], [], 3).components, oracles.lpp(X, 3).components) < ANGLE


# Labels --------------------------------------------------------------------------------------------------


def test_sda_with_all_labels_and_no_penalty_is_lda(wine: tuple[Array, Array]) -> None:
    X, y = wine
    solution = oracles.sda(X, y, 2, alpha=0.0, beta=1e-9)
    assert subspace_angle(solution.components, lda_directions(X, y)) < ANGLE


def test_sda_solves_its_problem_with_few_labels(wine: tuple[Array, Array]) -> None:
    X, y = wine
    few = np.where(np.arange(len(y)) % 6 == 0, y, -1)
    solution = oracles.sda(X, few, 2)
    assert_solves_ratio(solution, maximum=True)
    used = X[few != -1]
    assert np.linalg.matrix_rank(solution.repel, tol=1e-8) == 2
    S_w = sum((few == c).sum() * np.cov(X[few == c].T, bias=True) for c in range(3))
    np.testing.assert_allclose(solution.repel + S_w, len(used) * np.cov(used.T, bias=True), atol=1e-9)
    graph = base.knn_edges(X, 5)
    pairs = [(i, j) for i, j in itertools.combinations(range(len(X)), 2) if graph[i, j]]
    expected = len(used) * np.cov(used.T, bias=True) + 0.1 * base.pair_scatter(X, pairs) + 0.01 * np.eye(13)
    np.testing.assert_allclose(solution.attract, expected, atol=1e-8)


def test_lfda_scatters_are_the_double_sums(iris: tuple[Array, Array]) -> None:
    X, y = iris[0][::3], iris[1][::3].copy()
    y[::10] = -1
    solution = oracles.lfda(X, y, 2)
    Xl, yl = X[y != -1], y[y != -1]
    within, between = np.zeros((4, 4)), np.zeros((4, 4))
    for i, j in itertools.product(range(len(yl)), repeat=2):
        outer = np.outer(Xl[i] - Xl[j], Xl[i] - Xl[j])
        if yl[i] != yl[j]:
            between += 0.5 * outer / len(yl)
            continue
        mates = Xl[yl == yl[i]]
        s_i = np.sort(np.linalg.norm(mates - Xl[i], axis=1))[7]
        s_j = np.sort(np.linalg.norm(mates - Xl[j], axis=1))[7]
        affinity = math.exp(-((Xl[i] - Xl[j]) ** 2).sum() / (s_i * s_j))
        within += 0.5 * affinity / len(mates) * outer
        between += 0.5 * affinity * (1 / len(yl) - 1 / len(mates)) * outer
    np.testing.assert_allclose(solution.attract, within, atol=1e-10)
    np.testing.assert_allclose(solution.repel, between, atol=1e-10)
    lengths = np.diag(solution.components @ solution.attract @ solution.components.T)
    np.testing.assert_allclose(lengths, solution.eigenvalues)
    np.testing.assert_allclose(solution.eigenvalues, eigh(between, within, eigvals_only=True)[::-1][:2])


def test_lfda_with_flat_affinity_has_fishers_scatters(iris: tuple[Array, Array]) -> None:
    """With A = 1 the two scatters are those of Fisher: ``S^w = S_w`` and ``S^b = S_b``."""
    X, y = iris
    n = len(y)
    W = np.array([[1 / (y == a).sum() if a == b else 0.0 for b in y] for a in y])
    B = np.array([[1 / n - 1 / (y == a).sum() if a == b else 1 / n for b in y] for a in y])
    Xc = base.centre(X)
    S_w = sum((y == c).sum() * np.cov(X[y == c].T, bias=True) for c in range(3))
    np.testing.assert_allclose(Xc.T @ base.laplacian(W) @ Xc, S_w, atol=1e-9)
    np.testing.assert_allclose(Xc.T @ base.laplacian(B) @ Xc, Xc.T @ Xc - S_w, atol=1e-9)


def test_lfda_is_near_lda_on_separated_gaussians() -> None:
    X, y = make_blobs(300, 5, centers=3, cluster_std=0.5, random_state=0)
    solution = oracles.lfda(X, y, 2)
    assert subspace_angle(solution.components, lda_directions(X, y)) < 0.15


def test_lfda_takes_duplicates_and_tiny_classes() -> None:
    X = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [6.0, 5.0], [9.0, 0.0], [4.0, 4.0]])
    y = np.array([0, 0, 0, 1, 1, 2, -1])
    within, between = labels.lfda_weights(X[:6], y[:6])
    assert within[0, 1] == pytest.approx(1 / 3)  # s is the distance to the last mate, 1
    assert within[3, 4] == pytest.approx(math.exp(-1.0) / 2)
    np.testing.assert_array_equal(within[5], 0.0)
    np.testing.assert_allclose(between[5], [1 / 6] * 5 + [0.0])
    assert np.isfinite(oracles.lfda(X, y, 2).components).all()
    twins = np.r_[np.zeros((8, 2)), [[1.0, 0.0]]]  # s = 0 for the eight equal rows
    within, _ = labels.lfda_weights(twins, np.zeros(9))
    assert (within[0, 1], within[0, 8]) == (1 / 9, 0.0)
