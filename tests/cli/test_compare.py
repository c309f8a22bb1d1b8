"""``pairlens compare`` in detail, and how the command as a whole ends."""

from __future__ import annotations

import json

import pytest

from pairlens.cli import app as application
from pairlens.selection.fitting import method_class, view_methods

COMPARE = ("compare", "data.csv", "--id", "id", "--drop", "class,note")


def test_all_methods_and_the_controls(table, cli):
    outcome = cli(*COMPARE, "--pairs", "pairs.csv", "--folds", "2", "--json")
    assert outcome.code == 0, outcome.err
    entries = json.loads(outcome.out)["results"]["pairs"]
    assert {entry["method"] for entry in entries} == {*view_methods("constraints"), "pca", "tsne", "none"}
    assert [entry for entry in entries if entry["error"]] == []
    scores = [entry["score"] for entry in entries]
    assert scores == sorted(scores, reverse=True)


def test_the_table_that_people_see(table, cli):
    outcome = cli(*COMPARE, "--pairs", "pairs.csv", "--methods", "wbdr,LinearPairLens", "--folds", "3")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].startswith("60 rows with 4 columns, ")
    assert lines[2].split()[:2] == ["method", "dims"]
    assert {line.split("  ")[0] for line in lines[3:]} == {
        "wbdr",
        "linear-pairlens",
        "PCA (control)",
        "t-SNE (control)",
        "no reduction (control)",
    }
    assert lines[2].split("  ")[-1] == "against t-SNE"
    assert "  against PCA  " in lines[2]
    verdicts = [line.split("  ")[-1] for line in lines[3:] if line.startswith(("wbdr", "linear"))]
    assert all("by" in verdict or verdict == "too few to tell" for verdict in verdicts)


def test_preferences(table, cli):
    outcome = cli(*COMPARE, "--prefer", "prefer.csv", "--methods", "wsdr,rank-svm", "--json")
    assert outcome.code == 0, outcome.err
    entries = json.loads(outcome.out)["results"]["preferences"]
    assert {entry["method"] for entry in entries} == {"wsdr", "rank-svm"}


def test_a_method_that_fails_does_not_stop_the_others(table, cli):
    outcome = cli(*COMPARE, "--pairs", "pairs.csv", "--methods", "wbdr,pairlens", "--dims", "5", "--json")
    entries = {entry["method"]: entry for entry in json.loads(outcome.out)["results"]["pairs"]}
    assert "--dims must be at most the number of features, 4; got 5" in entries["wbdr"]["error"]
    assert entries["none"]["score"] is not None


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ("wdbr", "no method 'wdbr'"),
        ("skkmeans", "skkmeans cannot be compared: it makes no view"),
        ("wsdr", "wsdr cannot be compared: it does not learn from the pairs given"),
    ],
)
def test_methods_that_cannot_be_compared(methods, message, table, cli):
    assert message in cli(*COMPARE, "--pairs", "pairs.csv", "--methods", methods).error


def test_an_error_of_ours_is_one_line_too(table, cli, monkeypatch):
    def broken(*args, **kwargs):
        raise KeyError("oops")

    monkeypatch.setattr("pairlens.cli._work.Given.table", broken)
    outcome = cli(*COMPARE, "--pairs", "pairs.csv")
    assert outcome.code == 1
    assert outcome.err == "pairlens: internal error: KeyError: 'oops' (set PAIRLENS_TRACEBACK=1 to see where)\n"
    monkeypatch.setenv("PAIRLENS_TRACEBACK", "1")
    with pytest.raises(KeyError):
        application.run(list(COMPARE))


@pytest.mark.parametrize(("error", "code"), [(MemoryError(), 1), (KeyboardInterrupt(), 130)])
def test_other_ends(error, code, table, cli, monkeypatch):
    def end(*args, **kwargs):
        raise error

    monkeypatch.setattr("pairlens.cli._work.Given.table", end)
    outcome = cli(*COMPARE, "--pairs", "pairs.csv")
    assert outcome.code == code
    assert len(outcome.err.strip().splitlines()) == 1  # typer 0.12 puts an empty line before it


def test_every_view_method_has_a_name_that_leads_to_it():
    for source in ("constraints", "preferences"):
        for name in view_methods(source):
            assert name == name.lower()
            assert hasattr(method_class(name), "transform")
