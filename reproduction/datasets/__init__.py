"""The data sets of the papers by name: from a folder, from the repository, from scikit-learn or from OpenML."""

from reproduction.datasets.files import DamagedDatasetError
from reproduction.datasets.loader import MissingDatasetError, load, names

__all__ = ["DamagedDatasetError", "MissingDatasetError", "load", "names"]
