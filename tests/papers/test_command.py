"""The command line: choosing experiments, running them, writing the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pairlens.papers import DataSet, Quick, catalogue, command, markdown
from pairlens.papers.__main__ import main
from pairlens.papers.command import chosen, reproduce
from tests.papers import tiny


@pytest.fixture
def only_tiny(monkeypatch):
    for module in (catalogue, command, markdown):
        monkeypatch.setattr(module, "experiments", lambda names=None: [tiny.experiment()])


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
    folder = tmp_path / "reproduction" / "full"
    files = {"tiny.md", "tiny.csv", "tiny.png", "tiny.svg", "report.html"}
    assert {path.name for path in folder.iterdir()} == {*files, "units"}
    assert (tmp_path / "reproduction" / ".gitignore").read_text() == "*\n"
    before = {name: (folder / name).read_bytes() for name in files}
    assert main(["tiny", "--profile", "full", "--jobs", "1"]) == 0
    assert "0 units computed, 12 were there already" in capsys.readouterr().out
    assert {name: (folder / name).read_bytes() for name in files} == before
    assert main(["--page", "reproduction.md"]) == 0
    written = (tmp_path / "reproduction.md").read_text()
    assert "## A tiny experiment" in written
    assert "## Not run" not in written


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
def test_typer_command(tmp_path):
    typer = pytest.importorskip("typer")
    from typer.testing import CliRunner

    from pairlens.cli.reproduce import reproduce as command_

    app = typer.Typer()
    app.command()(command_)
    done = CliRunner().invoke(app, ["tiny", "--out", str(tmp_path), "--jobs", "1", "--sets", "left,right"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "tiny.md").exists()
    wrong = CliRunner().invoke(app, ["nothing"])
    assert wrong.exit_code == 2
    assert "there is no experiment 'nothing'" in wrong.output
