"""Held-out scores against what they mean, spelled out."""

from __future__ import annotations

import math
import time
import warnings

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import WBDR, WSDR, Constraints, PairLens, Preferences, RankSVM
from pairlens.judging import auc_standard_error, share_standard_error
from pairlens.metrics import pairwise_accuracy
from pairlens.selection import compare, held_out_accuracy, held_out_auc
from pairlens.selection.comparison import measured
from pairlens.selection.fitting import (
    build,
    cli_name,
    fit_model,
    learns_from,
    method_class,
    method_names,
    takes_dimension,
)

RNG = np.random.default_rng(0)
Y = np.repeat(np.arange(3), 30)
X = RNG.standard_normal((90, 6)) + 2 * np.eye(3, 6)[Y]
PAIRS = Constraints.from_labels(Y, n_pairs=60, random_state=0)
ORDER = Preferences.from_scores(Y, n_pairs=40, random_state=0)


def slow_auc(Z, pairs):
    """The share of comparisons of a must-link with a cannot-link in which the must-link is shorter."""
    wins = total = 0.0
    for a, b in pairs.must_link:
        for c, d in pairs.cannot_link:
            near, far = np.linalg.norm(Z[a] - Z[b]), np.linalg.norm(Z[c] - Z[d])
            wins += 1.0 if near < far else 0.5 if near == far else 0.0
            total += 1
    return wins / total


def test_each_fold_is_a_fit_without_its_pairs():
    result = held_out_auc(WBDR(2), X, PAIRS, n_splits=4, random_state=3)
    expected = [
        slow_auc(WBDR(2).fit(X, constraints=train).transform(X), rest) for train, rest in PAIRS.split(4, random_state=3)
    ]
    np.testing.assert_allclose(result.folds[:4], expected)
    assert len(result.folds) == 8, "few pairs are held out twice"
    assert result.mean == pytest.approx(np.mean(result.folds))


def test_the_model_is_left_alone():
    model = make_pipeline(StandardScaler(), WBDR(2))
    held_out_auc(model, X, PAIRS)
    assert not hasattr(model[-1], "components_")


def test_a_model_that_takes_no_pairs_is_judged_too():
    result = held_out_auc(PCA(2), X, PAIRS)
    Z = PCA(2).fit_transform(X)
    np.testing.assert_allclose(result.folds[:5], [slow_auc(Z, rest) for _, rest in PAIRS.split(5, random_state=0)])


@pytest.mark.parametrize(("n_must", "n_cannot", "folds"), [(2, 40, 4), (3, 3, 6), (1, 40, 0), (0, 5, 0), (40, 1, 0)])
def test_few_pairs(n_must, n_cannot, folds):
    """Every fold has both kinds, or there is none."""
    known = Constraints.from_labels(Y)
    must, cannot = (np.random.default_rng(1).permutation(part) for part in (known.must_link, known.cannot_link))
    few = Constraints(must[:n_must], cannot[:n_cannot], n_samples=90)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = held_out_auc(WBDR(2), X, few)
    assert len(result.folds) == folds
    assert math.isnan(result.mean) == math.isnan(result.standard_error) == (folds == 0)


def test_labels_imply_more_pairs_than_are_used():
    many = np.tile(Y, 4)
    rows = np.tile(X, (4, 1)) + 1e-3 * RNG.standard_normal((360, 6))
    result = held_out_auc(WBDR(2), rows, Constraints.from_labels(many), n_splits=2)
    assert len(result.folds) == 2
    assert result.standard_error < 0.01


def test_preferences_are_handed_on():
    judged = held_out_auc(WSDR(2, random_state=0), X, PAIRS, preferences=ORDER, n_splits=2)
    view = WSDR(2, random_state=0).fit(X, preferences=ORDER).transform(X)
    expected = [slow_auc(view, rest) for _, rest in PAIRS.split(2, random_state=0)]
    np.testing.assert_allclose(judged.folds[:2], expected)


def test_accuracy_on_preferences():
    result = held_out_accuracy(RankSVM(C=1.0), X, ORDER, n_splits=4)
    expected = [
        pairwise_accuracy(RankSVM(C=1.0).fit(X, preferences=train).decision_function(X), rest)
        for train, rest in ORDER.split(4, random_state=0)
    ]
    np.testing.assert_allclose(result.folds, expected)
    assert not held_out_accuracy(RankSVM(C=1.0), X, Preferences([(0, 1)], n_samples=90)).folds
    with pytest.raises(ValueError, match="WBDR does not learn from preferences"):
        held_out_accuracy(WBDR(2), X, ORDER)


