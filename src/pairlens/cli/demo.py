"""``pairlens demo``: the tour, on handwritten digits that come with scikit-learn."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Annotated

import typer

from pairlens.cli import _options as options
from pairlens.cli._console import tell

PER_CLASS = 3
"""Must-links and cannot-links for each of the ten digits: 60 pairs."""
FOLDS = 3
"""A map is drawn anew for each of them."""
METHODS = ["pairmap", "pairlens", "linear-pairlens", "wbdr", "bwdr", "dsp"]


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the files of the tour.")] = Path("demo"),
    seed: options.Seed = 0,
) -> None:
    """Fit, compare and report on digits from 60 answered pairs, in about a minute.

    Writes the table, the pairs and all results to a folder, and shows the commands that do the same.
    """
    from pairlens._atomic import atomic_path
    from pairlens.cli.compare import compare
    from pairlens.cli.fit import REPORT, fit
    from pairlens.cli.pairs import sample

    start = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    data, pairs = out / "digits.csv", out / "pairs.csv"
    with atomic_path(data) as partial:
        _write_digits(partial)
    tell(
        f"{data}: 1,797 handwritten digits of 8 x 8 pixels; what digit each one is, only the answers know. "
        "All pixels have one scale, so it is kept: --scale none.\n"
    )
    _show(f"pairlens pairs sample {data} --labels digit --id id --per-class {PER_CLASS} --out {pairs}")
    sample(data, pairs, labels="digit", id_column="id", per_class=PER_CLASS, seed=seed, overwrite=True)
    _show(f"pairlens fit {data} --pairs {pairs} --id id --colour digit --scale none --folds {FOLDS} --out {out}")
    kept = options.ScaleBy.none
    fit(data, out, pairs=pairs, id_column="id", colour="digit", scale=kept, folds=FOLDS, seed=seed, overwrite=True)
    methods = ",".join(METHODS)
    _show(
        f"pairlens compare {data} --pairs {pairs} --id id --drop digit --scale none --methods {methods} --folds {FOLDS}"
    )
    compare(data, pairs=pairs, id_column="id", drop=["digit"], scale=kept, methods=METHODS, folds=FOLDS, seed=seed)
    _show(f"pairlens studio {data} --id id --drop digit")
    tell("opens a page on which you answer yourself: same digit or not? The map of all digits learns beside it.")
    report = out / REPORT
    tell(f"\n{time.perf_counter() - start:.0f} s in all")
    if report.exists():
        tell(f"Open the report in a browser: {report.resolve()}")
    else:
        tell("Install the extra report to get a report as well:  pip install 'pairlens[report]'")


def _show(command: str) -> None:
    tell(f"\n$ {command}")


def _write_digits(path: Path) -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", *names, "digit"])
        for number, (pixels, digit) in enumerate(zip(digits.data.astype(int).tolist(), digits.target.tolist())):
            writer.writerow([f"scan-{number:04d}", *pixels, digit])
