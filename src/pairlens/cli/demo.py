"""``pairlens demo``: the tour, on handwritten digits that come with scikit-learn and on the bundled penguins."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pairlens.cli import _options as options
from pairlens.cli._console import print_table, tell

PER_CLASS = 3
"""Must-links and cannot-links for each of the ten digits: 60 pairs."""
FOLDS = 3
"""A map is drawn anew for each of them."""
QUESTIONS = ("species", "sex")
N_ANSWERS = 60
"""Answers to each of the questions about the penguins."""
METHODS = "pairmap,pairlens,linear-pairlens,wbdr,bwdr,dsp"


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the files of the tour.")] = Path("demo"),
    seed: options.Seed = 0,
) -> None:
    """Compare, fit and report on digits from 60 answered pairs, then map penguins by two questions, in half a minute.

    Writes the table, the pairs and all results to a folder, and shows the commands that do the same.
    """
    from pairlens._atomic import atomic_path
    from pairlens.cli.fit import REPORT

    start = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    data, pairs = out / "digits.csv", out / "pairs.csv"
    with atomic_path(data) as partial:
        _write_digits(partial)
    tell(
        f"{data}: 1,797 handwritten digits of 8 x 8 pixels; what digit each one is, only the answers know. "
        "All pixels have one scale, so it is kept: --scale none.\n"
    )
    again = ["--overwrite", "--seed", seed]
    _run(["pairs", "sample", data, "--labels", "digit", "--id", "id", "--per-class", PER_CLASS, "--out", pairs], again)
    # The comparison measures its t-SNE, so it comes first; the report shows the same one.
    shared = [data, "--pairs", pairs, "--id", "id", "--scale", "none", "--folds", FOLDS]
    _run(["compare", *shared, "--drop", "digit", "--methods", METHODS], ["--seed", seed])
    _run(["fit", *shared, "--colour", "digit", "--out", out], again)
    tell(f"\n$ pairlens studio {data} --id id --drop digit")
    tell("opens a page on which you answer yourself: same digit or not? The map of all digits learns beside it.")
    _two_questions(out, seed)
    report = out / REPORT
    tell(f"\n{time.perf_counter() - start:.0f} s in all")
    if report.exists():
        for question in QUESTIONS:
            tell(f"Open the report on penguins, by {question}: {(out / question / REPORT).resolve()}")
        tell(f"Open the report in a browser: {report.resolve()}")
    else:
        tell("Install the extra report to get a report as well:  pip install 'pairlens[report]'")


def _two_questions(out: Path, seed: int) -> None:
    """Map the same penguins twice, from answers to two questions, and show that each map follows its own."""
    from pairlens._atomic import atomic_path

    again = ["--overwrite", "--seed", seed]
    data = out / "penguins.csv"
    with atomic_path(data) as partial:
        _write_penguins(partial)
    tell(
        f"\nThe same rows, two questions, two maps. {data}: four measurements of 333 penguins. Penguins are alike by "
        "species, which the measurements show first, or by sex. The answers say which one the map is to show."
    )
    for question in QUESTIONS:
        (other,) = {*QUESTIONS} - {question}
        pairs, folder = out / f"{question}.csv", out / question
        shared = [data, "--id", "id", "--out"]
        _run(["pairs", "sample", *shared, pairs, "--labels", question, "--n-pairs", N_ANSWERS], again)
        view = ["--pairs", pairs, "--drop", other, "--colour", question, "--folds", 2]
        _run(["fit", *shared, folder, *view], again)
    tell(
        "\nDoes each map show what was asked? ARI of the groups that k-means finds in it: 1 if they are those of the "
        "column, 0 if they have nothing to do with them."
    )
    rows = [
        [f"asked by {asked}", *(f"{_agreement(data, out / asked, by):z.2f}" for by in QUESTIONS)] for asked in QUESTIONS
    ]
    print_table(["map", *QUESTIONS], rows, numbers=(1, 2))


def _agreement(data: Path, folder: Path, column: str) -> float:
    """Return the ARI of k-means in a map with the groups of a column."""
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    from pairlens.io.source import read_columns

    groups = np.asarray(read_columns(data, [column])[column]).astype(str)
    places = np.loadtxt(folder / "embedding.csv", delimiter=",", skiprows=1, usecols=(1, 2))
    found = KMeans(len(np.unique(groups)), n_init=10, random_state=0).fit_predict(places)
    return float(adjusted_rand_score(groups, found))


def _run(command: Sequence[object], more: Sequence[object]) -> None:
    """Show a command and run it, with `more` options that are not shown."""
    from pairlens.cli.app import app

    tell(f"\n$ {shlex.join(map(str, ['pairlens', *command]))}")
    app(list(map(str, [*command, *more])), standalone_mode=False)


def _write_digits(path: Path) -> None:
    from sklearn.datasets import load_digits

    table = load_digits(as_frame=True).frame.astype(int).rename(columns={"target": "digit"})
    table.insert(0, "id", [f"scan-{number:04d}" for number in range(len(table))])
    table.to_csv(path, index=False, lineterminator="\n")


def _write_penguins(path: Path) -> None:
    """Write the penguins of known sex, which all were measured."""
    from pairlens.datasets import load_penguins

    penguins = load_penguins()
    rows = load_penguins(as_frame=True).data[penguins.feature_names].assign(species=penguins.species, sex=penguins.sex)
    rows.insert(0, "id", [f"penguin-{number:03d}" for number in range(len(rows))])
    rows[rows["sex"].notna()].to_csv(path, index=False, lineterminator="\n")
