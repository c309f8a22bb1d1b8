"""``python -m reproduction``: run the experiments of the papers."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from reproduction.command import reproduce

DESCRIPTION = """\
Run the experiments of the papers, and compare with the numbers that they print.

Finished results are stored, so a run that was stopped continues where it was. Most data sets are in the repository;
others are read from the folder that the environment variable PAIRLENS_DATA names, and downloaded where possible."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m reproduction", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("names", nargs="*", help='"list", "all", experiments, or prefixes of their names such as "bwdr"')
    made.add_argument("--runs", type=int, help="number of runs, instead of that of the profile")
    made.add_argument(
        "--sets", action="append", default=[], metavar="SET[,SET...]", help="only these data sets; may be repeated"
    )
    made.add_argument(
        "--profile",
        choices=["quick", "full"],
        default="quick",
        help="quick (the default): few runs on small sets; full: the protocols of the papers",
    )
    made.add_argument(
        "--out", type=Path, help="folder of the output and the stored results; build/reproduction/PROFILE by default"
    )
    made.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; all cores by default")
    made.add_argument(
        "--docs",
        type=Path,
        metavar="FOLDER",
        help="keep the results of the full profile in the repository, and write the pages and pictures that show them",
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, and return the exit code."""
    given = parser().parse_args(arguments)
    try:
        return reproduce(
            given.names,
            runs=given.runs,
            sets=[name for names in given.sets for name in names.split(",") if name] or None,
            profile=given.profile,
            out=given.out,
            jobs=given.jobs,
            docs=given.docs,
        )
    except (ValueError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
