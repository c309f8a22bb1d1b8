"""The pair learner against the oracle: whitened coordinates, priors, scatters, directions, the choice of a prior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from pairlens import Constraints
from pairlens._sklearn import as_generator
from pairlens.judging import PairFolds
from pairlens.learning import learner as module
from pairlens.learning.learner import CAUTIOUS, N_COLUMNS, PRIORS, PairLearner, Prior, choose_prior, weighted, whitened
from pairlens.spectral.rowspace import Standardiser, whitened_rows
from tests.learning.cases import (
    KINDS,
    as_sparse,
    assert_same_geometry,
    lists,
    measured_penguins,
    places,
    problem,
    weighted_pairs,
    weights,
)
from tests.oracles import learning as oracle

ALL_PRIORS = [
    Prior(shape, a, c) for shape in ("iso", "local", "rows", "near", "white") for a in (0.0, 0.5) for c in (1.0, 3.0)
]


def prepared(X, *, standardize=True, near=True):
    standardiser = Standardiser.of(X, standardize=standardize)
    space, values = whitened_rows(X, standardiser)
    return PairLearner.of(space.rows, values, near=near), space, standardiser


def as_tuple(prior):
    return prior.shape, prior.spread, prior.strength


def in_the_basis_of(learner, found):
    """The rotation from the oracle's coordinates to the learner's: both are whitened, so it is their correlation."""
    turn = np.asarray(learner.rows).T @ found.rows / len(found.rows)
    np.testing.assert_allclose(turn @ turn.T, np.eye(len(turn)), atol=1e-8)
    return turn


# ------------------------------------------------------------------------------------------------ whitened coordinates


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_coordinates_are_those_of_the_oracle(kind, standardize):
    X, _, _ = problem(kind)
    learner, space, standardiser = prepared(X, standardize=standardize, near=False)
    varying = X.std(axis=0) > 1e-6
    Z = oracle.scaled(X) if standardize else X * varying
    found = oracle.whitened(Z)
    assert learner.dim == len(found.values) == learner.rows.shape[1]
    np.testing.assert_allclose(learner.values, found.values, rtol=1e-8)
    np.testing.assert_allclose(learner.rows.T @ learner.rows, len(X) * np.eye(learner.dim), atol=1e-7)
    np.testing.assert_allclose(np.abs(in_the_basis_of(learner, found)), np.eye(learner.dim), atol=1e-7)
    # The way back: features to coordinates.
    components = space.lift(np.eye(learner.dim))
    np.testing.assert_allclose((X - standardiser.mean) @ components.T, learner.rows, atol=1e-7)
    assert not components[:, ~varying].any()


def test_sparse_and_single_precision_rows_have_the_same_coordinates():
    dense, stored = as_sparse(problem("tall")[0])
    expected = prepared(dense)[0]
    np.testing.assert_allclose(np.abs(prepared(stored)[0].rows), np.abs(expected.rows), atol=1e-9)
    np.testing.assert_allclose(np.abs(prepared(dense.astype(np.float32))[0].rows), np.abs(expected.rows), atol=1e-4)
    wide, stored = as_sparse(problem("wide")[0])
    assert_same_geometry(np.asarray(prepared(stored)[0].rows), np.asarray(prepared(wide)[0].rows), 1e-7)


def test_the_least_component_is_kept_and_rounding_is_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) * [1000.0, 1.0, 0.5]
    X = np.column_stack([X, X @ [1.0, 2.0, 3.0]])
    learner = prepared(X, standardize=False, near=False)[0]
    assert learner.dim == 3
    X[:, 2] *= 1e-3
    X[:, 3] = X[:, :3] @ [1.0, 2.0, 3.0]
    # 5e-4 of 1000: a share of the variance of some 1e-13.
    assert prepared(X, standardize=False, near=False)[0].dim == 2


def test_at_most_a_hundred_coordinates():
    X = np.random.default_rng(0).standard_normal((300, 150))
    assert prepared(X, near=False)[0].dim == 100


@pytest.mark.parametrize("rank", [3, 6])
def test_whitened_gives_the_way_to_its_coordinates(rank):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50, rank)) @ rng.standard_normal((rank, 6)) + 4
    learner, basis = whitened(rows, None)
    assert learner.dim == rank
    assert learner.graph is None
    np.testing.assert_allclose((rows - rows.mean(axis=0)) @ basis, learner.rows, atol=1e-9)
    found = oracle.whitened(rows)
    np.testing.assert_allclose(learner.values, found.values, rtol=1e-8)
    in_the_basis_of(learner, found)


def test_rows_that_are_all_equal_have_no_coordinates():
    learner, basis = whitened(np.full((5, 3), 2.0), None)
    assert learner.dim == 0
    assert basis.shape == (3, 0)
    ratios, directions = learner.directions(Constraints([(0, 1)], [(2, 3)], 5), Prior("iso"))
    assert ratios.shape == (0,)
    assert directions.shape == (0, 0)


# ------------------------------------------------------------------------------------------------- matrices, directions


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("supervision", ["pairs", "weights", "labels", "labels and pairs", "must", "cannot", "none"])
def test_matrices_are_those_of_the_oracle(kind, supervision):
    X, y, pairs = problem(kind)
    known = {
        "pairs": pairs,
        "weights": weighted_pairs(pairs),
        "labels": Constraints.from_labels(np.where(np.arange(len(y)) % 4 == 0, y, -1)),
        "labels and pairs": Constraints.from_labels(np.where(np.arange(len(y)) % 4 == 0, y, -1)).merge(
            weighted_pairs(pairs), on_conflict="drop"
        ),
        "must": Constraints(pairs.must_link, n_samples=len(X)),
        "cannot": Constraints(cannot_link=pairs.cannot_link, n_samples=len(X)),
        "none": Constraints(n_samples=len(X)),
    }[supervision]
    learner = prepared(X)[0]
    found = oracle.whitened(oracle.scaled(X))
    turn = in_the_basis_of(learner, found)
    for prior in ALL_PRIORS:
        W, B = learner.matrices(known, prior)
        expected = oracle.matrices(found, *lists(known), as_tuple(prior), weights(known))
        for ours, theirs in zip((W, B), expected):
            np.testing.assert_allclose(ours, turn @ theirs @ turn.T, rtol=0, atol=1e-8 * np.abs(theirs).max())


@pytest.mark.parametrize("prior", [Prior("iso"), Prior("local", 0.5, 3.0), Prior("rows"), Prior("white")], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_directions_are_those_of_the_oracle(kind, prior):
    X, _, pairs = problem(kind)
    learner = prepared(X)[0]
    found = oracle.whitened(oracle.scaled(X))
    for k in (1, 3, 15):
        mu, V = learner.directions(pairs, prior, k)
        expected, U = oracle.directions(*oracle.matrices(found, *lists(pairs), as_tuple(prior)), k)
        assert len(mu) == V.shape[1] == min(k, learner.dim)
        np.testing.assert_allclose(mu, expected, rtol=1e-8)
        assert_same_geometry(learner.along(V), found.rows @ U)


def test_weights_of_directions():
    """1 - 1/mu above 1, and one percent where rows that differ are no farther apart."""
    within, between = np.diag([1.0, 4.0, 0.5]), np.diag([4.0, 4.0, 0.25])
    mu, V = weighted(within, between, 3)
    np.testing.assert_allclose(mu, [4, 1, 0.5])
    # v'Wv is the squared weight.
    np.testing.assert_allclose(np.diag(V.T @ within @ V), [0.75, 0.01, 0.01])
    np.testing.assert_array_equal(weighted(within, between, 1)[0], mu[:1])


def test_numbers_of_the_reference():
    """What the reference of the specification prints for 15 pairs of each kind by species, c = 1."""
    X, y = measured_penguins()
    must = [(i, i + 7) for i in range(0, 330, 11) if y[i] == y[i + 7]][:15]
    cannot = [(i, (i + 190) % 342) for i in range(0, 330, 13) if y[i] != y[(i + 190) % 342]][:15]
    learner = prepared(X)[0]
    np.testing.assert_allclose(learner.values, [2.75375512, 0.77251675, 0.36523591, 0.10849222], atol=1e-7)
    pairs = Constraints(must, cannot, len(X))
    iso, local = (learner.directions(pairs, Prior(shape))[0] for shape in ("iso", "local"))
    np.testing.assert_allclose(iso, [25.575376, 2.587935, 0.914399, 0.297767], atol=3e-6)
    np.testing.assert_allclose(local, [25.394883, 2.531852, 0.908865, 0.301855], atol=3e-6)


def test_a_pair_given_twice_counts_as_one_of_weight_two():
    X, _, pairs = problem("tall")
    learner = prepared(X)[0]
    must, cannot = lists(pairs)
    known = Constraints([*must, *must[:9]], [*cannot, *cannot[5:]], len(X))
    again = Constraints(
        must,
        cannot,
        len(X),
        must_link_weight=[2.0] * 9 + [1.0] * (len(must) - 9),
        cannot_link_weight=[1.0] * 5 + [2.0] * (len(cannot) - 5),
    )
    found = oracle.whitened(oracle.scaled(X))
    turn = in_the_basis_of(learner, found)
    for prior in PRIORS:
        expected = oracle.matrices(found, [*must, *must[:9]], [*cannot, *cannot[5:]], as_tuple(prior))
        for pairs_so in (known, again):
            for ours, theirs in zip(learner.matrices(pairs_so, prior), expected):
                np.testing.assert_allclose(ours, turn @ theirs @ turn.T, rtol=0, atol=1e-9 * np.abs(theirs).max())


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), n=st.integers(12, 40), f=st.integers(1, 8), n_pairs=st.integers(0, 30))
def test_any_problem_is_that_of_the_oracle(seed, n, f, n_pairs):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, f)) * rng.uniform(0.5, 3, f)
    drawn = np.array([(i, j) for i in range(n) for j in range(i)])
    drawn = drawn[rng.permutation(len(drawn))[:n_pairs]]
    known = weighted_pairs(Constraints(drawn[: n_pairs // 3], drawn[n_pairs // 3 :], n), seed)
    learner = prepared(X)[0]
    found = oracle.whitened(oracle.scaled(X))
    turn = in_the_basis_of(learner, found)
    for prior in (CAUTIOUS, Prior("rows"), Prior("white", 0.5)):
        expected = oracle.matrices(found, *lists(known), as_tuple(prior), weights(known))
        for ours, theirs in zip(learner.matrices(known, prior), expected):
            np.testing.assert_allclose(ours, turn @ theirs @ turn.T, rtol=0, atol=1e-8 * np.abs(theirs).max())
        mu = oracle.directions(*expected)[0]
        np.testing.assert_allclose(learner.directions(known, prior)[0], mu, rtol=1e-7, atol=1e-9 * mu[0])


# ------------------------------------------------------------------------------------------------- choice of the prior


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["tall", "wide"])
def test_held_out_pairs_choose_the_prior_of_the_oracle(kind, seed):
    X, _, pairs = problem(kind, seed=seed)
    learner = prepared(X)[0]
    found = oracle.whitened(oracle.scaled(X))
    choice = choose_prior(learner, pairs, seed)
    prior, folds = choice.prior, choice.folds
    rng = as_generator(seed)
    draws = [PairFolds.draw_independent(pairs, 5, rng, keys=learner.keys(pairs.rows)) for _ in range(2)]
    expected, aucs = oracle.chosen_prior(found, *lists(pairs), [places(drawn) for drawn in draws])
    assert as_tuple(prior) == pytest.approx(expected)
    problems = [learner.problems(drawn, PRIORS) for drawn in draws]
    distances = [[learner.held_out(each, one, N_COLUMNS) for each in problems] for one in PRIORS]
    ours = [np.mean([each.auc(each.must.shape[1]) for each in some]) for some in distances]
    np.testing.assert_allclose(ours, aucs, atol=1e-9)
    assert [rest for _, rest in folds] == [rest for _, rest in draws[0]]
    # The distances of the prior that was chosen, in fewer directions too.
    held_out = learner.held_out(folds, prior, 4)
    for d in (1, 2, 4):
        auc = oracle.held_out_auc(found, *lists(pairs), expected, places(folds), d)
        assert held_out.auc(min(d, learner.dim)) == pytest.approx(auc, abs=1e-9)


def test_the_auc_of_the_rows_as_they_are():
    X, _, pairs = problem("tall")
    must, cannot = (oracle.pair_distances(oracle.scaled(X), kind).tolist() for kind in lists(pairs))
    assert prepared(X, near=False)[0].plain_auc(pairs) == pytest.approx(oracle.pair_auc(must, cannot))


def test_folds_are_drawn_once_for_many_pairs_and_for_one_prior(monkeypatch):
    X, y, few = problem("tall")
    learner = prepared(X)[0]
    drawn = []
    draw = PairFolds.draw_independent
    monkeypatch.setattr(
        module.PairFolds, "draw_independent", lambda *args, **more: drawn.append(1) or draw(*args, **more)
    )
    choose_prior(learner, few, 0)
    choose_prior(learner, few, 0, repeats=1)
    choose_prior(learner, few, 0, priors=PRIORS[:1])
    choose_prior(learner, Constraints.from_labels(y, n_pairs=120, random_state=0), 0)
    assert len(drawn) == 2 + 1 + 1 + 1


def test_ties_and_too_few_pairs_take_the_most_cautious():
    X, y, pairs = problem("tall")
    learner = prepared(X)[0]
    for must, cannot in (([], pairs.cannot_link), (pairs.must_link[:1], pairs.cannot_link), (pairs.must_link, [])):
        choice = choose_prior(learner, Constraints(must, cannot, len(X)), 0)
        assert (choice.prior, choice.folds) == (CAUTIOUS, None)
    assert as_tuple(CAUTIOUS) == ("near", 0.5, 2.0)
    apart = X + 100 * np.eye(3, X.shape[1])[y]
    assert choose_prior(prepared(apart)[0], pairs, 0).prior.shape == CAUTIOUS.shape


def test_answers_about_a_direction_that_hardly_varies_are_followed():
    """One percent of the variance, and no prior of the rows' scale hides it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 150)
    X = rng.standard_normal((150, 4)) * [10.0, 5.0, 3.0, 0.1]
    X[:, 3] += y
    pairs = Constraints.from_labels(y, n_pairs=40, random_state=0)
    learner = prepared(X, standardize=False)[0]
    prior = choose_prior(learner, pairs, 0).prior
    seen = learner.along(learner.directions(pairs, prior, 1)[1])
    assert abs(np.corrcoef(seen[:, 0], y)[0, 1]) > 0.95


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_keys_and_folds_do_not_depend_on_units_or_order(seed):
    rng = np.random.default_rng(seed)
    X, _, pairs = problem("tall", seed=seed % 7)
    n, f = X.shape
    order, turn = rng.permutation(n), np.linalg.qr(rng.standard_normal((f, f)))[0]
    back = np.argsort(order)
    other = (X @ (turn * rng.uniform(0.5, 2, f)) + rng.standard_normal(f))[order]
    moved = Constraints(back[pairs.must_link], back[pairs.cannot_link], n)
    one, two = prepared(X, near=False)[0], prepared(other, near=False)[0]
    keys, again = one.keys(pairs.rows), two.keys(moved.rows)
    np.testing.assert_array_equal(again[back], keys)
    assert set(np.flatnonzero(keys)) == set(pairs.rows)
    folds, others = (
        PairFolds.draw_independent(known, 5, 3, keys=numbers) for known, numbers in ((pairs, keys), (moved, again))
    )
    for (_, rest), (_, same) in zip(folds, others):
        assert rest == Constraints(order[same.must_link], order[same.cannot_link], n)


