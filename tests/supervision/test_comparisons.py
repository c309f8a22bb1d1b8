"""Preferences, Triplets and Quadruplets, against sets and dictionaries."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st

from pairlens.exceptions import ConflictError, ConflictWarning
from pairlens.supervision import Constraints, Preferences, Quadruplets, Triplets
from tests.supervision import oracles

N = 6
quiet = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
KINDS = [Triplets, Quadruplets]

rows = st.integers(0, N - 1)
triplet = st.tuples(rows, rows, rows).filter(lambda t: len(set(t)) == 3)
quadruplet = st.tuples(rows, rows, rows, rows).filter(
    lambda q: q[0] != q[1] and q[2] != q[3] and set(q[:2]) != set(q[2:])
)
weights = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0])


def plain(t):
    """The one form of a tuple: a quadruplet sorts its pairs."""
    return tuple(t) if len(t) == 3 else (*sorted(t[:2]), *sorted(t[2:]))


def opposite(t):
    return (t[0], t[2], t[1]) if len(t) == 3 else (*t[2:], *t[:2])


def table(made) -> dict:
    members = made.triplets if isinstance(made, Triplets) else made.quadruplets
    return dict(zip(map(tuple, members.tolist()), made.weight.tolist()))


def total(given) -> dict:
    found: Counter = Counter()
    for t, w in given:
        found[plain(t)] += w
    return dict(found)


@st.composite
def answers(draw, **options):
    kind = draw(st.sampled_from(KINDS))
    given = draw(st.lists(st.tuples(triplet if kind is Triplets else quadruplet, weights), **options))
    return kind, given


def build(kind, given, n=N, **more):
    return kind([t for t, _ in given], n, weight=[w for _, w in given], **more)


@quiet
@given(answers())
def test_stores_each_once_and_adds_weights(case):
    kind, given_ = case
    made = build(kind, given_)
    assert table(made) == pytest.approx(total(given_))
    assert list(table(made)) == sorted(table(made))
    assert build(kind, given_[::-1]) == made
    assert len(made) == N
    assert made.shape == (N,)
    assert made.rows.tolist() == sorted({row for t in table(made) for row in t})
    for k, t in enumerate(table(made)):
        far = (t[0], t[2]) if len(t) == 3 else t[2:]
        assert made.closer[k].tolist() == sorted(t[:2])
        assert made.farther[k].tolist() == sorted(far)


@quiet
@given(answers(), st.lists(rows, max_size=8))
def test_slices_renumber_and_copies_inherit(case, chosen):
    kind, given_ = case
    found = table(build(kind, given_)[np.array(chosen, dtype=int)])
    expected: Counter = Counter()
    for t, w in total(given_).items():
        for places in itertools.product(*([k for k, row in enumerate(chosen) if row == member] for member in t)):
            expected[plain(places)] += w
    assert found == pytest.approx(dict(expected))


@quiet
@given(answers(min_size=2), st.integers(0, 99))
def test_folds_and_flips(case, seed):
    kind, given_ = case
    made = build(kind, given_)
    count = len(table(made))
    if count >= 2:
        folds = list(made.split(2, random_state=seed))
        assert sum(len(table(held_out)) for _, held_out in folds) == count
        for train, held_out in folds:
            assert table(train) | table(held_out) == table(made)
    assert table(made.flip(0)) == table(made)
    assert table(made.flip(1)) == pytest.approx(total([(opposite(t), w) for t, w in table(made).items()]))


@quiet
@given(answers(), st.data())
def test_merge(case, data):
    kind, given_ = case
    other = data.draw(st.lists(st.tuples(triplet if kind is Triplets else quadruplet, weights)))
    left, right = table(build(kind, given_)), table(build(kind, other))
    one, two = build(kind, given_), build(kind, other)
    assert table(one.merge(two)) == pytest.approx(total([*left.items(), *right.items()]))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Triplets([(0, 1)]), ("triplets", (1, 2))),
        (lambda: Triplets([(0, 1, 1)]), ("triplets[0]", (0, 1, 1))),
        (lambda: Triplets([(0, 1, 2), (1, 1, 2)]), ("triplets[1]", (1, 1, 2))),
        (lambda: Triplets([(0, 1, 5)], 5), ("triplets[0]", (0, 1, 5))),
        (lambda: Triplets([(0, 1, -1)]), ("triplets[0]", (0, 1, -1))),
        (lambda: Triplets([(0, 1, 2)], weight=[1, 2]), ("weight", (2,))),
        (lambda: Triplets([(0, 1, 2)], weight=-1), ("weight[0]", -1.0)),
        (lambda: Triplets([(0, 1, 2)] * 2, weight=1e308), ("weight", np.inf)),
        (lambda: Quadruplets([(0, 1, 1, 0)]), ("quadruplets[0]", (0, 1, 1, 0))),
        (lambda: Quadruplets([(0, 0, 1, 2)]), ("quadruplets[0]", (0, 0, 1, 2))),
        (lambda: Triplets([(0, 1, 2)], 3).merge(Triplets([(0, 1, 2)], 4)), ("n_samples", (3, 4))),
        (lambda: Triplets([(0, 1, 2)]).with_n_samples(2), ("triplets[0]", (0, 1, 2))),
        (lambda: Triplets.from_labels([0, 0, 1], n_triplets=3), ("n_triplets", 3)),
        (lambda: Quadruplets.from_labels([0, 0, 1], 3), ("n_quadruplets", 3)),
        (lambda: Quadruplets.from_labels([0, 0, 0], 1), ("y", [3])),
    ],
)
def test_errors(make, expected):
    assert oracles.refused(make) == expected


def test_other_kinds_do_not_mix():
    with pytest.raises(TypeError, match="merge takes Triplets, got Quadruplets"):
        Triplets(n_samples=3).merge(Quadruplets(n_samples=3))
    assert Triplets(n_samples=3) != Quadruplets(n_samples=3)


@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_round(kind):
    one = (0, 1, 2) if kind is Triplets else (1, 0, 3, 2)
    with pytest.warns(ConflictWarning, match="is given both ways round"):
        assert len(table(kind([one, opposite(one)]))) == 2
    with pytest.raises(ConflictError):
        kind([one, opposite(one)], on_conflict="raise")
    assert len(table(kind([one, opposite(one)], on_conflict="drop"))) == 0


@quiet
@given(answers())
def test_circles_are_circles_and_all_are_found(case):
    kind, given_ = case
    made = build(kind, given_)
    edges = set(zip(map(tuple, made.closer.tolist()), map(tuple, made.farther.tolist())))
    for cycle in made.cycles():
        for pair, following in zip(cycle, [*cycle[1:], cycle[0]]):
            assert (pair, following) in edges
    # The slow way: a relation has a circle if removing pairs that are closer than none never ends.
    left = set(edges)
    while any(far for _, far in left):
        ends = {far for _, far in left} - {near for near, _ in left}
        if not ends:
            break
        left = {edge for edge in left if edge[1] not in ends}
    assert bool(made.cycles()) == bool(left)


def test_immutable_picklable_and_routable():
    made = Triplets([(0, 1, 2)], 4, weight=2)
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) is made
    assert not pickle.loads(pickle.dumps(made)).triplets.flags.writeable
    with pytest.raises(AttributeError, match="immutable"):
        made.weight = 3
    with pytest.raises(TypeError, match="do not know how many rows"):
        len(Triplets([(0, 1, 2)]))
    from sklearn.utils import _safe_indexing

    assert _safe_indexing(made, [0, 1, 2]) == made[[0, 1, 2]]
    assert sklearn.utils.validation._num_samples(made) == 4
    assert made.to_quadruplets().weight.tolist() == [2.0]


labels = st.lists(st.sampled_from([0, 1, 2, -1]), min_size=1, max_size=8)


@given(labels)
def test_all_triplets_of_labels(y):
    expected = {
        (a, b, c)
        for a, b, c in itertools.permutations(range(len(y)), 3)
        if y[a] == y[b] != y[c] and -1 not in (y[a], y[c])
    }
    found = Triplets.from_labels(y)
    assert set(table(found)) == expected
    assert set(found.weight) <= {1.0}
    assert len(found) == len(y)
    half = Triplets.from_labels(y, n_triplets=len(expected) // 2, random_state=0)
    assert set(table(half)) <= expected
    assert len(table(half)) == len(expected) // 2


def test_triplets_of_labels_are_drawn_evenly():
    y = [0, 0, 0, 1, 1]
    count = Counter(t for seed in range(600) for t in table(Triplets.from_labels(y, n_triplets=6, random_state=seed)))
    assert len(count) == 18
    assert min(count.values()) > 150
    assert max(count.values()) < 250


def test_quadruplets_of_labels():
    y = np.array([0, 0, 0, 1, 1, 2])
    made = Quadruplets.from_labels(y, 44, random_state=0)
    assert made.n_quadruplets == 4 * 11
    assert (y[made.closer[:, 0]] == y[made.closer[:, 1]]).all()
    assert (y[made.farther[:, 0]] != y[made.farther[:, 1]]).all()


@quiet
@given(st.lists(st.tuples(triplet, weights)))
def test_triplets_as_pairs(given_):
    made = build(Triplets, given_)
    net: Counter = Counter()
    for near, far, weight in zip(made.closer.tolist(), made.farther.tolist(), made.weight):
        net[tuple(near)] += weight
        net[tuple(far)] -= weight
    found = made.to_constraints()
    pairs = dict(zip(map(tuple, found.must_link.tolist()), found.must_link_weight))
    pairs |= dict(zip(map(tuple, found.cannot_link.tolist()), -found.cannot_link_weight))
    assert pairs == pytest.approx({pair: weight for pair, weight in net.items() if weight})
    assert len(found) == N


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


@quiet
class TestPreferences:
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
        ("arguments", "expected"),
        [
            ({"pairs": [(0, 1, 2)]}, ("pairs", (1, 3))),
            ({"pairs": [(0, 1), (2,)]}, ("pairs", (2,))),
            ({"pairs": [(0, 2**70)]}, ("pairs", 2**70)),
            ({"pairs": {(0, 1)}, "weight": [1]}, ("pairs", {(0, 1)})),
            ({"pairs": [(0, 1), (0, 1)], "weight": 1e308}, ("weight", np.inf)),
            ({"pairs": [(0, 1), (0, 2)], "weight": 1e308}, ("weight", np.inf)),
            ({"pairs": [(0, 0)]}, ("pairs[0]", (0, 0))),
            ({"pairs": [(0, 3)], "n_samples": 3}, ("pairs[0]", (0, 3))),
            ({"pairs": [(0, 3)], "weight": [-1]}, ("weight[0]", -1.0)),
            ({"pairs": [(0, 3)], "weight": [1, 1]}, ("weight", (2,))),
            ({"on_conflict": "no"}, ("on_conflict", "no")),
        ],
    )
    def test_errors(self, arguments, expected):
        assert oracles.refused(lambda: Preferences(**arguments)) == expected


class TestConflicts:
    pairs = ((0, 1), (1, 0), (2, 3))

    @pytest.mark.parametrize("on_conflict", [None, "warn"])
    def test_warns_and_keeps(self, on_conflict):
        with pytest.warns(ConflictWarning, match="1 pair is given both ways round"):
            assert Preferences(self.pairs, on_conflict=on_conflict).n_pairs == 3

    def test_raise(self):
        with pytest.raises(ConflictError) as caught:
            Preferences(self.pairs, on_conflict="raise")
        assert (caught.value.argument, caught.value.value) == ("pairs", (0, 1))

    def test_drop(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert Preferences(self.pairs, on_conflict="drop").pairs.tolist() == [[2, 3]]


@quiet
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


@quiet
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
        assert oracles.refused(lambda: Preferences([(0, 1)]).with_n_samples(1)) == ("pairs[0]", (0, 1))


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
        ("arguments", "expected"),
        [
            ({"y": [1, 2], "n_pairs": 2}, ("n_pairs", 2)),
            ({"y": [1, 2], "min_difference": -1}, ("min_difference", -1)),
            ({"y": [1, 2], "groups": [1]}, ("groups", 1)),
            ({"y": ["good", "bad"]}, ("y", ["good", "bad"])),
            ({"y": [1, 10**400]}, ("y", [1, 10**400])),
            ({"y": [[1], [1, 2]]}, ("y", [1, 2])),
            ({"y": [1, 2], "groups": [1, [2]]}, ("groups", [2])),
            ({"y": np.zeros((2, 2))}, ("y", (2, 2))),
            ({"y": np.arange(20_000)}, ("y", 199_990_000)),
        ],
    )
    def test_errors(self, arguments, expected):
        assert oracles.refused(lambda: Preferences.from_scores(**arguments)) == expected


@quiet
class TestDerived:
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

    @given(left=preferences(), right=preferences())
    def test_merge(self, left, right):
        expected = oracles.sum_of(oracles.preference_weights(left), oracles.preference_weights(right))
        assert oracles.preference_weights(left.merge(right)) == expected

    def test_split_errors(self):
        assert oracles.refused(lambda: Preferences([(0, 1)]).split()) == ("n_splits", 5)

    def test_merge_checks(self):
        made = Preferences([(0, 1)], 3)
        with pytest.raises(ConflictError):
            made.merge(Preferences([(1, 0)]), on_conflict="raise")
        assert oracles.refused(lambda: made.merge(Preferences([(1, 0)], 2))) == ("n_samples", (2, 3))
        assert oracles.refused(lambda: made.merge(Preferences([(1, 9)]))) == ("pairs[1]", (1, 9))
        with pytest.raises(TypeError, match="merge takes Preferences"):
            Preferences().merge(Constraints())
