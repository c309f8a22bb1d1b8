"""What users pass: labels of any kind, and errors that name the argument and the value."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from pairlens.exceptions import ArgumentError
from pairlens.supervision import Constraints
from tests.supervision import oracles

EXPECTED = [0, -1, 1, 0]


class TestLabels:
    @pytest.mark.parametrize(
        "y",
        [
            [5, -1, 3, 5],
            np.array([5, -1, 3, 5], dtype=np.int8),
            np.array([5.0, np.nan, 3.0, 5.0]),
            np.array([5.0, -1, 3.0, 5.0], dtype=np.float32),
            [5, None, 3, 5],
            [5, float("nan"), 3, 5],
            [5.0, None, 3.0, 5.0],
            ["cat", None, "dog", "cat"],
            ["cat", -1, "dog", "cat"],
            ["cat", np.nan, 3, "cat"],
            [True, None, False, True],
            np.array([[5], [-1], [3], [5]]),
            np.ma.array([5, 3, 3, 5], mask=[0, 1, 0, 0]),
            np.ma.array([[5], [3], [3], [5]], mask=[[0], [1], [0], [0]]),
            np.ma.array([5.0, 0.5, 3.0, 5.0], mask=[0, 1, 0, 0]),
            np.ma.array([5, -1, 3, 5]),
            np.ma.array(["cat", "dog", "dog", "cat"], mask=[0, 1, 0, 0]),
            np.ma.array([5, 3, None, 5], mask=[0, 0, 0, 1], dtype=object)[[0, 2, 1, 0]],
            np.array(["cat", np.nan, "dog", "cat"]),
            np.array([b"cat", b"nan", b"dog", b"cat"]),
            np.array(["2001-01-01", "NaT", "2001-01-02", "2001-01-01"], dtype="datetime64[D]"),
            pd.Series([5, None, 3, 5]),
            pd.Series([5, None, 3, 5], dtype="Int64"),
            pd.Series(["cat", None, "dog", "cat"]),
            pd.Series(["cat", pd.NA, "dog", "cat"], dtype="string"),
            pd.Categorical(["cat", None, "dog", "cat"]),
            pd.Series(pd.Categorical([5, None, 3, 5])),
            pd.Series(pd.to_datetime(["2001-01-01", None, "2001-01-02", "2001-01-01"])),
        ],
        ids=lambda y: f"{type(y).__name__}-{getattr(y, 'dtype', '')}",
    )
    def test_kinds_of_labels_and_of_missing_ones(self, y):
        made = Constraints.from_labels(y)
        assert made.labels.tolist() == EXPECTED
        assert made.labels.dtype == np.int64
        assert made.n_samples == 4
        assert made.to_lists() == ([(0, 3)], [(0, 2), (2, 3)])

    @pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy has StringDType from 2.0 on")
    def test_text_of_any_length(self):
        for missing, options in ((np.nan, {}), (np.nan, {"na_object": np.nan}), (None, {"na_object": None})):
            y = np.array(["cat", missing, "dog", "cat"], dtype=np.dtypes.StringDType(**options))
            assert Constraints.from_labels(y).labels.tolist() == EXPECTED

    @pytest.mark.parametrize("y", [["cat", None, "dog", "cat"], [5, None, 3, 5], [5, -1, 3, 5]])
    def test_polars_series(self, y):
        polars = pytest.importorskip("polars")
        assert Constraints.from_labels(polars.Series(y)).labels.tolist() == EXPECTED

    @pytest.mark.parametrize("y", [np.array(["a", "-1", "b"]), np.array([True, False, True]), np.arange(3, dtype="u1")])
    def test_no_label_missing(self, y):
        assert (Constraints.from_labels(y).labels >= 0).all()

    def test_masked_rows_are_unlabelled(self):
        assert Constraints.from_labels(np.ma.array([0, 1, 0, 1], mask=[0, 0, 1, 1])).to_lists() == ([], [(0, 1)])
        assert Constraints.from_labels(np.ma.array([0, 1], mask=True)).n_pairs == 0

    @pytest.mark.parametrize("y", [["a", "nan", "b"], np.array(["a", "nan", "b"], dtype=object)])
    def test_nan_is_a_label_where_somebody_wrote_it(self, y):
        assert Constraints.from_labels(y).labels.tolist() == [0, 1, 2]

    @given(labels=oracles.labels)
    def test_pairs(self, labels):
        made = Constraints.from_labels(labels)
        assert oracles.weights_of(made) == oracles.implied(labels)
        assert made == Constraints(*made.to_lists(), n_samples=len(labels))
        assert Constraints(*made.to_lists(), n_samples=len(labels)) == made

    def test_labels_do_not_depend_on_names(self):
        assert Constraints.from_labels([2, 2, 0, 1]) == Constraints.from_labels(["x", "x", "z", "a"])

    def test_explicit_part(self):
        made = Constraints.from_labels([0, 0, -1]).merge(Constraints([(0, 1), (1, 2)], n_samples=3))
        assert made.explicit == Constraints([(0, 1), (1, 2)], n_samples=3)
        assert made.explicit.labels is None
        assert made.must_link_weight.tolist() == [2, 1]
        assert made.n_must_link == 2
        assert made.must_link_total == 3
        assert Constraints([(0, 1)]).labels is None

    def test_nobody_labelled(self):
        made = Constraints.from_labels([-1, -1, -1])
        assert made.n_pairs == 0
        assert made == Constraints(n_samples=3)
        assert made.labels is None
        assert made.chunklets().tolist() == [-1] * 3

    def test_rows_without_a_label_taken_from_labelled_ones(self):
        made = Constraints.from_labels([0, 1, -1, -1])
        assert made[[2, 3, 0]].labels.tolist() == [-1, -1, 0]
        assert made[[2, 3]].labels is None
        assert made[[2, 3]].n_samples == 2

    def test_one_labelled_row_occurs_in_no_pair(self):
        assert Constraints.from_labels([-1, 4, -1]).rows.tolist() == []

    def test_a_million_rows_stay_implicit(self):
        made = Constraints.from_labels(np.arange(10**6) % 4)
        assert made.n_must_link == 4 * (250_000 * 249_999 // 2)
        assert made.n_pairs == 10**6 * (10**6 - 1) // 2
        assert made.must_link_total == made.n_must_link
        assert made[np.arange(8)].n_must_link == 4
        assert made != Constraints.from_labels(np.arange(10**6) // 250_000)
        for kind, count in (("must_link", made.n_must_link), ("cannot_link", made.n_cannot_link)):
            assert oracles.refused(lambda name=kind: getattr(made, name)) == ("y", count)
            assert oracles.refused(lambda name=kind: getattr(made, f"{name}_weight")) == ("y", count)

    @pytest.mark.parametrize(
        ("y", "value"),
        [([0.5, 1.0], 0.5), (np.array([1.0, np.nan, 2.5]), 2.5), ([None, 0.25, "a"], 0.25), ([np.inf, 1.0], np.inf)],
    )
    def test_a_continuous_target(self, y, value):
        assert oracles.refused(lambda: Constraints.from_labels(y)) == ("y", value)

    @pytest.mark.parametrize(
        ("y", "expected"),
        [
            ([[0], [1, 2]], ("y", [1, 2])),
            ([0, [1]], ("y", [1])),
            (np.array([[0], [1, 2]], dtype=object), ("y[0]", [0])),
            (np.zeros((3, 2), dtype=int), ("y", (3, 2))),
        ],
    )
    def test_wrong_shape(self, y, expected):
        assert oracles.refused(lambda: Constraints.from_labels(y)) == expected


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "argument", "value"),
        [
            ({"must_link": [(0, 1, 2)]}, "must_link", (1, 3)),
            ({"cannot_link": [0, 1]}, "cannot_link", (2,)),
            ({"must_link": [(0, 1), (2,)]}, "must_link", (2,)),
            ({"must_link": iter([(0, 1), 2])}, "must_link", 2),
            ({"must_link": [[(0, 1), (2,)], [(0, 1), (2,)]]}, "must_link", [[(0, 1), (2,)], [(0, 1), (2,)]]),
            ({"must_link": 5}, "must_link", ()),
            ({"must_link": {(0, 1): 2.0}}, "must_link", {(0, 1): 2.0}),
            ({"must_link": "ab"}, "must_link", "ab"),
            ({"must_link": [(0, 2**70)]}, "must_link", 2**70),
            ({"cannot_link": [(-(2**70), 0)]}, "cannot_link", -(2**70)),
            ({"must_link": [(0, 1)], "must_link_weight": 10**400}, "must_link_weight", 10**400),
            ({"must_link": [(0, 1)], "must_link_weight": [[1], [1, 2]]}, "must_link_weight", [1, 2]),
            ({"must_link": {(0, 1)}, "must_link_weight": [1]}, "must_link", {(0, 1)}),
            ({"must_link": [(0.0, 1.0)]}, "must_link", 0.0),
            ({"must_link": np.array([(0, None)])}, "must_link", None),
            ({"must_link": [("a", "b")]}, "must_link", "a"),
            ({"must_link": [(True, False)]}, "must_link", True),
            ({"must_link": [(0, 1), (-1, 2)]}, "must_link[1]", (-1, 2)),
            ({"cannot_link": [(0, 5)], "n_samples": 5}, "cannot_link[0]", (0, 5)),
            ({"must_link": [(0, 2**31)]}, "must_link[0]", (0, 2**31)),
            ({"must_link": np.array([(0, 2**63)], dtype=np.uint64)}, "must_link", 2**63),
            ({"must_link": [(0, 1), (3, 3)]}, "must_link[1]", (3, 3)),
            ({"must_link": [(0, 1)], "must_link_weight": [1, 2]}, "must_link_weight", (2,)),
            ({"cannot_link": [(0, 1)], "cannot_link_weight": [-2]}, "cannot_link_weight[0]", -2.0),
            ({"must_link": [(0, 1)], "must_link_weight": [np.inf]}, "must_link_weight[0]", np.inf),
            ({"must_link": [(0, 1)], "must_link_weight": ["x"]}, "must_link_weight", ["x"]),
            ({"n_samples": -1}, "n_samples", -1),
            ({"n_samples": 2**32}, "n_samples", 2**32),
            ({"n_samples": 2.5}, "n_samples", 2.5),
            ({"on_conflict": "ignore"}, "on_conflict", "ignore"),
        ],
    )
    def test_names_the_argument_and_the_value(self, arguments, argument, value):
        assert oracles.refused(lambda: Constraints(**arguments)) == (argument, value)

    def test_masked_entries_and_nan(self):
        pairs = np.ma.array([(0, 1)], mask=[(0, 1)])
        assert oracles.refused(lambda: Constraints(pairs))[0] == "must_link"
        weight = np.ma.array([1], mask=[1])
        assert oracles.refused(lambda: Constraints([(0, 1)], must_link_weight=weight))[0] == "must_link_weight"
        assert oracles.refused(lambda: Constraints([(0, 1)], must_link_weight=np.nan))[0] == "must_link_weight[0]"

    def test_the_text_names_everything(self):
        with pytest.raises(ArgumentError) as caught:
            Constraints(must_link=[(0, 1), (3, 3)])
        assert str(caught.value) == "must_link[1] must name two different rows; got (3, 3). Leave it out."
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.argument, again.remedy) == (str(caught.value), "must_link[1]", "Leave it out")
        assert str(ArgumentError("n", 2, "must be odd")) == "n must be odd; got 2"
        assert ArgumentError("n", 2, "must be odd").phrased(argument="--n") == "--n must be odd; got 2"
