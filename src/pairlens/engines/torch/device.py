"""torch itself, imported when it is first used, and what its device allows: memory, precision of products, Triton."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

from pairlens._optional import require
from pairlens.engines.config import settings

CPU_BYTES = 256 * 2**20
CUDA_BYTES = 4 * 2**30


class _LazyTorch:
    """Stands for the module torch, so that modules that work with tensors can be imported where it is not installed."""

    def __getattr__(self, name: str) -> Any:
        # Tools that look through modules ask any object for such names, and expect to be told there is none.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(require("torch", extra="gpu", purpose="working with tensors"), name)


torch = _LazyTorch()


def working_bytes(device: Any) -> int:
    """Working memory of a pass: 256 MiB on a CPU; on a GPU 4 GiB, or a quarter of what is free if that is less."""
    if device.type != "cuda":
        return CPU_BYTES
    return min(CUDA_BYTES, torch.cuda.mem_get_info(device)[0] // 4)


def single_products(device: Any) -> bool:
    """Whether digits of float32 products may be traded for speed: on a GPU, if the settings allow TF32."""
    return device.type == "cuda" and settings().tf32


@contextmanager
def product_precision(device: Any) -> Iterator[None]:
    """Float32 products with all their digits, whatever torch was told; or with those of TF32, see above."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if single_products(device) else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def triton_kernels(X: Any) -> Any:
    """The module of the Triton kernels, or None where they cannot run on the device of X."""
    if not X.is_cuda or torch.version.hip is not None:
        return None
    if torch.cuda.get_device_capability(X.device) < (8, 0):
        return None
    return _kernels()


@cache
def _kernels() -> ModuleType | None:
    try:
        importlib.import_module("triton")
    except ImportError:
        return None
    return importlib.import_module("pairlens.engines.torch.triton_screen")
