"""WSDR on torch tensors: the same objective, gradient and fit as on NumPy arrays."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pairlens import WSDR, Preferences  # noqa: E402
from pairlens.preference.objective import (  # noqa: E402
    Objective,
    Pairs,
    largest_differences,
    largest_differences_on_device,
)
from pairlens.preference.ranksvm import accuracy, rank_svm  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
LOSSES = [
    {"gamma2": 1.0},
    {"gamma2": 1.7},
    {"gamma2": 0.5},
    {"gamma2": 0.5, "sigma": 0.0},
    {"gamma2": 1.0, "squared": True},
    {"gamma2": 1.0, "C": 0.0},
    {"gamma2": 0.3, "gamma1": 30.0},
]


def problem(n=400, D=6, count=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    score = X @ rng.standard_normal(D) + rng.standard_normal(n)
    ends = np.unique(np.sort(rng.integers(n, size=(count, 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    ends = np.where((score[ends[:, 0]] > score[ends[:, 1]])[:, None], ends, ends[:, ::-1])
    return X, ends, rng.uniform(0.5, 2.0, len(ends))


def pairs_on(device, ends, n, weight):
    return Pairs.of(torch.from_numpy(ends).to(device), n, torch.from_numpy(weight).to(device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", LOSSES)
def test_value_and_gradient(options, device):
    X, ends, weight = problem()
    Z = X[:, :3].copy()
    Z[ends[0, 1]] = Z[ends[0, 0]]  # one pair without a direction
    width = options.get("sigma", 0.1) * largest_differences(X, ends)
    T = torch.from_numpy(X).to(device)
    on_device = options.get("sigma", 0.1) * largest_differences_on_device(T, torch.from_numpy(ends).to(device))
    np.testing.assert_array_equal(on_device.cpu(), width)
    here = Objective(Pairs.of(ends, len(X), weight), width, **options)
    there = Objective(pairs_on(device, ends, len(X), weight), on_device, **options)
    for terms in ({}, {"angle": False}, {"distance": False}):
        value, gradient = here(Z, **terms)
        other, other_gradient = there(torch.from_numpy(Z).to(device), **terms)
        assert other == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(other_gradient.cpu(), gradient, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("device", DEVICES)
def test_ranking(device):
    X, ends, weight = problem()
    here, steps = rank_svm(X, Pairs.of(ends, len(X), weight), 3.0)
    pairs = pairs_on(device, ends, len(X), weight)
    T = torch.from_numpy(X).to(device)
    there, other_steps = rank_svm(T, pairs, 3.0)
    assert steps == other_steps
    np.testing.assert_allclose(there.cpu(), here, rtol=1e-9)
    assert accuracy(T @ there, pairs) == pytest.approx(accuracy(X @ here, Pairs.of(ends, len(X), weight)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "options",
    [
        {"C": 0.1},
        {"C": 0.01},
        {"gamma2": 0.5, "max_iter": 20},
        {"C": 0.1, "angle_loss": "squared", "max_iter": 15},
        {"C": 0.01, "solver": "admm", "max_iter": 2},
    ],
)
@pytest.mark.filterwarnings("ignore:alternating directions")
def test_same_fit(options, device):
    """Where the solver converges, or makes few steps: later ones amplify rounding, as they do for rows reordered."""
    X, ends, weight = problem()
    known = Preferences(ends, n_samples=len(X), weight=weight)
    here = WSDR(3, random_state=0, **options).fit(X, preferences=known)
    there = WSDR(3, random_state=0, **options).fit(torch.from_numpy(X).to(device), preferences=known)
    assert there.n_iter_ == here.n_iter_
    # Steps on the way amplify rounding too, before they meet again at the minimum.
    np.testing.assert_allclose(there.loss_curve_, here.loss_curve_, rtol=1e-6)
    ends_of = [0, 1, 2, -1]
    np.testing.assert_allclose(np.take(there.loss_curve_, ends_of), np.take(here.loss_curve_, ends_of), rtol=1e-9)
    scale = np.abs(here.components_).max()
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-7 * scale)
    np.testing.assert_allclose(there.ranking_, here.ranking_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("device", DEVICES)
def test_search_of_C(device):
    X, ends, _ = problem()
    known = Preferences(ends, n_samples=len(X))
    here = WSDR(2, C="auto", max_iter=8, random_state=0).fit(X, preferences=known)
    there = WSDR(2, C="auto", max_iter=8, random_state=0).fit(torch.from_numpy(X).to(device), preferences=known)
    assert there.C_ == here.C_
    np.testing.assert_allclose(list(there.cv_scores_.values()), list(here.cv_scores_.values()), atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tensors_come_back(device, dtype):
    X, ends, _ = problem()
    X = X.astype(dtype)
    known = Preferences(ends, n_samples=len(X))
    T = torch.from_numpy(X).to(device)
    model = WSDR(2, C=0.1).fit(T, preferences=known)
    assert model.components_.dtype == dtype
    for call in (model.transform, model.decision_function):
        result = call(T)
        assert isinstance(result, torch.Tensor)
        assert result.device.type == device
        np.testing.assert_allclose(result.cpu().numpy(), call(X), atol=1e-5 if dtype == np.float32 else 1e-12)
    assert model.score(T, preferences=known) == pytest.approx(model.score(X, preferences=known), abs=1e-6)


def test_scores_wide_rows_and_no_preferences():
    X, _, _ = problem(n=60)
    y = X[:, 0].round()
    here, there = (WSDR(2, C=0.1, random_state=0).fit(rows, y) for rows in (X, torch.from_numpy(X)))
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-8)
    wide = np.random.default_rng(0).standard_normal((20, 50))
    known = Preferences(np.arange(20).reshape(10, 2), n_samples=20)
    here, there = (WSDR(2, C=0.1, max_iter=10).fit(rows, preferences=known) for rows in (wide, torch.from_numpy(wide)))
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-8)
    with pytest.warns(UserWarning, match="no preferences were given"):
        there = WSDR(2).fit(torch.from_numpy(X))
    assert there.components_.shape == (2, 6)


def test_errors():
    X, ends, _ = problem()
    known = Preferences(ends, n_samples=len(X))
    bad = torch.from_numpy(X).clone()
    bad[1, 1] = torch.inf
    with pytest.raises(ValueError, match="infinity"):
        WSDR().fit(bad, preferences=known)
    with pytest.raises(ValueError, match="WSDR needs at least 2 rows"):
        WSDR().fit(torch.ones((1, 3)))
    model = WSDR(2, C=0.1).fit(torch.from_numpy(X), preferences=known)
    with pytest.raises(ValueError, match="features"):
        model.transform(torch.ones((4, 3)))
