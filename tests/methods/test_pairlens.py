"""LinearPairLens and PairLens: the dense oracle, the edges of supervision, and what they say about themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine

from pairlens import Constraints, KernelBWDR, LinearPairLens, PairLens
from pairlens.exceptions import SupervisionWarning
from pairlens.graphs.walks import near_graph, spread_over
from pairlens.judging import HeldOutDistances, auc_standard_error, folds, suspicious_pairs
from pairlens.judging.calibration import MISTAKES, fit_with_mistakes
from pairlens.methods.pairlens import PairProblem, second_stage
from pairlens.methods.pairlens import lens as lens_module
from tests.oracles import pairlens as oracle
from tests.oracles import subspace_angle

LENSES = [LinearPairLens, PairLens]
quiet = pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X, y, Constraints.from_labels(y, n_pairs=100, random_state=0)


@pytest.fixture(scope="module")
def shells():
    """A shell inside another, so thin that neighbours lie on both: the guard's other choice sees them better."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 240)
    X = rng.standard_normal((240, 6))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * np.where(y == 1, 1.0, 0.5)[:, None], y


def assert_same_up_to_sign(found, expected, tolerance=1e-6):
    assert found.shape == expected.shape
    signs = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=tolerance * np.abs(expected).max())
    return signs


def lists(pairs):
    return pairs.must_link.tolist(), pairs.cannot_link.tolist()


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
    scores = []
    for d in range(1, 14):
        must, cannot = [], []
        for held_must, held_cannot in oracle_folds(pairs, 5, 0):
            kept = [
                [p for i, p in enumerate(full) if i not in out]
                for full, out in zip(lists(pairs), (held_must, held_cannot))
            ]
            Z = oracle.linear(X, *kept, 13, prior=model.prior_strength_).embedding[:, :d]
            must.extend(oracle.pair_distances(Z, pairs.must_link[held_must]))
            cannot.extend(oracle.pair_distances(Z, pairs.cannot_link[held_cannot]))
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


# --------------------------------------------------------------------------------------------------- few or bad pairs


def supervision(kind, X, y):
    pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    must, cannot = pairs.must_link, pairs.cannot_link
    return {
        "none": Constraints(n_samples=len(X)),
        "must only": Constraints(must, n_samples=len(X)),
        "cannot only": Constraints(cannot_link=cannot, n_samples=len(X)),
        "all wrong": Constraints(cannot, must, len(X), on_conflict="warn"),
        "one must": Constraints(must[:1], n_samples=len(X)),
        "one cannot": Constraints(cannot_link=cannot[:1], n_samples=len(X)),
        "one of each": Constraints(must[:1], cannot[:1], len(X)),
        "two of each": Constraints(must[:2], cannot[:2], len(X)),
    }[kind]


