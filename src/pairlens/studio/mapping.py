"""The map that is shown, and the process that makes the next one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pairlens.studio.maps import MapJob
from pairlens.studio.worker import Worker

__all__ = ["MapKeeper", "MapState"]

log = logging.getLogger("pairlens.studio")


@dataclass(frozen=True)
class MapState:
    """The map that is shown.

    Attributes
    ----------
    version : int
        Goes up with each new map; 0 before the first.
    n_answers : int
        Answers that it knows.
    name : str
        The method that made it.
    points : array of shape (n_rows, 2), or None
    error : str
        Why the next one could not be made, if so.
    """

    version: int = 0
    n_answers: int = 0
    name: str = ""
    points: NDArray[np.float64] | None = None
    error: str = ""


class Later(Protocol):
    """Runs a function in the session's thread."""

    def __call__(self, function: Callable[..., None], *arguments: Any) -> None:
        """Run it there."""


class MapKeeper:
    """Keeps the map up to date on snapshots of the answers; the newest snapshot wins, and a failure keeps the old map.

    Parameters
    ----------
    worker : Worker
        The process that makes maps.
    later : callable
        Runs a function in the session's thread.
    drawn : callable
        Called there when a fit has ended, with whether there is a new map.
    """

    def __init__(self, worker: Worker, later: Later, drawn: Callable[[bool], None]) -> None:
        self.state = MapState()
        self._worker = worker
        self._later = later
        self._drawn = drawn
        self._running: Future[Any] | None = None
        self._made = (-1, -1)

    @property
    def fitting(self) -> bool:
        """Whether a map is being made."""
        return self._running is not None

    def want(self, revision: tuple[int, int], job: Callable[[], MapJob]) -> None:
        """Make a map of this state, unless one is being made or this one was made, or could not be, before."""
        if self._running is not None or self._made == revision:
            return
        wanted, began = job(), time.perf_counter()
        self._made = revision
        self._running = self._worker.submit("pairlens.studio.maps:fit_map", wanted, self.state.points)
        self._running.add_done_callback(lambda future: self._later(self._done, future, wanted.n_answers, began))

    def _done(self, future: Future[Any], n_answers: int, began: float) -> None:
        self._running = None
        error = future.exception()
        if error is None:
            name, points = future.result()
            self.state = MapState(self.state.version + 1, n_answers, name, points)
            log.info("a map of %d answers in %.1f s", n_answers, time.perf_counter() - began)
        else:
            self.state = replace(self.state, error=str(error))
            log.warning("the map could not be made: %s", error)
        self._drawn(error is None)

    def close(self) -> None:
        """End the process."""
        self._worker.close()
