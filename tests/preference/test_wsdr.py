"""WSDR: its solvers, its estimator contract, and what it is for."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens.exceptions import ArgumentError, SupervisionWarning
from pairlens.preference._base import C_PATH
from pairlens.preference.objective import Objective, Pairs, largest_differences
from pairlens.preference.ranksvm import RankSVM
from pairlens.preference.wsdr import WSDR, LinearProblem, solve_admm, solve_lbfgs, starting_map
from pairlens.supervision import Preferences
from tests.estimators import pipelines_route_scores
from tests.oracles import preference as oracle


def linear_problem(X, preferences, *, d=3, C=1.0, gamma2=1.0, reg=0.1):
    pairs = preferences.pairs
    objective = Objective(Pairs.of(pairs, len(X)), 0.1 * largest_differences(X, pairs), gamma2=gamma2, C=C)
    directions = PCA(d).fit(X).components_
    return LinearProblem(X, objective, reg), starting_map(directions, X, objective)


@pytest.mark.parametrize("gamma2", [1.0, 0.5])
def test_gradient_with_respect_to_the_map(ranked, gamma2):
    problem, L = linear_problem(ranked.X, ranked.preferences, gamma2=gamma2)
    for function in (problem, problem.distance, problem.angle):
        numerical = oracle.numerical_gradient(lambda A, f=function: f(A)[0], L)
        assert np.linalg.norm(function(L)[1] - numerical) <= 1e-6 * np.linalg.norm(numerical)
    ridge = 0.05 * np.sum(L**2)
    assert problem(L)[0] == pytest.approx(problem.distance(L)[0] + problem.angle(L)[0])
    assert problem.distance(L)[0] > ridge


def test_start_puts_pairs_half_a_margin_apart(ranked):
    problem, L = linear_problem(ranked.X, ranked.preferences)
    Q = problem.objective.pairs.differences(ranked.X @ L.T)
    assert np.linalg.norm(Q, axis=1).mean() == pytest.approx(0.5)


@pytest.mark.parametrize("C", [0.03, 0.1])
def test_both_solvers_reach_the_same_objective(ranked, C):
    problem, start = linear_problem(ranked.X, ranked.preferences, C=C)
    joint = solve_lbfgs(problem, start, 500, 1e-12)
    split = solve_admm(problem, start, 500, 1e-8, mu=100.0)
    assert split.disagreement < 1e-4
    assert split.slope < 0.01
    assert problem(split.L)[0] == pytest.approx(problem(joint.L)[0], rel=0.01)


@pytest.mark.parametrize("name", ["pyrimidines", "triazines", "wpbc"])
def test_both_solvers_reach_the_same_objective_on_real_data(real_data, name):
    X, y = real_data(name)
    X = StandardScaler().fit_transform(X)
    levels = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))
    problem, start = linear_problem(X, Preferences.from_scores(levels, n_pairs=800, random_state=0), C=0.1, d=5)
    joint = solve_lbfgs(problem, start, 500, 1e-12)
    split = solve_admm(problem, start, 250, 1e-8, mu=100.0)
    assert split.disagreement < 1e-4
    assert split.slope < 0.01
    assert problem(split.L)[0] == pytest.approx(problem(joint.L)[0], rel=0.01)


def test_loss_curve_falls(ranked):
    view = WSDR(3).fit(ranked.X, preferences=ranked.preferences)
    assert len(view.loss_curve_) == view.n_iter_ + 1
    assert np.all(np.diff(view.loss_curve_) <= 0)
    assert view.loss_curve_[-1] < 0.5 * view.loss_curve_[0]


def test_loss_is_the_definition_at_the_learnt_components(ranked, few):
    for options in ({"gamma2": 0.5, "C": 0.3}, {"angle_loss": "squared"}, {"gamma1": 2.0, "sigma": 0.3, "reg": 0.2}):
        view = WSDR(2, max_iter=15, **options).fit(ranked.X, preferences=few)
        named = {key: value for key, value in options.items() if key not in ("reg", "angle_loss")}
        expected = oracle.objective(
            ranked.X,
            view.transform(ranked.X),
            few.pairs.tolist(),
            squared="angle_loss" in options,
            **named,
        )
        expected += options.get("reg", 0.1) / 2 * np.sum(view.components_**2)
        assert view.loss_curve_[-1] == pytest.approx(expected, rel=1e-9)


def test_admm_warns_where_it_reaches_no_consensus(ranked):
    with pytest.warns(ConvergenceWarning, match="did not reach consensus"):
        WSDR(2, solver="admm", mu=0.01, max_iter=3).fit(ranked.X, ranked.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        view = WSDR(2, solver="admm", C=0.1, max_iter=300).fit(ranked.X, ranked.y)
    assert view.disagreement_ < 1e-2


def test_admm_warns_where_its_copies_agree_but_not_at_a_minimum(real_data):
    X, y = real_data("pyrimidines")
    X, levels = StandardScaler().fit_transform(X), np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    with pytest.warns(ConvergenceWarning, match="still slopes"):
        split = WSDR(5, solver="admm").fit(X, levels)
    joint = WSDR(5).fit(X, levels)
    assert split.disagreement_ < 1e-2
    assert split.loss_curve_[-1] > 1.1 * joint.loss_curve_[-1]


def test_components_are_uncorrelated_ordered_and_point_to_the_better_rows(ranked):
    view = WSDR(3, C=0.1).fit(ranked.X, ranked.y)
    Z = view.transform(ranked.X)
    covariance = np.cov(Z.T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)
    assert np.all(np.diff(np.diag(covariance)) <= 0)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    known = Preferences.from_scores(ranked.y)
    assert np.all((Z[known.pairs[:, 0]] - Z[known.pairs[:, 1]]).mean(axis=0) >= 0)


def test_ranks_new_rows_nearly_as_well_as_all_features(ranked):
    train, test = slice(0, 60), slice(60, None)
    view = WSDR(2, C="auto", random_state=0).fit(ranked.X[train], ranked.y[train])
    control = RankSVM(C="auto", random_state=0).fit(ranked.X[train], ranked.y[train])
    assert view.score(ranked.X[test], ranked.y[test]) > control.score(ranked.X[test], ranked.y[test]) - 0.05
    assert view.score(ranked.X[test], ranked.y[test]) > 0.85
    first = view.transform(ranked.X[test])[:, 0]
    assert oracle.pairwise_accuracy(first, Preferences.from_scores(ranked.y[test]).pairs.tolist()) > 0.6


def test_decision_function_is_linear_in_the_view(ranked):
    view = WSDR(2).fit(ranked.X, ranked.y)
    np.testing.assert_allclose(view.decision_function(ranked.X), view.transform(ranked.X) @ view.ranking_)


def test_search_keeps_the_best_value(ranked):
    view = WSDR(2, C="auto", random_state=0).fit(ranked.X, ranked.y)
    assert tuple(view.cv_scores_) == C_PATH
    assert view.cv_scores_[view.C_] == max(view.cv_scores_.values())
    again = WSDR(2, C="auto", random_state=0).fit(ranked.X, ranked.y)
    np.testing.assert_array_equal(view.components_, again.components_)


def test_small_C_with_a_ridge_is_pca(ranked):
    view = WSDR(2, C=0.0, max_iter=1).fit(ranked.X, ranked.y)
    principal = PCA(2).fit(ranked.X).components_
    cosines = np.linalg.svd(principal @ np.linalg.qr(view.components_.T)[0])[1]
    assert cosines.min() > 0.9


def test_many_implied_pairs_are_drawn(ranked):
    view = WSDR(2, max_pairs=200, random_state=0).fit(ranked.X, ranked.y)
    assert view.score(ranked.X, ranked.y) > 0.8
    few = WSDR(2, max_pairs=200, random_state=0)
    np.testing.assert_array_equal(few.fit(ranked.X, ranked.y).components_, view.components_)


def test_one_group_for_each_query_with_many_rows_draws_no_more_than_there_are():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 3)), np.repeat(np.arange(100), 4)
    # 400 rows could make 79,800 pairs, but queries of four make 600 at most.
    view = WSDR(2, max_pairs=1000).fit(X, X[:, 0], groups=groups)
    assert view.score(X, X[:, 0], groups=groups) > 0.95


def test_sparse_rows_and_single_precision(ranked):
    X = np.where(np.abs(ranked.X) < 0.5, 0.0, ranked.X)
    dense = WSDR(2, C=0.1).fit(X, ranked.y)
    for kind in (sparse.csr_array, sparse.csr_matrix):
        view = WSDR(2, C=0.1).fit(kind(X), ranked.y)
        np.testing.assert_allclose(view.components_, dense.components_, atol=1e-6)
        np.testing.assert_allclose(view.transform(kind(X)), dense.transform(X), atol=1e-5)
    single = WSDR(2, C=0.1).fit(X.astype(np.float32), ranked.y)
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.components_, dense.components_, atol=1e-3)


def test_more_features_than_rows_gives_the_view_of_a_turned_problem():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(25, 6)), np.arange(25) % 4
    turn = np.linalg.qr(rng.normal(size=(60, 6)))[0]
    # The width of the corners is measured in the features, and these are different ones.
    low = WSDR(2, C=0.1, sigma=0.0).fit(X, y).transform(X)
    high = WSDR(2, C=0.1, sigma=0.0).fit(X @ turn.T, y).transform(X @ turn.T)
    np.testing.assert_allclose(high, low, atol=1e-3)


def test_rank_deficient_rows_give_fewer_components(ranked):
    X = np.outer(np.arange(80.0), np.ones(5))
    with pytest.warns(SupervisionWarning, match="found 1 usable directions"):
        view = WSDR(3).fit(X, ranked.y)
    assert view.transform(X).shape == (80, 1)
    assert list(view.get_feature_names_out()) == ["wsdr0"]


def test_without_preferences_it_is_pca_and_ranks_nothing(ranked):
    with pytest.warns(SupervisionWarning, match="no preferences were given"):
        view = WSDR(2).fit(ranked.X)
    np.testing.assert_allclose(np.abs(view.components_), np.abs(PCA(2).fit(ranked.X).components_), atol=1e-9)
    with pytest.raises(ValueError, match="fitted without preferences"):
        view.score(ranked.X, ranked.y)
    refitted = WSDR(2).fit(ranked.X, ranked.y)
    with pytest.warns(SupervisionWarning):
        refitted.fit(ranked.X, np.zeros(80))
    assert not hasattr(refitted, "ranking_")


def test_coincident_rows_with_different_scores_do_no_harm(ranked):
    X = ranked.X.copy()
    first, second = np.flatnonzero(ranked.y == 2)[:5], np.flatnonzero(ranked.y == 0)[:5]
    X[first] = X[second]
    for options in ({}, {"gamma2": 0.5}, {"angle_loss": "squared"}):
        view = WSDR(2, **options).fit(X, ranked.y)
        assert np.all(np.isfinite(view.components_))
        assert view.score(X, ranked.y) > 0.8


def test_errors_say_what_is_wrong(ranked):
    X, y = ranked.X, ranked.y
    for wrong, expected in (
        (WSDR(7), ("n_components", 7)),
        (WSDR(angle_loss="squared", gamma2=0.5), ("gamma2", 0.5)),
    ):
        with pytest.raises(ArgumentError) as caught:
            wrong.fit(X, y)
        assert (caught.value.argument, caught.value.value) == expected
    with pytest.raises(ValueError, match="no variation"):
        WSDR().fit(np.ones((80, 3)), y)
    with pytest.raises(ValueError, match="y must hold numbers"):
        WSDR().fit(X, ["good"] * 80)


@pipelines_route_scores
def test_metadata_routing_slices_preferences_and_groups(ranked):
    groups = np.arange(80) % 10
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), WSDR(2, max_iter=5))
        result = cross_validate(pipe, ranked.X, params={"preferences": ranked.preferences}, cv=3)
        assert np.all(result["test_score"] > 0.7)
        grid = GridSearchCV(pipe, {"wsdr__C": [0.01, 1.0]}, cv=GroupKFold(3))
        grid.fit(ranked.X, ranked.y, preferences=ranked.preferences, groups=groups)
        assert grid.best_score_ > 0.7
        by_query = cross_validate(
            RankSVM(), ranked.X, ranked.y, params={"groups": groups}, cv=GroupKFold(3), error_score="raise"
        )
        assert np.all(by_query["test_score"] > 0.7)


def test_pickles_and_names_features(ranked):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(ranked.X, columns=list("abcdef"))
    view = WSDR(2).set_output(transform="pandas").fit(frame, ranked.y)
    out = pickle.loads(pickle.dumps(view)).transform(frame)
    assert list(out.columns) == ["wsdr0", "wsdr1"]
    assert view.decision_function(frame).shape == (80,)
