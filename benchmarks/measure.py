"""Measuring: best times of several runs, long runs that can be stopped, and tables of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from reproduction.tasks import Store, Task, progress, work


def best_time(call: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of the fastest of several calls: other load on the machine only ever adds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def paired_times(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int = 3) -> tuple[float, float]:
    """Best times of two calls run in turn, so that both see the same machine."""
    pairs = [(best_time(ours, 1), best_time(theirs, 1)) for _ in range(repeats)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def compute(tasks: Sequence[Task], store: Store, jobs: int = 1) -> None:
    """Compute tasks with progress on standard error, and store the results as they come; an error ends the run."""
    with progress(len(tasks)) as shown:
        for task, error in work(tasks, store, jobs=jobs):
            if error is not None:
                raise RuntimeError(f"{task.key} failed:\n{error}")
            shown.done(task.key)


def report(title: str, rows: list[tuple[str, ...]], header: tuple[str, ...]) -> None:
    """Print a table."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}")
    for row in [header, *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)))
