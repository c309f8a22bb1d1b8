"""The command line: choosing experiments, running them, writing the page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from reproduction import DataSet, Quick, catalogue, command, prose
from reproduction.__main__ import main, parser
from reproduction.command import chosen, reproduce
from reproduction.results import Archive
from tests.reproduction import tiny

ROOT = Path(__file__).parents[2]


@pytest.fixture
def only_tiny(monkeypatch):
    found = SimpleNamespace(name="tiny", title="Tiny", claims=(), pictures=(), experiments=[tiny.experiment()])
    for module in (catalogue, command, prose):
        monkeypatch.setattr(module, "experiments", lambda names=None: [tiny.experiment()], raising=False)
        monkeypatch.setattr(module, "papers", lambda: [found])


def test_list(capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    for name in ("dsp-table3", "dsp-table4", "dsp-table5", "dsp-table6", "dsp-figure4", "dsp-figure5"):
        assert f"\n{name} " in "\n" + shown
    for name in ("table2", "table3", "figure2", "figure3", "figure5", "figure6"):
        assert f"\nbwdr-{name} " in "\n" + shown


def test_choosing():
    assert [one.name for one in chosen(["dsp-table4", "dsp-table3", "dsp-table4"])] == ["dsp-table4", "dsp-table3"]
    assert {one.name.partition("-")[0] for one in chosen(["bwdr"])} == {"bwdr"}
    assert [data.name for data in chosen(["dsp-table5"], sets=["isolet"])[0].sets] == ["isolet"]
    assert chosen(["dsp-table4"], runs=7)[0].runs == 7
    assert chosen(["dsp-table4"], profile="full")[0].runs == 20
    # Experiments without the set are left out.
    assert [one.name for one in chosen(["bwdr"], sets=["labor"])] == ["bwdr-table2", "bwdr-table3"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dsp-table44"], "there is no experiment 'dsp-table44'; there are: all, "),
        (["dsp-table4", "--sets", "mnist"], "no experiment chosen has a data set 'mnist'; they have: balance, "),
        (["dsp-table4", "--runs", "0"], "--runs must be at least 1, got 0"),
        (["dsp-table4", "--jobs", "0"], "--jobs must be at least 1, got 0"),
    ],
)
def test_errors(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("only_tiny")
def test_run_and_page(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["tiny", "--profile", "full", "--jobs", "1"]) == 0
    shown = capsys.readouterr().out
    assert "tiny: mean absolute difference from the paper: A " in shown
    assert "12 units computed, 0 were there already" in shown
    folder = tmp_path / "build" / "reproduction" / "full"
    files = {"tiny.md", "tiny.csv", "tiny.png", "tiny.svg", "report.html"}
    assert {path.name for path in folder.iterdir()} == {*files, "units"}
    before = {name: (folder / name).read_bytes() for name in files}
    assert main(["tiny", "--profile", "full", "--jobs", "1"]) == 0
    assert "0 units computed, 12 were there already" in capsys.readouterr().out
    assert {name: (folder / name).read_bytes() for name in files} == before
    monkeypatch.setattr(command, "Archive", lambda: Archive(tmp_path / "stored"))
    docs = tmp_path / "docs"
    docs.mkdir()
    mark = "<!--= tiny; set=left; method=A; measure=score; best=dim; .2f -->"
    (docs / "prose.md").write_text(f"The score is {mark}stale<!--/-->.", encoding="utf-8")
    assert main(["--docs", "docs"]) == 0
    written = (docs / "reproduction.md").read_text("utf-8")
    assert "## A tiny experiment" in written
    assert "## Not run" not in written
    assert "Computed on 20" in written
    assert (docs / "pictures" / "papers" / "tiny.png").exists()
    assert "](pictures/papers/tiny.png)" in written
    assert re.fullmatch(rf"The score is {re.escape(mark)}0\.\d\d<!--/-->\.", (docs / "prose.md").read_text("utf-8"))


def test_missing_sets_are_named_with_their_experiments(tmp_path, monkeypatch):
    monkeypatch.setenv("PAIRLENS_DATA", str(tmp_path))
    missing = replace(tiny.experiment(), sets=(*tiny.experiment().sets, DataSet("no_such_set")), quick=Quick(runs=1))
    monkeypatch.setattr(command, "experiments", lambda names=None: [missing, replace(missing, name="tiny-2")])
    shown: list[str] = []
    assert reproduce(["all"], out=tmp_path, quiet=True, say=shown.append) == 0
    assert shown[-1] == "not run, because the data are not on this machine: no_such_set (tiny, tiny-2)"


@pytest.mark.usefixtures("only_tiny")
def test_failed_units_make_the_command_fail(tmp_path, monkeypatch):
    def broken(unit):
        raise ArithmeticError("no luck")

    monkeypatch.setattr(tiny, "measure", broken)
    shown: list[str] = []
    assert reproduce(["tiny"], out=tmp_path, quiet=True, say=shown.append) == 1
    assert "2 units failed" in shown[-1]


@pytest.mark.usefixtures("only_tiny")
def test_sets_are_separated_by_commas_or_given_again(tmp_path):
    both = ["--sets", "left,right"], ["--sets", "left", "--sets", "right"]
    for place, sets in zip(("commas", "again"), both):
        assert main(["tiny", "--out", str(tmp_path / place), "--jobs", "1", *sets]) == 0
    written = [(tmp_path / place / "tiny.csv").read_text() for place in ("commas", "again")]
    assert written[0] == written[1]
    assert "left" in written[0]
    assert "right" in written[0]


@pytest.mark.processes
def test_the_module_is_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "reproduction", "list"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=True,
    )
    assert "bwdr-table2" in done.stdout


def test_the_commands_of_the_pages_name_experiments():
    """With options that the command line has."""
    calls = []
    for page in (ROOT / "docs").glob("*.md"):
        calls += re.findall(r"python -m reproduction ([^`\n]+)", page.read_text("utf-8"))
    assert len(calls) >= 5
    for call in calls:
        given = parser().parse_args(shlex.split(call))
        if given.names not in ([], ["list"], ["NAME"]):
            assert chosen(given.names)
