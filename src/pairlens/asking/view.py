"""The view in which rows are placed: what depends on the rows alone is prepared once, a fit after answers is cheap."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pairlens.engines import Float64, Rows, canonical, collected, threads_for, words_named
from pairlens.exceptions import SupervisionWarning
from pairlens.learning.learner import PairLearner, choose_prior
from pairlens.spectral.rowspace import Standardiser, whitened_rows
from pairlens.supervision import Constraints

N_COLUMNS = 10


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
    """A learned linear view; small, and can come from another process. ``Lens.look`` shows the rows in it.

    Attributes
    ----------
    key : str
        That of the job.
    directions : array of shape (n_coordinates, at most 10)
        In the coordinates of the :class:`Lens`.
    crowding : int array of shape (n_rows,) or None
        :meth:`Lens.crowding` in the view, where it was computed with it.
    """

    key: str
    directions: Float64
    crowding: NDArray[np.int32] | None = None


def fingerprint(*arrays: NDArray[np.generic]) -> str:
    """Return a name for arrays that no others have."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:24]


class Lens:
    """Rows, ready to be seen through any pairs.

    Scaling, whitened principal components, neighbours and local scatter depend on the rows alone: they are found once,
    here. A fit is then a choice of the prior and a small eigenproblem, the same as that of
    :class:`~pairlens.LinearPairLens`.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        Finite numbers.
    standardize : bool, default=True
        Whether to divide each feature by its deviation; see :class:`~pairlens.LinearPairLens`.

    Attributes
    ----------
    n_rows : int
    rows : array or CSR matrix of shape (n_samples, n_features)
        The rows, checked.
    standardize : bool
    principal : array of shape (n_samples, at most 10)
        Leading principal components of the scaled rows: the view that knows no answer.
    neighbors : int array of shape (n_samples, at most 10)
        The nearest rows of each row.
    """

    def __init__(self, X: ArrayLike, *, standardize: bool = True) -> None:
        rows = checked_rows(X)
        self.n_rows, self.rows, self.standardize = int(rows.shape[0]), rows, standardize
        with threads_for(rows.shape):
            whitened, values = whitened_coordinates(rows, standardize)
            self._learner = PairLearner.of(whitened, values, near=True)
        self.principal = whitened[:, :N_COLUMNS] * np.sqrt(values[:N_COLUMNS] / values.sum())
        self.neighbors = self._learner.nearest

    def fit(self, job: FitJob) -> View:
        """Learn the view that the pairs of a job show, with its crowding.

        The crowding takes longer than all that an asker does with a view, and where this runs no question waits.
        """
        view = self.directions(job)
        return replace(view, crowding=self.crowding(self.look(view)))

    def directions(self, job: FitJob) -> View:
        """Learn the view that the pairs of a job show."""
        learner = self._learner
        with (
            warnings.catch_warnings(action="ignore", category=SupervisionWarning),
            threads_for((self.n_rows, learner.dim)),
        ):
            prior = choose_prior(learner, job.constraints, job.seed, repeats=1).prior
            directions = learner.directions(job.constraints, prior, min(N_COLUMNS, learner.dim))[1]
        return View(job.key, directions)

    def look(self, view: View) -> Float64:
        """Return all rows in a view."""
        return np.asarray(self._learner.rows @ view.directions)

    def sparseness(self, Z: Float64) -> Float64:
        """Return the mean squared distance of each row to its neighbours, in a view."""
        squared = np.zeros(self.n_rows)
        for near in self.neighbors.T:
            difference = Z - Z[near]
            squared += np.einsum("ij,ij->i", difference, difference)
        return np.asarray(squared / max(self.neighbors.shape[1], 1))

    def crowding(self, Z: Float64) -> NDArray[np.int32]:
        """Return the rank of each row by how near its neighbours are in a view, 1 in the sparsest place."""
        sparseness = self.sparseness(Z)
        # Ties are decided by the row number, so that the last bits do not choose.
        order = np.argsort(-np.round(sparseness / max(sparseness.max(), 1e-300), 9), kind="stable")
        rank = np.empty(self.n_rows, dtype=np.int32)
        rank[order] = np.arange(1, self.n_rows + 1)
        return rank


def whitened_coordinates(rows: Rows, standardize: bool) -> tuple[Float64, Float64]:
    """Return rows in whitened principal components and their variances; rows that are all equal have one of zeros."""
    space, values = whitened_rows(rows, Standardiser.of(rows, standardize=standardize))
    if space.dim:
        return np.asarray(space.rows), values
    return np.zeros((rows.shape[0], 1)), np.ones(1)


def checked_rows(X: Any) -> Rows:
    """Return X as rows of finite numbers, or raise ValueError that says what is wrong."""
    with words_named():
        X = collected(X, "asking")
        rows: Rows = canonical(X.tocsr().astype(np.float64)) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 1:
        raise ValueError(f"X must be a table of at least two rows and one column, got the shape {rows.shape}.")
    finite = np.isfinite(rows.data if sparse.issparse(rows) else rows)
    if not finite.all():
        at = int(np.flatnonzero(~finite.ravel())[0])
        row = np.searchsorted(rows.indptr, at, "right") - 1 if sparse.issparse(rows) else at // rows.shape[1]
        raise ValueError(f"X holds NaN or infinity, first in row {row}: fill in missing numbers before asking.")
    return rows
