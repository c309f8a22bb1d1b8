"""The folder of the data sets, or a skip; and the arrays of a set, from there or from the repository."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reproduction.datasets.derived import DERIVED
from reproduction.datasets.files import Arrays, load_bundled, names_bundled, read


@pytest.fixture
def folder() -> Path:
    place = os.environ.get("PAIRLENS_DATA")
    if place is None:
        pytest.skip("set PAIRLENS_DATA to the folder of the data sets to run this test")
    return Path(place)


@pytest.fixture
def stored() -> Callable[[str], Arrays]:
    """The arrays of a set as in the folder, or as they are in the repository."""
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
    """As if no set were in the repository."""
    monkeypatch.setattr("reproduction.datasets.loader.names_bundled", frozenset)
