"""``python -m pairlens.papers``: the same as ``pairlens reproduce``, without its extra."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from pairlens.papers.command import reproduce


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m pairlens.papers", description="Run the papers' experiments.")
    parser.add_argument("names", nargs="*", help='"list", "all", experiments or beginnings of their names')
    parser.add_argument("--runs", type=int, help="repetitions, instead of those of the profile")
    parser.add_argument("--sets", nargs="+", action="extend", help="only these data sets")
    parser.add_argument("--profile", choices=["quick", "full"], default="quick", help="quick by default")
    parser.add_argument("--out", type=Path, help="folder of the output, reproduction/PROFILE by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; all cores by default")
    parser.add_argument("--page", type=Path, help="write this page of the stored results of the full profile")
    given = parser.parse_args(arguments)
    try:
        return reproduce(
            given.names,
            runs=given.runs,
            sets=given.sets,
            profile=given.profile,
            out=given.out,
            jobs=given.jobs,
            page=given.page,
        )
    except (ValueError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
