r"""The three terms of SODRPaC's criterion, and the search for its parameters by held-out pairs.

The criterion is :math:`P - Q - \lambda M`: cannot-links apart, shared nearest neighbours together, the manifold of all
rows kept. Neighbours, their distances and Q depend on no parameter, M on theta only, and what the constraints generate
on the fold only. So a grid costs one neighbour search and then one eigenproblem of the size of the features each.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from pairlens._threads import one_blas_thread
from pairlens.engines import (
    FloatArray,
    IntArray,
    graph_scatter,
    neighbors,
    pair_scatter,
    pair_squared_distances,
    take_rows,
)
from pairlens.graphs.edges import edges_of, shared_neighbors, weight_matrix
from pairlens.graphs.transformation import Generated, Mutual, generate
from pairlens.spectral.eigen import Matrix, range_basis
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import cannot_link_scatter
from pairlens.supervision import Constraints

__all__ = ["Scores", "Terms", "held_out_scores"]

MAX_SEARCH_PAIRS = 20_000
"""Pairs that take part in a search; of more, so many are drawn."""
MAX_SCORED = 1_000
"""Pairs of each sort whose lengths are compared at a grid point; of more, every so many-th is taken."""
NEGLIGIBLE = 1e-3
"""Share of comparisons that is never worth another direction."""
SINGLE_THREADED = 200
"""Below this size of an eigenproblem, several threads only wait for each other."""


@dataclass(frozen=True)
class Terms:
    """The rows, and all of the criterion that depends neither on a parameter nor on the constraints."""

    space: RowSpace
    mutual: Mutual
    together: Matrix
    graph: IntArray
    graph_squared: NDArray[np.float64]
    total: Matrix

    @classmethod
    def of(cls, space: RowSpace, n_neighbors: int, n_graph_neighbors: int, *, include_self: bool = False) -> Terms:
        """Find the neighbours, once for both graphs."""
        near = space.near_rows
        most = near.shape[0] - 1
        k, g = min(n_neighbors, most), min(n_graph_neighbors, most)
        nearest = neighbors(near, n_nearest=max(k, g)).nearest
        assert nearest is not None
        mutual = edges_of(nearest[:, :k], join="and")
        common = np.asarray(shared_neighbors(nearest[:, :k])[mutual[:, 0], mutual[:, 1]]).ravel()
        # Counted in their own lists, two rows that list each other have each other in common too.
        shared = common + 2.0 if include_self else common
        graph = edges_of(nearest[:, :g])
        return cls(
            space=space,
            mutual=Mutual(mutual, pair_squared_distances(near, mutual)),
            together=pair_scatter(space.rows, mutual, shared) / max(1, len(mutual)),
            graph=graph,
            graph_squared=pair_squared_distances(near, graph),
            total=space.total_scatter(),
        )

    def apart(self, known: Constraints, made: Generated, theta: float) -> Matrix:
        """P: the mean over given and generated cannot-links, each with its reliability."""
        count = known.n_cannot_link + len(made.pairs)
        if count == 0:
            return np.zeros_like(self.total)
        given = cannot_link_scatter(self.space, known) / certain(known)
        return (given + pair_scatter(self.space.rows, made.pairs, made.reliability(theta))) / count

    def manifold(self, theta: float) -> Matrix:
        r"""M: the rows about their mean under the normalised Laplacian :math:`I - K^{-1/2} U K^{-1/2}`."""
        U = weight_matrix(self.graph, np.exp(-self.graph_squared / theta), self.space.rows.shape[0])
        degree = np.asarray(U.sum(axis=1)).ravel()
        root = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
        scaled = sparse.diags(root) @ U @ sparse.diags(root)
        row_sums = np.asarray(scaled.sum(axis=1)).ravel()
        return self.total + graph_scatter(self.space.rows, scaled.tocsr()) - self.space.total_scatter(row_sums)

    def generate(self, known: Constraints) -> Generated:
        """Cannot-links from the must-links."""
        return generate(known, self.mutual, unit=certain(known))


def certain(known: Constraints) -> float:
    """The weight of a given cannot-link that counts as certain: their mean, or that of a pair of labels."""
    return 1.0 if known.labels is not None or not known.n_cannot_link else known.cannot_link_total / known.n_cannot_link


@dataclass(frozen=True)
class Scores:
    """Held-out scores over a grid.

    Attributes
    ----------
    lams, thetas : arrays
        The grid; theta in its own unit, not in that of the rows.
    dims : int array
        The numbers of directions.
    values : array of shape (n_splits, n_lams, n_thetas, n_dims)
        For each fold, how often a held-out cannot-link is longer than a pair of mutual neighbours.
    """

    lams: FloatArray
    thetas: FloatArray
    dims: IntArray
    values: NDArray[np.float64]

    def best(self) -> tuple[float, float, int]:
        """lam, theta and n_components: the fewest directions with a score within one standard error of the best.

        More directions come ever closer to the distances of all features, in which neighbours are nearest by
        definition: without the standard error the score would hardly ever choose few.
        """
        mean = self.values.mean(axis=0)
        top = np.unravel_index(np.argmax(mean), mean.shape)
        error = self.values.std(axis=0, ddof=1)[top] / np.sqrt(len(self.values))
        dim = int(np.argmax(mean.max(axis=(0, 1)) >= mean[top] - max(error, NEGLIGIBLE)))
        lam, theta = np.unravel_index(np.argmax(mean[:, :, dim]), mean.shape[:2])
        return float(self.lams[lam]), float(self.thetas[theta]), int(self.dims[dim])

    def table(self) -> dict[str, NDArray[Any]]:
        """As scikit-learn's ``cv_results_``: one entry per grid point."""
        lam, theta, dim = (part.ravel() for part in np.meshgrid(self.lams, self.thetas, self.dims, indexing="ij"))
        flat = self.values.reshape(len(self.values), -1)
        mean = flat.mean(axis=0)
        table = {"param_lam": lam, "param_theta": theta, "param_n_components": dim}
        table |= {f"split{fold}_test_score": score for fold, score in enumerate(flat)}
        rank = np.searchsorted(np.sort(-mean), -mean) + 1
        return table | {"mean_test_score": mean, "std_test_score": flat.std(axis=0), "rank_test_score": rank}


