"""Measuring: best times of several runs, long runs that can be stopped, and tables of results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pairlens.selection.comparison import measured
from reproduction.tasks import Store, Task, progress, work


def best_time(call: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of the fastest of several calls: other load on the machine only ever adds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_memory(call: Callable[[], object]) -> int:
    """Bytes of resident memory that a call adds at its highest; 0 where the system does not tell."""
    return measured(call)[1].memory or 0


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


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file that holds one a line; a line that was cut off is left out."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def run_lines(
    run: Callable[[Any], dict[str, Any] | None], tasks: Sequence[Any], path: Path, jobs: int
) -> list[dict[str, Any]]:
    """Run tasks, one process each, add each record to the file as it comes, and return all records of the file.

    Parameters
    ----------
    run : callable
        Returns the record of a task, or None if there is nothing to keep.
    tasks : sequence
        Those that are not in the file yet.
    path : Path
    jobs : int
        Processes.
    """
    path.parent.mkdir(exist_ok=True)
    if tasks:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool, path.open("a") as file:
            for number, future in enumerate(as_completed([pool.submit(run, task) for task in tasks]), start=1):
                record = future.result()
                if record is not None:
                    file.write(json.dumps(record) + "\n")
                    file.flush()
                    print(f"{number}/{len(tasks)}", flush=True)
    return read_lines(path)


def report(title: str, rows: list[tuple[str, ...]], header: tuple[str, ...]) -> None:
    """Print a table."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}")
    for row in [header, *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)))
