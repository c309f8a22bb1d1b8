"""Calibrated probabilities: the optimum, its bounds, mistakes, and Bayes' rule."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.judging.probability import (
    MISTAKES,
    PairModel,
    base_rate,
    fit_moderated_model,
    fit_pair_model,
    fit_with_mistakes,
    probability_wrong,
)
from tests.oracles import pairmap as oracle


def drawn(n, seed=0, mistakes=0.0):
    """Pairs whose first distance tells a lot, whose second tells the opposite, whose third tells nothing."""
    rng = np.random.default_rng(seed)
    same = rng.random(n) < 0.4
    distances = np.column_stack([rng.normal(np.where(same, 0.6, 1.4), 0.4), rng.normal(same, 1.0), rng.random(n)])
    wrong = rng.random(n) < mistakes
    return distances, same ^ wrong, wrong


@pytest.mark.parametrize(("n", "weight"), [(30, 1.0), (200, 1.0), (200, 0.1)])
def test_model_is_the_best_of_all_sets_of_slopes(n, weight):
    distances, same, _ = drawn(n)
    model = fit_pair_model(distances, same, np.full(n, weight))
    a, b = oracle.logistic(distances, same, weight)
    np.testing.assert_allclose(model.slopes, b, atol=1e-10)
    np.testing.assert_allclose(model(distances), 1 / (1 + np.exp(-(a - distances @ b))), rtol=0, atol=1e-10)
    assert model.slopes[1] == 0


@pytest.mark.parametrize(("n", "weight"), [(30, 1.0), (200, 1.0), (200, 0.1)])
def test_moderated_model_is_that_of_the_oracle(n, weight):
    distances, same, _ = drawn(n)
    found = fit_moderated_model(distances, same, np.full(n, weight))
    a, b = oracle.moderated(distances, same, weight)
    np.testing.assert_allclose(found.slopes, b, atol=1e-9)
    np.testing.assert_allclose(found(distances), 1 / (1 + np.exp(-(a - distances @ b))), rtol=0, atol=1e-9)
    assert found(distances).mean() == pytest.approx(same.mean(), abs=1e-12)


def test_few_answers_are_moderated_more_than_many():
    kept = []
    for n in (20, 2000):
        distances, same, _ = drawn(n)
        plain, moderated = (fit(distances, same, np.ones(n)) for fit in (fit_pair_model, fit_moderated_model))
        kept.append(moderated.slopes[0] / plain.slopes[0])
    assert kept[0] < 0.95
    assert 0.99 < kept[1] < 1


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.6])
def test_base_rate_of_random_pairs_is_found_from_balanced_answers(rate):
    rng = np.random.default_rng(0)

    def pairs(n, share):
        same = rng.random(n) < share
        return rng.normal(np.where(same, 0.6, 1.4), 0.2)[:, None], same

    answered, same = pairs(200, 0.5)
    model, share = fit_pair_model(answered, same, np.ones(200)), same.mean()
    distances, truth = pairs(20_000, rate)
    found = base_rate(model, distances, share, 200)
    assert found == pytest.approx(oracle.base_rate(model.intercept - distances @ model.slopes, share, 200), abs=1e-10)
    assert found == pytest.approx(rate, abs=0.04)
    moved = model.at_base_rate(share, found)(distances)
    assert moved.mean() == pytest.approx(truth.mean(), abs=0.04)


def test_base_rate_is_the_share_of_the_answers_where_distances_tell_nothing():
    model = PairModel(-1.0, np.zeros(2))
    share = 1 / (1 + np.e)
    assert base_rate(model, np.random.default_rng(0).random((500, 2)), share, 100) == pytest.approx(share, abs=1e-9)


def test_base_rate_of_pairs_without_any_doubt():
    """Odds that overflow are no obstacle: here a third of the pairs belongs together."""
    distances = np.array([[0.0], [2.0], [2.0]])
    assert base_rate(PairModel(3000.0, np.array([3000.0])), distances, 0.5, 1e6) == pytest.approx(1 / 3, abs=1e-5)


def test_no_small_step_lowers_the_loss_with_mistakes():
    distances, same, _ = drawn(100, mistakes=0.1)
    models, probable = fit_with_mistakes(distances, same, np.ones(100))
    assert probable.sum() == pytest.approx(1)
    share, model = MISTAKES[9], models[9]
    assert share == 0.15

    def loss(intercept, slopes):
        true = 0.02 + 0.96 / (1 + np.exp(-(intercept - distances @ slopes)))
        said = share + (1 - 2 * share) * true
        return -np.log(np.where(same, said, 1 - said)).sum() + 0.1 * ((slopes * distances.std(axis=0)) ** 2).sum() / 2

    best = loss(model.intercept, model.slopes)
    for step in np.vstack([np.eye(4), -np.eye(4)]) * 1e-4:
        moved = model.slopes + step[1:]
        if (moved >= 0).all():
            assert loss(model.intercept + step[0], moved) > best - 1e-9


@pytest.mark.parametrize("kind", [True, False])
def test_one_kind_only_gives_its_smoothed_share(kind):
    model = fit_pair_model(np.random.default_rng(0).random((6, 3)), np.full(6, kind), np.ones(6))
    assert not model.slopes.any()
    assert model(np.zeros((1, 3)))[0] == pytest.approx(7 / 8 if kind else 1 / 8)


def test_distances_that_tell_nothing_leave_the_share():
    distances, same, _ = drawn(100)
    model = fit_pair_model(np.column_stack([distances[:, 1], np.full(100, 0.3)]), same, np.ones(100))
    assert not model.slopes.any()
    assert model(np.zeros((1, 2)))[0] == pytest.approx(same.mean(), abs=1e-8)


def test_scale_and_order_of_pairs_do_not_matter():
    distances, same, _ = drawn(80)
    order = np.random.default_rng(1).permutation(80)
    plain = fit_pair_model(distances, same, np.ones(80))
    other = fit_pair_model((distances * [1, 10, 1000])[order], same[order], np.ones(80))
    np.testing.assert_allclose(other.slopes * [1, 10, 1000], plain.slopes, atol=1e-7)


@pytest.mark.parametrize("mistakes", [0.0, 0.2])
def test_share_of_mistakes_is_found(mistakes):
    rng = np.random.default_rng(0)
    same = np.arange(2000) % 2 == 0
    distances = rng.normal(np.where(same, 0, 6), 1.0)[:, None]
    answers = same ^ (rng.random(2000) < mistakes)
    models, probable = fit_with_mistakes(distances, answers, np.ones(2000))
    share = probable @ MISTAKES
    assert share == pytest.approx(mistakes, abs=0.03)
    model = models[int(np.argmax(probable))]
    wrong = probability_wrong(model(distances), answers, share)
    if mistakes:
        assert wrong[answers != same].mean() > 0.8
    assert wrong[answers == same].mean() < 0.02


def test_one_odd_answer_among_right_ones_is_not_taken_for_a_mistake():
    rng = np.random.default_rng(0)
    same = np.arange(100) % 2 == 0
    distances = rng.normal(np.where(same, 0, 4), 1.0)[:, None]
    distances[0] = 8.0
    models, probable = fit_with_mistakes(distances, same, np.ones(100))
    wrong = sum(
        chance * probability_wrong(model(distances), same, share)
        for chance, model, share in zip(probable, models, MISTAKES)
    )
    assert np.argmax(wrong) == 0
    assert wrong[0] < 0.5


def test_probability_wrong_is_bayes_rule_counted_out():
    """Of 1000 pairs at a distance where 30 % belong together and 10 % are answered wrongly."""
    truly_same, truly_other = 300, 700
    said_same = 0.9 * truly_same + 0.1 * truly_other
    wrong = probability_wrong(np.array([0.3, 0.3]), np.array([True, False]), 0.1)
    np.testing.assert_allclose(wrong, [0.1 * truly_other / said_same, 0.1 * truly_same / (1000 - said_same)])
