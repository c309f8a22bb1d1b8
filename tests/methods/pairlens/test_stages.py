"""LinearPairLens and PairLens against the dense oracle: both stages, purity, guard, number of directions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pairlens import Constraints, KernelBWDR, LinearPairLens, PairLens
from pairlens.engines import spread_over
from pairlens.exceptions import SupervisionWarning
from pairlens.graphs.nearest import near_graph
from pairlens.judging import auc_standard_error
from pairlens.methods.pairlens import PairProblem, second_stage
from tests.methods.cases import lists, quiet
from tests.methods.pairlens.cases import LENSES, assert_same_up_to_sign, oracle_folds, real_part
from tests.oracles import pairlens as oracle
from tests.oracles import subspace_angle

# ----------------------------------------------------------------------------------------------- oracle, first stage


@pytest.mark.parametrize("name", ["wine", "seeds", "wdbc"])
@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_linear_is_the_oracle_for_a_fixed_prior(real_data, name, n_components):
    X, y = real_part(real_data, name)
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=1).flip(0.1, random_state=1)
    model = LinearPairLens(n_components, prior=2.5, random_state=0).fit(X, constraints=pairs)
    expected = oracle.linear(X, *lists(pairs), n_components, prior=2.5)
    assert subspace_angle(model.components_, expected.components) < 1e-6
    assert_same_up_to_sign(model.transform(X), expected.embedding)
    np.testing.assert_allclose(model.eigenvalues_, expected.problem.eigenvalues[:n_components], rtol=1e-6)
    assert model.prior_strength_ == 2.5


@pytest.mark.parametrize("name", ["wine", "seeds", "wdbc"])
def test_linear_is_the_oracle_with_purity_on_the_same_folds(real_data, name):
    X, y = real_part(real_data, name, 150)
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=2).flip(0.1, random_state=2)
    model = LinearPairLens(2, random_state=3).fit(X, constraints=pairs)
    purity = oracle.purity(X, *lists(pairs), oracle_folds(pairs, 5, 3))
    assert model.purity_ == pytest.approx(purity, abs=1e-9)
    assert model.prior_strength_ == pytest.approx(oracle.prior_strength(purity), abs=1e-9)
    expected = oracle.linear(X, *lists(pairs), 2, prior=model.prior_strength_)
    assert subspace_angle(model.components_, expected.components) < 1e-6


@pytest.mark.parametrize(("n_neighbors", "spread"), [(4, 0.5), (10, 0.0), (15, 0.9)])
def test_neighbours_and_spread_are_the_oracles(wine, n_neighbors, spread):
    X, _, pairs = wine
    model = LinearPairLens(2, n_neighbors=n_neighbors, spread=spread, prior=3.0, random_state=0)
    expected = oracle.linear(X, *lists(pairs), 2, prior=3.0, n_neighbors=n_neighbors, spread=spread)
    assert subspace_angle(model.fit(X, constraints=pairs).components_, expected.components) < 1e-6


def test_weighted_pairs_and_labels_count_as_the_pairs_they_stand_for(wine):
    X, y, pairs = wine
    Y = oracle.unit_variance(oracle.z_scores(X)[0])[0]
    field = PairProblem.of(Y, near_graph(Y, 10), spread=0.5, iota=0.2)
    G = oracle.spreading(oracle.neighbour_graph(Y))
    rng = np.random.default_rng(0)
    w_must, w_cannot = rng.uniform(0.5, 3, pairs.n_must_link), rng.uniform(0.5, 3, pairs.n_cannot_link)
    weighted = Constraints(*lists(pairs), len(X), must_link_weight=w_must, cannot_link_weight=w_cannot)
    must, cannot = field.must_link_scatter(weighted), field.cannot_link_scatter(weighted)
    np.testing.assert_allclose(must, oracle.spread_scatter(Y, G, pairs.must_link, list(w_must)), atol=1e-9)
    np.testing.assert_allclose(cannot, oracle.spread_scatter(Y, G, pairs.cannot_link, list(w_cannot)), atol=1e-9)
    few = np.where(np.arange(len(y)) % 9 == 0, y, -1)
    implied = Constraints.from_labels(few)
    written = Constraints(implied.must_link, implied.cannot_link, len(X))
    for scatter in (field.must_link_scatter, field.cannot_link_scatter):
        np.testing.assert_allclose(scatter(implied), scatter(written), atol=1e-9)


@pytest.mark.parametrize("a", [0.1, 0.5, 0.95])
def test_spreading_inverts_the_walk(a):
    X = np.random.default_rng(0).standard_t(2, (200, 5))
    walk = near_graph(X, 10).walk
    for W in (walk, walk.T.tocsr()):
        expected = (1 - a) * np.linalg.solve(np.eye(200) - a * W.toarray(), X)
        np.testing.assert_allclose(spread_over(W, X, a), expected, atol=1e-9 * np.abs(X).max())


# ---------------------------------------------------------------------------------------------- oracle, second stage


@pytest.mark.parametrize("name", ["wine", "seeds", "wdbc"])
@pytest.mark.parametrize("n_components", [2, 3])
def test_second_stage_is_the_oracle_for_training_and_new_rows(real_data, name, n_components):
    X, y = real_part(real_data, name, 300)
    X, new = X[: len(X) - 30], X[len(X) - 30 :]
    pairs = Constraints.from_labels(y[: len(X)], n_pairs=80, random_state=4)
    model = PairLens(n_components, guard=False, random_state=0).fit(X, constraints=pairs)
    expected = oracle.staged(X, *lists(pairs), n_components, prior=model.prior_strength_)
    signs = assert_same_up_to_sign(model.transform(X), expected.embedding)
    moved = expected.transform(new)
    np.testing.assert_allclose(model.transform(new) * signs, moved, atol=1e-6 * np.abs(moved).max())
    assert model.chosen_ == {2: "diffusion", 3: "kernel"}[n_components]


def test_the_sparse_solver_gives_the_dense_diffusion(monkeypatch):
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.standard_normal((150, 4)) + 4 * k * np.eye(4)[0] for k in range(4)])
    graph = near_graph(Z, 10)
    monkeypatch.setattr(second_stage, "DENSE_LIMIT", 1000)
    dense = second_stage.diffusion(Z, graph).values
    monkeypatch.setattr(second_stage, "DENSE_LIMIT", 100)
    assert_same_up_to_sign(second_stage.diffusion(Z, graph).values, dense, 1e-5)


def test_coordinates_of_new_rows_by_an_index():
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.standard_normal((400, 4)) + 4 * k * np.eye(4)[0] for k in range(4)])
    new = Z[::7] + 0.1 * rng.standard_normal((len(Z[::7]), 4))
    stages = [
        second_stage.SecondStage.of(Z, diffuse=True, search=search, n_queries=10**7) for search in ("exact", "auto")
    ]
    exact, nearly = (stage.coordinates(new) for stage in stages)
    apart = np.abs(exact - nearly).max(axis=1)
    assert 0 < np.mean(apart > 0) < 0.5
    assert np.median(apart) < 1e-12
    np.testing.assert_allclose(stages[1].coordinates(Z[:9]), stages[0].coordinates.values[:9], atol=1e-12)


def test_a_graph_of_several_parts(wine):
    rng = np.random.default_rng(1)
    X = np.vstack(
        [rng.standard_normal((40, 4)), rng.standard_normal((40, 4)) + 1000, rng.standard_normal((40, 4)) - 900]
    )
    pairs = Constraints.from_labels(np.repeat([0, 1, 2], 40), n_pairs=50, random_state=0)
    model = PairLens(2, guard=False, random_state=0).fit(X, constraints=pairs)
    expected = oracle.staged(X, *lists(pairs), 2, prior=model.prior_strength_)
    assert_same_up_to_sign(model.transform(X), expected.embedding)
    assert model.score(X, np.repeat([0, 1, 2], 40)) > 0.99


# ------------------------------------------------------------------------------------------------- purity and guard


def test_purity_falls_with_wrong_must_links(wine):
    X, y, _ = wine
    clean = Constraints.from_labels(y, n_pairs=300, random_state=0)
    purities = [
        LinearPairLens(random_state=0).fit(X, constraints=clean.flip(share, random_state=0)).purity_
        for share in (0.0, 0.15, 0.3)
    ]
    assert purities[0] > 0.85
    assert purities[0] > purities[1] + 0.2 > purities[2] + 0.4


@pytest.mark.parametrize("cls", LENSES)
@pytest.mark.parametrize(("n_must", "n_cannot"), [(7, 20), (20, 7)])
def test_purity_is_not_estimated_from_fewer_than_eight_pairs_of_a_kind(wine, cls, n_must, n_cannot):
    X, _, pairs = wine
    few = Constraints(pairs.must_link[:n_must], pairs.cannot_link[:n_cannot], len(X))
    model = cls(random_state=0).fit(X, constraints=few)
    assert model.purity_ == 0.6
    assert model.prior_strength_ == pytest.approx(2 / 0.6)


def test_the_prior_never_exceeds_twenty():
    assert oracle.prior_strength(-3.0) == 20
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 4)), rng.integers(0, 2, 80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupervisionWarning)
        model = LinearPairLens(random_state=0).fit(
            X, constraints=Constraints.from_labels(y, n_pairs=40, random_state=0)
        )
    assert model.prior_strength_ == pytest.approx(min(20.0, 2 / max(model.purity_, 0.1)))


@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize("case", ["shells", "wine"])
def test_the_guard_decides_as_the_oracle(case, n_components, request):
    X, y = request.getfixturevalue(case)[:2]
    pairs = Constraints.from_labels(y, n_pairs=120, random_state=0)
    model = PairLens(n_components, random_state=5).fit(X, constraints=pairs)
    ours, other = oracle.guard_aucs(
        X, *lists(pairs), n_components, oracle_folds(pairs, 3, 5), prior=model.prior_strength_
    )
    taken = oracle.guard_takes_kernel_bwdr(ours, other, pairs.n_must_link, pairs.n_cannot_link)
    assert (model.chosen_ == "kernel-bwdr") == taken == (case == "shells")
    assert model.auc_ == pytest.approx(other if taken else ours, abs=1e-3)
    assert model.auc_error_ == auc_standard_error(model.auc_, pairs.n_must_link, pairs.n_cannot_link)


def test_the_guards_choice_is_kernel_bwdr_of_the_z_scores(shells):
    X, y = shells
    pairs = Constraints.from_labels(y, n_pairs=120, random_state=0)
    model = PairLens(2, random_state=5).fit(X, constraints=pairs)
    assert model.chosen_ == "kernel-bwdr"
    Z, mean, scale = oracle.z_scores(X)
    other = KernelBWDR(2).fit(Z, constraints=pairs)
    new = X[::7] + 0.05
    np.testing.assert_allclose(model.transform(new), other.transform((new - mean) / scale), atol=1e-8)
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_)
    # The oracle's kernel principal components are cut at rank 150 too, of 240.
    assert_same_up_to_sign(model.transform(X), oracle.kernel_bwdr_embedding(X, *lists(pairs), 2))


def test_without_the_guard_no_question_is_asked(shells, wine):
    X, y = shells
    pairs = Constraints.from_labels(y, n_pairs=120, random_state=0)
    assert PairLens(guard=False, random_state=5).fit(X, constraints=pairs).chosen_ == "diffusion"
    X, _, pairs = wine
    few = Constraints(pairs.must_link[:4], pairs.cannot_link[:30], len(X))
    model = PairLens(random_state=0).fit(X, constraints=few)
    assert model.chosen_ == "diffusion"
    assert np.isnan(model.auc_)
    assert np.isnan(model.auc_error_)


# --------------------------------------------------------------------------------------------- number of directions


def test_auto_takes_the_fewest_directions_within_one_standard_error(wine):
    X, _, pairs = wine
    model = LinearPairLens("auto", random_state=0).fit(X, constraints=pairs)
    folds = []
    for held_must, held_cannot in oracle_folds(pairs, 5, 0):
        kept = [
            [p for i, p in enumerate(full) if i not in out] for full, out in zip(lists(pairs), (held_must, held_cannot))
        ]
        view = oracle.linear(X, *kept, 13, prior=model.prior_strength_).embedding
        folds.append((view, pairs.must_link[held_must], pairs.cannot_link[held_cannot]))
    scores = []
    for d in range(1, 14):
        must, cannot = [], []
        for view, held_must, held_cannot in folds:
            must.extend(oracle.pair_distances(view[:, :d], held_must))
            cannot.extend(oracle.pair_distances(view[:, :d], held_cannot))
        scores.append(oracle.pair_auc(np.array(must), np.array(cannot)))
    margin = auc_standard_error(0.5, pairs.n_must_link, pairs.n_cannot_link)
    expected = 1 + int(np.argmax(np.array(scores) >= max(scores) - margin))
    assert model.n_components_ == expected == len(model.components_) == len(model.eigenvalues_)
    assert model.auc_ == pytest.approx(scores[expected - 1], abs=1e-9)
    asked = LinearPairLens(expected, random_state=0).fit(X, constraints=pairs)
    np.testing.assert_allclose(model.components_, asked.components_, rtol=1e-9)


@quiet
@pytest.mark.parametrize("cls", LENSES)
def test_auto_without_pairs_makes_a_picture(wine, cls):
    X, _, pairs = wine
    assert cls("auto").fit(X).transform(X).shape == (178, 2)
    assert cls("auto", random_state=0).fit(X, constraints=pairs).n_components_ in (1, 2, 3)


def test_auto_sees_how_many_directions_separate():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 600)
    X = rng.standard_normal((600, 12))
    X[:, :4] += 7 * np.vstack([np.eye(4), np.zeros(4)])[y]
    pairs = Constraints.from_labels(y, n_pairs=600, random_state=0)
    assert LinearPairLens("auto", random_state=0).fit(X, constraints=pairs).n_components_ in (3, 4)
