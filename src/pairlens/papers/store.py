"""Results on disk: one small file for each finished unit, so that a kill at any moment loses only what was running.

A file appears under its name only when it is complete (written beside it, flushed, renamed). Names begin with the data
set and the fingerprint of the definition, so changed settings never meet old results, and experiments with equal
definitions share theirs.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pairlens._atomic import write_atomically
from pairlens.papers.experiment import Experiment, Result, Unit
from pairlens.papers.results import Results, Row

__all__ = ["Store"]

SECONDS_TO_WRITE = 600


class Store:
    """The results in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, unit: Unit) -> Path:
        """Where the results of a unit are."""
        name = re.sub(r"[^\w.-]", "_", unit.data.name)
        folder = f"{name}-{unit.experiment.fingerprint(unit.data)}"
        return self.folder / folder / f"{unit.run:03d}-{unit.part:02d}.json"

    def write(self, unit: Unit, results: Iterable[Result]) -> None:
        """Store the results of a unit, all or nothing."""
        lines = [
            [one.method, one.measure, dict(one.at), None if math.isnan(one.value) else float(one.value)]
            for one in results
        ]
        write_atomically(self.path(unit), json.dumps(lines, allow_nan=False, separators=(",", ":")))

    def read(self, unit: Unit) -> list[Result] | None:
        """The results of a unit, or None if it is not finished."""
        try:
            lines = json.loads(self.path(unit).read_text())
            return [
                Result(str(method), math.nan if value is None else float(value), str(measure), dict(at))
                for method, measure, at, value in lines
            ]
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self.path(unit)} is not a file of results ({error}). Delete it, and it is computed again."
            ) from error

    def unfinished(self, experiment: Experiment) -> list[Unit]:
        """The units without results."""
        return [unit for unit in experiment.units() if not self.path(unit).exists()]

    def results(self, experiment: Experiment) -> Results:
        """All results of the finished units."""
        rows = []
        for unit in experiment.units():
            rows += [Row(unit.data.name, unit.run, unit.part, one) for one in self.read(unit) or ()]
        return Results(rows)

    def clean(self) -> None:
        """Remove what killed writers left behind; young files may be of another run that is writing now."""
        for left in self.folder.glob("*/.*.part.json"):
            with suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > SECONDS_TO_WRITE:
                    left.unlink()
