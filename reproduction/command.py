"""What ``python -m reproduction`` does: choose experiments, run them, write their output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pairlens._atomic import write_atomically
from pairlens.exceptions import MissingExtraError
from reproduction.catalogue import experiments, papers
from reproduction.experiment import DataSet, Experiment, Profile, Unit
from reproduction.figures import save_all, save_for_page
from reproduction.html import Entry, report_html
from reproduction.markdown import markdown, page_text
from reproduction.prose import MARK, all_claims, filled
from reproduction.results import Archive, Results
from reproduction.runner import Outcome, run
from reproduction.tables import Section, section
from reproduction.tasks import Store

OUTPUT = Path("build", "reproduction")
"""Folder of the output, with one inside for each profile."""

UNITS = "units"
"""Folder of the stored results, inside that of the output."""

REPORT = "report.html"
"""Page of all that is in the folder of the output."""

PAGE = "reproduction.md"
PICTURES = "pictures/papers"
"""In the folder of the documentation."""

Say = Callable[[str], None]


def reproduce(
    names: Sequence[str],
    *,
    runs: int | None = None,
    sets: Sequence[str] | None = None,
    profile: Profile = "quick",
    out: Path | None = None,
    jobs: int = 1,
    docs: Path | None = None,
    quiet: bool = False,
    say: Say = print,
) -> int:
    """List or run experiments and write their output, or write the pages of all full results.

    The output of an experiment is its table NAME.md, its raw results NAME.csv and its figures; report.html shows all
    that is in the folder.

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
        Folder of the output and of the stored results, "build/reproduction/PROFILE" by default.
    jobs : int
        Processes.
    docs : Path, optional
        Folder of the documentation. Keep the results of the full profile in the repository, and write from them
        reproduction.md with its pictures, and the marked numbers of the other pages; runs nothing without names.
    quiet : bool
        No progress.
    say : callable
        Takes the lines to print.

    Returns
    -------
    status : int
        0, or 1 if something failed.
    """
    if jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}")
    names = list(names)
    if names == ["list"] or (not names and docs is None):
        say(listing())
        return 0
    folder = out if out is not None else OUTPUT / ("full" if docs is not None else profile)
    failed = False
    if names:
        wanted = chosen(names, runs=runs, sets=sets, profile=profile)
        failed = _run_and_write(wanted, folder, profile=profile, jobs=jobs, quiet=quiet, say=say)
    if docs is not None:
        write_docs(docs, Store(folder / UNITS))
        say(f"written: {docs / PAGE}, and the marked numbers of the other pages")
    return int(failed)


def write_docs(docs: Path, store: Store, archive: Archive | None = None) -> None:
    """Keep what the store has of the full profile in the archive, and write all pages that show it."""
    archive = archive or Archive()
    for paper in papers():
        archive.add(paper.name, paper.experiments, store)
    save_for_page(papers(), archive, docs / PICTURES)
    for path, text in pages(docs, archive).items():
        write_atomically(path, text)


def pages(docs: Path, archive: Archive) -> dict[Path, str]:
    """The pages that show stored results, as these have them now."""
    pictures = {path.stem: f"{PICTURES}/{path.name}" for path in sorted((docs / PICTURES).glob("*.png"))}
    found = {docs / PAGE: page_text(papers(), archive, pictures, all_claims(archive))}
    for path in sorted(docs.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if path.name != PAGE and MARK.search(text):
            found[path] = filled(text, archive)
    return found


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


def _run_and_write(
    wanted: Sequence[Experiment], folder: Path, *, profile: Profile, jobs: int, quiet: bool, say: Say
) -> bool:
    store, written = Store(folder / UNITS), list[Entry]()

    def write(experiment: Experiment, outcome: Outcome) -> None:
        written.append(write_output(experiment, store, folder, missing=outcome.missing.get(experiment.name, ())))

    try:
        outcome = run(wanted, store, jobs=jobs, quiet=quiet, finished=write)
    except KeyboardInterrupt:
        say("stopped; what was finished is stored. Start again with the same options to go on.")
        return True
    for entry in written:
        remark = f" No figures: {entry.reason}" if entry.reason else ""
        say(f"{entry.section.name}: {_summary(entry.section)}{remark}")
    write_report(folder, written, profile=profile)
    say(f"{outcome.computed} units computed, {outcome.found} were there already; output in {folder}")
    if missing := _missing(outcome):
        say(f"not run, because the data are not on this machine: {missing}")
    for name, errors in outcome.failed.items():
        say(f"{name}: {len(errors)} units failed, the first: {errors[0]}")
    return bool(outcome.failed)


def _missing(outcome: Outcome) -> str:
    """The sets that are missing, each with the experiments that want it."""
    wanted_by: dict[str, list[str]] = {}
    for experiment, sets in outcome.missing.items():
        for data in sets:
            wanted_by.setdefault(data, []).append(experiment)
    return "; ".join(f"{data} ({', '.join(names)})" for data, names in sorted(wanted_by.items()))


def write_output(experiment: Experiment, store: Store, folder: Path, *, missing: Iterable[str] = ()) -> Entry:
    """Write table, figures and raw results of an experiment; what the report shows of it."""
    gone = [data for data in experiment.sets if data.name in set(missing)]
    experiment = experiment.only(sets=[data.name for data in experiment.sets if data not in gone])
    results = Results.stored(experiment, store)
    images: dict[str, str] = {}
    reason = ""
    try:
        images = save_all(experiment, results, folder)
    except MissingExtraError as error:
        reason = str(error)
    names = [data.heading for data in gone]
    shown = section(experiment, results, missing=names, state=_state(experiment, store))
    write_atomically(folder / f"{experiment.name}.md", markdown(shown, images=images))
    write_atomically(folder / f"{experiment.name}.csv", results.to_csv())
    return Entry(shown, {name: _files(folder / image) for name, image in images.items()}, reason)


def write_report(folder: Path, written: Iterable[Entry] = (), *, profile: Profile = "quick") -> None:
    """Write the HTML page of all experiments whose output is in the folder.

    Parameters
    ----------
    folder : Path
        Of the output.
    written : iterable of Entry
        What was just run, and is shown as it was run. All else is shown as far as results are stored.
    profile : {"quick", "full"}
        The one tried first for experiments that were run earlier.
    """
    by_name = {entry.section.name: entry for entry in written}
    entries, left_out = [], []
    for experiment in experiments():
        entry = by_name.get(experiment.name)
        if entry is None and (folder / f"{experiment.name}.md").exists():
            try:
                entry = _earlier(experiment, folder, profile)
                reason = "no results of the experiment as it is defined now are stored." if entry is None else ""
            except ValueError as error:
                # A file that cannot be read must not cost the report of all others.
                reason = str(error)
            if reason:
                left_out.append(f"{experiment.name}.md: {reason}")
        if entry is not None:
            entries.append(entry)
    write_atomically(folder / REPORT, report_html(entries, left_out=left_out))


def _earlier(experiment: Experiment, folder: Path, profile: Profile) -> Entry | None:
    """What is stored of an experiment that was run before, or None."""
    store = Store(folder / UNITS)
    tried: tuple[Profile, ...] = ("quick", "full") if profile == "quick" else ("full", "quick")
    for name in tried:
        # Sets that the quick profile leaves out may have been named on the command line.
        whole = replace(experiment, quick=replace(experiment.quick, sets=None)).with_profile(name)
        runs = {data.name: n for data in whole.sets if (n := _stored_runs(whole, data, store))}
        if runs:
            break
    else:
        return None
    part = whole.only(sets=runs, runs=max(runs.values()))
    gone = [data.heading for data in experiment.with_profile(name).sets if data.name not in runs]
    shown = section(part, Results.stored(part, store), state=_state(part, store))
    if gone:
        shown = replace(shown, text=(*shown.text, f"Not run: {', '.join(gone)}."))
    pictures = {}
    for figure in part.figures:
        stem = f"{experiment.name}-{figure.name}" if figure.name else experiment.name
        if found := _files(folder / f"{stem}.png"):
            pictures[figure.name] = found
    return Entry(shown, pictures, "its file is not in the folder.")


def _stored_runs(experiment: Experiment, data: DataSet, store: Store) -> int:
    """How many runs on a set have results, by the last of them; more than those of the profile can be there."""

    def there(run: int) -> bool:
        return any(store.path(Unit(experiment, data, run, part)).exists() for part in range(experiment.parts))

    n = max((run + 1 for run in range(experiment.runs) if there(run)), default=0)
    while there(n):
        n += 1
    return n


def _files(picture: Path) -> list[Path]:
    """A picture in all formats that are there."""
    return [path for path in (picture.with_suffix(".svg"), picture) if path.exists()]


def _state(experiment: Experiment, store: Store) -> str:
    """Says so if something that could have been run was not; by default what was run says enough."""
    left = len(store.unfinished(experiment.units()))
    return f"Incomplete: {left} of {len(experiment.units())} units have no results." if left else ""


def _summary(shown: Section) -> str:
    if not shown.n_results:
        return "no results"
    compared = [table for table in shown.tables if table.differences]
    if not compared:
        return "done"
    parts = []
    for table in compared:
        words = []
        for one in table.differences:
            verdict = f" ({one.verdict} {one.limit})" if one.verdict else ""
            words.append(f"{one.method} {one.mean:.3f}{verdict}")
        name = f"{table.title}: " if len(compared) > 1 else ""
        parts.append(name + ", ".join(words))
    return "mean absolute difference from the paper: " + "; ".join(parts)
