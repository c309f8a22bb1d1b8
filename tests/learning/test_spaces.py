"""The spaces against the oracle: rows as they are, linear, kernel and diffusion; and how much each counts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from pairlens import Constraints
from pairlens.judging.held_out import auc
from pairlens.learning import spaces as module
from pairlens.learning.learner import REPEATS, choose_prior
from pairlens.learning.spaces import (
    SPACES,
    PreparedRows,
    RawSpace,
    Stack,
    Unit,
    chosen_landmarks,
    effective_answers,
    pair_lengths,
    side_by_side,
)
from pairlens.spectral.rowspace import Standardiser
from tests.learning.cases import KINDS, as_sparse, assert_same_geometry, lists, problem, weighted_pairs
from tests.oracles import learning as oracle
from tests.oracles import pairmap


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
    assert spaces.priors[0] == choose_prior(prepared(X).linear, known, 0).prior
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


DEFAULT = [0.5, 0.3, 0.0, 0.2]


def stacked(X, known, seed=0, **more):
    standardiser = Standardiser.of(X)
    plain = RawSpace.of(X, standardiser)(X)
    prepared = PreparedRows.of(X, standardiser, anchors=known.rows)
    return Stack.of(prepared, plain, known, np.random.default_rng(seed), **more), plain, prepared


def held_out_lengths(X, stack):
    """Distances of the held-out pairs in the oracle's spaces, each fold taught without them."""
    Z = oracle.scaled(X)
    plain = oracle.unit_variance(Z)[0]
    found, same, weight = [], [], []
    for fold in stack:
        priors = [(prior.shape, prior.spread, prior.strength) for prior in fold.spaces.priors]
        spaces = (plain, *oracle.taught_spaces(Z, *lists(fold.train), priors))
        for pairs, weights, kind in (
            (fold.rest.must_link, fold.rest.must_link_weight, True),
            (fold.rest.cannot_link, fold.rest.cannot_link_weight, False),
        ):
            for (i, j), w in zip(pairs, weights):
                found.append([np.linalg.norm(space[i] - space[j]) / np.sqrt(2) for space in spaces])
                same.append(kind)
                weight.append(w)
    return np.array(found), np.array(same), np.array(weight)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_prior_of_all_pairs_is_chosen_with_more_folds_than_those_of_the_folds(n_threads, monkeypatch):
    drawn = []
    choose = module.learner.choose_prior

    def noted(learner, known, *arguments, repeats):
        drawn.append((known.n_pairs, repeats))
        return choose(learner, known, *arguments, repeats=repeats)

    monkeypatch.setattr(module.learner, "choose_prior", noted)
    X, _, pairs = problem("tall", seed=0)
    stack = stacked(X, pairs, n_threads=n_threads)[0]
    expected = [(pairs.n_pairs, REPEATS), *((fold.train.n_pairs, 1) for fold in stack)]
    assert sorted(drawn) == sorted(expected)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["tall", "wide"])
def test_shares_are_those_of_the_oracle(kind, seed):
    X, _, pairs = problem(kind, seed=seed)
    stack, plain, _ = stacked(X, pairs, seed)
    assert len(stack.folds) == 5
    D, same, _ = held_out_lengths(X, stack)
    np.testing.assert_allclose(np.concatenate([fold.lengths(plain) for fold in stack]), D, atol=1e-6)
    answers = min(pairs.n_pairs, 2 * len(pairs.rows))
    assert effective_answers(pairs) == answers
    slopes = pairmap.logistic(D, same.tolist(), answers / len(D))[1]
    np.testing.assert_allclose(stack.shares, oracle.shares(slopes, D.std(axis=0), answers), atol=1e-5)
    assert stack.shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(stack.aucs, [auc(column[same], column[~same]) for column in D.T], atol=1e-9)


def test_the_oracle_has_the_numbers_of_the_reference():
    """What the reference of the specification gives for these distances."""
    different = np.repeat([0, 1], [20, 25])
    D = np.random.default_rng(0).gamma(3, 1, (45, 4)) + different[:, None] * np.array([0, 1.0, 0.5, 2])
    slopes = pairmap.logistic(D, (different == 0).tolist(), 1.0)[1]
    expected = [0.27828, 0.24138, 0.12774, 0.3526]
    np.testing.assert_allclose(oracle.shares(slopes, D.std(axis=0), 45), expected, atol=2e-5)


def test_each_fold_is_taught_without_what_it_holds_out():
    X, _, pairs = problem("tall")
    stack, _, prepared = stacked(X, pairs)
    seed = int(np.random.default_rng(0).integers(2**31))
    for (train, rest), fold in zip(stack.drawn, stack):
        assert (fold.train, fold.rest) == (train, rest)
        assert train.merge(rest) == pairs
        assert not {map(tuple, rest.must_link)} & {map(tuple, train.must_link)}
        expected = prepared.teach(train, seed)[1].spaces
        for ours, theirs in zip(fold.seen.spaces, expected):
            np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(stack.seen.spaces, prepared.teach(pairs, seed, repeats=REPEATS)[1].spaces):
        np.testing.assert_array_equal(ours, theirs)


