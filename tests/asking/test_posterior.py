"""The formulas, against slow and obvious ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlens.asking.groups import Comparisons, Groups
from pairlens.asking.posterior import choice_value, cross_examined, pair_weights
from pairlens.asking.progress import agreement_of
from tests.asking.people import listed
from tests.oracles import asking as oracle


@st.composite
def situations(draw):
    """Rows, groups of some of them with confidences, and answers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n, d = draw(st.integers(4, 14)), draw(st.integers(1, 4))
    Z = rng.standard_normal((n, d)) * rng.uniform(0.5, 2, d)
    placed = draw(st.integers(1, n - 1))
    k = draw(st.integers(1, placed))
    groups = Groups(Z)
    rows = rng.permutation(n)[:placed]
    for at, row in enumerate(rows):
        groups.put(int(row), at if at < k else int(rng.integers(k)), float(rng.uniform(0.5, 1)))
    groups.error = float(rng.uniform(0.002, 0.3))
    answers = Comparisons()
    for _ in range(draw(st.integers(0, 12))):
        i, j = rng.choice(n, 2, replace=False)
        answers.add(int(i), int(j), bool(rng.random() < 0.5))
    return groups, answers


def plain(groups, answers):
    members = [groups.members[number] for number in groups.numbers]
    return groups.Z.tolist(), members, groups.confidence, listed(answers), groups.error


@settings(max_examples=60, deadline=None)
@given(situations())
def test_posterior(situation):
    groups, answers = situation
    for row in range(len(groups.Z)):
        expected = oracle.posterior(row, *plain(groups, answers))
        np.testing.assert_allclose(groups.posterior(row, answers), expected, atol=1e-10)


def agree_after_placing_all_again(groups, answers):
    """Whether two rounds give what placing one row after the other gives; returns how many rows moved."""
    before = dict(groups.where)
    for _ in range(2):
        expected, confidence = oracle.place_again(*plain(groups, answers), list(groups.where))
        groups.place_all_again(answers)
        assert [groups.members[number] for number in groups.numbers] == expected
        assert groups.confidence.keys() == confidence.keys()
        np.testing.assert_allclose([groups.confidence[row] for row in confidence], list(confidence.values()), atol=1e-9)
    assert {row for rows in groups.members.values() for row in rows} == groups.where.keys()
    assert all(row in groups.members[number] for row, number in groups.where.items())
    return sum(groups.where[row] != number for row, number in before.items())


@settings(max_examples=60, deadline=None)
@given(situations())
def test_all_rows_placed_again(situation):
    agree_after_placing_all_again(*situation)


@pytest.mark.parametrize(("block", "wrong"), [(64, 0.0), (64, 0.3), (7, 0.1), (1, 0.1)])
def test_many_rows_placed_again(monkeypatch, block, wrong):
    """Rows are placed in blocks; those that move, and those compared with a row of their block, are no exception."""
    monkeypatch.setattr("pairlens.asking.groups.BLOCK", block)
    rng = np.random.default_rng(3)
    y = rng.integers(4, size=110)
    groups, answers = Groups(rng.standard_normal((4, 3))[y] * 2 + rng.standard_normal((110, 3))), Comparisons()
    for row in range(100):
        k = len(groups)
        groups.put(row, int(y[row]) if y[row] < k and rng.random() >= wrong else k - 1 if row > 9 else k, rng.random())
    for i in range(1, 110):
        for j in {i - 1, int(rng.integers(i)), int(rng.integers(i))}:
            answers.add(i, j, bool((y[i] == y[j]) ^ (rng.random() < wrong)))
    assert agree_after_placing_all_again(groups, answers) > 0


@settings(max_examples=30, deadline=None)
@given(situations())
def test_likeliest_groups_of_rows(situation):
    groups, answers = situation
    found = groups.likeliest_of(range(len(groups.Z)), answers)
    for row, number in enumerate(found):
        p = oracle.posterior(row, *plain(groups, answers))[:-1]
        assert number == groups.where.get(row, groups.numbers[p.index(max(p))])


@settings(max_examples=60, deadline=None)
@given(situations())
def test_log_odds_of_merging(situation):
    groups, answers = situation
    odds, n_same = groups.log_odds(answers)
    for a in range(len(groups)):
        for b in range(len(groups)):
            if a != b:
                assert odds[a, b] == pytest.approx(oracle.log_odds(a, b, *plain(groups, answers)), abs=1e-10)
    between = [(groups.where.get(i), groups.where.get(j), same) for i, j, same in listed(answers)]
    assert n_same.sum() == 2 * sum(same for a, b, same in between if a != b and a is not None and b is not None)


