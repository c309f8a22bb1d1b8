"""LMCA: a linear view in which rows of one class are neighbours and others keep a distance."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    Interval,
    TransformerMixin,
    check_is_fitted,
    fit_context,
    validate_data,
)
from pairlens._threads import fitting_threads
from pairlens._warnings import warn_fallback
from pairlens.engines import IntArray, Rows, column_means, neighbors, project, row_blocks
from pairlens.judging import pair_auc
from pairlens.preference._base import DTYPES
from pairlens.preference.linear import minimize
from pairlens.preference.objective import smoothed_hinge
from pairlens.preference.pairs import Floats, Pairs
from pairlens.spectral.eigen import fix_signs, generalized, symmetric
from pairlens.spectral.rowspace import row_space
from pairlens.spectral.scatters import unsupervised
from pairlens.supervision import Constraints
from pairlens.supervision.combined import class_codes, combine

__all__ = ["LMCA", "LargeMarginNeighbours", "target_neighbours"]

NOWHERE = 1e100
"""Squared distance of rows that cannot be impostors, beyond every margin."""

BLOCK_BYTES = 1 << 24
"""Bytes of one block of the distances between rows and possible impostors."""


def target_neighbours(X: Rows, codes: IntArray, n_neighbors: int) -> IntArray:
    """Pairs of every row with its nearest rows of the same class, of shape (n_pairs, 2), grouped by the first row."""
    found = []
    for code in np.unique(codes[codes >= 0]):
        members = np.flatnonzero(codes == code)
        k = min(n_neighbors, len(members) - 1)
        if k > 0:
            nearest = neighbors(X[members], n_nearest=k).nearest
            assert nearest is not None
            found.append(np.stack([np.repeat(members, k), members[nearest].ravel()], axis=1))
    if not found:
        return np.empty((0, 2), dtype=np.int64)
    pairs = np.concatenate(found)
    return pairs[np.argsort(pairs[:, 0], kind="stable")]


@dataclass(frozen=True)
class LargeMarginNeighbours:
    r"""The objective of LMCA at an embedding: value and gradient.

    Distances between all rows and all possible impostors are taken block by block, so memory is O(n_rows * block).
    """

    targets: IntArray
    codes: IntArray
    c: float
    sigma: float

    def __call__(self, Z: Floats) -> tuple[float, Floats]:
        """Value, and gradient of the shape of Z."""
        pairs = Pairs.of(self.targets, len(Z))
        Q = pairs.differences(Z)
        near = np.einsum("ij,ij->i", Q, Q)
        pull = np.ones(len(near))
        value, gradient = float(near.sum()), np.zeros_like(Z)
        norms = np.einsum("ij,ij->i", Z, Z)
        first = np.searchsorted(self.targets[:, 0], np.arange(len(Z) + 1))
        anchors = np.flatnonzero(np.diff(first))
        for block in row_blocks(len(anchors), 8 * len(Z), BLOCK_BYTES):
            own = anchors[block]
            far = norms[own][:, None] + norms - 2 * (Z[own] @ Z.T)
            possible = (self.codes[own][:, None] != self.codes) & (self.codes >= 0)
            far[~possible] = NOWHERE
            push = np.zeros_like(far)
            for turn in range(int(np.diff(first)[own].max())):
                has = np.flatnonzero(np.diff(first)[own] > turn)
                target = first[own[has]] + turn
                loss, slope = smoothed_hinge(1.0 + near[target][:, None] - far[has], self.sigma)
                value += self.c * float(loss.sum())
                pull[target] += self.c * slope.sum(axis=1)
                push[has] += self.c * slope
            gradient[own] -= 2 * (push.sum(axis=1)[:, None] * Z[own] - push @ Z)
            gradient -= 2 * (push.sum(axis=0)[:, None] * Z - push.T @ Z[own])
        gradient += 2 * pairs.gather(Q, pull)
        return value / len(near), gradient / len(near)


class LMCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Large margin component analysis.

    A linear map :math:`z = L x` that minimises, per pair of a row i and one of its target neighbours j (its
    `n_neighbors` nearest rows of the same class),

    .. math::
        \sum_{i, j} \Big( \|z_i - z_j\|^2
        + c \sum_{l \text{ of another class}} h(1 + \|z_i - z_j\|^2 - \|z_i - z_l\|^2) \Big) ,
        \qquad h(t) = \max(t, 0) .

    Choose it when rows have classes, the view is for nearest-neighbour use, and there are at most some ten thousand
    labelled rows: an evaluation compares each with all others. For ordered classes :class:`WSDR` uses the order, which
    LMCA does not see. Standardise the features first.

    Parameters
    ----------
    n_components : int, default=2
        Number of dimensions of the view.
    n_neighbors : int, default=3
        Target neighbours of each row.
    c : float, default=1.0
        Weight of the impostors.
    sigma : float, default=0.1
        Width of the rounded corner of the hinge.
    max_iter : int, default=100
        Iterations of limited-memory BFGS, from the principal directions.
    tol : float, default=1e-6
        Stop when the objective improves by less than this share.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The map L, turned so that the components are uncorrelated and ordered by variance.
    mean_ : array of shape (n_features,)
        Mean of the rows of X; it is mapped to the origin.
    loss_curve_ : list of float
        The objective at the start and after each iteration.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    WSDR : For preferences and ordered classes.

    Notes
    -----
    Where fewer than two classes are known, or none has two rows, the result is that of PCA, with a warning.

    References
    ----------
    .. [1] Lorenzo Torresani and Kuang-chih Lee, "Large margin component analysis", NIPS 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pairlens import LMCA
    >>> X, y = load_wine(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> view = LMCA(n_components=2, max_iter=20).fit(X, y)
    >>> bool(view.loss_curve_[-1] < view.loss_curve_[0])
    True
    """

    components_: NDArray[Any]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "c": [Interval(Real, 0, None, closed="left")],
        "sigma": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }
    __metadata_request__fit: ClassVar = {"constraints": True}
    __metadata_request__score: ClassVar = {"constraints": True}

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 3,
        c: float = 1.0,
        sigma: float = 0.1,
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.c = c
        self.sigma = sigma
        self.max_iter = max_iter
        self.tol = tol

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Classes, -1 or missing where unknown.
        constraints : Constraints, optional
            If there are no classes, what must-links put together counts as one.

        Returns
        -------
        self : object
        """
        rows: Rows = validate_data(self, X, dtype=DTYPES, accept_sparse="csr", ensure_min_samples=2)
        if self.n_components > rows.shape[1]:
            raise ValueError(
                f"n_components={self.n_components} must be at most the number of features, {rows.shape[1]}."
            )
        codes = class_codes(combine(y, constraints, rows.shape[0]))
        mean = column_means(rows)
        self.mean_ = mean.astype(rows.dtype)
        space = row_space(rows, mean, anchors=np.flatnonzero(codes >= 0))
        identity, covariance = unsupervised(space)
        _, directions = generalized(covariance, identity, self.n_components)
        if directions.shape[1] == 0:
            raise ValueError("X has no variation: all its rows are equal, so there is no direction to learn.")
        L, self.loss_curve_ = directions.T, []
        used = np.flatnonzero(codes >= 0)
        targets = target_neighbours(rows[used], codes[used], self.n_neighbors)
        if codes.max(initial=-1) < 1 or len(targets) == 0:
            warn_fallback(self, "no two classes with a row to spare are known")
        else:
            inside = space.rows[used].astype(np.float64)
            objective = LargeMarginNeighbours(targets, codes[used], float(self.c), float(self.sigma))

            def function(L: Floats) -> tuple[float, Floats]:
                value, gradient = objective(np.asarray(inside @ L.T))
                return value, np.asarray(inside.T @ gradient).T

            with fitting_threads(len(used) ** 2 * len(L)):
                found = minimize(function, L, self.max_iter, self.tol)
            self.loss_curve_ = [function(L)[0], *found.curve]
            _, turn = symmetric(found.L @ covariance @ found.L.T)
            L = turn.T @ found.L
        self.n_iter_ = max(0, len(self.loss_curve_) - 1)
        self.components_ = fix_signs(space.lift(L.T)).astype(rows.dtype)
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Map rows, :math:`(x - m) L'`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        Z : array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        rows: Rows = validate_data(self, X, dtype=DTYPES, accept_sparse="csr", reset=False)
        return project(rows, self.mean_, self.components_)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """How well embedded distance tells pairs of one class from pairs of two: the area under the ROC curve.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Classes, -1 or missing where unknown.
        constraints : Constraints, optional
            Held-out pairs of these rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a pair counts with the product of those of its rows.

        Returns
        -------
        auc : float
            0.5 is chance.
        """
        embedded = np.asarray(self.transform(X))
        return pair_auc(embedded, combine(y, constraints, len(embedded)), sample_weight)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
