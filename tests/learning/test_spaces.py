"""The spaces against the oracle: rows as they are, linear, kernel and diffusion; training rows and new ones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from pairlens import Constraints
from pairlens.learning import spaces as module
from pairlens.learning.spaces import PreparedRows, RawSpace, Unit, chosen_landmarks
from pairlens.spectral.rowspace import Standardiser
from tests.learning.cases import KINDS, as_sparse, assert_same_geometry, lists, problem
from tests.oracles import learning as oracle


def prepared(X, *, standardize=True, **more):
    return PreparedRows.of(X, Standardiser.of(X, standardize=standardize), anchors=np.arange(5), **more)


def taught(X, pairs, *, seed=0, **more):
    return prepared(X).teach(pairs, seed, **more)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel_columns", [2, 4])
def test_training_rows_are_where_the_oracle_puts_them(kind, kernel_columns):
    X, _, pairs = problem(kind, seed=1)
    spaces, seen = taught(X, pairs, kernel_columns=kernel_columns)
    priors = [(prior.shape, prior.spread, prior.strength) for prior in spaces.priors]
    expected = oracle.taught_spaces(oracle.scaled(X), *lists(pairs), priors, kernel_columns)
    for number, (found, reference) in enumerate(zip(seen.spaces, expected)):
        assert found.shape[1] == reference.shape[1]
        assert (found**2).sum() / len(X) == pytest.approx(1)
        np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
        # Kernel components and diffusion coordinates are eigenvectors with eigenvalues down to 1e-7 of the first.
        assert_same_geometry(found, reference, 1e-8 if number == 0 else 1e-5)


def test_each_space_is_what_its_map_makes_of_the_training_rows():
    X, _, pairs = problem("tall")
    spaces, seen = taught(X, pairs)
    for placed, there in zip(spaces(X), seen.spaces):
        np.testing.assert_allclose(placed, there, atol=1e-8)
    for placed, there in zip(spaces(X, as_new=True), spaces.seen_as_new(seen)):
        np.testing.assert_allclose(placed, there, atol=1e-8)
    assert np.abs(spaces.seen_as_new(seen)[2] - seen.spaces[2]).max() > 1e-3
    new = X[:6] + 0.2
    together = spaces(new)
    for number, row in enumerate(new):
        for one, all_of_them in zip(spaces(row[None]), together):
            np.testing.assert_allclose(one[0], all_of_them[number], atol=1e-9)


def test_new_rows_follow_the_definition():
    X, _, pairs = problem("tall")
    spaces, seen = taught(X, pairs)
    new = X[:7] + 0.3
    linear, kernel, diffused = spaces(new)
    Z, mean, scale = oracle.scaled(X), X.mean(axis=0), X.std(axis=0)
    fit = np.linalg.lstsq(Z, seen.spaces[0], rcond=None)[0]
    np.testing.assert_allclose(linear, (new - mean) / scale @ fit, atol=1e-8)
    # The kernel space is a linear function of the kernel: with the training rows or with new ones.
    _, gamma = oracle.kernel_components(Z)
    scored = (new - mean) / scale

    def kernel_of(rows):
        K = np.exp(-gamma * ((rows[:, None] - Z[None]) ** 2).sum(axis=2))
        return np.column_stack([K, np.ones(len(K))])

    assert spaces.kernel.gamma == pytest.approx(gamma)
    # Components of the centred kernel are combinations of training rows whose coefficients add up to 0.
    equations = np.vstack([kernel_of(Z), [*np.ones(len(Z)), 0]])
    weights = np.linalg.solve(equations, np.vstack([seen.spaces[1], np.zeros(2)]))
    np.testing.assert_allclose(kernel, kernel_of(scored) @ weights, atol=1e-5)
    expected = [oracle.mean_of_nearest(seen.spaces[0], seen.spaces[2], row) for row in linear]
    np.testing.assert_allclose(diffused, expected, atol=1e-8)


def test_sparse_rows_give_the_spaces_of_dense_ones():
    dense, stored = as_sparse(problem("tall")[0])
    pairs = problem("tall")[2]
    one, two = taught(dense, pairs), taught(stored, pairs)
    for ours, theirs in zip(one[1].spaces, two[1].spaces):
        assert_same_geometry(theirs, ours, 1e-6)
    for ours, theirs in zip(one[0](dense + 0.1), two[0](sparse.csr_matrix(dense + 0.1))):
        assert_same_geometry(theirs, ours, 1e-6)


def test_spaces_survive_a_pickle():
    X, _, pairs = problem("tall")
    spaces, _ = taught(X, pairs)
    for ours, theirs in zip(spaces(X + 0.1), pickle.loads(pickle.dumps(spaces))(X + 0.1)):
        np.testing.assert_array_equal(theirs, ours)


def test_known_kernel_features_are_not_computed_again(monkeypatch):
    X, _, pairs = problem("tall")
    first = prepared(X)

    def refuse(*_, **__):
        raise AssertionError("they are known")

    monkeypatch.setattr(module, "kernel_features", refuse)
    again = prepared(X, features=first.features)
    np.testing.assert_array_equal(again.teach(pairs, 0)[1].spaces[1], first.teach(pairs, 0)[1].spaces[1])


@pytest.mark.parametrize("known", [Constraints([(0, 1)], n_samples=70), Constraints(n_samples=70)], ids=["one", "none"])
def test_few_or_no_pairs_teach_spaces_too(known):
    X = problem("tall")[0]
    spaces, seen = taught(X, known)
    assert spaces.priors[0] == module.choose_prior(prepared(X).linear, known, 0).prior
    for space in seen.spaces:
        assert np.isfinite(space).all()
        assert (space**2).sum() / len(X) == pytest.approx(1)


def test_rows_that_are_all_equal_are_not_prepared():
    assert prepared(np.full((9, 3), 7.0)) is None


# ------------------------------------------------------------------------------------------------ rows as they are


def test_columns_are_scaled_as_by_the_oracle():
    """Also sparse ones, in any unit; a constant column stays away, and rare values are no further than others."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 3, 200), rng.random(200) < 0.02, rng.random(200) < 0.5, np.full(200, 7.0)])
    X[::3, 0] = 0
    expected = oracle.scaled(X)
    unit = np.array([1e6, 1e-6, 1.0, 1.0])

    def raw(rows):
        return RawSpace.of(rows, Standardiser.of(rows))

    for rows in (X, sparse.csr_matrix(X)):
        seen = raw(rows)(rows) * raw(rows).unit.size
        np.testing.assert_allclose(seen - seen.mean(axis=0), expected, atol=1e-12)
        other = rows @ sparse.diags(unit).tocsr() if sparse.issparse(rows) else rows * unit
        np.testing.assert_allclose(raw(other)(other), raw(rows)(rows), atol=1e-12)
    assert np.ptp(expected[:, 1]) == pytest.approx(4)
    assert expected[:, 2].std() == pytest.approx(1)


