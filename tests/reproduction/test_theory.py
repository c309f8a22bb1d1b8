"""What the papers prove, by name: propositions and theorems hold for the methods as they are built."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlens import BWDR, WBDR, WSDR, Constraints, KernelNullSpace, Preferences
from pairlens.preference.wsdr import Robustness, robustness
from reproduction.checks import theory
from reproduction.results import Results

BY_NAME = [
    "proposition_1",
    "proposition_2",
    "theorem_3",
    "proposition_4",
    "proposition_6",
    "theorem_7",
    "must_links_collapse",
    "projection_is_optimal",
    "input_space_collapses",
    "figure_1",
    "figure_2",
    "concentration",
    "theorem_2",
]


@pytest.mark.parametrize("name", BY_NAME)
def test_it_holds(name):
    holds, words = getattr(theory, name)(Results([]))
    assert holds is True, words


@pytest.mark.parametrize("name", ["proposition_1", "proposition_2", "theorem_3"])
def test_checks_of_stretching_can_fail(name, monkeypatch):
    right = theory.stretched_basis
    monkeypatch.setattr(theory, "stretched_basis", lambda S, i: (right(S, i)[0][:, ::-1] * np.arange(1, i + 1), 1.0))
    assert not getattr(theory, name)(Results([]))[0]


@pytest.mark.parametrize("name", ["proposition_4", "proposition_6", "theorem_7"])
def test_checks_of_compressing_can_fail(name, monkeypatch):
    right = theory.compressed_basis
    monkeypatch.setattr(theory, "compressed_basis", lambda S, i: (3 * right(S, i)[0], right(S, i)[1]))
    assert not getattr(theory, name)(Results([]))[0]


def _pairs(seed: int) -> tuple[np.ndarray, Constraints, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((60, 6)) * rng.uniform(0.3, 3, 6), np.arange(60) % 3
    pairs = Constraints.from_labels(y, n_pairs=300, random_state=seed)
    differences = [X[found[:, 0]] - X[found[:, 1]] for found in (pairs.must_link, pairs.cannot_link)]
    return X, pairs, *(part.T @ part for part in differences)


@pytest.mark.parametrize("seed", range(5))
def test_proposition_1_of_the_fitted_method(seed):
    X, pairs, _, S_B = _pairs(seed)
    A = BWDR(3, shrinkage=0.0, threshold=1.0).fit(X, constraints=pairs).components_.T
    between = A.T @ S_B @ A
    assert np.allclose(between / np.linalg.eigvalsh(S_B)[-1], np.eye(3), atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_corollary_5_of_the_fitted_method(seed):
    X, pairs, S_W, _ = _pairs(seed)
    A = WBDR(3, shrinkage=0.0).fit(X, constraints=pairs).components_.T
    assert np.allclose(A.T @ S_W @ A / np.linalg.eigvalsh(S_W)[0], np.eye(3), atol=1e-9)


@pytest.mark.parametrize(("method", "place"), [(BWDR, 3), (WBDR, 2)])
def test_remark_1(method, place):
    """The target is what the difference becomes; here it only scales the view."""
    found = _pairs(0)
    X, pairs, S = found[0], found[1], found[place]
    free = method(2, shrinkage=0.0, threshold=1.0).fit(X, constraints=pairs).components_
    fixed = method(2, shrinkage=0.0, threshold=1.0, target=1.0).fit(X, constraints=pairs).components_
    assert np.allclose(fixed @ S @ fixed.T, np.eye(2), atol=1e-9)
    ratio = fixed / free
    assert np.allclose(ratio, ratio[0, 0])


def test_null_space_of_the_figures_is_that_of_the_estimator():
    x, _ = theory.quadratic_points()
    phi = np.column_stack([x, x**2])
    for link in (theory.GOOD_LINK, theory.BAD_LINK):
        pairs = Constraints([link], n_samples=len(x))
        K = KernelNullSpace(kernel="linear").fit_transform(phi, constraints=pairs)
        values = theory.null_space_values(link)
        assert np.allclose(K, np.outer(values, values), atol=1e-10)


# --- Theorem 1 of WSDR -----------------------------------------------------------------------------------------------

vectors = st.lists(st.lists(st.floats(-3, 3), min_size=3, max_size=3), min_size=2, max_size=8).map(np.array)


@settings(max_examples=100, deadline=None)
@given(vectors, st.lists(st.floats(-3, 3), min_size=3, max_size=3).map(np.array))
def test_theorem_1_bounds_losses(steps, w):
    """For angles above 90 degrees with b in place of a; below it is the bound as printed."""
    lengths = np.linalg.norm(steps, axis=1)
    steps = steps[lengths > 1e-3]
    if len(steps) < 2:
        return
    found = robustness(steps)
    losses = np.maximum(1 - steps @ w, 0)
    assert np.ptp(losses) <= found.bound(float(np.linalg.norm(w))) * (1 + 1e-9) + 1e-9
    if found.angle <= np.pi / 2:
        printed = np.linalg.norm(w) * np.sqrt(max(2 * found.b**2 - 2 * found.a**2 * np.cos(found.angle), 0))
        assert found.bound(float(np.linalg.norm(w))) == pytest.approx(printed)


def test_theorem_1_is_not_right_above_90_degrees():
    difference, bound = theory.counter_example()
    assert difference > bound
    corrected = Robustness(0.1, 0.5, np.pi).bound(1.0)
    assert difference <= corrected + 1e-12
    holds, words = theory.robustness_bound(Results([]))
    assert holds == "in part"
    assert f"{difference:.2f}" in words


def test_theorem_2_needs_its_first_term(monkeypatch):
    monkeypatch.setattr(theory.Robustness, "bound", lambda self, norm: -10.0)
    assert not theory.theorem_2(Results([]))[0]


def test_not_every_preference_comes_closer():
    holds, words = theory.view_is_more_robust(Results([]))
    assert holds == "in part"
    assert "10 of 10" in words


def test_robustness_of_a_fitted_view():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    pairs = Preferences.from_scores(X[:, 0], n_pairs=60, random_state=0)
    view = WSDR(2, C=1.0).fit(X, preferences=pairs)
    found = view.robustness(X, preferences=pairs)
    Z = view.transform(X)
    steps = Z[pairs.pairs[:, 0]] - Z[pairs.pairs[:, 1]]
    lengths = np.linalg.norm(steps, axis=1)
    unit = steps / lengths[:, None]
    assert (found.a, found.b) == pytest.approx((lengths.min(), lengths.max()))
    assert np.cos(found.angle) == pytest.approx((unit @ unit.T).min())
    # What the method minimises is what the theorem asks for: preferences point the same way.
    before = robustness(X[pairs.pairs[:, 0]] - X[pairs.pairs[:, 1]])
    assert np.mean(unit @ unit.mean(axis=0)) > 0.8
    assert found.angle < before.angle
    with pytest.raises(ValueError, match="at least one preference"):
        view.robustness(X, preferences=Preferences([], n_samples=40))
