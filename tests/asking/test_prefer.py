"""PreferenceAsker: which of two rows is better."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from pairlens import RankSVM
from pairlens.asking import Asker, PreferenceAsker
from pairlens.asking.ranking import Ranking, information, laplace
from tests.asking.people import answer_all

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 8))
SCORE = X @ np.array([2.0, -1.0, 0.5, 0, 0, 0, 0, 0])


def test_the_mode_is_that_of_a_general_optimiser():
    D = RNG.standard_normal((30, 4))
    share, weight = RNG.choice([0.0, 0.5, 1.0], 30), RNG.integers(1, 3, 30).astype(float)

    def loss(w):
        p = expit(D @ w)
        return -(weight * (share * np.log(p) + (1 - share) * np.log(1 - p))).sum() + w @ w / 8

    w, covariance = laplace(D, share, weight)
    best = minimize(loss, np.zeros(4), tol=1e-12)
    np.testing.assert_allclose(w, best.x, atol=1e-5)
    h = 1e-4
    hessian = [
        [(loss(w + h * (a + b)) - loss(w + h * a) - loss(w + h * b) + loss(w)) / h**2 for a in np.eye(4)]
        for b in np.eye(4)
    ]
    np.testing.assert_allclose(np.linalg.inv(hessian), covariance, rtol=1e-2, atol=1e-3)


def test_information_prefers_what_is_uncertain():
    ranking = Ranking("", np.array([1.0, 0.0]), np.diag([0.1, 1.0]))
    known, close, unknown = information(np.array([[5.0, 0.0], [0.0, 0.1], [0.0, 2.0]]), ranking)
    assert known < unknown
    assert close < unknown


def test_the_ranking_is_found_with_fewer_answers_than_at_random():
    found = {}
    for strategy in ("uncertain", "random"):
        scores = []
        for seed in range(3):
            asker = PreferenceAsker(X, strategy=strategy, random_state=seed)
            answer_all(asker, SCORE, 40)
            model = RankSVM().fit(X, preferences=asker.preferences())
            scores.append(np.corrcoef(model.predict(X), SCORE)[0, 1])
        found[strategy] = np.mean(scores)
    assert found["uncertain"] > 0.9
    assert found["uncertain"] > found["random"] - 0.02


def test_what_follows_is_not_asked_and_all_ends():
    rows = RNG.standard_normal((8, 2))
    score = rows[:, 0]
    asker = PreferenceAsker(rows, random_state=0)
    asked = answer_all(asker, score, 100)
    assert len(asked) < 28
    assert asker.ask() is None
    better: set[tuple[int, int]] = set()
    for question in asked:
        i, j = question.rows
        assert (i, j) not in better
        assert (j, i) not in better
        better.add((i, j) if score[i] > score[j] else (j, i))
        while True:
            more = {(a, d) for a, b in better for c, d in better if b == c} - better
            if not more:
                break
            better |= more


def test_equal_people_and_curve():
    asker = PreferenceAsker(X, random_state=0, audit=0.4)
    answer_all(asker, np.round(SCORE), 80)
    equal = sum(answer == "equal" for _, answer in asker.log)
    assert asker.preferences().n_pairs == 80 - equal
    curve = asker.learning_curve()
    assert curve[-1].auc > 0.6
    assert np.isnan(curve[-1].pca)
    assert asker.scores_.shape == (150,)
    hint = asker.stopping_hint()
    assert len(hint.reasons) == 2
    assert "kept their order" in hint.reasons[1]
    assert "\u00a0% of the pairs" in hint.cost
    with pytest.raises(ValueError, match="strategy='place'"):
        PreferenceAsker(X, strategy="place")


def test_a_skipped_row_is_not_asked_about():
    asker = PreferenceAsker(X[:12], random_state=0)
    asker.skip(3)
    assert all(3 not in question.rows for question in answer_all(asker, SCORE, 40))


@pytest.mark.parametrize("rows", [np.zeros((4, 2)), RNG.standard_normal((5, 30)), np.array([[0.0], [1.0]])])
def test_odd_tables(rows):
    asker = PreferenceAsker(rows, random_state=0, refit_every=2)
    answer_all(asker, np.arange(len(rows)), 50)
    assert asker.ask() is None
    assert np.isfinite(asker.scores_).all()


def test_two_kinds_in_one_log_share_no_id():
    """A studio may be started with another kind of question on the same store; both askers count from one."""
    X = np.random.default_rng(0).standard_normal((5, 3))
    askers = [kind(X, random_state=0, strategy="random") for kind in (Asker, PreferenceAsker)]
    pairs, preferences = ([asker.ask() for _ in range(4)] for asker in askers)
    assert [q.rows for q in pairs] == [q.rows for q in preferences]
    assert {q.id for q in pairs}.isdisjoint(q.id for q in preferences)


def test_intervals_of_ranks_hold_the_true_rank():
    """In nine of ten cases, in draws of rows and of truths; and they become narrow."""
    held, wide = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 4))
        score = X @ rng.standard_normal(4)
        asker = PreferenceAsker(X, random_state=seed)
        truth = np.empty(80, dtype=int)
        truth[np.argsort(-score)] = np.arange(1, 81)
        for n_answers in (15, 60):
            answer_all(asker, score, n_answers)
            ranked = asker.ranked_rows()
            if n_answers == 60:
                held.append(((ranked.low <= truth) & (truth <= ranked.high)).mean())
            wide.append((n_answers, (ranked.high - ranked.low).mean()))
        assert ranked.order.tolist() == np.argsort(-asker.scores_, kind="stable").tolist()
        assert sorted(ranked.order.tolist()) == list(range(80))
    assert np.mean(held) > 0.85
    narrow, before = (np.mean([width for n, width in wide if n == wanted]) for wanted in (60, 15))
    assert narrow < 0.8 * before
    assert 0 < asker.share_sure() < 1
