"""Errors of libraries that read files, as errors that name the file and say what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pairlens.exceptions import MissingExtraError


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a library raises while it reads a file into a ValueError that names the file.

    Parameters
    ----------
    path : Path
    kind : str
        What the file should be, with its article, such as "a Parquet file".
    """
    try:
        yield
    except MissingExtraError:
        raise
    except MemoryError:
        raise ValueError(f"{path.name} needs more memory than there is, or is damaged") from None
    except Exception as error:
        if isinstance(error, ValueError) and path.name in str(error):
            raise
        # The operating system has its say on files that are not there or not allowed; libraries set no number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{path.name} is not {kind}, or is damaged: {short(error)}") from None


def short(error: Exception) -> str:
    """The first line of what an error says."""
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error).strip().partition("\n")[0]
    # NumPy takes whatever it does not know for a pickle, and says how to load that.
    if ("pickle" in text and "Object arrays" not in text) or "magic string" in text:
        return "it is something else"
    return text.rstrip(".") or "it ends too early"
