"""LFDA and SDA: Fisher's discriminant with what is near, inside classes or among all rows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pairlens._sklearn import COUNT, NOT_NEGATIVE, StrOptions, estimator, parameter
from pairlens.engines import (
    FloatArray,
    IntArray,
    Placement,
    graph_scatter,
    group_scatter,
    neighbors,
    row_blocks,
    take_rows,
)
from pairlens.graphs.edges import nearest_graph
from pairlens.graphs.nearest import SEARCHES
from pairlens.methods.base import LinearPairTransformer
from pairlens.spectral.rowspace import Matrix, Pencil, RowSpace, generalized
from pairlens.spectral.scatters import between_scatter
from pairlens.supervision import Constraints
from pairlens.supervision.combined import class_codes


@estimator
class LFDA(LinearPairTransformer):
    r"""Local Fisher discriminant analysis.

    With :math:`A_{ij} = \exp(-\|x_i - x_j\|^2 / (s_i s_j))`, :math:`s_i` the distance to the `n_neighbors`-th nearest
    row of the class, directions maximise :math:`w' S^b w / w' S^w w` for the Laplacian forms of

    .. math::
        W^w_{ij} = A_{ij} / n_c, \qquad W^b_{ij} = A_{ij} (1/n - 1/n_c) \quad \text{inside class c,}

    and :math:`W^w_{ij} = 0`, :math:`W^b_{ij} = 1/n` between classes. They are scaled by the root of their eigenvalue.

    Choose it when there are labels and classes fall into several clusters, which need not be drawn together.

    Parameters
    ----------
    n_neighbors : int, default=7
        Neighbour in the class whose distance is the local scale; the last one in smaller classes.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, largest first.

    Notes
    -----
    Only labelled rows count. Chains of must-links pass labels on, and rows that they join to no label form a class of
    their own. Time grows with the square of the largest class, memory does not.

    References
    ----------
    .. [1] M. Sugiyama, "Dimensionality reduction of multimodal labeled data by local Fisher discriminant analysis",
       JMLR 8, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import LFDA
    >>> X, y = load_iris(return_X_y=True)
    >>> LFDA(n_components=2).fit_transform(X, y).shape
    (150, 2)
    """

    _rows_may_be: ClassVar = Placement.ANYWHERE
    n_neighbors: int = parameter(COUNT, default=7)

    def _lacking(self, pairs: Constraints) -> str:
        return "" if np.any(class_codes(pairs) >= 0) else "no labels were given"

    def _rows_used(self, pairs: Constraints) -> IntArray | None:
        return np.flatnonzero(class_codes(pairs) >= 0)

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        codes = class_codes(pairs)
        n = np.count_nonzero(codes >= 0)
        size = np.bincount(codes[codes >= 0])
        within = np.zeros((space.dim, space.dim))
        # Pairs of different classes weigh 1/n each; see spectral.scatters for their sum.
        between = group_scatter(space.rows, codes, weight=1 - size / n) + between_scatter(space, codes)
        for c, n_c in enumerate(size):
            local = _local_scatter(take_rows(space.rows, np.flatnonzero(codes == c)), self.n_neighbors)
            within += local / n_c
            between += local * (1 / n - 1 / n_c)
        return within, between

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        values, directions = generalized(repel, attract, k)
        return values, directions * np.sqrt(np.maximum(values, 0.0))


@estimator
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
    Chains of must-links pass labels on, and rows that they join to no label form a class of their own.

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

    _rows_may_be: ClassVar = Placement.DEVICE
    n_neighbors: int = parameter(COUNT, default=5)
    alpha: float = parameter(NOT_NEGATIVE, default=0.1)
    beta: float = parameter(NOT_NEGATIVE, default=0.01)
    neighbors: str = parameter(StrOptions(set(SEARCHES)), default="auto")

    def _lacking(self, pairs: Constraints) -> str:
        return "" if class_codes(pairs).max(initial=-1) >= 1 else "fewer than two classes were given"

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        codes = class_codes(pairs)
        between = between_scatter(space, codes)
        total = between + group_scatter(space.rows, codes)
        near = nearest_graph(space.near_rows, self.n_neighbors, search=self.neighbors)
        smooth = self.alpha * graph_scatter(space.rows, near) + self.beta * np.eye(space.dim)
        return total + smooth, between

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        return generalized(repel, attract, k)


def _local_scatter(X: FloatArray, n_neighbors: int) -> Matrix:
    """Return the Laplacian form of the locally scaled affinity of the rows of one class, computed block by block."""
    n, f = X.shape
    scatter = np.zeros((f, f))
    if n < 2:
        return scatter
    k = min(n_neighbors, n - 1)
    distance = neighbors(X, n_nearest=k).nearest_distance
    scale = distance[:, -1]
    X = X - X.mean(axis=0)
    norm = np.einsum("ij,ij->i", X, X)
    for block in row_blocks(n, 8 * n):
        squared = np.maximum(norm[block, None] + norm - 2 * X[block] @ X.T, 0.0)
        local = scale[block, None] * scale
        # Rows that repeat more than n_neighbors times have scale 0: affinity 1 to each other, 0 to all others.
        affinity = np.where(
            local > 0, np.exp(-squared / np.where(local > 0, local, 1.0)), squared <= 1e-12 * norm.max()
        )
        scatter += X[block].T @ (affinity.sum(axis=1)[:, None] * X[block] - affinity @ X)
    return (scatter + scatter.T) / 2
