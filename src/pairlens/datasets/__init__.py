"""Data to try things on: the papers' sets by name, and generators."""

from pairlens.datasets.files import DamagedDatasetError
from pairlens.datasets.generators import make_subclass_blobs
from pairlens.datasets.loader import MissingDatasetError, load, names

__all__ = ["DamagedDatasetError", "MissingDatasetError", "load", "make_subclass_blobs", "names"]
