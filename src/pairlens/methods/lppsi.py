"""LPPSI and its kernel form: locality preserving projections with side information."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from pairlens._deprecation import DEPRECATED
from pairlens._sklearn import Interval
from pairlens.engines import graph_scatter
from pairlens.graphs.affinity import degrees, side_information_graphs
from pairlens.methods.kernel import KernelPairTransformer
from pairlens.methods.lpp import LocalityPreserving, heat_width
from pairlens.spectral.eigen import Matrix, Pencil, generalized
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints


def side_information_scatters(
    space: RowSpace, known: Constraints, *, n_neighbors: int, theta: float | None, beta: float, search: str = "auto"
) -> tuple[Matrix, Matrix]:
    """The matrices of both forms, which differ in their coordinates only."""
    similar, dissimilar = side_information_graphs(space.near_rows, known, n_neighbors, theta, search=search)
    attract = graph_scatter(space.rows, similar) - beta * graph_scatter(space.rows, dissimilar)
    return attract, space.total_scatter(degrees(similar))


class LPPSI(LocalityPreserving):
    r"""Locality preserving projections with side information.

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
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, smallest first.

    Notes
    -----
    The original objective was not available; this form is our own. The LPPSI column of the DSP
    paper does not reproduce with it, nor with any other reading tried: do not quote results as those of the original.

    References
    ----------
    .. [1] S. An, W. Liu, S. Venkatesh, "Exploiting side information in locality preserving projection", CVPR 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import LPPSI, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> LPPSI().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=30, random_state=0)).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LocalityPreserving._parameter_constraints,
        "beta": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 5,
        gamma: float | str = "auto",
        beta: float = 1.0,
        theta: float | str | None = DEPRECATED,
        neighbors: str = "auto",
    ) -> None:
        super().__init__(n_components, n_neighbors=n_neighbors, gamma=gamma, theta=theta, neighbors=neighbors)
        self.beta = beta

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        return side_information_scatters(
            space,
            known,
            n_neighbors=self.n_neighbors,
            theta=heat_width(self),
            beta=self.beta,
            search=self.neighbors,
        )


class KernelLPPSI(KernelPairTransformer):
    r"""Kernel locality preserving projections with side information.

    :class:`LPPSI` with :math:`w = \Phi' a`, that is with the centred kernel matrix K in place of X:

    .. math:: \frac{a' K (L_s - \beta L_d) K a}{a' K D_s K a}.

    The graphs and their heat weights are those of the input space.

    Choose it over :class:`LPPSI` when classes are not linearly separable and there are a few thousand rows at most.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours of each row; all rows if there are fewer.
    heat_gamma : float or "auto", default="auto"
        The heat weights are :math:`\exp(-\gamma_h d^2)`; "auto" is one over the squared mean norm of the centred rows.
    beta : float, default=1.0
        Weight of the cannot-links.
    theta : float, optional
        Former name: :math:`\gamma_h = 1 / \theta`. It still works, with a FutureWarning.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, smallest first.

    Notes
    -----
    As for :class:`LPPSI`: this reading is ours, and results must not be quoted as those of the original.

    References
    ----------
    .. [1] S. An, W. Liu, S. Venkatesh, "Exploiting side information in locality preserving projection", CVPR 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import Constraints, KernelLPPSI
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelLPPSI().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=30, random_state=0)).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelPairTransformer._parameter_constraints,
        **{name: LPPSI._parameter_constraints[name] for name in ("n_neighbors", "theta", "beta")},
        "heat_gamma": LPPSI._parameter_constraints["gamma"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 5,
        heat_gamma: float | str = "auto",
        beta: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "median",
        rank: int | None = None,
        theta: float | str | None = DEPRECATED,
    ) -> None:
        super().__init__(n_components, kernel=kernel, gamma=gamma, rank=rank)
        self.n_neighbors = n_neighbors
        self.heat_gamma = heat_gamma
        self.theta = theta
        self.beta = beta

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        theta = heat_width(self, "heat_gamma")
        return side_information_scatters(space, known, n_neighbors=self.n_neighbors, theta=theta, beta=self.beta)

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return generalized(attract, repel, self.n_components, largest=False)
