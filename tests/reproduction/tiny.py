"""A tiny experiment for the tests of the runner; as a program it runs that experiment, to be killed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from reproduction import Column, DataSet, Experiment, Figure, Method, Quick, Result, Table, Unit
from reproduction.command import UNITS, write_output
from reproduction.runner import run
from reproduction.tasks import Store

LOG = "TINY_LOG"
"""Environment variable of a file that gets a line for each unit computed: its name and the process."""


def blob(seed: int) -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(seed).normal(size=(20, 3)), np.arange(20) % 2


class Shifted:
    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift


def measure(unit: Unit) -> Iterator[Result]:
    if LOG in os.environ:
        with Path(os.environ[LOG]).open("a") as log:
            log.write(f"{unit.data.name}-{unit.run}-{unit.part} {os.getpid()}\n")
    time.sleep(unit.settings["seconds"])
    rng = np.random.default_rng(unit.seed("noise", unit.part))
    for method in unit.methods:
        for d in (1, 2, 3):
            value = method.build().shift + d * (4 - d) / 10 + rng.normal(scale=0.01) + unit.X.mean() / 100
            yield Result(method.name, float(value), "score", {"dim": d})


def fail_on_second(unit: Unit) -> Iterator[Result]:
    if unit.run == 1 and not Path(unit.settings["cure"]).exists():
        raise ArithmeticError("no luck")
    yield Result("one", 1.0, "score")


def die(unit: Unit) -> Iterator[Result]:
    os._exit(3)


def experiment(seconds: float = 0.0, runs: int = 3) -> Experiment:
    return Experiment(
        name="tiny",
        title="A tiny experiment",
        protocol=measure,
        sets=(DataSet("left", make=blob), DataSet("right", make=blob, note="the other one.")),
        methods=(Method("A", Shifted), Method("B", Shifted, {"shift": 0.5})),
        settings={"seconds": seconds},
        runs=runs,
        parts=2,
        quick=Quick(runs=1, sets=("left",)),
        tables=(
            Table(
                "Scores",
                (
                    Column("A", "A", "score", printed={"left": 0.4, "right": 0.5}, best_over="dim"),
                    Column("B", "B", "score", best_over="dim"),
                ),
                notes={("right", "A"): "Too high in print."},
                limits={"A": 0.1},
            ),
        ),
        figures=(Figure("Scores over the dimension", "score", "dim"),),
        notes=("Made up.",),
    )


def main(folder: Path, seconds: float) -> None:
    tiny = experiment(seconds)
    store = Store(folder / UNITS)
    run([tiny], store, jobs=2, quiet=True)
    write_output(tiny, store, folder)


if __name__ == "__main__":
    # Under its real name, for results are stored by the name of the protocol.
    from tests.reproduction import tiny

    tiny.main(Path(sys.argv[1]), float(sys.argv[2]))