def test_pairs_that_imply_one_another_are_held_out_by_rows_and_count_two_a_row():
    X, y, _ = problem("tall")
    known = Constraints.from_labels(np.where(np.arange(len(y)) % 3 == 0, y, -1))
    assert known.n_pairs > 2 * len(known.rows)
    assert effective_answers(known) == 2 * len(known.rows)
    stack, _, _ = stacked(X, known)
    for fold in stack:
        left_out = np.setdiff1d(known.rows, fold.train.rows)
        assert np.isin(fold.pairs, left_out).any(axis=1).all()
    # The smaller of two limits, never both.
    light = Constraints(
        known.must_link,
        known.cannot_link,
        len(X),
        must_link_weight=np.full(known.n_must_link, 0.01),
        cannot_link_weight=np.full(known.n_cannot_link, 0.01),
    )
    assert effective_answers(light) == pytest.approx(0.01 * known.n_pairs)


def test_weights_enter_the_shares():
    X, _, pairs = problem("tall")
    known = weighted_pairs(pairs, 3)
    stack, plain, _ = stacked(X, known)
    lengths = np.concatenate([fold.lengths(plain) for fold in stack])
    weight = np.concatenate([fold.weight for fold in stack])
    same = np.concatenate([fold.same for fold in stack])
    answers = min(weight.sum(), 2 * len(known.rows))
    slopes = pairmap.logistic(lengths, same.tolist(), weight * answers / weight.sum())[1]
    np.testing.assert_allclose(stack.shares, oracle.shares(slopes, lengths.std(axis=0), answers), atol=1e-8)
    assert np.abs(stack.shares - stacked(X, pairs)[0].shares).max() > 0.01


@pytest.mark.parametrize(("n_must", "n_cannot"), [(0, 0), (0, 9), (9, 0), (2, 9), (9, 2)])
def test_with_too_few_pairs_the_shares_are_the_default(n_must, n_cannot):
    X, _, pairs = problem("tall")
    few = Constraints(pairs.must_link[:n_must], pairs.cannot_link[:n_cannot], len(X))
    stack, _, _ = stacked(X, few)
    np.testing.assert_array_equal(stack.shares, DEFAULT)
    assert np.isnan(stack.aucs).all()
    assert list(stack) == []
    assert stack.drawn is None


def test_answers_that_the_rows_know_nothing_of_leave_them_no_share():
    """The more such answers, the less the rows as they are count; random ones leave the default."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.standard_normal((200, 6)) * [6, 5, 4, 3, 2, 0.05]
    X[:, 5] += 0.4 * y
    X = X @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
    of_rows = [stacked(X, Constraints.from_labels(y, n_pairs=n, random_state=0))[0].shares[0] for n in (10, 40, 150)]
    assert of_rows[0] > of_rows[1] > of_rows[2]
    assert of_rows[2] < 0.15
    noise = rng.permutation(y)
    random = stacked(rng.standard_normal((200, 6)), Constraints.from_labels(noise, n_pairs=60, random_state=0))[0]
    assert random.aucs.max() < 0.75


def test_what_a_stack_says_of_its_spaces():
    X, _, pairs = problem("tall")
    stack, _, _ = stacked(X, pairs)
    everything, some = stack.described(), stack.described(SPACES[1:])
    assert list(everything) == list(SPACES)
    assert [each["weight"] for each in everything.values()] == pytest.approx(stack.shares.tolist())
    assert [each["auc"] for each in everything.values()] == pytest.approx(stack.aucs.tolist())
    assert sum(each["weight"] for each in some.values()) == pytest.approx(1)
    assert some["linear"]["weight"] == pytest.approx(stack.shares[1] / stack.shares[1:].sum())


def test_side_by_side_and_lengths():
    rng = np.random.default_rng(0)
    spaces = [oracle.unit_variance(rng.standard_normal((30, k)))[0] for k in (3, 2, 4, 1)]
    shares = np.array([0.4, 0.35, 0.0, 0.25])
    together = side_by_side(spaces, shares)
    assert together.shape == (30, 6)
    assert_same_geometry(together, oracle.side_by_side(spaces, shares))
    assert (together**2).sum() / 30 == pytest.approx(1)
    lengths = pair_lengths((space[:5] for space in spaces), (space[5:10] for space in spaces))
    # The squared distance in the metric is the mean of those in the spaces.
    squared = ((together[:5] - together[5:10]) ** 2).sum(axis=1)
    np.testing.assert_allclose(squared, 2 * lengths**2 @ shares)
