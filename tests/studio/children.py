"""Children of a studio that need not import anything: they are forked from one process that has done so.

A child of a studio spends seconds of processor time on imports, and most tests start two of them. The tests of whole
processes (``test_process.py``) start theirs as users do.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO

from pairlens.studio.worker import serve

IMPORTED = (
    "pairlens.asking.view",
    "pairlens.methods.pairmap",
    "pairlens.methods.lenses",
    "pairlens.preference",
    "pairlens.studio.maps",
    "pairlens.studio.files",
    "sklearn.decomposition",
)
"""What the jobs of a studio import."""


@dataclass
class Child:
    """The part of ``subprocess.Popen`` that a worker uses, for a process that is somebody else's child."""

    pid: int
    stdin: IO[bytes]
    stdout: IO[bytes]
    returncode: int | None = None

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            self.returncode = -signal.SIGKILL
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        while (code := self.poll()) is None:
            time.sleep(0.002)
        return code


class Nursery:
    """Starts the process that forks, and asks it for children."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "s")
        command = [sys.executable, "-m", __name__, self._path]
        self._parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._parent.stdout is not None
        assert self._parent.stdout.readline() == b"ready\n"

    def child(self) -> Child:
        jobs, to_jobs = os.pipe()
        from_results, results = os.pipe()
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(self._path)
            socket.send_fds(asked, [b"+"], [jobs, results])
            pid = int(asked.recv(32))
        os.close(jobs)
        os.close(results)
        return Child(pid, os.fdopen(to_jobs, "wb"), os.fdopen(from_results, "rb"))

    def close(self) -> None:
        self._parent.communicate()


def main(path: str) -> None:
    """Fork a child for whoever connects, until the standard input ends: with the tests, however they end."""
    for name in IMPORTED:
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended children leave nothing behind
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(16)
        print("ready", flush=True)
        while server in select.select([server, sys.stdin], [], [])[0]:
            asking, _ = server.accept()
            _, given, _, _ = socket.recv_fds(asking, 1, 2)
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                server.close()
                asking.close()
                os.setsid()
                for target, end in enumerate(given):
                    os.dup2(end, target)
                    os.close(end)
                serve()
            asking.send(str(pid).encode())
            asking.close()
            for end in given:
                os.close(end)


if __name__ == "__main__":
    main(sys.argv[1])
