"""Constraints from constraints: noise, folds, samples, merging, set operations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlens.exceptions import ConflictError
from pairlens.supervision import Constraints, Preferences
from tests.supervision import oracles

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")

fractions = st.floats(0, 1)
seeds = st.integers(0, 1000)


def consistent(made: Constraints) -> bool:
    must, cannot = oracles.weights_of(made)
    return not must.keys() & cannot.keys()


class TestFlip:
    @given(made=oracles.constraints().filter(consistent), fraction=fractions, seed=seeds)
    def test_moves_the_share_and_keeps_the_weights(self, made, fraction, seed):
        flipped = made.flip(fraction, random_state=seed)
        must, cannot = oracles.weights_of(made)
        new_must, new_cannot = oracles.weights_of(flipped)
        assert new_must | new_cannot == must | cannot
        moved = (must.keys() & new_cannot.keys()) | (cannot.keys() & new_must.keys())
        assert len(moved) == round(fraction * made.n_pairs)
        assert flipped.n_samples == made.n_samples
        assert flipped == made.flip(fraction, random_state=seed)

    def test_there_and_back(self):
        made = Constraints([(0, 1)], [(1, 2)], n_samples=3)
        assert made.flip(1).to_lists() == ([(1, 2)], [(0, 1)])
        assert made.flip(1).flip(1) == made
        assert made.flip(0) == made

    @pytest.mark.parametrize("fraction", [-0.1, 1.1, np.nan, "all"])
    def test_errors(self, fraction):
        with pytest.raises(ValueError, match=r"fraction must .*\[0, 1\]"):
            Constraints([(0, 1)]).flip(fraction)


class TestSplit:
    @given(made=oracles.constraints().filter(lambda made: made.n_pairs >= 2), seed=seeds, data=st.data())
    def test_folds_are_even_and_make_up_the_whole(self, made, seed, data):
        n_splits = data.draw(st.integers(2, made.n_pairs))
        folds = list(made.split(n_splits, random_state=seed))
        assert len(folds) == n_splits
        for train, held_out in folds:
            assert train.merge(held_out, on_conflict="warn") == made
            assert (train & held_out).n_pairs == 0
        for count in (lambda c: c.n_must_link, lambda c: c.n_cannot_link, lambda c: c.n_pairs):
            sizes = [count(held_out) for _, held_out in folds]
            assert max(sizes) - min(sizes) <= 1
            assert sum(sizes) == count(made)

    def test_repeats(self):
        made = Constraints.from_labels([0, 0, 1, 1, 2])
        assert list(made.split(3, random_state=5)) == list(made.split(3, random_state=5))

    @pytest.mark.parametrize(
        ("n_splits", "message"),
        [(1, "n_splits must be at least 2"), (4, "n_splits=4 folds.*there are 3"), (2.5, "whole number")],
    )
    def test_errors_come_at_once(self, n_splits, message):
        with pytest.raises(ValueError, match=message):
            Constraints([(0, 1), (1, 2)], [(3, 4)]).split(n_splits)


class TestSample:
    @given(made=oracles.constraints(), seed=seeds, data=st.data())
    def test_distinct_pairs_with_their_weights(self, made, seed, data):
        count = data.draw(st.integers(0, made.n_pairs))
        drawn = made.sample(count, random_state=seed)
        assert drawn.n_pairs == count
        for some, whole in zip(oracles.weights_of(drawn), oracles.weights_of(made)):
            assert some.items() <= whole.items()
        assert drawn == made.sample(count, random_state=seed)

    def test_everything(self):
        made = Constraints.from_labels([0, 0, 1, -1]).merge(Constraints([(0, 1), (0, 3)], n_samples=4))
        assert made.sample(made.n_pairs) == made

    def test_too_many(self):
        with pytest.raises(ValueError, match="n_pairs=3 exceeds the 1 distinct pairs"):
            Constraints([(0, 1)]).sample(3)


class TestMerge:
    @given(
        left=oracles.constraints(), right=oracles.constraints(), third=oracles.constraints(known=False, labelled=False)
    )
    def test_weights_add_up(self, left, right, third):
        merged = left.merge(right, third, on_conflict="warn")
        parts = [oracles.weights_of(each) for each in (left, right, third)]
        for kind in (0, 1):
            expected = oracles.sum_of(oracles.sum_of(parts[0][kind], parts[1][kind]), parts[2][kind])
            assert oracles.weights_of(merged)[kind] == expected
        assert merged.n_samples == oracles.N_ROWS

    def test_alone(self):
        made = Constraints([(0, 1)])
        assert made.merge() == made

    def test_labels_stay_implicit(self):
        labels = Constraints.from_labels(np.arange(10**6) % 3)
        pairs = Constraints([(0, 3), (5, 8)])
        for merged in (labels.merge(pairs), pairs.merge(labels)):
            assert merged.n_samples == 10**6
            assert merged.n_pairs == labels.n_pairs
            assert merged.must_link_total == labels.must_link_total + 2

    def test_two_label_vectors(self):
        merged = Constraints.from_labels([0, 0, -1]).merge(Constraints.from_labels([0, 0, 0]))
        assert oracles.weights_of(merged)[0] == {(0, 1): 2, (0, 2): 1, (1, 2): 1}

    def test_conflicts_are_checked(self):
        with pytest.raises(ConflictError):
            Constraints([(0, 1)]).merge(Constraints([], [(0, 1)]))
        assert Constraints([(0, 1)]).merge(Constraints([], [(0, 1)]), on_conflict="drop").n_pairs == 0

    def test_errors(self):
        with pytest.raises(ValueError, match=r"n_samples must agree.*3 rows.*4"):
            Constraints(n_samples=3).merge(Constraints(n_samples=4))
        with pytest.raises(ValueError, match=r"\(0, 5\).*from 0 to 2"):
            Constraints(n_samples=3).merge(Constraints([(0, 5)]))
        with pytest.raises(TypeError, match="merge takes Constraints, got Preferences"):
            Constraints().merge(Preferences())


class TestSets:
    @given(left=oracles.constraints(), right=oracles.constraints())
    @settings(max_examples=150)
    def test_equal_the_oracle(self, left, right):
        ours, theirs = oracles.weights_of(left), oracles.weights_of(right)
        either = [{p: max(a.get(p, 0), b.get(p, 0)) for p in a.keys() | b.keys()} for a, b in zip(ours, theirs)]
        both = [{p: min(a[p], b[p]) for p in a.keys() & b.keys()} for a, b in zip(ours, theirs)]
        only = [{p: a[p] for p in a.keys() - b.keys()} for a, b in zip(ours, theirs)]
        assert list(oracles.weights_of(left & right)) == both
        assert list(oracles.weights_of(left - right)) == only
        if either[0].keys() & either[1].keys():
            with pytest.raises(ConflictError):
                left | right
        else:
            assert list(oracles.weights_of(left | right)) == either

    @given(made=oracles.constraints().filter(consistent))
    def test_with_itself(self, made):
        assert made | made == made
        assert made & made == made
        assert (made - made).n_pairs == 0

    def test_weights_stay_exact_beside_labels(self):
        made = Constraints.from_labels([0, 0]).merge(Constraints([(0, 1)], n_samples=2, must_link_weight=[0.1]))
        assert (made | made).explicit.must_link_weight.tolist() == [0.1]

    def test_labels_stay_implicit(self):
        labels = Constraints.from_labels(np.arange(10**6) % 3)
        pairs = Constraints([(0, 3), (0, 7)], n_samples=10**6, on_conflict="drop")
        agreeing = Constraints([(0, 3)], must_link_weight=[2.5], n_samples=10**6)
        assert (pairs & labels).to_lists() == ([(0, 3)], [])
        assert (pairs - labels).to_lists() == ([(0, 7)], [])
        assert (labels | agreeing).must_link_total == labels.must_link_total + 1.5
        assert labels | labels == labels
        assert (labels - labels).n_pairs == 0

    @pytest.mark.parametrize("operation", ["__or__", "__and__", "__sub__"])
    def test_errors(self, operation):
        made = Constraints.from_labels([0, 1, 1])
        with pytest.raises(ValueError, match="n_samples must agree"):
            getattr(made, operation)(Constraints(n_samples=4))
        with pytest.raises(ValueError, match=r"\(0, 5\).*from 0 to 2"):
            getattr(made, operation)(Constraints([(0, 5)]))
        assert getattr(made, operation)(3) is NotImplemented