KINDS = ["none", "must only", "cannot only", "all wrong", "one must", "one cannot", "one of each", "two of each"]


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_components", [2, 3, "auto"])
@pytest.mark.parametrize("cls", LENSES)
def test_any_supervision_gives_a_finite_view_and_a_warning_where_due(wine, cls, n_components, kind):
    X, y, _ = wine
    known = supervision(kind, X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = cls(n_components, random_state=0).fit(X, constraints=known)
    Z = model.transform(X)
    assert np.isfinite(Z).all()
    assert Z.shape == (len(X), model.n_components_)
    assert (Z.std(axis=0) > 1e-6).all()
    said = [str(w.message) for w in caught if issubclass(w.category, SupervisionWarning)]
    due = {"none": "no pairs were given", "all wrong": "swapped"}.get(kind)
    assert len(said) == (due is not None)
    assert all(due in text for text in said)
    assert all(w.filename == __file__ for w in caught if issubclass(w.category, SupervisionWarning))
    # Wine's classes are its local structure: it takes many wrong answers to hide them.
    if kind != "all wrong":
        assert model.score(X, y) > 0.75


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
@pytest.mark.parametrize("cls", LENSES)
def test_all_pairs_wrong_is_told_by_the_attributes(wine, cls):
    X, y, _ = wine
    with pytest.warns(SupervisionWarning, match="suspicious_pairs"):
        model = cls(random_state=0).fit(X, constraints=supervision("all wrong", X, y))
    assert model.auc_ < 0.5
    assert model.purity_ < 0.3
    assert model.prior_strength_ > 2 / 0.3


def test_no_pairs_is_the_prior_alone(wine):
    X, _, _ = wine
    with pytest.warns(SupervisionWarning, match="LinearPairLens: no pairs were given"):
        model = LinearPairLens(2).fit(X)
    assert subspace_angle(model.components_, oracle.linear(X, [], [], 2, prior=1.0).components) < 1e-6


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
@pytest.mark.parametrize("kind", ["must only", "cannot only"])
def test_one_kind_of_pairs_is_the_oracle(wine, kind):
    X, y, _ = wine
    known = supervision(kind, X, y)
    model = LinearPairLens(2).fit(X, constraints=known)
    expected = oracle.linear(X, *lists(known), 2, prior=oracle.prior_strength(0.6))
    assert subspace_angle(model.components_, expected.components) < 1e-6


# --------------------------------------------------------------------------------------------- attributes, suspicion


@pytest.mark.parametrize("cls", LENSES)
def test_attributes_say_what_was_done(wine, cls):
    X, _, pairs = wine
    model = cls(2, random_state=0).fit(X, constraints=pairs)
    assert model.n_components_ == 2
    assert len(model.eigenvalues_) == 2
    assert np.all(np.diff(model.eigenvalues_) <= 0)
    assert 0 < model.purity_ <= 1
    assert model.prior_strength_ == pytest.approx(2 / max(model.purity_, 0.1))
    assert 0.9 < model.auc_ <= 1
    assert model.auc_error_ == auc_standard_error(model.auc_, pairs.n_must_link, pairs.n_cannot_link)
    assert model.get_feature_names_out().tolist() == [f"{cls.__name__.lower()}{k}" for k in range(2)]


@pytest.mark.parametrize("cls", LENSES)
@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
def test_flipped_pairs_are_the_suspicious_ones(wine, cls):
    X, y, _ = wine
    clean = Constraints.from_labels(y, n_pairs=200, random_state=1)
    noisy = clean.flip(0.1, random_state=1)
    found = cls(random_state=0).fit(X, constraints=noisy).suspicious_pairs()
    assert len(found) == 200
    assert set(map(tuple, found.pairs)) == set(map(tuple, np.concatenate([noisy.must_link, noisy.cannot_link])))
    wrong = (y[found.pairs[:, 0]] == y[found.pairs[:, 1]]) != (found.link > 0)
    assert wrong.sum() == 20
    assert wrong[:20].mean() > 0.6
    assert np.all(np.diff(found.suspicion) <= 0)
    assert found.suspicion.min() >= 0
    assert found.suspicion.max() <= 1


def test_each_pair_is_judged_by_a_view_that_did_not_see_it(wine):
    X, _, pairs = wine
    model = LinearPairLens(10, random_state=7, prior=3.0).fit(X, constraints=pairs)
    must, cannot = oracle.held_out_distances(X, *lists(pairs), oracle_folds(pairs, 5, 7))
    np.testing.assert_allclose(model._held_out.must[:, -1], must, rtol=1e-6)
    np.testing.assert_allclose(model._held_out.cannot[:, -1], cannot, rtol=1e-6)


def test_suspicion_is_that_of_models_fitted_to_other_answers(wine):
    X, _, pairs = wine
    model = LinearPairLens(3, random_state=7).fit(X, constraints=pairs)
    squared = np.concatenate([model._held_out.must, model._held_out.cannot])
    roots = np.sqrt(np.sqrt(squared[:, [0, 1, 2]]))
    same = np.arange(len(roots)) < pairs.n_must_link
    fold = np.random.default_rng(0).permutation(len(roots)) % 3
    probable = fit_with_mistakes(roots, same, np.ones(len(roots)), penalty=1.0)[1]
    expected = {}
    for place, pair in enumerate(np.concatenate([pairs.must_link, pairs.cannot_link])):
        others = fold != fold[place]
        truths = fit_with_mistakes(roots[others], same[others], np.ones(others.sum()), penalty=1.0)[0]
        wrong = 0.0
        for e, chance, truth in zip(MISTAKES, probable, truths):
            right = truth(roots[[place]])[0] if same[place] else 1 - truth(roots[[place]])[0]
            wrong += chance * e * (1 - right) / (e * (1 - right) + (1 - e) * right)
        expected[tuple(pair)] = wrong
    found = model.suspicious_pairs()
    np.testing.assert_allclose(found.suspicion, [expected[tuple(p)] for p in found.pairs], atol=1e-9)


def test_where_distance_misleads_nothing_is_taken_for_a_mistake_by_it():
    """Slopes cannot be negative: where must-links are the longer ones, only the numbers of each kind count."""
    rng = np.random.default_rng(0)
    known = Constraints([(0, i) for i in range(1, 21)], [(21, i) for i in range(22, 42)], 42)
    held_out = HeldOutDistances(1 + rng.random((20, 1)), rng.random((20, 1)), known)
    found = suspicious_pairs(held_out)
    np.testing.assert_allclose(found.suspicion, found.suspicion[0], atol=0.05)
    assert len(found.standing_out) == 0


@pytest.mark.parametrize("cls", LENSES)
def test_pairs_that_labels_imply_are_judged_too(wine, cls):
    X, y, _ = wine
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(len(y)) < 0.25, y, -1)
    labelled = np.flatnonzero(labels >= 0)
    wrong = int(labelled[3])
    labels[wrong] = (labels[wrong] + 1) % 3
    found = cls(random_state=0).fit(X, labels).suspicious_pairs()
    n = len(labelled)
    assert len(found) == n * (n - 1) // 2
    same = labels[found.pairs[:, 0]] == labels[found.pairs[:, 1]]
    np.testing.assert_array_equal(same, found.link > 0)
    assert np.mean(np.any(found.pairs[:n] == wrong, axis=1)) > 2 * 2 / n


