"""Probabilities of pairs: the definition spelled out, calibration on draws with a known truth, every estimator."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pairlens
from pairlens import BWDR, ITML, WBDR, WSDR, Constraints, KernelBWDR, KernelNullSpace, LinearPairLens, PairLens, PairMap
from pairlens._sklearn import as_generator
from pairlens.exceptions import ArgumentError
from pairlens.judging import HeldOutDistances, PairFolds, pair_proba
from pairlens.judging.held_out import distance_columns
from pairlens.judging.probability import PairProbability, SuspiciousPairs
from pairlens.methods.base import PairTransformer
from tests.estimators import all_estimators
from tests.oracles import learning
from tests.oracles import pairmap as oracle

Y = np.repeat(np.arange(3), 20)
X = np.random.default_rng(0).standard_normal((60, 5)) + 1.5 * np.eye(3, 5)[Y]
PAIRS = Constraints.from_labels(Y, n_pairs=60, random_state=0)
A, B = X[:20], X[10:30]
VIEWS = [cls for cls in all_estimators() if issubclass(cls, PairTransformer) and cls is not PairMap]


def fitted(cls):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls().fit(X, constraints=PAIRS)


def by_hand(model, known, folds):
    """The model of the class docstring, from views fitted without the pairs they measure."""
    columns, same = [], []
    for train, rest in folds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Z = clone(model).fit(X, constraints=train).transform(X)
        total = np.cumsum(Z.var(axis=0))
        for pairs, kind in ((rest.must_link, True), (rest.cannot_link, False)):
            for i, j in pairs:
                squared = np.cumsum((Z[i] - Z[j]) ** 2) / (2 * total)
                columns.append(np.sqrt(squared))
                same.append(kind)
    a, b = oracle.moderated(np.array(columns), same, 1.0)
    Z = model.transform(X)
    total = np.cumsum(Z.var(axis=0))
    squared = np.cumsum((model.transform(A) - model.transform(B)) ** 2, axis=1) / (2 * total)
    return 1 / (1 + np.exp(np.sqrt(squared) @ b - a))


@pytest.mark.parametrize(
    "model", [WBDR(2), KernelBWDR(2), ITML(2, random_state=0)], ids=lambda model: type(model).__name__
)
def test_probabilities_are_those_of_the_definition(model):
    model = clone(model).fit(X, constraints=PAIRS).calibrate(X, constraints=PAIRS)
    expected = by_hand(model, PAIRS, PairFolds.draw(PAIRS, 3, 0))
    np.testing.assert_allclose(model.pair_proba(A, B), expected, rtol=1e-6)


def test_linear_pairlens_learns_them_in_fit():
    """Of one prior, on folds that go by the lengths of the whitened rows."""
    model = LinearPairLens(2, prior="white", random_state=5).fit(X, constraints=PAIRS)
    assert model.is_calibrated
    # The strength that all pairs chose is that of every fold, so views are fitted by hand.
    found = learning.whitened(learning.scaled(X))
    prior = "white", 0.0, model.prior_.strength
    columns, same = [], []
    for train, rest in PairFolds.draw(PAIRS, 5, as_generator(5), keys=(found.rows**2).sum(axis=1)):
        within, between = learning.matrices(found, train.must_link.tolist(), train.cannot_link.tolist(), prior)
        Z = found.rows @ learning.directions(within, between, 2)[1]
        total = np.cumsum(Z.var(axis=0))
        for pairs, kind in ((rest.must_link, True), (rest.cannot_link, False)):
            for i, j in pairs:
                columns.append(np.sqrt(np.cumsum((Z[i] - Z[j]) ** 2) / (2 * total)))
                same.append(kind)
    a, b = oracle.moderated(np.array(columns), same, 1.0)
    total = np.cumsum(model.transform(X).var(axis=0))
    squared = np.cumsum((model.transform(A) - model.transform(B)) ** 2, axis=1) / (2 * total)
    np.testing.assert_allclose(model.pair_proba(A, B), 1 / (1 + np.exp(np.sqrt(squared) @ b - a)), rtol=1e-5)


@pytest.mark.parametrize("cls", VIEWS, ids=lambda cls: cls.__name__)
def test_every_view_tells_how_probable(cls):
    model = fitted(cls)
    if not model.is_calibrated:
        with pytest.raises(ValueError, match=r"not calibrated: call calibrate\(X, constraints=\.\.\.\) after fit"):
            model.pair_proba(A, B)
        model.calibrate(X, constraints=PAIRS)
    together = model.pair_proba(A, B)
    assert together.shape == (20,)
    assert ((together >= 0) & (together <= 1)).all()
    np.testing.assert_allclose(model.pair_proba(B, A), together, atol=1e-9)
    # To be fitted again is to be calibrated again, unless fit does both.
    assert fitted(cls).is_calibrated == (cls in (PairLens, LinearPairLens))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.fit(X, constraints=PAIRS).is_calibrated == (cls in (PairLens, LinearPairLens))


def test_all_that_learn_from_pairs_have_them():
    views = {cls for cls in all_estimators() if hasattr(cls, "transform")}
    from_pairs = {cls for cls in views if "constraints" in inspect.signature(cls.fit).parameters}
    # The null space of must-links is no view of its own: methods are fitted in it.
    assert from_pairs - {KernelNullSpace} == {*VIEWS, PairMap}


def test_probabilities_are_reliable():
    """Gaussian classes in one direction among noise: of the pairs that are called p, a share of p is the same."""
    gaps = []
    rng = np.random.default_rng(0)
    found, true = [], []
    for draw in range(10):
        y = rng.integers(0, 2, 400)
        rows = rng.standard_normal((400, 4))
        rows[:, 0] += 2.5 * y
        pairs = Constraints.from_labels(y[:200], n_pairs=200, random_state=draw)
        model = BWDR(1).fit(rows[:200], constraints=pairs).calibrate(rows[:200], constraints=pairs)
        a, b = rng.permutation(np.arange(200, 400)).reshape(2, 100)
        found.append(model.pair_proba(rows[a], rows[b]))
        true.append(y[a] == y[b])
    found, true = np.concatenate(found), np.concatenate(true)
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (found >= low) & (found < low + 0.25)
        if inside.sum() > 50:
            gaps.append(abs(found[inside].mean() - true[inside].mean()))
    assert len(gaps) >= 3
    assert max(gaps) < 0.1


def test_labels_are_held_out_by_rows():
    """Pairs of labelled rows imply one another; calibrating by them as if they did not would promise too much."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40)
    noise = rng.standard_normal((40, 30))
    model = BWDR(1).fit(noise, y).calibrate(noise, y)
    pairs = rng.permuted(np.tile(np.arange(40), (200, 1)), axis=1)[:, :2]
    together = model.pair_proba(noise[pairs[:, 0]], noise[pairs[:, 1]])
    assert together.max() < 0.75


