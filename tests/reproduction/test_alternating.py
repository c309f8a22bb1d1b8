"""Alternating directions reach what joint minimisation reaches, and say where they do not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from pairlens import WSDR
from pairlens.preference.wsdr import solve_lbfgs
from pairlens.supervision import Preferences
from reproduction.alternating import AlternatingWSDR, solve_alternating
from tests.preference import conftest
from tests.preference.test_wsdr import linear_problem

ranked = conftest.ranked


@pytest.mark.parametrize("C", [0.03, 0.1])
def test_both_solvers_reach_the_same_objective(ranked, C):
    problem, start = linear_problem(ranked.X, ranked.preferences, C=C)
    joint = solve_lbfgs(problem, start, 500, 1e-12)
    split = solve_alternating(problem, start, 500, 1e-8, mu=100.0)
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
    split = solve_alternating(problem, start, 250, 1e-8, mu=100.0)
    assert split.disagreement < 1e-4
    assert split.slope < 0.01
    assert problem(split.L)[0] == pytest.approx(problem(joint.L)[0], rel=0.01)


def test_warns_where_it_reaches_no_consensus(ranked):
    with pytest.warns(ConvergenceWarning, match="did not reach consensus"):
        AlternatingWSDR(2, mu=0.01, max_iter=3).fit(ranked.X, ranked.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        view = AlternatingWSDR(2, C=0.1, max_iter=300).fit(ranked.X, ranked.y)
    assert view.disagreement_ < 1e-2


def test_warns_where_its_copies_agree_but_not_at_a_minimum(real_data):
    X, y = real_data("pyrimidines")
    X, levels = StandardScaler().fit_transform(X), np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    with pytest.warns(ConvergenceWarning, match="still slopes"):
        split = AlternatingWSDR(5).fit(X, levels)
    joint = WSDR(5).fit(X, levels)
    assert split.disagreement_ < 1e-2
    assert split.loss_curve_[-1] > 1.1 * joint.loss_curve_[-1]
