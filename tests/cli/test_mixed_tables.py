"""Tables as people have them: fit, new rows and report with no flag."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from tests.report.pages import Page

RNG = np.random.default_rng(1)
N = 90
GROUP = np.repeat([0, 1, 2], N // 3)
NUMBERS = RNG.normal(0, 1, (N, 3)) + 2.5 * np.eye(3)[GROUP]
PAIRS = [(int(a), int(b)) for a, b in RNG.integers(0, N, (60, 2)) if a != b]


def words(*choices: str) -> list[str]:
    return [str(RNG.choice(choices)) for _ in range(N)]


def day(i: int) -> tuple[int, int, int]:
    return 2019 + i % 3, 1 + i % 12, 1 + i % 28


MESSY = {
    "mixed types and missing cells": {
        "mass": [f"{v:.3f}" if i % 9 else "NA" for i, v in enumerate(NUMBERS[:, 0])],
        "size": [f"{v:.3f}" for v in NUMBERS[:, 1]],
        "island": ["Biscoe" if g else "Dream" for g in GROUP],
        "sex": [w if i % 10 else "" for i, w in enumerate(words("male", "female"))],
        "year": [str(2007 + i % 3) for i in range(N)],
    },
    "dates in three formats": {
        "value": [f"{v:.3f}" for v in NUMBERS[:, 0]],
        "iso": ["{:04}-{:02}-{:02}".format(*day(i)) for i in range(N)],
        "german": ["{2}.{1}.{0}".format(*day(i)) for i in range(N)],
        "mixed": [["{0}-{1:02}-{2:02}", "{2}/{1}/{0}", "{2} Mar {0}"][i % 3].format(*day(i)) for i in range(N)],
    },
    "separators, quotes and line breaks": {
        "price": [f"{1000 * abs(v) + 1000:,.2f}" for v in NUMBERS[:, 0]],
        "share": [f"{v:.1f} %" for v in NUMBERS[:, 1]],
        'said "so"': [f'he said "{w}",\nand left' for w in words("yes", "no", "perhaps")],
        "size, cm": [f"{v:.2f}" for v in NUMBERS[:, 2]],
    },
    "empty and doubled columns": {
        "a": [f"{v:.3f}" for v in NUMBERS[:, 0]],
        "": ["" for _ in range(N)],
        "empty": ["" for _ in range(N)],
        "a ": [f"{v:.3f}" for v in NUMBERS[:, 1]],
        "same": ["x"] * N,
    },
    "very many words and names beyond ASCII": {
        "größe": [f"{v:.3f}" for v in NUMBERS[:, 0]],
        "名前": [f"{w} {i * 37 % 89}" for i, w in enumerate(words("ada", "grace", "emmy", "sofia"))],
        "stadt": words("Köln", "Łódź", "São Paulo"),
    },
}


@pytest.fixture
def answers(tmp_path):
    lines = [f"r{a},r{b},{'same' if GROUP[a] == GROUP[b] else 'different'}" for a, b in PAIRS]
    (tmp_path / "pairs.csv").write_text("a,b,kind\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def write(path, columns: dict[str, list[str]], rows=range(N)) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *columns])
        for i in rows:
            writer.writerow([f"r{i}", *(column[i] for column in columns.values())])


@pytest.mark.parametrize("name", MESSY)
def test_messy_tables_need_no_flag(answers, cli, name):
    write(answers / "data.csv", MESSY[name])
    outcome = cli("fit", "data.csv", "--pairs", "pairs.csv", "--id", "id", "--out", "r", "--folds", "2")
    assert outcome.code == 0, outcome.err
    run = json.loads((answers / "r" / "run.json").read_text(encoding="utf-8"))
    listed = {column["name"]: column for column in run["data"]["encoding"]}
    assert len(listed) == len(MESSY[name])
    assert all(column["name"] in outcome.out for column in listed.values())
    # New rows: the same places, also for columns in another order, unseen words and missing cells.
    # Two columns of one name are told apart by their order.
    turned = MESSY[name] if "doubled" in name else dict(reversed(MESSY[name].items()))
    write(answers / "new.csv", turned, range(10))
    assert cli("transform", "r/model.pairlens", "new.csv", "--id", "id", "--out", "new-view.csv").code == 0
    first = np.loadtxt(answers / "r" / "embedding.csv", delimiter=",", skiprows=1, usecols=(1, 2), max_rows=10)
    again = np.loadtxt(answers / "new-view.csv", delimiter=",", skiprows=1, usecols=(1, 2))
    np.testing.assert_allclose(again, first, atol=1e-6)
    odd = {column: ["never seen before"] * 3 if i % 2 else [""] * 3 for i, column in enumerate(MESSY[name])}
    write(answers / "odd.csv", odd, range(3))
    assert cli("transform", "r/model.pairlens", "odd.csv", "--id", "id", "--out", "odd-view.csv").code == 0
    assert np.isfinite(np.loadtxt(answers / "odd-view.csv", delimiter=",", skiprows=1, usecols=(1, 2))).all()
    assert "<title>" in (answers / "r" / "report.html").read_text(encoding="utf-8")


def test_roles_of_messy_columns(answers, cli):
    roles = {}
    for columns in MESSY.values():
        write(answers / "data.csv", columns)
        given = ("fit", "data.csv", "--pairs", "pairs.csv", "--id", "id", "--method", "bwdr", "--out", "r")
        outcome = cli(*given, "--overwrite", "--json")
        roles |= {c["name"]: c["role"] for c in json.loads(outcome.out)["data"]["encoding"]}
    assert {name: roles[name] for name in ("mass", "island", "sex", "price", "share", "iso", "german", "mixed")} == {
        "mass": "number",
        "island": "yes/no",
        "sex": "yes/no",
        "price": "number",
        "share": "number",
        "iso": "date",
        "german": "date",
        "mixed": "date",
    }
    assert roles["empty"] == roles["same"] == roles["(unnamed)"] == "constant"


def test_columns_file(answers, cli):
    write(answers / "data.csv", MESSY["mixed types and missing cells"])
    (answers / "columns.csv").write_text("name,role,weight\nyear,category,\nsex,dropped,\nmass,,4\n", encoding="utf-8")
    given = ("fit", "data.csv", "--pairs", "pairs.csv", "--id", "id", "--method", "bwdr", "--out", "r", "--json")
    given = (*given, "--overwrite")
    run = json.loads(cli(*given, "--columns", "columns.csv").out)
    found = {column["name"]: (column["role"], column["weight"]) for column in run["data"]["encoding"]}
    assert found["year"] == ("category", 1.0)
    assert found["sex"] == ("dropped", 0.0)
    assert found["mass"] == ("number", 4.0)
    (answers / "columns.csv").write_text("name,role\nyeer,category\n", encoding="utf-8")
    assert "did you mean 'year'?" in cli(*given, "--columns", "columns.csv").error
    (answers / "columns.csv").write_text("name,role\nyear,kategory\n", encoding="utf-8")
    assert "'kategory'; it must be one of number" in cli(*given, "--columns", "columns.csv").error


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", "inf", "3", "4"], "holds infinity in row 1"),
        (["1", "1e300", "3", "4"], "whose square leaves the range"),
        (["x"] * 4, "no column can be learned from"),
    ],
)
def test_bad_tables_end_in_one_line(answers, cli, cells, message):
    write(answers / "data.csv", {"a": cells, "b": ["y"] * 4}, range(4))
    (answers / "pairs.csv").write_text("a,b,kind\nr0,r1,same\nr2,r3,different\n", encoding="utf-8")
    assert message in cli("fit", "data.csv", "--pairs", "pairs.csv", "--id", "id", "--out", "r").error


def test_a_column_of_5000_words(answers, cli):
    rng = np.random.default_rng(4)
    n = 6_000
    names = ["".join(letters) for letters in rng.choice(list("abcdefghij"), (5_000, 7))]
    columns = {
        "name": [names[i] for i in [*range(5_000), *rng.integers(0, 5_000, n - 5_000)]],
        "size": [f"{v:.3f}" for v in [*NUMBERS[:, 0], *rng.normal(0, 1, n - N)]],
    }
    assert len(set(columns["name"])) > 4_900
    write(answers / "data.csv", columns, range(n))
    fit = ("fit", "data.csv", "--pairs", "pairs.csv", "--id", "id", "--out", "r", "--folds", "2")
    outcome = cli(*fit, "--method", "linear-pairlens")
    assert outcome.code == 0, outcome.err
    run = json.loads((answers / "r" / "run.json").read_text(encoding="utf-8"))
    found = {column["name"]: column for column in run["data"]["encoding"]}
    assert (found["name"]["role"], found["name"]["n_features"]) == ("short text", 100)
    write(answers / "new.csv", columns, range(50))
    assert cli("transform", "r/model.pairlens", "new.csv", "--id", "id", "--out", "new-view.csv").code == 0
    page = (answers / "r" / "report.html").read_text(encoding="utf-8")
    section = page.partition('id="columns"')[2].partition("</section>")[0]
    assert "short text" in section
    assert "2 of 2 columns used" in section


@pytest.mark.parametrize("beside", [False, True])
def test_texts_of_a_table_or_beside_its_features_name_the_islands_of_the_report(beside, cli, tmp_path):
    pytest.importorskip("plotly")
    topics = ["violin cello", "referee stadium", "flour oven"]
    texts = [
        f"It is about {topics[g]} and number {i % 7} of something that people often do." for i, g in enumerate(GROUP)
    ]
    columns = {"id": [f"r{i}" for i in range(N)], "text": texts}
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values())])
    np.save(tmp_path / "features.npy", 4 * NUMBERS)
    lines = [f"r{a},r{b},{'must-link' if GROUP[a] == GROUP[b] else 'cannot-link'}" for a, b in PAIRS]
    (tmp_path / "pairs.csv").write_text("\n".join(["a,b,kind", *lines]))
    data = ["features.npy", "--rows", "rows.csv"] if beside else ["rows.csv"]
    outcome = cli("fit", *data, "--id", "id", "--pairs", "pairs.csv", "--method", "linear-pairlens", "--out", "result")
    assert outcome.code == 0, outcome.err
    page = Page((tmp_path / "result/report.html").read_text(encoding="utf-8"))
    named = [set(island["words"]) for island in page.data["islands"]]
    assert len(named) > 1
    assert all(any(words <= set(topic.split()) for topic in topics) for words in named)
