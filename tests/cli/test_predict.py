"""``pairlens pairs predict``: what it writes, and what it says about bad input."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import pairlens
from pairlens.judging import pair_proba
from pairlens.supervision import answers
from tests.cli.conftest import CLASSES, FIT, IDS, X

PREDICT = ("pairs", "predict", "fitted/model.pairlens", "ask.csv", "--data", "data.csv", "--out", "out.csv")
ASKED = np.random.default_rng(1).permuted(np.tile(np.arange(60), (300, 1)), axis=1)[:, :2]


def read(path, delimiter=","):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def ask(folder, name=lambda row: IDS[row]):
    lines = ["a,note,b", *(f"{name(a)},whatever,{name(b)}" for a, b in ASKED)]
    (folder / "ask.csv").write_text("\n".join(lines) + "\n")


def expected(folder):
    model = pairlens.load(folder / "fitted" / "model.pairlens")
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(X, columns=list("wxyz"))
    return pair_proba(model, rows.iloc[ASKED[:, 0]], rows.iloc[ASKED[:, 1]])


def test_as_a_process(fitted, shell):
    ask(fitted)
    outcome = shell(*PREDICT, "--id", "id")
    assert outcome.code == 0, outcome.err
    found = read(fitted / "out.csv")
    assert [(line["a"], line["b"]) for line in found] == [(IDS[a], IDS[b]) for a, b in ASKED]
    together = np.array([float(line["p_same"]) for line in found])
    np.testing.assert_allclose(together, expected(fitted), rtol=1e-4)
    same = CLASSES[ASKED[:, 0]] == CLASSES[ASKED[:, 1]]
    assert together[same].mean() > together[~same].mean() + 0.3
    assert (
        outcome.out == f"wrote out.csv: 300 pairs, {(together > 0.5).sum()} of them more probably the same than not\n"
    )


def test_blocks_rows_by_number_and_other_files(fitted, cli, monkeypatch):
    """A block of seven lines at a time gives what one of all lines gives."""
    ask(fitted, name=str)
    assert cli(*PREDICT).code == 0
    blocks, whole = answers.read_pair_blocks, read(fitted / "out.csv")
    monkeypatch.setattr(answers, "read_pair_blocks", lambda *given, **named: blocks(*given, **named, size=7))
    lines = "".join(json.dumps({"a": int(a), "b": int(b)}) + "\n" for a, b in ASKED)
    (fitted / "ask.jsonl").write_text(lines)
    arguments = ("pairs", "predict", "fitted/model.pairlens", "ask.jsonl", "--data", "data.csv", "--out", "out.tsv")
    outcome = cli(*arguments, "--json")
    assert json.loads(outcome.out)["pairs"] == 300
    assert read(fitted / "out.tsv", "\t") == whole
    np.testing.assert_allclose([float(line["p_same"]) for line in whole], expected(fitted), rtol=1e-4)


@pytest.mark.parametrize("method", ["linear-pairlens", "itml"])
def test_models_of_other_methods(method, table, cli):
    ask(table)
    assert cli(*FIT, "--method", method, "--out", "fitted").code == 0
    assert cli(*PREDICT, "--id", "id").code == 0
    together = [float(line["p_same"]) for line in read(table / "out.csv")]
    np.testing.assert_allclose(together, expected(table), rtol=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,c\n001,002\n", "ask.csv has no column 'b'; it has 'a', 'c'"),
        ("", "ask.csv has no column 'a'; it has none"),
        ("a,b\n001,002\n001,nobody\n", "line 3 of ask.csv has 'nobody' as b: the data has no such id"),
        ("a,b\n001,002\n001\n", "line 3 of ask.csv has 1 fields, but the header has 2"),
        ("a,b\n001,001\n", "line 2 of ask.csv has '001' as a and b: a row cannot be paired with itself"),
        (b"a,b\n\xff,001\n", "ask.csv is not UTF-8 text: line 2 has the byte 0xff"),
    ],
)
def test_bad_pairs_leave_no_file(text, message, fitted, cli):
    (fitted / "ask.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    outcome = cli(*PREDICT, "--id", "id")
    assert message in outcome.error
    assert not (fitted / "out.csv").exists()


def test_bad_arguments(fitted, cli):
    ask(fitted)
    assert "must end in .csv or .tsv" in cli(*PREDICT[:-1], "out.txt").error
    (fitted / "ask.csv").write_text("a,b\n1,2\n1,60\n")
    assert "line 3 of ask.csv has 60 as b: row numbers go from 0 to 59" in cli(*PREDICT).error
    assert "nowhere.csv" in cli(*PREDICT[:3], "nowhere.csv", *PREDICT[4:]).error
    (fitted / "ask.jsonl").write_text('{"a": "001"}\n')
    assert "line 1 of ask.jsonl has no column 'b'" in cli(*PREDICT[:3], "ask.jsonl", *PREDICT[4:]).error
    ask(fitted)
    assert "--base-rate must be above 0 and below 1" in cli(*PREDICT, "--id", "id", "--base-rate", "2").error
    (fitted / "out.csv").touch()
    assert "exists already" in cli(*PREDICT, "--id", "id").error


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")
@pytest.mark.parametrize(
    ("method", "message"), [("wbdr", "gives no probabilities"), ("wsdr", "holds a WSDR, which gives no probabilities")]
)
def test_models_without_probabilities(method, message, table, cli):
    """Fitted with one kind of pairs, or with preferences."""
    ask(table)
    (table / "pairs.csv").write_text(f"a,b,kind\n{IDS[0]},{IDS[1]},must-link\n")
    known = ("--pairs", "pairs.csv") if method == "wbdr" else ("--prefer", "prefer.csv")
    arguments = ("fit", "data.csv", *known, "--id", "id", "--drop", "class,note", "--method", method)
    assert cli(*arguments, "--out", "fitted").code == 0
    assert message in cli(*PREDICT, "--id", "id").error
