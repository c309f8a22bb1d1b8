"""NPSSDR: the margin of the pairs, less what breaks the neighbourhoods."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from pairlens._deprecation import DEPRECATED, NOT_GIVEN, former_parameter
from pairlens._sklearn import Interval, StrOptions
from pairlens.engines import Placement, residual_scatter
from pairlens.graphs.edges import reconstruction_weights
from pairlens.graphs.nearest import SEARCHES
from pairlens.methods.base import LinearPairTransformer
from pairlens.methods.cmm import mean_differences
from pairlens.spectral.eigen import Matrix, Pencil, difference
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints


class NPSSDR(LinearPairTransformer):
    r"""Neighbourhood preserving semi-supervised dimensionality reduction.

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
    gamma : float, optional
        Former name of `alpha`. It still works, with a FutureWarning.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Orthonormal directions.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, largest first.

    Notes
    -----
    The available papers define this method incompletely; this form was chosen by experiment. Without cannot-links the
    mean difference over all pairs of rows, :math:`2\,\mathrm{cov}(X)`, stands in for theirs.

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

    _rows_may_be: ClassVar = Placement.ANYWHERE_SEARCHED
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearPairTransformer._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "reg": [Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 0, None, closed="left"), NOT_GIVEN],
        "neighbors": [StrOptions(set(SEARCHES))],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 5,
        alpha: float = 0.1,
        reg: float = 1e-3,
        gamma: float | str = DEPRECATED,
        neighbors: str = "auto",
    ) -> None:
        super().__init__(n_components)
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.reg = reg
        self.gamma = gamma
        self.neighbors = neighbors

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        together, apart = mean_differences(space, known)
        rebuild = reconstruction_weights(space.rows, self.n_neighbors, self.reg, search=self.neighbors)
        broken = residual_scatter(space.rows, rebuild)
        former = former_parameter(self, "gamma", "alpha", "with the same meaning")
        alpha = self.alpha if former is None else former
        return together + alpha * broken / space.n_rows, apart

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return difference(attract, repel, self.n_components)
