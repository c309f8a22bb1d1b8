"""The data sets of the papers: what each is, where it comes from, and what its arrays must be."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from reproduction.datasets.derived import DERIVED
from reproduction.datasets.downloads import OpenML, fetch_kdd
from reproduction.datasets.files import Arrays

DOWNLOADERS: dict[str, Callable[[], Arrays]] = {"kddcup99_10pct": fetch_kdd}


@dataclass(frozen=True)
class DataSet:
    """One data set.

    Parameters
    ----------
    name : str
        What to ask :func:`reproduction.datasets.load` for.
    shape : tuple of int
        Rows and features; for ratings, only their number.
    source : str
        Where our copy comes from, and where to get one.
    encoding : str
        How the source became numbers.
    note : str
        What else to know: how it differs from the set that a paper describes.
    n_classes : int
        0 for a target that is a number, and for ratings.
    openml : OpenML or None
        Where it is on OpenML, if a copy there can be brought to our values exactly.
    download : callable or None
        Another downloader.
    """

    name: str
    shape: tuple[int, ...]
    source: str
    encoding: str
    note: str = ""
    n_classes: int = 0
    openml: OpenML | None = None
    download: Callable[[], Arrays] | None = field(default=None, repr=False)

    @property
    def downloadable(self) -> bool:
        """Whether there is code that downloads it."""
        return self.openml is not None or self.download is not None

    def describe(self) -> str:
        """What it is, in a few lines."""
        if len(self.shape) == 2:
            kind = f"{self.n_classes} classes" if self.n_classes else "the target is a number"
            size = f"{self.shape[0]} rows, {self.shape[1]} features, {kind}."
        else:
            size = f"{self.shape[0]} ratings."
        lines = [f"{self.name}: {size}", f"Encoding: {self.encoding}."]
        if self.note:
            lines.append(f"Note: {self.note}.")
        lines.append(f"Source: {self.source}.")
        lines.append("Nothing is scaled or filled in; a missing cell is NaN.")
        return "\n".join(lines)

    def how_to_get(self) -> str:
        """What a user can do who has no copy."""
        ways = []
        if self.openml is not None:
            ways.append(
                f"it is on OpenML as {self.openml.name!r}, version {self.openml.version}: load it once with a network "
                "and download=True"
            )
        elif self.download is not None:
            ways.append("scikit-learn can download it: load it once with a network and download=True")
        if self.name in DERIVED:
            ways.append(f"it is made from {' and '.join(DERIVED[self.name].parents)} where those can be loaded")
        ways.append(
            f"put a file {self.name}.npz into the folder that data_home or PAIRLENS_DATA names, with the arrays "
            f"{'X and y' if len(self.shape) == 2 else 'user, item and rating'}; the values are those of "
            f"{self.source} (encoding: {self.encoding})"
        )
        return "; or ".join(ways)


@cache
def digests() -> dict[str, dict[str, str]]:
    """The checksums of each set's arrays, and under "rows" that of its rows in any order.

    They are those that :mod:`reproduction.datasets.files` gives of the files that the experiments were run on.
    """
    stored: dict[str, dict[str, str]] = json.loads(files("reproduction.datasets").joinpath("digests.json").read_text())
    return stored


def _read() -> dict[str, DataSet]:
    stored = tomllib.loads(files("reproduction.datasets").joinpath("sets.toml").read_text(encoding="utf-8"))
    sets = {}
    for name, entry in stored.items():
        upload: dict[str, Any] = entry.pop("openml", {})
        upload = {key: tuple(value) if isinstance(value, list) else value for key, value in upload.items()}
        entry["openml"] = OpenML(**upload) if upload else None
        sets[name] = DataSet(name, tuple(entry.pop("shape")), download=DOWNLOADERS.get(name), **entry)
    return sets


REGISTRY: dict[str, DataSet] = _read()
"""Every known set by name."""
