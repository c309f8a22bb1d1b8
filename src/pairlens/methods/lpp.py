"""LPP and SLPP: directions along which neighbours stay neighbours."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from pairlens._deprecation import DEPRECATED, NOT_GIVEN, former_parameter
from pairlens._sklearn import Interval, StrOptions
from pairlens._warnings import warn_fallback
from pairlens.engines import IntArray, Placement, graph_scatter
from pairlens.graphs.affinity import degrees, heat_graph
from pairlens.graphs.nearest import SEARCHES
from pairlens.methods.base import LinearPairTransformer
from pairlens.spectral.eigen import Matrix, Pencil, attract_whitened, generalized
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import must_link_degrees, must_link_scatter, unsupervised
from pairlens.supervision import Constraints


def heat_width(method: Any, name: str = "gamma") -> float | None:
    """The theta = 1 / gamma of the heat weights of a method; None for the default of the rows."""
    theta = former_parameter(method, "theta", name, f"{name} = 1 / theta")
    if theta is not None:
        return float(theta)
    gamma = getattr(method, name)
    return None if gamma == "auto" else 1.0 / float(gamma)


class LocalityPreserving(LinearPairTransformer):
    r"""Base of the methods that start from a heat-weighted graph of nearest neighbours.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours of each row; all rows if there are fewer.
    gamma : float or "auto", default="auto"
        The heat weights are :math:`\exp(-\gamma d^2)`; "auto" is one over the squared mean norm of the centred rows.
    theta : float, optional
        Former name: :math:`\gamma = 1 / \theta`. It still works, with a FutureWarning.
    """

    _rows_may_be: ClassVar = Placement.ANYWHERE_SEARCHED
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearPairTransformer._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "theta": [Interval(Real, 0, None, closed="neither"), None, NOT_GIVEN],
        "neighbors": [StrOptions(set(SEARCHES))],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 5,
        gamma: float | str = "auto",
        theta: float | str | None = DEPRECATED,
        neighbors: str = "auto",
    ) -> None:
        super().__init__(n_components)
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.theta = theta
        self.neighbors = neighbors

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return generalized(attract, repel, self.n_components, largest=False)


class LPP(LocalityPreserving):
    r"""Locality preserving projections.

    Directions that minimise :math:`w' X' L X w / w' X' D X w`, where L and D are the Laplacian and the degrees of the
    graph that joins two rows if one is among the `n_neighbors` nearest of the other, with weights
    :math:`\exp(-\gamma \|x_i - x_j\|^2)`.

    Choose it when nothing is known about pairs and neighbourhoods matter more than variance. It uses no supervision:
    `y` and `constraints` are accepted and ignored.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Directions with :math:`W X' D X W' = I`.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, smallest first.

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

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        graph = heat_graph(space.near_rows, self.n_neighbors, heat_width(self), search=self.neighbors)
        return graph_scatter(space.rows, graph), space.total_scatter(degrees(graph))


class SLPP(LinearPairTransformer):
    r"""Supervised locality preserving projections.

    LPP of the must-linked rows alone, with the must-links as graph and a self loop at each row: directions that
    minimise :math:`w' A w / w' X' D X w`, :math:`A = X' L X`, scaled so that :math:`W A W' = I`.

    Choose it for many clean must-links and no use of the unlabelled rows.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Directions with :math:`W A W' = I`.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, smallest first.

    Notes
    -----
    The available papers define this method incompletely; this form reproduces the column of the DSP paper best.
    Cannot-links are not used. Eigenvalues below 1e-12 of the largest are raised to that before dividing. Without
    must-links the result is that of PCA, with a warning.

    References
    ----------
    .. [1] X. He, S. Yan, Y. Hu, P. Niyogi, H.-J. Zhang, "Face recognition using Laplacianfaces", IEEE TPAMI 27, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import SLPP, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> SLPP().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=60, random_state=0)).shape
    (150, 2)
    """

    _rows_may_be: ClassVar = Placement.ANYWHERE

    def _rows_used(self, known: Constraints) -> IntArray | None:
        return np.flatnonzero(known.chunklets() >= 0) if known.n_must_link else None

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        if known.n_must_link == 0:
            warn_fallback(self, "no must-links were given")
            return unsupervised(space)
        with_self_loops = must_link_degrees(known) + 1
        return must_link_scatter(space, known), space.total_scatter(with_self_loops)

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return attract_whitened(attract, repel, self.n_components)
