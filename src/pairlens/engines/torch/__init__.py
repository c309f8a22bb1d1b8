"""Rows in a torch tensor, on whatever device it is.

Importing this package does not import torch; using it does.
"""

from pairlens.engines.torch.device import product_precision, torch, working_bytes
from pairlens.engines.torch.neighbors import TorchRows, row_step, torch_neighbors
from pairlens.engines.torch.operations import DEVICE_FEATURES, device_eigen
from pairlens.engines.torch.projected import TorchProjectedRows
from pairlens.engines.torch.rows import TensorGraph, TensorRows
from pairlens.engines.torch.selection import chunks
from pairlens.engines.torch.walks import TensorNearGraph

__all__ = [
    "DEVICE_FEATURES",
    "TensorGraph",
    "TensorNearGraph",
    "TensorRows",
    "TorchProjectedRows",
    "TorchRows",
    "chunks",
    "device_eigen",
    "product_precision",
    "row_step",
    "torch",
    "torch_neighbors",
    "working_bytes",
]
