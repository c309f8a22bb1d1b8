"""LinearPairLens and PairLens with few or bad pairs, and what they say about themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pairlens import Constraints, LinearPairLens, PairLens, Triplets
from pairlens.exceptions import SupervisionWarning
from pairlens.judging import HeldOutDistances, auc_standard_error, held_out, suspicious_pairs
from pairlens.judging.calibration import MISTAKES, fit_with_mistakes
from tests.methods.cases import lists
from tests.methods.pairlens.cases import LENSES, oracle_folds
from tests.oracles import pairlens as oracle
from tests.oracles import subspace_angle

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


@pytest.mark.parametrize(("cls", "fewest"), [(LinearPairLens, 2), (PairLens, 5)])
def test_too_few_pairs_cannot_be_judged(wine, cls, fewest):
    X, _, pairs = wine
    few = Constraints(pairs.must_link[: fewest - 1], pairs.cannot_link, len(X))
    with pytest.raises(ValueError, match=f"at least {fewest} must-links and {fewest} cannot-links"):
        cls().fit(X, constraints=few).suspicious_pairs()
    enough = Constraints(pairs.must_link[:fewest], pairs.cannot_link, len(X))
    assert len(cls(random_state=0).fit(X, constraints=enough).suspicious_pairs()) == enough.n_pairs


@pytest.mark.parametrize(
    ("constraints", "triplets", "error", "words"),
    [
        (None, Triplets([(0, 1, 2)], 10), ValueError, "triplets are for 10 rows but X has 20"),
        (Constraints([(0, 1)], n_samples=20), Triplets([(0, 1, 2)], 10), ValueError, "triplets are for 10 rows"),
        (Constraints([(0, 1)], n_samples=30), Triplets([(0, 1, 2)], 20), ValueError, "constraints are for 30 rows"),
        (None, Triplets([(0, 1, 32)]), ValueError, r"triplets\[0\] is \(0, 1, 32\)"),
        ([(0, 1)], Triplets([(0, 1, 2)], 20), TypeError, "constraints must be a pairlens.Constraints, got list"),
    ],
)
def test_an_error_names_what_does_not_fit_the_rows(constraints, triplets, error, words):
    X = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(error, match=words):
        LinearPairLens().fit(X, constraints=constraints, triplets=triplets)
