"""Running the experiments of the papers: finished units are found, the others computed, missing sets named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pairlens._optional import require
from pairlens.exceptions import MissingExtraError
from reproduction.experiment import Experiment, Unit
from reproduction.prepare import loaded
from reproduction.tasks import Progress, Store, progress, work


@dataclass
class Outcome:
    """Units computed and found; by experiment, the sets that are missing with the reason, and the units that failed."""

    computed: int = 0
    found: int = 0
    missing: dict[str, dict[str, str]] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)


def run(
    experiments: Sequence[Experiment],
    store: Store,
    *,
    jobs: int = 1,
    quiet: bool = False,
    finished: Callable[[Experiment, Outcome], None] | None = None,
) -> Outcome:
    """Run what is not finished yet.

    Parameters
    ----------
    experiments : sequence of Experiment
        In the profile wanted; see :meth:`Experiment.with_profile`.
    store : Store
        Results go there, and are found there.
    jobs : int
        Processes. 1 runs in this one. Each has one BLAS thread. Timed experiments run one unit after the other.
    quiet : bool
        Say nothing.
    finished : callable, optional
        Called with each experiment, and the outcome so far, as soon as nothing of it is left to run.
    """
    outcome = Outcome()
    store.clean()
    todo: dict[Path, Unit] = {}
    wanted: set[Path] = set()
    left: dict[str, set[Path]] = {}
    reasons: dict[str, str] = {}
    for experiment in experiments:
        units = store.unfinished(experiment.units())
        wanted |= {store.path(unit) for unit in experiment.units()}
        outcome.missing[experiment.name] = missing = _missing(experiment, units, reasons)
        mine = {store.path(unit): unit for unit in units if unit.data.name not in missing}
        left[experiment.name] = set(mine)
        # Experiments with equal definitions share their units.
        todo |= {path: unit for path, unit in mine.items() if path not in todo}
    outcome.found = sum(path.exists() for path in wanted)

    def finish() -> None:
        for experiment in experiments:
            if experiment.name in left and not left[experiment.name]:
                del left[experiment.name]
                if finished is not None:
                    finished(experiment, outcome)

    together = [unit for unit in todo.values() if not unit.experiment.timed]
    alone = [unit for unit in todo.values() if unit.experiment.timed]
    with progress(len(todo), quiet=quiet) as shown:
        for name, missing in outcome.missing.items():
            for data, reason in missing.items():
                shown.say(f"{name}: {data} is left out. {reason}")
        finish()
        for units, n_processes in ((together, jobs), (alone, 1)):
            for unit, error in work(units, store, jobs=n_processes):
                _note(unit, error, shown, outcome)
                for paths in left.values():
                    paths.discard(store.path(unit))
                finish()
    return outcome


def _note(unit: Unit, error: str | None, shown: Progress, outcome: Outcome) -> None:
    name = f"{unit.experiment.name}, {unit.data.name}, run {unit.run}, part {unit.part}"
    if error is None:
        outcome.computed += 1
    else:
        outcome.failed.setdefault(unit.experiment.name, []).append(f"{name}: {error.splitlines()[-1]}")
        shown.say(f"failed: {name}\n{error}")
    shown.done(name)


def _missing(experiment: Experiment, units: Iterable[Unit], reasons: dict[str, str]) -> dict[str, str]:
    """Sets that cannot be used, with the reason: all if a module is missing, else those that cannot be loaded.

    `reasons` remembers the answer for each set, because asking may mean a download.
    """
    needed = {unit.data.name: unit.data.loaded_name for unit in units}
    for module, extra in experiment.requires:
        try:
            require(module, extra=extra, purpose=experiment.name)
        except MissingExtraError as error:
            return dict.fromkeys(needed, str(error))
    for name in needed.values():
        if name is not None and name not in reasons:
            try:
                loaded(name)
                reasons[name] = ""
            except (OSError, ValueError) as error:
                reasons[name] = str(error)
    return {name: reasons[source] for name, source in needed.items() if source is not None and reasons[source]}