def test_the_base_rate_moves_the_odds():
    """Twice the odds beforehand are twice the odds afterwards; that of the answers changes nothing."""
    model = WBDR(2).fit(X, constraints=PAIRS).calibrate(X, constraints=PAIRS)
    plain, share = model.pair_proba(A, B), PAIRS.n_must_link / PAIRS.n_pairs
    np.testing.assert_allclose(model.pair_proba(A, B, base_rate=share), plain)
    rare = model.pair_proba(A, B, base_rate=0.01)
    np.testing.assert_allclose(rare / (1 - rare), plain / (1 - plain) * (0.01 / 0.99) / (share / (1 - share)))
    with pytest.raises(ArgumentError) as refused:
        model.pair_proba(A, B, base_rate=0)
    assert (refused.value.argument, refused.value.value) == ("base_rate", 0)


def test_a_pipeline():
    scale, view = StandardScaler(), WBDR(2)
    Z = scale.fit_transform(X)
    view.fit(Z, constraints=PAIRS).calibrate(Z, constraints=PAIRS)
    np.testing.assert_array_equal(pair_proba(make_pipeline(scale, view), A, B), view.pair_proba(Z[:20], Z[10:30]))
    np.testing.assert_array_equal(pair_proba(make_pipeline(view), A, B), view.pair_proba(A, B))


