"""PairLens: the principal components of the taught spaces, against the oracle; landmarks, and rows as new ones."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from pairlens import Constraints, LinearPairLens, PairLens
from pairlens.exceptions import SupervisionWarning
from pairlens.judging import auc_standard_error
from pairlens.learning.spaces import chosen_landmarks
from pairlens.methods import lenses as module
from tests.learning.cases import assert_same_geometry, lists, problem
from tests.methods.cases import quiet
from tests.oracles import learning as oracle
from tests.oracles import subspace_angle

TAUGHT = ["linear", "kernel", "diffusion"]


def shares_of(model):
    return np.array([model.space_weights_[name]["weight"] for name in TAUGHT])


def of_the_oracle(X, model, known):
    """The taught spaces with the prior that the model chose, side by side with its weights, and their components."""
    priors = [(prior.shape, prior.spread, prior.strength) for prior in model._spaces.priors]
    Z = oracle.scaled(X)
    spaces = oracle.taught_spaces(Z, *lists(known), priors, max(2, model.n_components_))
    together = oracle.side_by_side(spaces, shares_of(model))
    values, vectors = np.linalg.eigh(together.T @ together / len(X))
    k = model.n_components_
    return spaces, together @ vectors[:, ::-1][:, :k], values[::-1][:k]


@pytest.mark.parametrize("kind", ["tall", "wide", "constant columns", "rare values"])
@pytest.mark.parametrize("n_components", [1, 2, 4])
def test_the_view_is_that_of_the_oracle(kind, n_components):
    X, _, pairs = problem(kind, seed=2)
    model = PairLens(n_components, random_state=0).fit(X, constraints=pairs)
    _, expected, variances = of_the_oracle(X, model, pairs)
    np.testing.assert_allclose(model.eigenvalues_, variances, rtol=1e-5)
    assert_same_geometry(model.transform(X), expected, 1e-5)
    np.testing.assert_allclose(model.transform(X).var(axis=0), model.eigenvalues_)
    assert shares_of(model).sum() == pytest.approx(1)


def test_what_it_says_about_the_spaces(wine):
    X, _, pairs = wine
    model = PairLens(2, random_state=0).fit(X, constraints=pairs)
    assert list(model.space_weights_) == TAUGHT
    for space in model.space_weights_.values():
        assert 0 <= space["weight"] <= 1
        assert 0.5 < space["auc"] <= 1
    few = PairLens(2, random_state=0).fit(X, constraints=Constraints([(0, 1)], [(0, 100)], 178))
    assert [space["weight"] for space in few.space_weights_.values()] == pytest.approx([0.6, 0, 0.4])
    assert np.isnan([space["auc"] for space in few.space_weights_.values()]).all()
    assert np.isnan([few.auc_, few.auc_error_]).all()


def test_the_auc_is_that_of_views_that_did_not_see_the_pairs(wine):
    """Every fold: spaces of its own, the weights of all, and rows where they would be if they were new."""
    X, _, pairs = wine
    model = PairLens(2, random_state=0).fit(X, constraints=pairs)
    held_out = model._held_out
    assert held_out.known == pairs
    assert len(held_out.must) == pairs.n_must_link
    assert model.auc_ == pytest.approx(held_out.auc(2))
    assert model.auc_error_ == auc_standard_error(model.auc_, pairs.n_must_link, pairs.n_cannot_link)
    # A random third of the answers about noise tells nothing about the others.
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((100, 8))
    some = Constraints.from_labels(rng.integers(0, 2, 100), n_pairs=100, random_state=0)
    assert PairLens(2, random_state=0).fit(noise, constraints=some).auc_ < 0.65


def test_folds_are_the_same_for_pairs_in_another_order(wine):
    X, _, pairs = wine
    turned = Constraints(pairs.must_link[::-1, ::-1], pairs.cannot_link[::-1], 178)
    one, two = (PairLens(3, random_state=0).fit(X, constraints=known) for known in (pairs, turned))
    np.testing.assert_array_equal(one.transform(X), two.transform(X))


@pytest.mark.parametrize("kind", ["tall", "wide"])
@pytest.mark.parametrize("seed", range(3))
def test_rotations_and_the_order_of_rows_do_not_matter(kind, seed):
    rng = np.random.default_rng(seed)
    X, _, pairs = problem(kind, seed=seed)

    def probabilities(rows, known, asked):
        model = PairLens(2, standardize=False, random_state=0).fit(rows, constraints=known)
        return model.pair_proba(asked[:30], asked[5:35])

    expected = probabilities(X, pairs, X)
    turned = X @ np.linalg.qr(rng.standard_normal((X.shape[1], X.shape[1])))[0]
    np.testing.assert_allclose(probabilities(turned, pairs, turned), expected, atol=1e-6)
    order = rng.permutation(len(X))
    back = np.argsort(order)
    moved = Constraints(back[pairs.must_link], back[pairs.cannot_link], len(X))
    np.testing.assert_allclose(probabilities(X[order], moved, X), expected, atol=1e-6)


# --------------------------------------------------------------------------------------------------- what it can show


def test_groups_that_no_plane_separates():
    """A shell inside another: linear views see nothing of it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 240)
    X = rng.standard_normal((240, 3))
    X = X / np.linalg.norm(X, axis=1, keepdims=True) * np.where(y == 1, 2.0, 0.7)[:, None]
    X += 0.1 * rng.standard_normal((240, 3))
    pairs = Constraints.from_labels(y, n_pairs=80, random_state=0)
    model, linear = (cls(2, random_state=0).fit(X, constraints=pairs) for cls in (PairLens, LinearPairLens))
    assert model.auc_ > 0.9
    assert linear.auc_ < 0.75
    assert model.space_weights_["kernel"]["weight"] > 0.5
    assert model.score(X, y) > 0.95


