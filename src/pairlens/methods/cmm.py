"""CMM: the margin between cannot-links and must-links."""

from __future__ import annotations

from typing import ClassVar

from pairlens._warnings import warn_fallback
from pairlens.engines import IntArray, Placement
from pairlens.methods.incremental import IncrementalPairTransformer
from pairlens.spectral.eigen import Matrix, Pencil, difference
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import cannot_link_scatter, must_link_scatter
from pairlens.supervision import Constraints


class CMM(IncrementalPairTransformer):
    r"""Constraint margin maximisation.

    The orthonormal leading eigenvectors of :math:`S_C / n_C - S_M / n_M`, the mean difference of the cannot-links less
    that of the must-links.

    Choose it when there are pairs of both kinds, more of them than features, and the variance of the unlabelled rows
    is no guide.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Orthonormal directions.
    eigenvalues_ : array of shape (n_components,)
        Margin in each direction, largest first.

    Notes
    -----
    The available papers define this method incompletely; this form was chosen by experiment. The solution lies in the
    span of the rows in pairs. Without cannot-links, the mean difference over all pairs of rows,
    :math:`2\,\mathrm{cov}(X)`, stands in for theirs; without any pairs the result is therefore PCA, with a warning.

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

    _rows_may_be: ClassVar = Placement.ANYWHERE

    def _rows_used(self, known: Constraints) -> IntArray | None:
        return known.rows if known.n_cannot_link else None

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        if known.n_must_link == known.n_cannot_link == 0:
            warn_fallback(self, "no pairs were given")
        return mean_differences(space, known)

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return difference(attract, repel, self.n_components)


def mean_differences(space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
    """Mean outer difference of the must-links and of the cannot-links: S_M / n_M and S_C / n_C.

    Without cannot-links the mean over all pairs of rows stands in; without must-links their term is zero.
    """
    together = must_link_scatter(space, known)
    if known.n_must_link:
        together /= known.must_link_total
    if known.n_cannot_link:
        return together, cannot_link_scatter(space, known) / known.cannot_link_total
    return together, 2 * space.covariance()
