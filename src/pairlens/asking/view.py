"""The view in which rows are placed: what depends on the rows alone is prepared once, a fit after answers is cheap."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.exceptions import SupervisionWarning
from pairlens.methods.pairlens import LinearPairLens
from pairlens.supervision import Constraints

__all__ = ["FitJob", "Lens", "View", "fingerprint"]

Floats = NDArray[np.float64]

N_COLUMNS = 10
N_NEIGHBORS = 10


@dataclass(frozen=True)
class FitJob:
    """Pairs to learn a view from; small, and can go to another process.

    Attributes
    ----------
    key : str
        Names the pairs; the view that is learned from them has the same.
    constraints : Constraints
    answers : int
        Number of entries of the log that the pairs know.
    seed : int
    """

    key: str
    constraints: Constraints
    answers: int
    seed: int


@dataclass(frozen=True)
class View:
    """A learned linear view: ``X @ components.T - offset``.

    Attributes
    ----------
    key : str
        That of the job.
    components : array of shape (n_columns, n_features)
    offset : array of shape (n_columns,)
    """

    key: str
    components: Floats
    offset: Floats


def fingerprint(*arrays: NDArray[np.generic]) -> str:
    """A name for arrays that no others have."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:24]


class Lens:
    """Rows, ready to be seen through any pairs.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers.

    Attributes
    ----------
    n_rows : int
    """

    def __init__(self, X: ArrayLike) -> None:
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 1:
            raise ValueError(f"X must be a table of at least two rows and one column, got the shape {rows.shape}.")
        if not np.isfinite(rows).all():
            row = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise ValueError(f"X holds NaN or infinity, first in row {row}: fill in missing numbers before asking.")
        self._X = rows
        self.n_rows = len(rows)

    def principal_components(self, at_most: int) -> Floats:
        """The rows, z-scored, in their leading principal components."""
        deviation = self._X.std(axis=0)
        scaled = (self._X - self._X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        kept = min(at_most, *scaled.shape)
        if scaled.shape[1] <= scaled.shape[0]:
            _, vectors = np.linalg.eigh(scaled.T @ scaled)
            return np.asarray(scaled @ vectors[:, ::-1][:, :kept])
        values, vectors = np.linalg.eigh(scaled @ scaled.T)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :kept])

    @cached_property
    def principal(self) -> Floats:
        """Leading principal components of the z-scored rows: the view that knows no answer."""
        return self.principal_components(N_COLUMNS)

    @cached_property
    def neighbors(self) -> NDArray[np.int64]:
        """The nearest rows of each row, found once: they do not depend on the answers."""
        from sklearn.neighbors import NearestNeighbors

        k = min(N_NEIGHBORS, self.n_rows - 1)
        finder = NearestNeighbors(n_neighbors=k).fit(self.principal)
        return np.asarray(finder.kneighbors(return_distance=False), dtype=np.int64)

    def fit(self, job: FitJob) -> View:
        """Learn the view that the pairs of a job show."""
        n_columns = min(N_COLUMNS, self._X.shape[1], self.n_rows - 1)
        model = LinearPairLens(n_columns, random_state=job.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SupervisionWarning)
            model.fit(self._X, constraints=job.constraints)
        return View(job.key, np.asarray(model.components_), np.asarray(model.mean_ @ model.components_.T))

    def look(self, view: View) -> Floats:
        """All rows in a view."""
        return np.asarray(self._X @ view.components.T - view.offset)

    def sparseness(self, Z: Floats) -> Floats:
        """Mean squared distance of each row to its neighbours, in a view."""
        squared = np.zeros(self.n_rows)
        for near in self.neighbors.T:
            difference = Z - Z[near]
            squared += np.einsum("ij,ij->i", difference, difference)
        return np.asarray(squared / max(self.neighbors.shape[1], 1))
