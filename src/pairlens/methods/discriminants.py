"""Linear methods that set one scatter against another: of chunklets, of pairs, of classes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import sparse

from pairlens import engines
from pairlens._sklearn import COUNT, NOT_NEGATIVE, POSITIVE, StrOptions, estimator, parameter
from pairlens.engines import FloatArray, IntArray, Placement
from pairlens.graphs.edges import nearest_edges, reconstruction_weights
from pairlens.graphs.nearest import SEARCHES
from pairlens.methods.base import IncrementalPairTransformer, LinearPairTransformer, warn_without_pairs
from pairlens.spectral import scatters
from pairlens.spectral.rowspace import Matrix, Pencil, RowSpace, attract_whitened, difference, generalized
from pairlens.spectral.scatters import BatchSums, Space
from pairlens.supervision import Constraints
from pairlens.supervision.combined import class_codes


class RCA(IncrementalPairTransformer):
    r"""Relevant component analysis: whiten the variation inside chunklets.

    Chunklets are the groups of rows that chains of must-links join. With :math:`C_w` the covariance of the rows about
    the means of their chunklets, the directions maximise :math:`w' \mathrm{cov}(X) w / w' C_w w` and are scaled so
    that :math:`W C_w W' = I`. With ``n_components = n_features`` this is the whitening of :math:`C_w`, up to a rotation
    that no distance feels.

    Choose it when there are only must-links, and they are correct: one wrong link joins two chunklets.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Ratio of all variance to the variance inside chunklets, largest first.

    See Also
    --------
    CFLD : The same directions at unit length.

    Notes
    -----
    Cannot-links are not used. Directions in which no chunklet varies are dropped, so few must-links give few
    directions.

    References
    ----------
    .. [1] A. Bar-Hillel, T. Hertz, N. Shental, D. Weinshall, "Learning distance functions using equivalence relations",
       ICML 2003.
    """

    _needs: ClassVar = "must-links"
    _sums: ClassVar = ("chunklets",)

    _scatters = staticmethod(scatters.chunklet_covariances)

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        return generalized(repel, attract, k)


class CFLD(IncrementalPairTransformer):
    r"""Constrained Fisher linear discriminant.

    Directions of unit length that maximise :math:`w' \mathrm{cov}(X) w / w' C_w w`, where :math:`C_w` is the covariance
    of the rows about the means of their chunklets, the groups of rows that chains of must-links join.

    Choose it when the scale of the directions should stay that of the features; :class:`RCA` whitens the same ones.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Ratio of all variance to the variance inside chunklets, largest first.

    See Also
    --------
    RCA : The same directions, scaled to whiten the chunklets.

    Notes
    -----
    Cannot-links are not used. Directions in which no chunklet varies are dropped, so few must-links give few
    directions.

    References
    ----------
    .. [1] T. Hertz, N. Shental, A. Bar-Hillel, D. Weinshall, "Enhancing image and video retrieval: learning via
       equivalence constraints", CVPR 2003.
    """

    _needs: ClassVar = "must-links"
    _sums: ClassVar = ("chunklets",)

    _scatters = staticmethod(scatters.chunklet_covariances)

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        values, directions = generalized(repel, attract, k)
        return values, directions / np.linalg.norm(directions, axis=0)


class DCA(IncrementalPairTransformer):
    r"""Discriminative component analysis.

    Chunklets are the groups of rows that chains of must-links join; a cannot-linked row in no must-link is a chunklet
    of one. :math:`C_b` is the mean of :math:`(m_i - m_j)(m_i - m_j)'` over the pairs of chunklets that a cannot-link
    joins, :math:`C_w` the covariance of the rows about the means of their chunklets. The null space of :math:`C_b` is
    dropped, :math:`C_b` is whitened, and the directions of smallest :math:`C_w` are kept and scaled so that
    :math:`W C_w W' = I`.

    Choose it for chunklets with many cannot-links between them. It gives at most as many directions as the joined
    chunklets differ in, and a single wrong must-link can merge two classes.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Variance inside chunklets relative to that between them, smallest first.

    Notes
    -----
    Variances inside chunklets below 1e-12 of the largest are raised to that before dividing; without must-links there
    are none, and :math:`C_b` is whitened instead.

    References
    ----------
    .. [1] S. Hoi, W. Liu, M. Lyu, W.-Y. Ma, "Learning distance metrics with contextual constraints for image
       retrieval", CVPR 2006.
    """

    _needs: ClassVar = "cannot-links"
    _sums: ClassVar = ("chunklets", "between_chunklets")

    def _rows_used(self, pairs: Constraints) -> IntArray | None:
        return pairs.rows

    _scatters = staticmethod(scatters.chunklet_scatters)
    _solve = staticmethod(attract_whitened)


@estimator
class SSDR(IncrementalPairTransformer):
    r"""Semi-supervised dimensionality reduction.

    The orthonormal leading eigenvectors of

    .. math:: \mathrm{cov}(X) + \alpha \frac{S_C}{n_C} - \beta \frac{S_M}{n_M},

    where :math:`S_C` and :math:`S_M` sum :math:`(x_i - x_j)(x_i - x_j)'` over the :math:`n_C` cannot-links and the
    :math:`n_M` must-links (weights count in both).

    Choose it as the mildest step away from PCA: without pairs it is PCA. With the default `beta` the must-links
    outweigh the variance, so a few wrong ones do harm; lower `beta` when answers are noisy.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the cannot-links.
    beta : float, default=20.0
        Weight of the must-links.
    normalization : {"full", "half"}, default="full"
        Whether each unordered pair counts in full or by half. The paper sums over ordered pairs with a factor 1/2,
        which reads either way; "half" is what the comparison of the BWDR paper used.

    References
    ----------
    .. [1] D. Zhang, Z.-H. Zhou, S. Chen, "Semi-supervised dimensionality reduction", SDM 2007.
    """

    alpha: float = parameter(NOT_NEGATIVE, default=1.0)
    beta: float = parameter(NOT_NEGATIVE, default=20.0)
    normalization: str = parameter(StrOptions({"full", "half"}), default="full")

    def _scatters(self, space: Space, pairs: Constraints | BatchSums) -> tuple[Matrix, Matrix]:
        share = 0.5 if self.normalization == "half" else 1.0
        attract, repel = np.zeros((space.dim, space.dim)), space.covariance()
        if pairs.n_cannot_link:
            repel += self.alpha * share * scatters.cannot_link_scatter(space, pairs) / pairs.cannot_link_total
        if pairs.n_must_link:
            attract += self.beta * share * scatters.must_link_scatter(space, pairs) / pairs.must_link_total
        return attract, repel

    _solve = staticmethod(difference)


class CMM(IncrementalPairTransformer):
    r"""Constraint margin maximisation.

    The available papers define this method incompletely; this form was chosen by experiment.

    The orthonormal leading eigenvectors of :math:`S_C / n_C - S_M / n_M`, the mean difference of the cannot-links less
    that of the must-links.

    Choose it when there are pairs of both kinds, more of them than features, and the variance of the unlabelled rows
    should not count.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Margin in each direction, largest first.

    Notes
    -----
    The solution lies in the span of the rows in pairs. Without cannot-links, the mean difference over all pairs of
    rows, :math:`2\,\mathrm{cov}(X)`, takes the place of theirs.

    References
    ----------
    .. [1] F. Wang, S. Chen, T. Li, C. Zhang, "Semi-supervised metric learning by maximizing constraint margin",
       CIKM 2008.
    """

    def _rows_used(self, pairs: Constraints) -> IntArray | None:
        return pairs.rows if pairs.n_cannot_link else None

    _scatters = staticmethod(scatters.mean_pair_scatters)
    _solve = staticmethod(difference)


@estimator
class NPSSDR(LinearPairTransformer):
    r"""Neighbourhood preserving semi-supervised dimensionality reduction.

    The available papers define this method incompletely; this form was chosen by experiment.

    The orthonormal leading eigenvectors of

    .. math:: \frac{S_C}{n_C} - \frac{S_M}{n_M} - \frac{\alpha}{n} X' (I - R)' (I - R) X,

    where R rebuilds each row from its nearest neighbours as in locally linear embedding.

    Choose it over :class:`CMM` when the unlabelled rows lie on a curved surface whose neighbourhoods should survive.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours that rebuild a row; all other rows if there are fewer.
    alpha : float, default=0.1
        Weight of the neighbourhoods.
    reg : float, default=1e-3
        Regularisation of the local reconstruction, relative to the trace of the local Gram matrix.

    Notes
    -----
    Without cannot-links the mean difference over all pairs of rows, :math:`2\,\mathrm{cov}(X)`, takes the place of
    theirs.

    References
    ----------
    .. [1] J. Wei, H. Peng, "Neighbourhood preserving based semi-supervised dimensionality reduction",
       Electronics Letters 44, 2008.
    """

    _rows_may_be: ClassVar = Placement.DEVICE
    _needs: ClassVar = ""
    n_neighbors: int = parameter(COUNT, default=5)
    alpha: float = parameter(NOT_NEGATIVE, default=0.1)
    reg: float = parameter(POSITIVE, default=1e-3)
    neighbors: str = parameter(StrOptions(set(SEARCHES)), default="auto")

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        warn_without_pairs(self, pairs)
        together, apart = scatters.mean_pair_scatters(space, pairs)
        rebuild = reconstruction_weights(space.rows, self.n_neighbors, self.reg, search=self.neighbors)
        rows = engines.rows_in_memory(space.rows)
        residual = rows - rebuild @ rows
        broken = residual.T @ residual
        broken = broken.toarray() if sparse.issparse(broken) else broken
        return together + self.alpha * broken / space.n_rows, apart

    _solve = staticmethod(difference)


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
        between = engines.group_scatter(space.rows, codes, weight=1 - size / n) + scatters.between_scatter(space, codes)
        for c, n_c in enumerate(size):
            local = _local_scatter(engines.take_rows(space.rows, np.flatnonzero(codes == c)), self.n_neighbors)
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
    alpha : float, default=0.1
        Weight of the neighbourhoods.
    beta : float, default=0.01
        Weight of the length of the direction.

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
        between = scatters.between_scatter(space, codes)
        total = between + engines.group_scatter(space.rows, codes)
        near = nearest_edges(space.near_rows, self.n_neighbors, search=self.neighbors)
        graph = engines.weight_matrix(near, 1.0, space.n_rows)
        smooth = self.alpha * engines.graph_scatter(space.rows, graph) + self.beta * np.eye(space.dim)
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
    distance = engines.neighbors(X, n_nearest=k).nearest_distance
    scale = distance[:, -1]
    X = X - X.mean(axis=0)
    norm = np.einsum("ij,ij->i", X, X)
    for block in engines.row_blocks(n, 8 * n):
        squared = np.maximum(norm[block, None] + norm - 2 * X[block] @ X.T, 0.0)
        local = scale[block, None] * scale
        # Rows that repeat more than n_neighbors times have scale 0: affinity 1 to each other, 0 to all others.
        affinity = np.where(
            local > 0, np.exp(-squared / np.where(local > 0, local, 1.0)), squared <= 1e-12 * norm.max()
        )
        scatter += X[block].T @ (affinity.sum(axis=1)[:, None] * X[block] - affinity @ X)
    return (scatter + scatter.T) / 2