def test_keys_where_all_whitened_rows_are_equally_long():
    """With as many coordinates as rows less one, the rows before they were whitened tell them apart."""
    X, _, pairs = problem("wide")
    learner = prepared(X, near=False)[0]
    np.testing.assert_allclose((learner.rows**2).sum(axis=1), len(X) - 1)
    assert set(learner.keys(pairs.rows, whitened_only=True)[pairs.rows]) == {1.0}
    lengths = ((X - X.mean(axis=0)) ** 2 / X.var(axis=0)).sum(axis=1)[pairs.rows]
    np.testing.assert_array_equal(np.argsort(learner.keys(pairs.rows)[pairs.rows]), np.argsort(lengths))


def test_equal_rows_have_equal_keys():
    X, _, pairs = problem("repeated rows")
    keys = prepared(X, near=False)[0].keys(pairs.rows)
    for i in pairs.rows:
        for j in pairs.rows:
            assert (keys[i] == keys[j]) == (X[i] == X[j]).all()


def test_folds_hold_out_each_pair_once_in_parts_of_equal_size():
    _, _, pairs = problem("tall", n_pairs=43)
    keys = np.random.default_rng(0).random(len(pairs))
    folds = list(PairFolds.draw(pairs, 5, 0, keys=keys))
    assert sorted(rest.n_pairs for _, rest in folds) == [8, 8, 9, 9, 9]
    for train, rest in folds:
        assert train.merge(rest) == pairs
        assert rest.n_must_link >= pairs.n_must_link // 5
    first, *others = (rest for _, rest in folds)
    assert first.merge(*others) == pairs


def test_priors_that_need_no_near_rows_are_the_same_without_them():
    X, _, pairs = problem("tall")
    near, plain = prepared(X)[0], prepared(X, near=False)[0]
    for shape in ("iso", "rows", "white"):
        one, two = (each.along(each.directions(pairs, Prior(shape), 3)[1]) for each in (near, plain))
        assert subspace_angles(one, two).max() < 1e-7
    np.testing.assert_array_equal(near.nearest, near.graph.indices)
