"""Data to try things on: the papers' sets by name, generators, and sets with several notions of "same"."""

from pairlens.datasets.files import DamagedDatasetError
from pairlens.datasets.generators import make_subclass_blobs
from pairlens.datasets.glyphs import make_glyphs
from pairlens.datasets.loader import MissingDatasetError, load, names
from pairlens.datasets.penguins import load_penguins

__all__ = [
    "DamagedDatasetError",
    "MissingDatasetError",
    "load",
    "load_penguins",
    "make_glyphs",
    "make_subclass_blobs",
    "names",
]
