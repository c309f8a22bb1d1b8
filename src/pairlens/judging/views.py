r"""Distances of pairs in a view, how well they tell must-links from cannot-links, and the metric of a linear view.

A linear view :math:`z = L (x - m)` measures two rows by

.. math::
    d(u, v) = \lVert L (u - v) \rVert = \sqrt{(u - v)' M (u - v)}, \qquad M = L' L.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin, check_is_fitted
from pairlens._warnings import warn_user
from pairlens.engines import IntArray, Rows, engine_rows, pair_squared_distances, project
from pairlens.exceptions import SupervisionWarning
from pairlens.judging.held_out import CHANCE
from pairlens.supervision import Constraints
from pairlens.supervision.combined import combine, pair_shares

MAX_SCORED_PAIRS = 1_000_000


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


def pair_auc(embedded: Rows, known: Constraints, sample_weight: ArrayLike | None = None) -> float:
    """Area under the ROC curve with which distance in a view tells must-links from cannot-links.

    Without pairs of both kinds there is nothing to tell apart: 0.5, with a warning. So a fold of a cross-validation
    that happens to hold none is neutral between the candidates.

    Parameters
    ----------
    embedded : array, CSR matrix or rows of an engine, of shape (n_samples, n_dims)
        The view.
    known : Constraints
        The pairs; of more than a million that labels imply, a million are drawn with a fixed seed.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows; a pair counts by the product of the weights of its rows, times its own.
    """
    from sklearn.metrics import roc_auc_score

    known = combine(None, known, embedded.shape[0])
    if known.n_must_link == 0 or known.n_cannot_link == 0:
        warn_user(
            f"score found {known.n_must_link} must-links and {known.n_cannot_link} cannot-links among the rows and "
            "needs both kinds, so it is 0.5. With few pairs, cross-validate over the pairs (Constraints.split) and not "
            "over the rows.",
            SupervisionWarning,
        )
        return CHANCE
    (must, must_weight), (cannot, cannot_weight) = _scored_pairs(known)
    pairs, weight = np.concatenate([must, cannot]), np.concatenate([must_weight, cannot_weight])
    if sample_weight is not None:
        weight = weight * pair_shares(sample_weight, pairs, embedded.shape[0])
    together = np.repeat([True, False], [len(must), len(cannot)])
    return float(roc_auc_score(together, -pair_squared_distances(embedded, pairs), sample_weight=weight))


def _scored_pairs(known: Constraints) -> list[tuple[IntArray, NDArray[np.float64]]]:
    """Pairs and weights of both kinds; where labels imply very many of a kind, some drawn stand for those.

    Pairs that were given count all the same, with their weights.
    """
    if known.labels is None or known.n_pairs <= MAX_SCORED_PAIRS:
        return [_of_kind(known, must) for must in (True, False)]
    implied = Constraints.from_labels(known.labels)
    drawn = implied.sample(min(MAX_SCORED_PAIRS, implied.n_pairs), random_state=0)
    scored = []
    for must in (True, False):
        if (known.n_must_link if must else known.n_cannot_link) <= MAX_SCORED_PAIRS // 2:
            scored.append(_of_kind(known, must))
            continue
        (given, weight), (some, some_weight) = _of_kind(known.explicit, must), _of_kind(drawn, must)
        stands_for = (implied.n_must_link if must else implied.n_cannot_link) / max(len(some), 1)
        scored.append((np.concatenate([given, some]), np.concatenate([weight, stands_for * some_weight])))
    return scored


def _of_kind(known: Constraints, must: bool) -> tuple[IntArray, NDArray[np.float64]]:
    return (known.must_link, known.must_link_weight) if must else (known.cannot_link, known.cannot_link_weight)


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


class JudgedView(PairView):
    """A view that must-links and cannot-links judge."""

    transform: Callable[[Any], Any]

    # With metadata routing enabled, pipelines and searches hand `constraints` to score unasked.
    __metadata_request__score: ClassVar = {"constraints": True}

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """How well embedded distance tells must-links from cannot-links: the area under the ROC curve.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Labels, -1 or missing where unknown. Above a million pairs, a million drawn with a fixed seed are used.
        constraints : Constraints, optional
            Held-out pairs of these rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; a pair counts by the product of the weights of its rows.

        Returns
        -------
        auc : float
            0.5 is chance, 1.0 means that every must-link is shorter than every cannot-link. Without pairs of both kinds
            among the rows it is 0.5, with a warning.
        """
        if y is None and constraints is None:
            raise ValueError("score needs pairs to judge by: give constraints=, or labels by y.")
        embedded = self.transform(X)
        rows: Rows = engine_rows(embedded, fitting=True)
        if rows is None:
            rows = np.asarray(embedded)
        return pair_auc(rows, combine(y, constraints, rows.shape[0]), sample_weight)


class LinearView(PairView, ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A transformer whose view is :math:`z = L (x - m)`, which is a metric of the features."""

    components_: NDArray[Any]
    mean_: NDArray[Any]
    _read: Callable[..., Rows]

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Project rows, :math:`(x - m) L'` with :attr:`components_` as L and :attr:`mean_` as m.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            A torch tensor or a dask array, too, where :meth:`fit` takes one.

        Returns
        -------
        Z : array of shape (n_samples, n_components)
            A tensor on the device of X for a tensor, and a dask array, not computed yet, for a dask array or data
            frame.
        """
        check_is_fitted(self)
        return project(self._read(X, fitting=False), self.mean_, self.components_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

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
