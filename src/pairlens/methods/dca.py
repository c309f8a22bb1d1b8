"""DCA: discriminative component analysis over chunklets."""

from __future__ import annotations

from typing import ClassVar

from pairlens._warnings import warn_fallback
from pairlens.engines import IntArray, Placement
from pairlens.methods.incremental import IncrementalPairTransformer
from pairlens.spectral.eigen import Matrix, Pencil, attract_whitened
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import between_chunklets, chunklet_covariance, unsupervised
from pairlens.supervision import Constraints


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
    are none, and :math:`C_b` is whitened instead. Without cannot-links the result is that of PCA, with a warning.

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

    _rows_may_be: ClassVar = Placement.ANYWHERE
    _sums: ClassVar = ("chunklets", "between_chunklets")

    def _rows_used(self, known: Constraints) -> IntArray | None:
        return known.rows if known.n_cannot_link else None

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        if known.n_cannot_link == 0:
            warn_fallback(self, "no cannot-links were given")
            return unsupervised(space)
        chunklets = known.chunklets()
        return chunklet_covariance(space, chunklets), between_chunklets(space, known, chunklets)

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return attract_whitened(attract, repel, self.n_components)
