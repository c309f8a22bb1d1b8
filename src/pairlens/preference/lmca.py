"""LMCA: a linear view in which rows of one class are neighbours and others keep a distance."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pairlens._sklearn import Interval, fit_context
from pairlens.engines import IntArray, Rows, neighbors
from pairlens.methods.base import PairTransformer
from pairlens.preference.embedded import ComparisonMargin, LargeMarginNeighbours
from pairlens.preference.metric import Embedded, MetricLearner, comparison_pairs, summed
from pairlens.supervision import Constraints, Triplets
from pairlens.supervision.combined import class_codes, combine, over_rows


def target_neighbours(X: Rows, codes: IntArray, n_neighbors: int) -> IntArray:
    """Return pairs of every row with its nearest rows of the same class, grouped by the first row."""
    found = []
    for code in np.unique(codes[codes >= 0]):
        members = np.flatnonzero(codes == code)
        k = min(n_neighbors, len(members) - 1)
        if k > 0:
            nearest = neighbors(X[members], n_nearest=k).nearest
            found.append(np.stack([np.repeat(members, k), members[nearest].ravel()], axis=1))
    if not found:
        return np.empty((0, 2), dtype=np.int64)
    pairs = np.concatenate(found)
    return pairs[np.argsort(pairs[:, 0], kind="stable")]


class LMCA(MetricLearner, PairTransformer):
    r"""Large margin component analysis.

    A linear map :math:`z = L x` that minimises, per pair of a row i and one of its target neighbours j (its
    `n_neighbors` nearest rows of the same class),

    .. math::
        \sum_{i, j} \Big( \|z_i - z_j\|^2
        + c \sum_{l \text{ of another class}} h(1 + \|z_i - z_j\|^2 - \|z_i - z_l\|^2) \Big) ,
        \qquad h(t) = \max(t, 0) .

    Triplets (a, near, far) count as a row a with the target neighbour near and the impostor far.

    Choose it when rows have classes, the view is for nearest-neighbour use, and there are at most some ten thousand
    labelled rows: an evaluation compares each with all others. For ordered classes :class:`WSDR` uses the order, which
    LMCA does not see. Standardise the features first.

    Parameters
    ----------
    n_components : int or None, default=2
        Number of dimensions of the view; None keeps all, which gives the whole metric.
    n_neighbors : int, default=3
        Target neighbours of each row.
    c : float, default=1.0
        Weight of the impostors.
    sigma : float, default=0.1
        Width of the rounded corner of the hinge.
    max_iter : int, default=100
        Iterations of limited-memory BFGS, from the principal directions.

    See Also
    --------
    LMNN : The same objective for the whole metric.
    WSDR : For preferences and ordered classes.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MetricLearner._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "c": [Interval(Real, 0, None, closed="left")],
        "sigma": [Interval(Real, 0, None, closed="left")],
    }
    __metadata_request__fit: ClassVar = {"constraints": True, "triplets": True}

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        n_neighbors: int = 3,
        c: float = 1.0,
        sigma: float = 0.1,
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
        super().__init__(n_components, max_iter=max_iter, tol=tol)
        self.n_neighbors = n_neighbors
        self.c = c
        self.sigma = sigma

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        triplets: Triplets | None = None,
    ) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Classes, -1 or missing where unknown.
        constraints : Constraints, optional
            If there are no classes, what must-links put together counts as one.
        triplets : Triplets, optional
            Their mean loss is added to that of the classes.

        Returns
        -------
        self : object
        """
        rows = self._read(X, fitting=True)
        self._probability = None
        self._learn(rows, combine(y, constraints, rows.shape[0]), triplets)
        return self

    def _learn(self, rows: Rows, known: Constraints, triplets: Triplets | None = None) -> None:
        parts: list[Embedded] = []
        codes = class_codes(known)
        labelled = np.flatnonzero(codes >= 0)
        targets = target_neighbours(rows[labelled], codes[labelled], self.n_neighbors)
        if codes.max(initial=-1) >= 1 and len(targets):
            parts.append((labelled, LargeMarginNeighbours(targets, codes[labelled], float(self.c), float(self.sigma))))
        if triplets is not None:
            compared = over_rows(triplets, Triplets, rows.shape[0])
            if compared.n_triplets:
                pairs = comparison_pairs(compared)
                parts.append((compared.rows, ComparisonMargin(*pairs, float(self.c), float(self.sigma))))
        lacking = "no two classes with a row to spare are known, and no triplets are given"
        self._fit_map(rows, *summed(parts), whole=False, lacking=lacking)
