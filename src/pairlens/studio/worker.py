"""A process of its own for what takes long, so that no question waits for it.

``python -m pairlens.studio.worker`` reads jobs from its standard input and writes results to its standard output, as
pickled frames on pipes that only the two processes hold. It ends by itself when the pipe closes, so that nothing is
left behind however the studio ends.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import IO, Any

__all__ = ["Worker", "WorkerError"]

LENGTH = struct.Struct(">Q")


class WorkerError(RuntimeError):
    """A job failed; the message says why."""


def start_child() -> subprocess.Popen[bytes]:
    """A process that waits for jobs."""
    return subprocess.Popen(
        [sys.executable, "-m", "pairlens.studio.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C reaches every process of the terminal's group; the studio itself ends its children.
        start_new_session=True,
    )


class Worker:
    """Runs jobs one after the other in a child process.

    A job is ``target(state, *arguments)`` with `target` written as ``"module:function"`` and `state` a dict that the
    child keeps from job to job. A child that dies fails the jobs it had; the next job gets a new child, for which
    `prepare` is run first.

    Parameters
    ----------
    prepare : tuple
        The first job of each child: target and arguments.
    """

    def __init__(self, prepare: tuple[Any, ...]) -> None:
        self._prepare = prepare
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._waiting: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._closed = False

    def submit(self, target: str, *arguments: Any) -> Future[Any]:
        """Hand over a job."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(WorkerError("the studio is closing"))
                return future
            if self._child is None or self._child.poll() is not None:
                self._start()
            self._send(future, (target, *arguments))
        return future

    def _start(self) -> None:
        self._waiting = queue.SimpleQueue()
        self._child = start_child()
        threading.Thread(target=self._listen, args=(self._child, self._waiting), daemon=True).start()
        self._send(Future(), self._prepare)

    def _send(self, future: Future[Any], job: tuple[Any, ...]) -> None:
        assert self._child is not None
        self._waiting.put(future)
        try:
            _write(self._child.stdin, job)
        except (BrokenPipeError, OSError):
            self._child.kill()

    def _listen(self, child: subprocess.Popen[bytes], waiting: queue.SimpleQueue[Future[Any]]) -> None:
        while True:
            try:
                good, result = _read(child.stdout)
            except (EOFError, OSError, pickle.UnpicklingError):
                break
            future = waiting.get()
            if good:
                future.set_result(result)
            else:
                future.set_exception(WorkerError(result))
        child.wait()
        while not waiting.empty():
            waiting.get().set_exception(WorkerError(f"the process that fits ended (code {child.returncode})"))

    def close(self) -> None:
        """End the child, in the middle of a job too."""
        with self._lock:
            self._closed = True
            if self._child is not None and self._child.poll() is None:
                self._child.kill()
                self._child.wait()


def _write(pipe: IO[bytes] | None, value: Any) -> None:
    assert pipe is not None
    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(LENGTH.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def _read(pipe: IO[bytes] | None) -> Any:
    assert pipe is not None
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (size,) = LENGTH.unpack(head)
    content = pipe.read(size)
    if len(content) < size:
        raise EOFError
    return pickle.loads(content)


def serve() -> None:
    """The child's side: a thread reads, so that the end of the pipe is seen in the middle of a job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(10)  # a question goes before a fit where both want the processor
    # What libraries print must not get between the frames.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()

    def read() -> None:
        while True:
            try:
                jobs.put(_read(sys.stdin.buffer))
            except (EOFError, OSError):
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


def _named(target: str) -> Callable[..., Any]:
    from importlib import import_module

    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


if __name__ == "__main__":
    serve()
