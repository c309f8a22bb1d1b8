"""``pairlens transform``: rows of a file, of any size, through a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pairlens.cli import _options as options
from pairlens.cli._console import print_json, progress, tell

Model = Annotated[
    Path, typer.Argument(help="A model written by pairlens fit or pairlens.save.", metavar="MODEL", show_default=False)
]


def transform(
    model: Model,
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", help="File to write; its extension gives the format.")],
    id_column: options.IdColumn = None,
    rows: options.RowsFile = None,
    rep: options.Rep = None,
    drop: options.Drop = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Transform the rows of a file with a model, chunk by chunk: the file may be larger than memory.

    NPZ archives, h5ad files and, because rows are joined, files with --rows are read whole.
    """
    from pairlens.cli._work import check_new, remark_unmatched
    from pairlens.io.embedding import embed
    from pairlens.io.source import Source, kind_of

    kind_of(out, written=True)
    check_new(out, overwrite)
    fitted = load_view(model)
    source = Source(data, id_column, drop=options.as_list(drop), rows=rows, rep=rep)
    with progress(f"transforming {data.name}") as update:
        count = embed(fitted, source, out, progress=update, opened=lambda table: remark_unmatched(source, table))
    if as_json:
        print_json({"rows": count, "columns": list(fitted.get_feature_names_out()), "out": str(out)})
    else:
        tell(f"wrote {count:,} rows to {out}")


def load_view(path: Path) -> Any:
    """Load a model that has a view; ValueError for others."""
    from pairlens.io.models import load
    from pairlens.selection.fitting import last_step

    fitted = load(path)
    if not hasattr(fitted, "transform"):
        raise ValueError(f"{path.name} holds a {type(last_step(fitted)).__name__}, which makes no view of rows")
    return fitted
