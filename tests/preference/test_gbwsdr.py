"""GBWSDR: its two tree libraries, early stopping, and the case it is for."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from pairlens import _optional
from pairlens.engines import config_context
from pairlens.exceptions import MissingExtraError, SupervisionWarning
from pairlens.preference import gbwsdr
from pairlens.preference.gbwsdr import GBWSDR, SklearnTrees, TreeOptions, XGBoostTrees
from pairlens.preference.ranksvm import RankSVM
from pairlens.preference.wsdr import WSDR
from pairlens.supervision import Preferences
from tests.oracles import preference as oracle

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
TARGETS = np.column_stack([np.sign(X[:, 0]), np.sign(X[:, 1] + X[:, 2])])
OPTIONS = TreeOptions(max_depth=3, learning_rate=0.5, min_samples_leaf=2, n_jobs=1, seed=0)


def grown(kind, rows):
    if kind is XGBoostTrees:
        pytest.importorskip("xgboost")
    trees = kind(rows, 2, OPTIONS)
    for _ in range(3):
        trees.grow(TARGETS)
    return trees


@pytest.mark.parametrize("kind", [SklearnTrees, XGBoostTrees])
@pytest.mark.parametrize(
    "unit", [2.0**490, 2.0**-460, np.array([1.0, 2.0**490, 2.0**-460])], ids=["large", "small", "mixed"]
)
def test_trees_split_alike_in_every_unit(kind, unit):
    """Both libraries compare numbers of 32 bits, whose largest is 3e38 and whose smallest is 1e-45."""
    plain, scaled = grown(kind, X).finished(), grown(kind, X * np.asarray(unit)).finished()
    assert np.ptp(plain.predict(X), axis=0).min() > 0.5
    np.testing.assert_array_equal(scaled.predict(X * np.asarray(unit)), plain.predict(X))


def test_trees_as_arrays_give_what_those_of_the_library_give():
    xgboost = pytest.importorskip("xgboost")
    # Values at the thresholds, in 32 bits and beside them, go the same way.
    rows = np.concatenate([X, np.round(X, 1), X.astype(np.float32), np.nextafter(X.astype(np.float32), 9)])
    plain = grown(SklearnTrees, X)
    theirs = sum(tree.predict(rows) for tree in plain._trees)
    np.testing.assert_allclose(plain.finished().predict(rows), 0.5 * theirs, rtol=1e-14)
    boosted = grown(XGBoostTrees, X)
    theirs = boosted._booster.predict(xgboost.DMatrix(rows), output_margin=True)
    np.testing.assert_array_equal(boosted.finished().predict(rows), theirs)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("children", np.zeros((5, 2), dtype=int), "differ in length"),
        ("children", 0, "child out of place"),
        ("children", 10**6, "child out of place"),
        ("feature", 3, "feature out of range"),
        ("feature", -1, "feature out of range"),
        ("roots", 10**6, "root out of range"),
        ("units", np.ones(4), "number of features"),
        ("value", np.zeros((5, 3)), "differ in length"),
    ],
)
def test_trees_that_could_not_be_followed_are_refused(name, value, message):
    good = grown(SklearnTrees, X).finished()
    good.check(3, 2)
    if isinstance(value, int):
        changed = getattr(good, name).copy()
        changed.flat[2] = value
        value = changed
    with pytest.raises(ValueError, match=message):
        replace(good, **{name: value}).check(3, 2)


@pytest.mark.parametrize("kind", [SklearnTrees, XGBoostTrees])
def test_rows_beyond_all_that_was_seen_fall_on_the_outer_side(kind):
    trees = grown(kind, X).finished()
    assert trees.units is None
    np.testing.assert_array_equal(trees.predict(X * 1e100), trees.predict(X * 1e30))


@pytest.fixture
def ring():
    """Rows near a ring are better: no linear ranking sees it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return X, -np.abs(np.linalg.norm(X, axis=1) - 1.2)


