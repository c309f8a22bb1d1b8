r"""The three terms of SODRPaC's criterion, :math:`P - Q - \lambda M`.

P keeps cannot-links apart, Q shared nearest neighbours together, M the manifold of all rows. Neighbours, their
distances and Q depend on no parameter, M on theta only, and what the constraints generate on the constraints only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import IntArray, graph_scatter, pair_scatter, pair_squared_distances
from pairlens.graphs.affinity import degrees, mutual_and_graph_edges, normalized_graph
from pairlens.graphs.edges import weight_matrix
from pairlens.graphs.transformation import Generated, Mutual, generate
from pairlens.spectral.eigen import Matrix
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import cannot_link_scatter
from pairlens.supervision import Constraints


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
    def of(
        cls,
        space: RowSpace,
        n_neighbors: int,
        n_graph_neighbors: int,
        *,
        include_self: bool = False,
        search: str = "auto",
    ) -> Terms:
        """Find the neighbours, once for both graphs."""
        near = space.near_rows
        mutual, shared, graph = mutual_and_graph_edges(
            near, n_neighbors, n_graph_neighbors, include_self=include_self, search=search
        )
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
        U = weight_matrix(self.graph, np.exp(-self.graph_squared / theta), self.space.n_rows)
        scaled = normalized_graph(U)
        return self.total + graph_scatter(self.space.rows, scaled) - self.space.total_scatter(degrees(scaled))

    def generate(self, known: Constraints) -> Generated:
        """Cannot-links from the must-links."""
        return generate(known, self.mutual, unit=certain(known))


def certain(known: Constraints) -> float:
    """The weight of a given cannot-link that counts as certain: their mean, or that of a pair of labels."""
    return 1.0 if known.labels is not None or not known.n_cannot_link else known.cannot_link_total / known.n_cannot_link
