"""Settings of the engines that are no parameters of a method: where memory ends and how precise a GPU multiplies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Settings:
    """What :func:`config_context` can change.

    Attributes
    ----------
    tf32 : bool
        Whether float32 products on a GPU may round their factors to 10 bits (TF32). Off by default, whatever PyTorch is
        set to elsewhere.
    progress : bool
        Whether passes over dask arrays report to standard error.
    gather_bytes : int
        Most bytes of single rows, those that pairs name, that are fetched from a dask array into this process.
    exact_rows : int
        Rows of a dask array up to which neighbours are searched exactly, over all pairs of chunks.
    landmark_rows : int
        Rows that represent all others where neighbours are not searched exactly, or a method needs its rows in memory.
    """

    tf32: bool = False
    progress: bool = False
    gather_bytes: int = 1 << 29
    exact_rows: int = 200_000
    landmark_rows: int = 50_000


DEFAULT = Settings()
_current: ContextVar[Settings] = ContextVar("pairlens_settings", default=DEFAULT)


def settings() -> Settings:
    """The settings in force here."""
    return _current.get()


@contextmanager
def config_context(**changes: Any) -> Iterator[Settings]:
    """Change settings of the engines inside a ``with`` block.

    Parameters
    ----------
    **changes
        Fields of :class:`Settings`: `tf32`, `progress`, `gather_bytes`, `exact_rows`, `landmark_rows`.

    Examples
    --------
    >>> from pairlens.engines.config import config_context, settings
    >>> with config_context(tf32=True):
    ...     settings().tf32
    True
    """
    known = {field.name: field.type for field in fields(Settings)}
    for name, value in changes.items():
        if name not in known:
            raise ValueError(f"{name!r} is no setting; there are {', '.join(known)}.")
        if known[name] == "int" and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"{name}={value!r} must be an integer of at least 1.")
        if known[name] == "bool" and not isinstance(value, bool):
            raise ValueError(f"{name}={value!r} must be True or False.")
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield _current.get()
    finally:
        _current.reset(token)
