r"""Moves of single points between clusters, which go on where Lloyd's iterations end.

Moving a point of weight w from cluster a to cluster b changes the cost by

.. math:: \frac{w\, n_b}{n_b + w} \|x - m_b\|^2 - \frac{w\, n_a}{n_a - w} \|x - m_a\|^2,

where n and m are the weights and means before the move. Lloyd's iterations stop where every point is nearest to the
mean of its own cluster; the factors, which count how the means follow, leave moves that lower the cost all the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairlens.cluster.points import WeightedPoints
from pairlens.engines import Float64

Labels = NDArray[np.int64]


def move_costs(squared: Float64, weight: Float64, labels: Labels, total: Float64) -> Float64:
    """What each move adds to the cost, of shape (n_points, n_clusters); 0 for staying, infinite to empty a cluster.

    Parameters
    ----------
    squared : array of shape (n_points, n_clusters)
        Squared distances to the means of the clusters.
    weight : array of shape (n_points,)
    labels : int array of shape (n_points,)
    total : array of shape (n_clusters,)
        Weights of the clusters.
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
    """Try the best move of each point once, those first that save most; returns new labels and their means.

    Parameters
    ----------
    points : WeightedPoints
        Rows for which one point stands move together.
    labels : int array of shape (n_points,)
    centers : array of shape (n_clusters, n_features)
        The means of the clusters.
    """
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
