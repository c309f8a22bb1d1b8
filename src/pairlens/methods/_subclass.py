r"""The three terms of SODRPaC's criterion, and the search for its parameters by held-out pairs.

The criterion is :math:`P - Q - \lambda M`: cannot-links apart, shared nearest neighbours together, the manifold of all
rows kept. Neighbours, their distances and Q depend on no parameter, M on theta only, and what the constraints generate
on the fold only. So a grid costs one neighbour search and then one eigenproblem of the size of the features each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines.blocks import IntArray
from pairlens.engines.distances import pair_squared_distances
from pairlens.engines.neighbors import neighbors
from pairlens.engines.scatter import graph_scatter, pair_scatter
from pairlens.graphs.edges import edges_of, shared_neighbors, weight_matrix
from pairlens.graphs.transformation import Generated, Mutual, generate
from pairlens.spectral.eigen import Matrix
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import cannot_link_scatter
from pairlens.supervision import Constraints

__all__ = ["Terms"]


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
        weight = np.exp(-self.graph_squared / theta) if theta > 0 else np.ones(len(self.graph))
        U = weight_matrix(self.graph, weight, self.space.rows.shape[0])
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
