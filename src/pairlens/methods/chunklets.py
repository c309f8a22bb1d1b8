"""RCA, CFLD and DCA: methods of the chunklets, the groups of rows that chains of must-links join."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pairlens.engines import IntArray
from pairlens.methods.base import IncrementalPairTransformer
from pairlens.spectral.rowspace import Matrix, Pencil, attract_whitened, generalized
from pairlens.spectral.scatters import BatchSums, Space, chunklet_covariance, chunklet_scatters
from pairlens.supervision import Constraints


class RCA(IncrementalPairTransformer):
    r"""Relevant component analysis: whiten the variation inside chunklets.

    Chunklets are the groups of rows that chains of must-links join. With :math:`C_w` the covariance of the rows about
    the means of their chunklets, the directions maximise :math:`w' \mathrm{cov}(X) w / w' C_w w` and are scaled so
    that :math:`W C_w W' = I`. With ``n_components = n_features`` this is the whitening of :math:`C_w`, up to a rotation
    that no distance feels.

    Choose it when there are only must-links, and they are correct: one wrong link joins two chunklets.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Directions that whiten the chunklets.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import RCA, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> RCA().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=30, random_state=0)).shape
    (150, 2)
    """

    _needs: ClassVar = "must-links"
    _sums: ClassVar = ("chunklets",)

    def _scatters(self, space: Space, pairs: Constraints | BatchSums) -> tuple[Matrix, Matrix]:
        return chunklet_covariance(space, pairs), space.covariance()

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        return generalized(repel, attract, k)


class CFLD(IncrementalPairTransformer):
    r"""Constrained Fisher linear discriminant.

    Directions of unit length that maximise :math:`w' \mathrm{cov}(X) w / w' C_w w`, where :math:`C_w` is the covariance
    of the rows about the means of their chunklets, the groups of rows that chains of must-links join.

    Choose it when the scale of the directions should stay that of the features; :class:`RCA` whitens the same ones.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Directions of unit length, not orthogonal in general.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import CFLD, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> CFLD().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=30, random_state=0)).shape
    (150, 2)
    """

    _needs: ClassVar = "must-links"
    _sums: ClassVar = ("chunklets",)

    def _scatters(self, space: Space, pairs: Constraints | BatchSums) -> tuple[Matrix, Matrix]:
        return chunklet_covariance(space, pairs), space.covariance()

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
    components_ : array of shape (n_components, n_features)
        Directions that whiten the chunklets.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import DCA, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> DCA().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=60, random_state=0)).shape
    (150, 2)
    """

    _needs: ClassVar = "cannot-links"
    _sums: ClassVar = ("chunklets", "between_chunklets")

    def _rows_used(self, pairs: Constraints) -> IntArray | None:
        return pairs.rows

    _scatters = staticmethod(chunklet_scatters)
    _solve = staticmethod(attract_whitened)