def test_sees_what_no_linear_ranking_sees(ring):
    X, y = ring
    known = Preferences.from_scores(y[:200], n_pairs=4000, random_state=0)
    view = GBWSDR(2, random_state=0).fit(X[:200], preferences=known)
    assert view.score(X[200:], y[200:]) > 0.75
    assert RankSVM().fit(X[:200], preferences=known).score(X[200:], y[200:]) < 0.65
    assert 0 < view.n_estimators_ <= 200
    assert view.validation_curve_[view.n_estimators_] == max(view.validation_curve_)


def test_loss_falls_and_is_the_definition_at_the_view(ranked, few):
    view = GBWSDR(2, n_estimators=15, random_state=0).fit(ranked.X, preferences=few)
    assert len(view.loss_curve_) == 16
    assert view.loss_curve_[-1] < 0.5 * view.loss_curve_[0]
    Z = view.transform(ranked.X)
    assert view.loss_curve_[-1] == pytest.approx(oracle.objective(ranked.X, Z, few.pairs.tolist()), rel=1e-6)


def test_first_tree_is_fitted_to_the_negative_gradient(ranked, few):
    # With a leaf for each row the first step is exactly one step of gradient descent.
    options = {"max_depth": 30, "min_samples_leaf": 1, "learning_rate": 0.05}
    none = GBWSDR(2, n_estimators=0, **options).fit(ranked.X, preferences=few)
    one = GBWSDR(2, n_estimators=1, **options).fit(ranked.X, preferences=few)
    Z, pairs = none.transform(ranked.X), few.pairs.tolist()
    step = one.transform(ranked.X) - Z
    for row in few.rows[:3]:

        def value(z, row=row):
            moved = Z.copy()
            moved[row] = z
            return oracle.objective(ranked.X, moved, pairs)

        n_used = len(few.rows)
        np.testing.assert_allclose(step[row], -0.05 * n_used * oracle.numerical_gradient(value, Z[row]), rtol=1e-4)


@pytest.mark.parametrize("name", ["pyrimidines", "triazines", "wpbc"])
def test_both_libraries_grow_the_same_trees(real_data, name):
    pytest.importorskip("xgboost")
    X, y = real_data(name)
    X = StandardScaler().fit_transform(X)
    levels = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))
    known = Preferences.from_scores(levels)
    apart = np.any(X[known.pairs[:, 0]] != X[known.pairs[:, 1]], axis=1)
    known = Preferences(known.pairs[apart], n_samples=len(X))
    views = {
        backend: GBWSDR(5, n_estimators=60, min_samples_leaf=1, backend=backend, n_jobs=1, random_state=0).fit(
            X, preferences=known
        )
        for backend in ("sklearn", "xgboost")
    }
    ours, theirs = views["sklearn"].loss_curve_, views["xgboost"].loss_curve_
    np.testing.assert_allclose(theirs, ours, rtol=2e-2, atol=1e-4)
    np.testing.assert_allclose(theirs[:10], ours[:10], rtol=1e-4)


def test_leaf_size_is_a_limit_for_sklearn_and_an_average_for_xgboost():
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X, targets = rng.normal(size=(200, 3)), rng.standard_cauchy(size=(200, 2))
    options = TreeOptions(max_depth=6, learning_rate=1.0, min_samples_leaf=20, n_jobs=1, seed=0)
    plain = SklearnTrees(X, 2, options)
    plain.grow(targets)
    sizes = np.unique(plain._trees[0].apply(X.astype(np.float32)), return_counts=True)[1]
    assert sizes.min() >= 20
    boosted = XGBoostTrees(X, 2, options)
    boosted.grow(targets)
    leaves = boosted._booster.predict(xgboost.DMatrix(X), pred_leaf=True)
    assert len(np.unique(leaves)) <= 200 // 20


def test_starts_from_the_linear_view(ranked):
    linear = WSDR(2).fit(ranked.X, ranked.y)
    start = GBWSDR(2, init="wsdr", n_estimators=0).fit(ranked.X, ranked.y)
    assert start.loss_curve_[0] == pytest.approx(
        linear.loss_curve_[-1] - 0.05 * np.sum(linear.components_**2), rel=1e-6
    )
    assert start.score(ranked.X, ranked.y) == pytest.approx(linear.score(ranked.X, ranked.y), abs=0.01)
    pca = GBWSDR(2, n_estimators=0).fit(ranked.X, ranked.y)
    assert pca.n_estimators_ == 0
    assert pca.loss_curve_[0] > start.loss_curve_[0]


