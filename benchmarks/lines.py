"""Results as lines of one file, so that parts of a run that were computed elsewhere can be appended."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from reproduction.tasks import Keyed, Store

__all__ = ["LineStore"]

K = TypeVar("K", bound=Keyed)
R = TypeVar("R")


class LineStore(Store):
    """Results in one file: for each task a line of JSON with its key; of lines with the same key the last counts."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.parent)
        self.file = file

    def path(self, task: Keyed) -> Path:
        """Return the file, which all tasks share."""
        return self.file

    def write(self, task: Keyed, rows: Iterable[Any]) -> None:
        """Append the results of a task."""
        self._append(task.key, list(rows))

    def merge(self, files: Iterable[Path]) -> None:
        """Append the results of other files that are not there yet, or differ."""
        self.clean()
        known = self.lines()
        for file in files:
            if not file.is_file():
                raise FileNotFoundError(f"There is no file of results {file} to merge.")
            for key, rows in LineStore(file).lines().items():
                if known.get(key) != rows:
                    known[key] = rows
                    self._append(key, rows)

    def lines(self) -> dict[str, list[Any]]:
        """Return the results by key; a line that a killed process left unfinished is not among them."""
        if not self.file.exists():
            return {}
        found = {}
        for number, line in enumerate(self.file.read_text().splitlines(keepends=True), 1):
            if line.endswith("\n"):
                try:
                    row = json.loads(line)
                    found[row["key"]] = row["rows"]
                except (ValueError, TypeError, KeyError) as error:
                    raise ValueError(
                        f"line {number} of {self.file} is not a result ({error}). Delete it, and it is computed again."
                    ) from error
        return found

    def read(self, task: Keyed, parse: Callable[[Any], R]) -> list[R] | None:
        """Return the results of a task, or None if it is not finished."""
        rows = self.lines().get(task.key)
        return None if rows is None else [parse(row) for row in rows]

    def unfinished(self, tasks: Iterable[K]) -> list[K]:
        """Return the tasks without results."""
        done = self.lines()
        return [task for task in tasks if task.key not in done]

    def clean(self) -> None:
        """Remove a line that a killed process left unfinished."""
        if self.file.exists():
            content = self.file.read_bytes()
            if not content.endswith(b"\n"):
                os.truncate(self.file, content.rfind(b"\n") + 1)

    def _append(self, key: str, rows: list[Any]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"key": key, "rows": rows}, allow_nan=False)
        # One write in append mode: lines of several processes do not mix.
        with self.file.open("a", encoding="utf-8") as out:
            out.write(line + "\n")
