"""SDA: Fisher's discriminant of the labelled rows, smoothed over all rows."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from pairlens._sklearn import Interval, StrOptions
from pairlens._warnings import warn_fallback
from pairlens.engines import Placement, graph_scatter, group_scatter
from pairlens.graphs.affinity import nearest_graph
from pairlens.graphs.nearest import SEARCHES
from pairlens.methods.base import LinearPairTransformer
from pairlens.spectral.eigen import Matrix, Pencil, generalized
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import between_scatter, unsupervised
from pairlens.supervision import Constraints
from pairlens.supervision.combined import class_codes


class SDA(LinearPairTransformer):
    r"""Semi-supervised discriminant analysis.

    Directions that maximise

    .. math:: \frac{w' S_b w}{w' (S_t + \alpha X' L X + \beta I) w},

    with the between-class scatter :math:`S_b` and total scatter :math:`S_t` of the labelled rows and the Laplacian L of
    the graph of nearest neighbours of all rows.

    Choose it when a few rows have labels and the others come in the same clusters. It gives at most one direction less
    than there are classes.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours of each row; all rows if there are fewer.
    alpha : float, default=0.1
        Weight of the neighbourhoods.
    beta : float, default=0.01
        Weight of the length of the direction.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, largest first.

    Notes
    -----
    Chains of must-links pass labels on, and rows that they join to no label form a class of their own. Without two
    classes the result is that of PCA, with a warning.

    References
    ----------
    .. [1] D. Cai, X. He, J. Han, "Semi-supervised discriminant analysis", ICCV 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import SDA
    >>> X, y = load_iris(return_X_y=True)
    >>> y[5:45] = y[55:95] = y[105:145] = -1
    >>> SDA(n_components=2).fit_transform(X, y).shape
    (150, 2)
    """

    _rows_may_be: ClassVar = Placement.ANYWHERE_SEARCHED
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearPairTransformer._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "neighbors": [StrOptions(set(SEARCHES))],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 5,
        alpha: float = 0.1,
        beta: float = 0.01,
        neighbors: str = "auto",
    ) -> None:
        super().__init__(n_components)
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.beta = beta
        self.neighbors = neighbors

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        codes = class_codes(known)
        if codes.max(initial=-1) < 1:
            warn_fallback(self, "fewer than two classes were given")
            return unsupervised(space)
        between = between_scatter(space, codes)
        total = between + group_scatter(space.rows, codes)
        near = nearest_graph(space.near_rows, self.n_neighbors, search=self.neighbors)
        smooth = self.alpha * graph_scatter(space.rows, near) + self.beta * np.eye(space.dim)
        return total + smooth, between

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return generalized(repel, attract, self.n_components)
