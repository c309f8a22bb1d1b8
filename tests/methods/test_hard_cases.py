"""Inputs at the edge: equal rows in pairs, extreme scales and weights, very many labels, mixed supervision."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import StandardScaler

import pairlens
from pairlens import BWDR, LFDA, SDA, SSDR, WBDR, Constraints, KernelBWDR, KernelLPPSI
from pairlens.exceptions import ApproximationWarning, SupervisionWarning
from pairlens.judging import pair_auc, views
from pairlens.supervision import combined
from pairlens.supervision.combined import class_codes
from tests.estimators import linear_methods
from tests.oracles import subspace_angle

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")
METHODS = linear_methods()


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    X[1] = X[0]
    return X


@pytest.mark.parametrize("cls", [BWDR, WBDR])
def test_pairs_of_equal_rows_count_as_none(cls, table):
    equal, others = [(0, 1)], [(4, 5), (6, 7), (8, 9), (10, 11)]
    for must, cannot in ((equal, others), (others, equal)):
        model = cls(shrinkage=0.0).fit(table, constraints=Constraints(must, cannot, n_samples=40))
        assert np.isfinite(model.components_).all()
        assert model.components_.any()


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize(("dtype", "scale"), [("f4", 1e20), ("f4", 1e-30), ("f8", 1e60), ("f8", 1e-60)])
def test_extreme_scales_are_survived(cls, dtype, scale, table):
    X = (table * scale).astype(dtype)
    pairs = Constraints([(2, 3), (4, 5), (12, 13)], [(6, 7), (8, 9), (10, 11)], n_samples=40)
    model = cls().fit(X, constraints=pairs)
    assert model.components_.dtype == model.mean_.dtype == X.dtype
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.transform(X)).all()
    assert len(model.components_) >= 1


@pytest.mark.parametrize("cls", [BWDR, WBDR, SSDR])
@pytest.mark.parametrize("scale", [1e170, 1e-170])
def test_scales_beyond_float64_are_refused(cls, scale, table):
    with pytest.raises(ValueError, match="Rescale"):
        cls().fit(table * scale, constraints=Constraints([(2, 3), (4, 5)], [(6, 7), (8, 9)], n_samples=40))


@pytest.mark.parametrize("weight", [1e-90, 1e80])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_only_the_ratio_of_weights_matters_to_the_paper_form(weight, dtype, table):
    must, cannot = [(2, 3), (4, 5), (12, 13), (0, 9)], [(6, 7), (8, 9), (10, 11), (3, 20)]
    X = table.astype(dtype)
    plain = WBDR(shrinkage=0.0).fit(X, constraints=Constraints(must, cannot, n_samples=40))
    known = Constraints(must, cannot, n_samples=40, must_link_weight=weight, cannot_link_weight=weight)
    scaled = WBDR(shrinkage=0.0).fit(X, constraints=known)
    assert subspace_angle(scaled.components_.astype(float), plain.components_.astype(float)) < 1e-4


def test_kernel_views_are_centred_and_repeat_their_signs():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    order = np.random.default_rng(0).permutation(len(X))
    for cls in (KernelLPPSI, KernelBWDR):
        Z = cls().fit(X, constraints=pairs).transform(X)
        np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-8 * np.abs(Z).max())
        assert (Z.std(axis=0) > 1e-3 * np.abs(Z).max()).all()
        permuted = cls().fit(X[order], constraints=pairs[order]).transform(X)
        np.testing.assert_allclose(permuted, Z, atol=1e-5 * np.abs(Z).max())


def test_kernels_may_be_functions_and_bad_names_are_refused(table):
    pairs = Constraints([(2, 3), (4, 5)], [(6, 7), (8, 9)], n_samples=40)
    by_function = KernelBWDR(kernel=lambda a, b: a @ b, rank=None).fit_transform(table, constraints=pairs)
    by_name = KernelBWDR(kernel="linear", rank=None).fit_transform(table, constraints=pairs)
    np.testing.assert_allclose(by_function, by_name, atol=1e-8)
    with pytest.raises(ValueError, match="'kernel' parameter of KernelBWDR"):
        KernelBWDR(kernel="bogus").fit(table, constraints=pairs)


def test_score_by_labels_keeps_the_rare_kind():
    rng = np.random.default_rng(0)
    y = np.arange(3000)
    y[7] = y[5]
    Z = rng.standard_normal((3000, 3))
    Z[7] = Z[5]
    assert pair_auc(Z, Constraints.from_labels(y)) == pytest.approx(1.0)


def test_score_counts_explicit_pairs_and_weights_beside_very_many_labels(monkeypatch):
    """Of 435 pairs that labels imply a hundred are drawn; one given pair that outweighs all of them is not lost."""
    Z = np.arange(40.0)[:, None]
    labels = np.where(np.arange(40) < 30, np.arange(40) // 15, -1)
    by_labels = Constraints.from_labels(labels)
    exact = pair_auc(Z, by_labels)
    monkeypatch.setattr(views, "MAX_SCORED_PAIRS", 100)
    assert pair_auc(Z, by_labels) == pytest.approx(exact, abs=0.06)
    for far, expected in ((30.5, 1.0), (1000.0, 0.0)):  # shorter than every cannot-link, or longer
        Z[39] = far
        heavy = Constraints([(30, 39)], n_samples=40, must_link_weight=1e9)
        assert pair_auc(Z, by_labels.merge(heavy)) == pytest.approx(expected, abs=1e-6)
    light = Constraints([(30, 39)], n_samples=40, must_link_weight=1e-9)
    assert pair_auc(Z, by_labels.merge(light)) == pytest.approx(exact, abs=0.06)
    Z[39] = 39
    weighted = Constraints([(0, 1), (0, 39)], [(0, 20)], n_samples=40, must_link_weight=[1.0, 3.0])
    assert pair_auc(Z, weighted) == pytest.approx(0.25)


@pytest.mark.parametrize("n_pairs", [50, 178])
def test_cross_validation_with_few_pairs_gives_numbers(n_pairs):
    import sklearn

    X, y = load_wine(return_X_y=True)
    pairs = Constraints.from_labels(y, n_pairs=n_pairs, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            WBDR(), StandardScaler().fit_transform(X), params={"constraints": pairs}, cv=KFold(5, shuffle=True)
        )
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("cls", [pairlens.CLPP, pairlens.LPPSI, KernelLPPSI])
def test_methods_that_list_pairs_draw_from_very_many(cls, monkeypatch):
    monkeypatch.setattr(combined, "MAX_WRITTEN_PAIRS", 500)
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    with pytest.warns(ApproximationWarning, match="500 are drawn"):
        model = cls().fit(X, y)
    assert model.score(X, y) > 0.8


def test_must_links_pass_labels_on():
    labels = [0, 0, 1, 1, -1, -1, -1, -1, -1, -1]
    pairs = Constraints([(0, 4), (4, 5), (6, 7)], n_samples=10)
    known = Constraints.from_labels(labels).merge(pairs)
    np.testing.assert_array_equal(class_codes(known), [0, 0, 1, 1, 0, 0, 2, 2, -1, -1])
    with pytest.warns(pairlens.exceptions.ConflictWarning):
        clash = Constraints.from_labels(labels).merge(Constraints([(0, 4), (4, 2)], n_samples=10))
    np.testing.assert_array_equal(class_codes(clash), [0, 0, 1, 1, -1, -1, -1, -1, -1, -1])
    X = np.random.default_rng(0).standard_normal((10, 3))
    for cls in (LFDA, SDA):
        assert not np.allclose(cls(1).fit(X, labels).components_, cls(1).fit(X, labels, constraints=pairs).components_)


def test_constant_sparse_columns_do_not_count(table):
    padded = np.column_stack([table, np.full(40, 7.0)])
    pairs = Constraints([(2, 3), (4, 5)], [(6, 7), (8, 9)], n_samples=40)
    for cls in (BWDR, WBDR):
        dense = cls().fit(padded, constraints=pairs).components_
        np.testing.assert_allclose(
            cls().fit(sparse.csr_matrix(padded), constraints=pairs).components_, dense, atol=1e-9
        )


def test_accepted_contradictions_stay_accepted(table):
    with pytest.warns(pairlens.exceptions.ConflictWarning):
        known = Constraints([(2, 3), (4, 5)], [(2, 3), (6, 7)], n_samples=40, on_conflict="warn")
    y = np.where(np.arange(40) > 30, np.arange(40) % 2, -1)
    with pytest.warns(pairlens.exceptions.ConflictWarning):
        WBDR().fit(table, y, constraints=known)
    with pytest.raises(pairlens.exceptions.ConflictError):
        WBDR().fit(table, y, constraints=Constraints([(31, 32)], n_samples=40))


def test_warnings_point_at_the_caller(table):
    for call in (lambda: WBDR().fit(table), lambda: WBDR().fit_transform(table)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert [w.filename for w in caught if issubclass(w.category, SupervisionWarning)] == [__file__]


def test_shrinkage_factor_strengthens_the_prior():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    n_must, n_cannot = pairs.n_must_link, pairs.n_cannot_link
    model = WBDR(shrinkage_factor=4.0)
    space, known = model._coordinates(X, pairs)
    S_W, S_B = model._scatters(space, known)
    plain_W, plain_B = WBDR(shrinkage=0.0)._scatters(space, known)
    share = 4 * 13 / (4 * 13 + n_must)
    np.testing.assert_allclose(S_W, (1 - share) * plain_W * 13 / np.trace(plain_W) + share * np.eye(13))
    share = 4 * 13 / (4 * 13 + n_cannot)
    T = X.T @ X
    np.testing.assert_allclose(S_B, (1 - share) * plain_B * 13 / np.trace(plain_B) + share * T * 13 / np.trace(T))


def test_repeated_rows_in_a_class_are_no_trouble():
    """Their local scale is 0: full affinity to each other, none to the rest of the class."""
    rng = np.random.default_rng(0)
    X = np.concatenate([np.repeat(rng.standard_normal((2, 3)), 10, axis=0), rng.standard_normal((20, 3)) + 3])
    y = np.repeat([0, 1], 20)
    model = LFDA(2).fit(X, y)
    assert np.isfinite(model.components_).all()
    from tests import oracles

    assert subspace_angle(model.components_, oracles.lfda(X, y, 2).components) < 1e-6


def test_float32_far_from_zero_keeps_its_digits():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)).astype(np.float32)
    far = (X.astype(np.float64) + 1e4).astype(np.float32)
    model = WBDR().fit(far, rng.integers(0, 2, 300))
    exact = (far.astype(np.float64) - far.mean(axis=0, dtype=np.float64)) @ model.components_.T.astype(np.float64)
    np.testing.assert_allclose(model.transform(far), exact, atol=1e-3 * np.abs(exact).max())
