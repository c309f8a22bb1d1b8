"""Promises that every linear method keeps, each one test."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import pairlens
from pairlens import Constraints
from pairlens.exceptions import SupervisionWarning
from tests.estimators import linear_methods
from tests.oracles import subspace_angle

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")
METHODS = linear_methods()
PAIR_METHODS = [cls for cls in METHODS if cls is not pairlens.LPP]
# Their graphs join rows by distance, so a perturbation can swap two neighbours that tie.
GRAPH_METHODS = {pairlens.LPP, pairlens.LPPSI, pairlens.CLPP, pairlens.NPSSDR, pairlens.SDA}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return X, Constraints.from_labels(y, n_pairs=150, random_state=1)


def make(cls, **params):
    """The method with the same folds every time, if it draws any."""
    if "random_state" in cls().get_params():
        params = {"random_state": 0, **params}
    return cls(**params)


def assert_same_view(left, right, atol=1e-7):
    """The same components up to sign."""
    assert left.shape == right.shape
    scale = np.abs(right).max()
    signs = np.sign(np.sum(left * right, axis=1, keepdims=True))
    np.testing.assert_allclose(left * signs, right, atol=atol * scale)


@pytest.mark.parametrize("cls", METHODS)
@given(seed=st.integers(0, 2**31))
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_order_of_pairs_and_inside_pairs_does_not_matter(cls, wine, seed):
    X, pairs = wine
    rng = np.random.default_rng(seed)
    must, cannot = (rng.permuted(rng.permutation(p), axis=1) for p in (pairs.must_link, pairs.cannot_link))
    shuffled = Constraints(must, cannot, n_samples=len(X))
    np.testing.assert_array_equal(
        make(cls).fit(X, constraints=shuffled).components_, make(cls).fit(X, constraints=pairs).components_
    )


@pytest.mark.parametrize("cls", METHODS)
def test_a_pair_given_twice_weighs_twice(cls, wine):
    X, pairs = wine
    double = Constraints(
        np.concatenate([pairs.must_link, pairs.must_link[:20]]),
        np.concatenate([pairs.cannot_link, pairs.cannot_link[:20, ::-1]]),
        n_samples=len(X),
    )
    must_weight, cannot_weight = np.ones(pairs.n_must_link), np.ones(pairs.n_cannot_link)
    must_weight[:20] = cannot_weight[:20] = 2
    weighted = Constraints(
        pairs.must_link,
        pairs.cannot_link,
        n_samples=len(X),
        must_link_weight=must_weight,
        cannot_link_weight=cannot_weight,
    )
    assert_same_view(
        make(cls).fit(X, constraints=double).components_, make(cls).fit(X, constraints=weighted).components_
    )


@pytest.mark.parametrize("cls", [pairlens.SSDR, pairlens.CMM, pairlens.NPSSDR])
def test_repeating_all_pairs_changes_nothing(cls, wine):
    X, pairs = wine
    again = Constraints(np.tile(pairs.must_link, (3, 1)), np.tile(pairs.cannot_link, (3, 1)), n_samples=len(X))
    assert_same_view(make(cls).fit(X, constraints=again).components_, make(cls).fit(X, constraints=pairs).components_)


@pytest.mark.parametrize("cls", METHODS)
def test_translation_changes_nothing(cls, wine):
    X, pairs = wine
    shift = np.linspace(-100, 100, X.shape[1])
    here, there = make(cls).fit(X, constraints=pairs), make(cls).fit(X + shift, constraints=pairs)
    assert_same_view(there.components_, here.components_, atol=1e-6)
    np.testing.assert_allclose(
        there.transform(X + shift), here.transform(X), atol=1e-5 * np.abs(here.transform(X)).max()
    )


@pytest.mark.parametrize("cls", METHODS)
def test_permuting_rows_changes_nothing(cls, wine):
    X, pairs = wine
    order = np.random.default_rng(0).permutation(len(X))
    permuted = make(cls).fit(X[order], constraints=pairs[order])
    assert_same_view(permuted.components_, make(cls).fit(X, constraints=pairs).components_)


@pytest.mark.parametrize("cls", METHODS)
def test_permuting_features_permutes_components(cls, wine):
    X, pairs = wine
    order = np.random.default_rng(0).permutation(X.shape[1])
    permuted = make(cls).fit(X[:, order], constraints=pairs)
    assert_same_view(permuted.components_, make(cls).fit(X, constraints=pairs).components_[:, order])


@pytest.mark.parametrize("cls", METHODS)
def test_float32_stays_float32_and_agrees(cls, wine):
    X, pairs = wine
    single = make(cls).fit(X.astype(np.float32), constraints=pairs)
    double = make(cls).fit(X, constraints=pairs)
    assert single.components_.dtype == np.float32
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert subspace_angle(single.components_.astype(np.float64), double.components_) < 2e-3


@pytest.mark.parametrize("cls", METHODS)
def test_transform_of_many_is_transform_one_by_one(cls, wine):
    X, pairs = wine
    model = make(cls).fit(X, constraints=pairs)
    together = model.transform(X)
    one_by_one = np.concatenate([model.transform(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_allclose(one_by_one, together, atol=1e-10 * np.abs(together).max())
    np.testing.assert_allclose(model.fit_transform(X, constraints=pairs), together)


@pytest.mark.parametrize("cls", METHODS)
def test_the_mean_row_is_the_origin(cls, wine):
    X, pairs = wine
    model = make(cls).fit(X + 3, constraints=pairs)
    Z = model.transform(X + 3)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9 * np.abs(Z).max())


@pytest.mark.parametrize("cls", METHODS)
def test_constant_columns_get_no_weight(cls, wine):
    X, pairs = wine
    padded = np.column_stack([np.full(len(X), 7.0), X, np.zeros(len(X))])
    model = make(cls).fit(padded, constraints=pairs)
    plain = make(cls).fit(X, constraints=pairs)
    assert not model.components_[:, [0, -1]].any()
    assert_same_view(model.components_[:, 1:-1], plain.components_, atol=1e-6)


@pytest.mark.parametrize("cls", METHODS)
def test_fewer_rows_than_features(cls):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = rng.standard_normal((30, 200)) + 2 * np.eye(3, 200)[y]
    model = make(cls).fit(X, constraints=Constraints.from_labels(y, n_pairs=60, random_state=0))
    assert np.isfinite(model.components_).all()
    assert np.linalg.matrix_rank(model.components_) == len(model.components_)
    # Directions lie in the span of the centred rows, z-scored where the method does that.
    rows = X - X.mean(axis=0)
    if cls is pairlens.LinearPairLens:
        rows /= X.var(axis=0)
    residual = model.components_ - model.components_ @ np.linalg.pinv(rows) @ rows
    assert np.abs(residual).max() < 1e-8 * np.abs(model.components_).max()


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
def test_one_pair_is_enough(cls, kind, wine):
    X, _ = wine
    model = make(cls).fit(X, constraints=Constraints(**{kind: [(3, 150)]}, n_samples=len(X)))
    assert 1 <= len(model.components_) <= 2
    assert np.isfinite(model.transform(X)).all()
    assert np.ptp(model.transform(X), axis=0).min() > 0


WITH_NEIGHBOURHOODS = {pairlens.LPPSI, pairlens.CLPP, pairlens.NPSSDR, pairlens.LinearPairLens}


@pytest.mark.parametrize("cls", PAIR_METHODS)
@pytest.mark.parametrize("given", [{}, {"constraints": Constraints(n_samples=178)}, {"y": np.full(178, -1)}], ids=str)
def test_without_pairs_there_is_one_warning_and_pca(cls, given, wine):
    """Methods whose objective describes the neighbourhoods of the rows too show these, and say so."""
    X, _ = wine
    result = "local structure of the rows alone" if cls in WITH_NEIGHBOURHOODS else "result is that of PCA"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(cls).fit(X, **given)
    assert [warning.category for warning in caught] == [SupervisionWarning]
    assert result in str(caught[0].message)
    assert "constraints=" in str(caught[0].message)
    if cls in (pairlens.LPPSI, pairlens.CLPP):
        assert_same_view(model.components_, pairlens.LPP(2).fit(X).components_)
    elif cls not in WITH_NEIGHBOURHOODS:
        pca = PCA(2).fit(X)
        assert_same_view(model.components_, pca.components_)
        np.testing.assert_allclose(model.eigenvalues_, pca.explained_variance_ * (len(X) - 1) / len(X))


def test_npssdr_without_neighbourhoods_is_pca_too(wine):
    X, _ = wine
    assert_same_view(pairlens.NPSSDR(alpha=0.0).fit(X).components_, PCA(2).fit(X).components_)


@pytest.mark.parametrize("cls", PAIR_METHODS)
def test_labels_are_pairs(cls, wine):
    """y with missing labels, the implied pairs kept implicit, and the same pairs listed are one and the same."""
    X, _ = wine
    y = load_wine().target.copy()
    y[np.random.default_rng(0).random(len(y)) < 0.6] = -1
    implicit = make(cls).fit(X, y)
    also = make(cls).fit(X, constraints=Constraints.from_labels(y))
    np.testing.assert_array_equal(also.components_, implicit.components_)
    listed = Constraints.from_labels(y)
    explicit = make(cls).fit(X, constraints=Constraints(listed.must_link, listed.cannot_link, n_samples=len(X)))
    assert_same_view(explicit.components_, implicit.components_, atol=1e-6)
    with_nan = np.where(y < 0, np.nan, y)
    np.testing.assert_array_equal(make(cls).fit(X, with_nan).components_, implicit.components_)


@pytest.mark.parametrize("cls", PAIR_METHODS)
def test_labels_and_constraints_add_up(cls, wine):
    X, _ = wine
    y = load_wine().target
    partial = np.where(np.arange(len(y)) % 4 == 0, y, -1)
    more = Constraints.from_labels(np.where(np.arange(len(y)) % 4 == 1, y, -1), n_pairs=80, random_state=0)
    both = make(cls).fit(X, partial, constraints=more)
    merged = make(cls).fit(X, constraints=Constraints.from_labels(partial).merge(more))
    np.testing.assert_array_equal(both.components_, merged.components_)


@pytest.mark.parametrize("cls", METHODS)
def test_sparse_rows_give_the_same_view(cls):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 3
    X = np.maximum(rng.standard_normal((80, 20)) + 2 * np.eye(3, 20)[y], 0)
    pairs = Constraints.from_labels(y, n_pairs=120, random_state=0)
    dense, csr = make(cls).fit(X, constraints=pairs), make(cls).fit(sparse.csr_matrix(X), constraints=pairs)
    assert_same_view(csr.components_, dense.components_, atol=1e-6)
    np.testing.assert_allclose(csr.transform(sparse.csr_matrix(X)), csr.transform(X), atol=1e-10)


@pytest.mark.parametrize("cls", METHODS)
def test_pickle_pandas_and_names(cls, wine):
    import pandas as pd

    X, pairs = wine
    frame = pd.DataFrame(X, columns=[f"feature {i}" for i in range(X.shape[1])])
    model = make(cls).set_output(transform="pandas").fit(frame, constraints=pairs)
    Z = model.transform(frame)
    assert list(Z.columns) == list(model.get_feature_names_out()) == [f"{cls.__name__.lower()}{i}" for i in range(2)]
    assert list(model.feature_names_in_) == list(frame.columns)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(model)).transform(frame), Z)


@pytest.mark.parametrize("cls", METHODS)
def test_fit_does_not_change_its_input(cls, wine):
    X, pairs = wine
    before = X.copy()
    X.setflags(write=False)
    make(cls).fit(X, constraints=pairs)
    np.testing.assert_array_equal(X, before)


def test_polars_out(wine):
    pl = pytest.importorskip("polars")
    X, pairs = wine
    assert isinstance(pairlens.WBDR().set_output(transform="polars").fit_transform(X, constraints=pairs), pl.DataFrame)


def test_torch_tensor_in(wine):
    torch = pytest.importorskip("torch")
    X, pairs = wine
    model = pairlens.WBDR().fit(torch.from_numpy(X.copy()), constraints=pairs)
    expected = pairlens.WBDR().fit(X, constraints=pairs).components_
    np.testing.assert_allclose(model.components_, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("cls", METHODS)
def test_good_supervision_raises_no_warning(cls, wine):
    X, _ = wine
    known = Constraints.from_labels(load_wine().target, n_pairs=600, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(cls).fit(X, constraints=known).transform(X)
