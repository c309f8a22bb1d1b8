"""What ``pairlens reproduce`` and ``python -m pairlens.papers`` do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pairlens.exceptions import MissingExtraError
from pairlens.papers.catalogue import experiments
from pairlens.papers.experiment import Experiment, Profile
from pairlens.papers.figures import save_all
from pairlens.papers.page import write_page
from pairlens.papers.results import Results
from pairlens.papers.runner import Outcome, run
from pairlens.papers.store import Store, write_atomically
from pairlens.papers.tables import differences, markdown

__all__ = ["chosen", "listing", "reproduce", "write_output"]

UNITS = "units"
"""Folder of the stored results, inside that of the output."""

Say = Callable[[str], None]


def reproduce(
    names: Sequence[str],
    *,
    runs: int | None = None,
    sets: Sequence[str] | None = None,
    profile: Profile = "quick",
    out: Path | None = None,
    jobs: int = 1,
    page: Path | None = None,
    quiet: bool = False,
    say: Say = print,
) -> int:
    """List or run experiments and write their output, or write the page of all full results.

    Parameters
    ----------
    names : sequence of str
        "list", "all", names of experiments, or beginnings of names ("bwdr").
    runs : int, optional
        Another number of runs than that of the profile.
    sets : sequence of str, optional
        Only these data sets.
    profile : {"quick", "full"}
        Few runs on small sets, or the protocols of the papers.
    out : Path, optional
        Folder of the output and of the stored results, "reproduction/PROFILE" by default.
    jobs : int
        Processes.
    page : Path, optional
        Write this page of the stored results of the full profile; runs nothing unless names are given.
    quiet : bool
        No progress.
    say : callable
        Takes the lines to print.

    Returns
    -------
    status : int
        0, or 1 if something failed.
    """
    names = list(names)
    if names == ["list"] or (not names and page is None):
        say(listing())
        return 0
    folder = out if out is not None else _default_folder("full" if page is not None else profile)
    failed = False
    if names:
        wanted = chosen(names, runs=runs, sets=sets, profile=profile)
        failed = _run_and_write(wanted, folder, jobs=jobs, quiet=quiet, say=say)
    if page is not None:
        write_page(page, Store(folder / UNITS))
        say(f"written: {page}")
    return int(failed)


def _default_folder(profile: Profile) -> Path:
    """A folder that version control leaves alone."""
    root = Path("reproduction")
    if not (root / ".gitignore").exists():
        write_atomically(root / ".gitignore", "*\n")
    return root / profile


def listing() -> str:
    """All experiments, one on each line."""
    found = experiments()
    width = max(len(experiment.name) for experiment in found)
    return "\n".join(f"{experiment.name:{width}}  {experiment.title}" for experiment in found)


def chosen(
    names: Iterable[str],
    *,
    runs: int | None = None,
    sets: Sequence[str] | None = None,
    profile: Profile = "quick",
) -> list[Experiment]:
    """The experiments meant, as they are to be run."""
    known = {experiment.name: experiment for experiment in experiments()}
    wanted: dict[str, Experiment] = {}
    for name in names:
        found = [one for one in known if name in ("all", one) or (name not in known and one.startswith(f"{name}-"))]
        if not found:
            raise ValueError(f"there is no experiment {name!r}; there are: all, {', '.join(known)}")
        wanted.update((one, known[one]) for one in found)
    if runs is not None and runs < 1:
        raise ValueError(f"--runs must be at least 1, got {runs}")
    if sets:
        there = {data.name for experiment in wanted.values() for data in experiment.sets}
        if unknown := [name for name in sets if name not in there]:
            raise ValueError(
                f"no experiment chosen has a data set {unknown[0]!r}; they have: {', '.join(sorted(there))}"
            )
    adjusted = []
    for experiment in wanted.values():
        if sets:
            # Sets named on the command line count even where the quick profile leaves them out.
            experiment = replace(experiment.only(sets=sets), quick=replace(experiment.quick, sets=None))
        if experiment.sets:
            adjusted.append(experiment.with_profile(profile).only(runs=runs))
    return adjusted


def _run_and_write(wanted: Sequence[Experiment], folder: Path, *, jobs: int, quiet: bool, say: Say) -> bool:
    store, lines = Store(folder / UNITS), []

    def write(experiment: Experiment, outcome: Outcome) -> None:
        lines.append(write_output(experiment, store, folder, missing=outcome.missing.get(experiment.name, ())))

    try:
        outcome = run(wanted, store, jobs=jobs, quiet=quiet, finished=write)
    except KeyboardInterrupt:
        say("stopped; what was finished is stored. Start again with the same options to go on.")
        return True
    for line in lines:
        say(line)
    say(f"{outcome.computed} units computed, {outcome.found} were there already; output in {folder}")
    for name, errors in outcome.failed.items():
        say(f"{name}: {len(errors)} units failed, the first: {errors[0]}")
    return bool(outcome.failed)


def write_output(experiment: Experiment, store: Store, folder: Path, *, missing: Iterable[str] = ()) -> str:
    """Write table, figures and raw results of an experiment; a line about how near the paper they are."""
    gone = [data for data in experiment.sets if data.name in set(missing)]
    experiment = experiment.only(sets=[data.name for data in experiment.sets if data not in gone])
    results = store.results(experiment)
    images: dict[str, str] = {}
    remark = ""
    try:
        images = save_all(experiment, results, folder)
    except MissingExtraError as error:
        remark = f" No figures: {error}"
    names = [data.heading for data in gone]
    text = markdown(experiment, results, images=images, missing=names, state=_state(experiment, store))
    write_atomically(folder / f"{experiment.name}.md", text)
    write_atomically(folder / f"{experiment.name}.csv", results.to_csv())
    return f"{experiment.name}: {_summary(experiment, results)}{remark}"


def _state(experiment: Experiment, store: Store) -> str:
    """Says so if something that could have been run was not; by default what was run says enough."""
    left = len(store.unfinished(experiment))
    return f"Incomplete: {left} of {len(experiment.units())} units have no results." if left else ""


def _summary(experiment: Experiment, results: Results) -> str:
    if not len(results):
        return "no results"
    found = [one for table in experiment.tables for one in differences(experiment, table, results)]
    if not found:
        return "done"
    words = []
    for one in found:
        verdict = "" if one.limit is None else f" ({'within' if one.reproduced else 'NOT within'} {one.limit})"
        words.append(f"{one.method} {one.mean:.3f}{verdict}")
    return "mean absolute difference from the paper: " + ", ".join(words)
