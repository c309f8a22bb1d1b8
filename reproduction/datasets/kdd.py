"""The ten per cent file of KDD Cup 99, by scikit-learn's own downloader, in the encoding of our file."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from reproduction.datasets.files import Arrays

NOMINAL = {"protocol_type": 1, "service": 2, "flag": 3}
"""Columns that hold words."""


def fetch() -> Arrays:
    """Download it and encode it as our file is."""
    from sklearn.datasets import fetch_kddcup99

    # scikit-learn keeps what it downloads as a pickle; ours is kept as one .npz file instead.
    with tempfile.TemporaryDirectory(prefix="pairlens-") as folder:
        return encode(fetch_kddcup99(percent10=True, shuffle=False, data_home=folder))


def encode(bunch: Any) -> Arrays:
    """Our arrays: words as their index among the sorted ones, classes likewise."""
    table = bunch.data
    X = np.empty(table.shape, dtype=np.float32)
    categories: Arrays = {}
    for column in range(table.shape[1]):
        X[:, column] = 0 if column in NOMINAL.values() else table[:, column].astype(np.float64)
    for name, column in NOMINAL.items():
        categories[f"categories_{name}"], X[:, column] = _words(table[:, column])
    class_names, y = _words(bunch.target)
    return {
        "X": X,
        "y": y.astype(np.int64),
        "feature_names": np.asarray(bunch.feature_names, dtype=np.str_),
        "class_names": np.char.rstrip(class_names, "."),
        **categories,
    }


def _words(column: Any) -> tuple[Any, Any]:
    return np.unique([word.decode() if isinstance(word, bytes) else str(word) for word in column], return_inverse=True)