@pytest.mark.parametrize("backend", ["sklearn", "xgboost"])
def test_pickled_view_maps_new_rows_alike(ranked, backend):
    pytest.importorskip("xgboost")
    view = GBWSDR(2, n_estimators=5, backend=backend, n_jobs=1, random_state=0).fit(ranked.X[:60], ranked.y[:60])
    again = pickle.loads(pickle.dumps(view))
    new = ranked.X[60:]
    np.testing.assert_array_equal(again.transform(new), view.transform(new))
    one_by_one = np.concatenate([view.transform(row[None]) for row in new])
    np.testing.assert_allclose(one_by_one, view.transform(new), rtol=1e-6, atol=1e-6)


def test_same_seed_same_view(ranked):
    first, second = (GBWSDR(2, random_state=7).fit(ranked.X, ranked.y).transform(ranked.X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_backend_is_chosen_by_size_and_by_what_is_installed(ranked, monkeypatch):
    pytest.importorskip("xgboost")
    assert GBWSDR(2, n_estimators=1).fit(ranked.X, ranked.y).backend_ == "sklearn"
    monkeypatch.setattr(gbwsdr, "XGBOOST_ROWS", 50)
    assert GBWSDR(2, n_estimators=1, n_jobs=1).fit(ranked.X, ranked.y).backend_ == "xgboost"
    real = _optional.importlib.import_module

    def without_xgboost(name):
        if name == "xgboost":
            raise ImportError("No module named 'xgboost'", name="xgboost")
        return real(name)

    monkeypatch.setattr(_optional.importlib, "import_module", without_xgboost)
    assert GBWSDR(2, n_estimators=1).fit(ranked.X, ranked.y).backend_ == "sklearn"
    with pytest.raises(MissingExtraError, match=r"pairlens\[boost\]"):
        GBWSDR(2, n_estimators=1, backend="xgboost").fit(ranked.X, ranked.y)


def test_margin_below_one(ranked):
    view = GBWSDR(2, n_estimators=10, gamma2=0.5, random_state=0).fit(ranked.X, preferences=ranked.preferences)
    assert view.loss_curve_[-1] < 0.6 * view.loss_curve_[0]


def test_without_preferences_it_is_pca(ranked):
    with pytest.warns(SupervisionWarning, match="no preferences were given"):
        view = GBWSDR(2).fit(ranked.X)
    assert view.n_estimators_ == 0
    assert view.transform(ranked.X).shape == (80, 2)
    with pytest.raises(ValueError, match="fitted without preferences"):
        view.decision_function(ranked.X)


def test_sparse_rows_are_refused(ranked):
    from scipy import sparse

    with pytest.raises(TypeError, match=r"[Ss]parse"):
        GBWSDR().fit(sparse.csr_array(ranked.X), ranked.y)


def test_a_dask_array_is_collected_up_to_a_bound_and_its_view_is_lazy():
    da = pytest.importorskip("dask.array", reason="needs pairlens[dask]")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    known = Preferences.from_scores(X[:, 0], n_pairs=300, random_state=0)
    chunks = da.from_array(X, chunks=((50, 0, 70), 3))
    model = GBWSDR(2, n_estimators=2, random_state=0).fit(chunks, preferences=known)
    reference = GBWSDR(2, n_estimators=2, random_state=0).fit(X, preferences=known)
    view = model.transform(chunks)
    assert view.chunks == ((50, 0, 70), (2,))
    np.testing.assert_array_equal(view.compute(), reference.transform(X))
    with config_context(gather_bytes=1000), pytest.raises(ValueError, match=r"GBWSDR needs its rows.*X\.compute"):
        GBWSDR(2, n_estimators=2).fit(chunks, preferences=known)
