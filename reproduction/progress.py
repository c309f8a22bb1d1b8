"""How far a run is: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

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
