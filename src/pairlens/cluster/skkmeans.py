"""SKK-means: kernel k-means in which must-linked rows are one point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import ClusterMixin

from pairlens._sklearn import COUNT, SEED, as_generator, check_is_fitted, estimator, parameter
from pairlens._warnings import warn_user
from pairlens.cluster.kmeans import WeightedPoints, assign, squared_distances, weighted_kmeans
from pairlens.engines import IntArray, Rows, checked_rows, column_means, group_means
from pairlens.exceptions import SupervisionWarning
from pairlens.kernels import ANCHORS, MustLinkKernel, feature_null_space, kernel_features
from pairlens.supervision import Constraints

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
    random_state : int, RandomState, Generator or None, default=None
        Makes the seeds repeatable.

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

    A run starts from greedy k-means++ seeds. After Lloyd's iterations single rows move between clusters as long as that
    lowers the cost, must-linked rows together. After `n_init` runs others start from mixtures of their centres [2]_,
    until twice `n_init` in a row have brought nothing better. A cluster that becomes empty is given the point that
    costs most. There are fewer clusters than asked for, with a warning, if must-links leave fewer points.

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
            raise ValueError(f"n_clusters={self.n_clusters} must be at most the number of rows, {n}.")
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
