"""LMCA and LMNN: rows of one class are neighbours and others keep a distance, in few dimensions or in all."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pairlens._sklearn import COUNT, NOT_NEGATIVE, Interval, estimator, fit_context, parameter
from pairlens.engines import Float64, IntArray, Rows, evenly_spaced, neighbors, row_blocks
from pairlens.methods.base import PairTransformer
from pairlens.preference.metric import Embedded, MetricLearner, comparison_pairs, summed
from pairlens.preference.objective import BLOCK_BYTES, Pairs, smoothed_hinge, squared_lengths
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


@dataclass(frozen=True)
class LargeMarginNeighbours:
    r"""Pull each row to its target neighbours, and push rows of other classes a margin farther.

    .. math:: \frac 1N \sum_{i, j} \Big( d_{ij} + c \sum_{l \text{ of another class}} h(1 + d_{ij} - d_{il}) \Big)

    over N pairs of a row and a target neighbour. Distances between rows and possible impostors are taken block by
    block, so memory is O(n_rows * block); only impostors inside a margin are looked at further.
    """

    targets: IntArray
    codes: IntArray
    c: float
    sigma: float

    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        pairs = Pairs.of(self.targets, len(Z))
        Q = pairs.differences(Z)
        near = squared_lengths(Q)
        pull = np.ones(len(near))
        value, gradient = float(near.sum()), np.zeros_like(Z)
        norms = squared_lengths(Z)
        first = np.searchsorted(self.targets[:, 0], np.arange(len(Z) + 1))
        count = np.diff(first)
        anchors = np.flatnonzero(count)
        radius = 1.0 + np.maximum.reduceat(near, first[anchors]) if len(anchors) else near
        for block in row_blocks(len(anchors), 8 * len(Z), BLOCK_BYTES):
            own = anchors[block]
            # Squared distances up to the norm of the row, which goes to the other side of the comparison.
            far = norms - 2 * (Z[own] @ Z.T)
            inside = far < (radius[block] - norms[own])[:, None]
            inside &= (self.codes[own][:, None] != self.codes) & (self.codes >= 0)
            row, impostor = np.nonzero(inside)
            distance = far[row, impostor] + norms[own[row]]
            push = np.zeros(len(row))
            for turn in range(int(count[own].max())):
                has = count[own[row]] > turn
                target = first[own[row]] + np.minimum(turn, count[own[row]] - 1)
                loss, slope = smoothed_hinge(np.where(has, 1.0 + near[target] - distance, -1.0), self.sigma)
                value += self.c * float(loss.sum())
                pull += self.c * np.bincount(target, slope, len(near))
                push += self.c * slope
            pushed = Pairs.of(np.column_stack([own[row], impostor]), len(Z))
            gradient -= 2 * pushed.gather(pushed.differences(Z), push)
        gradient += 2 * pairs.gather(Q, pull)
        return value / len(near), gradient / len(near)


@dataclass(frozen=True)
class ComparisonMargin:
    r"""Pull the closer pair of each comparison and push the farther one, as LMCA does with impostors.

    .. math:: \sum_m w_m \big( d_m^{near} + c\, h(1 + d_m^{near} - d_m^{far}) \big) , \qquad \sum_m w_m = 1 .
    """

    closer: Pairs
    farther: Pairs
    c: float
    sigma: float

    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        weight = self.closer.weight
        near, far = self.closer.differences(Z), self.farther.differences(Z)
        lengths = squared_lengths(near)
        loss, slope = smoothed_hinge(1.0 + lengths - squared_lengths(far), self.sigma)
        value = float(weight @ (lengths + self.c * loss))
        pushed = self.c * weight * slope
        return value, 2 * (self.closer.gather(near, weight + pushed) - self.farther.gather(far, pushed))


@estimator
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

    n_neighbors: int = parameter(COUNT, default=3)
    c: float = parameter(NOT_NEGATIVE, default=1.0)
    sigma: float = parameter(NOT_NEGATIVE, default=0.1)
    __metadata_request__fit: ClassVar = {"constraints": True, "triplets": True}

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


@estimator
class LMNN(MetricLearner, PairTransformer):
    r"""Large margin nearest neighbours.

    A metric :math:`d(x, x') = \|L (x - x')\|^2` that minimises

    .. math::
        (1 - \mu) \sum_{i, j} d(x_i, x_j)
        + \mu \sum_{i, j} \sum_{l \text{ of another class}} h(1 + d(x_i, x_j) - d(x_i, x_l)) ,
        \qquad h(t) = \max(t, 0) ,

    over the rows i and their target neighbours j, the `n_neighbors` nearest rows of the same class. All directions are
    learnt, from the identity on, and the view is cut from them.

    Choose it for nearest-neighbour classification with all directions (``n_components=None``). For a view of few
    dimensions :class:`LMCA` learns these dimensions themselves. Standardise the features first.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbours of each row.
    push : float, default=0.5
        Weight :math:`\mu` of the impostors, between 0 and 1.
    sigma : float, default=0.01
        Width of the rounded corner of the hinge.
    max_samples : int, default=5000
        Of more labelled rows this many, evenly spaced, are learnt from: an evaluation compares each with all others.
    tol : float, default=1e-4
        Stop when the objective improves by less than this share.

    Attributes
    ----------
    loss_curve_ : list of float
        The objective, over :math:`1 - \mu` and the number of target neighbours, at the start and after each iteration.

    See Also
    --------
    LMCA : The same objective in few dimensions.

    References
    ----------
    .. [1] Kilian Q. Weinberger and Lawrence K. Saul, "Distance metric learning for large margin nearest neighbor
       classification", JMLR 10, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import LMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> LMNN(n_components=None).fit(X, y).components_.shape
    (4, 4)
    """

    n_neighbors: int = parameter(COUNT, default=3)
    push: float = parameter(Interval(Real, 0, 1, closed="left"), default=0.5)
    sigma: float = parameter(NOT_NEGATIVE, default=0.01)
    max_samples: int = parameter(Interval(Integral, 2, None, closed="left"), default=5_000)
    tol: float = parameter(default=1e-4)

    def _learn(self, rows: Rows, known: Constraints) -> None:
        codes = class_codes(known)
        used = np.flatnonzero(codes >= 0)
        used = used[evenly_spaced(len(used), self.max_samples)]
        targets = target_neighbours(rows[used], codes[used], self.n_neighbors)
        objective = None
        if len(np.unique(codes[used])) >= 2 and len(targets):
            objective = LargeMarginNeighbours(targets, codes[used], self.push / (1 - self.push), float(self.sigma))
        self._fit_map(rows, used, objective, whole=True, lacking="no two classes with a row to spare are known")
