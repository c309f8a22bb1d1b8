"""Tasks in parallel, stored as they finish."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from reproduction.store import Keyed, Store

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
