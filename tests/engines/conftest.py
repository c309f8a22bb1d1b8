"""Dask in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def in_this_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests without a cluster compute in this process."""
    try:
        import dask
    except ImportError:
        yield
        return
    with dask.config.set({} if "cluster" in request.fixturenames else {"scheduler": "synchronous"}):
        yield
