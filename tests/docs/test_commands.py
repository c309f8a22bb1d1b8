"""Every `pairlens` command on the pages has a name, options and required arguments that the command line knows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

typer = pytest.importorskip("typer")

from pairlens.cli.app import app  # noqa: E402

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "AGENTS.md", *sorted((ROOT / "docs").rglob("*.md"))]
if not PAGES[0].exists() or not (ROOT / "docs").exists():
    pytest.skip("the pages are not in this distribution", allow_module_level=True)
LINE = re.compile(r"^    (?:[A-Z_]+=\S+ )?pairlens (\S[^\n]*)", re.MULTILINE)
INLINE = re.compile(r"`pairlens (\S[^`]*)`")


def commands(text: str) -> list[list[str]]:
    return [shlex.split(found, comments=True) for kind in (LINE, INLINE) for found in kind.findall(text)]


def problem(words: list[str]) -> str:
    """What the command line would say to a call before it looks at any file; empty if nothing."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        if not words or words[0].startswith("-"):
            return ""
        if (two := " ".join(words[:2])) in command.commands:
            words = [two, *words[2:]]
        if words[0] not in command.commands:
            return f"no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    context = command.context_class(command)
    context.allow_interspersed_args = True
    if all(word.startswith("-") for word in words):  # "`pairlens fit --pairs` reads it" calls nothing
        known = {name for one in command.params for name in one.opts} | {"--help"}
        return " ".join(word for word in words if word not in known)
    try:
        given, rest, _ = command.make_parser(context).parse_args(words)
    except Exception as error:
        return str(error)
    missing = [one.name for one in command.params if one.required and not given.get(one.name)]
    return f"missing: {', '.join(missing)}" if missing else " ".join(rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_the_commands_of_a_page(page):
    found = {" ".join(words): problem(words) for words in commands(page.read_text("utf-8"))}
    assert {words: wrong for words, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("fit data.csv --pairs answers.csv --out result", ""),
        ("fit data.csv --pears answers.csv --out result", "No such option"),
        ("export model.pairlens --to onnx", "missing: out"),
        ("fitt data.csv", "no command fitt"),
        ("studio backup data.answers.db", "missing: target"),
        ("fit --help", ""),
        ("fit --pears", "--pears"),
        ("pairs predict model.pairlens candidates.csv --data data.csv --out judged.csv more", "more"),
    ],
)
def test_the_check_finds_what_is_wrong(line, said):
    assert problem(commands(f"    pairlens {line}  # a remark\n")[0]).startswith(said)
    assert bool(problem(line.split())) == bool(said)
