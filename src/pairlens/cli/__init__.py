"""The command line, ``pairlens``: every command in a module of its own, imported when it is used."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    from pairlens.exceptions import MissingExtraError

    try:
        from pairlens._optional import require

        require("typer", extra="cli", purpose="The command line")
        from pairlens.cli.app import run
    except MissingExtraError as error:
        print(f"pairlens: error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("pairlens: interrupted", file=sys.stderr)
        sys.exit(130)
    sys.exit(run())
