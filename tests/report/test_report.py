"""What the report says of pairs, preferences and features is right."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import LPP, WBDR, WSDR, Constraints, KernelWBDR, LinearPairLens, PairLens, PairMap, Preferences, RankSVM
from pairlens._markup import number
from pairlens.methods.pairmap.layout import plain_map
from pairlens.metrics import pairwise_accuracy
from pairlens.report import _pairs
from pairlens.report._views import feature_weights, look
from pairlens.selection import held_out_auc
from pairlens.selection.comparison import judge_view
from pairlens.selection.fitting import fit_model
from tests.report.pages import PAIRS, X, page, unpacked, y

pytest.importorskip("plotly", reason="the report needs plotly: pip install 'pairlens[report]'")

pytestmark = pytest.mark.usefixtures("small_plotly")
TIMES = "\N{MULTIPLICATION SIGN}"


def test_a_map_is_shown_beside_pca_and_a_tsne_of_the_rows_alone():
    pytest.importorskip("openTSNE")
    model = PairMap(max_iter=50, early_exaggeration_iter=20, random_state=0).fit(X, constraints=PAIRS)
    shown = page(model, constraints=PAIRS, labels=y, n_splits=2)
    assert [view["key"] for view in shown.data["views"]] == ["view", "pca", "tsne"]
    alone = np.column_stack([shown.column(2, axis) for axis in range(2)])
    np.testing.assert_allclose(alone, plain_map(X), rtol=1e-5)
    assert all(len(lines["judged"]) == 3 for lines in shown.data["pairs"])
    for text in (
        "The view, beside that of PCA and of t-SNE",
        "t-SNE of the same rows",
        "PCA and t-SNE have their own",
    ):
        assert text in shown.words
    assert [view["key"] for view in page(WBDR(2).fit(X, constraints=PAIRS)).data["views"]] == ["view", "pca"]


def test_the_tsne_of_the_rows_alone_has_the_scale_of_the_map():
    pytest.importorskip("openTSNE")
    kept = PairMap(max_iter=50, early_exaggeration_iter=20, standardize=False, random_state=0).fit(X, constraints=PAIRS)
    shown = page(kept, constraints=PAIRS, n_splits=2)
    alone = np.column_stack([shown.column(2, axis) for axis in range(2)])
    np.testing.assert_allclose(alone, plain_map(X, standardize=False), rtol=1e-5)


# ---- what the answers decide


def shares_of(shown):
    """The widths of the bar, in percent, by space."""
    pairs = [(a[2], b[2]) for a, b in pairwise(shown.attributes) if a[:2] == ("i", "class") and a[2]]
    return {name[6:]: float(style[6:-1]) for name, style in pairs if name.startswith("space-")}


def test_a_map_says_how_much_the_answers_decide():
    pytest.importorskip("openTSNE")
    model = PairMap(max_iter=20, early_exaggeration_iter=10, random_state=0).fit(X, constraints=PAIRS)
    shown = page(model, constraints=PAIRS, n_splits=0)
    spaces = model.space_weights_
    said = (
        f"Your answers decide {1 - spaces['rows']['weight']:.0%} of this map. The rows alone would tell your held-out "
        f"pairs apart with AUC {spaces['rows']['auc']:.2f}; what the map has learned does with {model.auc_:.2f}."
    )
    assert said in shown.words
    widths = shares_of(shown)
    assert list(widths) == ["rows", "linear", "kernel", "diffusion"]
    assert sum(widths.values()) == pytest.approx(100, abs=0.1)
    for name, called in {"rows": "rows as they are", "linear": "linear", "kernel": "kernel"}.items():
        assert widths[name] == pytest.approx(100 * spaces[name]["weight"], abs=0.01)
        # The table says all that the bar shows, which screen readers pass over.
        assert f"{called} {spaces[name]['weight']:.0%} {spaces[name]['auc']:.2f}" in shown.words
    assert ("div", "aria-hidden", "true") in shown.attributes


def test_a_view_says_what_the_answers_have_taught():
    model = PairLens(random_state=0).fit(X, constraints=PAIRS)
    shown = page(model, constraints=PAIRS, n_splits=0)
    said = f"Your answers decide all of this view. It tells your held-out pairs apart with AUC {model.auc_:.2f}."
    assert said in shown.words
    assert list(shares_of(shown)) == ["linear", "kernel", "diffusion"]


def test_nothing_is_said_of_what_answers_decide_where_they_are_too_few():
    few = Constraints([(0, 1), (2, 3)], [(0, 99), (1, 80)], n_samples=len(X))
    model = PairLens(random_state=0).fit(X, constraints=few)
    assert np.isnan(model.auc_)
    without = LinearPairLens(random_state=0).fit(X, constraints=PAIRS)
    for shown in (page(model, constraints=few, n_splits=0), page(without, constraints=PAIRS, n_splits=0)):
        assert "answers decide" not in shown.words
        assert shares_of(shown) == {}


# ---- satisfied or violated


def brute_force_threshold(must, cannot):
    """The best mean of the two shares over every distance that could be a threshold."""
    candidates = np.concatenate([must, cannot, [-1.0]])
    return max((np.mean(must <= t) + np.mean(cannot > t)) / 2 for t in candidates)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=12),
    st.lists(st.integers(0, 30), min_size=1, max_size=12),
)
def test_the_threshold_separates_best(must, cannot):
    must, cannot = np.array(must, dtype=float), np.array(cannot, dtype=float)
    best = brute_force_threshold(must, cannot)
    found = _pairs._best_threshold(must, cannot)
    if found is None:
        assert best == 0.5
    else:
        assert (np.mean(must <= found) + np.mean(cannot > found)) / 2 == pytest.approx(best)


def test_a_threshold_between_neighbouring_numbers():
    low, high = 1.0, np.nextafter(1.0, 2.0)
    assert low <= _pairs._best_threshold(np.array([low]), np.array([high])) < high


def test_judged_pairs_of_a_line():
    Z = np.array([[0.0], [1.0], [4.0], [9.0]])
    known = _pairs.list_pairs(Constraints([(0, 1), (2, 3)], [(1, 2), (0, 3)], n_samples=4), 0)
    judged = _pairs.judge(Z, known, 0)
    np.testing.assert_array_equal(judged.distance, [1, 5, 9, 3])
    assert judged.separates
    assert judged.threshold == 2.0
    np.testing.assert_array_equal(judged.satisfied, [True, False, True, True])


@pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
def test_one_kind_of_pair_is_judged_by_random_pairs(kind):
    Z = np.arange(1000.0)[:, None]
    known = _pairs.list_pairs(Constraints(**{kind: [(0, 10), (0, 900)]}, n_samples=1000), 0)
    judged = _pairs.judge(Z, known, 0)
    # The distance of two random numbers of [0, 1] has its median at 1 - sqrt(1/2).
    assert judged.threshold == pytest.approx(1000 * (1 - np.sqrt(0.5)), rel=0.03)
    assert not judged.separates
    np.testing.assert_array_equal(judged.satisfied, [kind == "must_link", kind != "must_link"])


def test_the_page_says_how_many_pairs_are_satisfied_and_by_what_rule():
    model = WBDR(2).fit(X, constraints=PAIRS)
    shown = page(model, constraints=PAIRS)
    for Z, place in ((model.transform(X), 0), (PCA(2).fit_transform(X), 1)):
        judged = _pairs.judge(Z, _pairs.list_pairs(PAIRS, 0), 0)
        assert f"{judged.satisfied.sum()} of 60 pairs satisfied" in shown.words
        drawn = np.concatenate([unpacked(part["judged"][place], "u1") for part in shown.data["pairs"]])
        np.testing.assert_array_equal(drawn, judged.satisfied)
    assert "separates the two kinds best" in shown.words
    assert [part["kind"] for part in shown.data["pairs"]] == ["must", "cannot"]


def test_pairs_that_labels_imply_are_drawn_at_random():
    known = Constraints.from_labels(np.arange(3000) % 7)
    rows = np.random.default_rng(0).standard_normal((3000, 3))
    shown = page(LPP(2).fit(rows), rows, constraints=known, n_splits=0)
    assert f"Of the {known.n_pairs:,} pairs, 20,000 drawn at random are judged here" in shown.words
    assert sum(len(unpacked(part["a"], "<i4")) for part in shown.data["pairs"]) == 2000


# ---- held out


def test_the_held_out_auc_is_that_of_selection_and_controls_are_judged_by_the_same_pairs():
    model = WBDR(2).fit(X, constraints=PAIRS)
    expected = held_out_auc(model, X, PAIRS, n_splits=5, random_state=0)
    shown = page(model, constraints=PAIRS)
    assert f"held-out pair AUC {expected.mean:.2f} ± {expected.standard_error:.2f}" in shown.words
    both = np.concatenate([PAIRS.must_link, PAIRS.cannot_link])
    for name, Z in (("PCA", PCA(2).fit_transform(X)), ("all features", X)):
        distance = np.linalg.norm(Z[both[:, 0]] - Z[both[:, 1]], axis=1)
        value = roc_auc_score(np.repeat([1, 0], [PAIRS.n_must_link, PAIRS.n_cannot_link]), -distance)
        assert f"{name} {value:.2f} ±" in shown.words


def test_the_verdict_is_shown():
    pytest.importorskip("openTSNE")
    model = PairMap(max_iter=50, early_exaggeration_iter=20, random_state=0).fit(X, constraints=PAIRS)
    judgement = judge_view(model, X, constraints=PAIRS)
    shown = page(model, constraints=PAIRS, judgement=judgement)
    assert [verdict.other for verdict in judgement.verdicts] == ["PCA", "t-SNE"]
    assert all(str(verdict) in shown.words for verdict in judgement.verdicts)


def test_a_judgement_that_is_known_is_not_found_again(monkeypatch):
    model = WBDR(2).fit(X, constraints=PAIRS)
    judgement = judge_view(model, X, constraints=PAIRS, n_splits=2)
    monkeypatch.setattr("pairlens.report._page.judge_view", lambda *_, **__: pytest.fail("it was"))
    shown = page(model, constraints=PAIRS, judgement=judgement)
    assert f"held-out pair AUC {judgement.score.mean:.2f}" in shown.words
    assert "held-out pairs, 4 folds" in shown.words


def test_methods_that_judge_themselves_are_not_fitted_again(monkeypatch):
    model = LinearPairLens(2, random_state=0).fit(X, constraints=PAIRS)
    monkeypatch.setattr(LinearPairLens, "fit", lambda *_, **__: pytest.fail("it was"))
    assert f"held-out pair AUC {model.auc_:.2f}" in page(model, constraints=PAIRS).words


def test_too_few_pairs_to_hold_any_out():
    few = Constraints([(0, 1)], [(0, 60)], n_samples=150)
    assert "held-out pair AUC 0" not in page(WBDR(2).fit(X, constraints=few), constraints=few).words


# ---- the table


def test_the_most_violated_pairs_come_first():
    model = WBDR(2).fit(X, constraints=PAIRS)
    wrong = Constraints([*PAIRS.must_link.tolist(), (0, 149)], PAIRS.cannot_link, n_samples=150)
    shown = page(model, constraints=wrong, labels=y, ids=[f"flower {i}" for i in range(150)], n_splits=0)
    table = shown.words.split("Pairs most violated")[-1]
    assert re.search(rf"in the view.*? flower 0 0 flower 149 2 must-link [\d.]+ [\d.]+ {TIMES} violated", table)
    assert f"2 {TIMES} is a must-link twice as long" in table
    # These pairs are drawn from the start; the others would hide the points.
    listed = np.concatenate([unpacked(part["listed"], "u1") for part in shown.data["pairs"]])
    assert listed.sum() == shown.text.count("data-pair=")


def test_suspicious_pairs_order_the_table_where_the_model_has_them():
    model = LinearPairLens(2, random_state=0).fit(X, constraints=PAIRS)
    found = model.suspicious_pairs()
    listed = _pairs.violations(found, known := _pairs.list_pairs(PAIRS, 0), _pairs.judge(model.transform(X), known, 0))
    assert listed.suspicion is not None
    order = {tuple(pair): place for place, pair in enumerate(found.pairs.tolist())}
    places = [order[tuple(known.pairs[k])] for k in listed.order]
    assert places == sorted(places)
    np.testing.assert_allclose(listed.suspicion, found.suspicion[places])
    assert "suspicious_pairs()" in page(model, constraints=PAIRS, n_splits=0).words


def test_the_report_says_where_no_answer_stands_out():
    model = LinearPairLens(2, random_state=0).fit(X, constraints=PAIRS)
    assert len(model.suspicious_pairs().standing_out) == 0
    assert "No answer stands out as wrong." in page(model, constraints=PAIRS, n_splits=0).words


def test_suspicions_about_other_pairs_are_not_used():
    model = LinearPairLens(2, random_state=0).fit(X, constraints=PAIRS)
    other = _pairs.list_pairs(Constraints([(0, 1), (2, 3)], [(0, 149)], n_samples=150), 0)
    assert (
        _pairs.violations(model.suspicious_pairs(), other, _pairs.judge(model.transform(X), other, 0)).suspicion is None
    )


def test_no_violated_pair_is_said_in_words():
    pairs = Constraints([(0, 1)], [(0, 149)], n_samples=150)
    assert "No pair is violated." in page(WBDR(1).fit(X, constraints=pairs), constraints=pairs, n_splits=0).words


# ---- preferences


@pytest.mark.parametrize("method", [WSDR(2, random_state=0), RankSVM()])
def test_preferences_are_judged_by_the_ranking(method):
    known = Preferences.from_scores(y, n_pairs=80, random_state=0).flip(0.1, random_state=0)
    model = make_pipeline(StandardScaler(), method)
    fit_model(model, X, preferences=known)
    shown = page(model, preferences=known)
    share = pairwise_accuracy(model.decision_function(X), known)
    assert f"{round(80 * share)} of 80 ({share:.0%})" in shown.words
    assert "held-out accuracy" in shown.words
    (lines,) = shown.data["pairs"]
    assert lines["kind"] == "prefer"
    assert unpacked(lines["judged"][0], "u1").sum() == round(80 * share)
    better, worse = (unpacked(lines[end], "<i4") for end in "ab")
    right = model.decision_function(X)[better] > model.decision_function(X)[worse]
    np.testing.assert_array_equal(unpacked(lines["judged"][0], "u1"), right)


def test_a_model_that_does_not_rank_says_nothing_about_preferences():
    known = Preferences([(0, 1)], n_samples=150)
    assert "references" not in page(LPP(2).fit(X), preferences=known).words


def test_no_pairs():
    shown = page(LPP(2).fit(X))
    assert "Pairs" not in shown.words
    assert shown.data["pairs"] == []
    assert "satisfied" not in shown.words


# ---- features and eigenvalues


def test_linear_weights_are_per_standard_deviation():
    wine, _ = load_wine(return_X_y=True)
    model = WBDR(2).fit(wine, constraints=Constraints([(0, 1)], [(0, 100), (3, 170)], n_samples=178))
    effect, weight = feature_weights(look(model, wine, None))
    np.testing.assert_allclose(weight, model.components_)
    np.testing.assert_allclose(effect, model.components_ * wine.std(axis=0))
    assert "The view is linear" in page(model, wine).words


def test_the_weights_of_a_pipeline_are_in_scaled_units():
    model = fit_model(make_pipeline(StandardScaler(), WBDR(2)), X, PAIRS)
    effect, _ = feature_weights(look(model, X, None))
    np.testing.assert_allclose(effect, model[-1].components_, rtol=1e-10)
    words = page(model, constraints=PAIRS, feature_names=["sepal", "width", "petal", "girth"]).words
    assert "in the units that StandardScaler gives them" in words
    assert "StandardScaler → WBDR" in words
    strongest = ["sepal", "width", "petal", "girth"][np.argmax(np.abs(model[-1].components_[0]))]
    assert f"Direction 1 direction 1 {strongest}" in words


def test_a_view_that_is_not_linear_shows_correlations():
    model = KernelWBDR(2).fit(X, constraints=PAIRS)
    effect, weight = feature_weights(look(model, X, None))
    assert weight is None
    Z = model.transform(X)
    expected = np.corrcoef(Z.T, X.T)[:2, 2:]
    np.testing.assert_allclose(effect, expected, atol=1e-8)
    assert "The view is not linear" in page(model, constraints=PAIRS, n_splits=0).words


def test_components_that_do_not_explain_the_view_are_no_weights():
    """As many kernel features as features must not be taken for weights."""

    class Bent(PCA):
        def transform(self, rows):
            return super().transform(rows) ** 2

    assert feature_weights(look(Bent(2).fit(X), X, None))[1] is None


def test_sparse_rows_give_what_dense_rows_give():
    rng = np.random.default_rng(0)
    rows = sparse.csr_array(rng.random((60, 12)) * (rng.random((60, 12)) < 0.3))
    pairs = Constraints([(0, 1), (2, 3)], [(0, 2), (4, 5)], n_samples=60)
    model = WBDR(2).fit(rows, constraints=pairs)
    dense = page(model, rows.toarray(), constraints=pairs)
    thin = page(model, rows, constraints=pairs)
    for axis in range(2):
        np.testing.assert_allclose(thin.column(0, axis), dense.column(0, axis), atol=1e-6)
        ours, theirs = thin.column(1, axis), dense.column(1, axis)
        np.testing.assert_allclose(ours * np.sign(ours @ theirs), theirs, atol=1e-5)
    np.testing.assert_allclose(
        feature_weights(look(model, rows, None))[0],
        feature_weights(look(model, rows.toarray(), None))[0],
        rtol=1e-8,
    )


def test_constant_features_correlate_with_nothing():
    rows = np.column_stack([X, np.ones(150)])
    effect = feature_weights(look(KernelWBDR(2).fit(rows, constraints=PAIRS), rows, None))[0]
    np.testing.assert_array_equal(effect[:, 4], 0)


def test_eigenvalues_and_their_absence():
    model = LPP(2).fit(X)
    assert number(model.eigenvalues_[0], 4) in page(model).words
    assert "Eigenvalues" in page(model).words
    assert "Eigenvalues" not in page(RankSVM().fit(X, y)).words
