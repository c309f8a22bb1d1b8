"""Constraints: what goes in, what is stored, how it is cut along with X."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import warnings
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from pairlens.exceptions import ConflictWarning
from pairlens.methods.differences import SSDR
from pairlens.supervision import Constraints
from tests.supervision import oracles

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")


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


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"must_link": [(0, 1, 2)]}, r"must_link must have the shape \(n_pairs, 2\).*\(1, 3\)"),
            ({"cannot_link": [0, 1]}, r"cannot_link must have the shape.*\(2,\)"),
            (
                {"must_link": [(0, 1), (2,)]},
                r"must_link must be a regular array: entry 0 is \(0, 1\), but .* 1 is \(2,\)",
            ),
            ({"must_link": iter([(0, 1), 2])}, r"must_link must be a regular array: entry 0 .*, but entry 1 is 2$"),
            ({"must_link": [[(0, 1), (2,)], [(0, 1), (2,)]]}, "must_link must be a regular array: its entries differ"),
            ({"must_link": 5}, r"must_link must have the shape \(n_pairs, 2\)"),
            ({"must_link": {(0, 1): 2.0}}, r"must_link must hold whole row numbers, got \{"),
            ({"must_link": "ab"}, "must_link must hold whole row numbers"),
            ({"must_link": [(0, 2**70)]}, rf"must_link holds the row number {2**70}; .*below 2\*\*31"),
            ({"cannot_link": [(-(2**70), 0)]}, rf"cannot_link holds the row number -{2**70}; .*negative"),
            ({"must_link": np.ma.array([(0, 1)], mask=[(0, 1)])}, "must_link has masked entries"),
            ({"must_link": [(0, 1)], "must_link_weight": np.ma.array([1], mask=[1])}, "must_link_weight has masked"),
            ({"must_link": [(0, 1)], "must_link_weight": 10**400}, "must_link_weight must hold numbers"),
            ({"must_link": [(0, 1)], "must_link_weight": [[1], [1, 2]]}, "must_link_weight must be a regular array"),
            ({"must_link": {(0, 1)}, "must_link_weight": [1]}, "must_link is a set.*no order that must_link_weight"),
            ({"must_link": [(0.0, 1.0)]}, "must_link must hold whole row numbers.*float64"),
            ({"must_link": np.array([(0, None)])}, "must_link must hold whole row numbers, got None"),
            ({"must_link": [("a", "b")]}, "must_link must hold whole row numbers"),
            ({"must_link": [(True, False)]}, "must_link must hold whole row numbers"),
            ({"must_link": [(0, 1), (-1, 2)]}, r"must_link\[1\] is \(-1, 2\).*cannot be negative"),
            ({"cannot_link": [(0, 5)], "n_samples": 5}, r"cannot_link\[0\] is \(0, 5\).*from 0 to 4"),
            ({"must_link": [(0, 2**31)]}, r"must_link\[0\] is \(0, 2147483648\).*below 2\*\*31"),
            ({"must_link": np.array([(0, 2**63)], dtype=np.uint64)}, "must_link holds the row number"),
            ({"must_link": [(0, 1), (3, 3)]}, r"must_link\[1\] is the pair \(3, 3\).*itself"),
            ({"must_link": [(0, 1)], "must_link_weight": [1, 2]}, "must_link_weight.*expected 1"),
            ({"must_link": [(0, 1)], "must_link_weight": [np.nan]}, r"must_link_weight\[0\] is nan.*\(0, 1\)"),
            ({"cannot_link": [(0, 1)], "cannot_link_weight": [-2]}, r"cannot_link_weight\[0\] is -2.*at least 0"),
            ({"must_link": [(0, 1)], "must_link_weight": [np.inf]}, "finite"),
            ({"must_link": [(0, 1)], "must_link_weight": ["x"]}, "must_link_weight must hold numbers"),
            ({"n_samples": -1}, "n_samples must lie between"),
            ({"n_samples": 2.5}, "n_samples must be a whole number or None, got 2.5"),
            ({"on_conflict": "ignore"}, "on_conflict must be one of 'raise', 'warn', 'drop' or None"),
        ],
    )
    def test_names_the_argument_and_what_is_wrong(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Constraints(**arguments)

    @pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
    def test_weights_whose_sum_no_number_can_hold(self, kind):
        def made(pairs):
            return Constraints(**{kind: pairs, f"{kind}_weight": 1e308})

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match=rf"^{kind}_weight: the weights of the pair \(2, 3\) add up"):
                made([(0, 1), (3, 2), (2, 3)])
            with pytest.raises(ValueError, match=rf"^{kind}_weight: the weights of all pairs together add up"):
                made([(0, 1), (2, 3)])
            with pytest.raises(ValueError, match=rf"^{kind}_weight: the weights of the pair \(2, 3\) add up"):
                made([(2, 3)]).merge(made([(3, 2)]))
            with pytest.raises(ValueError, match=rf"^{kind}_weight: the weights of all pairs together add up"):
                made([(2, 3)]) | made([(0, 1)])
            with pytest.raises(ValueError, match=rf"^{kind}_weight: the weights of all pairs together add up"):
                made([(0, 1)]).with_n_samples(2)[[0, 1, 1]]
        assert made([(2, 3)]) | made([(3, 2)]) == made([(2, 3)])
        assert getattr(made([(2, 3)]).merge(Constraints(**{kind: [(0, 1)]})), f"{kind}_total") == 1e308

    @pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
    def test_weights_that_overflow_where_answers_are_flipped(self):
        both = Constraints(
            [(0, 1)], [(0, 1)], must_link_weight=1e308, cannot_link_weight=1e308, on_conflict="warn", n_samples=2
        )
        with pytest.raises(ValueError, match=r"_link_weight: the weights of the pair \(0, 1\) add up"):
            both.flip(0.5, random_state=0)


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

    @pytest.mark.parametrize(
        ("index", "message"),
        [
            ([0, 5], "row 5 does not exist: there are 5 rows"),
            ([-6], "row -6 does not exist"),
            ([True, False], "must have 5 entries"),
            ([0.5], "whole row numbers or a boolean mask"),
            ([[0, 1]], "one-dimensional"),
            ([[0, 1], [2]], "rows must be a regular array"),
            (([0, 1], slice(None)), r"only \(rows, \.\.\.\) means something"),
            (([0, 1], 0), r"only \(rows, \.\.\.\) means something"),
            ((..., [0, 1]), r"only \(rows, \.\.\.\) means something"),
            ((0, 1), r"only \(rows, \.\.\.\) means something; got a tuple of 2: give row numbers as a list"),
            ((), r"only \(rows, \.\.\.\) means something"),
            (np.ma.array([0, 1], mask=[0, 1]), "rows has masked entries"),
            ([2**70], "whole row numbers"),
        ],
    )
    def test_wrong_index(self, index, message):
        with pytest.raises(IndexError, match=message):
            Constraints([(0, 1)], n_samples=5)[index]

    @pytest.mark.parametrize("index", [0, np.int64(1), True, None])
    def test_one_row_alone(self, index):
        with pytest.raises(TypeError, match="one row alone has no pairs"):
            Constraints([(0, 1)], n_samples=5)[index]

    def test_no_iteration(self):
        with pytest.raises(TypeError):
            iter(Constraints([(0, 1)], n_samples=5))

    @pytest.mark.parametrize("use", [len, lambda c: c.shape, lambda c: c[[0, 1]], lambda c: hasattr(c, "shape")])
    def test_unknown_number_of_rows(self, use):
        with pytest.raises(TypeError, match=r"give n_samples=len\(X\)"):
            use(Constraints([(0, 1)]))

    def test_with_n_samples(self):
        made = Constraints([(0, 1)], [(1, 4)]).with_n_samples(6)
        assert len(made) == 6
        assert made.with_n_samples(None).n_samples is None
        with pytest.raises(ValueError, match=r"cannot_link\[0\] is \(1, 4\).*from 0 to 3"):
            made.with_n_samples(4)

    def test_with_n_samples_of_labels(self):
        made = Constraints.from_labels([0, 0, 1, -1])
        assert made.with_n_samples(6).labels.tolist() == [0, 0, 1, -1, -1, -1]
        assert made.with_n_samples(3).labels.tolist() == [0, 0, 1]
        with pytest.raises(ValueError, match="row 2 has a label, so n_samples=2 is too few"):
            made.with_n_samples(2)


def test_import_brings_nothing_optional():
    code = (
        "import sys, sklearn.decomposition; before = set(sys.modules)\n"
        "import pairlens.supervision; assert not {'pandas', 'polars'} & (set(sys.modules) - before)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_conflict_warning_points_at_the_caller():
    with pytest.warns(ConflictWarning) as caught:
        Constraints.from_pairs([(0, 1), (1, 2), (0, 2)], [1, 1, -1])
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
