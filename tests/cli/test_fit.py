"""``pairlens fit`` in detail: kinds of files, supervision, columns, and the mistakes people make."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import pairlens
from pairlens import PairMap
from pairlens.io.models import load
from tests.cli.conftest import CLASSES, FIT, IDS, X, pairs_text

QUICK = ("--method", "wbdr", "--out", "result")


def columns_of(run):
    return run["data"]["columns"]


def run_of(folder):
    return json.loads((folder / "result" / "run.json").read_text())


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "npy", "npz"])
def test_every_kind_of_file_gives_the_same_view(kind, table, cli):
    pairs, rest = ("pairs.csv", ("--id", "id"))
    if kind == "tsv":
        text = (table / "data.csv").read_text()
        (table / "data.tsv").write_text(text.replace(",", "\t"))
    elif kind == "parquet":
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow", reason="needs the extra io")
        pd.DataFrame({"id": IDS, **{name: X[:, j] for j, name in enumerate("wxyz")}}).to_parquet(table / "data.parquet")
    elif kind == "npy":
        np.save(table / "data.npy", X)
        (table / "rows.csv").write_text(pairs_text(lambda row: row))
        pairs, rest = "rows.csv", ()
    elif kind == "npz":
        np.savez(table / "data.npz", X=X, id=np.array(IDS), y=CLASSES)
    drop = ("--drop", "class,note") if kind in ("csv", "tsv") else ()
    outcome = cli("fit", f"data.{kind}", "--pairs", pairs, *rest, *drop, *QUICK)
    assert outcome.code == 0, outcome.err
    expected = cli(*FIT, "--method", "wbdr", "--out", "expected")
    assert expected.code == 0
    wanted = np.loadtxt(table / "expected" / "embedding.csv", delimiter=",", skiprows=1)[:, 1:]
    path = table / "result" / f"embedding.{kind}"
    if kind in ("csv", "tsv"):
        found = np.loadtxt(path, delimiter="," if kind == "csv" else "\t", skiprows=1)[:, 1:]
        assert [line[:3] for line in path.read_text().splitlines()[1:]] == IDS
    elif kind == "parquet":
        frame = pd.read_parquet(path)
        assert frame["id"].tolist() == IDS
        found = frame[["wbdr0", "wbdr1"]].to_numpy()
    elif kind == "npy":
        found = np.load(path)
    else:
        with np.load(path) as arrays:
            assert arrays["id"].tolist() == IDS
            found = arrays["embedding"]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_the_view_is_what_the_methods_give(table, cli):
    from sklearn.preprocessing import StandardScaler

    from pairlens import WBDR, Constraints
    from tests.cli.conftest import PAIRS

    assert cli(*FIT, *QUICK).code == 0
    must = [(a, b) for a, b in PAIRS if CLASSES[a] == CLASSES[b]]
    cannot = [(a, b) for a, b in PAIRS if CLASSES[a] != CLASSES[b]]
    scaled = StandardScaler().fit_transform(X)
    expected = WBDR(2).fit_transform(scaled, constraints=Constraints(must, cannot, n_samples=60))
    found = np.loadtxt(table / "result" / "embedding.csv", delimiter=",", skiprows=1)[:, 1:]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("scale", "step"), [("standard", "StandardScaler"), ("minmax", "MinMaxScaler"), ("none", "TableEncoder")]
)
def test_scaling(scale, step, table, cli):
    assert cli(*FIT, *QUICK, "--scale", scale).code == 0
    model = load(table / "result" / "model.pairlens")
    assert type(model.steps[-2][1]).__name__ == step


@pytest.mark.parametrize(
    ("scale", "standardized"), [("auto", True), ("standard", True), ("minmax", False), ("none", False)]
)
def test_methods_that_scale_columns_themselves_keep_a_chosen_scale(scale, standardized, table, cli):
    assert cli(*FIT, "--out", "result", "--method", "linear-pairlens", "--folds", "2", "--scale", scale).code == 0
    assert load(table / "result" / "model.pairlens").steps[-1][1].standardize is standardized


def test_the_model_takes_a_frame_in_python(table, cli):
    pd = pytest.importorskip("pandas")
    assert cli(*FIT, *QUICK).code == 0
    model = load(table / "result" / "model.pairlens")
    found = np.loadtxt(table / "result" / "embedding.csv", delimiter=",", skiprows=1)[:, 1:]
    frame = pd.read_csv(table / "data.csv")[["z", "note", "x", "w", "y"]]
    np.testing.assert_allclose(model.transform(frame), found, rtol=1e-12)


def test_words_become_columns(table, cli):
    outcome = cli(*FIT[:-1], "class", *QUICK, "--json")
    assert outcome.code == 0, outcome.err
    run = json.loads(outcome.out)
    assert columns_of(run) == [*"wxyz", "note"]
    model = load(table / "result" / "model.pairlens")
    assert len(model[:-1].get_feature_names_out()) == 4 + 7


@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_missing_numbers_are_filled_in(kind, table, cli):
    (table / "rows.csv").write_text(pairs_text(lambda row: row))
    if kind == "csv":
        lines = (table / "data.csv").read_text().splitlines()
        lines[3] = lines[3].replace(lines[3].split(",")[2], "NA", 1)
        (table / "data.csv").write_text("\n".join(lines))
    else:
        rows = X.copy()
        rows[2, 1] = np.nan
        np.save(table / "data.npy", rows)
    drop = ("--drop", "class,note,id") if kind == "csv" else ()
    outcome = cli("fit", f"data.{kind}", "--pairs", "rows.csv", *drop, *QUICK)
    assert outcome.code == 0, outcome.err
    data = run_of(table)["data"]
    assert data["missing_filled_in"] is True
    assert [column["n_missing"] for column in data["encoding"]] == [0, 1, 0, 0]
    found = table / "result" / f"embedding.{kind}"
    assert np.isfinite(np.load(found) if kind == "npy" else np.loadtxt(found, delimiter=",", skiprows=1)).all()
    assert cli("transform", "result/model.pairlens", f"data.{kind}", "--out", f"new.{kind}").code == 0


def test_labels_alone(table, cli):
    lines = (table / "data.csv").read_text().splitlines()
    # Three quarters of the labels are unknown.
    lines[1:] = [line if k % 4 == 0 else line.rpartition(",")[0] + "," for k, line in enumerate(lines[1:])]
    (table / "data.csv").write_text("\n".join(lines))
    outcome = cli("fit", "data.csv", "--labels", "class", "--id", "id", *QUICK)
    assert outcome.code == 0, outcome.err
    assert run_of(table)["pairs"] == {"must_link": 30, "cannot_link": 75, "prefer": 0}


def test_a_group_for_every_row(table, cli):
    """Groups have numbers, or the names that labels give them."""
    outcome = cli(*FIT, *QUICK, "--groups")
    assert outcome.code == 0, outcome.err
    assert "groups.csv" in outcome.out
    written = [line.split(",") for line in (table / "result" / "groups.csv").read_text().splitlines()]
    assert written[0] == ["id", "group", "probability", "known"]
    assert [line[0] for line in written[1:]] == list(IDS)
    assert {line[1].rstrip("123456789") for line in written[1:]} == {"group "}
    outcome = cli("fit", "data.csv", "--labels", "class", "--id", "id", *QUICK, "--groups", "--overwrite")
    assert outcome.code == 0, outcome.err
    written = [line.split(",") for line in (table / "result" / "groups.csv").read_text().splitlines()[1:]]
    assert [line[1] for line in written] == ["abc"[label] for label in CLASSES]
    assert {line[3] for line in written} == {"placed"}
    assert "--about is a guess at the number of groups: give --groups too" in cli(*FIT, *QUICK, "--about", 9).error
    numbers = []
    (table / "pairs.csv").write_text("\n".join((table / "pairs.csv").read_text().splitlines()[:7]))
    for about in (1, 60):
        assert cli(*FIT, *QUICK, "--groups", "--about", about, "--overwrite").code == 0
        written = (table / "result" / "groups.csv").read_text().splitlines()[1:]
        numbers.append(len({line.split(",")[1] for line in written}))
    assert numbers[0] < numbers[1]
    assert (
        "--groups needs --pairs or --labels"
        in cli(
            "fit", "data.csv", "--prefer", "prefer.csv", "--id", "id", "--drop", "class", "--out", "other", "--groups"
        ).error
    )


def test_preferences_choose_a_method_for_them(table, cli):
    outcome = cli("fit", "data.csv", "--prefer", "prefer.csv", "--id", "id", "--drop", "class", "--out", "result")
    assert outcome.code == 0, outcome.err
    run = run_of(table)
    assert run["method"]["name"] == "WSDR"
    assert run["result"]["held_out_preference_accuracy"] > 0.8
    assert "accuracy on held-out preferences" in outcome.out


def test_one_file_with_all_kinds(table, cli):
    text = (table / "pairs.csv").read_text() + f"{IDS[50]},{IDS[3]},prefer\n"
    (table / "pairs.csv").write_text(text)
    outcome = cli(*FIT, *QUICK)
    assert outcome.code == 0
    assert "wbdr does not use the 1 preferences" in outcome.err
    assert run_of(table)["pairs"]["prefer"] == 1
    default = cli(*FIT, "--out", "default", "--folds", "2")
    assert "pair-map does not use the 1 preferences" in default.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "wsdr"), "wsdr learns from preferences: give --prefer"),
        (("--method", "skkmeans"), "skkmeans makes no view of its own"),
        (("--dims", "0"), "--dims must be a whole number from 1 on, or auto"),
        (("--dims", "two"), "--dims must be a whole number"),
        (("--method", "wbdr", "--dims", "99"), "--dims must be at most the number of features, 4; got 99"),
        (("--method", "wbdr", "--dims", "auto"), "wbdr does not find the number of directions: give it by --dims"),
        (("--scale", "log"), "Invalid value for '--scale': 'log' is not one of"),
        (("--seed", "-1"), "Invalid value for '--seed'"),
        (("--id", "idd"), "no column 'idd'; did you mean 'id'?"),
        (("--labels", "klass"), "no column 'klass'; did you mean 'class'?"),
        (("--drop", "v"), "no column 'v'"),
        (("--drop", "w,x,y,z"), "data.csv has no columns besides those asked for"),
    ],
)
def test_options_that_do_not_fit(arguments, message, table, cli):
    assert message in cli(*FIT, "--out", "result", *arguments).error
    assert not (table / "result").exists()


def test_one_column_and_one_direction_are_said_to_be_one(table, cli):
    out = cli(*FIT, "--out", "result", "--method", "wbdr", "--dims", "1", "--drop", "x,y,z,class").out
    assert "60 rows with 1 column, " in out
    assert "; 1 direction in " in out


def test_nothing_to_learn_from(table, cli):
    assert "give --pairs, --labels or --prefer" in cli("fit", "data.csv", "--out", "result").error
    (table / "pairs.csv").write_text("a,b,kind\n")
    assert "pairs.csv holds no pairs" in cli(*FIT, *QUICK).error


def test_the_number_of_directions_can_be_found(table, cli):
    assert cli(*FIT, "--method", "linear-pairlens", "--dims", "auto", "--out", "result").code == 0
    assert run_of(table)["result"]["directions"] >= 1


def test_results_repeat(table, cli):
    for name in ("one", "two"):
        assert cli(*FIT, "--out", name, "--seed", "7").code == 0
    for file in ("embedding.csv", "model.pairlens"):
        one, two = ((table / name / file).read_bytes() for name in ("one", "two"))
        assert one == two


def test_results_are_not_overwritten_unasked(table, cli):
    assert cli(*FIT, *QUICK).code == 0
    assert "result holds model.pairlens already" in cli(*FIT, *QUICK).error
    assert cli(*FIT, *QUICK, "--overwrite").code == 0


def test_a_folder_that_cannot_be_made(table, cli):
    (table / "file").write_text("")
    assert "file is a file: --out must name a folder" in cli(*FIT, "--out", "file").error
    assert "file" in cli(*FIT, "--method", "wbdr", "--out", "file/result").error


def test_a_failure_while_writing_leaves_no_file(table, cli, monkeypatch):
    from pairlens.io import models

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device", "model.pairlens")

    monkeypatch.setattr(models, "save", fail)
    assert "No space left on device" in cli(*FIT, *QUICK).error
    assert list((table / "result").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("id,w,x,y,z,note,class\n", ""), "did you mean|has no column 'id'"),
        (lambda text: text.replace("\n001,", "\n000,"), "--id must be distinct, and one comes 2 times; got '000'"),
        (lambda text: text + "1,2,3,4,5,6,7,8\n", "not a table: expected 7 fields in line 62, saw 8"),
    ],
    ids=["no header", "ids twice", "long line"],
)
def test_odd_tables(change, message, table, cli):
    import re

    (table / "data.csv").write_text(change((table / "data.csv").read_text()))
    assert re.search(message, cli(*FIT, *QUICK).error)


def test_tables_from_spreadsheets(table, cli):
    """A byte-order mark, semicolons and decimal commas change nothing."""
    text = (table / "data.csv").read_text().replace(",", ";").replace(".", ",")
    (table / "sheet.csv").write_text("\ufeff" + text, encoding="utf-8")
    pairs = (table / "pairs.csv").read_text().replace(",", ";")
    (table / "sheet-pairs.csv").write_text("\ufeff" + pairs, encoding="utf-8")
    sheet = ("fit", "sheet.csv", "--pairs", "sheet-pairs.csv", "--id", "id", "--drop", "class,note")
    assert cli(*sheet, "--method", "wbdr", "--out", "sheet").code == 0
    assert cli(*FIT, *QUICK).code == 0
    found, expected = ((table / name / "embedding.csv").read_text() for name in ("sheet", "result"))
    assert found == expected


def test_ids_that_are_numbers(table, cli):
    """1 and 001 are different ids, in CSV and in JSON lines alike."""
    plain = {name: str(int(name)) for name in IDS}
    lines = (table / "data.csv").read_text().splitlines()
    lines[1:] = [plain[line[:3]] + line[3:] for line in lines[1:]]
    (table / "data.csv").write_text("\n".join(lines))
    assert "has '0" in cli(*FIT, *QUICK).error
    answers = [line.split(",") for line in (table / "pairs.csv").read_text().splitlines()[1:]]
    objects = [json.dumps({"a": int(a), "b": int(b), "kind": kind}) for a, b, kind in answers]
    (table / "pairs.jsonl").write_text("\n".join(objects))
    assert cli("fit", "data.csv", "--pairs", "pairs.jsonl", "--id", "id", "--drop", "class", *QUICK).code == 0


def test_pairs_by_position_without_ids(table, cli):
    (table / "rows.csv").write_text(pairs_text(lambda row: row))
    by_row = ("fit", "data.csv", "--pairs", "rows.csv", "--drop", "class,id,note")
    assert cli(*by_row, *QUICK).code == 0
    assert cli(*FIT, "--method", "wbdr", "--out", "ids").code == 0
    found, expected = (
        np.loadtxt(table / name / "embedding.csv", delimiter=",", skiprows=1) for name in ("result", "ids")
    )
    np.testing.assert_array_equal(found, expected)
    (table / "rows.csv").write_text("a,b,kind\n0,60,must-link\n")
    assert "row numbers go from 0 to 59; if the lines name rows by an id" in cli(*by_row, *QUICK, "--overwrite").error


def test_chains_that_contradict_are_warned_of_or_dropped(table, cli):
    (table / "pairs.csv").write_text(
        (table / "pairs.csv").read_text() + "000,001,must-link\n001,002,must-link\n000,002,cannot-link\n"
    )
    warned = cli(*FIT, *QUICK)
    assert warned.code == 0
    assert "pairlens: warning: 1 cannot-link is contradicted by a chain of must-links" in warned.err
    dropped = cli(*FIT, *QUICK, "--overwrite", "--on-conflict", "drop")
    assert dropped.code == 0
    assert "contradicted" not in dropped.err
    assert "contradicted by a chain" in cli(*FIT, *QUICK, "--overwrite", "--on-conflict", "raise").error


def test_cells_with_markup_do_no_harm_in_the_report(table, cli):
    pytest.importorskip("plotly", reason="needs the extra report")
    text = (table / "data.csv").read_text().replace("id,w,", 'id,"<img src=x onerror=alert(1)>",')
    (table / "data.csv").write_text(text.replace("\n005,", "\n</script><script>alert(1)</script>,"))
    (table / "pairs.csv").write_text(
        (table / "pairs.csv").read_text().replace("005,", "</script><script>alert(1)</script>,")
    )
    outcome = cli(*FIT, *QUICK, "--colour", "note")
    assert outcome.code == 0, outcome.err
    page = (table / "result" / "report.html").read_text()
    assert "<img src=x onerror" not in page
    assert "<script>alert(1)" not in page


def test_a_column_that_names_the_rows_is_left_out(table, cli):
    (table / "rows.csv").write_text(pairs_text(lambda row: row))
    outcome = cli("fit", "data.csv", "--pairs", "rows.csv", "--drop", "class", *QUICK)
    assert outcome.code == 0
    line = next(line for line in outcome.out.splitlines() if line.startswith("id "))
    assert line.split()[:4] == ["id", "identifier", "left", "out"]


def test_numbers_of_a_table_are_those_of_an_array(table, cli):
    """The encoder leaves numbers as they are, but for columns of one value."""
    text = (table / "data.csv").read_text().splitlines()
    (table / "data.csv").write_text("\n".join([text[0] + ",same", *(line + ",1" for line in text[1:])]))
    outcome = cli(*FIT, *QUICK)
    assert outcome.code == 0, outcome.err
    assert "left out: same\n" in outcome.out
    model = load(table / "result" / "model.pairlens")
    np.testing.assert_allclose(model.steps[1][1].mean_, X.mean(axis=0), rtol=1e-12)
    assert run_of(table)["data"]["encoding"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "data.csv", "--pairs", "none.csv", "--out", "result"), "none.csv: No such file"),
        (("evaluate", "data.csv", "data.csv", "--pairs", "pairs.csv"), "data.csv is not a model written by"),
        (("fit", "data.csv"), "Missing option '--out'"),
        (("fit", "--out", "result"), "Missing argument"),
        (("fitt",), "No such command 'fitt'"),
        (("pairs", "chek"), "No such command 'chek'"),
    ],
)
def test_command_lines_that_do_not_fit(arguments, message, table, cli):
    assert message in cli(*arguments).error


def test_no_command_shows_the_help(cli):
    outcome = cli()
    assert outcome.code in (0, 2)  # click 8.1 and later
    assert (outcome.out or outcome.err).startswith("Usage: pairlens [OPTIONS] COMMAND")


def test_text_of_the_data_does_not_steer_the_terminal(table, cli):
    text = (table / "data.csv").read_text().replace("note", "no\x1b[2Jte")
    (table / "data.csv").write_text(text)
    outcome = cli(*FIT[:-1], "class", *QUICK)
    assert outcome.code == 0
    assert "te  category" in outcome.out
    assert "\x1b" not in outcome.out + outcome.err


def test_how_much_the_answers_decide_is_told(table, cli):
    outcome = cli(*FIT, "--out", "result", "--folds", "2")
    assert outcome.code == 0, outcome.err
    result = run_of(table)["result"]
    spaces = result["space_weights"]
    assert list(spaces) == ["rows", "linear", "kernel", "diffusion"]
    assert sum(space["weight"] for space in spaces.values()) == pytest.approx(1)
    assert (
        f"Your answers decide {1 - spaces['rows']['weight']:.0%} of this map. The rows alone would tell your held-out "
        f"pairs apart with AUC {spaces['rows']['auc']:.2f}; what the map has learned does with {result['auc']:.2f}.\n"
    ) in outcome.out
    assert "space_weights" not in (table / "result" / "report.html").read_text()
    outcome = cli(*FIT, *QUICK, "--overwrite")
    assert "answers decide" not in outcome.out
    assert "space_weights" not in run_of(table)["result"]


def test_answers_that_look_wrong_are_named(table, cli):
    """Among right answers none stands out; where a tenth is wrong, wrong ones do."""
    kinds = ("cannot-link", "must-link")
    asked = np.random.default_rng(0).permuted(np.tile(np.arange(60), (150, 1)), axis=1)[:, :2]
    right = CLASSES[asked[:, 0]] == CLASSES[asked[:, 1]]
    options = ("--method", "linear-pairlens", "--on-conflict", "warn", "--overwrite")
    for n_wrong in (0, 15):
        said = right ^ (np.arange(150) < n_wrong)
        lines = [f"{IDS[a]},{IDS[b]},{kinds[int(same)]}" for (a, b), same in zip(asked, said)]
        (table / "pairs.csv").write_text("\n".join(["a,b,kind", *dict.fromkeys(lines)]) + "\n")
        outcome = cli(*FIT, *options, "--out", "result")
        assert outcome.code == 0, outcome.err
        named = run_of(table)["suspicious"]
        if n_wrong == 0:
            assert named == []
            assert "answers that look wrong: none stands out\n" in outcome.out
        else:
            first = named[0]
            a, b = IDS.index(first["a"]), IDS.index(first["b"])
            assert (first["kind"] == "must-link") != (CLASSES[a] == CLASSES[b])
            assert first["suspicion"] > 0.5
            assert f"answers that look wrong: {first['a']} and {first['b']} ({first['kind']}, " in outcome.out


def test_the_view_is_compared_with_pca_and_tsne_in_one_line_each(table, cli):
    pytest.importorskip("openTSNE")
    outcome = cli(*FIT, "--out", "result")
    assert outcome.code == 0, outcome.err
    said = json.loads((table / "result/run.json").read_text())["result"]
    assert [verdict["against"] for verdict in said["verdicts"]] == ["PCA", "t-SNE"]
    assert f"compared with PCA: {said['verdicts'][0]['says']}\n" in outcome.out
    line = next(line for line in outcome.out.splitlines() if line.startswith("what the answers changed"))
    assert said["verdicts"][1]["says"] in line
    assert f"{said['neighbours_moved']:.0%} are others" in line


def test_a_map_judges_itself_once(table, cli, monkeypatch):
    pytest.importorskip("openTSNE")
    fits = []
    whole = PairMap._learn
    monkeypatch.setattr(PairMap, "_learn", lambda self, *given: fits.append(1) or whole(self, *given))
    assert cli(*FIT, "--out", "result").code == 0
    assert len(fits) == 1


@pytest.mark.parametrize(("drop", "warns"), [("note", True), ("note,class", False)])
def test_a_column_that_gives_the_answers_away_is_warned_of(drop, warns, table, cli):
    arguments = ("fit", "data.csv", "--pairs", "pairs.csv", "--id", "id", "--method", "wbdr", "--out", "result")
    err = cli(*arguments, "--drop", drop).err
    assert ("the column 'class' alone explains all" in err) == warns
    assert ("leave it out by --drop class" in err) == warns


def test_a_fit_walks_through_few_files(table, cli):
    """Whoever wants to know what the command does has to open that many files of ours."""
    pytest.importorskip("openTSNE")
    arguments = (*FIT, "--out", "result", "--overwrite")
    assert cli(*arguments).code == 0
    root, walked = str(Path(pairlens.__path__[0])), set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(root) and frame.f_code.co_name != "<module>":
            walked.add(frame.f_code.co_filename.removeprefix(root))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        assert cli(*arguments).code == 0
    finally:
        sys.setprofile(before)
    assert 30 < len(walked) <= 70, sorted(walked)
