"""The exact k nearest and k farthest rows of every row, in one blocked pass and without an n x n array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from pairlens.engines.selection import (
    Criterion,
    Float64,
    Floats,
    Index,
    blocks,
    crowding,
    self_join,
    spread_sample,
)

__all__ = ["Neighbors", "neighbors"]

# Squared distances are equal if they agree to this part of the rows' mean squared distance from their mean, within
# a factor of two (scales are powers of two).
QUANTUM = 2.0**-33
# Beyond this part of the pairs in doubt, single precision costs more in refinements than it saves in products.
TOLERABLE_CROWDING = 0.01


@dataclass(frozen=True)
class Neighbors:
    nearest: Index | None
    nearest_distance: Float64 | None
    farthest: Index | None
    farthest_distance: Float64 | None


def neighbors(
    X: Any,
    *,
    n_nearest: int = 0,
    n_farthest: int = 0,
    block_bytes: int | None = None,
    block=1024,
    dtype=None,
    n_threads=None,
) -> Neighbors:
    geometry = _Geometry.of(X)
    if dtype is None:
        dtype = _screen_dtype(geometry, n_nearest, n_farthest)
    screen = _Screen(geometry, np.dtype(dtype))
    near, far = self_join(
        X.shape[0],
        screen.tile,
        nearest=screen.criterion(n_nearest) if n_nearest else None,
        farthest=screen.criterion(n_farthest) if n_farthest else None,
        block=block,
        n_threads=n_threads,
    )
    return Neighbors(
        *((None, None) if near is None else (near[0], geometry.scale * np.sqrt(near[1]))),
        *((None, None) if far is None else (far[0], geometry.scale * np.sqrt(far[1]))),
    )


def _screen_dtype(geometry, n_nearest: int, n_farthest: int):
    n = geometry.X.shape[0]
    if not 1e-15 < geometry.scale < 1e15:
        return np.float64
    screen = _Screen(geometry, np.dtype(np.float32))
    rows = spread_sample(n, 1024)
    keys = screen.tile(rows, rows)[0]
    for k, sign in ((n_nearest, 1), (n_farthest, -1)):
        if k:
            c = crowding(screen.criterion(k), rows, keys, sign)
            print("crowding", c)
            if c > TOLERABLE_CROWDING:
                return np.float64
    return np.float32


def _dense(X: Any, rows: slice | Index) -> NDArray:
    return X[rows].toarray() if issparse(X) else X[rows]


@dataclass(frozen=True)
class _Geometry:
    """Rows seen from their centre in units of their spread, a power of two so that scaling rounds nothing."""

    X: Any
    center: Float64
    scale: float
    square: Float64

    @classmethod
    def of(cls, X: Any) -> _Geometry:
        n = X.shape[0]
        # A centre in single precision is as good, and makes x - center the same in both precisions
        center = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel().astype(np.float32).astype(np.float64)
        square = np.empty(n)
        for rows in blocks(n, 256):
            centred = _dense(X, rows) - center
            square[rows] = np.einsum("ij,ij->i", centred, centred)
        spread = np.sqrt(square.mean())
        scale = float(2.0 ** np.rint(np.log2(spread))) if spread > 0 else 1.0
        return cls(X, center, scale, square / scale**2)

    def refine(self, rows: Index, cols: Index) -> Float64:
        squared = np.empty(rows.size)
        for part in blocks(rows.size, max(1, 2**18 // self.X.shape[1])):
            difference = _dense(self.X, rows[part]).astype(np.float64)
            difference -= _dense(self.X, cols[part])
            difference /= self.scale
            difference *= difference
            squared[part] = difference.sum(axis=1)
        return squared


@dataclass(frozen=True)
class _Screen:
    geometry: _Geometry
    dtype: np.dtype

    def criterion(self, k: int) -> Criterion:
        g = self.geometry
        unit = (g.X.shape[1] + 16) * float(np.finfo(self.dtype).eps) / 2
        return Criterion(k, g.refine, np.sqrt(g.square), unit, QUANTUM)

    def tile(self, rows: slice, cols: slice) -> tuple[Floats, Floats]:
        left, right = self._augmented(rows), self._augmented(cols)
        left[:, :-2] *= self.dtype.type(-2.0 / self.geometry.scale**2)
        left[:, -2:] = left[:, :-3:-1]
        squared = left @ right.T
        return squared, squared

    def _augmented(self, rows: slice) -> Floats:
        """Centred rows, then a one and the squared norm"""
        x = _dense(self.geometry.X, rows)
        out = np.empty((x.shape[0], x.shape[1] + 2), self.dtype)
        np.subtract(x, self.geometry.center.astype(self.dtype), out=out[:, :-2], casting="same_kind")
        out[:, -2] = 1
        out[:, -1] = self.geometry.square[rows]
        return out