def test_of_many_implied_pairs_some_are_judged(wine, monkeypatch):
    X, y, _ = wine
    monkeypatch.setattr(folds, "MAX_PAIRS", 500)
    found = LinearPairLens(random_state=0).fit(X, y).suspicious_pairs()
    assert len(found) == 500
    np.testing.assert_array_equal(y[found.pairs[:, 0]] == y[found.pairs[:, 1]], found.link > 0)


def test_suspicious_pairs_as_a_table(wine):
    pytest.importorskip("pandas")
    X, _, pairs = wine
    frame = LinearPairLens(random_state=0).fit(X, constraints=pairs).suspicious_pairs().to_frame()
    assert frame.columns.tolist() == ["a", "b", "link", "suspicion"]
    assert frame["link"].value_counts().to_dict() == {"must": pairs.n_must_link, "cannot": pairs.n_cannot_link}


@pytest.mark.parametrize(("cls", "fewest"), [(LinearPairLens, 2), (PairLens, 5)])
def test_too_few_pairs_cannot_be_judged(wine, cls, fewest):
    X, _, pairs = wine
    few = Constraints(pairs.must_link[: fewest - 1], pairs.cannot_link, len(X))
    with pytest.raises(ValueError, match=f"at least {fewest} must-links and {fewest} cannot-links"):
        cls().fit(X, constraints=few).suspicious_pairs()
    enough = Constraints(pairs.must_link[:fewest], pairs.cannot_link, len(X))
    assert len(cls(random_state=0).fit(X, constraints=enough).suspicious_pairs()) == enough.n_pairs


# ----------------------------------------------------------------------------------------------- new rows, odd inputs


@quiet
@pytest.mark.parametrize("n_components", [2, 4])
@pytest.mark.parametrize("cls", LENSES)
def test_transform_of_training_rows_is_fit_transform_and_row_by_row(wine, cls, n_components):
    X, _, pairs = wine
    model = cls(n_components, random_state=0)
    Z = model.fit_transform(X, constraints=pairs)
    np.testing.assert_allclose(model.transform(X), Z, atol=1e-9 * np.abs(Z).max())
    new = X[:5] * 1.01
    one_by_one = np.vstack([model.transform(row[None]) for row in new])
    np.testing.assert_allclose(model.transform(new), one_by_one, atol=1e-9 * np.abs(Z).max())


def test_a_training_row_has_its_own_place_in_the_diffusion_view(wine):
    X, _, pairs = wine
    model = PairLens(2, guard=False, random_state=0).fit(X, constraints=pairs)
    expected = oracle.staged(X, *lists(pairs), 2, prior=model.prior_strength_)
    assert_same_up_to_sign(model.transform(X[[17, 3]]), expected.embedding[[17, 3]])


