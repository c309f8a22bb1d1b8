"""The installed command, from the outside: every subcommand, and every way in which input can be bad."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

import pairlens
from pairlens.cli.app import run
from pairlens.io.models import load, save
from pairlens.methods.pairmap import layout
from pairlens.methods.pairmap.layout import lay_out
from tests.cli.conftest import COMMAND, FIT, IDS, Outcome, X

ASKED_BY = r"asked by (\w+) +(-?[\d.]+) +(-?[\d.]+)"
"""A map of the demo, and its ARI with the species and with the sex."""


def has(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


@pytest.mark.processes
def test_version_and_help(shell):
    assert shell("--version").out == f"pairlens {pairlens.__version__}\n"
    outcome = shell("--help")
    assert outcome.code == 0
    for command in ("fit", "transform", "evaluate", "compare", "pairs", "demo", "export"):
        assert f"  {command} " in outcome.out


@pytest.mark.processes
def test_help_imports_nothing_that_computes():
    code = "import sys; from pairlens.cli.app import run; run(['--help']); sys.exit('numpy' in sys.modules)"
    outcome = subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, timeout=120, check=False)
    assert outcome.returncode == 0


@pytest.mark.processes
def test_as_a_module():
    """`python -m pairlens`, where no script is on the path."""
    outcome = subprocess.run(
        [sys.executable, "-m", "pairlens", "--version"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (outcome.returncode, outcome.stdout) == (0, f"pairlens {pairlens.__version__}\n")


def test_from_a_table_to_a_report_and_on_to_new_rows(table, shell):
    """The main job: fit, then everything that follows from its files."""
    outcome = shell(*FIT, "--out", "result")
    assert outcome.code == 0, outcome.err
    assert "PairMap: 60 rows with 4 columns" in outcome.out
    assert "AUC of held-out pairs: " in outcome.out
    assert outcome.err == ""
    result = table / "result"
    files = {"model.pairlens", "embedding.csv", "run.json"} | ({"report.html"} if has("plotly") else set())
    assert {path.name for path in result.iterdir()} == files

    run = json.loads((result / "run.json").read_text())
    assert run["versions"]["pairlens"] == pairlens.__version__
    assert run["method"]["parameters"]["random_state"] == run["seed"] == 0
    assert run["data"]["columns"] == list("wxyz")
    assert set(run["seconds"]) == {"read", "fit", "judge", "report"}
    if has("plotly"):
        page = (result / "report.html").read_text()
        assert page.startswith("<!doctype html>")
        assert "data.csv" in page

    embedding = (result / "embedding.csv").read_text().splitlines()
    assert embedding[0] == "id,pairmap0,pairmap1"
    assert [line.split(",")[0] for line in embedding[1:]] == IDS

    again = shell("transform", "result/model.pairlens", "data.csv", "--id", "id", "--out", "again.csv")
    assert again.code == 0, again.err
    written = [line.split(",") for line in (table / "again.csv").read_text().splitlines()]
    assert [line[0] for line in written[1:]] == IDS
    ours = np.array([line[1:] for line in written[1:]], dtype=float)
    np.testing.assert_allclose(ours, np.array([line.split(",")[1:] for line in embedding[1:]], dtype=float), atol=1e-9)

    judged = shell("evaluate", "result/model.pairlens", "data.csv", "--labels", "class", "--id", "id", "--json")
    assert judged.code == 0, judged.err
    assert json.loads(judged.out)["pair_auc"][0] > 0.9


def test_compare(table, shell):
    outcome = shell(
        "compare",
        "data.csv",
        "--pairs",
        "pairs.csv",
        "--id",
        "id",
        "--drop",
        "class,note",
        "--methods",
        "wbdr,rca",
        "--json",
    )
    assert outcome.code == 0, outcome.err
    entries = {entry["method"]: entry for entry in json.loads(outcome.out)["results"]["pairs"]}
    assert set(entries) == {"wbdr", "rca", "pca", "tsne", "none"}
    assert all(0 <= entry["score"] <= 1 and entry["seconds"] > 0 for entry in entries.values())
    assert entries["none"]["dimensions"] == 4
    assert entries["pca"]["dimensions"] == 2


def test_pairs_sample_check_and_convert(table, shell, cli):
    drawn = shell("pairs", "sample", "data.csv", "--labels", "class", "--id", "id", "--out", "drawn.csv")
    assert drawn.code == 0, drawn.err
    lines = (table / "drawn.csv").read_text().splitlines()
    assert lines[0] == "a,b,kind"
    assert len(lines) == 61
    assert cli("pairs", "check", "drawn.csv").code == 0
    converted = cli("pairs", "convert", "drawn.csv", "--out", "drawn.jsonl")
    assert converted.code == 0, converted.err
    first = json.loads((table / "drawn.jsonl").read_text().splitlines()[0])
    assert [first["a"], first["b"], first["kind"]] == lines[1].split(",")


@pytest.mark.processes
def test_check_finds_contradictions_and_shows_the_chain(tmp_path, shell):
    (tmp_path / "noisy.csv").write_text("a,b,kind\nann,bob,must-link\nbob,cid,must-link\nann,cid,cannot-link\n")
    outcome = shell("pairs", "check", "noisy.csv")
    assert outcome.code == 1
    assert "ann and cid are cannot-linked, but ann = bob = cid" in outcome.out


def test_export_onnx(fitted, shell):
    pytest.importorskip("onnx", reason="needs the extra io")
    outcome = shell("export", "fitted/model.pairlens", "--to", "onnx", "--out", "model.onnx")
    assert outcome.code == 0, outcome.err
    ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime to run what was exported")
    session = ort.InferenceSession(str(fitted / "model.onnx"), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"X": X.astype(np.float32)})
    expected = np.loadtxt(fitted / "fitted" / "embedding.csv", delimiter=",", skiprows=1)[:, 1:]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_demo(tmp_path, cli, monkeypatch):
    """The whole tour, with 30 scans of each digit: what it tells does not depend on how many there are."""
    digits = load_digits(as_frame=True).frame
    few = Bunch(frame=digits.groupby("target").head(30))
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda **_: few)
    drawn = []
    monkeypatch.setattr(layout, "_KEPT", {})

    def counted(affinities, start, phases, **options):
        drawn.append(len(start))
        return lay_out(affinities, start, phases, **options)

    monkeypatch.setattr(layout, "lay_out", counted)
    outcome = cli("demo")
    assert outcome.code == 0, outcome.err
    # Each t-SNE once, though that of the digits is compared and reported, and that of the penguins reported twice; and
    # a PairMap of the digits for the comparison and for the report, and of the penguins for each question.
    assert drawn == [300] * 3 + [333] * 3
    for part in (
        "pairlens pairs sample",
        "pairlens fit",
        "pairlens compare",
        "PCA (control)",
        "no reduction (control)",
    ):
        assert part in outcome.out
    pairs = (tmp_path / "demo" / "pairs.csv").read_text().splitlines()
    assert len(pairs) == 61
    assert not load(tmp_path / "demo" / "model.pairlens").steps[-1][1].standardize
    # Each map of the penguins shows what was asked, better than the map of the other question does.
    found = {asked: (float(species), float(sex)) for asked, species, sex in re.findall(ASKED_BY, outcome.out)}
    assert found["species"][0] > found["sex"][0] + 0.3
    assert found["sex"][1] > found["species"][1] + 0.1
    assert len(re.findall(r"Your answers decide \d+% of this map", outcome.out)) == 3
    if has("plotly"):
        for question in found:
            assert (tmp_path / "demo" / question / "report.html").stat().st_size > 1_000_000
        path = Path(outcome.out.splitlines()[-1].partition("browser: ")[2])
        assert path == tmp_path / "demo" / "report.html"
        assert path.stat().st_size > 1_000_000


@pytest.mark.processes
def test_shell_completion(shell, monkeypatch):
    monkeypatch.setenv("_PAIRLENS_COMPLETE", "complete_bash")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "pairlens fit data.csv --method kernel-")
    monkeypatch.setenv("COMP_WORDS", "pairlens fit data.csv --method kernel-")
    monkeypatch.setenv("COMP_CWORD", "4")
    assert set(shell().out.split()) >= {"kernel-bwdr", "kernel-wbdr"}


DATA = "data.csv"


def bad_pickle(folder: Path) -> None:
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (folder / "executed",))

    (folder / "model.pairlens").write_bytes(pickle.dumps(Bomb()))


def other_model(folder: Path) -> None:
    pairs = pairlens.Constraints([(0, 1)], [(0, 30)], n_samples=60)
    save(pairlens.SKKMeans(3).fit(X, constraints=pairs), folder / "model.pairlens")


def replaced(name: str, content: str | bytes):
    def change(folder: Path) -> None:
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)

    return change


def huge_number(folder: Path) -> None:
    lines = (folder / DATA).read_text().splitlines()
    lines[5] = lines[5].replace(lines[5].split(",")[1], "1e300", 1)
    (folder / DATA).write_text("\n".join(lines))


def one_row(folder: Path) -> None:
    (folder / DATA).write_text("\n".join((folder / DATA).read_text().splitlines()[:2]))


def nothing(folder: Path) -> None:
    pass


OUT = ("--out", "result")
BAD = {
    "missing data": (nothing, ("fit", "none.csv", "--pairs", "pairs.csv", *OUT), r"none\.csv: No such file"),
    "wrong ids": (
        replaced("pairs.csv", "a,b,kind\n001,zzz,must-link\n"),
        (*FIT, *OUT),
        r"line 2 of pairs\.csv has 'zzz' as b: the data has no such id",
    ),
    "contradictory pairs": (
        replaced("pairs.csv", "a,b,kind\n001,002,must-link\n002,001,cannot-link\n"),
        (*FIT, *OUT),
        r"must-linked and cannot-linked.*--on-conflict warn or --on-conflict drop\. pairlens pairs check",
    ),
    "empty data": (replaced(DATA, ""), (*FIT, *OUT), r"data\.csv is empty"),
    "one row": (one_row, (*FIT, *OUT), r"data\.csv has only one row"),
    "huge numbers": (huge_number, (*FIT, *OUT), r"data\.csv: the column 'w' holds 1e\+300.* in row 4"),
    "not UTF-8": (replaced(DATA, b"id,w\n1,2\n\xe9,3\n"), (*FIT, *OUT), r"not UTF-8 text: line 3 has the byte 0xe9"),
    "a model of another type": (
        other_model,
        ("transform", "model.pairlens", DATA, "--out", "out.csv"),
        r"holds a SKKMeans, which makes no view",
    ),
    "a pickle": (
        bad_pickle,
        ("transform", "model.pairlens", DATA, "--out", "out.csv"),
        r"model\.pairlens is not a model.*pickle",
    ),
    "an unknown method": (nothing, (*FIT, "--method", "wdbr", *OUT), r"no method 'wdbr'; did you mean"),
    "a folder": (nothing, ("fit", ".", "--labels", "class", *OUT), r"error: \. holds no pictures"),
    "a method of triplets": (
        nothing,
        (*FIT, "--method", "lsml", *OUT),
        r"lsml learns from quadruplets or triplets, which",
    ),
    "a method of numbers": (nothing, (*FIT, "--method", "mlkr", *OUT), r"mlkr learns from numbers as a target, which"),
    "an unknown option": (nothing, (*FIT, "--pear", "x", *OUT), r"(?i)no such option.*--pear"),
}


def _ends_with_one_line(name: str, folder: Path, call: Callable[..., Outcome]) -> None:
    change, arguments, message = BAD[name]
    change(folder)
    before = sorted(path.name for path in folder.iterdir())
    assert re.search(message, call(*arguments).error)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_with_one_line(name, table, cli):
    _ends_with_one_line(name, table, cli)


@pytest.mark.processes
@pytest.mark.parametrize("name", ["wrong ids", "a pickle", "an unknown option"])
def test_bad_input_of_the_installed_command(name, table, shell):
    """What the parser, the reader of answers and the reader of models refuse, as a process."""
    _ends_with_one_line(name, table, shell)


def _interrupted(folder: Path, rows: int, number: int) -> tuple[list[Path], int, str]:
    """The half-written file that was seen, the exit code, and what was said."""
    with (folder / "large.csv").open("w") as file:
        file.write("w,x,y,z\n")
        file.writelines("1.25,2.5,3.75,4.5\n" for _ in range(rows))
    (folder / "out.csv").write_text("old")
    process = subprocess.Popen(
        [COMMAND, "transform", "fitted/model.pairlens", "large.csv", "--out", "out.csv", "--overwrite"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    partial: list[Path] = []
    while not partial and process.poll() is None:
        partial = [path for path in folder.glob(".out.*.part.csv") if path.stat().st_size]
        time.sleep(0.005)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    return partial, process.returncode, err


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing(number, code, fitted):
    """A signal in the middle of writing: the file that was begun is gone, what was there before is untouched."""
    # A run that was done before the signal came proves nothing; then the next has more to write.
    for rows in (200_000, 800_000, 3_200_000):
        partial, returned, err = _interrupted(fitted, rows, number)
        if partial and returned != 0:
            break
    assert partial, err
    assert returned == code
    assert "Traceback" not in err
    if number == signal.SIGINT:
        assert err.strip() == "pairlens: interrupted; nothing half-written was left"
    assert not list(fitted.glob(".out.*"))
    assert (fitted / "out.csv").read_text() == "old"
    assert load(fitted / "fitted" / "model.pairlens").transform is not None


def test_an_encoding_without_the_characters_of_the_data(table, monkeypatch):
    """A console of Windows writes cp1252, and a column may have any name."""
    written = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", written)
    monkeypatch.chdir(table)
    (table / DATA).write_text((table / DATA).read_text().replace(",w,", ",\u540d,"), encoding="utf-8")
    assert run([*FIT, "--method", "wbdr", "--json", *OUT]) == 0
    written.flush()
    assert r"\u540d" in written.buffer.getvalue().decode("cp1252")


def test_no_standard_error_at_all(table, monkeypatch):
    """As in a process without a console."""
    monkeypatch.chdir(table)
    monkeypatch.setattr(sys, "stderr", None)
    assert run([*FIT, "--method", "wbdr", *OUT]) == 0
