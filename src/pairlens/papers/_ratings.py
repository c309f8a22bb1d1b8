"""Ratings as tables: what people or readers gave, with medians where they gave nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from pairlens.papers.experiment import Array, Codes
from pairlens.papers.prepare import loaded

__all__ = ["film_features", "numbered", "reader"]


@lru_cache(maxsize=1)
def numbered(name: str) -> tuple[Codes, Codes, Codes]:
    """User and film of each rating, both numbered from 0, and the rating."""
    bunch = loaded(name)
    user, film = (np.unique(bunch[key], return_inverse=True)[1] for key in ("user", "item"))
    return user, film, np.asarray(bunch["rating"], dtype=np.int64)


@lru_cache(maxsize=4)
def film_features(name: str, n_reference: int) -> Array:
    """One row for each film, one column for each of the most active people, their median where they gave no rating."""
    user, film, rating = numbered(name)
    reference = np.argsort(-np.bincount(user), kind="stable")[:n_reference]
    column = np.full(user.max() + 1, -1)
    column[reference] = np.arange(n_reference)
    known = column[user] >= 0
    table = np.full((film.max() + 1, n_reference), np.nan)
    table[film[known], column[user[known]]] = rating[known]
    return np.where(np.isnan(table), np.nanmedian(table, axis=0), table)


def reader(bunch: Mapping[str, Any], reader: int) -> tuple[Array, Codes, Codes]:
    """Features of all books, which of them the reader rated, and how."""
    R = np.asarray(bunch["R"], dtype=np.float64)
    others = np.delete(R, reader, axis=1)
    others = others[:, ~np.isnan(others).all(axis=0)]
    rated = np.flatnonzero(~np.isnan(R[:, reader]))
    features = np.where(np.isnan(others), np.nanmedian(others, axis=0), others)
    return features, rated, R[rated, reader].astype(np.int64)