@pytest.mark.parametrize(("shift", "n_must", "n_cannot"), [(0.0, 20, 20), (1.0, 15, 60), (2.0, 100, 40)])
def test_the_standard_error_is_that_of_repeated_draws(shift, n_must, n_cannot):
    rng = np.random.default_rng(0)
    near, far = rng.standard_normal((4000, n_must)), rng.standard_normal((4000, n_cannot)) + shift
    aucs = np.array([np.mean(a[:, None] < b) for a, b in zip(near, far)])
    found = auc_standard_error(float(aucs.mean()), n_must, n_cannot)
    assert found == pytest.approx(aucs.std(), rel=0.2)


def test_few_perfect_answers_are_no_certainty():
    assert auc_standard_error(1.0, 5, 5) > 0.05
    assert auc_standard_error(0.0, 5, 5) == auc_standard_error(1.0, 5, 5)
    assert share_standard_error(1.0, 5) > 0.05


def test_compare():
    models = {"wbdr": WBDR(2), "pca": PCA(2), "none": build("none"), "broken": WBDR(99)}
    steps = []
    found = {
        entry.name: entry for entry in compare(models, X, constraints=PAIRS, on_step=lambda *step: steps.append(step))
    }
    assert list(found) == list(models)
    assert found["wbdr"].score == held_out_auc(models["wbdr"], X, PAIRS)
    assert found["pca"].score.mean == pytest.approx(slow_auc(PCA(2).fit_transform(X), PAIRS))
    assert found["none"].score.mean == pytest.approx(slow_auc(X, PAIRS))
    assert [found[name].n_components for name in ("wbdr", "pca", "none")] == [2, 2, 6]
    assert found["wbdr"].cost.seconds > 0
    assert [verdict.other for verdict in found["wbdr"].verdicts] == ["pca", "none"]
    assert not found["pca"].verdicts
    assert found["broken"].error.argument == "n_components"
    assert found["broken"].score is None
    assert [step for step in steps if step[0] == "wbdr"] == [("wbdr", 0, 6), *(("wbdr", k, 11) for k in range(1, 11))]
    with pytest.raises(ValueError, match="one of them"):
        list(compare(models, X, constraints=PAIRS, preferences=ORDER))


def test_pipelines_are_fitted_with_what_their_last_step_takes():
    assert learns_from(make_pipeline(StandardScaler(), PairLens())) == {"constraints"}
    assert learns_from(make_pipeline(StandardScaler(), WSDR())) == {"preferences"}
    assert learns_from(PCA()) == frozenset()
    piped = fit_model(make_pipeline(StandardScaler(), WBDR(2)), X, PAIRS, ORDER)
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(piped.transform(X), WBDR(2).fit(scaled, constraints=PAIRS).transform(scaled))


def test_memory_is_that_of_the_call():
    if measured(lambda: None)[1].memory is None:
        pytest.skip("the system does not tell the memory of a process")

    def hold() -> None:
        rows = np.ones(8 << 20)
        time.sleep(0.1)  # Memory is looked at now and then.
        assert rows[-1] == 1

    for _ in range(2):  # Again, when the memory could be taken from what was freed.
        assert 60 << 20 <= (measured(hold)[1].memory or 0) <= 90 << 20


def test_names_are_distinct_and_lead_back():
    names = method_names()
    assert len(set(names)) == len(set(names.values())) >= 25
    for name, cls in names.items():
        assert cli_name(cls) == name
        assert method_class(name).__name__ == method_class(cls).__name__ == cls
        assert method_class(name.upper().replace("-", "_")) is method_class(name)
    with pytest.raises(ValueError, match=r"there is no method 'pairlense'; did you mean pairlens"):
        method_class("pairlense")
    with pytest.raises(ValueError, match=r"there are bwdr, cfld"):
        method_class("12345")


def test_who_finds_the_number_of_directions():
    assert takes_dimension(method_class("pairlens"), "auto")
    assert not takes_dimension(method_class("wbdr"), "auto")
