"""A process of its own for what takes long, so that no question waits for it.

``python -m pairlens.studio.worker`` reads jobs from its standard input and writes results to its standard output, as
pickles on pipes that only the two processes hold. It ends by itself when the pipe closes, so that nothing is left
behind however the studio ends.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

MOST_DEATHS = 3
"""Children that may die on a job before it fails."""


class WorkerError(RuntimeError):
    """A job failed; the message says why."""


def start_child() -> subprocess.Popen[bytes]:
    """Start a process that waits for jobs."""
    return subprocess.Popen(
        [sys.executable, "-m", "pairlens.studio.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C reaches every process of the terminal's group; the studio itself ends its children.
        start_new_session=True,
    )


@dataclass(eq=False)
class _Job:
    future: Future[Any]
    content: tuple[Any, ...]
    n_deaths: int = 0


class Worker:
    """Child process that runs jobs one after the other; `prepare` is the first job of each child.

    A job is ``target(state, *arguments)`` with `target` written as ``"module:function"`` and `state` a dict that the
    child keeps from job to job. If a child dies, its jobs go to a new one; a job that has lost three children fails. By
    default nothing is prepared.
    """

    def __init__(self, prepare: tuple[Any, ...] = ("builtins:len",)) -> None:
        self._prepare = prepare
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._jobs: deque[_Job] = deque()
        self._closed = False

    def submit(self, target: str, *arguments: Any) -> Future[Any]:
        """Send a job to the child."""
        job = _Job(Future(), (target, *arguments))
        with self._lock:
            if self._closed:
                job.future.set_exception(WorkerError("the studio is closing"))
            else:
                self._give([job])
        return job.future

    def _give(self, jobs: Iterable[_Job]) -> None:
        """Send jobs to the child, or to a new one if there is none that lives."""
        if self._child is None or self._child.poll() is not None:
            self._child, self._jobs = start_child(), deque()
            threading.Thread(target=self._listen, args=(self._child, self._jobs), daemon=True).start()
            jobs = [_Job(Future(), self._prepare, MOST_DEATHS), *jobs]
        for job in jobs:
            self._jobs.append(job)
            with suppress(OSError):  # it has died: the thread that listens sees to its jobs
                _write(self._child.stdin, job.content)

    def _listen(self, child: subprocess.Popen[bytes], jobs: deque[_Job]) -> None:
        assert child.stdout is not None
        while True:
            try:
                good, result = pickle.load(child.stdout)
            except Exception:  # the end, or something that is not a reply
                break
            _settle(jobs.popleft(), result if good else WorkerError(result))
        child.kill()
        code = child.wait()
        reason = f"the process that computes has ended {MOST_DEATHS} times (code {code}); is there enough memory?"
        with self._lock:
            for job in jobs:
                job.n_deaths += 1
            left = [] if self._closed else [job for job in jobs if job.n_deaths < MOST_DEATHS]
            try:
                if left:
                    self._give(left)
            except OSError as error:
                left, reason = [], f"the process that computes cannot be started: {error}"
        for job in jobs:
            if job not in left:
                _settle(job, WorkerError(reason))

    def close(self) -> None:
        """End the child, in the middle of a job too."""
        with self._lock:
            self._closed = True
            if self._child is not None and self._child.poll() is None:
                self._child.kill()
                self._child.wait()


def _settle(job: _Job, result: Any) -> None:
    with suppress(InvalidStateError):  # nobody waits for it any more
        if isinstance(result, WorkerError):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)


def _write(pipe: IO[bytes] | None, value: Any) -> None:
    assert pipe is not None
    pipe.write(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
    pipe.flush()


def serve() -> None:
    """Serve jobs in the child: a thread reads, so that the end of the pipe is seen in the middle of a job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What libraries print must not get between the pickles.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()

    def read() -> None:
        while True:
            try:
                jobs.put(pickle.load(sys.stdin.buffer))
            except (EOFError, OSError, pickle.UnpicklingError):
                os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    state: dict[str, Any] = {}
    first, failed = True, ""
    while True:
        target, *arguments = jobs.get()
        try:
            reply = (False, failed) if failed else (True, _named(target)(state, *arguments))
        except Exception as error:
            reply = (False, f"{type(error).__name__}: {error}")
            # Without what the first job prepares, no other makes sense.
            failed = reply[1] if first else ""
        first = False
        try:
            _write(output, reply)
        except (BrokenPipeError, OSError):
            os._exit(0)


def step_back(state: dict[str, Any]) -> None:
    """Give questions priority over what this child does from now on."""
    if hasattr(os, "nice") and not state.get("behind"):
        state["behind"] = True
        os.nice(10)


def _named(target: str) -> Callable[..., Any]:
    from importlib import import_module

    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


if __name__ == "__main__":
    serve()
