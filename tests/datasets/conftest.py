"""The folder of the data sets, or a skip; and the arrays of a set, from there or from the package."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pairlens.datasets.bundled import load_bundled, names_bundled
from pairlens.datasets.derived import DERIVED
from pairlens.datasets.files import Arrays, read


@pytest.fixture
def folder() -> Path:
    place = os.environ.get("PAIRLENS_DATA")
    if place is None:
        pytest.skip("set PAIRLENS_DATA to the folder of the data sets to run this test")
    return Path(place)


@pytest.fixture
def stored() -> Callable[[str], Arrays]:
    """The arrays of a set as in the folder, or as they come with the package."""
    place = os.environ.get("PAIRLENS_DATA")

    def find(name: str) -> Arrays:
        if place is not None:
            return read(Path(place) / f"{name}.npz")
        if name in names_bundled():
            return load_bundled(name)
        parents = DERIVED[name].parents if name in DERIVED else ()
        if not parents or not names_bundled().issuperset(parents):
            pytest.skip(f"set PAIRLENS_DATA to a folder with {name}.npz to run this test")
        return DERIVED[name].make(*map(load_bundled, parents))

    return find


@pytest.fixture
def unbundled(monkeypatch):
    """As if no set came with the package."""
    monkeypatch.setattr("pairlens.datasets.loader.names_bundled", frozenset)
