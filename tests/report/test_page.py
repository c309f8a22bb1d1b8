"""The page as text: rows, names and labels, no text of the data can break it, equal input gives equal bytes."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, is_clusterer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pairlens
from pairlens import LPP, WBDR, Constraints, LinearPairLens, Preferences
from pairlens._markup import Markup, joined, number, plain, tag
from pairlens.exceptions import MissingExtraError
from pairlens.report import Report, _points, build_report, write_report
from pairlens.report._views import look
from pairlens.selection.fitting import fit_model, learns_from
from tests.report.pages import HOSTILE, PAIRS, Page, X, page, unpacked, y

pytest.importorskip("plotly", reason="the report needs plotly: pip install 'pairlens[report]'")

pytestmark = pytest.mark.usefixtures("small_plotly")
PUBLIC = [getattr(pairlens, name) for name in pairlens.__all__]
ESTIMATORS = [member for member in PUBLIC if isinstance(member, type) and issubclass(member, BaseEstimator)]
TIMES, MINUS = "\N{MULTIPLICATION SIGN}", "\N{MINUS SIGN}"


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
    if is_clusterer(model):
        with pytest.raises(TypeError, match=f"{kind.__name__} has neither transform nor decision_function"):
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
        ({"ids": [1, 2]}, "ids must have 150 entries, one for each row of X; got 2"),
        ({"labels": [1, 2]}, "labels must have 150 entries, one for each row of X; got 2"),
        ({"feature_names": ["a"]}, "feature_names must have 4 entries, one for each feature; got 1"),
        (
            {"constraints": Constraints([(0, 1)], n_samples=3)},
            "constraints must be for 150 rows, as many as X has; got 3",
        ),
        (
            {"preferences": Preferences([(0, 1)], n_samples=3)},
            "preferences must be for 150 rows, as many as X has; got 3",
        ),
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