@settings(max_examples=60, deadline=None)
@given(situations())
def test_weights_of_pairs(situation):
    groups, answers = situation
    found = groups.pairs(answers)
    must, cannot = oracle.pairs(*plain(groups, answers))
    for pairs, weights, expected in (
        (found.must, found.must_weight, must),
        (found.cannot, found.cannot_weight, cannot),
    ):
        got = {(min(i, j), max(i, j)): w for (i, j), w in zip(pairs.tolist(), weights.tolist()) if w > 0}
        assert got.keys() == expected.keys()
        for pair, weight in expected.items():
            assert got[pair] == pytest.approx(weight, abs=1e-10)


def test_of_many_pairs_some_are_drawn_that_weigh_as_much():
    members = [np.arange(30), np.arange(30, 70)]
    sure = [np.ones(30), np.linspace(0.5, 1, 40)]
    odds = np.full((2, 2), -3.0)
    everything, some = (pair_weights(members, sure, odds, 25, most=most) for most in (5000, 200))
    assert len(everything.must) == 30 * 29 // 2 + 40 * 39 // 2
    assert len(everything.cannot) == 30 * 40
    for all_pairs, all_weights, pairs, weights in (
        (everything.must, everything.must_weight, some.must, some.must_weight),
        (everything.cannot, everything.cannot_weight, some.cannot, some.cannot_weight),
    ):
        assert len({frozenset(pair) for pair in all_pairs.tolist()}) == len(all_pairs)
        assert len(pairs) == 200
        assert {tuple(pair) for pair in pairs.tolist()} <= {tuple(pair) for pair in all_pairs.tolist()}
        assert weights.sum() == pytest.approx(all_weights.sum())


def test_a_row_prefers_to_be_placed_where_the_answer_says():
    """One "same" outweighs the view, and a mistaken view yields to two answers."""
    Z = np.array([[0.0], [0.1], [5.0], [5.1], [0.05]])
    groups = Groups(Z)
    for row, group in ((0, 0), (1, 0), (2, 1), (3, 1)):
        groups.put(row, group, 1.0)
    answers = Comparisons()
    assert np.argmax(groups.posterior(4, answers)) == 0
    answers.add(4, 2, True)
    answers.add(4, 0, False)
    assert np.argmax(groups.posterior(4, answers)) == 1
    assert groups.settled(4, groups.posterior(4, answers), answers, 0.9, 0.02)


def test_an_outlier_founds_a_group_only_if_it_differs_from_those_that_are_nearest():
    """It lies far from its own group as well, so that the view takes it for new."""
    Z = np.repeat([0.0, 5.0, 60.0, 2.5], [40, 40, 1, 200])[:, None] + np.zeros((281, 2))
    groups = Groups(Z)
    for row in range(80):
        groups.put(row, row // 40, 1.0)
    answers = Comparisons()
    for other in (40, 41):
        answers.add(80, other, False)
        p = groups.posterior(80, answers)
        assert p[2] > 0.95
        assert not groups.settled(80, p, answers, 0.9, 0.02)
    answers.add(80, 0, False)
    assert groups.settled(80, groups.posterior(80, answers), answers, 0.9, 0.02)


def test_a_wide_group_is_known_to_be_wide():
    """A row at the edge of a wide group belongs to it; as far from a tight one, it does not."""
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.standard_normal((90, 6)), 4 * rng.standard_normal((30, 6)) + 20, np.zeros((2, 6))])
    Z[-2], Z[-1] = 26, 6
    groups = Groups(Z)
    for row in range(120):
        groups.put(row, int(row >= 90), 1.0)
    near_wide, near_tight = groups.prior(np.array([120, 121]))
    assert np.argmax(near_wide) == 1
    assert np.argmax(near_tight) != 0


def test_the_width_of_a_group_of_few_rows_is_not_known():
    """One "same" of a row alone in its group is believed, however far away the other row is."""
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.standard_normal((60, 8)), 4 * rng.standard_normal((30, 8)) + 10])
    groups, answers = Groups(Z), Comparisons()
    for row in range(61):
        groups.put(row, int(row == 60), 1.0)
    for row in range(61, 90):
        answers.add(row, 60, True)
        assert np.argmax(groups.posterior(row, answers)) == 1


