"""Constraints from labels: kept implicit, or drawn at random."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlens.supervision import Constraints
from pairlens.supervision._sampling import draw_distinct, triangle
from tests.supervision import oracles

EXPECTED = [0, -1, 1, 0]


class TestImplicit:
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
        for attribute in ("must_link", "cannot_link", "must_link_weight", "cannot_link_weight"):
            with pytest.raises(ValueError, match=r"124,999,500,000|375,000,000,000.*n_pairs=") as caught:
                getattr(made, attribute)
            assert "from_labels(y, n_pairs=...)" in str(caught.value)

    @pytest.mark.parametrize("y", [[0.5, 1.0], np.array([1.0, np.nan, 2.5]), [None, 0.25, "a"], [np.inf, 1.0]])
    def test_a_continuous_target(self, y):
        with pytest.raises(ValueError, match="measurement"):
            Constraints.from_labels(y)

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([[0], [1, 2]], r"y must be a regular array: entry 0 is \[0\], but entry 1 is \[1, 2\]"),
            ([0, [1]], r"y must be a regular array: entry 0 is 0, but entry 1 is \[1\]"),
            (np.array([[0], [1, 2]], dtype=object), r"y must hold one plain value per row, got \[0\] among them"),
        ],
    )
    def test_ragged(self, y, message):
        with pytest.raises(ValueError, match=message):
            Constraints.from_labels(y)

    def test_wrong_shape(self):
        with pytest.raises(ValueError, match="one-dimensional"):
            Constraints.from_labels(np.zeros((3, 2), dtype=int))


class TestSampling:
    y = np.array([0, 0, 0, 1, 1, 2, -1, 2, 1, 0])

    def agrees(self, made: Constraints, labels: np.ndarray) -> None:
        must, cannot = made.must_link, made.cannot_link
        assert (labels[must] >= 0).all()
        assert (labels[cannot] >= 0).all()
        assert (labels[must[:, 0]] == labels[must[:, 1]]).all()
        assert (labels[cannot[:, 0]] != labels[cannot[:, 1]]).all()
        assert made.labels is None
        assert made.must_link_total == made.n_must_link
        assert made.cannot_link_total == made.n_cannot_link

    @given(n_pairs=st.integers(0, 36), seed=st.integers(0, 2**32 - 1))
    def test_n_pairs(self, n_pairs, seed):
        made = Constraints.from_labels(self.y, n_pairs=n_pairs, random_state=seed)
        assert made.n_pairs == n_pairs
        self.agrees(made, self.y)

    def test_n_pairs_is_uniform(self):
        counts = np.zeros((10, 10))
        for seed in range(1500):
            made = Constraints.from_labels(self.y, n_pairs=6, random_state=seed)
            for pairs in (made.must_link, made.cannot_link):
                counts[pairs[:, 0], pairs[:, 1]] += 1
        labelled = np.flatnonzero(self.y >= 0)
        drawn = counts[np.ix_(labelled, labelled)][np.triu_indices(9, 1)]
        # 36 pairs, each expected 250 times with a standard deviation of 14.4.
        assert drawn.min() > 250 - 5 * 14.4
        assert drawn.max() < 250 + 5 * 14.4

    def test_n_pairs_out_of_trillions(self):
        labels = np.arange(3_000_000, dtype=np.int32) % 7
        made = Constraints.from_labels(labels, n_pairs=1000, random_state=0)
        assert made.n_pairs == 1000
        self.agrees(made, labels)

    @pytest.mark.parametrize(("fraction", "expected"), [(0.5, 18), (0.25, 9), (1e-9, 1), (1, 36), (1.0, 36)])
    def test_fraction(self, fraction, expected):
        made = Constraints.from_labels(self.y, fraction=fraction, random_state=0)
        assert made.n_pairs == expected

    def test_fraction_of_nothing(self):
        assert Constraints.from_labels([-1, 3], fraction=0.5).n_pairs == 0

    @given(per_class=st.integers(1, 40), seed=st.integers(0, 1000))
    def test_per_class(self, per_class, seed):
        made = Constraints.from_labels(self.y, per_class=per_class, random_state=seed)
        self.agrees(made, self.y)
        for label, own in ((0, 4), (1, 3), (2, 2)):
            inside = (self.y[made.must_link[:, 0]] == label).sum()
            assert inside == min(per_class, own * (own - 1) // 2)
            ends = (self.y[made.cannot_link] == label).any(axis=1).sum()
            assert ends >= min(per_class, own * (9 - own))
        # 26 cannot-links in all: 12 between the classes 0 and 1, 8 between 0 and 2, 6 between 1 and 2.
        assert made.n_cannot_link == min(3 * per_class, 26)

    def test_per_class_with_plenty(self):
        y = np.repeat(np.arange(5), 100)
        made = Constraints.from_labels(y, per_class=50, random_state=3)
        assert (made.n_must_link, made.n_cannot_link) == (250, 250)
        self.agrees(made, y)

    @pytest.mark.parametrize("seed", range(10))
    def test_per_class_where_every_cannot_link_is_needed(self, seed):
        made = Constraints.from_labels([0, 0, 1, 1, 2, 2], per_class=4, random_state=seed)
        assert (made.n_must_link, made.n_cannot_link) == (3, 12)

    @pytest.mark.parametrize("y", [[-1, -1], [1, 1, 1]])
    def test_per_class_without_other_classes(self, y):
        made = Constraints.from_labels(y, per_class=2, random_state=0)
        assert made.n_cannot_link == 0

    @pytest.mark.parametrize(
        "state", [0, np.random.RandomState(0), np.random.default_rng(0)], ids=["int", "RandomState", "Generator"]
    )
    def test_random_state(self, state):
        def fresh():
            return state if isinstance(state, int) else type(state)(_bit_generator(state))

        def _bit_generator(generator):
            return np.random.MT19937(5) if isinstance(generator, np.random.RandomState) else np.random.PCG64(5)

        first = Constraints.from_labels(self.y, n_pairs=8, random_state=fresh())
        assert first == Constraints.from_labels(self.y, n_pairs=8, random_state=fresh())

    def test_no_random_state_is_numpys_global_one(self):
        draws = []
        for _ in range(2):
            np.random.seed(4)  # noqa: NPY002
            draws.append(Constraints.from_labels(self.y, n_pairs=8))
        assert draws[0] == draws[1]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"n_pairs": 3, "per_class": 2}, "at most one of.*per_class and n_pairs"),
            ({"n_pairs": 37}, "n_pairs=37 exceeds the 36 distinct pairs"),
            ({"n_pairs": -1}, "n_pairs must be at least 0"),
            ({"n_pairs": 2.5}, "n_pairs must be a whole number"),
            ({"per_class": 0}, "per_class must be at least 1"),
            ({"fraction": 0}, r"fraction must lie in \(0, 1\], got 0"),
            ({"fraction": 1.5}, r"fraction must lie in \(0, 1\]"),
            ({"fraction": "half"}, "fraction must be a number"),
            ({"fraction": float("nan")}, "fraction must lie in"),
        ],
    )
    def test_errors(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Constraints.from_labels(self.y, **arguments)


@given(population=st.integers(0, 300), data=st.data())
def test_draw_distinct(population, data):
    count = data.draw(st.integers(0, population))
    drawn = draw_distinct(population, count, np.random.default_rng(data.draw(st.integers(0, 99))))
    assert len(set(drawn.tolist())) == count
    assert drawn.tolist() == sorted(drawn.tolist())
    assert not count or (drawn.min() >= 0 and drawn.max() < population)


@given(j=st.integers(1, 2**31 - 1), data=st.data())
def test_triangle(j, data):
    i = data.draw(st.sampled_from([0, j - 1]) | st.integers(0, j - 1))
    found = triangle(np.array([j * (j - 1) // 2 + i]))
    assert (int(found[0][0]), int(found[1][0])) == (i, j)
