"""The cases of the league of notions: rows, and one way to say which of them are the same.

A case is ``SET:NOTION``, or the name of an ordinary set with one notion. Sets with several notions are files with an
array X and one array of labels for each notion. They are read from the folder that ``PAIRLENS_NOTIONS`` names, by
default the folder ``notions`` beside the one that ``PAIRLENS_DATA`` names; coil20 and the ordinary sets are loaded as
:func:`reproduction.datasets.load` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.league import drawn_rows
from benchmarks.placed import Array, Codes
from reproduction import datasets

__all__ = ["FOLDER", "GROUPS", "chosen_cases", "group_of", "load_case"]

FOLDER = "PAIRLENS_NOTIONS"
"""The environment variable that names the folder of the sets with several notions."""
GROUPS = {
    "minor": (
        *("crabs:sp", "crabs:sex", "penguins:sex", "glyphs:bold", "glyphs:italic", "glyphs:serif"),
        *("debian:interface", "coil20:pose"),
    ),
    "dominant": ("penguins:species", "glyphs:letter", "debian:use", "coil20:object"),
    # Of the sets of the league of maps those without missing cells, and one of those that share rows.
    "rest": (
        *("balance", "breast", "cnae9", "digits", "glass", "heart", "ionosphere", "iris", "isolet1", "letter"),
        *("mfeat_zer", "mnist6000", "monks1", "pendigits", "seeds", "segmentation_test", "semeion", "sonar", "umist"),
        *("usps", "vehicle", "wdbc", "wine", "yaleb"),
    ),
}
"""Cases by what they ask for: a notion that is not the dominant structure, the dominant one, or the only one."""
MOST_ROWS = 700
"""At most 420 to fit and 280 to test."""
POSES_IN_A_GROUP = 18
"""Of the 72 poses of an object of coil20, which makes four groups."""


def group_of(case: str) -> str:
    """Return the group of a case."""
    return next(group for group, cases in GROUPS.items() if case in cases)


def chosen_cases(names: Iterable[str] = ()) -> list[str]:
    """Return the cases that are named, by themselves, by their set or by their group; all if none are."""
    known = [case for cases in GROUPS.values() for case in cases]
    wanted = list(names) or list(GROUPS)
    found = {name: [c for c in known if name in (c, c.partition(":")[0], group_of(c))] for name in wanted}
    if unknown := [name for name, cases in found.items() if not cases]:
        raise SystemExit(f"unknown cases {unknown}; there are {', '.join(known)}, and the groups {', '.join(GROUPS)}")
    return [case for case in known if any(case in cases for cases in found.values())]


@lru_cache(maxsize=2)
def load_case(case: str) -> tuple[Array, Codes]:
    """Return the rows, which are not scaled, and their groups; the draw of rows is fixed by the name of the case."""
    X, y = _read(case)
    rows, codes = drawn_rows(y, MOST_ROWS, case)
    return X[rows].astype(np.float64), codes


def _read(case: str) -> tuple[NDArray[Any], NDArray[Any]]:
    name, _, notion = case.partition(":")
    if notion and name != "coil20":
        with np.load(_file(name), allow_pickle=False) as arrays:
            return arrays["X"], arrays[notion]
    try:
        found = datasets.load(name, download=False)
    except datasets.MissingDatasetError as error:
        raise SystemExit(str(error)) from error
    return found.X, found.pose // POSES_IN_A_GROUP if notion == "pose" else found.y


def _file(name: str) -> Path:
    given, data = os.environ.get(FOLDER), os.environ.get(datasets.loader.FOLDER)
    folder = Path(given) if given else Path(data).absolute().parent / "notions" if data else None
    if folder is None or not (path := folder / f"{name}.npz").is_file():
        raise SystemExit(
            f"{name}.npz is not in {folder or 'a known folder'}: {FOLDER} must name the folder of the sets with "
            f"several notions. By default it is the folder notions beside that of {datasets.loader.FOLDER}."
        )
    return path
