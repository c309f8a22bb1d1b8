"""What the torch passes need to know about the device: memory, precision of products, Triton."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pairlens.engines.config import settings

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch.loading import torch

__all__ = ["float32_products", "single_products", "triton_kernels", "working_bytes"]

CPU_BYTES = 256 * 2**20
CUDA_BYTES = 4 * 2**30


def working_bytes(device: torch.device) -> int:
    """Working memory of a pass: 256 MiB on a CPU; on a GPU 4 GiB, or a quarter of what is free if that is less."""
    if device.type != "cuda":
        return CPU_BYTES
    return min(CUDA_BYTES, torch.cuda.mem_get_info(device)[0] // 4)


def single_products(device: torch.device) -> bool:
    """Whether digits of float32 products may be traded for speed: on a GPU, if the settings allow TF32."""
    return device.type == "cuda" and settings().tf32


@contextmanager
def float32_products(device: torch.device) -> Iterator[None]:
    """Float32 products with all their digits, whatever torch was told; or with those of TF32, see above."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if single_products(device) else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def triton_kernels(X: Tensor) -> Any:
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
