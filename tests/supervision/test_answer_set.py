"""What all kinds of answers share: immutable, sliced along with X, flipped and split."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlens.supervision import Constraints
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

    @pytest.mark.parametrize("fraction", [-0.1, 1.1, "all"])
    def test_errors(self, fraction):
        assert oracles.refused(lambda: Constraints([(0, 1)]).flip(fraction)) == ("fraction", fraction)


class TestSplit:
    @given(made=oracles.constraints().filter(lambda made: made.n_pairs >= 2), seed=seeds, data=st.data())
    def test_folds_are_even_and_make_up_the_whole(self, made, seed, data):
        n_splits = data.draw(st.integers(2, made.n_pairs))
        folds = list(made.split(n_splits, random_state=seed))
        assert len(folds) == n_splits
        for train, held_out in folds:
            assert train.merge(held_out, on_conflict="warn") == made
            assert train.n_pairs + held_out.n_pairs == made.n_pairs
        for count in (lambda c: c.n_must_link, lambda c: c.n_cannot_link, lambda c: c.n_pairs):
            sizes = [count(held_out) for _, held_out in folds]
            assert max(sizes) - min(sizes) <= 1
            assert sum(sizes) == count(made)

    def test_repeats(self):
        made = Constraints.from_labels([0, 0, 1, 1, 2])
        assert list(made.split(3, random_state=5)) == list(made.split(3, random_state=5))

    @pytest.mark.parametrize("n_splits", [1, 4, 2.5])
    def test_errors_come_at_once(self, n_splits):
        made = Constraints([(0, 1), (1, 2)], [(3, 4)])
        assert oracles.refused(lambda: made.split(n_splits)) == ("n_splits", n_splits)


class TestImmutable:
    def test_nothing_can_be_set(self):
        made = Constraints([(0, 1)], n_samples=2)
        with pytest.raises(AttributeError, match="immutable"):
            made.n_samples = 3
        with pytest.raises(AttributeError, match="immutable"):
            made.anything = 3
        with pytest.raises(AttributeError, match="immutable"):
            del made._must
        with pytest.raises(ValueError, match="read-only"):
            made.must_link[0, 0] = 5

    @pytest.mark.parametrize("made", [Constraints([(0, 1)], n_samples=2), Constraints.from_labels([0, 0])])
    def test_no_second_init(self, made):
        for change in (lambda: made.__init__([], [(0, 1)], 9), lambda: made.__setstate__({"_n_samples": 9})):
            with pytest.raises(AttributeError, match="Constraints are immutable: __init__ cannot be called again"):
                change()
        assert (made.to_lists(), made.n_samples) == (([(0, 1)], []), 2)

    def test_input_stays_as_it_is_and_writeable(self):
        given_pairs = np.array([(1, 0), (3, 2)])
        weight = np.array([2.0, 3.0])
        made = Constraints(given_pairs, must_link_weight=weight)
        given_pairs[:] = 7
        weight[:] = 7
        assert oracles.weights_of(made)[0] == {(0, 1): 2.0, (2, 3): 3.0}

    def test_read_only_input(self):
        pairs = np.array([(1, 0)])
        pairs.flags.writeable = False
        assert Constraints(pairs).n_must_link == 1

    @given(made=oracles.constraints())
    @settings(max_examples=20)
    def test_pickle_and_copies(self, made):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(made, protocol=protocol))
            assert again == made
            assert not again.must_link.flags.writeable
            assert not again.explicit.must_link_weight.flags.writeable
            assert again.labels is None or not again.labels.flags.writeable
        assert copy.deepcopy(made) == made
        assert copy.copy(made) == made

    def test_equality(self):
        made = Constraints([(0, 1)], [(1, 2)], n_samples=3)
        assert made == Constraints([(1, 0)], [(2, 1)], n_samples=3)
        assert made != Constraints([(0, 1)], [(1, 2)], n_samples=4)
        assert made != Constraints([(0, 1)], [(1, 2)])
        assert made != Constraints([(0, 1)], [(0, 2)], n_samples=3)
        assert made != Constraints([(0, 1)], [(1, 2)], n_samples=3, must_link_weight=[2])
        assert made != "made"

    def test_true_even_without_a_length(self):
        assert Constraints()


class TestSlicing:
    @given(made=oracles.constraints(), data=st.data())
    @settings(max_examples=200)
    def test_equals_looking_at_every_two_rows(self, made, data):
        rows = data.draw(st.lists(st.integers(0, oracles.N_ROWS - 1), max_size=14))
        cut = made[rows]
        must, cannot = oracles.weights_of(made.explicit)
        expected = oracles.sliced(must, rows), oracles.sliced(cannot, rows)
        if made.labels is not None:
            by_label = oracles.implied(made.labels[rows].tolist() if rows else [])
            expected = oracles.sum_of(expected[0], by_label[0]), oracles.sum_of(expected[1], by_label[1])
        assert oracles.weights_of(cut) == expected
        assert len(cut) == cut.n_samples == len(rows)
        assert cut.shape == (len(rows),)

    def test_all_forms_of_an_index(self):
        made = Constraints([(0, 3), (1, 2)], [(2, 3)], n_samples=5)
        mask = np.array([False, False, True, True, True])
        expected = Constraints([], [(0, 1)], n_samples=3)
        for index in ([2, 3, 4], np.array([2, 3, 4]), mask, mask.tolist(), slice(2, None), range(2, 5)):
            assert made[index] == expected
            assert made[index, ...] == expected
        assert made[[-3, -2, -1]] == expected
        assert made[np.array([4, 3, 2], dtype=np.uint8)] == Constraints([], [(1, 2)], n_samples=3)
        assert made[::-1] == Constraints([(1, 4), (2, 3)], [(1, 2)], n_samples=5)
        assert made[[]] == Constraints(n_samples=0)
        assert made[:] == made

    def test_bootstrap_copies_inherit_pairs_but_are_not_linked_themselves(self):
        assert Constraints([(0, 1)], n_samples=2)[[0, 0, 1]].to_lists()[0] == [(0, 2), (1, 2)]

    def test_bootstrap_copies_of_a_labelled_row_share_a_label(self):
        assert Constraints.from_labels([7, 8])[[0, 0, 1]].to_lists() == ([(0, 1)], [(0, 2), (1, 2)])

    def test_no_iteration(self):
        with pytest.raises(TypeError):
            iter(Constraints([(0, 1)], n_samples=5))

    @pytest.mark.parametrize("use", [len, lambda c: c.shape, lambda c: c[[0, 1]], lambda c: hasattr(c, "shape")])
    def test_unknown_number_of_rows(self, use):
        with pytest.raises(TypeError, match=r"give n_samples=len\(X\)"):
            use(Constraints([(0, 1)]))

    @pytest.mark.parametrize(
        "index",
        [
            [0, 5],
            [-6],
            [True, False],
            [0.5],
            [[0, 1]],
            [[0, 1], [2]],
            ([0, 1], slice(None)),
            ([0, 1], 0),
            (..., [0, 1]),
            (0, 1),
            (),
            np.ma.array([0, 1], mask=[0, 1]),
            [2**70],
        ],
    )
    def test_wrong_index(self, index):
        with pytest.raises(IndexError):
            Constraints([(0, 1)], n_samples=5)[index]

    @pytest.mark.parametrize("index", [0, np.int64(1), True, None])
    def test_one_row_alone(self, index):
        with pytest.raises(TypeError, match="rows must be an array"):
            Constraints([(0, 1)], n_samples=5)[index]

    def test_with_n_samples(self):
        made = Constraints([(0, 1)], [(1, 4)]).with_n_samples(6)
        assert len(made) == 6
        assert made.with_n_samples(None).n_samples is None
        assert oracles.refused(lambda: made.with_n_samples(4)) == ("cannot_link[0]", (1, 4))

    def test_with_n_samples_of_labels(self):
        made = Constraints.from_labels([0, 0, 1, -1])
        assert made.with_n_samples(6).labels.tolist() == [0, 0, 1, -1, -1, -1]
        assert made.with_n_samples(3).labels.tolist() == [0, 0, 1]
        assert oracles.refused(lambda: made.with_n_samples(2)) == ("n_samples", 2)
