"""One runner for all papers: units in parallel, stored as they finish, nothing finished computed again."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from pairlens._optional import require
from pairlens.exceptions import MissingExtraError
from pairlens.papers.experiment import Experiment, Unit
from pairlens.papers.prepare import loaded
from pairlens.papers.progress import Progress, progress
from pairlens.papers.store import Store

__all__ = ["Outcome", "run"]

Finished = Iterator[tuple[Unit, str | None]]
"""Units as they finish, each with its error as text, or None."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


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
    left: dict[str, set[Path]] = {}
    reasons: dict[str, str] = {}
    for experiment in experiments:
        units = store.unfinished(experiment)
        outcome.found += len(experiment.units()) - len(units)
        outcome.missing[experiment.name] = missing = _missing(experiment, units, reasons)
        mine = {store.path(unit): unit for unit in units if unit.data.name not in missing}
        left[experiment.name] = set(mine)
        # Experiments with equal definitions share their units.
        todo |= {path: unit for path, unit in mine.items() if path not in todo}

    def finish() -> None:
        for experiment in experiments:
            if experiment.name in left and not left[experiment.name]:
                del left[experiment.name]
                if finished is not None:
                    finished(experiment, outcome)

    together = [unit for unit in todo.values() if not unit.experiment.timed]
    alone = [unit for unit in todo.values() if unit.experiment.timed]
    with progress(len(todo), quiet=quiet) as shown, _environment(ONE_THREAD):
        for name, missing in outcome.missing.items():
            for data, reason in missing.items():
                shown.say(f"{name}: {data} is left out. {reason}")
        finish()
        for units, n_processes in ((together, jobs), (alone, 1)):
            for unit, error in _work(units, store, n_processes):
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


def _work(units: Sequence[Unit], store: Store, jobs: int) -> Finished:
    if jobs == 1 or len(units) < 2:
        return _one_after_the_other(units, store)
    return _in_parallel(units, store, jobs)


def _one_after_the_other(units: Iterable[Unit], store: Store) -> Finished:
    with threadpool_limits(1):
        for unit in units:
            yield unit, _compute(unit, store)


def _in_parallel(units: Sequence[Unit], store: Store, jobs: int) -> Finished:
    # Forked processes would share the threads of BLAS; spawned ones start clean, on every system alike.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(units)), mp_context=context, initializer=_start_worker) as pool:
        waiting = {pool.submit(_compute, unit, store): unit for unit in units}
        try:
            for future in as_completed(waiting):
                yield waiting.pop(future), future.result()
        except BrokenProcessPool as error:
            raise RuntimeError(
                "a worker process ended suddenly, perhaps for lack of memory. What was finished is stored: start again "
                "to go on, with fewer --jobs if memory is short."
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _compute(unit: Unit, store: Store) -> str | None:
    """Do one unit and store its results; the error as text if it failed."""
    try:
        with warnings.catch_warnings():
            # Methods warn of weak supervision and degenerate input, which is what some experiments are about.
            warnings.simplefilter("ignore")
            results = list(unit.experiment.protocol(unit))
        store.write(unit, results)
    except Exception:
        return traceback.format_exc()
    return None


def _start_worker() -> None:
    """One thread for numerics, and no life after the parent: a worker whose parent was killed would wait forever."""
    threadpool_limits(1)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


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


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the processes started inside."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
