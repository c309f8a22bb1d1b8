"""The report as text: what it says is right, no text of the data can break it, equal input gives equal bytes."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import pairlens
from pairlens import LPP, WBDR, WSDR, Constraints, KernelWBDR, LinearPairLens, PairMap, Preferences, RankSVM, SKKMeans
from pairlens._markup import Markup, joined, number, plain, tag
from pairlens.exceptions import MissingExtraError
from pairlens.methods.pairmap.plain import plain_map
from pairlens.metrics import pairwise_accuracy
from pairlens.report import Report, _pairs, _points, build_report, write_report
from pairlens.report._views import feature_weights, look
from pairlens.selection import HeldOutScore, held_out_auc
from pairlens.selection.fitting import fit_model, learns_from
from tests.report.pages import HOSTILE, Page, unpacked

pytest.importorskip("plotly", reason="the report needs plotly: pip install 'pairlens[report]'")

X, y = load_iris(return_X_y=True)
PAIRS = Constraints.from_labels(y, n_pairs=60, random_state=0)
PUBLIC = [getattr(pairlens, name) for name in pairlens.__all__]
ESTIMATORS = [member for member in PUBLIC if isinstance(member, type) and issubclass(member, BaseEstimator)]
TIMES, MINUS = "\N{MULTIPLICATION SIGN}", "\N{MINUS SIGN}"


@pytest.fixture(autouse=True)
def small_plotly(monkeypatch):
    """Five megabytes of JavaScript in every page would test nothing here but patience."""
    import plotly.offline

    monkeypatch.setattr(plotly.offline, "get_plotlyjs", lambda: "/* plotly.js */")


def page(model, rows=X, **options) -> Page:
    return Page(build_report(model, rows, **options))


def test_a_map_is_shown_beside_pca_and_a_tsne_of_the_rows_alone():
    pytest.importorskip("openTSNE")
    model = PairMap(n_iter=50, early_exaggeration_iter=20, random_state=0).fit(X, constraints=PAIRS)
    shown = page(model, constraints=PAIRS, labels=y, n_splits=2)
    assert [view["key"] for view in shown.data["views"]] == ["view", "pca", "tsne"]
    alone = np.column_stack([shown.column(2, axis) for axis in range(2)])
    np.testing.assert_allclose(alone, plain_map(X), rtol=1e-5)
    assert all(len(lines["judged"]) == 3 for lines in shown.data["pairs"])
    for text in (
        "The view, beside that of PCA and of t-SNE",
        "t-SNE of the rows alone",
        "PCA and t-SNE have their own",
    ):
        assert text in shown.words
    assert [view["key"] for view in page(WBDR(2).fit(X, constraints=PAIRS)).data["views"]] == ["view", "pca"]


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


def test_the_held_out_auc_is_that_of_selection():
    model = WBDR(2).fit(X, constraints=PAIRS)
    expected = held_out_auc(model, X, PAIRS, n_splits=5, random_state=0)
    shown = page(model, constraints=PAIRS)
    assert f"held-out pair AUC {expected.mean:.2f} ± {expected.standard_error:.2f}" in shown.words
    for name, control in (("PCA, 2 of its components", PCA(2)), ("all features", FunctionTransformer())):
        same = held_out_auc(control, X, PAIRS, n_splits=5, random_state=0)
        assert f"{name} {same.mean:.2f} ± {same.standard_error:.2f} the same pairs" in shown.words


def test_controls_without_folds_are_judged_by_all_pairs():
    both = np.concatenate([PAIRS.must_link, PAIRS.cannot_link])
    distance = np.linalg.norm(X[both[:, 0]] - X[both[:, 1]], axis=1)
    expected = roc_auc_score(np.repeat([1, 0], [PAIRS.n_must_link, PAIRS.n_cannot_link]), -distance)
    assert _pairs.auc_unlearnt(X, PAIRS, 0, 0).mean == pytest.approx(expected)


def test_a_held_out_auc_that_is_known_is_not_found_again(monkeypatch):
    monkeypatch.setattr("pairlens.report._parts.held_out_auc", lambda *_, **__: pytest.fail("it was"))
    model = WBDR(2).fit(X, constraints=PAIRS)
    shown = page(model, constraints=PAIRS, held_out=HeldOutScore(0.875, 0.031, (0.9, 0.85)))
    assert "held-out pair AUC 0.88 ± 0.03" in shown.words
    assert "held-out pairs, 2 folds" in shown.words
    assert "held-out" not in page(model, constraints=PAIRS, n_splits=0).words.replace("held-out AUC", "")


def test_too_few_pairs_to_hold_any_out():
    few = Constraints([(0, 1)], [(0, 60)], n_samples=150)
    assert "held-out pairs; too few of a kind" in page(WBDR(2).fit(X, constraints=few), constraints=few).words


# ---- the table


def test_the_most_violated_pairs_come_first():
    model = WBDR(2).fit(X, constraints=PAIRS)
    wrong = Constraints([*PAIRS.must_link.tolist(), (0, 149)], PAIRS.cannot_link, n_samples=150)
    shown = page(model, constraints=wrong, labels=y, ids=[f"flower {i}" for i in range(150)], n_splits=0)
    table = shown.words.split("Pairs most violated")[1]
    assert re.search(rf"in the view.*? flower 0 0 flower 149 2 must-link [\d.]+ [\d.]+ {TIMES} violated", table)
    assert f"2 {TIMES} is a must-link twice as long" in table


def test_suspicious_pairs_order_the_table_where_the_model_has_them():
    model = LinearPairLens(2, random_state=0).fit(X, constraints=PAIRS)
    found = model.suspicious_pairs()
    listed = _pairs.violations(model, known := _pairs.list_pairs(PAIRS, 0), _pairs.judge(model.transform(X), known, 0))
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
    assert _pairs.violations(model, other, _pairs.judge(model.transform(X), other, 0)).suspicion is None


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
    assert "does not score rows" in page(LPP(2).fit(X), preferences=known).words


def test_no_pairs():
    shown = page(LPP(2).fit(X))
    assert "No pairs were given" in shown.words
    assert shown.data["pairs"] == []
    assert "satisfied" not in shown.words


# ---- features and eigenvalues


def test_linear_weights_are_per_standard_deviation():
    wine, _ = load_wine(return_X_y=True)
    model = WBDR(2).fit(wine, constraints=Constraints([(0, 1)], [(0, 100), (3, 170)], n_samples=178))
    weights = feature_weights(look(model, wine, None))
    np.testing.assert_allclose(weights.weight, model.components_)
    np.testing.assert_allclose(weights.effect, model.components_ * wine.std(axis=0))
    assert "The view is linear" in page(model, wine).words


def test_the_weights_of_a_pipeline_are_in_scaled_units():
    model = fit_model(make_pipeline(StandardScaler(), WBDR(2)), X, PAIRS)
    weights = feature_weights(look(model, X, None))
    np.testing.assert_allclose(weights.effect, model[-1].components_, rtol=1e-10)
    words = page(model, constraints=PAIRS, feature_names=["sepal", "width", "petal", "girth"]).words
    assert "in the units that StandardScaler gives them" in words
    assert "StandardScaler → WBDR" in words
    strongest = ["sepal", "width", "petal", "girth"][np.argmax(np.abs(model[-1].components_[0]))]
    assert f"Direction 1 direction 1 {strongest}" in words


def test_a_view_that_is_not_linear_shows_correlations():
    model = KernelWBDR(2).fit(X, constraints=PAIRS)
    weights = feature_weights(look(model, X, None))
    assert weights.weight is None
    Z = model.transform(X)
    expected = np.corrcoef(Z.T, X.T)[:2, 2:]
    np.testing.assert_allclose(weights.effect, expected, atol=1e-8)
    assert "The view is not linear" in page(model, constraints=PAIRS, n_splits=0).words


def test_components_that_do_not_explain_the_view_are_no_weights():
    """As many kernel features as features must not be taken for weights."""

    class Bent(PCA):
        def transform(self, rows):
            return super().transform(rows) ** 2

    assert feature_weights(look(Bent(2).fit(X), X, None)).weight is None


def test_sparse_rows_give_what_dense_rows_give():
    rows = sparse.random_array((60, 12), density=0.3, rng=np.random.default_rng(0), format="csr")
    pairs = Constraints([(0, 1), (2, 3)], [(0, 2), (4, 5)], n_samples=60)
    model = WBDR(2).fit(rows, constraints=pairs)
    dense = page(model, rows.toarray(), constraints=pairs)
    thin = page(model, rows, constraints=pairs)
    for axis in range(2):
        np.testing.assert_allclose(thin.column(0, axis), dense.column(0, axis), atol=1e-6)
        ours, theirs = thin.column(1, axis), dense.column(1, axis)
        np.testing.assert_allclose(ours * np.sign(ours @ theirs), theirs, atol=1e-5)
    np.testing.assert_allclose(
        feature_weights(look(model, rows, None)).effect,
        feature_weights(look(model, rows.toarray(), None)).effect,
        rtol=1e-8,
    )


def test_constant_features_correlate_with_nothing():
    rows = np.column_stack([X, np.ones(150)])
    effect = feature_weights(look(KernelWBDR(2).fit(rows, constraints=PAIRS), rows, None)).effect
    np.testing.assert_array_equal(effect[:, 4], 0)


def test_eigenvalues_and_their_absence():
    model = LPP(2).fit(X)
    assert number(model.eigenvalues_[0], 4) in page(model).words
    assert "solves no eigenproblem" in page(RankSVM().fit(X, y)).words


# ---- rows, names, labels, dimensions


def test_points_are_the_view():
    model = WBDR(3).fit(X, constraints=PAIRS)
    shown = page(model)
    for axis in range(3):
        np.testing.assert_array_equal(shown.column(0, axis), model.transform(X)[:, axis].astype(np.float32))
        np.testing.assert_array_equal(shown.column(1, axis), PCA(3).fit_transform(X)[:, axis].astype(np.float32))
    assert shown.tags.count("select") == 4
    assert page(WBDR(2).fit(X, constraints=PAIRS)).tags.count("select") == 0


def test_one_dimension():
    model = WBDR(1).fit(X, constraints=PAIRS)
    shown = page(model, constraints=PAIRS, labels=y)
    assert [len(view["columns"]) for view in shown.data["views"]] == [1, 1]
    assert "Rows of one label share a band" in shown.words
    assert "The height of a point is its label" in page(model, labels=X[:, 0]).words
    assert "The height of a point means nothing" in page(model).words


def test_many_dimensions_are_cut_and_said():
    rows = np.random.default_rng(0).standard_normal((50, 14))
    shown = page(PCA(12).fit(rows), rows)
    assert len(shown.data["views"][0]["columns"]) == 10
    assert (
        "The view has 12 directions. The plots show any two of the first 10; distances are those in all 12."
        in shown.words
    )


def test_names_of_features():
    pandas = pytest.importorskip("pandas", reason="data frames need pandas")
    frame = pandas.DataFrame(X, columns=["a1", "b2", "c3", "d4"])
    assert "a1" in page(make_pipeline(StandardScaler(), PCA(2)).fit(frame), frame).words
    assert "feature 3" in page(PCA(2).fit(X)).words
    assert look(PCA(2).fit(X), X, ["p", "q", "r", "s"]).names == ["p", "q", "r", "s"]


@pytest.mark.parametrize("labels", [np.where(y == 1, -1, y), np.where(y == 1, np.nan, y), ["n", None, "k"] * 50])
def test_labels_missing_are_grey(labels):
    colours = page(LPP(2).fit(X), labels=labels).data["colours"]
    assert colours["legend"][-1] == "no label"
    assert colours["grey"] == 1
    assert colours["counts"] == [50, 50, 50]


def test_more_labels_than_colours():
    labels = np.repeat([f"l{i:02d}" for i in range(15)], np.arange(15) + 1)
    rows = np.random.default_rng(0).standard_normal((len(labels), 3))
    colours = page(LPP(2).fit(rows), rows, labels=labels).data["colours"]
    assert colours["legend"] == [f"l{i:02d}" for i in range(5, 15)] + ["others"]
    assert colours["counts"][-1] == 15
    named = np.array(colours["labels"])[unpacked(colours["label"], "<i4")]
    np.testing.assert_array_equal(named, labels)


def test_numbers_make_a_scale():
    colours = page(LPP(2).fit(X), labels=X[:, 0]).data["colours"]
    np.testing.assert_array_equal(unpacked(colours["numbers"], "<f4"), X[:, 0].astype(np.float32))


def test_more_rows_than_are_drawn(monkeypatch):
    monkeypatch.setattr(_points, "MAX_POINTS", 40)
    pairs = Constraints([(3, 140)], [(7, 99), (3, 7)], n_samples=150)
    model = WBDR(2).fit(X, constraints=pairs)
    shown = page(model, constraints=pairs, labels=y, ids=np.arange(150) + 1000, n_splits=0)
    rows = unpacked(shown.data["rows"], "<i4")
    assert len(rows) == shown.data["n"] == len(set(rows)) == 40
    assert {3, 140, 7, 99} <= set(rows)
    assert "40 of the 150 rows are drawn" in shown.words
    assert shown.data["ids"] == [str(row + 1000) for row in rows]
    np.testing.assert_array_equal(shown.column(0, 0), model.transform(X)[rows, 0].astype(np.float32))
    for part, expected in zip(shown.data["pairs"], (pairs.must_link, pairs.cannot_link)):
        drawn = np.stack([rows[unpacked(part[end], "<i4")] for end in "ab"], axis=1)
        np.testing.assert_array_equal(drawn, expected)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_estimator_of_the_package(kind):
    model = kind()
    rows, labels = X[::2], y[::2]
    pairs = Constraints.from_labels(labels, n_pairs=40, random_state=0)
    answers = Preferences.from_scores(labels, n_pairs=40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if learns_from(model):
            fit_model(model, rows, pairs, answers)
        else:
            model.fit(rows, labels)
    if kind is SKKMeans:
        with pytest.raises(TypeError, match="SKKMeans has neither transform nor decision_function"):
            build_report(model, rows)
        return
    shown = page(model, rows, constraints=pairs, preferences=answers, labels=labels, n_splits=0)
    assert np.isfinite(shown.column(0, 0)).all()
    assert kind.__name__ in shown.words


# ---- what was run


def test_what_was_run_is_shown():
    run = {
        "seed": 7,
        "command": "pairlens fit",
        "timings": {"fit": 1.2345, "report": 12},
        "versions": {"numpy": "2.4"},
        "parameters": {"gamma": None, "deep": {"a": [1, 2.5]}, "on": True, "object": object()},
    }
    words = page(LPP(2, n_neighbors=7).fit(X), run=run).words
    for said in (
        "n_neighbors 7",
        "seed 7",
        "fit 1.23 s",
        "report 12 s",
        "numpy 2.4",
        "gamma none",
        "on yes",
        "object object",
    ):
        assert said in words
    assert "a: 1, 2.500" in words
    assert "not recorded" in page(LPP(2).fit(X)).words


# ---- safety, sameness, files


def test_hostile_texts_add_no_element():
    """The elements and attributes are those of the same page with harmless texts, and the texts are all there."""
    rows = np.random.default_rng(0).standard_normal((len(HOSTILE) * 2, len(HOSTILE)))
    pairs = Constraints(
        [(0, 1), (2, 3), (4, 5)], [(k, k + len(HOSTILE)) for k in range(len(HOSTILE))], n_samples=len(rows)
    )
    model = LPP(2).fit(rows)

    def of(texts):
        return page(
            model,
            rows,
            constraints=pairs,
            ids=texts * 2,
            labels=texts * 2,
            beside={texts[3]: texts * 2},
            columns=[
                {"name": text, "role": "number", "n_features": 1, "weight": 1.0, "n_missing": 0, "note": text}
                for text in texts
            ],
            feature_names=texts,
            title=texts[0],
            run={"words": dict(zip(texts, texts)), texts[1]: texts[2]},
            n_splits=0,
        )

    harmless, hostile = of([f"text {k}" for k in range(len(HOSTILE))]), of(HOSTILE)
    assert hostile.tags == harmless.tags
    assert [(tag, name) for tag, name, _ in hostile.attributes] == [(tag, name) for tag, name, _ in harmless.attributes]
    shown = [plain(text) for text in HOSTILE]
    assert hostile.data["ids"] == shown * 2
    assert set(hostile.data["colours"]["labels"]) == set(shown)
    assert " ".join(shown[0].split()) in hostile.words
    assert len(hostile.scripts) == 4
    hostile.text.encode()


def test_nothing_is_fetched():
    shown = page(WBDR(2).fit(X, constraints=PAIRS), constraints=PAIRS, labels=y)
    for tag_name, name, value in shown.attributes:
        if name in ("src", "href", "action", "data", "poster", "srcset"):
            assert value in ("data:,", "#content"), (tag_name, name, value)
    policy = next(value for tag_name, name, value in shown.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert not re.search(r"url\(|@import", shown.text)


def test_equal_input_gives_equal_bytes():
    def make():
        model = LinearPairLens(2, random_state=0).fit(X, constraints=PAIRS)
        return build_report(model, X, constraints=PAIRS, labels=y, run={"model": model, "f": make})

    assert make() == make()


def test_a_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    model = LPP(2).fit(X)
    write_report(path, model, X, labels=y)
    assert path.read_text(encoding="utf-8") == build_report(model, X, labels=y)
    before = path.read_bytes()

    def break_off(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pairlens._atomic.os.fsync", break_off)
    with pytest.raises(KeyboardInterrupt):
        write_report(path, model, X)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_the_code_of_the_documentation_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    exec(text.split("```python\n")[1].split("```")[0], {})
    assert Page((tmp_path / "report.html").read_text(encoding="utf-8")).data["n"] == 178


def test_a_notebook_shows_it_in_a_frame():
    shown = Report(LPP(2).fit(X), X, title='"><script>')._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "<script" not in shown


def test_a_hundred_thousand_points_make_a_small_page():
    rows = np.random.default_rng(0).standard_normal((100_000, 5)).astype(np.float32)
    text = build_report(PCA(2).fit(rows), rows, labels=np.arange(100_000) % 10)
    assert len(text) < 2.5e6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ids": [1, 2]}, "ids must name every row of X: expected 150, got 2"),
        ({"labels": [1, 2]}, "labels must hold one label for every row of X: expected 150, got 2"),
        ({"feature_names": ["a"]}, "feature_names must name every feature: expected 4, got 1"),
        ({"constraints": Constraints([(0, 1)], n_samples=3)}, "constraints are for 3 rows but X has 150"),
        ({"preferences": Preferences([(0, 1)], n_samples=3)}, "preferences are for 3 rows but X has 150"),
    ],
)
def test_errors_say_what_would_be_right(options, message):
    with pytest.raises(ValueError, match=message):
        build_report(LPP(2).fit(X), X, **options)


def test_a_model_must_be_fitted():
    with pytest.raises(sklearn.exceptions.NotFittedError):
        build_report(LPP(2), X)


def test_without_plotly_the_install_command_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pairlens\[report\]'"):
        build_report(LPP(2).fit(X), X)


def test_odd_tables():
    """One feature, equal rows in pairs, huge numbers."""
    line = np.arange(10.0)[:, None] * 1e150
    np.testing.assert_allclose(page(PCA(1).fit(line), line).column(0, 0), PCA(1).fit_transform(line).ravel())
    same = np.repeat(X[:75], 2, axis=0)
    pairs = Constraints([(0, 1), (2, 3)], [(4, 5), (0, 140)], n_samples=150)
    shown = page(WBDR(2).fit(same, constraints=pairs), same, constraints=pairs, n_splits=0)
    assert f"cannot-link 0 ∞ {TIMES} violated" in shown.words


# ---- the words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234.5, "1,234"),
        (0.000123456, "0.000123"),
        (1e-9, f"1.00e{MINUS}09"),
        (12345678, "1.23e+07"),
        (-0.5, f"{MINUS}0.500"),
        (9.9996, "10.0"),
        (float("nan"), "unknown"),
        (float("-inf"), f"{MINUS}∞"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


def test_markup_escapes_all_but_markup():
    assert tag("p", "<b>", Markup("<i>"), None, 3, title='"') == '<p title="&quot;">&lt;b&gt;<i>3</p>'
    assert tag("input", checked=True, disabled=False, data_row=3) == '<input checked data-row="3">'
    assert joined("a\x00b") == "a\ufffdb"
