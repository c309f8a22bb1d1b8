"""LMCA against its definition, and against PCA for what it is for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens.exceptions import ArgumentError, SupervisionWarning
from pairlens.preference import lmca
from pairlens.preference.lmca import LMCA, LargeMarginNeighbours, target_neighbours
from pairlens.supervision import Constraints
from tests.oracles import preference as oracle


def problem(seed: int):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(17, 4))
    codes = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, -1])
    return X, codes, rng.normal(size=(2, 4)) * 0.5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sigma", [0.0, 0.1, 2.0])
def test_value_and_gradient_are_those_of_the_definition(seed, sigma, monkeypatch):
    X, codes, L = problem(seed)
    targets = target_neighbours(X, codes, 3)
    assert sorted(map(tuple, targets.tolist())) == sorted(oracle.target_neighbours(X, codes.tolist(), 3))
    objective = LargeMarginNeighbours(targets, codes, c=0.7, sigma=sigma)
    monkeypatch.setattr(lmca, "BLOCK_BYTES", 17 * 8)
    value, gradient = objective(X @ L.T)
    expected = oracle.lmca_objective(X @ L.T, targets.tolist(), codes.tolist(), c=0.7, sigma=sigma, L=L)
    assert value == pytest.approx(expected, rel=1e-12)
    numerical = oracle.numerical_gradient(lambda Z: objective(Z)[0], X @ L.T)
    assert np.linalg.norm(gradient - numerical) <= 1e-6 * np.linalg.norm(numerical)


def test_blocks_do_not_change_the_result(monkeypatch):
    rng = np.random.default_rng(0)
    Z, codes = rng.normal(size=(200, 3)), np.arange(200) % 4
    objective = LargeMarginNeighbours(target_neighbours(Z, codes, 2), codes, 1.0, 0.1)
    value, gradient = objective(Z)
    monkeypatch.setattr(lmca, "BLOCK_BYTES", 1)
    other_value, other_gradient = objective(Z)
    assert other_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-9, atol=1e-12)


def test_helps_nearest_neighbours_more_than_pca():
    X, y = load_wine(return_X_y=True)
    X = np.hstack([StandardScaler().fit_transform(X), 3 * np.random.default_rng(0).normal(size=(178, 5))])
    nearest = KNeighborsClassifier(3)
    ours = cross_val_score(make_pipeline(LMCA(2, max_iter=50), nearest), X, y, cv=3).mean()
    principal = cross_val_score(make_pipeline(PCA(2), nearest), X, y, cv=3).mean()
    assert ours > 0.85
    assert ours > principal + 0.2


def test_score_is_higher_after_learning():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    view = LMCA(2, max_iter=50).fit(X[::2], y[::2])
    assert np.all(np.diff(view.loss_curve_) <= 0)
    assert view.n_iter_ == len(view.loss_curve_) - 1
    assert view.score(X[1::2], y[1::2]) > 0.9


def test_labels_and_chunklets_and_missing_labels(ranked):
    known = np.where(np.arange(80) < 40, ranked.y, -1)
    from_labels = LMCA(2, max_iter=5).fit(ranked.X, known).components_
    links = [
        (a, b) for c in range(3) for a, b in zip(*(np.flatnonzero(known == c)[s] for s in (slice(-1), slice(1, None))))
    ]
    from_links = LMCA(2, max_iter=5).fit(ranked.X, constraints=Constraints(must_link=links, n_samples=80)).components_
    np.testing.assert_allclose(from_links, from_labels, atol=1e-8)


def test_sparse_rows(ranked):
    dense = LMCA(2, max_iter=5).fit(ranked.X, ranked.y)
    view = LMCA(2, max_iter=5).fit(sparse.csr_matrix(ranked.X), ranked.y)
    np.testing.assert_allclose(view.components_, dense.components_, atol=1e-6)


def test_without_classes_it_is_pca(ranked):
    for y in (None, np.zeros(80), np.arange(80)):
        with pytest.warns(SupervisionWarning, match="that of PCA"):
            view = LMCA(2).fit(ranked.X, y)
        np.testing.assert_allclose(np.abs(view.components_), np.abs(PCA(2).fit(ranked.X).components_), atol=1e-9)


def test_errors_say_what_is_wrong(ranked):
    with pytest.raises(ArgumentError) as caught:
        LMCA(9).fit(ranked.X, ranked.y)
    assert (caught.value.argument, caught.value.value) == ("n_components", 9)
    with pytest.raises(ValueError, match="no variation"):
        LMCA().fit(np.ones((80, 3)), ranked.y)
