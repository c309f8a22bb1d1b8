"""``pairlens pairs predict``: how probable it is that the rows of many pairs belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pairlens.cli import _options as options
from pairlens.cli._console import print_json, progress, tell
from pairlens.cli.transform import Model, load_view

ENDINGS = (".csv", ".tsv")


def predict(
    model: Model,
    pairs: Annotated[
        Path,
        typer.Argument(
            help="Pairs to judge: CSV or JSON lines with a and b; other columns are passed over.",
            metavar="PAIRS",
            show_default=False,
        ),
    ],
    data: Annotated[Path, typer.Option("--data", help="The table the pairs are about.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="File to write, .csv or .tsv: a, b and p_same.")],
    id_column: options.IdColumn = None,
    base_rate: Annotated[
        float | None,
        typer.Option(
            "--base-rate",
            help="Share of the pairs that belong together, if it is another than among the answers.",
            show_default=False,
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Write the probability that the two rows of each pair belong together, as learned from held-out pairs.

    The table is held in memory; the pairs are read and written a block at a time, so there may be any number of them.
    """
    import numpy as np

    from pairlens._atomic import atomic_path
    from pairlens._text import TableWriter, delimiter_of
    from pairlens.cli._work import check_new
    from pairlens.io.source import Source
    from pairlens.supervision.answers import read_pair_blocks

    if out.suffix.lower() not in ENDINGS:
        raise ValueError(f"the name of the file must end in {' or '.join(ENDINGS)}, got {out.name!r}")
    check_new(out, overwrite)
    fitted = load_view(model)
    method = _calibrated(fitted, model.name)
    with progress(f"reading {data.name}") as update:
        table = Source(data, id_column).read(fitted)
        rows = fitted[:-1].transform(table.rows) if len(getattr(fitted, "steps", ())) > 1 else table.rows
        rows = np.asarray(rows) if hasattr(rows, "to_numpy") else rows
        count = likely = 0
        with atomic_path(out) as partial, partial.open("w", newline="", encoding="utf-8") as file:
            writer = TableWriter(file, delimiter_of("", out.suffix))
            writer.row(["a", "b", "p_same"])
            for block in read_pair_blocks(pairs, ids=table.ids, n_samples=table.n_rows):
                left, right = (rows[block.rows[:, end]] for end in (0, 1))
                together = method.pair_proba(left, right, base_rate=base_rate)
                writer.rows(zip(*(end.tolist() for end in block.ends), (f"{p:.6g}" for p in together)))
                count += len(together)
                likely += int(np.count_nonzero(together > 0.5))
                update(None, f"{count:,} pairs")
    if as_json:
        print_json({"out": str(out), "pairs": count, "p_same_above_half": likely})
    else:
        tell(f"wrote {out}: {count:,} pairs, {likely:,} of them more probably the same than not")


def _calibrated(fitted: Any, name: str) -> Any:
    """The method of a model; ValueError if it gives no probabilities."""
    from pairlens.selection.fitting import last_step

    method = last_step(fitted)
    if not hasattr(method, "pair_proba"):
        raise ValueError(f"{name} holds a {type(method).__name__}, which gives no probabilities of pairs")
    if not method.is_calibrated:
        raise ValueError(
            f"{name} gives no probabilities: pairlens fit learns them from at least 5 must-links and 5 cannot-links"
        )
    return method
