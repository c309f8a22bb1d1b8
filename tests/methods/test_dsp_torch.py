"""DSP on a torch tensor is DSP on the same rows as a NumPy array."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_blobs
from sklearn.preprocessing import minmax_scale

torch = pytest.importorskip("torch")

from pairlens import DSP, Constraints  # noqa: E402
from pairlens.engines import graph_scatter, projected_rows  # noqa: E402
from pairlens.engines.torch import TensorRows, device_eigen  # noqa: E402
from pairlens.exceptions import SupervisionWarning  # noqa: E402
from pairlens.kernels import delta_to_gamma, must_link_null_space  # noqa: E402
from pairlens.methods import dsp as module  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return minmax_scale(X), y


def quietly(model, X, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupervisionWarning)
        return model.fit(X, **given)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scaling", ["A", "unit", "B"])
def test_same_components(wine, device, scaling):
    X, y = wine
    pairs = Constraints.from_labels(y, per_class=10, random_state=0)
    ours = quietly(DSP(6, scaling=scaling), torch.from_numpy(X).to(device), constraints=pairs)
    theirs = quietly(DSP(6, scaling=scaling), X, constraints=pairs)
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
    assert ours.gamma_ == theirs.gamma_


@pytest.mark.parametrize("device", DEVICES)
def test_float32(wine, device):
    """Neighbours and weights are those of the NumPy pass in float64; the components are rounded to float32."""
    X, y = wine
    X = X.astype(np.float32)
    pairs = Constraints.from_labels(y, per_class=10, random_state=0)
    ours = quietly(DSP(6), torch.from_numpy(X).to(device), constraints=pairs)
    theirs = quietly(DSP(6), X, constraints=pairs)
    assert ours.components_.dtype == np.float32
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=0, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_transform_gives_a_tensor(wine, device):
    X, y = wine
    model = quietly(DSP(3), torch.from_numpy(X).to(device), y=y)
    Z = model.transform(torch.from_numpy(X).to(device))
    assert isinstance(Z, torch.Tensor)
    assert Z.device.type == device
    np.testing.assert_allclose(Z.cpu().numpy(), model.transform(X), atol=1e-10)
    assert model.score(torch.from_numpy(X).to(device), y) == pytest.approx(model.score(X, y), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_ties_duplicates_and_large_groups(seed):
    rng = np.random.default_rng(seed)
    n = 60
    X = rng.integers(0, 4, (n, 3)).astype(float) if seed % 2 else rng.standard_normal((n, 3))
    ends = rng.permutation(n * (n - 1) // 2)
    first, second = np.triu_indices(n, 1)
    pairs = np.column_stack([first, second])[ends]
    known = Constraints(pairs[:20], pairs[20:30], n_samples=n, on_conflict="drop")
    for k in (3, 58, 100):
        ours = quietly(DSP(2, n_neighbors=k, gamma=delta_to_gamma(1.5)), torch.from_numpy(X), constraints=known)
        theirs = quietly(DSP(2, n_neighbors=k, gamma=delta_to_gamma(1.5)), X, constraints=known)
        np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-8, atol=1e-8)


def test_cannot_links_that_are_also_far_count_once():
    X = np.array([[0.0, 0], [1, 0.2], [2, 0.1], [10, 3], [11, 5]])
    known = Constraints([(0, 1)], [(0, 4), (1, 2)], n_samples=5)
    for k in (1, 2):
        ours = quietly(DSP(2, n_neighbors=k, gamma=delta_to_gamma(3.0)), torch.from_numpy(X), constraints=known)
        theirs = quietly(DSP(2, n_neighbors=k, gamma=delta_to_gamma(3.0)), X, constraints=known)
        np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-9)


def test_constant_columns_and_more_features_than_rows(wine):
    X, y = wine
    pairs = Constraints.from_labels(y, per_class=10, random_state=0)
    with_constant = np.column_stack([X[:, :4], np.ones(len(X)), X[:, 4:]])
    wide = np.random.default_rng(0).standard_normal((30, 50))
    few = Constraints([(0, 1), (2, 3)], [(0, 2)], n_samples=30)
    for rows, known in ((with_constant, pairs), (wide, few)):
        ours = quietly(DSP(3), torch.from_numpy(rows), constraints=known)
        theirs = quietly(DSP(3), rows, constraints=known)
        np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-8)


def test_search_of_the_width():
    X, y = make_blobs(150, centers=3, n_features=4, random_state=0)
    pairs = Constraints.from_labels(y, per_class=8, random_state=0)
    ours, theirs = (
        quietly(DSP(2, gamma="search", n_clusters=3, random_state=0, verbose=0), rows, constraints=pairs)
        for rows in (torch.from_numpy(X), X)
    )
    assert ours.gamma_ == theirs.gamma_
    np.testing.assert_array_equal(ours.gamma_scores_["separated"], theirs.gamma_scores_["separated"])
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-8)


def test_float32_rows_far_from_zero():
    X, y = make_blobs(200, centers=3, n_features=4, random_state=0)
    X = (X + 5000).astype(np.float32)
    pairs = Constraints.from_labels(y, per_class=8, random_state=0)
    ours, theirs = (quietly(DSP(2), rows, constraints=pairs) for rows in (torch.from_numpy(X), X))
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-5, atol=1e-7)


def test_warning_of_hubs():
    X = np.random.default_rng(0).standard_normal((60, 5))
    known = Constraints([(i, i + 1) for i in range(20)], n_samples=60)
    with pytest.warns(SupervisionWarning, match="become hubs"):
        DSP(2, gamma=delta_to_gamma(0.05)).fit(torch.from_numpy(X), constraints=known)


def test_errors(wine):
    X, y = wine
    T = torch.from_numpy(X)
    bad = T.clone()
    bad[3, 2] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        DSP().fit(bad, y)


def test_eigenproblems_of_a_device(wine):
    X, y = wine
    known = Constraints.from_labels(y, per_class=10, random_state=0)
    rows = TensorRows.of(torch.from_numpy(X))
    F = must_link_null_space(rows, known.chunklets(), gamma=0.5).coordinates(rows)
    projected = projected_rows(rows, F, 0.5, known.chunklets())
    found = projected.neighbors(5)
    A = graph_scatter(rows, module.near_edges(projected, found))
    B = graph_scatter(rows, module.far_edges(projected, found, known.cannot_link, np.ones(known.n_cannot_link)))
    ours = module.dual_diagonalisation(A, B, 4, eigh=partial(device_eigen, device=torch.device(DEVICES[-1])))
    theirs = module.dual_diagonalisation(A, B, 4)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9)
    np.testing.assert_allclose(np.abs(ours[1]), np.abs(theirs[1]), atol=1e-8)
