"""Constraints: what is stored, drawn, merged and converted."""

from __future__ import annotations

import subprocess
import sys
from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.pipeline import make_pipeline

from pairlens.exceptions import ConflictError, ConflictWarning
from pairlens.methods.discriminants import SSDR
from pairlens.supervision import Constraints, Preferences
from tests.supervision import oracles

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")

seeds = st.integers(0, 1000)
some = Constraints([(0, 1), (2, 3)], [(1, 2), (0, 8)], 9, must_link_weight=[0.1, 2], cannot_link_weight=[1e-9, 1])


class TestStored:
    @given(must=oracles.pairs, data=st.data())
    def test_duplicates_merge_and_order_does_not_matter(self, must, data):
        weights = data.draw(st.lists(oracles.weights, min_size=len(must), max_size=len(must)))
        made = Constraints(must, n_samples=oracles.N_ROWS, must_link_weight=weights)
        assert oracles.weights_of(made)[0] == oracles.added_up(must, weights)
        order = data.draw(st.permutations(range(len(must))))
        shuffled = Constraints(
            [must[k][::-1] for k in order],
            n_samples=oracles.N_ROWS,
            must_link_weight=[weights[k] for k in order],
        )
        assert shuffled == made
        assert hash(shuffled) == hash(made)

    def test_merged_weights_do_not_depend_on_the_order_even_in_the_last_bit(self):
        weights = np.array([0.1, 0.2, 0.3, 1e16, -0.0, 7.7])
        pairs = [(0, 1)] * len(weights)
        forwards = Constraints(pairs, must_link_weight=weights)
        assert forwards == Constraints(pairs, must_link_weight=weights[::-1])

    @given(made=oracles.constraints())
    def test_form_of_the_arrays(self, made):
        for pairs, weight in (
            (made.must_link, made.must_link_weight),
            (made.cannot_link, made.cannot_link_weight),
        ):
            assert pairs.dtype == np.int64
            assert weight.dtype == np.float64
            assert pairs.shape == (len(weight), 2)
            assert (pairs[:, 0] < pairs[:, 1]).all()
            assert pairs.tolist() == sorted(pairs.tolist())
            assert len(set(map(tuple, pairs.tolist()))) == len(pairs)
            assert not pairs.flags.writeable
            assert not weight.flags.writeable

    @given(made=oracles.constraints())
    def test_counts_totals_and_rows(self, made):
        must, cannot = oracles.weights_of(made)
        assert (made.n_must_link, made.n_cannot_link) == (len(must), len(cannot))
        assert made.n_pairs == len(must) + len(cannot)
        assert made.must_link_total == sum(must.values())
        assert made.cannot_link_total == sum(cannot.values())
        assert made.rows.tolist() == sorted({row for pair in must.keys() | cannot.keys() for row in pair})

    def test_unit_weights_take_no_memory(self):
        made = Constraints([(0, 1), (1, 2)], must_link_weight=[1, 1.0])
        assert made.must_link_weight.strides == (0,)

    def test_pairs_of_weight_zero_are_left_out(self):
        assert Constraints([(0, 1), (1, 2)], must_link_weight=[0, 2]).to_lists()[0] == [(1, 2)]

    def test_one_weight_for_all(self):
        assert Constraints([(0, 1), (1, 2)], must_link_weight=0.5).must_link_total == 1.0

    @pytest.mark.parametrize("nothing", [None, (), [], set(), iter(()), np.empty((0, 2)), np.empty(0, dtype=int)])
    def test_nothing(self, nothing):
        made = Constraints(nothing, nothing, n_samples=3)
        assert made.must_link.shape == (0, 2)
        assert made.n_pairs == 0
        assert made.rows.tolist() == []
        assert made.chunklets().tolist() == [-1, -1, -1]

    @pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.uint64, object])
    def test_any_integer_type(self, dtype):
        assert Constraints(np.array([(4, 0)], dtype=dtype)).to_lists()[0] == [(0, 4)]

    @pytest.mark.parametrize(
        "form",
        [
            list,
            set,
            frozenset,
            iter,
            deque,
            lambda pairs: zip(*zip(*pairs)),
            lambda pairs: dict.fromkeys(pairs).keys(),
            lambda pairs: (np.array(pair) for pair in pairs),
            lambda pairs: map(list, pairs),
        ],
        ids=["list", "set", "frozenset", "iter", "deque", "zip", "keys", "generator", "map"],
    )
    def test_any_iterable_of_pairs(self, form):
        together, apart = [(3, 0), (1, 2)], [(0, 1), (4, 2)]
        assert Constraints(form(together), form(apart), 5) == Constraints(together, apart, 5)

    def test_weights_follow_the_order_of_a_generator(self):
        made = Constraints(zip([4, 0], [3, 1]), must_link_weight=(weight for weight in (2, 5)))
        assert oracles.weights_of(made)[0] == {(0, 1): 5, (3, 4): 2}
        weights = {(1, 0): 5, (4, 3): 2}
        assert Constraints(weights.keys(), must_link_weight=weights.values()) == made
        assert Constraints({(0, 1), (1, 2)}, must_link_weight=2).must_link_total == 4

    def test_repr(self):
        assert repr(Constraints([(0, 1)], n_samples=178)) == "Constraints(1 must-link, 0 cannot-links over 178 rows)"
        assert "an unknown number of rows" in repr(Constraints([(0, 1)]))


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
        assert oracles.refused(lambda: Constraints([(0, 1)]).sample(3)) == ("n_pairs", 3)


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
        made = Constraints(n_samples=3)
        assert oracles.refused(lambda: made.merge(Constraints(n_samples=4))) == ("n_samples", (3, 4))
        assert oracles.refused(lambda: made.merge(Constraints([(0, 5)]))) == ("must_link[0]", (0, 5))
        with pytest.raises(TypeError, match="merge takes Constraints, got Preferences"):
            Constraints().merge(Preferences())


