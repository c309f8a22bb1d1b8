r"""Who attracts whom in the map: neighbours, and rows that probably belong together at any distance.

:math:`Q` are the affinities of t-SNE: each row's neighbours with Gaussian weights of a given perplexity, symmetric,
with sum 1. The long-range term is :math:`L_{ij} = \max(0, 2 P_{ij} - 1)` on about 40 random partners a row, P the
probability that i and j belong together, lowered by its standard error. Together

.. math::
    \frac{Q + \lambda L / \sum L}{1 + \lambda}, \qquad \lambda = 3 \min(1, \mathrm{mean}(L) / \pi),

:math:`\pi` the base rate: the share of pairs that belong together among random ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pairlens.engines import Float64, IntArray
from pairlens.graphs.edges import weight_matrix
from pairlens.graphs.nearest import nearest_rows

__all__ = [
    "LongRange",
    "attracted",
    "joined",
    "long_range",
    "neighbor_affinities",
    "perplexity_weights",
    "random_partners",
    "tsne_affinities",
]


PARTNERS = 40
STRENGTH = 3.0
STEPS = 100
ACCURACY = 1e-13
"""Difference of the logarithm of the perplexity at which the search for the width ends."""


@np.errstate(under="ignore")
def perplexity_weights(squared: Float64, perplexity: float) -> Float64:
    r"""Weights :math:`\exp(-\beta_i d_{ij}^2)` with sum 1 whose entropy is the logarithm of the perplexity.

    Newton's method in :math:`\log \beta`, kept inside a bracket. A row whose nearest neighbours tie cannot have fewer
    than there are of them, and has equal weights on these; one with fewer neighbours than the perplexity has all equal.

    Parameters
    ----------
    squared : array of shape (n_rows, n_neighbors)
        Squared distances to neighbours.
    perplexity : float
    """
    n, k = squared.shape
    wanted = np.log(perplexity)
    shifted = squared - squared.min(axis=1, keepdims=True)
    size = shifted.mean(axis=1)
    weights = np.full((n, k), 1.0 / k)
    if wanted >= np.log(k) or not size.any():
        return weights
    # In units of their mean, so that the bracket suits every row.
    ties = np.count_nonzero(shifted == 0, axis=1)
    searched = np.flatnonzero((size > 0) & (np.log(ties) < wanted))
    stuck = (size > 0) & (np.log(ties) >= wanted)
    weights[stuck] = (shifted[stuck] == 0) / ties[stuck, None]
    distance = shifted[searched] / size[searched, None]
    low, high = np.full(len(searched), -60.0), np.full(len(searched), 60.0)
    beta = np.zeros(len(searched))
    open_rows = np.arange(len(searched))
    for _ in range(STEPS):
        near = distance[open_rows]
        width = np.exp(beta[open_rows])[:, None]
        p = np.exp(-width * near)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        mean = np.einsum("ij,ij->i", p, near)
        error = width[:, 0] * mean + np.log(total[:, 0]) - wanted
        weights[searched[open_rows]] = p
        # Entropy falls as beta grows.
        low[open_rows] = np.where(error > 0, beta[open_rows], low[open_rows])
        high[open_rows] = np.where(error > 0, high[open_rows], beta[open_rows])
        slope = -(width[:, 0] ** 2) * (np.einsum("ij,ij->i", p, near**2) - mean**2)
        # Where all weight is on one neighbour, or on all alike, the slope is rounding.
        steep = slope < -1e-12
        step = beta[open_rows] - error / np.where(steep, slope, -1.0)
        inside = steep & (step > low[open_rows]) & (step < high[open_rows])
        beta[open_rows] = np.where(inside, step, (low[open_rows] + high[open_rows]) / 2)
        open_rows = open_rows[np.abs(error) > ACCURACY]
        if not len(open_rows):
            break
    return weights


def neighbor_affinities(nearest: IntArray, distance: Float64, perplexity: float) -> sparse.csr_matrix:
    """Q: symmetric, with sum 1.

    Parameters
    ----------
    nearest, distance : arrays of shape (n_rows, n_neighbors)
        Neighbours of each row, and how far they are.
    perplexity : float
    """
    n, k = nearest.shape
    weights = perplexity_weights(distance**2, perplexity)
    directed = sparse.csr_matrix((weights.ravel(), nearest.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return ((directed + directed.T) / (2 * n)).tocsr()


def attracted(n: int, perplexity: float) -> tuple[int, float]:
    """How many neighbours a row attracts, three times the perplexity, which is at most (n - 1) / 3 - 1, and that."""
    perplexity = max(1.0, min(perplexity, (n - 1) / 3 - 1))
    return min(n - 1, int(3 * perplexity)), perplexity


def tsne_affinities(
    V: Float64, perplexity: float, *, found: tuple[IntArray, Float64] | None = None
) -> sparse.csr_matrix:
    """Q of rows in a metric.

    Parameters
    ----------
    V : array of shape (n_rows, n_columns)
    perplexity : float
    found : tuple of arrays, optional
        The nearest rows and their distances, where they are known, at least as many as :func:`attracted` says.
    """
    k, perplexity = attracted(len(V), perplexity)
    nearest, distance = nearest_rows(V, k) if found is None else found
    return neighbor_affinities(nearest[:, :k], distance[:, :k], perplexity)


def random_partners(n: int, rng: np.random.Generator) -> IntArray:
    """Distinct pairs of rows, in which each row occurs about 40 times; all pairs if there are not that many."""
    count = n * PARTNERS // 2
    if n * (n - 1) // 2 <= count:
        return np.column_stack(np.triu_indices(n, 1))
    left = rng.integers(0, n, count)
    # Any row but the row itself.
    right = (left + rng.integers(1, n, count)) % n
    key = np.unique(np.minimum(left, right) * n + np.maximum(left, right))
    return np.column_stack([key // n, key % n])


@dataclass(frozen=True)
class LongRange:
    """The long-range term: weights of pairs with sum 1 over both directions, and its strength against Q."""

    weights: sparse.csr_matrix
    strength: float

    @property
    def share(self) -> float:
        """Share of all attraction that is long-range."""
        return self.strength / (1 + self.strength)


def long_range(pairs: IntArray, together: Float64, rate: float, n: int) -> LongRange | None:
    """The long-range term of pairs that belong together with these probabilities; None if none is above one half.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2)
        Distinct pairs of rows.
    together : array of shape (n_pairs,)
    rate : float
        Share of pairs that belong together among random ones.
    n : int
        Number of rows.
    """
    pull = np.maximum(0.0, 2 * together - 1)
    if not pull.any():
        return None
    strength = STRENGTH * min(1.0, float(pull.mean()) / rate)
    kept = pull > 0
    return LongRange(weight_matrix(pairs[kept], pull[kept] / (2 * pull.sum()), n), strength)


def joined(near: sparse.csr_matrix, far: LongRange | None) -> sparse.csr_matrix:
    """Both attractions together, with sum 1."""
    if far is None:
        return near
    return ((near + far.strength * far.weights) / (1 + far.strength)).tocsr()
