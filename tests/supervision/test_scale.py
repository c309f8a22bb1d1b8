"""Millions of pairs in seconds."""

from __future__ import annotations

import time

import numpy as np
import pytest

from pairlens.supervision import Constraints, Preferences

N_ROWS = 10**6


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
    assert made.must_link_graph().nnz == 2 * made.n_must_link
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
