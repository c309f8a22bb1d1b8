"""Constrained Fisher discriminant and relevant component analysis: all variance over the variance inside chunklets."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pairlens._warnings import warn_fallback
from pairlens.engines import Placement
from pairlens.methods.incremental import IncrementalPairTransformer
from pairlens.spectral.eigen import Matrix, Pencil, generalized
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import chunklet_covariance, unsupervised
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
    directions. Without must-links the result is that of PCA, with a warning.

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

    _rows_may_be: ClassVar = Placement.ANYWHERE
    _sums: ClassVar = ("chunklets",)

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        if known.n_must_link == 0:
            warn_fallback(self, "no must-links were given")
            return unsupervised(space)
        return chunklet_covariance(space, known.chunklets()), space.covariance()

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return generalized(repel, attract, self.n_components)


class CFLD(RCA):
    r"""Constrained Fisher linear discriminant.

    Directions of unit length that maximise :math:`w' \mathrm{cov}(X) w / w' C_w w`, where :math:`C_w` is the covariance
    of the rows about the means of their chunklets, the groups of rows that chains of must-links join.

    Choose it when the scale of the directions should stay that of the features; :class:`RCA` whitens the same ones.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Directions of unit length, not orthogonal in general.

    See Also
    --------
    RCA : The same directions, scaled to whiten the chunklets.

    Notes
    -----
    Cannot-links are not used. Directions in which no chunklet varies are dropped, so few must-links give few
    directions. Without must-links the result is that of PCA, with a warning.

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

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        values, directions = super()._solve(attract, repel)
        return values, directions / np.linalg.norm(directions, axis=0)