@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize("cls", LENSES)
def test_float32_stays_float32_and_close(wine, cls, n_components):
    X, _, pairs = wine
    double = cls(n_components, random_state=0).fit_transform(X, constraints=pairs)
    single = cls(n_components, random_state=0).fit_transform(X.astype(np.float32), constraints=pairs)
    assert single.dtype == np.float32
    assert subspace_angle(single.T.astype(float), double.T) < 0.01


@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize("cls", LENSES)
def test_wide_rows(cls, n_components):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 25)
    X = rng.standard_normal((75, 400))
    X[:, :3] += 12 * np.eye(3)[y]
    X[:, :60] += np.repeat(3 * np.eye(3)[y], 20, axis=1)
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    model = cls(n_components, random_state=0).fit(X, constraints=pairs)
    assert model.score(X, y) > 0.9
    if cls is LinearPairLens:
        expected = oracle.linear(X, *lists(pairs), n_components, prior=model.prior_strength_)
        assert subspace_angle(model.components_, expected.components) < 1e-6


@pytest.mark.parametrize("shape", [(120, 40), (60, 300)])
@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize("cls", LENSES)
def test_sparse_rows_are_the_same_as_dense_ones(cls, n_components, shape):
    n, f = shape
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = rng.poisson(0.6, (n, f)) * rng.random((n, f))
    X[:, :15] += 2 * np.repeat(np.eye(3)[y], 5, axis=1)
    X[:, -1] = 1e4
    pairs = Constraints.from_labels(y, n_pairs=70, random_state=0)
    for guard in [{}] if cls is LinearPairLens else [{"guard": True}, {"guard": False}]:
        dense = cls(n_components, random_state=0, **guard).fit(X, constraints=pairs)
        stored = cls(n_components, random_state=0, **guard).fit(sparse.csr_matrix(X), constraints=pairs)
        expected = dense.transform(X[:20])
        np.testing.assert_allclose(
            stored.transform(sparse.csr_matrix(X[:20])), expected, atol=1e-6 * np.abs(expected).max()
        )


def test_the_guards_choice_keeps_sparse_rows_sparse(shells):
    X, y = shells
    pairs = Constraints.from_labels(y, n_pairs=120, random_state=0)
    stored = PairLens(2, random_state=5).fit(sparse.csr_matrix(X), constraints=pairs)
    assert stored.chosen_ == "kernel-bwdr"
    assert sparse.issparse(stored._other._features.anchors)
    dense = PairLens(2, random_state=5).fit(X, constraints=pairs).transform(X)
    np.testing.assert_allclose(stored.transform(sparse.csr_matrix(X)), dense, atol=1e-6 * np.abs(dense).max())


@quiet
@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize("cls", LENSES)
def test_repeated_rows_do_no_harm(wine, cls, n_components):
    X, y, pairs = wine
    many = np.repeat(X, 12, axis=0)
    spaced = Constraints(12 * pairs.must_link, 12 * pairs.cannot_link, len(many))
    model = cls(n_components, random_state=0).fit(many, constraints=spaced)
    Z = model.transform(many)
    assert np.isfinite(Z).all()
    assert model.score(X, y) > 0.85
    np.testing.assert_allclose(Z, np.repeat(Z[::12], 12, axis=0), atol=1e-9 * np.abs(Z).max())


@quiet
@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("cls", LENSES)
def test_very_few_rows(cls, n_components):
    X = np.random.default_rng(0).standard_normal((4, 3))
    pairs = Constraints([(0, 1)], [(0, 2)], 4)
    Z = cls(n_components, random_state=0).fit_transform(X, constraints=pairs)
    assert np.isfinite(Z).all()
    assert Z.shape[0] == 4


@pytest.mark.parametrize(
    "seed", [0, np.random.RandomState(0), np.random.default_rng(0)], ids=["int", "state", "generator"]
)
@pytest.mark.parametrize("cls", LENSES)
def test_the_same_seed_gives_the_same_view(wine, cls, seed):
    X, _, pairs = wine
    noisy = pairs.flip(0.1, random_state=0)
    first, again = (clone(cls(3, random_state=seed)).fit(X, constraints=noisy) for _ in range(2))
    assert first.purity_ == again.purity_
    np.testing.assert_array_equal(first.transform(X), again.transform(X))
    np.testing.assert_array_equal(first.suspicious_pairs().pairs, again.suspicious_pairs().pairs)


