"""What the tests of the two lenses share: comparison up to sign, and pairs and folds as the oracle wants them."""

from __future__ import annotations

import numpy as np

from pairlens import LinearPairLens, PairLens
from tests.methods.cases import lists

LENSES = [LinearPairLens, PairLens]


def assert_same_up_to_sign(found, expected, tolerance=1e-6):
    assert found.shape == expected.shape
    signs = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=tolerance * np.abs(expected).max())
    return signs


def oracle_folds(pairs, n_splits, random_state):
    """The folds that the estimator draws, as places in the lists."""
    everything = lists(pairs)
    return [
        tuple([full.index(pair) for pair in part] for full, part in zip(everything, lists(held_out)))
        for _, held_out in pairs.split(n_splits, random_state)
    ]


def real_part(real_data, name, n=200):
    X, y = real_data(name)
    chosen = np.random.default_rng(0).permutation(len(X))[:n]
    return X[chosen], y[chosen]
