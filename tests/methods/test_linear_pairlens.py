"""LinearPairLens against the dense oracle, and what its probabilities do not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlens import Constraints, LinearPairLens, Triplets
from pairlens._sklearn import as_generator
from pairlens.exceptions import SupervisionWarning
from pairlens.judging import HeldOutDistances, PairFolds, auc_standard_error, held_out, suspicious_pairs
from pairlens.judging.probability import MISTAKES, fit_with_mistakes
from pairlens.learning.learner import CAUTIOUS
from tests.learning.cases import lists, places, problem
from tests.methods.cases import quiet
from tests.oracles import learning as oracle
from tests.oracles import subspace_angle

contradicted = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
"""Wrong answers may contradict others."""


def real_part(real_data, name, n=150):
    X, y = real_data(name)
    chosen = np.random.default_rng(0).permutation(len(X))[:n]
    return X[chosen], y[chosen]


def of_the_oracle(X, model, known):
    """The whitened rows and the weighted directions with the prior that the model chose."""
    prior = model.prior_.shape, model.prior_.spread, model.prior_.strength
    found = oracle.whitened(oracle.scaled(X) if model.standardize else X)
    return found, *oracle.directions(*oracle.matrices(found, *lists(known), prior), model.n_components_), prior


def assert_same_up_to_sign(found, expected, tolerance=1e-7):
    assert found.shape == expected.shape
    signs = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=tolerance * np.abs(expected).max())


# --------------------------------------------------------------------------------------------------------------- oracle


@pytest.mark.parametrize("name", ["wine", "seeds", "wdbc"])
@pytest.mark.parametrize(
    ("prior", "n_components"), [("auto", 2), ("iso", 1), ("local", 5), ("near", 3), ("rows", 2), ("white", 2)]
)
def test_the_view_is_that_of_the_oracle(real_data, name, prior, n_components):
    X, y = real_part(real_data, name)
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=1).flip(0.1, random_state=1)
    model = LinearPairLens(n_components, prior=prior, random_state=0).fit(X, constraints=pairs)
    assert model.prior_.shape in ({"near", "iso", "local"} if prior == "auto" else {prior})
    assert round(model.prior_.strength * max(model.purity_, 0.1), 9) in (1, 2, 3)
    assert prior == "auto" or model.prior_.spread == 0
    found, mu, V, _ = of_the_oracle(X, model, pairs)
    np.testing.assert_allclose(model.eigenvalues_, mu, rtol=1e-7)
    assert_same_up_to_sign(model.transform(X), found.rows @ V)


@pytest.mark.parametrize("n_pairs", [24, 60])
def test_held_out_pairs_choose_the_prior_and_give_the_auc_of_the_oracle(wine, n_pairs):
    X, y, _ = wine
    X, y = X[::2], y[::2]
    pairs = Constraints.from_labels(y, n_pairs=n_pairs, random_state=2).flip(0.1, random_state=2)
    model = LinearPairLens(2, random_state=3).fit(X, constraints=pairs)
    found = oracle.whitened(oracle.scaled(X))
    # Folds go by the ranks of the lengths of the whitened rows.
    lengths = (found.rows**2).sum(axis=1)
    rng = as_generator(3)
    draws = [places(PairFolds.draw(pairs, 5, rng, keys=lengths)) for _ in range(2)]
    expected, _ = oracle.chosen_prior(found, *lists(pairs), draws)
    assert (model.prior_.shape, model.prior_.spread, model.prior_.strength) == pytest.approx(expected)
    assert model.auc_ == pytest.approx(oracle.held_out_auc(found, *lists(pairs), expected, draws[0], 2), abs=1e-9)
    assert model.auc_error_ == auc_standard_error(model.auc_, pairs.n_must_link, pairs.n_cannot_link)


def test_auto_takes_the_fewest_directions_within_one_standard_error(wine):
    X, pairs = wine[0][::2], Constraints.from_labels(wine[1][::2], n_pairs=60, random_state=0)
    model = LinearPairLens("auto", random_state=0).fit(X, constraints=pairs)
    found, _, _, prior = of_the_oracle(X, model, pairs)
    folds = places(PairFolds.draw(pairs, 5, as_generator(0), keys=(found.rows**2).sum(axis=1)))
    scores = [oracle.held_out_auc(found, *lists(pairs), prior, folds, d) for d in range(1, 14)]
    margin = auc_standard_error(0.5, pairs.n_must_link, pairs.n_cannot_link)
    expected = 1 + int(np.argmax(np.array(scores) >= max(scores) - margin))
    assert model.n_components_ == expected == len(model.components_) == len(model.eigenvalues_)
    assert model.auc_ == pytest.approx(scores[expected - 1], abs=1e-9)
    asked = LinearPairLens(expected, random_state=0).fit(X, constraints=pairs)
    np.testing.assert_allclose(model.components_, asked.components_, rtol=1e-9)


def test_auto_sees_how_many_directions_separate():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 600)
    X = rng.standard_normal((600, 12))
    X[:, :4] += 7 * np.vstack([np.eye(4), np.zeros(4)])[y]
    pairs = Constraints.from_labels(y, n_pairs=600, random_state=0)
    assert LinearPairLens("auto", random_state=0).fit(X, constraints=pairs).n_components_ in (3, 4)


def test_no_pairs_is_the_prior_alone(wine):
    X, _, _ = wine
    with pytest.warns(SupervisionWarning, match="LinearPairLens: no pairs were given"):
        model = LinearPairLens(2).fit(X)
    assert model.prior_ == CAUTIOUS
    found, mu, V, _ = of_the_oracle(X, model, Constraints(n_samples=len(X)))
    np.testing.assert_allclose(model.eigenvalues_, mu, rtol=1e-8)
    assert_same_up_to_sign(model.transform(X), found.rows @ V)


@pytest.mark.parametrize("kind", ["must", "cannot"])
def test_one_kind_of_pairs_is_the_oracle(wine, kind):
    X, _, pairs = wine
    known = Constraints(pairs.must_link if kind == "must" else [], pairs.cannot_link if kind == "cannot" else [], 178)
    model = LinearPairLens(2).fit(X, constraints=known)
    assert model.prior_ == CAUTIOUS
    assert np.isnan(model.auc_)
    found, _, V, _ = of_the_oracle(X, model, known)
    assert_same_up_to_sign(model.transform(X), found.rows @ V)


def test_more_directions_than_coordinates_are_kept_of_rows_with_more(wine):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 130))
    pairs = Constraints.from_labels(rng.integers(0, 2, 150), n_pairs=20, random_state=0)
    assert LinearPairLens(120, random_state=0).fit(X, constraints=pairs).transform(X).shape == (150, 120)
    flat = np.column_stack([wine[0], wine[0] @ rng.standard_normal((13, 4))])
    with pytest.warns(SupervisionWarning, match="found 13 usable directions of the n_components=15"):
        model = LinearPairLens(15, random_state=0).fit(flat, constraints=wine[2])
    assert model.n_components_ == 13


# ------------------------------------------------------------------------------------------------------- invariance


def draw(seed, kinds=("tall", "rare values", "constant columns", "wide")):
    X, _, pairs = problem(kinds[seed % len(kinds)], seed=seed)
    return np.random.default_rng(seed), X, pairs.flip(0.1, random_state=seed)


def probabilities(X, pairs, rows=None, *, n_components=2, cls=LinearPairLens, **parameters):
    model = cls(n_components, random_state=3, **parameters).fit(X, constraints=pairs)
    rows = X if rows is None else rows
    return model.pair_proba(rows[:30], rows[5:35])


def rotation(rng, f):
    return np.linalg.qr(rng.standard_normal((f, f)))[0]


DIMENSIONS = st.sampled_from([1, 2, 4, "auto"])


@quiet
@contradicted
@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), standardize=st.booleans(), n_components=DIMENSIONS)
def test_a_white_prior_knows_no_linear_map(seed, standardize, n_components):
    rng, X, pairs = draw(seed, kinds=("tall", "rare values", "constant columns"))
    f = X.shape[1]
    A = rotation(rng, f) * rng.uniform(0.3, 3, f) @ rotation(rng, f)
    parameters = {"prior": "white", "standardize": standardize, "n_components": n_components}
    expected = probabilities(X, pairs, **parameters)
    np.testing.assert_allclose(probabilities(X @ A + rng.standard_normal(f), pairs, **parameters), expected, atol=1e-6)


@contradicted
def test_a_white_prior_needs_more_rows_than_independent_features():
    _, X, pairs = draw(0, kinds=("wide",))
    with pytest.warns(SupervisionWarning, match="all 40 rows are equally far from one another"):
        LinearPairLens(2, prior="white", random_state=3).fit(X, constraints=pairs)


@quiet
@contradicted
@settings(max_examples=12)
@given(seed=st.integers(0, 10_000), n_components=DIMENSIONS)
def test_rotations_shifts_and_a_common_factor_do_not_matter(seed, n_components):
    rng, X, pairs = draw(seed)
    parameters = {"standardize": False, "n_components": n_components}
    expected = probabilities(X, pairs, **parameters)
    turned = X @ rotation(rng, X.shape[1]) + 10 * rng.standard_normal(X.shape[1])
    np.testing.assert_allclose(probabilities(turned, pairs, **parameters), expected, atol=1e-6)
    for factor in (1e-5, 1e7):
        np.testing.assert_allclose(probabilities(factor * X, pairs, **parameters), expected, atol=1e-6)


@quiet
@contradicted
@settings(max_examples=12)
@given(seed=st.integers(0, 10_000), n_components=DIMENSIONS)
def test_units_of_standardized_columns_do_not_matter(seed, n_components):
    rng, X, pairs = draw(seed)
    f = X.shape[1]
    other = X * 10.0 ** rng.uniform(-2, 2, f) * rng.choice([-1, 1], f) + rng.standard_normal(f)
    expected = probabilities(X, pairs, n_components=n_components)
    np.testing.assert_allclose(probabilities(other, pairs, n_components=n_components), expected, atol=1e-6)


@quiet
@contradicted
@settings(max_examples=12)
@given(seed=st.integers(0, 10_000), n_components=DIMENSIONS)
def test_the_order_of_rows_and_pairs_does_not_matter(seed, n_components):
    rng, X, pairs = draw(seed)
    expected = probabilities(X, pairs, n_components=n_components)
    order = rng.permutation(len(X))
    back = np.argsort(order)
    must, cannot = (rng.permutation(rng.permuted(back[of], axis=1)) for of in (pairs.must_link, pairs.cannot_link))
    moved = Constraints(must, cannot, len(X))
    np.testing.assert_allclose(probabilities(X[order], moved, X, n_components=n_components), expected, atol=1e-6)


@quiet
@contradicted
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_a_pair_said_twice_is_a_pair_of_weight_two(seed):
    rng, X, pairs = draw(seed)
    must, cannot = lists(pairs)
    twice = rng.random(len(must)) < 0.5
    said = Constraints([*must, *(pair[::-1] for pair, again in zip(must, twice) if again)], cannot, len(X))
    weighed = Constraints(must, cannot, len(X), must_link_weight=1.0 + twice)
    np.testing.assert_allclose(probabilities(X, said), probabilities(X, weighed), atol=1e-12)


# ------------------------------------------------------------------------------------------------ suspicion, triplets


def test_suspicion_is_that_of_models_fitted_to_other_answers(wine):
    X, _, pairs = wine
    model = LinearPairLens(3, random_state=7).fit(X, constraints=pairs)
    squared = np.concatenate([model._held_out.must, model._held_out.cannot])
    roots = np.sqrt(np.sqrt(squared[:, [0, 1, 2]]))
    same = np.arange(len(roots)) < pairs.n_must_link
    fold = np.random.default_rng(0).permutation(len(roots)) % 3
    probable = fit_with_mistakes(roots, same, np.ones(len(roots)), penalty=1.0)[1]
    fitted_to_others = []
    for k in range(3):
        others = fold != k
        fitted_to_others.append(fit_with_mistakes(roots[others], same[others], np.ones(others.sum()), penalty=1.0)[0])
    expected = {}
    for place, pair in enumerate(np.concatenate([pairs.must_link, pairs.cannot_link])):
        wrong = 0.0
        for e, chance, truth in zip(MISTAKES, probable, fitted_to_others[fold[place]]):
            right = truth(roots[[place]])[0] if same[place] else 1 - truth(roots[[place]])[0]
            wrong += chance * e * (1 - right) / (e * (1 - right) + (1 - e) * right)
        expected[tuple(pair)] = wrong
    found = model.suspicious_pairs()
    np.testing.assert_allclose(found.suspicion, [expected[tuple(p)] for p in found.pairs], atol=1e-9)


def test_where_distance_misleads_nothing_is_taken_for_a_mistake_by_it():
    """Slopes cannot be negative: where must-links are the longer ones, only the numbers of each kind count."""
    rng = np.random.default_rng(0)
    known = Constraints([(0, i) for i in range(1, 21)], [(21, i) for i in range(22, 42)], 42)
    distances = HeldOutDistances(1 + rng.random((20, 1)), rng.random((20, 1)), known)
    found = suspicious_pairs(distances)
    np.testing.assert_allclose(found.suspicion, found.suspicion[0], atol=0.05)
    assert len(found.standing_out) == 0


def test_of_many_implied_pairs_some_are_judged(wine, monkeypatch):
    X, y, _ = wine
    monkeypatch.setattr(held_out, "MAX_PAIRS", 500)
    found = LinearPairLens(random_state=0).fit(X, y).suspicious_pairs()
    assert len(found) == 500
    np.testing.assert_array_equal(y[found.pairs[:, 0]] == y[found.pairs[:, 1]], found.link > 0)


def test_suspicious_pairs_as_a_table(wine):
    pytest.importorskip("pandas")
    X, _, pairs = wine
    frame = LinearPairLens(random_state=0).fit(X, constraints=pairs).suspicious_pairs().to_frame()
    assert frame.columns.tolist() == ["a", "b", "link", "suspicion"]
    assert frame["link"].value_counts().to_dict() == {"must": pairs.n_must_link, "cannot": pairs.n_cannot_link}


@quiet
def test_triplets_are_pairs_that_add_to_others(wine):
    X, _, pairs = wine
    triplets = Triplets([(0, 5, 80), (100, 101, 3), (150, 160, 20)], len(X))
    alone = LinearPairLens(2, random_state=0).fit(X, triplets=triplets)
    read = LinearPairLens(2, random_state=0).fit(X, constraints=triplets.to_constraints())
    np.testing.assert_array_equal(alone.components_, read.components_)
    both = LinearPairLens(2, random_state=0).fit(X, constraints=pairs, triplets=triplets)
    merged = LinearPairLens(2, random_state=0).fit(X, constraints=pairs.merge(triplets.to_constraints()))
    np.testing.assert_array_equal(both.components_, merged.components_)
    assert subspace_angle(both.components_, alone.components_) > 0.01


@pytest.mark.parametrize(
    ("constraints", "triplets", "error", "words"),
    [
        (None, Triplets([(0, 1, 2)], 10), ValueError, "triplets must be for 20 rows, as many as X has; got 10"),
        (Constraints([(0, 1)], n_samples=20), Triplets([(0, 1, 2)], 10), ValueError, "triplets must be for 20 rows"),
        (Constraints([(0, 1)], n_samples=30), Triplets([(0, 1, 2)], 20), ValueError, "constraints must be for 20 rows"),
        (
            None,
            Triplets([(0, 1, 32)]),
            ValueError,
            r"triplets\[0\] must hold row numbers from 0 to 19.*got \(0, 1, 32\)",
        ),
        ([(0, 1)], Triplets([(0, 1, 2)], 20), TypeError, "constraints must be a pairlens.Constraints, got list"),
    ],
)
def test_an_error_names_what_does_not_fit_the_rows(constraints, triplets, error, words):
    X = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(error, match=words):
        LinearPairLens().fit(X, constraints=constraints, triplets=triplets)


@pytest.mark.parametrize("bad", [{"prior": "strong"}, {"prior": 1.0}, {"neighbors": "some"}, {"standardize": "auto"}])
def test_parameters_that_do_not_exist(wine, bad):
    with pytest.raises(ValueError, match=f"'{next(iter(bad))}' parameter of LinearPairLens"):
        LinearPairLens(**bad).fit(wine[0], constraints=wine[2])
