"""``pairlens export-onnx``: a linear model for other runtimes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pairlens.cli import _options as options
from pairlens.cli._console import print_json, tell
from pairlens.cli.transform import Model, load_view


class Numbers(StrEnum):
    """The numbers that go in and come out."""

    float32 = "float32"
    float64 = "float64"


def export_onnx(
    model: Model,
    out: Annotated[Path, typer.Option("--out", help="File to write, usually with the ending .onnx.")],
    dtype: Annotated[Numbers, typer.Option("--dtype", help="Numbers that go in and come out.")] = Numbers.float32,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Write a linear model, with the scaling in front of it, as ONNX."""
    from pairlens.cli._work import check_new
    from pairlens.io import onnx
    from pairlens.io.source import inputs_of

    check_new(out, overwrite)
    fitted = load_view(model)
    try:
        onnx.export_onnx(fitted, out, dtype=dtype.value)
    except TypeError as error:
        raise ValueError(str(error)) from error
    wanted = inputs_of(fitted)
    if as_json:
        print_json({"out": str(out), "dtype": dtype.value, "columns": wanted.array_names or wanted.n_features})
    else:
        tell(f"wrote {out}: X of {wanted.n_features} columns of {dtype.value} in, embedding out")
