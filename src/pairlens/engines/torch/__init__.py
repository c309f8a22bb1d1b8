"""Rows in a torch tensor, on whatever device it is.

Importing this package does not import torch; using it does.
"""

# ruff: noqa: F401 - these are the names of the package

from pairlens.engines.torch.projected import TorchProjectedRows
from pairlens.engines.torch.rows import (
    TensorRows,
    chunks,
    device_eigen,
    product_precision,
    row_step,
    torch,
    triton_kernels,
    working_bytes,
)
from pairlens.engines.torch.search import TorchRows, torch_neighbors
