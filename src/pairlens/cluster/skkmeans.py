r"""SKK-means: kernel k-means in which must-linked rows are one point.

It is weighted k-means on explicit features: first centres, iterations, exchanges, restarts and mixtures of results.
Moves of single points between clusters go on where Lloyd's iterations end. Moving a point of weight w from cluster a to
cluster b changes the cost by

.. math:: \frac{w\, n_b}{n_b + w} \|x - m_b\|^2 - \frac{w\, n_a}{n_a - w} \|x - m_a\|^2,

where n and m are the weights and means before the move. Lloyd's iterations stop where every point is nearest to the
mean of its own cluster; the factors, which count how the means follow, leave moves that lower the cost all the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from pairlens._sklearn import COUNT, SEED, as_generator, estimator, parameter
from pairlens._warnings import warn_user
from pairlens.engines import Float64, IntArray, Rows, checked_rows, column_means, group_means
from pairlens.exceptions import ArgumentError, SupervisionWarning
from pairlens.kernels import ANCHORS, MustLinkKernel, feature_null_space, kernel_features
from pairlens.supervision import Constraints

Labels = NDArray[np.int64]

PATIENCE = 2
"""Mixtures that may bring nothing better, for each of the first runs."""
TIE = 1e-9
"""Squared distances that agree to this share of the mean squared norm are equal."""


def squared_distances(points: Float64, centers: Float64, square: Float64 | None = None) -> Float64:
    """Return squared distances of points to centres, of shape (n_points, n_centers), none below zero.

    `square` holds the squared norms of the points, where they are known.
    """
    own = (points**2).sum(axis=1) if square is None else square
    squared = points @ centers.T
    squared *= -2
    squared += own[:, None]
    squared += (centers**2).sum(axis=1)
    return np.maximum(squared, 0.0, out=squared)


@dataclass(frozen=True)
class WeightedPoints:
    """Points to cluster, with the number of rows that each stands for and their squared norms."""

    rows: Float64
    weight: Float64
    square: Float64

    @classmethod
    def of(cls, rows: Float64, weight: Float64) -> WeightedPoints:
        """See the attributes."""
        return cls(rows, weight, (rows**2).sum(axis=1))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def scale(self) -> float:
        """The mean squared norm."""
        return float(np.average(self.square, weights=self.weight))

    @property
    def negligible(self) -> float:
        """Squared distances that differ by this are equal."""
        return TIE * self.scale

    def squared_distances(self, centers: Float64) -> Float64:
        """Return squared distances to centres, of shape (n_points, n_centers)."""
        return squared_distances(self.rows, centers, self.square)


def greedy_seeds(points: WeightedPoints, k: int, rng: np.random.Generator, centers: Float64 | None = None) -> Float64:
    r"""Add points by greedy k-means++ [1]_ to the centres until there are k; fewer if there are fewer distinct points.

    For each centre :math:`2 + \lfloor\ln k\rfloor` points are drawn with a probability proportional to
    :math:`w_i d_i^2`, with the distance to the nearest centre so far. The one is taken that leaves the smallest
    potential :math:`\sum_i w_i \min(d_i^2, \|x_i - c\|^2)`, the first drawn of those that tie.

    .. [1] D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.
    """
    weight, negligible = points.weight, points.negligible
    mass, nearest = weight, np.full(len(points), np.inf)
    found = points.rows[:0] if centers is None else centers
    if len(found):
        nearest = points.squared_distances(found).min(axis=1)
        mass = weight * np.where(nearest <= negligible, 0.0, nearest)
    while len(found) < k and mass.sum() > 0:
        drawn = rng.choice(len(points), size=2 + int(math.log(k)), p=mass / mass.sum())
        left = np.minimum(nearest[:, None], points.squared_distances(points.rows[drawn]))
        left[left <= negligible] = 0.0
        potential = weight @ left
        best = int(np.argmax(potential <= potential.min() + negligible * weight.sum()))
        found = np.concatenate([found, points.rows[drawn[best]][None]])
        nearest = left[:, best]
        mass = weight * nearest
    return found


@dataclass(frozen=True)
class Clustering:
    """Cluster of each point, centres in rows, the weighted sum of squared distances, and the iterations it took."""

    labels: Labels
    centers: Float64
    inertia: float
    n_iter: int


def assign(points: Float64, centers: Float64, scale: float) -> tuple[Labels, Float64]:
    """Return the nearest centre of each point, the first of those that tie, and the squared distance to it.

    Squared distances are equal if they agree to :data:`TIE` of `scale`.
    """
    return _nearest(squared_distances(points, centers), TIE * scale)


def _nearest(squared: Float64, negligible: float) -> tuple[Labels, Float64]:
    labels = np.argmax(squared <= squared.min(axis=1, keepdims=True) + negligible, axis=1)
    return labels, squared[np.arange(len(squared)), labels]


def weighted_kmeans(
    points: WeightedPoints, n_clusters: int, *, n_init: int, max_iter: int, rng: np.random.Generator
) -> Clustering:
    """Return the best of `n_init` runs from greedy seeds, and of runs from mixtures of their results.

    A run is Lloyd's iterations, then moves of single points. Mixtures are made until :data:`PATIENCE` times `n_init` in
    a row have brought nothing better. Clusters are numbered by their first point. There are fewer than asked for if
    there are fewer distinct points.

    References
    ----------
    D. Gribel, T. Vidal, "HG-means: a scalable hybrid genetic algorithm for minimum sum-of-squares clustering",
    Pattern Recognition 88, 2019.
    """

    def run(centers: Float64) -> Clustering:
        return exchanged(points, lloyd(points, centers, max_iter), max_iter)

    found = [run(greedy_seeds(points, n_clusters, rng)) for _ in range(n_init)]
    gap = points.negligible * points.weight.sum()
    in_vain = 0 if n_init > 1 and 1 < len(found[0].centers) < len(points) else PATIENCE * n_init
    while in_vain < PATIENCE * n_init:
        first, second = (_better(points, found, rng) for _ in range(2))
        child = run(mixed_centers(points, first.centers, second.centers, rng))
        in_vain = 0 if child.inertia < _best(points, found).inertia - gap else in_vain + 1
        worst = max(range(n_init), key=lambda place: found[place].inertia)
        # An optimum that is there already would only crowd out others.
        if child.inertia < found[worst].inertia and all(abs(child.inertia - other.inertia) > gap for other in found):
            found[worst] = child
    return _numbered(points, _best(points, found))


def _best(points: WeightedPoints, found: list[Clustering]) -> Clustering:
    """Return the first of those with the least cost: runs that end in the same optimum differ by rounding."""
    least = min(clustering.inertia for clustering in found)
    return next(c for c in found if c.inertia <= least + points.negligible * points.weight.sum())


def _better(points: WeightedPoints, found: list[Clustering], rng: np.random.Generator) -> Clustering:
    """Return the better of two drawn at random."""
    return _best(points, [found[place] for place in rng.integers(len(found), size=2)])


def mixed_centers(points: WeightedPoints, first: Float64, second: Float64, rng: np.random.Generator) -> Float64:
    """Return centres of two clusterings, matched one to one: one of each pair at random, and one seeded anew."""
    left, right = linear_sum_assignment(squared_distances(first, second))
    k = len(left)
    mixed = np.where(rng.random(k)[:, None] < 0.5, first[left], second[right])
    return greedy_seeds(points, k, rng, np.delete(mixed, rng.integers(k), axis=0))


def lloyd(points: WeightedPoints, centers: Float64, max_iter: int) -> Clustering:
    """Assign points to centres and centres to means in turn until nothing changes."""
    negligible = points.negligible
    labels, squared = _nearest(points.squared_distances(centers), negligible)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        centers = _means(points, labels, squared, len(centers))
        before = labels
        labels, squared = _nearest(points.squared_distances(centers), negligible)
        if np.array_equal(labels, before):
            break
    return Clustering(labels, centers, float(points.weight @ squared), n_iter)


def move_costs(squared: Float64, weight: Float64, labels: Labels, total: Float64) -> Float64:
    """Return what each move adds to the cost; 0 for staying, infinite to empty a cluster.

    `squared` are the distances of the points to the means of the clusters, `total` the weights of these.
    """
    lines = np.arange(len(labels))
    rest = total[labels] - weight
    alone = rest <= 1e-9 * weight
    saved = weight * total[labels] / np.where(alone, 1.0, rest) * squared[lines, labels]
    added = weight[:, None] * total / (total + weight[:, None]) * squared
    costs = added - saved[:, None]
    costs[alone] = np.inf
    costs[lines, labels] = 0.0
    return costs


def exchange_pass(points: WeightedPoints, labels: Labels, centers: Float64) -> tuple[Labels, Float64]:
    """Try the best move of each point once, those first that save most; returns new labels and their means."""
    rows, weight, negligible = points.rows, points.weight, points.negligible
    labels, centers = labels.copy(), centers.copy()
    total = np.bincount(labels, weight, minlength=len(centers)).astype(np.float64)
    costs = move_costs(points.squared_distances(centers), weight, labels, total).min(axis=1)
    worthwhile = np.flatnonzero(costs < -negligible)
    for i in worthwhile[np.argsort(np.rint(costs[worthwhile] / negligible), kind="stable")]:
        # The means may have moved since.
        squared = ((centers - rows[i]) ** 2).sum(axis=1)
        costs = move_costs(squared[None], weight[[i]], labels[[i]], total)[0]
        target = int(np.argmax(costs <= costs.min() + negligible))
        if costs[target] >= -negligible:
            continue
        source = labels[i]
        centers[source] += weight[i] / (total[source] - weight[i]) * (centers[source] - rows[i])
        centers[target] += weight[i] / (total[target] + weight[i]) * (rows[i] - centers[target])
        total[source] -= weight[i]
        total[target] += weight[i]
        labels[i] = target
    return labels, centers


def exchanged(points: WeightedPoints, found: Clustering, max_iter: int) -> Clustering:
    """Move single points between clusters until no move lowers the cost."""
    while found.n_iter < max_iter:
        labels, centers = exchange_pass(points, found.labels, found.centers)
        if np.array_equal(labels, found.labels):
            break
        squared = ((points.rows - centers[labels]) ** 2).sum(axis=1)
        found = Clustering(labels, centers, float(points.weight @ squared), found.n_iter + 1)
    return found


def _numbered(points: WeightedPoints, found: Clustering) -> Clustering:
    """Number the clusters by their first point, so that neither seeds nor rounding show in the labels."""
    k, labels, centers = len(found.centers), found.labels, found.centers
    for _ in range(k):
        used, first = np.unique(labels, return_index=True)
        order = used[np.argsort(first)]
        centers = centers[np.concatenate([order, np.setdiff1d(np.arange(k), order)])]
        # Of centres at the same distance the first gets the point, and another one may be first now.
        labels, squared = _nearest(points.squared_distances(centers), points.negligible)
        if np.array_equal(order, np.arange(len(order))):
            break
    return Clustering(labels, centers, float(points.weight @ squared), found.n_iter)


def _means(points: WeightedPoints, labels: Labels, squared: Float64, k: int) -> Float64:
    """Return weighted means of the clusters; an empty one gets the point that costs most where it is, each another."""
    total = np.bincount(labels, points.weight, minlength=k)
    member = np.zeros((k, len(points)))
    member[labels, np.arange(len(points))] = points.weight
    centers = member @ points.rows / np.where(total > 0, total, 1.0)[:, None]
    empty = np.flatnonzero(total == 0)
    centers[empty] = points.rows[np.argsort(-points.weight * squared, kind="stable")[: len(empty)]]
    return centers


LARGE_RANK = 500
"""Kernel features that are kept where not all rows are anchors."""


@estimator
class SKKMeans(ClusterMixin, MustLinkKernel):
    r"""Semi-supervised kernel k-means.

    K-means with the projected kernel :math:`\hat K` of :class:`~pairlens.KernelNullSpace`: clusters that minimise

    .. math:: \sum_c \sum_{x \in c} \left\| \hat\phi(x) - \frac1{|c|} \sum_{y \in c} \hat\phi(y) \right\|^2,
        \qquad \hat\phi(x) \cdot \hat\phi(y) = \hat K(x, y).

    Must-linked rows have the same :math:`\hat\phi`, so they always end in one cluster, and they draw the rows
    around them along.

    Choose it to cluster when some pairs are known to belong together and the clusters need not be round. Cannot-links
    are not used; :class:`~pairlens.DSP` uses them to choose `gamma`, and directions of which it keeps n_components.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, at most the number of rows.
    n_init : int, default=10
        Runs from different seeds. If there are two or more, runs from mixtures of their results follow.
    max_iter : int, default=300
        Most iterations of a run, passes over single rows included.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of each row. Clusters are numbered by their first row.
    inertia_ : float
        Sum of the squared distances of the rows to the centre of their cluster in the projected kernel space.
    n_iter_ : int
        Iterations of the best run.

    See Also
    --------
    DSP : Linear directions from the same null space and the cannot-links.

    Notes
    -----
    Up to 2,000 rows all is exact. Above, 2,000 evenly spaced rows span 500 kernel features (Nystroem), out of which the
    must-link differences are projected; must-linked rows coincide there all the same. Time and memory grow
    as n. Without must-links this is plain kernel k-means.

    Greedy k-means++ seeds, Lloyd's iterations, moves of single points (must-linked rows together), and restarts from
    mixtures of former centres [2]_ until twice `n_init` of them have brought nothing better. There are fewer clusters
    than asked for, with a warning, if must-links leave fewer points.

    References
    ----------
    .. [1] S. Yan, S. Bouaziz, D. Lee, J. Barlow, "Semi-supervised dimensionality reduction for analyzing
       high-dimensional data with constraints", Neurocomputing 76, 2012.
    .. [2] D. Gribel, T. Vidal, "HG-means: a scalable hybrid genetic algorithm for minimum sum-of-squares clustering",
       Pattern Recognition 88, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from pairlens import SKKMeans, Constraints
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1], [3.0], [3.1]])
    >>> SKKMeans(2, random_state=0).fit_predict(X, constraints=Constraints([(2, 4)], n_samples=6))
    array([0, 0, 1, 1, 1, 1])
    """

    n_clusters: int = parameter(COUNT, default=8, kw_only=False)
    n_init: int = parameter(COUNT, default=10)
    max_iter: int = parameter(COUNT, default=300)
    random_state: Any = parameter(*SEED, default=None)

    def _learn(self, rows: Rows, chunklets: IntArray) -> None:
        """Find the clusters in kernel features without what must-linked rows differ in."""
        n = rows.shape[0]
        if self.n_clusters > n:
            raise ArgumentError("n_clusters", self.n_clusters, f"must be at most the number of rows, {n}")
        # Differences of rows are what this kernel sees; far from the origin they would lose digits.
        centred = self.kernel == "rbf" and not sparse.issparse(rows)
        self._shift = column_means(rows).astype(rows.dtype) if centred else None
        seen = self._seen(rows)
        self._features = kernel_features(
            seen,
            kernel=self.kernel,
            gamma=self.gamma_,
            rank=None if n <= ANCHORS else LARGE_RANK,
        )
        features = self._features(seen)
        self._basis, residual = feature_null_space(features, chunklets)
        self._project(features)
        self._cluster(features, chunklets, residual)

    def _cluster(self, features: NDArray[np.float64], chunklets: IntArray, residual: float) -> None:
        """Cluster the points: the groups of must-linked rows, and the other rows."""
        linked = np.flatnonzero(chunklets >= 0)
        free = np.flatnonzero(chunklets < 0)
        groups = group_means(features, chunklets) if len(linked) else features[:0]
        scale = float(np.vdot(features, features)) / len(features)
        self._reach = 4 * residual + 1e-12 * scale
        # A row may be as near to another group as to its own, up to rounding: such groups are one point.
        n_points, point = connected_components(squared_distances(groups, groups) <= self._reach)
        joined = point[chunklets[linked]]
        means = groups
        if n_points < len(groups):
            whole = np.full(len(features), -1)
            whole[linked] = joined
            means = group_means(features, whole)
        points = np.concatenate([means, features[free]])
        weight = np.concatenate([np.bincount(joined, minlength=n_points), np.ones(len(free))])
        _, first = np.unique(joined, return_index=True)
        # In the order of their first row, by which clusters are numbered.
        order = np.argsort(np.concatenate([linked[first], free]))
        weighted = WeightedPoints.of(points[order], weight[order])
        self._scale = weighted.scale
        found = weighted_kmeans(
            weighted,
            self.n_clusters,
            n_init=self.n_init,
            max_iter=self.max_iter,
            rng=as_generator(self.random_state),
        )
        if len(found.centers) < self.n_clusters:
            warn_user(
                f"SKKMeans found {len(found.centers)} clusters of the n_clusters={self.n_clusters} asked for: the "
                f"{len(features)} rows make no more distinct points, must-linked rows being one.",
                SupervisionWarning,
            )
        self._centers, self._groups = found.centers, groups
        labels = found.labels[np.argsort(order)]
        self._group_labels = labels[:n_points][point]
        self.labels_ = np.empty(len(features), dtype=np.int64)
        self.labels_[free] = self._with_their_group(features[free], labels[n_points:])
        self.labels_[linked] = self._group_labels[chunklets[linked]]
        self.inertia_, self.n_iter_ = found.inertia, found.n_iter

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the cluster whose centre is nearest in the projected kernel space.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows of :meth:`fit` or new ones.

        Returns
        -------
        labels : array of shape (n_samples,)
            Rows that coincide with a group of must-linked rows get the cluster of the group, those of the group itself
            for certain.
        """
        check_is_fitted(self)
        rows = checked_rows(self, X, fitting=False)
        features = self._features(self._seen(rows))
        self._project(features)
        labels, _ = assign(features, self._centers, self._scale)
        return self._with_their_group(features, labels)

    def _with_their_group(self, features: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give rows that coincide with a group of must-linked rows, up to rounding, the cluster of the group."""
        if len(self._groups) == 0 or len(features) == 0:
            return labels
        group, squared = assign(features, self._groups, 0.0)
        return np.where(squared <= self._reach, self._group_labels[group], labels)

    def fit_predict(
        self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None
    ) -> NDArray[np.int64]:
        """Find the clusters and return the labels; see :meth:`fit`."""
        return self.fit(X, y, constraints=constraints).labels_

    def _seen(self, rows: Rows) -> Rows:
        return rows if self._shift is None else rows - self._shift

    def _project(self, features: NDArray[np.float64]) -> None:
        """Take away, in place, what must-linked rows differ in."""
        features -= (features @ self._basis) @ self._basis.T
