"""Measuring: best time of several runs, and the highest memory of a call beyond what was there before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = 4096


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


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def peak_memory(call: Callable[[], Any]) -> int:
    """Bytes of resident memory that a call adds at its highest, sampled every 5 ms."""
    before = peak = _resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:
        done.set()
        watcher.join()
    return peak - before


def report(title: str, rows: list[tuple[str, ...]], header: tuple[str, ...]) -> None:
    """Print a table."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}")
    for row in [header, *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)))
