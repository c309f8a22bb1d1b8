"""Small problems on which the learner is compared with the oracle, and pairs and folds as the oracle wants them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from pairlens import Constraints
from pairlens.datasets import load_penguins

KINDS = ["tall", "wide", "constant columns", "repeated rows", "rare values"]


def problem(kind, n_pairs=40, seed=0):
    """Rows, labels and pairs of three groups."""
    rng = np.random.default_rng(seed)
    n, f = (40, 90) if kind == "wide" else (70, 7)
    y = rng.integers(0, 3, n)
    X = rng.standard_normal((n, f)) @ np.diag(rng.uniform(0.2, 4, f)) + 5
    X[:, :3] += 1.5 * np.eye(3)[y]
    if kind == "constant columns":
        X = np.column_stack([np.full(n, 1e4), X, np.zeros(n)])
    elif kind == "repeated rows":
        X, y = X[np.arange(n) // 3], y[np.arange(n) // 3]
    elif kind == "rare values":
        X = np.column_stack([X, rng.random(n) < 0.04])
    return X, y, Constraints.from_labels(y, n_pairs=n_pairs, random_state=seed)


def as_sparse(X):
    """The same rows with zeros in them, stored both ways."""
    zeroed = np.where(np.abs(X - X.mean(axis=0)) < X.std(axis=0), X, 0)
    return zeroed, sparse.csr_matrix(zeroed)


def weighted_pairs(pairs, seed=0):
    rng = np.random.default_rng(seed)
    return Constraints(
        pairs.must_link,
        pairs.cannot_link,
        len(pairs),
        must_link_weight=rng.uniform(0.3, 3, pairs.n_must_link),
        cannot_link_weight=rng.uniform(0.3, 3, pairs.n_cannot_link),
    )


def lists(pairs):
    return pairs.must_link.tolist(), pairs.cannot_link.tolist()


def weights(pairs):
    return pairs.must_link_weight.tolist(), pairs.cannot_link_weight.tolist()


def places(folds):
    """The held-out pairs of each fold as places in the lists of all pairs."""
    everything = lists(folds.known)
    return [
        tuple([full.index(pair) for pair in part] for full, part in zip(everything, lists(held_out)))
        for _, held_out in folds
    ]


def measured_penguins():
    """The four measurements of the 342 penguins that were measured, and their species."""
    penguins = load_penguins()
    measured = ~np.isnan(penguins.data).any(axis=1)
    return penguins.data[measured], penguins.target[measured]


def assert_same_geometry(found, expected, tolerance=1e-8):
    """Equal inner products of centred rows: equal up to a rotation, which eigenvectors are known up to."""
    assert len(found) == len(expected)
    found, expected = found - found.mean(axis=0), expected - expected.mean(axis=0)
    gram = expected @ expected.T
    np.testing.assert_allclose(found @ found.T, gram, rtol=0, atol=tolerance * np.abs(gram).max())
