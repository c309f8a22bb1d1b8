"""``pairlens pairs`` in detail: what is drawn, what is found, what is converted."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.cli.conftest import CLASSES, IDS

SAMPLE = ("pairs", "sample", "data.csv", "--out", "drawn.csv")


def lines_of(path):
    return [line.split(",") for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (("--n-pairs", "25"), {"all": 25}),
        (("--per-class", "4"), {"must-link": 12, "cannot-link": 12}),
        (("--fraction", "0.1"), {"all": 177}),
        ((), {"all": 60}),
    ],
)
def test_the_protocols(arguments, count, table, cli):
    outcome = cli(*SAMPLE, "--labels", "class", "--id", "id", *arguments)
    assert outcome.code == 0, outcome.err
    drawn = lines_of(table / "drawn.csv")
    kinds = Counter(kind for _, _, kind in drawn)
    assert kinds.total() == count.get("all", kinds.total())
    assert all(kinds[kind] == number for kind, number in count.items() if kind != "all")
    assert len({frozenset(pair[:2]) for pair in drawn}) == len(drawn)
    for a, b, kind in drawn:
        assert (kind == "must-link") == (CLASSES[IDS.index(a)] == CLASSES[IDS.index(b)])


@pytest.mark.parametrize("n_pairs", [60, 7])
def test_must_links_are_not_rare_among_many_classes(n_pairs, table, cli):
    lines = ["id,x,class", *(f"{k},{k % 7},c{k % 16}" for k in range(320))]
    (table / "many.csv").write_text("\n".join(lines) + "\n")
    outcome = cli("pairs", "sample", "many.csv", "--labels", "class", "--n-pairs", n_pairs, "--out", "many-pairs.csv")
    assert outcome.code == 0, outcome.err
    kinds = Counter(kind for _, _, kind in lines_of(table / "many-pairs.csv"))
    assert kinds == {"must-link": n_pairs // 2, "cannot-link": n_pairs - n_pairs // 2}


def test_wrong_answers_on_request(table, cli):
    assert cli(*SAMPLE, "--labels", "class", "--id", "id", "--flip", "0.25").code == 0
    wrong = [
        (kind == "must-link") != (CLASSES[IDS.index(a)] == CLASSES[IDS.index(b)])
        for a, b, kind in lines_of(table / "drawn.csv")
    ]
    assert sum(wrong) == 15


def test_preferences_from_scores(table, cli):
    outcome = cli(*SAMPLE, "--scores", "w", "--n-pairs", "30", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["pairs"] == {"prefer": 30}
    score = [float(line[1]) for line in lines_of(table / "data.csv")]
    for a, b, kind in lines_of(table / "drawn.csv"):
        assert kind == "prefer"
        assert score[int(a)] > score[int(b)]


def test_draws_repeat_and_seeds_differ(table, cli):
    texts = []
    for seed in (1, 1, 2):
        assert cli(*SAMPLE, "--labels", "class", "--seed", seed, "--overwrite").code == 0
        texts.append((table / "drawn.csv").read_text())
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --labels"),
        (("--labels", "class", "--scores", "w"), "give --labels"),
        (("--labels", "none"), "no column 'none'"),
        (("--labels", "class", "--n-pairs", "5", "--fraction", "0.1"), "--fraction must be None if --n-pairs is given"),
        (
            ("--labels", "class", "--n-pairs", "99999"),
            "--n-pairs must be at most 1770, the number of distinct pairs; got 99999",
        ),
        (("--labels", "class", "--fraction", "2"), "fraction"),
        (("--labels", "class", "--flip", "2"), "--flip must lie between 0 and 1"),
        (("--scores", "note"), "'note' must hold numbers to be scores, but holds 'remark 0'"),
        (("--scores", "w", "--per-class", "3"), "by --n-pairs only"),
        (("--labels", "class", "--id", "note"), "ids must be distinct"),
    ],
)
def test_what_cannot_be_drawn(arguments, message, table, cli):
    assert message in cli(*SAMPLE, *arguments).error
    assert not (table / "drawn.csv").exists()


def test_files_that_are_there(table, cli):
    assert "pairs.csv exists already" in cli("pairs", "convert", "pairs.csv", "--out", "pairs.csv").error
    assert "must end in .csv, .jsonl" in cli("pairs", "convert", "pairs.csv", "--out", "pairs.txt").error


NOISY = """a,b,kind
ann,bob,must-link
bob,cid,must-link
ann,cid,cannot-link
dan,eve,must-link
eve,dan,different
x,y,prefer
y,x,prefer
p,q,prefer
q,r,prefer
r,p,prefer
"""


def test_conflicts(tmp_path, cli):
    (tmp_path / "noisy.csv").write_text(NOISY)
    outcome = cli("pairs", "check", "noisy.csv", "--json")
    assert outcome.code == 1
    found = json.loads(outcome.out)
    assert found["lines"] == {"must_link": 3, "cannot_link": 2, "prefer": 5}
    assert {tuple(conflict["chain"]) for conflict in found["conflicts"]} == {("dan", "eve"), ("ann", "bob", "cid")}
    assert found["cycles"] == [["x", "y"], ["p", "q", "r"]]
    text = cli("pairs", "check", "noisy.csv").out
    assert "conflict: dan and eve are must-linked and cannot-linked\n" in text
    assert "conflict: ann and cid are cannot-linked, but ann = bob = cid\n" in text
    assert "conflict: x > y > x go round in a circle\n" in text
    assert "conflict: p > q > r > p go round in a circle\n" in text
    assert text.endswith("4 conflicts\n")


def test_conflicts_with_labels(table, cli):
    (table / "pairs.csv").write_text(f"a,b,kind\n{IDS[0]},{IDS[59]},must-link\n")
    assert cli("pairs", "check", "pairs.csv", "--data", "data.csv", "--id", "id").code == 0
    outcome = cli("pairs", "check", "pairs.csv", "--data", "data.csv", "--id", "id", "--labels", "class", "--json")
    assert outcome.code == 1
    assert json.loads(outcome.out)["conflicts"]
    assert "give it by --data" in cli("pairs", "check", "pairs.csv", "--labels", "class").error


def test_ids_that_the_table_does_not_have(table, cli):
    (table / "pairs.csv").write_text("a,b,kind\nzzz,001,must-link\n")
    assert (
        "has 'zzz' as a: the data has no such id"
        in cli("pairs", "check", "pairs.csv", "--data", "data.csv", "--id", "id").error
    )


@pytest.mark.parametrize("line", ["zzz,1,must-link", "0,99,must-link"])
def test_rows_that_are_no_numbers_or_too_large(line, table, cli):
    (table / "pairs.csv").write_text(f"a,b,kind\n{line}\n")
    error = cli("fit", "data.csv", "--pairs", "pairs.csv", "--drop", "class", "--drop", "id", "--out", "result").error
    assert "line 2 of pairs.csv has" in error
    assert "if the lines name rows by an id, say which column of the data holds it with --id" in error
    assert "give ids" not in error


def test_preferences_among_other_kinds(table, cli):
    (table / "mixed.csv").write_text(f"a,b,kind\n{IDS[0]},{IDS[1]},prefer\n{IDS[0]},{IDS[1]},must\n")
    error = cli("fit", "data.csv", "--prefer", "mixed.csv", "--id", "id", "--drop", "class", "--out", "result").error
    assert "mixed.csv has 1 lines of other kinds than prefer: give it by --pairs" in error


def test_there_and_back(table, cli):
    (table / "weighted.csv").write_text("b;a;link;weight\n001;000;same;2\n002;000;different;\n003;004;prefer;0.5\n")
    assert cli("pairs", "convert", "weighted.csv", "--out", "one.jsonl").code == 0
    assert cli("pairs", "convert", "one.jsonl", "--out", "two.csv").code == 0
    expected = "a,b,kind,weight\n000,001,must-link,2.0\n000,002,cannot-link,1.0\n004,003,prefer,0.5\n"
    assert (table / "two.csv").read_text() == expected


def test_ids_to_rows_and_back(table, cli):
    given = ("--data", "data.csv", "--id", "id")
    assert cli("pairs", "convert", "pairs.csv", "--out", "rows.csv", *given, "--to", "rows").code == 0
    assert lines_of(table / "rows.csv")[0] == [str(int(name)) for name in lines_of(table / "pairs.csv")[0][:2]] + [
        lines_of(table / "pairs.csv")[0][2]
    ]
    assert cli("pairs", "convert", "rows.csv", "--out", "ids.csv", *given, "--to", "ids").code == 0
    assert (table / "ids.csv").read_text() == (table / "pairs.csv").read_text()
    assert "give --data and --id" in cli("pairs", "convert", "pairs.csv", "--out", "x.csv", "--to", "rows").error


def test_convert_to_a_label_table_of_splink_and_back(tmp_path, cli):
    (tmp_path / "answers.csv").write_text("a,b,kind\nann,bob,must-link\nbob,cid,cannot-link\n")
    assert cli("pairs", "convert", "answers.csv", "--out", "labels.csv", "--splink").code == 0
    assert (tmp_path / "labels.csv").read_text().splitlines() == [
        "unique_id_l,unique_id_r,clerical_match_score",
        "ann,bob,1.0",
        "bob,cid,0.0",
    ]
    assert cli("pairs", "convert", "labels.csv", "--out", "again.csv").code == 0
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "answers.csv").read_text()
