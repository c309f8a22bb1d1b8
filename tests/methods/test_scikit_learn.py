"""Pipelines, cross-validation and grid search hand the pairs on, sliced, with no wrapper of ours."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import WBDR, Constraints, LinearPairLens, PairMap
from pairlens.exceptions import SupervisionWarning
from pairlens.judging.views import MAX_SCORED_PAIRS, pair_auc
from tests.estimators import pipelines_route_scores


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pipelines_route_scores
@pytest.mark.parametrize("n_pairs", [400, 569, 2000])
def test_cross_validation_and_grid_search(n_pairs):
    """Fewer pairs than rows, exactly as many, and more."""
    X, y = load_breast_cancer(return_X_y=True)
    pairs = Constraints.from_labels(y, n_pairs=n_pairs, random_state=0)
    model = make_pipeline(StandardScaler(), WBDR(n_components=2).set_fit_request(constraints=True))
    cv = KFold(5, shuffle=True, random_state=0)
    found = cross_validate(model, X, params={"constraints": pairs}, cv=cv)["test_score"]
    by_hand = []
    for train, test in cv.split(X):
        scaler = StandardScaler().fit(X[train])
        fitted = WBDR(n_components=2).fit(scaler.transform(X[train]), constraints=pairs[train])
        by_hand.append(fitted.score(scaler.transform(X[test]), constraints=pairs[test]))
    np.testing.assert_allclose(found, by_hand)
    search = GridSearchCV(model, {"wbdr__shrinkage": [0.0, "auto", 1.0]}, cv=cv)
    search.fit(X, constraints=pairs)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"][1], np.mean(by_hand))
    assert search.best_score_ >= np.mean(by_hand)


def test_the_example_of_the_readme():
    X, y = load_wine(return_X_y=True)
    y_partial = np.where(np.arange(len(y)) % 5 == 0, y, -1)
    pairs = Constraints.from_labels(y_partial)
    model = make_pipeline(StandardScaler(), WBDR(n_components=2).set_fit_request(constraints=True))
    assert model.fit_transform(X, constraints=pairs).shape == (178, 2)
    # The request is the default, so this is enough.
    assert make_pipeline(StandardScaler(), WBDR()).fit_transform(X, constraints=pairs).shape == (178, 2)


def test_clone_keeps_parameters():
    assert clone(WBDR(3, shrinkage=0.2)).get_params() == WBDR(3, shrinkage=0.2).get_params()


def test_score_is_the_auc_over_pairs():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20, 2))
    pairs = Constraints.from_labels(rng.integers(0, 2, 20), n_pairs=60, random_state=0)
    must = [np.linalg.norm(Z[i] - Z[j]) for i, j in pairs.must_link]
    cannot = [np.linalg.norm(Z[i] - Z[j]) for i, j in pairs.cannot_link]
    expected = np.mean([[(m < c) + 0.5 * (m == c) for c in cannot] for m in must])
    assert pair_auc(Z, pairs) == pytest.approx(expected)
    without_some = np.repeat([1.0, 0.0], [15, 5])
    assert pair_auc(Z, pairs, without_some) == pytest.approx(pair_auc(Z[:15], pairs[np.arange(15)]))


def test_score_by_labels_of_many_rows_draws_pairs():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    Z = rng.standard_normal((3000, 2)) + 3 * y[:, None]
    known = Constraints.from_labels(y)
    assert known.n_must_link + known.n_cannot_link > MAX_SCORED_PAIRS
    part = pair_auc(Z[:1000], known[np.arange(1000)])
    assert pair_auc(Z, known) == pytest.approx(part, abs=0.01)


def test_a_notebook_shows_what_was_learned_below_the_diagram():
    """The map of the rows, the distances of held-out pairs, or the diagram alone; never in place of it."""
    X, y = load_wine(return_X_y=True)
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    for model in (PairMap(random_state=0), LinearPairLens(random_state=0), WBDR()):
        before = model._repr_mimebundle_()["text/html"]
        assert "<figure" not in before
        model.fit(X, constraints=pairs)
        html, plain = model._repr_mimebundle_()["text/html"], repr(model)
        diagram, _, figure = html.partition("<figure")
        assert "sk-top-container" in diagram
        assert model._repr_html_().count("<circle") == html.count("<circle")
        if isinstance(model, WBDR):
            assert not figure
            continue
        assert figure.count("<circle") == (178 if isinstance(model, PairMap) else 60)
        assert f"held-out AUC {model.auc_:.2f} ± {model.auc_error_:.2f}" in figure
        places = [float(place) for place in re.findall(r'c[xy]="([^"]*)"', figure)]
        assert 0 <= min(places) <= max(places) <= 220
        with sklearn.config_context(display="text"):
            assert model._repr_mimebundle_() == {"text/plain": plain}
            assert not hasattr(model, "_repr_html_")
    # One kind of pairs: nothing is held out.
    with pytest.warns(SupervisionWarning):
        alone = LinearPairLens(random_state=0).fit(X, constraints=Constraints(n_samples=len(X)))
    assert "<figure" not in alone._repr_html_()