def test_a_graph_of_several_parts():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.standard_normal((40, 4)) + shift for shift in (0, 1000, -900)])
    y = np.repeat([0, 1, 2], 40)
    pairs = Constraints.from_labels(y, n_pairs=50, random_state=0)
    model = PairLens(2, random_state=0).fit(X, constraints=pairs)
    assert model.score(X, y) > 0.99
    np.testing.assert_allclose(model.transform(X), model.fit_transform(X, constraints=pairs), atol=1e-9)


# ------------------------------------------------------------------------------------------------ new rows, landmarks


def test_every_row_is_seen_as_a_new_one_where_pairs_are_judged(wine):
    """In the diffusion space a row is the mean of the nearest *other* rows, here written out; not its own place."""
    X, _, pairs = wine
    model = PairLens(2, random_state=0).fit(X, constraints=pairs)
    linear, kernel, diffused = model._spaces(X)
    others = [oracle.mean_of_nearest(linear, diffused, row, leave_out=i) for i, row in enumerate(linear)]
    expected = oracle.side_by_side((linear, kernel, np.array(others)), shares_of(model)) @ model._turn
    np.testing.assert_allclose(model._seen_as_new(X), expected, atol=1e-9)
    assert np.abs(model._seen_as_new(X) - model.transform(X)).max() > 0.01
    # New rows are seen as they are placed.
    np.testing.assert_allclose(model._seen_as_new(X + 0.01), model.transform(X + 0.01), atol=1e-12)


def test_of_many_rows_landmarks_are_learned_from(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    X = 3 * np.eye(3, 8)[y] + rng.standard_normal((900, 8))
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    every = PairLens(2, random_state=0).fit(X, constraints=pairs)
    assert every._landmarks is None
    monkeypatch.setattr(module.spaces, "chosen_landmarks", partial(chosen_landmarks, wanted=300))
    some = PairLens(2, random_state=0).fit(X, constraints=pairs)
    assert len(some._landmarks) == 300
    assert np.isin(pairs.rows, some._landmarks).all()
    assert some.transform(X).shape == (900, 2)
    assert some.score(X, y) == pytest.approx(every.score(X, y), abs=0.03)
    assert some.auc_ == pytest.approx(every.auc_, abs=0.05)
    # Pairs keep the numbers of the rows that were given.
    given = sorted(np.concatenate([pairs.must_link, pairs.cannot_link]).tolist())
    assert sorted(some.suspicious_pairs().pairs.tolist()) == given


@pytest.mark.parametrize("lens", [LinearPairLens(3), PairLens(3)], ids=str)
def test_an_index_gives_the_view_of_the_exact_search(lens):
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 1200)
    X = 2 * rng.standard_normal((4, 10))[y] + rng.standard_normal((1200, 10))
    pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    exact, approx = (
        clone(lens).set_params(neighbors=how, random_state=0).fit(X, constraints=pairs) for how in ("exact", "approx")
    )
    assert approx.auc_ == pytest.approx(exact.auc_, abs=0.02)
    assert approx.score(X, y) == pytest.approx(exact.score(X, y), abs=0.02)
    views = [model.transform(X) - model.transform(X).mean(axis=0) for model in (exact, approx)]
    assert not np.array_equal(*views)
    assert subspace_angle(*(np.linalg.qr(view)[0].T for view in views)) < 0.2


@quiet
def test_more_directions_than_the_spaces_have_is_a_warning():
    X, _, _ = problem("tall")
    with pytest.warns(SupervisionWarning, match="usable directions of the n_components=60"):
        model = PairLens(60, random_state=0).fit(X, constraints=Constraints([(0, 1)], [(0, 2)], len(X)))
    assert model.transform(X).shape == (70, len(model.eigenvalues_))
    assert len(model.eigenvalues_) < 60


def test_auto_takes_the_number_of_the_linear_view(wine):
    X, _, pairs = wine
    both = [cls("auto", random_state=4).fit(X, constraints=pairs).n_components_ for cls in (LinearPairLens, PairLens)]
    assert both[0] == both[1]
