"""The command line speaks of its options, not of the arguments of functions."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.models import OptionInfo

from pairlens.cli._wording import OPTIONS, PATH_OPTIONS, in_options
from pairlens.cli.app import COMMANDS
from pairlens.exceptions import InputError


@pytest.fixture
def files(tmp_path):
    """Nine rows of two groups, with labels and answers of which one contradicts two others."""
    lines = [f"r{k},{k % 3},{k * k % 7},{k % 2},1" for k in range(9)]
    Path(tmp_path, "rows.csv").write_text("name,a,b,y,same\n" + "\n".join(lines) + "\n")
    Path(tmp_path, "two.csv").write_text("name,a,y\nr0,1,p\nr1,2,q\n")
    kinds = ["r0,r1,must-link", "r1,r2,must-link", "r0,r2,cannot-link", "r4,r5,cannot-link"]
    Path(tmp_path, "answers.csv").write_text("a,b,kind\n" + "\n".join(kinds) + "\n")
    return tmp_path


def commands() -> Iterator[Callable[..., Any]]:
    for place in COMMANDS.values():
        module, _, attribute = place.partition(":")
        found = getattr(import_module(f"pairlens.cli.{module}"), attribute)
        yield from [each.callback for each in found.registered_commands] if isinstance(found, Typer) else [found]


def option_names(paths: bool = False) -> set[str]:
    """All options of the commands, or those that name files."""
    found = set()
    for command in commands():
        for name, hint in typing.get_type_hints(command, include_extras=True).items():
            kind, *about = typing.get_args(hint) or [None]
            if not paths or kind is Path or Path in typing.get_args(kind):
                # In an annotation the name of an option stands where else its default does.
                options = (each for each in about if isinstance(each, OptionInfo))
                found |= {each.default if str(each.default).startswith("--") else f"--{name}" for each in options}
    return found


def test_all_options_that_name_files_are_known():
    assert option_names(paths=True) == PATH_OPTIONS


@pytest.mark.parametrize("command", ["fit", "transform", "ask", "demo", "compare", "studio"])
def test_an_empty_name_is_not_the_current_folder(cli, tmp_path, command):
    option = {"compare": "--pairs", "studio": "--store"}.get(command, "--out")
    for given in ([option, ""], [f"{option}="], [option, " "]):
        said = cli(command, *given).error
        assert (
            said
            == f"pairlens: error: {option} is empty: give the name of a file or folder; the current folder is called ."
        )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file(cli, files):
    assert cli("ask", "rows.csv", "--out", ".").error.endswith("must end in .csv, .jsonl, .ndjson or .tsv; got ''")
    said = cli("studio", "rows.csv", "--store", ".", "--no-browser").error
    assert said == "pairlens: error: . is a folder; --store names the file that keeps the answers"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--pairs answers.csv --method wbdr", "--on-conflict drop leaves them out, --on-conflict raise stops at them."),
        ("--labels y --method wbdr --dims 9", "--dims must be at most the number of features"),
        (
            "--labels y --method pairmap --dims 3",
            "pairmap makes no view of --dims 3; pairlens takes any number of directions",
        ),
        ("--labels y --method sda --dims 2", "found 1 usable directions of the --dims 2 asked for"),
        (
            "--labels same --method sodrpac",
            "Give cannot-links by --pairs, or labels of at least two classes by --labels.",
        ),
    ],
)
def test_advice_names_options(cli, files, arguments, said):
    err = cli("fit", "rows.csv", "--id", "name", "--out", "result", *arguments.split()).err
    assert said in err
    assert "=" not in err


def test_too_few_rows(cli, files):
    said = cli("fit", "two.csv", "--id", "name", "--labels", "y", "--out", "result").error
    assert said.endswith("two.csv has only 2 rows; at least 3 are needed")


def test_small_words_of_pairs_and_ask(cli, files):
    sample = ("pairs", "sample", "rows.csv", "--labels", "y", "--n-pairs", "4", "--out", "drawn.csv")
    assert cli(*sample, "--flip", "1.5").error.endswith("--flip must lie between 0 and 1, got 1.5")
    assert cli(*sample, "--id", "a").error.endswith("ids must be distinct, but '0' comes 3 times in 'a'")
    said = cli("ask", "rows.csv", "--out", "told.csv", "--closure", "./told.csv").error
    assert said.endswith("--closure and --out are both told.csv: give two names")


def test_arguments_of_errors_become_options():
    said = InputError("a was made with ids='number' and x=1", argument="ids", remedy="Give ids='name', store= or drop=")
    assert str(said) == "a was made with ids='number' and x=1. Give ids='name', store= or drop="
    assert in_options(said) == "a was made with --id number and x=1. Give --id name, --store or --drop"
    assert {*OPTIONS.values()} <= option_names()