class TestFromChunklets:
    @given(groups=st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=5), max_size=4))
    def test_groups(self, groups):
        made = Constraints.from_chunklets(groups, n_samples=9)
        expected = oracles.added_up((i, j) for group in groups for i in set(group) for j in set(group) if i < j)
        assert oracles.weights_of(made) == (expected, {})

    @given(codes=st.lists(st.integers(-1, 3), min_size=1, max_size=9))
    def test_a_number_per_row(self, codes):
        must, _ = oracles.implied(codes)
        for form in (codes, np.array(codes)):
            made = Constraints.from_chunklets(form)
            assert oracles.weights_of(made) == (must, {})
            assert len(made) == len(codes)
            assert made.labels is None

    def test_round_trip(self):
        made = Constraints([(0, 4), (4, 2), (1, 5)], n_samples=7)
        assert Constraints.from_chunklets(made.chunklets()) == made.closure()

    def test_forms(self):
        assert Constraints.from_chunklets([]).n_pairs == 0
        assert Constraints.from_chunklets(np.array([[0, 1], [2, 3]])).to_lists()[0] == [(0, 1), (2, 3)]
        assert Constraints.from_chunklets(iter([(0, 1), [2, 3]])).n_samples is None
        assert Constraints.from_chunklets([{0, 1}, range(2, 4)]).to_lists()[0] == [(0, 1), (2, 3)]
        assert Constraints.from_chunklets([2**30, -1, 2**30]).to_lists()[0] == [(0, 2)]

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (([[0, 2**40]],), ("chunklets", 2**40)),
            (([[0, 2**70]],), ("chunklets[0]", 2**70)),
            (([[0, [1, 2]]],), ("chunklets[0]", [1, 2])),
            (([[0, 9]], 9), ("chunklets", 9)),
            (([[0, -2]],), ("chunklets", -2)),
            (([[0, 0.5]],), ("chunklets[0]", 0.0)),
            (([0, 1, 1], 5), ("chunklets", 3)),
            (([0, -2],), ("chunklets", -2)),
            (([0.5, 1.0],), ("chunklets", 0.5)),
            (([np.arange(20_000)],), ("chunklets", 199_990_000)),
        ],
    )
    def test_errors(self, arguments, expected):
        assert oracles.refused(lambda: Constraints.from_chunklets(*arguments)) == expected


class TestLists:
    @given(made=oracles.constraints(labelled=False))
    def test_round_trips(self, made):
        assert Constraints(*made.to_lists()).to_lists() == made.to_lists()

    def test_they_hold_python_numbers(self):
        assert type(some.to_lists()[0][0][0]) is int
        assert Constraints().to_lists() == ([], [])


class TestSparse:
    @given(made=oracles.constraints())
    def test_holds_the_weights_with_their_signs(self, made):
        dense = np.zeros((oracles.N_ROWS, oracles.N_ROWS))
        for sign, weights in zip((1, -1), oracles.weights_of(made)):
            for (i, j), weight in weights.items():
                dense[i, j] += sign * weight
                dense[j, i] += sign * weight
        assert np.array_equal(made.to_sparse().toarray(), dense)
        assert isinstance(made.to_sparse(), sparse.csr_array)
        assert made.to_sparse().nnz == np.count_nonzero(dense)


def test_import_brings_nothing_optional():
    code = (
        "import sys, sklearn.decomposition; before = set(sys.modules)\n"
        "import pairlens.supervision; assert not {'pandas', 'polars'} & (set(sys.modules) - before)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_conflict_warning_points_at_the_caller():
    with pytest.warns(ConflictWarning) as caught:
        Constraints([(0, 1), (1, 2)], [(0, 2)])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y, pairs: SSDR().fit(X, y, constraints=pairs),
        lambda X, y, pairs: SSDR().fit_transform(X, y, constraints=pairs),
        lambda X, y, pairs: make_pipeline(SSDR()).fit_transform(X, y, ssdr__constraints=pairs),
    ],
    ids=["fit", "fit_transform", "Pipeline"],
)
def test_conflict_warning_points_past_scikit_learn(fit):
    X = np.random.default_rng(0).normal(size=(6, 3))
    with pytest.warns(ConflictWarning, match="0 - 2 - 1") as caught:
        fit(X, [0, 1, -1, -1, 1, 0], Constraints([(0, 2), (2, 1)], n_samples=6))
    assert {warning.filename for warning in caught} == {__file__}
