"""DSP against dense matrices written out, its warnings, its errors and its approximate path."""

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
from pairlens.engines import column_means
from pairlens.exceptions import ApproximationWarning, SupervisionWarning
from pairlens.graphs.approximate import approximate_neighbors
from pairlens.kernels.nullspace import delta_to_gamma, must_link_null_space
from pairlens.methods import dsp as module
from pairlens.methods.dsp import DSP, dual_diagonalisation
from pairlens.spectral.rowspace import row_space
from tests.oracles.base import relative_difference, subspace_angle
from tests.oracles.dsp import dsp, gaussian, must_link_spectrum, projected_squared_distances

WIDTHS = {"wine": 0.6, "vehicle": 0.9, "sonar": 0.8, "balance": 0.7}


def scatters(model: DSP, X: np.ndarray, known: Constraints) -> tuple[np.ndarray, np.ndarray]:
    return model._scatters(row_space(X, column_means(X)), known)


def recall(expected: np.ndarray, found: np.ndarray) -> float:
    """Mean share of each row's expected neighbours that were found."""
    return (expected[:, :, None] == found[:, None, :]).any(axis=2).mean()


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
    monkeypatch.setattr("pairlens.kernels.nullspace.MAX_LINKED", 200)
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


def test_search_takes_the_first_width_that_separates_most(wine, capsys):
    X, y = wine
    known = Constraints.from_labels(y, per_class=10, random_state=0)
    model = DSP(2, gamma="search", n_clusters=3, random_state=0, verbose=1).fit(X, constraints=known)
    scores = model.gamma_scores_
    assert model.gamma_ == scores["gamma"][np.argmax(scores["separated"])]
    assert scores["separated"].max() > 0.85
    assert scores["separated"][0] < scores["separated"].max() - 0.2  # a tenth of the median is too small
    assert capsys.readouterr().err.count("separates") == len(scores["gamma"]) == 9
    quiet = DSP(2, gamma="search", n_clusters=3, random_state=0, verbose=0).fit(X, constraints=known)
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(quiet.components_, model.components_)
    assert not hasattr(model.set_params(gamma="auto").fit(X, constraints=known), "gamma_scores_")
    labelled = DSP(2, gamma="search", random_state=0, verbose=0).fit(X, np.where(np.arange(len(y)) % 4 == 0, y, -1))
    assert labelled.gamma_scores_["separated"].max() == 1


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
    with pytest.raises(ValueError, match='gamma="search" needs cannot-links'):
        DSP(gamma="search").fit(X, constraints=one)
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

    from pairlens.metrics import pairwise_f_score

    X, y = wine
    scores = []
    for seed in range(5):
        known = Constraints.from_labels(y, per_class=5, random_state=seed)
        Z = DSP(6, gamma=delta_to_gamma(0.6)).fit_transform(X, constraints=known)
        scores.append(pairwise_f_score(y, KMeans(3, init="random", n_init=10, random_state=seed).fit_predict(Z)))
    assert np.mean(scores) == pytest.approx(0.932, abs=0.035)


@pytest.fixture(scope="module")
def blobs():
    pytest.importorskip("faiss")
    X, y = make_blobs(3000, 20, centers=12, cluster_std=4.0, random_state=0)
    return X.astype(np.float32), y, Constraints.from_labels(y, per_class=4, random_state=0)


