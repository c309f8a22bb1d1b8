"""Folds, AUC, standard error and held-out distances against what they mean, spelled out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pairlens import Constraints, LinearPairLens, PairLens
from pairlens.judging import (
    PairFolds,
    auc,
    auc_standard_error,
    held_out_distances,
    pair_auc,
    share_standard_error,
    suspicious_pairs,
)

Y = np.repeat(np.arange(3), 20)
X = np.random.default_rng(0).standard_normal((60, 5)) + 1.5 * np.eye(3, 5)[Y]
PAIRS = Constraints.from_labels(Y, n_pairs=50, random_state=0)
GROUPS = Constraints.from_labels(np.where(np.arange(60) % 4 == 0, Y, -1))


def delong(must, cannot):
    """DeLong's variance of an AUC, from how each pair does against all of the other kind."""
    wins = (must[:, None] < cannot) + 0.5 * (must[:, None] == cannot)
    return np.sqrt(wins.mean(axis=1).var(ddof=1) / len(must) + wins.mean(axis=0).var(ddof=1) / len(cannot))


def test_auc_is_scikit_learns_ties_included():
    rng = np.random.default_rng(0)
    must, cannot = rng.integers(0, 8, 30).astype(float), rng.integers(3, 12, 50).astype(float)
    expected = roc_auc_score(np.repeat([1, 0], [30, 50]), -np.concatenate([must, cannot]))
    assert auc(must, cannot) == pytest.approx(expected)
    assert np.isnan(auc(must, cannot[:0]))


@pytest.mark.parametrize(("shift", "n_must", "n_cannot"), [(0.0, 60, 60), (1.0, 40, 120), (2.0, 150, 60)])
def test_the_standard_error_is_delongs_and_the_bootstraps(shift, n_must, n_cannot):
    rng = np.random.default_rng(1)
    by_delong, by_bootstrap, found = [], [], []
    for _ in range(20):
        must, cannot = rng.standard_normal(n_must), rng.standard_normal(n_cannot) + shift
        again = [auc(rng.choice(must, n_must), rng.choice(cannot, n_cannot)) for _ in range(200)]
        by_delong.append(delong(must, cannot))
        by_bootstrap.append(np.std(again))
        found.append(auc_standard_error(auc(must, cannot), n_must, n_cannot))
    assert np.mean(found) == pytest.approx(np.mean(by_delong), rel=0.15)
    assert np.mean(found) == pytest.approx(np.mean(by_bootstrap), rel=0.15)


@pytest.mark.parametrize(("n_must", "n_cannot"), [(1, 1), (4, 9), (30, 200)])
def test_the_standard_error_at_chance_is_that_of_mann_and_whitney(n_must, n_cannot):
    expected = np.sqrt((n_must + n_cannot + 1) / (12 * n_must * n_cannot))
    assert auc_standard_error(0.5, n_must, n_cannot) == pytest.approx(expected)
    assert np.isnan(auc_standard_error(0.5, 0, n_cannot))


@pytest.mark.parametrize("cls", [LinearPairLens, PairLens])
def test_an_estimator_says_the_same_error_as_the_library(cls):
    model = cls(2, random_state=0).fit(X, constraints=PAIRS)
    assert model.auc_error_ == auc_standard_error(model.auc_, PAIRS.n_must_link, PAIRS.n_cannot_link)


def test_the_error_of_a_share_is_the_binomial_one():
    assert share_standard_error(0.7, 10_000) == pytest.approx(np.sqrt(0.7 * 0.3 / 10_000), rel=1e-3)


@pytest.mark.parametrize("known", [PAIRS, GROUPS])
@pytest.mark.parametrize("n_splits", [2, 3])
def test_folds_over_rows_hold_out_every_pair_of_their_rows(known, n_splits):
    folds = PairFolds.draw_rows(known, n_splits, random_state=3)
    assert len(folds) == n_splits
    held_rows = []
    for train, rest in folds:
        assert train.n_must_link + rest.n_must_link == known.n_must_link
        assert train.n_cannot_link + rest.n_cannot_link == known.n_cannot_link
        out = set(known.rows) - set(train.rows)
        for a, b in np.concatenate([rest.must_link, rest.cannot_link]):
            assert a in out or b in out
        held_rows.append(out)
    assert set.union(*held_rows) == set(known.rows)
    again = PairFolds.draw_rows(known, n_splits, random_state=3)
    assert [rest.to_lists() for _, rest in folds] == [rest.to_lists() for _, rest in again]


def test_folds_over_rows_keep_weights_and_contradictions():
    known = Constraints(
        [(0, 1), (1, 2), (3, 4)], [(0, 2), (1, 3)], 5, must_link_weight=[1.0, 2.0, 3.0], on_conflict="drop"
    )
    for train, rest in PairFolds.draw_rows(known, 2, random_state=np.random.default_rng(0)):
        weight = dict(zip(map(tuple, known.must_link), known.must_link_weight))
        for part in (train, rest):
            assert [weight[tuple(pair)] for pair in part.must_link] == part.must_link_weight.tolist()


@pytest.mark.parametrize("draw", [PairFolds.draw, PairFolds.draw_rows])
def test_held_out_distances_are_those_of_the_folds(draw):
    """A pair that was held out twice has the mean of both distances."""
    folds = draw(PAIRS, 3, 0)

    def embed(train):
        return X[:, :3] * (1 + train.n_must_link)

    found = held_out_distances(embed, folds)
    for pairs, distance, kind in (
        (PAIRS.must_link, found.must, "must_link"),
        (PAIRS.cannot_link, found.cannot, "cannot_link"),
    ):
        assert distance.shape == (len(pairs), 3)
        for (a, b), values in zip(pairs, distance):
            expected = []
            for train, rest in folds:
                if (a, b) in map(tuple, getattr(rest, kind)):
                    Z = embed(train)
                    squared, variance = (Z[a] - Z[b]) ** 2, Z.var(axis=0)
                    expected.append([squared[:d].sum() / (2 * variance[:d].sum()) for d in (1, 2, 3)])
            np.testing.assert_allclose(values, np.mean(expected, axis=0))
    assert found.auc(2) == pytest.approx(pair_auc(X[:, :2], PAIRS))


def test_pairs_of_other_rows_and_no_pairs_are_named():
    view = np.zeros((3, 2))
    with pytest.raises(ValueError, match="constraints must be for 3 rows, as many as X has; got 5"):
        pair_auc(view, Constraints([(0, 4)], [(0, 1)], n_samples=5))
    with pytest.raises(TypeError, match=r"constraints must be a pairlens\.Constraints, got list"):
        pair_auc(view, [(0, 1)])


def test_no_answers_have_no_error():
    assert np.isnan(share_standard_error(0.5, 0))


def test_a_view_is_no_held_out_distances():
    with pytest.raises(TypeError, match=r"held_out must be HeldOutDistances, .* got LinearPairLens; PairLens"):
        suspicious_pairs(LinearPairLens())
