"""One BLAS thread for small problems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

__all__ = ["fitting_threads", "threads_for"]

SMALL = 20_000_000
"""Multiplications per matrix product below which handing work to other threads costs more than it saves."""


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


@contextmanager
def fitting_threads(multiplications: int) -> Iterator[None]:
    """Run with one BLAS thread if the products are small.

    A fit makes thousands of small products one after another. On a busy machine each would wait for the other threads:
    20 to 60 times the time was measured with two threads in place of one.
    """
    if multiplications >= SMALL:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


def threads_for(shape: tuple[int, int]) -> AbstractContextManager[None]:
    """What suits a method that sums products of n rows with f features, and may look for their neighbours."""
    n, f = shape
    # A search for neighbours makes n² f multiplications, but in large products.
    return fitting_threads(n * f * max(f, n // 50))