class TestApproximate:
    def test_recall_angle_and_score(self, blobs):
        X, y, known = blobs
        exact = DSP(6, neighbors="exact").fit(X, constraints=known)
        approx = DSP(6, neighbors="approx", random_state=0).fit(X, constraints=known)
        assert subspace_angle(exact.components_, approx.components_) < 0.05
        assert approx.score(X, y) == pytest.approx(exact.score(X, y), abs=0.01)

    def test_recall_of_edges_with_few_cells_looked_at(self, blobs, monkeypatch):
        from pairlens.engines.local.projected import LocalProjectedRows
        from pairlens.graphs import approximate

        monkeypatch.setattr(approximate, "CELL_ROWS", 200)
        X, _, known = blobs
        chunklets, gamma = known.chunklets(), delta_to_gamma(20.0)
        F = must_link_null_space(X, chunklets, gamma=gamma).coordinates(X)
        rows = LocalProjectedRows.of(X, F, gamma, chunklets)
        exact = rows.neighbors(5)
        found = approximate_neighbors(rows, 5, random_state=0)
        near = recall(exact.nearest, found.nearest)
        far = recall(exact.farthest, found.farthest)
        assert near > 0.9
        assert far > 0.99
        fewer = approximate_neighbors(rows, 5, random_state=0, n_probe=1)
        assert recall(exact.nearest, fewer.nearest) < near
        assert found.largest_input == pytest.approx(exact.largest_input)
        assert found.largest_projected == pytest.approx(exact.largest_projected, rel=0.05)
        # Must-linked rows are at distance zero, and are found.
        for i, j in known.must_link[:20]:
            if (chunklets == chunklets[i]).sum() <= 6:
                assert j in found.nearest[i]

    def test_many_must_links_leave_cells_something_to_be_formed_by(self, monkeypatch):
        """300 directions are projected out; with 128 kernel features in all, recall was 0.88."""
        pytest.importorskip("faiss")
        from pairlens.engines import neighbors
        from pairlens.engines.local.projected import LocalProjectedRows
        from pairlens.graphs import approximate

        monkeypatch.setattr(approximate, "CELL_ROWS", 50)
        rng = np.random.default_rng(0)
        X = rng.standard_normal((3000, 8)).astype(np.float32)
        ends = rng.choice(3000, 300, replace=False)
        near_ones = neighbors(X, n_nearest=20).nearest[ends, 19]
        chunklets = Constraints(np.column_stack([ends, near_ones]), n_samples=3000).chunklets()
        F = must_link_null_space(X, chunklets, gamma=delta_to_gamma(4.0)).coordinates(X)
        rows = LocalProjectedRows.of(X, F, delta_to_gamma(4.0), chunklets)
        exact = rows.neighbors(5).nearest
        found = approximate_neighbors(rows, 5, random_state=0, n_probe=4).nearest
        assert recall(exact, found) > 0.93

    def test_as_many_cells_are_looked_at_as_the_data_need(self, monkeypatch):
        """A round cloud in 16 dimensions hides neighbours behind many borders: 4 cells hold three quarters of them."""
        pytest.importorskip("faiss")
        from pairlens.engines.local.projected import LocalProjectedRows
        from pairlens.graphs import approximate

        monkeypatch.setattr(approximate, "CELL_ROWS", 50)
        X = np.random.default_rng(0).standard_normal((4000, 16)).astype(np.float32)
        chunklets, gamma = Constraints([(0, 1)], n_samples=4000).chunklets(), delta_to_gamma(6.0)
        F = must_link_null_space(X, chunklets, gamma=gamma).coordinates(X)
        rows = LocalProjectedRows.of(X, F, gamma, chunklets)
        exact = rows.neighbors(5).nearest
        few, enough = (approximate_neighbors(rows, 5, random_state=0, n_probe=n).nearest for n in (4, None))
        assert recall(exact, few) < 0.85
        assert recall(exact, enough) > 0.93
        # A pair may be met from both sides; nobody is listed twice.
        assert all(len(set(row)) == 5 for row in enough.tolist())

    def test_the_same_seed_gives_the_same_result(self, blobs):
        X, _, known = blobs
        here, there = (DSP(3, neighbors="approx", random_state=3).fit(X, constraints=known) for _ in range(2))
        np.testing.assert_array_equal(here.components_, there.components_)

    def test_few_rows_duplicates_and_no_must_links(self):
        pytest.importorskip("faiss")
        rng = np.random.default_rng(0)
        X = np.repeat(rng.standard_normal((30, 3)), 3, axis=0)
        known = Constraints([], [(0, 80), (3, 60)], n_samples=90)
        exact = DSP(2, neighbors="exact").fit(X, constraints=known)
        approx = DSP(2, neighbors="approx", random_state=0).fit(X, constraints=known)
        assert subspace_angle(exact.components_, approx.components_) < 0.05

    def test_auto_switches_above_a_number_of_rows(self, blobs, monkeypatch):
        X, _, known = blobs
        monkeypatch.setattr("pairlens.graphs.edges.EXACT_ROWS", 2500)
        auto = DSP(3, random_state=0).fit(X, constraints=known)
        approx = DSP(3, neighbors="approx", random_state=0).fit(X, constraints=known)
        np.testing.assert_array_equal(auto.components_, approx.components_)
