"""Every documented error and warning of the linear methods."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import pairlens
from pairlens import BWDR, Constraints
from pairlens.exceptions import SupervisionWarning
from tests.estimators import linear_methods

METHODS = linear_methods()


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 5)), Constraints([(0, 1), (2, 3)], [(0, 2), (4, 5)], n_samples=30)


@pytest.mark.parametrize("cls", METHODS)
def test_bad_input_is_named(cls, table):
    X, pairs = table
    with pytest.raises(ValueError, match="n_components must be at most the number of features, 5; got 6"):
        cls(n_components=6).fit(X, constraints=pairs)
    with pytest.raises(ValueError, match="'n_components' parameter"):
        cls(n_components=0).fit(X, constraints=pairs)
    with pytest.raises(ValueError, match="constraints must be for 29 rows, as many as X has; got 30"):
        cls().fit(X[:29], constraints=pairs)
    with pytest.raises(ValueError, match=r"row.*40|40.*row"):
        cls().fit(X, constraints=Constraints([(0, 40)]))
    with pytest.raises(TypeError, match=r"constraints must be a pairlens\.Constraints, got list"):
        cls().fit(X, constraints=[(0, 1)])
    with pytest.raises(ValueError, match="y must have 30 entries, one for each row of X; got 3"):
        cls().fit(X, [0, 1, 1])
    with pytest.raises(ValueError, match="y must hold classes, not measurements"):
        cls().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="NaN"):
        cls().fit(np.where(X > 2, np.nan, X), constraints=pairs)
    with pytest.raises(ValueError, match=r"(?i)infinit"):
        cls().fit(np.where(X > 2, np.inf, X), constraints=pairs)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        cls().fit(X[:1])
    with pytest.raises(NotFittedError):
        cls().transform(X)
    with pytest.raises(ValueError, match="X has 4 features"):
        cls().fit(X, constraints=pairs).transform(X[:, :4])


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")
@pytest.mark.parametrize("cls", [pairlens.LinearPairLens, pairlens.PairLens, pairlens.PairMap])
def test_labels_that_are_all_unknown_are_as_none(cls, table):
    X, pairs = table
    plain, unknown = (cls(2, random_state=0).fit_transform(X, y, constraints=pairs) for y in (None, [-1] * len(X)))
    np.testing.assert_array_equal(plain, unknown)


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")
@pytest.mark.parametrize("cls", METHODS)
def test_equal_rows_have_no_direction(cls):
    with pytest.raises(ValueError, match="X has no variation"):
        cls().fit(np.ones((6, 3)), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("cls", METHODS)
def test_score_needs_both_kinds(cls, table):
    X, pairs = table
    model = cls().fit(X, constraints=pairs)
    with pytest.warns(SupervisionWarning, match="1 must-links and 0 cannot-links among the rows and needs both"):
        assert model.score(X, constraints=Constraints([(0, 1)], n_samples=30)) == 0.5
    with pytest.raises(ValueError, match="score needs pairs to judge by"):
        model.score(X)
    for bad in (np.ones(5), -np.ones(30), np.full(30, np.nan)):
        with pytest.raises(ValueError, match="sample_weight must hold 30 finite numbers of at least 0"):
            model.score(X, constraints=pairs, sample_weight=bad)


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (pairlens.BWDR, "threshold", 0.0),
        (pairlens.BWDR, "threshold", 1.1),
        (pairlens.WBDR, "shrinkage", -0.1),
        (pairlens.WBDR, "shrinkage", "some"),
        (pairlens.WBDR, "shrinkage_factor", 0),
        (pairlens.SSDR, "alpha", -1),
        (pairlens.SSDR, "beta", "x"),
        (pairlens.SSDR, "normalization", "third"),
        (pairlens.LPP, "n_neighbors", 0),
        (pairlens.LPP, "gamma", 0.0),
        (pairlens.LPPSI, "beta", -1.0),
        (pairlens.KernelLPPSI, "gamma", "mean"),
        (pairlens.KernelLPPSI, "rank", 0),
        (pairlens.NPSSDR, "reg", 0),
        (pairlens.LFDA, "n_neighbors", 1.5),
        (pairlens.SDA, "alpha", -1),
    ],
)
def test_bad_parameters_are_named(cls, name, value, table):
    X, pairs = table
    with pytest.raises(ValueError, match=f"'{name}' parameter of {cls.__name__}"):
        cls(**{name: value}).fit(X, constraints=pairs)


def test_too_few_directions_are_announced(table):
    X, pairs = table
    with pytest.warns(SupervisionWarning, match="found 2 usable directions of the n_components=3 asked for"):
        model = BWDR(3, shrinkage=0.0).fit(X, constraints=pairs)
    assert model.components_.shape == (2, 5)
    assert model.transform(X).shape == (30, 2)
    assert len(model.get_feature_names_out()) == 2


def test_a_dominating_feature_is_announced(table):
    X, pairs = table
    with pytest.warns(SupervisionWarning, match="must-links have no influence"):
        BWDR(1, shrinkage=0.0).fit(X * [1000, 1, 1, 1, 1], constraints=pairs)


def test_contradictions_in_a_chain_warn_and_the_fit_goes_on(table):
    X, _ = table
    with pytest.warns(pairlens.exceptions.ConflictWarning):
        noisy = Constraints([(0, 1), (1, 2)], [(0, 2), (5, 6)], n_samples=30)
    assert np.isfinite(BWDR().fit_transform(X, constraints=noisy)).all()


def test_must_links_between_equal_rows_fall_back_to_pca(table):
    X, _ = table
    X[7] = X[8]
    with pytest.warns(SupervisionWarning, match="single out no direction"):
        model = pairlens.RCA().fit(X, constraints=Constraints([(7, 8)], n_samples=30))
    assert model.components_.shape == (2, 5)
