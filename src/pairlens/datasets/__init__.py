"""Data to try things on."""

from pairlens.datasets.generators import make_subclass_blobs

__all__ = ["make_subclass_blobs"]
