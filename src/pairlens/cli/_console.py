"""What people see: results on stdout, progress on stderr where somebody is watching."""

from __future__ import annotations

import io
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

Update = Callable[..., None]


@contextmanager
def progress(description: str) -> Iterator[Update]:
    """Show a bar on stderr; ``update(share, description)`` moves it, and a share of None spins it."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda share=None, description=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(description, total=None)

        def update(share: float | None = None, description: str | None = None) -> None:
            done, total = (0.0, None) if share is None else (share, 1.0)
            bar.update(task, completed=done, total=total, description=description)

        yield update


def forgive_encoding() -> None:
    """Let output that the encoding of the terminal or the file has no character for be written with escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def tell(text: str, *, err: bool = False) -> None:
    """Print text of which parts may come from the data: nothing in it can steer the terminal."""
    typer.echo(
        "".join(mark if mark.isprintable() or mark == "\n" else "\N{REPLACEMENT CHARACTER}" for mark in text), err=err
    )


def remark(text: str) -> None:
    """Remember a remark about a run that went well; it is shown at its end, and not at all if it fails."""
    warnings.warn(text, UserWarning, stacklevel=2)


def print_json(value: Any) -> None:
    """Print the result for scripts; numbers that JSON has no word for become null."""
    typer.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> None:
    """Print aligned columns; those in `numbers` to the right."""
    widths = [max(len(row[j]) for row in [header, *rows]) for j in range(len(header))]
    for row in [header, *rows]:
        cells = [
            cell.rjust(width) if j in numbers else cell.ljust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        tell("  ".join(cells).rstrip())


def said(mean: float, error: float) -> str:
    """Return a score with its standard error, as text."""
    return "not known" if math.isnan(mean) else f"{mean:.3f} ± {error:.3f}"
