"""How many threads BLAS may use."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

SMALL = 20_000_000
"""Multiplications per matrix product below which handing work to other threads costs more than it saves."""


@cache
def _controller() -> Any:
    """The BLAS libraries of this process; to look for them takes milliseconds, as long as a small fit."""
    import scipy.linalg  # noqa: F401  (SciPy may bring a BLAS beside NumPy's, which has to be there to be found)
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController().select(user_api="blas")


def blas_threads() -> int:
    """How many threads BLAS may use at present."""
    return max((library["num_threads"] for library in _controller().info()), default=1)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread, as where other threads share the work."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limit


def fitting_threads(multiplications: int) -> AbstractContextManager[Any]:
    """Run with one BLAS thread if the products are small.

    A fit makes thousands of small products one after another. On a busy machine each would wait for the other threads:
    20 to 60 times the time was measured with two threads in place of one.
    """
    return one_blas_thread() if multiplications < SMALL else nullcontext()


def threads_for(shape: tuple[int, int]) -> AbstractContextManager[Any]:
    """What suits a method that sums products of n rows with f features, and may look for their neighbours."""
    n, f = shape
    # A search for neighbours makes n² f multiplications, but in large products.
    return fitting_threads(n * f * max(f, n // 50))