def held_out_scores(
    terms: Terms,
    known: Constraints,
    *,
    lams: FloatArray,
    thetas: FloatArray,
    dims: IntArray,
    unit: float,
    n_splits: int,
    random_state: Any,
) -> Scores:
    """Score every grid point by folds over the pairs.

    The cannot-links, given and generated, that only the held-out pairs give should be long in the directions learned
    from the others, and mutual neighbours should be short. Held-out must-links count through what they generate, for
    between two clusters of a class they need not be short.

    Parameters
    ----------
    terms : Terms
    known : Constraints
        At least `n_splits` cannot-links.
    lams, thetas, dims
        The grid.
    unit : float
        What the manifold term is divided by.
    n_splits : int
        Number of folds.
    random_state : int, RandomState, Generator or None
        Makes the folds repeatable.
    """
    if known.n_pairs > MAX_SEARCH_PAIRS:
        known = known.sample(MAX_SEARCH_PAIRS, random_state)
    _, basis = range_basis(terms.total)
    most = min(int(dims.max()), basis.shape[1])
    together = basis.T @ terms.together @ basis
    manifolds = [basis.T @ terms.manifold(theta) @ basis / unit for theta in thetas]
    short = _differences(terms, terms.mutual.edges) @ basis
    everything = _all_cannot_links(known, terms.generate(known))
    values = np.empty((n_splits, len(lams), len(thetas), len(dims)))
    with one_blas_thread() if terms.space.dim < SINGLE_THREADED else nullcontext():
        for fold, (train, _) in enumerate(known.split(n_splits, random_state)):
            made = terms.generate(train)
            long = _differences(terms, _missing(everything, _all_cannot_links(train, made))) @ basis
            for t, theta in enumerate(thetas):
                criterion = basis.T @ terms.apart(train, made, theta) @ basis - together
                for k, lam in enumerate(lams):
                    directions = _leading(criterion - lam * manifolds[t], most)
                    score = _longer(short @ directions, long @ directions, np.minimum(dims, most))
                    values[fold, k, t] = score
    return Scores(lams, thetas, dims, values)


def _all_cannot_links(known: Constraints, made: Generated) -> IntArray:
    return np.concatenate([known.cannot_link, made.pairs])


def _missing(pairs: IntArray, others: IntArray) -> IntArray:
    """The pairs that the others lack."""
    width = int(pairs.max(initial=0)) + 1
    return pairs[~np.isin(pairs @ [width, 1], others @ [width, 1])]


def _differences(terms: Terms, pairs: IntArray) -> NDArray[np.float64]:
    """Differences of the rows of pairs, of every so many-th where there are too many."""
    chosen = pairs[:: -(-len(pairs) // MAX_SCORED) or 1]
    return take_rows(terms.space.rows, chosen[:, 0]) - take_rows(terms.space.rows, chosen[:, 1])


def _leading(A: Matrix, k: int) -> Matrix:
    """The k leading eigenvectors, best first."""
    dim = len(A)
    _, vectors = linalg.eigh(A, subset_by_index=(dim - k, dim - 1), check_finite=False)
    return np.asarray(vectors[:, ::-1])


def _longer(short: Matrix, long: Matrix, dims: IntArray) -> NDArray[np.float64]:
    """For the first directions, so many as each of `dims`: how often one of `long` is longer than one of `short`."""
    if len(short) == 0 or len(long) == 0:
        return np.zeros(len(dims))
    within, beyond = (np.sort(np.cumsum(part**2, axis=1).T[dims - 1], axis=1) for part in (short, long))
    return np.array([np.searchsorted(shorter, longer).mean() for shorter, longer in zip(within, beyond)]) / len(short)
