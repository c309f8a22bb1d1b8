"""Tables of pairs: sums of weights, and millions of pairs in seconds."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

from pairlens.supervision import Constraints, Preferences
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
