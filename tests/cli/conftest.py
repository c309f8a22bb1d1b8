"""The installed command, and a table with pairs to try it on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pairlens.cli.app import run

COMMAND = Path(sys.executable).with_name("pairlens")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line that says what was wrong."""
        assert self.code == 2, (self.code, self.out, self.err)
        assert self.out == ""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("pairlens: error: ")
        assert "Traceback" not in self.err
        return lines[0]


@pytest.fixture
def shell(tmp_path) -> Callable[..., Outcome]:
    """The installed ``pairlens``, run as a process of its own in the folder of the test."""
    if not COMMAND.exists():
        pytest.skip("the command pairlens is not installed beside this Python")

    def call(*arguments: object, timeout: float = 120) -> Outcome:
        result = subprocess.run(
            [COMMAND, *map(str, arguments)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=tmp_path,
            timeout=timeout,
            check=False,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )
        return Outcome(result.returncode, result.stdout, result.stderr)

    return call


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys) -> Callable[..., Outcome]:
    """The same commands in this process, for the many cases that differ in details."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


RNG = np.random.default_rng(0)
CLASSES = np.repeat([0, 1, 2], 20)
X = (RNG.standard_normal((60, 4)) + 3 * np.eye(3, 4)[CLASSES]).round(3)
IDS = [f"{number:03d}" for number in range(60)]
PAIRS = [(a, b) for a, b in RNG.integers(0, 60, (40, 2)).tolist() if a != b]


def pairs_text(name: Callable[[int], object] = lambda row: IDS[row]) -> str:
    kinds = ("cannot-link", "must-link")
    lines = [f"{name(a)},{name(b)},{kinds[int(CLASSES[a] == CLASSES[b])]}" for a, b in PAIRS]
    return "\n".join(["a,b,kind", *lines]) + "\n"


@pytest.fixture
def table(tmp_path) -> Path:
    """data.csv with the columns id, w, x, y, z, note and class, and pairs.csv by id; returns their folder."""
    lines = ["id,w,x,y,z,note,class"]
    for number, row in enumerate(X.tolist()):
        lines.append(f"{IDS[number]},{','.join(map(str, row))},remark {number % 7},{'abc'[CLASSES[number]]}")
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "pairs.csv").write_text(pairs_text(), encoding="utf-8")
    (tmp_path / "prefer.csv").write_text("better,worse\n" + "\n".join(f"{IDS[40 + k]},{IDS[k]}" for k in range(20)))
    return tmp_path


FIT = ("fit", "data.csv", "--pairs", "pairs.csv", "--id", "id", "--drop", "class,note")


@pytest.fixture
def fitted(table, cli) -> Path:
    """The folder with a linear model in fitted/."""
    outcome = cli(*FIT, "--method", "wbdr", "--out", "fitted")
    assert outcome.code == 0, outcome.err
    return table