def test_columns_are_the_first_directions():
    squared = np.arange(1.0, 15.0).reshape(2, 7) ** 2
    np.testing.assert_allclose(distance_columns(squared), np.arange(1.0, 15.0).reshape(2, 7)[:, [0, 1, 3, 6]])
    np.testing.assert_allclose(distance_columns(squared[:, :4]), np.arange(1.0, 15.0).reshape(2, 7)[:, [0, 1, 3]])


def test_a_view_without_variance_gives_the_share():
    known = Constraints([(0, 1)] * 0 + [(0, 1), (2, 3), (4, 5)], [(0, 2), (1, 3), (1, 5)], 6)
    flat = PairProbability.of(HeldOutDistances(np.zeros((3, 1)), np.zeros((3, 1)), known), np.zeros(1))
    np.testing.assert_allclose(flat(np.zeros((2, 1)), np.ones((2, 1))), 0.5)


def test_files_keep_them(tmp_path):
    model = WBDR(2).fit(X, constraints=PAIRS).calibrate(X, constraints=PAIRS)
    pairlens.save(model, tmp_path / "model.pairlens")
    again = pairlens.load(tmp_path / "model.pairlens")
    np.testing.assert_array_equal(again.pair_proba(A, B), model.pair_proba(A, B))


def test_what_is_wrong_is_said():
    must_only = Constraints(PAIRS.must_link, n_samples=60)
    with pytest.raises(NotFittedError):
        WBDR().pair_proba(A, B)
    with pytest.raises(NotFittedError):
        WBDR().calibrate(X, constraints=PAIRS)
    with pytest.raises(ValueError, match=f"3 must-links and 3 cannot-links, and got {PAIRS.n_must_link} and 0"):
        WBDR().fit(X, constraints=PAIRS).calibrate(X, constraints=must_only)
    with pytest.raises(ValueError, match="pair_proba needs at least 3 must-links and 3 cannot-links in fit"):
        PairLens(random_state=0).fit(X, constraints=must_only).pair_proba(A, B)
    with pytest.raises(ValueError, match="pair_proba needs at least 3 must-links and 3 cannot-links in fit"):
        LinearPairLens(random_state=0).fit(X, constraints=must_only).pair_proba(A, B)
    with pytest.raises(ArgumentError, match=r"^B must have 3 rows"):
        LinearPairLens(random_state=0).fit(X, constraints=PAIRS).pair_proba(X[:3], X[:2])
    with pytest.raises(ValueError, match="WSDR gives no probabilities of pairs"):
        pair_proba(WSDR(1).fit(X, Y), A, B)


def test_small_problems_are_solved_by_one_thread(monkeypatch):
    from threadpoolctl import threadpool_limits

    from pairlens.engines import blas_threads
    from pairlens.judging import probability

    solve, seen = probability.minimize, []

    def noted(*args, **options):
        seen.append(blas_threads())
        return solve(*args, **options)

    monkeypatch.setattr(probability, "minimize", noted)
    rng = np.random.default_rng(0)
    same = np.arange(40) < 20
    with threadpool_limits(limits=2):
        probability.fit_pair_model(rng.random((40, 2)) + ~same[:, None], same, np.ones(40))
    assert seen == [1]


def test_what_is_beyond_the_threshold_stands_out():
    suspicion, together = np.array([0.9, 0.51, 0.5, 0.1]), np.array([0.1, 0.6, 0.5, 0.2])
    found = SuspiciousPairs(np.arange(8).reshape(4, 2), np.array([1, -1, 1, -1]), suspicion, together, 0.5)
    out = found.standing_out
    assert out.pairs.tolist() == [[0, 1], [2, 3]]
    assert out.link.tolist() == [1, -1]
    assert out.suspicion.tolist() == [0.9, 0.51]
    assert out.together.tolist() == [0.1, 0.6]
    assert len(replace(found, threshold=0.9).standing_out) == 0
