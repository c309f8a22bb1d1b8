"""Dask in this process, and chunks that stay as small as the tests make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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


@pytest.fixture
def keep_chunks_apart(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """``keep_chunks_apart(rows, columns)``: chunks of that many rows are not joined where pairs of chunks meet."""

    def keep(rows: int, columns: int) -> None:
        from pairlens.engines.dask import neighbors, operations
        from pairlens.engines.dask import rows as chunks

        monkeypatch.setattr(chunks, "COARSE_BYTES", 8 * rows * columns)
        monkeypatch.setattr(neighbors, "CHUNK_ROWS", rows)
        monkeypatch.setattr(operations, "CHUNK_ROWS", rows)

    return keep
