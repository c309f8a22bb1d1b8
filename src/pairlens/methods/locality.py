"""LPP and what pairs make of it: SLPP, CLPP and LPPSI, directions along which neighbours stay neighbours."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pairlens._sklearn import AUTO, COUNT, NOT_NEGATIVE, POSITIVE, StrOptions, estimator, parameter
from pairlens.engines import IntArray, Placement, graph_scatter
from pairlens.graphs.edges import degrees, heat_graph, pass_on, side_information_graphs
from pairlens.graphs.nearest import SEARCHES
from pairlens.methods.base import LinearPairTransformer, warn_without_pairs
from pairlens.spectral.rowspace import Matrix, Pencil, RowSpace, attract_whitened, generalized
from pairlens.spectral.scatters import must_link_degrees, must_link_scatter
from pairlens.supervision import Constraints
from pairlens.supervision.combined import written_pairs


@estimator
class LocalityPreserving(LinearPairTransformer):
    r"""Start from a heat-weighted graph of nearest neighbours.

    Parameters
    ----------
    gamma : float or "auto", default="auto"
        The heat weights are :math:`\exp(-\gamma d^2)`; "auto" is one over the squared mean norm of the centred rows.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Directions with :math:`W X' D X W' = I`.
    """

    _rows_may_be: ClassVar = Placement.DEVICE
    _needs: ClassVar = ""
    n_neighbors: int = parameter(COUNT, default=5)
    gamma: float | str = parameter(POSITIVE, AUTO, default="auto")
    neighbors: str = parameter(StrOptions(set(SEARCHES)), default="auto")

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        return generalized(attract, repel, k, largest=False)


class LPP(LocalityPreserving):
    r"""Locality preserving projections.

    Directions that minimise :math:`w' X' L X w / w' X' D X w`, where L and D are the Laplacian and the degrees of the
    graph that joins two rows if one is among the `n_neighbors` nearest of the other, with weights
    :math:`\exp(-\gamma \|x_i - x_j\|^2)`.

    Choose it when nothing is known about pairs and neighbourhoods matter more than variance. It uses no supervision:
    `y` and `constraints` are accepted and ignored.

    References
    ----------
    .. [1] X. He, P. Niyogi, "Locality preserving projections", NIPS 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import LPP
    >>> X, _ = load_iris(return_X_y=True)
    >>> LPP(n_components=2).fit_transform(X).shape
    (150, 2)
    """

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        graph = heat_graph(space.near_rows, self.n_neighbors, self.gamma, search=self.neighbors)
        return graph_scatter(space.rows, graph), space.total_scatter(degrees(graph))


class SLPP(LinearPairTransformer):
    r"""Supervised locality preserving projections.

    The available papers define this method incompletely; this form reproduces the column of the DSP paper best.

    LPP of the must-linked rows alone, with the must-links as graph and a self loop at each row: directions that
    minimise :math:`w' A w / w' X' D X w`, :math:`A = X' L X`, scaled so that :math:`W A W' = I`.

    Choose it for many clean must-links and no use of the unlabelled rows.

    Notes
    -----
    Cannot-links are not used. Eigenvalues below 1e-12 of the largest are raised to that before dividing.

    References
    ----------
    .. [1] X. He, S. Yan, Y. Hu, P. Niyogi, H.-J. Zhang, "Face recognition using Laplacianfaces", IEEE TPAMI 27, 2005.
    """

    _rows_may_be: ClassVar = Placement.ANYWHERE
    _needs: ClassVar = "must-links"

    def _rows_used(self, pairs: Constraints) -> IntArray | None:
        return np.flatnonzero(pairs.chunklets() >= 0)

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        with_self_loops = must_link_degrees(pairs) + 1
        return must_link_scatter(space, pairs), space.total_scatter(with_self_loops)

    _solve = staticmethod(attract_whitened)


class CLPP(LocalityPreserving):
    r"""Constrained locality preserving projections.

    The available papers define this method incompletely; this form was chosen by experiment.

    :class:`LPP` with a changed affinity: 1 on must-links, -1 on cannot-links, and both passed on to the nearest
    neighbours of the constrained rows with their heat weight as factor. Directions minimise
    :math:`w' X' L X w / w' X' D X w` with L the Laplacian of the changed affinity and D the degrees of the unchanged.

    Choose it when pairs are few and a neighbour of a constrained row most likely belongs to the same class.

    Notes
    -----
    A pair that is itself constrained, or joins two neighbours already, receives nothing; what several pairs pass on
    adds up. Without pairs this is :class:`LPP`.

    References
    ----------
    .. [1] H. Cevikalp, J. Verbeek, F. Jurie, A. Klaser, "Semi-supervised dimensionality reduction using pairwise
       equivalence constraints", VISAPP 2008.
    """

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        warn_without_pairs(self, pairs)
        neighbours = heat_graph(space.near_rows, self.n_neighbors, self.gamma, search=self.neighbors)
        changed = pass_on(neighbours, written_pairs(pairs).to_sparse())
        return graph_scatter(space.rows, changed), space.total_scatter(degrees(neighbours))


@estimator
class LPPSI(LocalityPreserving):
    r"""Locality preserving projections with side information.

    The original objective was not available; this form is our own. The LPPSI column of the DSP paper does not reproduce
    with it, nor with any other reading tried: do not quote results as those of the original.

    Directions that minimise

    .. math:: \frac{w' X' (L_s - \beta L_d) X w}{w' X' D_s X w},

    where :math:`L_s, D_s` belong to the heat weights on must-links and on nearest neighbours that are in no pair with
    each other, and :math:`L_d` to the heat weights on cannot-links.

    Choose it when pairs are few and neighbourhoods are trusted; without pairs it is :class:`LPP`.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of the cannot-links.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Directions with :math:`W X' D_s X W' = I`.

    References
    ----------
    .. [1] S. An, W. Liu, S. Venkatesh, "Exploiting side information in locality preserving projection", CVPR 2008.
    """

    beta: float = parameter(NOT_NEGATIVE, default=1.0)

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        warn_without_pairs(self, pairs)
        return side_information_scatters(space, pairs, self.n_neighbors, self.gamma, self.beta, search=self.neighbors)


def side_information_scatters(
    space: RowSpace, pairs: Constraints, n_neighbors: int, gamma: float | str, beta: float, *, search: str = "auto"
) -> tuple[Matrix, Matrix]:
    """Return the matrices of the linear and the kernel form, which differ in their coordinates only."""
    similar, dissimilar = side_information_graphs(space.near_rows, pairs, n_neighbors, gamma, search=search)
    attract = graph_scatter(space.rows, similar) - beta * graph_scatter(space.rows, dissimilar)
    return attract, space.total_scatter(degrees(similar))