def test_an_answer_that_only_the_view_speaks_against_does_not_raise_the_error_rate():
    """Row 20 lies in the wrong place: the "same" about it is set aside, but no other answer contradicts it."""
    Z = np.repeat([0.0, 9.0], [10, 11])[:, None] + np.zeros((21, 4))
    groups, answers = Groups(Z), Comparisons()
    for row in range(21):
        groups.put(row, int(row >= 10), 1.0)
    for row in range(1, 20):
        if row != 10:
            answers.add(row, row - 1, True)
        answers.add(row, (row + 10) % 20, False)
    groups.look_again(Z, answers)
    clean = groups.error
    for other, raised in ((0, False), (11, True)):
        answers.add(20, other, True)
        # So many answers were wrong so far that the view overrules one.
        groups.error = 0.2
        groups.look_again(Z, answers)
        assert groups.where[20] == groups.where[10]
        assert (groups.error > clean) == raised


@settings(max_examples=60, deadline=None)
@given(situations(), st.integers(0, 2**12))
def test_answers_that_others_contradict(situation, mask):
    groups, answers = situation
    believed = np.array([bool(mask >> at & 1) for at in range(len(listed(answers)))], dtype=bool)
    found, _ = cross_examined(len(groups.Z), *answers.columns(), believed)
    assert found.tolist() == oracle.contradicted(listed(answers), believed.tolist())


def test_answers_that_no_other_tests():
    """Two chains of three rows take four "same" and a "different"; what follows from these is tested."""
    needed = [(0, 1, True), (1, 2, True), (3, 4, True), (4, 5, True), (0, 3, False)]
    follow = [(0, 2, True), (1, 4, False), (2, 5, False)]
    for count in range(len(follow) + 1):
        i, j, same = (np.array(column) for column in zip(*needed, *follow[:count]))
        found, n_untested = cross_examined(7, i, j, same, np.ones(len(i), dtype=bool))
        assert not len(found)
        assert n_untested == len(needed)


def test_a_tested_answer_says_more_about_the_error_rate():
    Z = np.repeat([0.0, 9.0], 10)[:, None] + np.zeros((20, 4))
    found = []
    for pairs in (
        [(row, row + 1) for row in range(8)],
        [(0, 1), (1, 2), (2, 3), (0, 2), (0, 3), (1, 3), (0, 1), (1, 2)],
    ):
        groups, answers = Groups(Z), Comparisons()
        for row in range(20):
            groups.put(row, row // 10, 1.0)
        for i, j in pairs:
            answers.add(i, j, True)
        groups.look_again(Z, answers)
        found.append(groups.error)
    # Eight answers that nothing tests count for four; three are needed to join four rows.
    assert found == pytest.approx([1 / 24, 1 / (20 + 8 - 1.5)])


def test_merging_keeps_the_older_number_and_needs_a_same():
    Z = np.random.default_rng(0).standard_normal((20, 2))
    groups = Groups(Z)
    for row in range(8):
        groups.put(row, row % 2, 1.0)
    answers = Comparisons()
    groups.merge(answers)
    assert groups.numbers == [0, 1]
    answers.add(0, 1, True)
    answers.add(2, 3, True)
    groups.merge(answers)
    assert groups.numbers == [0]
    assert sorted(groups.members[0]) == list(range(8))
    groups.put(9, 1, 1.0)
    assert groups.numbers == [0, 2]
    assert groups.slots == {0: 0, 2: 1}


def test_choice_value_by_hand():
    p = np.array([[0.5, 0.25, 0.25], [0.7, 0.0, 0.3]])
    known = np.array([2 / 3, 1 / 3])
    entropy = -(known * np.log(known)).sum()
    np.testing.assert_allclose(choice_value(p), [entropy / (2 / 3 + 2 / 3), 0.0])


def test_kappa_is_that_of_scikit_learn_where_both_sides_have_the_same_verdicts():
    from sklearn.metrics import cohen_kappa_score

    pairs = [(1, 1), (1, -1), (-1, 1), (-1, -1), (-1, -1), (1, 1)]
    a, b = zip(*pairs)
    assert agreement_of(pairs).kappa == pytest.approx(cohen_kappa_score(a, b))
    assert np.isnan(agreement_of([(1, 1)]).kappa)