@pytest.mark.parametrize("cls", LENSES)
def test_scale_and_shift_of_features_do_not_matter(wine, cls):
    X, _, pairs = wine
    rng = np.random.default_rng(0)
    scaled = X * rng.uniform(0.1, 100, X.shape[1]) + rng.uniform(-50, 50, X.shape[1])
    one, other = (cls(2, random_state=0).fit(rows, constraints=pairs).transform(rows) for rows in (X, scaled))
    assert_same_up_to_sign(other, one, 1e-5)
    for factor in (1e200, 1e-200):
        extreme = cls(2, random_state=0).fit(factor * X, constraints=pairs).transform(factor * X)
        assert_same_up_to_sign(extreme, one, 1e-5)


# ------------------------------------------------------------------------------------------------------------- errors


def test_errors_say_what_would_be_right(wine):
    X, _, pairs = wine
    with pytest.raises(ValueError, match="n_components=14 must be at most the number of features, 13"):
        LinearPairLens(14).fit(X, constraints=pairs)
    with pytest.raises(ValueError, match="n_components=178 must be less than the number of rows, 178"):
        PairLens(178).fit(X, constraints=pairs)
    for cls in LENSES:
        with pytest.raises(ValueError, match="X has no variation"):
            cls().fit(np.ones((20, 3)), constraints=Constraints([(0, 1)], [(2, 3)], 20))
        with pytest.raises(ValueError, match="'n_components' parameter"):
            cls("many").fit(X, constraints=pairs)
        with pytest.raises(ValueError, match="constraints are for 178 rows but X has 100"):
            cls().fit(X[:100], constraints=pairs)
    for bad in ({"spread": 1.0}, {"prior": 0.0}, {"prior": "strong"}, {"n_neighbors": 0}):
        with pytest.raises(ValueError, match=f"'{next(iter(bad))}' parameter"):
            LinearPairLens(**bad).fit(X, constraints=pairs)


@quiet
def test_more_directions_than_the_second_stage_has_is_a_warning(wine):
    X, _, pairs = wine
    with pytest.warns(SupervisionWarning, match="found 50 usable directions of the n_components=60"):
        model = PairLens(60, guard=False, random_state=0).fit(X, constraints=pairs)
    assert model.transform(X).shape == (178, 50)


# ------------------------------------------------------------------------------------------------------- many rows


@pytest.mark.parametrize("lens", [LinearPairLens(3), PairLens(2, guard=False), PairLens(3, guard=False)], ids=str)
def test_an_index_gives_the_view_of_the_exact_search(lens):
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 1200)
    X = 2 * rng.standard_normal((4, 10))[y] + rng.standard_normal((1200, 10))
    pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    exact, approx = (
        clone(lens).set_params(neighbors=how, random_state=0).fit(X, constraints=pairs) for how in ("exact", "approx")
    )
    assert approx.auc_ == pytest.approx(exact.auc_, abs=0.01)
    assert approx.score(X, y) == pytest.approx(exact.score(X, y), abs=0.01)
    views = [model.transform(X) - model.transform(X).mean(axis=0) for model in (exact, approx)]
    assert not np.array_equal(*views)
    if lens.n_components == 3:
        # Groups that no edge joins leave the order of the diffusion coordinates to rounding.
        assert subspace_angle(*(np.linalg.qr(view)[0].T for view in views)) < 0.05


def test_of_many_rows_some_are_judged_by(monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(lens_module, "JUDGED_ROWS", 300)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1200)
    X = 3 * np.eye(3, 8)[y] + rng.standard_normal((1200, 8))
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    every, some = (PairLens(2, neighbors=how, random_state=0).fit(X, constraints=pairs) for how in ("exact", "approx"))
    assert some.auc_ == pytest.approx(every.auc_, abs=0.05)
    given = sorted(np.concatenate([pairs.must_link, pairs.cannot_link]).tolist())
    assert sorted(some.suspicious_pairs().pairs.tolist()) == given
    assert some.score(X, y) == pytest.approx(every.score(X, y), abs=0.02)
