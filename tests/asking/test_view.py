"""The view that rows are placed in is that of LinearPairLens, and a second fit is cheap."""

from __future__ import annotations

import pickle
import time

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_wine

from pairlens import Constraints, LinearPairLens
from pairlens.asking import FitJob, Lens, fingerprint


def test_the_view_is_that_of_linear_pairlens():
    X, y = load_wine(return_X_y=True)
    pairs = Constraints.from_labels(y, n_pairs=120, random_state=0)
    view = Lens(X).fit(FitJob("key", pairs, 0, 5))
    Z = Lens(X).look(pickle.loads(pickle.dumps(view)))
    expected = LinearPairLens(10, random_state=5).fit_transform(X, constraints=pairs)
    assert Z.shape == expected.shape == (178, 10)
    for ours, theirs in zip(Z.T, expected.T):
        assert abs(np.corrcoef(ours, theirs)[0, 1]) > 1 - 1e-9
    # The same scale for all columns, too.
    ratio = Z.std(axis=0) / expected.std(axis=0)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)


def test_a_kept_scale_is_that_of_linear_pairlens():
    X, y = load_wine(return_X_y=True)
    X = X / X.std(axis=0) * np.linspace(3, 0.2, X.shape[1])
    pairs = Constraints.from_labels(y, n_pairs=120, random_state=0)
    lens = Lens(X, standardize=False)
    Z = lens.look(lens.fit(FitJob("key", pairs, 0, 5)))
    expected = LinearPairLens(10, standardize=False, random_state=5).fit_transform(X, constraints=pairs)
    for ours, theirs in zip(Z.T, expected.T):
        assert abs(np.corrcoef(ours, theirs)[0, 1]) > 1 - 1e-9
    # Without answers, distances are those of the rows up to one factor.
    full = Lens(X[:, :8], standardize=False)
    assert np.ptp(pdist(full.principal) / pdist(X[:, :8])) < 1e-9
    assert np.ptp(pdist(Lens(X[:, :8]).principal) / pdist(X[:, :8])) > 1e-2


def test_a_refit_costs_a_fraction_of_the_first():
    """What depends on the rows alone is not done again: processor time, the best of several."""
    rng = np.random.default_rng(0)
    y = rng.integers(8, size=4000)
    X = rng.standard_normal((8, 30))[y] + rng.standard_normal((4000, 30))
    pairs = Constraints.from_labels(y, n_pairs=500, random_state=0)
    first, later = [], []
    for seed in range(3):
        start = time.process_time()
        lens = Lens(X)
        first.append(time.process_time() - start)
        start = time.process_time()
        lens.fit(FitJob("key", pairs, 0, seed))
        later.append(time.process_time() - start)
    assert min(later) < min(first)


def test_density_and_neighbours():
    X = np.vstack([np.random.default_rng(0).standard_normal((60, 3)) / 10, [[9.0, 9.0, 9.0]]])
    lens = Lens(X)
    assert lens.neighbors.shape == (61, 10)
    brute = np.array([((X[lens.neighbors[i]] - X[i]) ** 2).sum(axis=1).mean() for i in range(61)])
    np.testing.assert_allclose(lens.sparseness(X), brute)
    assert np.argmax(lens.sparseness(lens.principal)) == 60
    view = lens.fit(FitJob("key", Constraints([(0, 1)], n_samples=61), 1, 0))
    far = lens.sparseness(lens.look(view))
    assert sorted(view.crowding.tolist()) == list(range(1, 62))
    assert (np.diff(far[np.argsort(view.crowding)]) <= 1e-8 * far.max()).all()


def test_fingerprints_differ_by_content_shape_and_kind():
    a = np.arange(6)
    assert fingerprint(a) == fingerprint(a.copy())
    assert len({fingerprint(a), fingerprint(a + 1), fingerprint(a.reshape(2, 3)), fingerprint(a.astype(float))}) == 4
