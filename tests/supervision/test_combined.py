"""Labels and pairs together, as ``fit`` takes them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from pairlens.exceptions import ConflictError
from pairlens.supervision import Constraints, Preferences
from pairlens.supervision.combined import (
    class_codes,
    combine,
    combine_preferences,
    listed_answers,
    over_rows,
    pair_shares,
    written_pairs,
)
from tests.supervision import oracles

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")


@given(labels=oracles.labels, made=oracles.constraints(labelled=False))
def test_labels_and_pairs_add_up(labels, made):
    try:
        both = combine(labels, made, oracles.N_ROWS)
    except ConflictError:
        assert Constraints.from_labels(labels).merge(made, on_conflict="warn").conflicts().direct.size
        return
    for kind in (0, 1):
        expected = oracles.sum_of(oracles.implied(labels)[kind], oracles.weights_of(made)[kind])
        assert oracles.weights_of(both)[kind] == expected
    assert combine(labels, None, oracles.N_ROWS) == Constraints.from_labels(labels)
    assert combine(None, made, oracles.N_ROWS) == made
    assert combine(None, None, 3) == Constraints(n_samples=3)


def test_accepted_contradictions_are_not_refused_beside_labels():
    made = Constraints([(0, 1)], [(0, 1)], 3, on_conflict="warn")
    assert combine([0, 0, 1], made, 3).n_must_link == 1


def test_scores_and_preferences_add_up():
    both = combine_preferences([1, 2, None], Preferences([(1, 0), (2, 0)]), 3)
    assert oracles.preference_weights(both) == {(1, 0): 2.0, (2, 0): 1.0}
    assert combine_preferences(range(100), None, 100, max_pairs=50, random_state=0).n_pairs == 50
    assert combine_preferences([0] * 99 + [1], None, 100, max_pairs=99).n_pairs == 99


def test_a_number_of_rows_is_filled_in():
    assert over_rows(Constraints([(0, 1)]), Constraints, 4).n_samples == 4


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: combine([0, 1], None, 3), ("y", 2)),
        (lambda: combine(None, Constraints(n_samples=2), 3), ("constraints", 2)),
        (lambda: combine_preferences([0, 1], None, 3), ("y", 2)),
        (lambda: combine_preferences([0, 1], None, 2, groups=[1]), ("groups", 1)),
        (lambda: combine_preferences(None, None, 2, groups=[1, 1]), ("y", None)),
        (lambda: over_rows(Preferences(n_samples=2), Preferences, 3), ("preferences", 2)),
        (lambda: pair_shares([1, -1], np.array([[0, 1]]), 2), ("sample_weight", [1, -1])),
        (lambda: pair_shares(["x"], np.array([[0, 1]]), 2), ("sample_weight", ["x"])),
        (lambda: pair_shares([1, 0], np.array([[0, 1]]), 2), ("sample_weight", [1, 0])),
    ],
)
def test_errors(call, expected):
    assert oracles.refused(call) == expected


def test_another_kind():
    with pytest.raises(TypeError, match=r"constraints must be a pairlens\.Constraints, got list\. Build one with"):
        over_rows([(0, 1)], Constraints, 3)


def test_rows_of_a_chain_inherit_its_label():
    known = Constraints.from_labels([5, 7, -1, -1, -1, -1, -1, -1])
    links = Constraints([(0, 2), (2, 3), (4, 5)], n_samples=8)
    assert class_codes(known.merge(links)).tolist() == [0, 1, 0, 0, 2, 2, -1, -1]
    joined = known.merge(Constraints([(0, 2), (2, 1)], n_samples=8), on_conflict="warn")
    assert class_codes(joined).tolist() == [0, 1, -1, -1, -1, -1, -1, -1]


def test_written_pairs_are_a_list():
    known = Constraints.from_labels([0, 0, 1]).merge(Constraints([(0, 1)], n_samples=3))
    assert written_pairs(known).labels is None
    assert written_pairs(known) == known
    pairs, kind, weight = listed_answers(known)
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert kind.tolist() == ["must-link", "cannot-link", "cannot-link"]
    assert weight.tolist() == [2.0, 1.0, 1.0]
