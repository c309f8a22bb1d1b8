"""The commands by name, and how each of them ends: exit code 0, or one line on stderr and 1, 2 or 130."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections import UserDict
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pairlens._version import __version__
from pairlens.cli._console import forgive_encoding, tell
from pairlens.cli._wording import check_paths, in_options

TRACEBACK = "PAIRLENS_TRACEBACK"
BAD_INPUT = 2
FAILURE = 1
INTERRUPTED = 130
TERMINATED = 143


COMMANDS = {
    "fit": "fit:fit",
    "transform": "models:transform",
    "evaluate": "models:evaluate",
    "compare": "compare:compare",
    "pairs": "pairs:app",
    "export": "models:export",
    "ask": "ask:ask",
    "studio": "studio:studio",
    "studio backup": "studio:backup",
    "demo": "demo:demo",
}
"""Where each command is: its module, and the function or the group of commands in it."""


class LazyCommands(UserDict[str, Any]):
    """The commands by name, each imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        """Return the command of this name."""
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(f"pairlens.cli.{module}"), attribute)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, rich_markup_mode=None)
            alone.command(name)(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = name
        return command


class Commands(TyperGroup):
    """Commands of which some have two words: "studio backup" stands beside "studio", whose next word is a file."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = LazyCommands(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments begin with, and the rest of them."""
        words = " ".join(args[:2])
        return super().resolve_command(ctx, [words, *args[2:]] if words in self.commands else args)


app = typer.Typer(
    name="pairlens",
    cls=Commands,
    help="A low-dimensional view of a table, learned from a few pairs that people have answered.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 found something wrong, or failed; 2 bad input; 130 interrupted.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pairlens {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    if hasattr(signal, "SIGTERM"):
        # Ends like an error does: what is half written is removed.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    forgive_encoding()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_paths(sys.argv[1:] if arguments is None else arguments)
            result = app(args=arguments, prog_name="pairlens", standalone_mode=False)
            code = result if isinstance(result, int) else 0
            if code == INTERRUPTED:
                _say("interrupted; nothing half-written was left")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else FAILURE
        except (KeyboardInterrupt, typer.Abort):
            _say("interrupted; nothing half-written was left")
            return INTERRUPTED
        except Exception as error:
            return _explained(error)
    told = [warning.message for warning in caught if isinstance(warning.message, UserWarning)]
    for text in dict.fromkeys(_line(in_options(warning)) for warning in told):
        _say(f"warning: {text}")
    return code


def _explained(error: Exception) -> int:
    """Say in one line what was wrong; returns the exit code."""
    if os.environ.get(TRACEBACK):
        raise error
    if type(error).__name__ == "NoArgsIsHelpError":
        print(str(error), file=sys.stderr)
        return BAD_INPUT
    if hasattr(error, "format_message"):
        # What the parser of the command line raises; its own text would be several lines and a box.
        context = getattr(error, "ctx", None)
        command = "pairlens" if context is None else context.command_path
        said = _line(error.format_message()).replace("Value error, ", "").rstrip(".")
        _say(f"error: {said}. See: {command} --help")
        return BAD_INPUT
    if isinstance(error, OSError) and error.filename is not None:
        _say(f"error: {error.filename}: {error.strerror}")
        return BAD_INPUT
    if isinstance(error, (ValueError, ImportError, OSError)):
        _say(f"error: {_line(in_options(error))}")
        return BAD_INPUT
    if isinstance(error, MemoryError):
        _say("error: not enough memory")
        return FAILURE
    _say(f"internal error: {type(error).__name__}: {_line(str(error))} (set {TRACEBACK}=1 to see where)")
    return FAILURE


def _line(text: str) -> str:
    return " ".join(text.split())


def _say(text: str) -> None:
    tell(f"pairlens: {text}", err=True)
