"""Tables of pairs: sums of weights, draws from labels, and millions of pairs in seconds."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlens.supervision import Constraints, Preferences
from pairlens.supervision.pairs import draw_distinct, triangle
from tests.supervision import oracles

N_ROWS = 10**6


@pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
def test_weights_whose_sum_no_number_can_hold(kind):
    def made(pairs):
        return Constraints(**{kind: pairs, f"{kind}_weight": 1e308})

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (
            lambda: made([(0, 1), (3, 2), (2, 3)]),
            lambda: made([(0, 1), (2, 3)]),
            lambda: made([(2, 3)]).merge(made([(3, 2)])),
            lambda: made([(0, 1)]).with_n_samples(2)[[0, 1, 1]],
        ):
            assert oracles.refused(call) == (f"{kind}_weight", np.inf)
    assert getattr(made([(2, 3)]).merge(Constraints(**{kind: [(0, 1)]})), f"{kind}_total") == 1e308


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
def test_weights_that_overflow_where_answers_are_flipped():
    both = Constraints(
        [(0, 1)], [(0, 1)], must_link_weight=1e308, cannot_link_weight=1e308, on_conflict="warn", n_samples=2
    )
    argument, value = oracles.refused(lambda: both.flip(0.5, random_state=0))
    assert argument.endswith("_link_weight")
    assert value == np.inf


def test_weights_of_preferences_that_overflow():
    heavy = Preferences([(0, 1)], weight=1e308)
    assert oracles.refused(lambda: heavy.merge(heavy)) == ("weight", np.inf)
    assert oracles.refused(lambda: heavy.with_n_samples(2)[[0, 0, 1]]) == ("weight", np.inf)


def random_pairs(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    first = rng.integers(N_ROWS, size=count)
    return np.column_stack([first, (first + rng.integers(1, N_ROWS, size=count)) % N_ROWS])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
def test_a_million_pairs_of_each_kind():
    start = time.perf_counter()
    made = Constraints(random_pairs(10**6, 0), random_pairs(10**6, 1), N_ROWS, on_conflict="warn")
    assert made.n_pairs > 1.99 * 10**6
    cut = made[np.random.default_rng(2).permutation(N_ROWS)[: N_ROWS // 2]]
    assert 0.2 < cut.n_pairs / made.n_pairs < 0.3
    assert made.chunklets().shape == (N_ROWS,)
    settled = made.merge(on_conflict="drop")
    assert not settled.conflicts()
    assert settled.flip(0.1, random_state=0).n_pairs == settled.n_pairs
    # About 3 s on two cores; the bound only catches a loop over pairs.
    assert time.perf_counter() - start < 60


@pytest.mark.slow
def test_a_million_preferences():
    pairs = random_pairs(10**6, 0)
    made = Preferences(pairs, N_ROWS, on_conflict="drop")
    assert made.n_pairs > 0.99 * 10**6
    assert made[::2].n_pairs > 0


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
        ("arguments", "expected"),
        [
            ({"n_pairs": 3, "per_class": 2}, ("n_pairs", 3)),
            ({"n_pairs": 37}, ("n_pairs", 37)),
            ({"n_pairs": -1}, ("n_pairs", -1)),
            ({"n_pairs": 2.5}, ("n_pairs", 2.5)),
            ({"per_class": 0}, ("per_class", 0)),
            ({"fraction": 0}, ("fraction", 0)),
            ({"fraction": 1.5}, ("fraction", 1.5)),
            ({"fraction": "half"}, ("fraction", "half")),
        ],
    )
    def test_errors(self, arguments, expected):
        assert oracles.refused(lambda: Constraints.from_labels(self.y, **arguments)) == expected


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
