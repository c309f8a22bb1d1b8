"""Data sets as the experiments want them: loaded by name, missing cells filled, features scaled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.experiment import Array, DataSet


@lru_cache(maxsize=2)
def loaded(name: str) -> Mapping[str, Any]:
    """The Bunch of a data set; the last two are kept, because units of one set follow each other."""
    from reproduction import datasets

    bunch: Mapping[str, Any] = datasets.load(name)
    return bunch


_LAST: dict[str, tuple[Array, NDArray[Any]]] = {}


def prepared(data: DataSet, seed: int) -> tuple[Array, NDArray[Any]]:
    """Rows and targets of a data set; `seed` is for those that are made."""
    key = repr((data.definition(), seed))
    if key not in _LAST:
        _LAST.clear()
        _LAST[key] = _prepare(data, seed)
    return _LAST[key]


def _prepare(data: DataSet, seed: int) -> tuple[Array, NDArray[Any]]:
    if data.make is not None:
        X, y = data.make(seed)
    else:
        bunch = loaded(data.source or data.name)
        X = np.asarray(bunch["data"])
        y = X[:, data.target_column] if data.target_column is not None else np.asarray(bunch[data.target])
        if data.target_column is not None:
            X = np.delete(X, data.target_column, axis=1)
            y = y.astype(np.int64)
    X = prepare(X.astype(np.float64), fill=data.fill, scaling=data.scaling)
    if y.dtype.kind not in "f":
        y = np.unique(y, return_inverse=True)[1].astype(np.int64)
    X.setflags(write=False)
    y.setflags(write=False)
    return X, y


def prepare(X: Array, *, fill: str = "none", scaling: str = "none") -> Array:
    """Filled and scaled rows; features that are constant become 0 by "minmax" and "zscore"."""
    if fill == "mean":
        X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    elif fill == "zero":
        X = np.nan_to_num(X, nan=0.0, posinf=np.inf, neginf=-np.inf)
    if np.isnan(X).any():
        raise ValueError("the data set has missing cells: its DataSet must say how to fill them (fill=)")
    if scaling.startswith("minmax"):
        X = X - X.min(axis=0)
        X = X / np.where(X.max(axis=0) > 0, X.max(axis=0), 1.0)
    elif scaling == "zscore":
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if scaling.endswith("unit"):
        length = np.linalg.norm(X, axis=1, keepdims=True)
        X = X / np.where(length > 0, length, 1.0)
    return X
