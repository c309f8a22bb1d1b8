"""``pairlens reproduce``: the experiments of the papers."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ProfileName(StrEnum):
    """How much is run."""

    quick = "quick"
    full = "full"


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help='"list", "all", experiments, or prefixes of their names such as "bwdr".'),
    ] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Number of runs, instead of that of the profile.")] = None,
    sets: Annotated[list[str] | None, typer.Option(help="Only this data set; may be repeated.")] = None,
    profile: Annotated[
        ProfileName, typer.Option(help="quick: few runs on small sets. full: the protocols of the papers.")
    ] = ProfileName.quick,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the output and the stored results; reproduction/PROFILE by default."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes; all cores by default.")] = os.cpu_count() or 1,
    page: Annotated[
        Path | None, typer.Option(help="Write this page of the stored results of the full profile.")
    ] = None,
) -> None:
    """Run the experiments of the papers, and compare with the numbers that they print.

    What is finished is stored, so a run that was stopped goes on where it was. Most data come with pairlens; others are
    looked for in the folder that the environment variable PAIRLENS_DATA names, and downloaded where that is possible.
    """
    from pairlens.papers.command import reproduce as run

    # A comma separates as well, so that one option can name several sets.
    named = [name for given in sets or [] for name in given.split(",") if name]
    try:
        status = run(
            names or [],
            runs=runs,
            sets=named or None,
            profile=profile.value,
            out=out,
            jobs=jobs,
            page=page,
            say=typer.echo,
        )
    except (ValueError, RuntimeError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    raise typer.Exit(status)
