"""scikit-learn cuts constraints and preferences along with X, with no wrapper of ours."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import WBDR, WSDR, PairClusters, PairMap
from pairlens.supervision import Constraints, Preferences
from tests.estimators import pipelines_route_scores
from tests.supervision import oracles

N_ROWS = 60
X = np.column_stack([np.arange(N_ROWS, dtype=float), np.random.default_rng(0).normal(size=N_ROWS)])


class Recorder(TransformerMixin, BaseEstimator):
    """Remembers, outside of itself, which rows and constraints came together."""

    seen: ClassVar[list[tuple[str, list[int], Any]]] = []

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def fit(self, X, y=None, *, constraints=None):
        self.seen.append(("fit", X[:, 0].round().astype(int).tolist(), constraints))
        self.fitted_ = True
        return self

    def transform(self, X):
        return X

    # Under routing Pipeline.score always hands on sample_weight, and fails where the last step cannot name it.
    def score(self, X, y=None, sample_weight=None, *, constraints=None):
        self.seen.append(("score", X[:, 0].round().astype(int).tolist(), constraints))
        return 0.5


@pytest.fixture(autouse=True)
def routing():
    Recorder.seen.clear()
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def with_pairs(n_pairs: int) -> Constraints:
    return Constraints.from_labels(np.arange(N_ROWS) % 3, n_pairs=n_pairs, random_state=0)


amounts = pytest.mark.parametrize(
    "constraints",
    [with_pairs(400), with_pairs(25), with_pairs(N_ROWS), Constraints.from_labels(np.arange(N_ROWS) % 4 - 1)],
    ids=["more pairs than rows", "fewer", "as many", "implicit"],
)


def check_seen(constraints: Constraints, expected_calls: int) -> None:
    assert len(Recorder.seen) == expected_calls
    must, cannot = oracles.weights_of(constraints)
    for _, rows, received in Recorder.seen:
        assert isinstance(received, Constraints)
        assert len(received) == len(rows)
        assert oracles.weights_of(received) == (oracles.sliced(must, rows), oracles.sliced(cannot, rows))


@amounts
def test_cross_validate(constraints):
    estimator = Recorder().set_fit_request(constraints=True).set_score_request(constraints=True)
    cross_validate(
        estimator,
        X,
        params={"constraints": constraints},
        cv=KFold(5, shuffle=True, random_state=0),
        error_score="raise",
    )
    check_seen(constraints, 10)
    assert sum(len(rows) for call, rows, _ in Recorder.seen if call == "score") == N_ROWS


@pipelines_route_scores
@amounts
def test_grid_search_over_a_pipeline(constraints):
    recorder = Recorder().set_fit_request(constraints=True).set_score_request(constraints=True)
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), recorder)
    search = GridSearchCV(pipeline, {"recorder__alpha": [1.0, 2.0]}, cv=5, error_score="raise")
    search.fit(X, constraints=constraints)
    # 2 values x 5 folds x (fit and score), and the refit on all rows.
    check_seen(constraints, 21)
    assert Recorder.seen[-1][2] == constraints


def test_inside_a_pipeline_before_another_step():
    constraints = with_pairs(100)
    pipeline = make_pipeline(Recorder().set_fit_request(constraints=True), KMeans(2, n_init=1))
    cv = ShuffleSplit(3, random_state=0)
    cross_validate(pipeline, X, params={"constraints": constraints}, cv=cv, error_score="raise")
    check_seen(constraints, 3)


def test_an_unknown_number_of_rows_fails_loudly():
    estimator = Recorder().set_fit_request(constraints=True).set_score_request(constraints=True)
    with pytest.raises(TypeError, match=r"n_samples=len\(X\)"):
        cross_validate(estimator, X, params={"constraints": Constraints([(0, 1)])}, cv=5)


def test_train_test_split():
    constraints = with_pairs(100)
    train, test, train_pairs, test_pairs = train_test_split(X, constraints, random_state=0)
    must, cannot = oracles.weights_of(constraints)
    for part, pairs in ((train, train_pairs), (test, test_pairs)):
        rows = part[:, 0].astype(int).tolist()
        assert oracles.weights_of(pairs) == (oracles.sliced(must, rows), oracles.sliced(cannot, rows))


def test_preferences_are_cut_too():
    preferences = Preferences.from_scores(X[:, 1], n_pairs=N_ROWS, random_state=0)
    estimator = Recorder().set_fit_request(constraints=True).set_score_request(constraints=True)
    cross_validate(estimator, X, params={"constraints": preferences}, cv=5)
    assert len(Recorder.seen) == 10
    for _, rows, received in Recorder.seen:
        expected = oracles.sliced(oracles.preference_weights(preferences), rows, directed=True)
        assert oracles.preference_weights(received) == expected


def test_clone_takes_them_as_parameters():
    constraints = with_pairs(10)
    assert clone(Recorder(alpha=constraints)).alpha == constraints


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_whose_scores_would_not_see_the_pairs_stops(n_jobs):
    """It would report NaN, and name a best candidate all the same."""
    rows, y = load_iris(return_X_y=True)
    pairs = Constraints.from_labels(y, n_pairs=200, random_state=0)
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(WBDR(), {"n_components": [1, 2]}, cv=folds, n_jobs=n_jobs)
    with sklearn.config_context(enable_metadata_routing=False):
        with pytest.raises(TypeError, match=r"Run sklearn\.set_config\(enable_metadata_routing=True\) first"):
            search.fit(rows, constraints=pairs)
        # Labels are judged by without routing, and so is any other scorer.
        assert search.fit(rows, y, constraints=pairs).best_score_ > 0.9
        other = GridSearchCV(WBDR(), {"n_components": [1, 2]}, scoring=width, cv=folds, n_jobs=n_jobs)
        assert other.fit(rows, constraints=pairs).best_params_ == {"n_components": 2}


def width(model, rows, _=None):
    return float(model.n_components)


@pytest.mark.parametrize("method", [WBDR, PairMap, PairClusters, WSDR])
def test_answers_in_the_place_of_labels_are_pointed_out(method):
    pairs = Constraints([(0, 1)], [(1, 2)], n_samples=4)
    with pytest.raises(TypeError, match=r"pass constraints= to fit"):
        method().fit(np.eye(4), pairs)
