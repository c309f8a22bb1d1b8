"""Results on disk: one small file for each finished task, so that a kill at any moment loses only what was running.

A file appears under its name only when it is complete (written beside it, flushed, renamed).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

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
