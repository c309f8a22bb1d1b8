"""Preferences: ordered pairs, from answers or from scores."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlens.exceptions import ConflictError, ConflictWarning
from pairlens.supervision import Constraints, Preferences
from tests.supervision import oracles

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")

scores = st.lists(st.none() | st.integers(-3, 3).map(lambda half: half / 2), max_size=9)


@st.composite
def preferences(draw: st.DrawFn) -> Preferences:
    pairs = draw(oracles.pairs)
    weight = draw(st.none() | st.lists(oracles.weights, min_size=len(pairs), max_size=len(pairs)))
    return Preferences(pairs, oracles.N_ROWS, weight=weight)


def implied(y: list[float | None], groups: list[int | None], difference: float) -> list[tuple[int, int]]:
    n = range(len(y))
    return [
        (i, j)
        for i in n
        for j in n
        if y[i] is not None
        and y[j] is not None
        and y[i] > y[j] + difference
        and groups[i] is not None
        and groups[i] == groups[j]
    ]


class TestStored:
    @given(pairs=oracles.pairs, data=st.data())
    def test_order_inside_a_pair_counts_and_nothing_else(self, pairs, data):
        weight = data.draw(st.lists(oracles.weights, min_size=len(pairs), max_size=len(pairs)))
        made = Preferences(pairs, oracles.N_ROWS, weight=weight)
        expected: dict[tuple[int, int], float] = {}
        for pair, each in zip(pairs, weight):
            expected[pair] = expected.get(pair, 0.0) + each
        assert oracles.preference_weights(made) == {pair: each for pair, each in expected.items() if each}
        order = data.draw(st.permutations(range(len(pairs))))
        assert made == Preferences([pairs[k] for k in order], oracles.N_ROWS, weight=[weight[k] for k in order])
        assert made.pairs.tolist() == sorted(made.pairs.tolist())
        assert made.total == sum(expected.values())
        assert made.n_pairs == len(made.pairs)
        assert made.rows.tolist() == sorted(set(made.pairs.ravel().tolist()))

    def test_immutable_and_picklable(self):
        made = Preferences([(1, 0)], 3, weight=[2])
        with pytest.raises(AttributeError, match="Preferences are immutable"):
            made.pairs = ()
        with pytest.raises(ValueError, match="read-only"):
            made.pairs[0, 0] = 1
        again = pickle.loads(pickle.dumps(made))
        assert again == made == copy.deepcopy(made)
        assert hash(again) == hash(made)
        assert not again.weight.flags.writeable
        assert made != Preferences([(0, 1)], 3, weight=[2])
        assert made != Constraints([(0, 1)], n_samples=3)

    def test_no_second_init(self):
        made = Preferences([(1, 0)], 3)
        with pytest.raises(AttributeError, match="Preferences are immutable: __init__ cannot be called again"):
            made.__init__([(0, 1)], 9)
        assert made == Preferences([(1, 0)], 3)

    @pytest.mark.parametrize("form", [set, iter, lambda pairs: zip(*zip(*pairs)), lambda pairs: (p for p in pairs)])
    def test_any_iterable_of_pairs(self, form):
        assert Preferences(form([(3, 0), (1, 2)]), 5) == Preferences([(3, 0), (1, 2)], 5)
        assert Preferences(None, 5) == Preferences(n_samples=5)

    def test_repr(self):
        assert repr(Preferences([(1, 0)], 3)) == "Preferences(1 pair over 3 rows)"
        assert repr(Preferences([(1, 0), (2, 1)])) == "Preferences(2 pairs over an unknown number of rows)"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"pairs": [(0, 1, 2)]}, "pairs must have the shape"),
            ({"pairs": [(0, 1), (2,)]}, "pairs must be a regular array: entry 0 is"),
            ({"pairs": [(0, 2**70)]}, f"pairs holds the row number {2**70}"),
            ({"pairs": {(0, 1)}, "weight": [1]}, "pairs is a set, which has no order that weight could follow"),
            ({"pairs": [(0, 1), (0, 1)], "weight": 1e308}, r"^weight: the weights of the pair \(0, 1\) add up"),
            ({"pairs": [(0, 1), (0, 2)], "weight": 1e308}, "^weight: the weights of all pairs together add up"),
            ({"pairs": [(0, 0)]}, r"pairs\[0\] is the pair \(0, 0\)"),
            ({"pairs": [(0, 3)], "n_samples": 3}, r"pairs\[0\] is \(0, 3\).*from 0 to 2"),
            ({"pairs": [(0, 3)], "weight": [np.nan]}, r"weight\[0\] is nan"),
            ({"pairs": [(0, 3)], "weight": [1, 1]}, "weight must hold one weight per pair"),
            ({"on_conflict": "no"}, "on_conflict must be one of"),
        ],
    )
    def test_errors(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Preferences(**arguments)


class TestConflicts:
    pairs = ((0, 1), (1, 0), (2, 3))

    @pytest.mark.parametrize("on_conflict", [None, "warn"])
    def test_warns_and_keeps(self, on_conflict):
        with pytest.warns(ConflictWarning, match=r"1 pair is preferred both ways round, for example \(0, 1\)"):
            assert Preferences(self.pairs, on_conflict=on_conflict).n_pairs == 3

    def test_raise(self):
        with pytest.raises(ConflictError, match="both ways"):
            Preferences(self.pairs, on_conflict="raise")

    def test_drop(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert Preferences(self.pairs, on_conflict="drop").pairs.tolist() == [[2, 3]]


class TestCycles:
    @given(made=preferences())
    def test_equal_those_of_reachability(self, made):
        given_pairs = set(map(tuple, made.pairs.tolist()))
        two = sorted((a, b) for a, b in given_pairs if a < b and (b, a) in given_pairs)
        reach = {(a, b): 1 for a, b in given_pairs if (b, a) not in given_pairs}
        rest = set(reach)
        for _ in range(oracles.N_ROWS):
            for (a, b), first in list(reach.items()):
                for c, d in rest:
                    if b == c and first + 1 < reach.get((a, d), oracles.N_ROWS + 1):
                        reach[a, d] = first + 1
        looping = sorted(a for a in range(oracles.N_ROWS) if (a, a) in reach)
        smallest = {min(b for b in looping if (a, b) in reach and (b, a) in reach) for a in looping}
        found = made.cycles()
        assert found[: len(two)] == two
        longer = found[len(two) :]
        assert {cycle[0] for cycle in longer} == smallest
        assert len(longer) == len(smallest)
        for cycle in longer:
            assert len(cycle) == reach[cycle[0], cycle[0]]
            assert rest >= set(zip(cycle, (*cycle[1:], cycle[0]), strict=True))

    def test_the_shortest_of_several_and_one_for_each_part(self):
        pairs = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 0), (7, 6), (6, 5), (5, 7), (4, 7)]
        assert Preferences(pairs, 8).cycles() == [(0, 1, 2), (5, 7, 6)]

    def test_a_long_one_among_many_preferences(self):
        n = 200_000
        ladder = np.column_stack([np.arange(n - 1), np.arange(1, n)])
        assert Preferences(ladder, n).cycles() == []
        assert Preferences(np.vstack([ladder, [[5000, 0]]]), n).cycles() == [tuple(range(5001))]


class TestSlicing:
    @given(made=preferences(), rows=st.lists(st.integers(0, oracles.N_ROWS - 1), max_size=14))
    def test_equals_looking_at_every_two_rows(self, made, rows):
        cut = made[rows]
        expected = oracles.sliced(oracles.preference_weights(made), rows, directed=True)
        assert oracles.preference_weights(cut) == expected
        assert len(cut) == len(rows)
        assert cut.shape == (len(rows),)

    def test_unknown_number_of_rows(self):
        with pytest.raises(TypeError, match=r"Preferences.*n_samples=len\(X\)"):
            len(Preferences([(0, 1)]))
        assert len(Preferences([(0, 1)]).with_n_samples(4)) == 4
        with pytest.raises(ValueError, match="from 0 to 0"):
            Preferences([(0, 1)]).with_n_samples(1)


class TestFromScores:
    @given(y=scores, difference=st.sampled_from([0, 0.5, 1]), data=st.data())
    def test_equals_looking_at_every_two_rows(self, y, difference, data):
        groups = data.draw(st.lists(st.sampled_from([None, 4, 2]), min_size=len(y), max_size=len(y)))
        made = Preferences.from_scores(y, min_difference=difference)
        assert made.pairs.tolist() == [list(pair) for pair in implied(y, [0] * len(y), difference)]
        assert len(made) == len(y)
        grouped = Preferences.from_scores(y, groups=groups, min_difference=difference)
        expected = implied(y, groups, difference)
        assert grouped.pairs.tolist() == [list(pair) for pair in expected]
        count = data.draw(st.integers(0, len(expected)))
        drawn = Preferences.from_scores(
            y, groups=groups, min_difference=difference, n_pairs=count, random_state=data.draw(st.integers(0, 99))
        )
        assert drawn.n_pairs == count
        assert {tuple(pair) for pair in drawn.pairs.tolist()} <= set(expected)

    @given(y=st.lists(st.floats(-1e6, 1e6), max_size=8), difference=st.floats(0, 1e6))
    def test_the_difference_means_exactly_what_it_says(self, y, difference):
        made = Preferences.from_scores(y, min_difference=difference)
        assert made.pairs.tolist() == [list(pair) for pair in implied(y, [0] * len(y), difference)]

    @pytest.mark.parametrize(
        "y",
        [
            [3, None, 1],
            np.array([3, np.nan, 1], dtype=np.float32),
            pd.Series([3, None, 1], dtype="Int64"),
            [[3], [None], [1]],
            np.ma.array([3, 2, 1], mask=[0, 1, 0]),
            np.ma.array([[3], [None], [1]], mask=[[0], [1], [0]], dtype=object),
            np.ma.array(["3", "?", "1"], mask=[0, 1, 0]),
        ],
    )
    def test_kinds_of_scores(self, y):
        assert Preferences.from_scores(y).pairs.tolist() == [[0, 2]]

    def test_polars_series(self):
        polars = pytest.importorskip("polars")
        assert Preferences.from_scores(polars.Series([3, None, 1])).pairs.tolist() == [[0, 2]]

    def test_groups_by_name(self):
        made = Preferences.from_scores([1, 2, 3, 4], groups=["q", "r", "q", None])
        assert made.pairs.tolist() == [[2, 0]]
        made = Preferences.from_scores([1, 2, 3, 4], groups=np.ma.array([7, 8, 7, 7], mask=[0, 0, 0, 1]))
        assert made.pairs.tolist() == [[2, 0]]

    def test_drawing_is_uniform(self):
        counts = np.zeros((5, 5))
        for seed in range(1000):
            pairs = Preferences.from_scores([0, 1, 1, 2, 3], n_pairs=3, random_state=seed).pairs
            counts[pairs[:, 0], pairs[:, 1]] += 1
        drawn = counts[counts > 0]
        assert len(drawn) == 9
        # Each is expected 333 times with a standard deviation of 14.9.
        assert np.abs(drawn - 1000 / 3).max() < 5 * 14.9

    def test_drawing_from_half_a_trillion(self):
        y = np.random.default_rng(0).permutation(10**6)
        made = Preferences.from_scores(y, n_pairs=10_000, random_state=0)
        assert made.n_pairs == 10_000
        assert (y[made.pairs[:, 0]] > y[made.pairs[:, 1]]).all()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"y": [1, 2], "n_pairs": 2}, "n_pairs=2 exceeds the 1 distinct pairs that the scores imply"),
            ({"y": [1, 2], "min_difference": -1}, "min_difference must be finite and at least 0"),
            ({"y": [1, 2], "groups": [1]}, "groups must name a group per row: expected 2, got 1"),
            ({"y": ["good", "bad"]}, "y must hold numbers"),
            ({"y": np.zeros((2, 2))}, "y must be one-dimensional"),
            ({"y": [[1], [1, 2]]}, "y must be a regular array: entry 0 is"),
            ({"y": [1, 2], "groups": [1, [2]]}, "groups must be a regular array: entry 0 is 1"),
            ({"y": [1, 10**400]}, "y must hold numbers"),
            ({"y": np.arange(20_000)}, "199,990,000 pairs.*n_pairs"),
        ],
    )
    def test_errors(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Preferences.from_scores(**arguments)


class TestAlgebra:
    @given(made=preferences(), fraction=st.floats(0, 1), seed=st.integers(0, 99))
    def test_flip(self, made, fraction, seed):
        flipped = made.flip(fraction, random_state=seed)
        assert flipped.total == made.total
        both = {oracles.ordered(pair) for pair in made.pairs.tolist()}
        assert {oracles.ordered(pair) for pair in flipped.pairs.tolist()} == both
        if len(both) == made.n_pairs:
            changed = (flipped.pairs[:, None] == made.pairs[None]).all(axis=2).any(axis=1)
            assert (~changed).sum() == round(fraction * made.n_pairs)

    @given(made=preferences().filter(lambda made: made.n_pairs >= 2), data=st.data())
    def test_split(self, made, data):
        folds = list(made.split(data.draw(st.integers(2, made.n_pairs)), random_state=0))
        for train, held_out in folds:
            assert train.merge(held_out) == made
        sizes = [held_out.n_pairs for _, held_out in folds]
        assert sum(sizes) == made.n_pairs
        assert max(sizes) - min(sizes) <= 1

    def test_split_errors(self):
        with pytest.raises(ValueError, match="n_splits=5 folds"):
            Preferences([(0, 1)]).split()

    @given(left=preferences(), right=preferences())
    def test_merge(self, left, right):
        expected = oracles.sum_of(oracles.preference_weights(left), oracles.preference_weights(right))
        assert oracles.preference_weights(left.merge(right)) == expected

    def test_weights_that_overflow(self):
        heavy = Preferences([(0, 1)], weight=1e308)
        with pytest.raises(ValueError, match=r"^weight: the weights of the pair \(0, 1\) add up"):
            heavy.merge(heavy)
        with pytest.raises(ValueError, match=r"^weight: the weights of all pairs together add up"):
            heavy.with_n_samples(2)[[0, 0, 1]]

    def test_merge_checks(self):
        with pytest.raises(ConflictError):
            Preferences([(0, 1)]).merge(Preferences([(1, 0)]), on_conflict="raise")
        with pytest.raises(ValueError, match="n_samples must agree"):
            Preferences([(0, 1)], 3).merge(Preferences([(1, 0)], 2))
        with pytest.raises(ValueError, match="from 0 to 2"):
            Preferences([(0, 1)], 3).merge(Preferences([(1, 9)]))
        with pytest.raises(TypeError, match="merge takes Preferences"):
            Preferences().merge(Constraints())


class TestFrames:
    @pytest.mark.parametrize("ids", [None, list("abcdefghi"), 10 * np.arange(9)])
    def test_round_trip(self, ids):
        made = Preferences([(3, 1), (0, 8)], 9, weight=[0.5, 1])
        frame = made.to_frame(ids)
        assert frame.columns.tolist() == ["better", "worse", "weight"]
        assert Preferences.from_frame(frame, ids=ids, n_samples=9) == made

    def test_other_names(self):
        frame = {"won": [3], "lost": [1]}
        assert Preferences.from_frame(frame, better="won", worse="lost").pairs.tolist() == [[3, 1]]

    def test_errors(self):
        with pytest.raises(ValueError, match="row 0 of the frame has 'x' as worse"):
            Preferences.from_frame({"better": ["y"], "worse": ["x"]}, ids=["y"])
        with pytest.raises(ValueError, match="no column 'worse'"):
            Preferences.from_frame({"better": ["y"]})
