"""The folder of the data sets, or a skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Path:
    place = os.environ.get("PAIRLENS_DATA")
    if place is None:
        pytest.skip("set PAIRLENS_DATA to the folder of the data sets to run this test")
    return Path(place)


@pytest.fixture
def unbundled(monkeypatch):
    """As if no set came with the package."""
    monkeypatch.setattr("pairlens.datasets.loader.names_bundled", frozenset)
