"""Data sets from OpenML and KDD Cup 99, by scikit-learn's downloaders, in the encoding of our own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from reproduction.datasets.files import Arrays, DamagedDatasetError


@dataclass(frozen=True)
class OpenML:
    """Where a set is on OpenML, and what makes our arrays of it.

    Parameters
    ----------
    name, version : str, int
        Together they name one upload.
    data_id : int or None
        The number of that upload where it is known for sure; it saves a search.
    classes : tuple of str, "appearance" or None
        OpenML's class labels in the order of our codes; "appearance" numbers them as they first come in the file
        (for labels that are only codes themselves); None for a target that is a number.
    skip_columns : int
        Number of features at the start that are not ours.
    rows : pair of int or None
        The first row to keep and the one after the last; None for all of them.
    drop_missing : bool
        Leave out the rows with a missing cell.
    offset : float
        To add to every cell: nominal codes count from 0 on OpenML, from 1 in some of our sets.
    dtype : str
        The type of our X.
    n_train : int
        Number of rows at the start that are the training part.
    """

    name: str
    version: int
    data_id: int | None = None
    classes: Sequence[str] | None = None
    skip_columns: int = 0
    rows: tuple[int, int] | None = None
    drop_missing: bool = False
    offset: float = 0.0
    dtype: str = "float64"
    n_train: int = 0


def fetch(entry: OpenML) -> Arrays:
    """Download one upload and encode it as our files are."""
    from sklearn.datasets import fetch_openml

    which: dict[str, Any] = (
        {"name": entry.name, "version": entry.version} if entry.data_id is None else {"data_id": entry.data_id}
    )
    # pandas parses a decimal to within one unit of the last place, and our checksums are of exact values. It is only
    # for large tables of whole numbers, which it reads exactly and many times faster.
    whole_numbers = np.dtype(entry.dtype).kind == "u" and find_spec("pandas") is not None
    parser = "pandas" if whole_numbers else "liac-arff"
    # Without a cache scikit-learn downloads the data twice. A finished set is kept by us, in one file.
    with TemporaryDirectory(prefix="pairlens-") as folder:
        return encode(fetch_openml(**which, as_frame=False, parser=parser, data_home=folder), entry)


def encode(bunch: Any, entry: OpenML) -> Arrays:
    """Our arrays of what scikit-learn made of an upload."""
    data = bunch.data.toarray() if issparse(bunch.data) else bunch.data
    X = np.asarray(data, dtype=np.float64)[:, entry.skip_columns :] + entry.offset
    y = _codes(np.asarray(bunch.target), entry.classes)
    if entry.rows is not None:
        X, y = X[slice(*entry.rows)], y[slice(*entry.rows)]
    if entry.drop_missing:
        whole = ~np.isnan(X).any(axis=1)
        X, y = X[whole], y[whole]
    arrays: Arrays = {"X": X.astype(entry.dtype), "y": y}
    arrays["feature_names"] = np.asarray(bunch.feature_names[entry.skip_columns :], dtype=np.str_)
    if entry.n_train:
        arrays["is_train"] = np.arange(len(X)) < entry.n_train
    return arrays


def _codes(target: NDArray[Any], classes: Sequence[str] | None) -> NDArray[Any]:
    if classes is None:
        return target.astype(np.float64)
    labels = [str(label).strip("'\"") for label in target]
    order = list(dict.fromkeys(labels)) if classes == "appearance" else list(classes)
    code = {label: number for number, label in enumerate(order)}
    unknown = sorted(set(labels) - set(code))
    if unknown:
        raise DamagedDatasetError(f"OpenML's labels {unknown} are not among the expected {order}.")
    return np.array([code[label] for label in labels], dtype=np.int64)


NOMINAL = {"protocol_type": 1, "service": 2, "flag": 3}
"""Columns that hold words."""


def fetch_kdd() -> Arrays:
    """Download the ten per cent file of KDD Cup 99 and encode it as our file is."""
    from sklearn.datasets import fetch_kddcup99

    # scikit-learn keeps what it downloads as a pickle; ours is kept as one .npz file instead.
    with TemporaryDirectory(prefix="pairlens-") as folder:
        return _kdd_arrays(fetch_kddcup99(percent10=True, shuffle=False, data_home=folder))


def _kdd_arrays(bunch: Any) -> Arrays:
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
