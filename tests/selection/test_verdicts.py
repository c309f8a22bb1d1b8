"""Whether one view is called better than another, and how sure that is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine

from pairlens import Constraints, PairLens, PairMap, view_pipeline
from pairlens.datasets import load_penguins
from pairlens.judging import HeldOutScore, auc
from pairlens.selection import JudgedPairs, Verdict, verdicts
from pairlens.selection.comparison import judge_view, views_without_pairs
from pairlens.selection.fitting import fit_model

SCORE = HeldOutScore(float("nan"), float("nan"), ())


def judged(n: int, noise: float, seed: int = 0) -> tuple[JudgedPairs, np.ndarray, np.ndarray]:
    """Pairs of rows on a line, half of them said to belong together, and two views: the line and a noisy one."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((4 * n, 1))
    pairs = np.arange(4 * n).reshape(-1, 2)[:n]
    distance = np.abs(rows[pairs[:, 0]] - rows[pairs[:, 1]])[:, 0]
    same = distance < np.median(distance)
    together = 1 / (1 + np.exp(4 * (distance - np.median(distance))))
    return JudgedPairs(pairs, same, together, SCORE), rows, rows + noise * rng.standard_normal(rows.shape)


def test_the_difference_is_that_of_the_auc():
    pairs, rows, noisy = judged(80, 1.0)
    same, other = verdicts(pairs, {"same": rows, "noisy": noisy})
    distance = np.abs(noisy[pairs.pairs[:, 0]] - noisy[pairs.pairs[:, 1]])[:, 0]
    assert same.difference == pytest.approx(0.0)
    assert other.difference == pytest.approx(1.0 - auc(distance[pairs.same], distance[~pairs.same]))
    assert str(other) == f"better than noisy by {other.difference:.2f} ± {other.standard_error:.2f}"
    assert str(same).startswith("too few pairs to tell from same (+0.00 ± 0.00)")


def test_pairs_of_different_folds_are_not_compared():
    """The models of two folds have each learned from the other's pairs, and may be calibrated differently."""
    pairs, rows, noisy = judged(80, 1.0)
    fold = np.arange(80) % 2
    shifted = replace(pairs, together=pairs.together / 2 + fold / 2)
    one = verdicts(shifted, {"noisy": noisy})[0]
    two = verdicts(replace(shifted, fold=fold), {"noisy": noisy, "same": rows})
    assert one.difference < two[0].difference
    assert two[1].difference == pytest.approx(0.0)
    distance = np.abs(rows[pairs.pairs[:, 0]] - rows[pairs.pairs[:, 1]])[:, 0]
    assert auc(distance[pairs.same], distance[~pairs.same]) == 1.0
    assert two[0].standard_error == pytest.approx(one.standard_error)
    # A fold with one kind of pairs only has nothing to compare.
    assert verdicts(replace(pairs, fold=pairs.same.astype(int)), {"same": rows})[0].difference == pytest.approx(0.0)


def test_a_map_tells_the_fold_of_each_pair():
    pytest.importorskip("openTSNE")
    X, y = load_wine(return_X_y=True)
    options = {"max_iter": 1, "early_exaggeration_iter": 1, "random_state": 0}
    few = PairMap(**options).fit(X, constraints=Constraints.from_labels(y, n_pairs=40, random_state=0))
    found = JudgedPairs.of_fit(few)
    assert np.bincount(found.fold).tolist() == [8] * 5
    assert len(found.suspicious.standing_out.fold) == len(found.suspicious.standing_out)
    # With many pairs to a row, rows are held out, and a pair may be in two folds.
    assert JudgedPairs.of_fit(PairMap(**options).fit(X, y)).fold is None


def test_the_standard_error_is_that_of_a_bootstrap():
    pairs, _, noisy = judged(120, 1.0)
    found = verdicts(pairs, {"noisy": noisy})[0].standard_error
    distance = np.abs(noisy[pairs.pairs[:, 0]] - noisy[pairs.pairs[:, 1]])[:, 0]
    rng, drawn = np.random.default_rng(0), []
    for _ in range(500):
        k = rng.integers(120, size=120)
        same, mine, theirs = pairs.same[k], -pairs.together[k], distance[k]
        drawn.append(auc(mine[same], mine[~same]) - auc(theirs[same], theirs[~same]))
    assert found == pytest.approx(np.std(drawn), rel=0.1)


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")
def test_the_control_sees_columns_scaled_as_the_method_scales_them():
    penguins = load_penguins()
    X = penguins.data[~np.isnan(penguins.data).any(axis=1)]
    units = np.array([1.0, 1000.0, 0.01, 3.0])
    found = [views_without_pairs(PairLens(2).fit(rows), rows, 0)[0].Z for rows in (X, X * units)]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-9)
    kept = [views_without_pairs(PairLens(2, standardize=False).fit(rows), rows, 0)[0].Z for rows in (X, X * units)]
    assert np.abs(kept[1] - kept[0]).max() > 1


def test_few_pairs_of_a_kind_tell_nothing():
    assert not Verdict("PCA", 0.5, 0.01, 7).tells
    assert Verdict("PCA", 0.5, 0.01, 8).tells
    assert not Verdict("PCA", 0.5, 0.26, 8).tells
    one = JudgedPairs(np.array([[0, 1]]), np.array([True]), np.array([0.5]), SCORE)
    assert not verdicts(one, {"PCA": np.eye(2)})[0].tells


def test_few_pairs_that_all_agree_leave_an_error():
    pairs, _, noisy = judged(16, 0.0)
    certain = verdicts(pairs, {"noisy": noisy})[0]
    assert certain.n_fewest == 8
    assert certain.standard_error == pytest.approx(0.1 / 8 * np.sqrt(8 / 7))


def test_pairs_that_labels_imply_count_less():
    """400 rows have 79,800 pairs, which say no more than 800 answers."""
    pairs, _, noisy = judged(80, 1.0)
    repeated = JudgedPairs(*(np.tile(each, (10, *(1,) * (each.ndim - 1))) for each in pairs_of(pairs)), SCORE)
    once, often = (verdicts(each, {"noisy": noisy})[0] for each in (pairs, repeated))
    assert often.difference == pytest.approx(once.difference)
    assert 0.4 * once.standard_error < often.standard_error < once.standard_error


def pairs_of(judged: JudgedPairs) -> tuple[np.ndarray, ...]:
    return judged.pairs, judged.same, judged.together


def test_penguins_by_34_pairs_are_never_misjudged_and_mostly_judged():
    """The map is better than PCA and t-SNE over all pairs; 34 of them say so six times of ten, and never otherwise."""
    pytest.importorskip("openTSNE")
    penguins = load_penguins(as_frame=True)
    rows, y = penguins.frame[penguins.feature_names], np.asarray(penguins.target)
    said = {"PCA": [], "t-SNE": []}
    for seed in range(10):
        known = Constraints.from_labels(y, n_pairs=34, random_state=seed)
        model = view_pipeline(rows, PairMap(max_iter=100, early_exaggeration_iter=50, random_state=0))
        judgement = judge_view(fit_model(model, rows, known), rows, constraints=known)
        for verdict in judgement.verdicts:
            said[verdict.other].append(np.sign(verdict.difference) if verdict.tells else 0)
    assert min(said["PCA"]) >= 0
    assert min(said["t-SNE"]) >= 0
    assert np.sum(said["PCA"]) >= 6
