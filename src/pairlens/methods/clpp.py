"""CLPP: pairs that are passed on to neighbours."""

from __future__ import annotations

from pairlens.engines import graph_scatter
from pairlens.graphs.affinity import degrees, heat_graph, pass_on
from pairlens.methods.lpp import LocalityPreserving, heat_width
from pairlens.spectral.eigen import Matrix
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints
from pairlens.supervision.combined import written_pairs


class CLPP(LocalityPreserving):
    r"""Constrained locality preserving projections.

    :class:`LPP` with a changed affinity: 1 on must-links, -1 on cannot-links, and both passed on to the nearest
    neighbours of the constrained rows with their heat weight as factor. Directions minimise
    :math:`w' X' L X w / w' X' D X w` with L the Laplacian of the changed affinity and D the degrees of the unchanged.

    Choose it when pairs are few and a neighbour of a constrained row most likely belongs to the same class.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Directions with :math:`W X' D X W' = I`.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, smallest first.

    Notes
    -----
    The available papers define this method incompletely; this form was chosen by experiment. A pair that is itself
    constrained, or joins two neighbours already, receives nothing; what several pairs pass on adds up. Without pairs
    this is :class:`LPP`.

    References
    ----------
    .. [1] H. Cevikalp, J. Verbeek, F. Jurie, A. Klaser, "Semi-supervised dimensionality reduction using pairwise
       equivalence constraints", VISAPP 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import CLPP, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> CLPP().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=30, random_state=0)).shape
    (150, 2)
    """

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        neighbours = heat_graph(space.near_rows, self.n_neighbors, heat_width(self), search=self.neighbors)
        changed = pass_on(neighbours, written_pairs(known).to_sparse())
        return graph_scatter(space.rows, changed), space.total_scatter(degrees(neighbours))
