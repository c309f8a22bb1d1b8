"""SSDR, CMM and NPSSDR: the difference between how far cannot-links and must-links spread, and what the rows add."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import sparse

from pairlens._sklearn import COUNT, NOT_NEGATIVE, POSITIVE, StrOptions, estimator, parameter
from pairlens.engines import IntArray, Placement, rows_in_memory
from pairlens.graphs.edges import reconstruction_weights
from pairlens.graphs.nearest import SEARCHES
from pairlens.methods.base import IncrementalPairTransformer, LinearPairTransformer, warn_without_pairs
from pairlens.spectral.rowspace import Matrix, RowSpace, difference
from pairlens.spectral.scatters import BatchSums, Space, cannot_link_scatter, mean_pair_scatters, must_link_scatter
from pairlens.supervision import Constraints


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

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Orthonormal directions.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, largest first.

    References
    ----------
    .. [1] D. Zhang, Z.-H. Zhou, S. Chen, "Semi-supervised dimensionality reduction", SDM 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import Constraints, SSDR
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=30, random_state=0)
    >>> SSDR(n_components=2).fit_transform(X, constraints=pairs).shape
    (150, 2)
    """

    alpha: float = parameter(NOT_NEGATIVE, default=1.0)
    beta: float = parameter(NOT_NEGATIVE, default=20.0)
    normalization: str = parameter(StrOptions({"full", "half"}), default="full")

    def _scatters(self, space: Space, pairs: Constraints | BatchSums) -> tuple[Matrix, Matrix]:
        share = 0.5 if self.normalization == "half" else 1.0
        attract, repel = np.zeros((space.dim, space.dim)), space.covariance()
        if pairs.n_cannot_link:
            repel += self.alpha * share * cannot_link_scatter(space, pairs) / pairs.cannot_link_total
        if pairs.n_must_link:
            attract += self.beta * share * must_link_scatter(space, pairs) / pairs.must_link_total
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
    components_ : array of shape (n_components, n_features)
        Orthonormal directions.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import CMM, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> CMM().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=30, random_state=0)).shape
    (150, 2)
    """

    def _rows_used(self, pairs: Constraints) -> IntArray | None:
        return pairs.rows if pairs.n_cannot_link else None

    _scatters = staticmethod(mean_pair_scatters)
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

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Orthonormal directions.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, largest first.

    Notes
    -----
    Without cannot-links the mean difference over all pairs of rows, :math:`2\,\mathrm{cov}(X)`, takes the place of
    theirs.

    References
    ----------
    .. [1] J. Wei, H. Peng, "Neighbourhood preserving based semi-supervised dimensionality reduction",
       Electronics Letters 44, 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import NPSSDR, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> NPSSDR().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=30, random_state=0)).shape
    (150, 2)
    """

    _rows_may_be: ClassVar = Placement.DEVICE
    _needs: ClassVar = ""
    n_neighbors: int = parameter(COUNT, default=5)
    alpha: float = parameter(NOT_NEGATIVE, default=0.1)
    reg: float = parameter(POSITIVE, default=1e-3)
    neighbors: str = parameter(StrOptions(set(SEARCHES)), default="auto")

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        warn_without_pairs(self, pairs)
        together, apart = mean_pair_scatters(space, pairs)
        rebuild = reconstruction_weights(space.rows, self.n_neighbors, self.reg, search=self.neighbors)
        rows = rows_in_memory(space.rows)
        residual = rows - rebuild @ rows
        broken = residual.T @ residual
        broken = broken.toarray() if sparse.issparse(broken) else broken
        return together + self.alpha * broken / space.n_rows, apart

    _solve = staticmethod(difference)
