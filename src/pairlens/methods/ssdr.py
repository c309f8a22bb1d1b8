"""SSDR: keep the variance, push cannot-links apart, pull must-links together."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from pairlens._sklearn import Interval, StrOptions
from pairlens.engines import Placement
from pairlens.methods.incremental import IncrementalPairTransformer
from pairlens.spectral.eigen import Matrix, Pencil, difference
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import cannot_link_scatter, must_link_scatter
from pairlens.supervision import Constraints


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

    _rows_may_be: ClassVar = Placement.ANYWHERE
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **IncrementalPairTransformer._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "normalization": [StrOptions({"full", "half"})],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: float = 1.0,
        beta: float = 20.0,
        normalization: str = "full",
    ) -> None:
        super().__init__(n_components)
        self.alpha = alpha
        self.beta = beta
        self.normalization = normalization

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        share = 0.5 if self.normalization == "half" else 1.0
        attract, repel = np.zeros((space.dim, space.dim)), space.covariance()
        if known.n_cannot_link:
            repel += self.alpha * share * cannot_link_scatter(space, known) / known.cannot_link_total
        if known.n_must_link:
            attract += self.beta * share * must_link_scatter(space, known) / known.must_link_total
        return attract, repel

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return difference(attract, repel, self.n_components)