def test_a_kept_scale_is_kept_up_to_one_factor():
    X = problem("tall")[0]
    kept = RawSpace.of(X, Standardiser.of(X, standardize=False))(X)
    np.testing.assert_allclose(kept, oracle.unit_variance(X)[0], atol=1e-12)


def test_wide_sparse_rows_are_reduced():
    X = sparse.random(60, 3000, density=0.02, format="csr", random_state=0)
    space = RawSpace.of(X, Standardiser.of(X))
    rows = space(X)
    assert rows.shape == (60, 59)
    assert_same_geometry(rows, oracle.unit_variance(oracle.scaled(X.toarray()))[0], 1e-6)


def test_a_unit_of_equal_rows_leaves_them_equal():
    for rows in (np.full((5, 2), 3.0), np.full((5, 2), 1e9) + 1e-7 * np.eye(5, 2), np.zeros((5, 2))):
        np.testing.assert_array_equal(Unit.of(rows)(rows), 0)
    rows = np.random.default_rng(0).standard_normal((30, 3)) + 100
    assert (Unit.of(rows)(rows) ** 2).sum() / 30 == pytest.approx(1)


# ------------------------------------------------------------------------------------------------------- landmarks


def test_landmarks_are_the_rows_in_pairs_and_others():
    rng = np.random.default_rng(0)
    chosen = chosen_landmarks(60_000, np.arange(30_000), rng)
    assert len(np.unique(chosen)) == 10_000
    assert chosen.max() < 30_000
    assert chosen_landmarks(10_000, np.arange(10), rng) is None
    some = chosen_landmarks(25_000, np.arange(10), rng, 3000)
    assert len(np.unique(some)) == 3000
    assert np.isin(np.arange(10), some).all()
    assert (np.diff(some) > 0).all()
    assert chosen_landmarks(3000, np.arange(10), rng, 3000) is None
