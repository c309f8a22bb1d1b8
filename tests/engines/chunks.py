"""Chunks for tests on a cluster, in a module that a worker imports in no time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np


def slow_chunk(block: np.ndarray, folder: Path, seconds: float) -> np.ndarray:
    """A chunk that takes a while, and leaves a trace of which process made it, and when."""
    (folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(seconds)
    return block
