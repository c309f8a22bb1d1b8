"""Long computations that can be stopped at any moment: tasks in parallel, results stored as they come, progress.

The experiments of the papers and the league of methods (``make league``) run by this. A :class:`Store` keeps one small
file for each finished task, so that a kill at any moment loses only what was running. A file appears under its name
only when it is complete (written beside it, flushed, renamed).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from threadpoolctl import threadpool_limits

from pairlens._atomic import write_atomically

SECONDS_TO_WRITE = 600


class Keyed(Protocol):
    """What results are stored for."""

    @property
    def key(self) -> str:
        """Name of the file, with its folder and without its ending."""


K = TypeVar("K", bound=Keyed)
R = TypeVar("R")


class Store:
    """The results in a folder: for each task a list of JSON values."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, task: Keyed) -> Path:
        """Where the results of a task are."""
        return self.folder / f"{task.key}.json"

    def write(self, task: Keyed, rows: Iterable[Any]) -> None:
        """Store the results of a task, all or nothing."""
        write_atomically(self.path(task), json.dumps(list(rows), allow_nan=False, separators=(",", ":")))

    def read(self, task: Keyed, parse: Callable[[Any], R]) -> list[R] | None:
        """The results of a task, each made from its JSON value by `parse`, or None if it is not finished."""
        try:
            return [parse(row) for row in json.loads(self.path(task).read_text())]
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self.path(task)} is not a file of results ({error}). Delete it, and it is computed again."
            ) from error

    def unfinished(self, tasks: Iterable[K]) -> list[K]:
        """The tasks without results."""
        return [task for task in tasks if not self.path(task).exists()]

    def clean(self) -> None:
        """Remove what killed writers left behind; young files may be of another run that is writing now."""
        for left in self.folder.glob("*/.*.part.json"):
            with suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > SECONDS_TO_WRITE:
                    left.unlink()


ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Task(Keyed, Protocol):
    """One piece of work, which depends on no other."""

    def compute(self) -> Iterable[Any]:
        """The results, as JSON values."""


T = TypeVar("T", bound=Task)


def work(
    tasks: Sequence[T], store: Store, *, jobs: int = 1, prepare: Callable[[], None] | None = None
) -> Iterator[tuple[T, str | None]]:
    """Compute tasks, store their results, and yield each as it finishes, with its error as text or None.

    Parameters
    ----------
    tasks : sequence of Task
        Those that are not finished; see :meth:`Store.unfinished`.
    store : Store
        Where the results go.
    jobs : int
        Processes, each with one BLAS thread. 1 computes in this process.
    prepare : callable, optional
        Called in each process before its first task; there are other processes then even for one job.
    """
    with _environment(ONE_THREAD):
        if prepare is None and (jobs == 1 or len(tasks) < 2):
            with threadpool_limits(1):
                for task in tasks:
                    yield task, _compute(task, store)
        elif tasks:
            yield from _in_parallel(tasks, store, jobs, prepare)


def _in_parallel(
    tasks: Sequence[T], store: Store, jobs: int, prepare: Callable[[], None] | None
) -> Iterator[tuple[T, str | None]]:
    # Forked processes would share the threads of BLAS; spawned ones start clean, on every system alike.
    context = multiprocessing.get_context("spawn")
    workers = min(jobs, len(tasks))
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(prepare,)) as pool:
        waiting = {pool.submit(_compute, task, store): task for task in tasks}
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


def _compute(task: Task, store: Store) -> str | None:
    """Do one task and store its results; the error as text if it failed."""
    try:
        store.write(task, task.compute())
    except Exception:
        return traceback.format_exc()
    return None


def _start_worker(prepare: Callable[[], None] | None) -> None:
    """One thread for numerics, and no life after the parent: a worker whose parent was killed would wait forever."""
    threadpool_limits(1)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    if prepare is not None:
        prepare()


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


SECONDS_BETWEEN_LINES = 15.0


class Progress(Protocol):
    """What the runner tells."""

    def done(self, what: str) -> None:
        """One unit is finished."""

    def say(self, text: str) -> None:
        """Something worth a line."""


class _Lines:
    """A line now and then."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self.total, self.stream = total, stream
        self.finished, self.start, self.last = 0, time.monotonic(), 0.0

    def done(self, what: str) -> None:
        self.finished += 1
        now = time.monotonic()
        if now - self.last >= SECONDS_BETWEEN_LINES or self.finished == self.total:
            self.last = now
            left = (now - self.start) / self.finished * (self.total - self.finished)
            self.say(f"{self.finished} of {self.total} units, about {_duration(left)} left; last: {what}")

    def say(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class _Bar:
    """A bar of rich."""

    def __init__(self, bar: object, task: object) -> None:
        self.bar, self.task = bar, task

    def done(self, what: str) -> None:
        self.bar.update(self.task, advance=1, description=what)  # type: ignore[attr-defined]

    def say(self, text: str) -> None:
        self.bar.console.print(text, highlight=False, markup=False, soft_wrap=True)  # type: ignore[attr-defined]


@contextmanager
def progress(total: int, *, quiet: bool = False, stream: TextIO | None = None) -> Iterator[Progress]:
    """Progress of `total` units on `stream`, standard error by default."""
    out = stream or sys.stderr
    if quiet:
        yield _Silent()
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
    except ImportError:
        yield _Lines(total, out)
        return
    if not out.isatty():
        yield _Lines(total, out)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with RichProgress(*columns, console=Console(file=out), transient=True, speed_estimate_period=600) as bar:
        yield _Bar(bar, bar.add_task("", total=total))


class _Silent:
    def done(self, what: str) -> None:
        pass

    def say(self, text: str) -> None:
        pass


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes == 0:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
