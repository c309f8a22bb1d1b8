"""DSP against dense matrices written out, its warnings, its errors and its landmarks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_wine, make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, minmax_scale

from pairlens import Constraints
from pairlens.engines import column_means, config_context
from pairlens.exceptions import ApproximationWarning, ArgumentError, SupervisionWarning
from pairlens.kernels import delta_to_gamma
from pairlens.methods import dsp as module
from pairlens.methods.dsp import DSP, dual_diagonalisation
from pairlens.spectral.rowspace import row_space
from tests.oracles.base import relative_difference, subspace_angle
from tests.oracles.dsp import dsp, gaussian, must_link_spectrum, projected_squared_distances

WIDTHS = {"wine": 0.6, "vehicle": 0.9, "sonar": 0.8, "balance": 0.7}


def scatters(model: DSP, X: np.ndarray, known: Constraints) -> tuple[np.ndarray, np.ndarray]:
    return model._scatters(row_space(X, column_means(X)), known)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return minmax_scale(X), y


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("per_class", [5, 20])
def test_agrees_with_dense_matrices(name, per_class, real_data):
    X, y = (part[:450] for part in real_data(name))
    X, delta = minmax_scale(X), WIDTHS[name]
    known = Constraints.from_labels(y, per_class=per_class, random_state=per_class)
    r = X.shape[1] // 2
    expected = dsp(X, known.must_link.tolist(), known.cannot_link.tolist(), r, delta)
    model = DSP(r, gamma=delta_to_gamma(delta), neighbors="exact")
    A, B = scatters(model, X, known)
    assert relative_difference(A, expected.A) < 1e-8
    assert relative_difference(B, expected.B) < 1e-8
    model.fit(X, constraints=known)
    assert subspace_angle(model.components_, expected.components) < 1e-6
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues, rtol=1e-7, atol=1e-12)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(8, 40),
    f=st.integers(1, 4),
    grid=st.booleans(),
    n_must=st.integers(0, 30),
    k=st.integers(1, 7),
)
@example(seed=51207, n=8, f=1, grid=True, n_must=4, k=1)  # must-links between identical rows only
@settings(max_examples=60, deadline=None)
def test_agrees_on_ties_duplicates_and_large_chunklets(seed, n, f, grid, n_must, k):
    """Integer grids are full of equal distances and equal rows, many must-links of groups larger than k."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, f)).astype(float) if grid else rng.standard_normal((n, f))
    assume(np.ptp(X, axis=0).min() > 0)
    first, second = np.triu_indices(n, 1)
    chosen = rng.permutation(len(first))
    must, cannot = chosen[:n_must], chosen[n_must : n_must + 5]
    known = Constraints(
        np.column_stack([first[must], second[must]]),
        np.column_stack([first[cannot], second[cannot]]),
        n_samples=n,
        on_conflict="drop",
    )
    assume(known.n_pairs > 0)
    # Identical rows are one point too: told to the oracle as must-links, which changes nothing else.
    same = [(i, j) for i in range(n) for j in range(i + 1, n) if (X[i] == X[j]).all()]
    must_link = known.must_link.tolist() + same
    # With eigenvalues about the cut, which directions are dropped depends on the basis they are computed in.
    spectrum = must_link_spectrum(gaussian(X, 0.6), must_link)
    assume(not ((spectrum > 1e-13) & (spectrum < 1e-6)).any())
    # Distances that differ by less than the oracle rounds away are ties to it alone.
    gaps = np.diff(np.unique(projected_squared_distances(X, must_link, 0.6)))
    assume(not ((gaps > 1e-13) & (gaps < 1e-8)).any())
    expected = dsp(X, must_link, known.cannot_link.tolist(), 1, 0.6, n_neighbors=k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        A, B = scatters(DSP(gamma=delta_to_gamma(0.6), n_neighbors=k, neighbors="exact"), X, known)
    size = n * np.var(X, axis=0).sum()
    np.testing.assert_allclose(A, expected.A, atol=1e-7 * size)
    np.testing.assert_allclose(B, expected.B, atol=1e-9 * size)


@pytest.mark.parametrize("scaling", ["A", "unit", "B"])
def test_scalings(scaling, wine):
    X, y = wine
    known = Constraints.from_labels(y, per_class=10, random_state=0)
    model = DSP(4, gamma=delta_to_gamma(0.6), scaling=scaling).fit(X, constraints=known)
    A, B = scatters(model, X, known)
    W = model.components_
    form = {"A": W @ A @ W.T, "unit": W @ W.T, "B": W @ B @ W.T}[scaling]
    np.testing.assert_allclose(np.diag(form), 1, rtol=1e-8)
    np.testing.assert_allclose(np.diag(W @ A @ W.T) / np.diag(W @ B @ W.T), model.eigenvalues_, rtol=1e-8)
    assert (np.diff(model.eigenvalues_) >= 0).all()
    expected = dsp(X, known.must_link.tolist(), known.cannot_link.tolist(), 4, 0.6, scaling=scaling)
    np.testing.assert_allclose(np.abs(W), np.abs(expected.components), rtol=1e-6, atol=1e-8)


def test_tolerance_cuts_directions_of_the_repelling_form():
    A, B = np.diag([1.0, 2.0, 3.0]), np.diag([1.0, 1e-4, 1.0])
    values, directions = dual_diagonalisation(A, B, 3, tol=1e-9)
    assert len(values) == 3
    values, directions = dual_diagonalisation(A, B, 3, tol=1e-3, scaling="B")
    np.testing.assert_allclose(values, [1, 3])
    np.testing.assert_allclose(np.abs(directions), [[1, 0], [0, 0], [0, 1]], atol=1e-12)
    values, directions = dual_diagonalisation(np.zeros((2, 2)), np.eye(2), 2)
    assert np.isfinite(directions).all()


def test_only_the_groups_that_must_links_form_matter(wine):
    X, _ = wine
    chain = [(0, 5), (5, 9), (9, 20), (60, 70), (130, 140), (140, 150)]
    cannot = [(0, 60), (0, 130)]
    tree = Constraints(chain, cannot, n_samples=len(X))
    full = tree.closure()
    star = Constraints([(0, 5), (0, 9), (0, 20), (60, 70), (130, 150), (130, 140)], cannot, n_samples=len(X))
    model = DSP(3, gamma=delta_to_gamma(0.6)).fit(X, constraints=tree)
    same = DSP(3, gamma=delta_to_gamma(0.6)).fit(X, constraints=star)
    np.testing.assert_allclose(same.components_, model.components_, rtol=1e-8, atol=1e-10)
    A, _ = scatters(DSP(gamma=delta_to_gamma(0.6)), X, tree)
    A_full, _ = scatters(DSP(gamma=delta_to_gamma(0.6)), X, full)
    assert relative_difference(A, A_full) < 1e-12


def test_all_labels_of_many_rows(monkeypatch):
    """Many labelled rows: the null space and the cannot-links are drawn from, and the fit says so."""
    monkeypatch.setattr(module, "MAX_IMPLIED", 10_000)
    monkeypatch.setattr("pairlens.kernels.MAX_LINKED", 200)
    X, y = make_blobs(600, 6, centers=3, random_state=0)
    with pytest.warns(ApproximationWarning) as caught:
        model = DSP(2).fit(X, y)
    messages = " ".join(str(warning.message) for warning in caught)
    assert "600 rows are must-linked" in messages
    assert "cannot-links" in messages
    assert model.score(X, y) > 0.99


def test_drawn_cannot_links_stand_for_all(monkeypatch):
    X, y = make_blobs(400, 5, centers=3, cluster_std=3, random_state=0)
    known = Constraints.from_labels(np.where(np.arange(400) < 300, y, -1))
    _, B = scatters(DSP(), X, known)
    monkeypatch.setattr(module, "MAX_IMPLIED", 10_000)
    with pytest.warns(ApproximationWarning):
        _, drawn = scatters(DSP(), X, known)
    assert relative_difference(drawn, B) < 0.03


def test_block_budget_changes_nothing(wine):
    X, y = wine
    known = Constraints.from_labels(y, per_class=10, random_state=0)
    here = DSP(3).fit(X, constraints=known)
    with sklearn.config_context(working_memory=0.01):
        there = DSP(3).fit(X, constraints=known)
    np.testing.assert_array_equal(here.components_, there.components_)


def test_sparse_wide_and_rank_deficient_data():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 4
    X = np.maximum(rng.standard_normal((40, 300)) + 2 * np.eye(4, 300)[y], 0)
    known = Constraints.from_labels(y, per_class=5, random_state=0)
    dense = DSP(3).fit(X, constraints=known)
    csr = DSP(3).fit(sparse.csr_matrix(X), constraints=known)
    np.testing.assert_allclose(csr.components_, dense.components_, atol=1e-8 * np.abs(dense.components_).max())
    low = X[:, :3] @ rng.standard_normal((3, 10))
    with pytest.warns(SupervisionWarning, match="found 3 usable directions of the n_components=5"):
        model = DSP(5).fit(low, constraints=known)
    assert np.isfinite(model.components_).all()


def test_search_takes_the_middle_width_that_separates_most(wine, capsys):
    X, y = wine
    known = Constraints.from_labels(y, per_class=10, random_state=0)
    model = DSP(2, gamma="search", n_clusters=3, random_state=0, verbose=1).fit(X, constraints=known)
    scores = model.gamma_scores_
    tied = np.flatnonzero(scores["separated"] == scores["separated"].max())
    assert model.gamma_ == scores["gamma"][tied[len(tied) // 2]]
    assert scores["separated"].max() > 0.85
    assert scores["separated"][0] < scores["separated"].max() - 0.2  # a tenth of the median is too small
    assert capsys.readouterr().err.count("separates") == len(scores["gamma"]) == 9
    quiet = DSP(2, gamma="search", n_clusters=3, random_state=0, verbose=0).fit(X, constraints=known)
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(quiet.components_, model.components_)
    assert not hasattr(model.set_params(gamma="auto").fit(X, constraints=known), "gamma_scores_")
    labelled = DSP(2, gamma="search", random_state=0, verbose=0).fit(X, np.where(np.arange(len(y)) % 4 == 0, y, -1))
    assert labelled.gamma_scores_["separated"].max() == 1


@pytest.mark.parametrize(
    ("separated", "chosen"),
    [([0, 0, 1, 1, 1, 0, 0, 0, 0], 3), ([0, 0, 1, 1, 0, 0, 0, 0, 0], 3), ([0, 0, 0, 0, 0, 0, 0, 0, 1], 8)],
)
def test_of_equal_widths_the_middle_one_and_of_two_the_wider_is_taken(separated, chosen, wine, monkeypatch):
    """Too small a width does more harm than too large a one."""
    X, y = wine
    known = Constraints.from_labels(y, per_class=5, random_state=0)
    monkeypatch.setattr(DSP, "_separated", lambda *_: np.array(separated, dtype=float))
    model = DSP(2, gamma="search", n_clusters=3).fit(X, constraints=known)
    assert model.gamma_ == model.gamma_scores_["gamma"][chosen]


def test_hubs_are_announced(wine):
    X, y = wine
    known = Constraints.from_labels(y, per_class=20, random_state=0)
    with pytest.warns(SupervisionWarning, match="must-linked rows become hubs"):
        DSP(2, gamma=delta_to_gamma(0.1)).fit(X, constraints=known)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DSP(2).fit(X, constraints=known)
        DSP(2, gamma=delta_to_gamma(0.6)).fit(X, constraints=known)


def test_errors(wine):
    X, _ = wine
    one = Constraints([(0, 1)], n_samples=len(X))
    for gamma in (0, -1.0, "mean"):
        with pytest.raises(ValueError, match="'gamma' parameter of DSP"):
            DSP(gamma=gamma).fit(X, constraints=one)
    with pytest.raises(ArgumentError, match="needs cannot-links") as caught:
        DSP(gamma="search").fit(X, constraints=one)
    assert (caught.value.argument, caught.value.value) == ("gamma", "search")
    for name, value in {"scaling": "C", "tol": -1, "neighbors": "some", "n_neighbors": 0}.items():
        with pytest.raises(ValueError, match=f"'{name}' parameter of DSP"):
            DSP(**{name: value}).fit(X, constraints=one)


def test_fewer_rows_than_neighbours_and_all_rows_in_one_group():
    X = np.random.default_rng(0).standard_normal((4, 2))
    assert np.isfinite(DSP(1).fit(X, constraints=Constraints([(0, 1)], [(2, 3)], n_samples=4)).components_).all()
    assert np.isfinite(DSP(1).fit(X, [0, 0, 0, 0]).components_).all()


def test_pairs_are_routed(wine):
    X, y = wine
    known = Constraints.from_labels(y, per_class=10, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        Z = make_pipeline(MinMaxScaler(), DSP(2)).fit_transform(X, constraints=known)
    np.testing.assert_allclose(Z, DSP(2).fit_transform(X, constraints=known), atol=1e-8 * np.abs(Z).max())


def test_table_4_on_wine(wine):
    """F of k-means in six dimensions with 5 pairs for each class is 0.932 in the paper."""
    from sklearn.cluster import KMeans

    from reproduction.scores import pairwise_f_score

    X, y = wine
    scores = []
    for seed in range(5):
        known = Constraints.from_labels(y, per_class=5, random_state=seed)
        Z = DSP(6, gamma=delta_to_gamma(0.6)).fit_transform(X, constraints=known)
        scores.append(pairwise_f_score(y, KMeans(3, init="random", n_init=10, random_state=seed).fit_predict(Z)))
    assert np.mean(scores) == pytest.approx(0.932, abs=0.035)


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(3000, 20, centers=12, cluster_std=4.0, random_state=0)
    return X.astype(np.float32), y, Constraints.from_labels(y, per_class=4, random_state=0)


class TestLandmarks:
    """Above a number of rows, evenly spaced ones and those in pairs represent all."""

    def test_angle_score_and_mean(self, blobs):
        X, y, known = blobs
        exact = DSP(6, neighbors="exact").fit(X, constraints=known)
        with config_context(landmark_rows=1500), pytest.warns(ApproximationWarning, match="of the 3,000 rows"):
            few = DSP(6, neighbors="approx").fit(X, constraints=known)
        assert set(known.rows) <= set(few._landmarks)
        assert 1500 <= len(few._landmarks) < 1600
        assert few.score(X, y) == pytest.approx(exact.score(X, y), abs=0.01)
        np.testing.assert_array_equal(few.mean_, exact.mean_)
        same = DSP(6, neighbors="exact").fit(X[few._landmarks], constraints=known[few._landmarks])
        np.testing.assert_array_equal(few.components_, same.components_)

    def test_auto_switches_above_a_number_of_rows(self, blobs, monkeypatch):
        X, _, known = blobs
        monkeypatch.setattr("pairlens.methods.dsp.EXACT_ROWS", 2500)
        with config_context(landmark_rows=1000):
            with pytest.warns(ApproximationWarning, match="DSP learns from 1,1.. of the 3,000 rows"):
                DSP(3).fit(X, constraints=known)
            with warnings.catch_warnings():
                warnings.simplefilter("error", ApproximationWarning)
                DSP(3, neighbors="exact").fit(X, constraints=known)

    def test_few_rows_are_all_used(self):
        X = np.random.default_rng(0).standard_normal((90, 3))
        known = Constraints([], [(0, 80), (3, 60)], n_samples=90)
        every, few = (DSP(2, neighbors=how).fit(X, constraints=known) for how in ("exact", "approx"))
        np.testing.assert_array_equal(every.components_, few.components_)
