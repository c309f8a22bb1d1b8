"""The kernel forms against the linear ones in all kernel principal components, written out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_circles
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel

from pairlens import BWDR, WBDR, Constraints, KernelBWDR, KernelWBDR, kernels
from tests.oracles import subspace_angle

FORMS = [(KernelBWDR, BWDR), (KernelWBDR, WBDR)]


@pytest.mark.parametrize(("kernel_form", "linear_form"), FORMS)
@pytest.mark.parametrize("rank", [10, None])
def test_it_is_the_linear_method_in_kernel_principal_components(kernel_form, linear_form, rank):
    X, y = load_iris(return_X_y=True)
    X = X[::3] + 1e-3 * np.random.default_rng(0).standard_normal((50, 4))
    pairs = Constraints.from_labels(y[::3], n_pairs=60, random_state=0)
    squared = np.sum((X[:, None] - X) ** 2, axis=2)
    gamma = 1 / np.median(squared[np.triu_indices(50, 1)])
    model = kernel_form(2, rank=rank).fit(X, constraints=pairs)
    coordinates = KernelPCA(rank, kernel="rbf", gamma=gamma).fit_transform(X)
    expected = linear_form(2).fit_transform(coordinates, constraints=pairs)
    if rank is not None:
        found = model.transform(X)
        signs = np.sign(np.sum(found * expected, axis=0))
        np.testing.assert_allclose(found * signs, expected, atol=1e-6 * np.abs(expected).max())
    else:
        # Two libraries cut the tail of the spectrum at different places, which hardly matters to the shrunk method.
        assert subspace_angle(model.transform(X).T, expected.T) < 1e-3


@pytest.mark.parametrize(("kernel_form", "linear_form"), FORMS)
def test_circles_need_the_kernel(kernel_form, linear_form):
    X, y = make_circles(300, factor=0.4, noise=0.05, random_state=0)
    pairs = Constraints.from_labels(y, n_pairs=300, random_state=0)
    assert kernel_form(1).fit(X, constraints=pairs).score(X, y) > 0.9
    assert linear_form(1).fit(X, constraints=pairs).score(X, y) < 0.7


def test_nystroem_is_close_to_exact(monkeypatch):
    X, y = load_iris(return_X_y=True)
    pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    exact = KernelWBDR(rank=8).fit(X, constraints=pairs)
    monkeypatch.setattr(kernels, "ANCHORS", 60)
    nearly = KernelWBDR(rank=8).fit(X, constraints=pairs)
    assert nearly._features.anchors.shape[0] == 60
    assert nearly.score(X, y) == pytest.approx(exact.score(X, y), abs=0.02)


def test_features_reproduce_the_kernel_of_new_rows():
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((40, 3)), rng.standard_normal((5, 3))
    phi = kernels.kernel_features(X, kernel="rbf", gamma=0.5)
    np.testing.assert_allclose(phi(X) @ phi(X).T, rbf_kernel(X, gamma=0.5), atol=1e-8)
    np.testing.assert_allclose(phi(new) @ phi(X).T, rbf_kernel(new, X, gamma=0.5), atol=1e-6)


@pytest.mark.parametrize("cls", [KernelBWDR, KernelWBDR])
def test_more_directions_than_rows_is_an_error(cls):
    X = np.random.default_rng(0).standard_normal((6, 3))
    with pytest.raises(ValueError, match="n_components must be at most the number of rows, 6; got 7"):
        cls(7).fit(X, [0, 0, 0, 1, 1, 1])
