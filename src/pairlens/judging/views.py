r"""Distances of pairs in a view, and the metric that a linear view is.

A linear view :math:`z = L (x - m)` measures two rows by

.. math::
    d(u, v) = \lVert L (u - v) \rVert = \sqrt{(u - v)' M (u - v)}, \qquad M = L' L.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import check_is_fitted


def pair_distance(view: Any, A: ArrayLike, B: ArrayLike) -> NDArray[Any]:
    """Distances of pairs of rows in a view.

    Parameters
    ----------
    view : fitted transformer or Pipeline
        Whatever has :meth:`transform`.
    A, B : array-like or CSR matrices of shape (n_pairs, n_features)
        Row i of A and row i of B are one pair.

    Returns
    -------
    distances : array of shape (n_pairs,)

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pairlens import WBDR
    >>> from pairlens.judging import pair_distance
    >>> X, y = load_wine(return_X_y=True)
    >>> view = make_pipeline(StandardScaler(), WBDR(2)).fit(X, y)
    >>> pair_distance(view, X[:2], X[[3, 100]]).shape
    (2,)
    """
    left, right = _plain(view.transform(A)), _plain(view.transform(B))
    check_paired(left, right)
    return ((left - right) ** 2).sum(1) ** 0.5


def check_paired(left: Any, right: Any) -> None:
    """ValueError unless both sides of the pairs have the same number of rows."""
    if left.shape[0] != right.shape[0]:
        raise ValueError(
            f"A has {left.shape[0]} rows and B {right.shape[0]}: row i of A and row i of B are one pair, so both need "
            "the same number."
        )


def _plain(view: Any) -> Any:
    """An embedding without the names that set_output gave it."""
    return view.to_numpy() if hasattr(view, "to_numpy") else view


@dataclass(frozen=True)
class Metric:
    """The distance of two rows in a linear view, as scikit-learn takes it: ``metric=view.get_metric()``.

    Attributes
    ----------
    components : array of shape (n_components, n_features)
        The map L.
    """

    components: NDArray[Any]

    def __call__(self, u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
        """Distance of two rows, or its square."""
        offset = self.components @ (np.asarray(u, dtype=np.float64) - np.asarray(v, dtype=np.float64))
        found = float(offset @ offset)
        return found if squared else found**0.5


class PairView:
    """A view in which pairs of rows have a distance."""

    def pair_distance(self, A: ArrayLike, B: ArrayLike) -> NDArray[Any]:
        """Distances of pairs of rows in the view.

        Parameters
        ----------
        A, B : array-like or CSR matrices of shape (n_pairs, n_features)
            Row i of A and row i of B are one pair.

        Returns
        -------
        distances : array of shape (n_pairs,)

        See Also
        --------
        pairlens.judging.pair_distance : The same for a Pipeline.
        """
        return pair_distance(self, A, B)


class LinearView(PairView):
    """A view :math:`z = L (x - m)`, which is a metric of the features."""

    components_: NDArray[Any]

    def get_mahalanobis_matrix(self) -> NDArray[Any]:
        r"""The matrix :math:`M = L' L` of the metric.

        Returns
        -------
        M : array of shape (n_features, n_features)
            Of rank n_components at most: rows that differ only in what the view leaves out have distance 0.
        """
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def get_metric(self) -> Metric:
        """The distance in the view as a function of two rows of features, for scikit-learn's ``metric=``.

        It keeps the components as they are now, whatever becomes of the estimator. Transforming the rows first and
        taking Euclidean distances gives the same faster.

        Returns
        -------
        metric : callable
            ``metric(u, v)``, or ``metric(u, v, squared=True)``.
        """
        check_is_fitted(self)
        return Metric(self.components_.astype(np.float64))
