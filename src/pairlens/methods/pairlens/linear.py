"""LinearPairLens: the first stage by itself."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import Interval, StrOptions, fit_context
from pairlens.engines import Placement, Rows, project
from pairlens.exceptions import ConflictWarning
from pairlens.graphs.nearest import SEARCHES
from pairlens.judging.probability import JudgedByHeldOutPairs, in_memory
from pairlens.methods.base import LinearPairTransformer, ScaleAware
from pairlens.methods.pairlens.problem import FEWEST_FOR_FOLDS, FirstStage
from pairlens.spectral.eigen import Matrix, Pencil, generalized
from pairlens.spectral.rowspace import LEAST_COORDINATES, RowSpace, exact_means, principal_rows
from pairlens.supervision import Constraints, Triplets
from pairlens.supervision.combined import combine, over_rows

LARGEST_AUTO = 15
"""Most directions that "auto" finds."""


class LinearPairLens(JudgedByHeldOutPairs, ScaleAware, LinearPairTransformer):
    r"""A linear view from few and noisy pairs.

    The rows are z-scored and reduced to the principal components that hold 99 % of their variance. There each pair
    spreads to the neighbours of its two rows, must-links are joined by a prior that calls near rows alike, cannot-links
    by one that calls all rows different,

    .. math::
        W = \frac{n_M [S_M] + c p W_0}{n_M + c p}, \qquad B = \frac{n_C [S_C] + p [T]}{n_C + p},

    and the directions maximise :math:`w' B w / w' W w` (see :mod:`pairlens.methods.pairlens.problem`). The strength c
    of the prior follows from how must-links behave when they are held out: the fewer of them look right, the stronger.

    Choose it when the view must be linear, has to be explained by feature weights, or rows are many. It needs no
    tuning.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of directions. "auto" takes the fewest whose AUC of held-out pairs is within one standard error of the
        best.
    n_neighbors : int, default=10
        Neighbours of each row in the graph over which pairs spread.
    spread : float in [0, 1), default=0.5
        How far pairs spread: the probability that a walk from the row of a pair goes on.
    prior : float or "auto", default="auto"
        Strength c of the local prior; "auto" is 2 / purity.
    random_state : int, RandomState, Generator or None, default=None
        Makes the folds over the pairs repeatable.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions, as weights of the raw features.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, largest first.
    n_components_ : int
        Number of directions.
    purity_ : float
        Estimated share of must-links that behave like must-links; 0.6 if there are fewer than 8 pairs of a kind.
    prior_strength_ : float
        The c that was used.
    auc_, auc_error_ : float
        AUC with which distance in the view tells held-out pairs apart, and its standard error; NaN without both kinds.

    See Also
    --------
    PairLens : A non-linear second stage on top.

    Notes
    -----
    Triplets of classes, read as pairs, add to few pairs: 100 triplets beside 40 pairs raised the AUC of held-out pairs
    from .958 to .974 (wine), .948 to .963 (iris), .870 to .891 (breast cancer) and .877 to .891 (digits; means of three
    draws, two directions). Where answers follow a graded likeness rather than groups, :class:`LMCA` and :class:`SCML`
    are better with triplets: with 300 of them .86 and .89 of held-out triplets were right on wine, against .76.

    Without pairs, the view is that of the local structure alone, with a warning. With up to 60 pairs of which a fifth
    are wrong, pairs add next to nothing to it.

    References
    ----------
    .. [1] The method is this library's own: docs/pairlens.md defines it, docs/league.md shows how it stands.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from pairlens import Constraints, LinearPairLens
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    >>> LinearPairLens(n_components=2, random_state=0).fit(X, constraints=pairs).transform(X).shape
    (178, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "spread": [Interval(Real, 0, 1, closed="left")],
        "prior": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "neighbors": [StrOptions(set(SEARCHES))],
        **ScaleAware._scale_constraints,
        "random_state": ["random_state", np.random.Generator],
    }

    _rows_may_be: ClassVar = Placement.DEVICE
    __metadata_request__fit: ClassVar = {"constraints": True, "triplets": True}
    _fewest_judged = FEWEST_FOR_FOLDS
    n_components: Any

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        n_neighbors: int = 10,
        spread: float = 0.5,
        prior: float | str = "auto",
        neighbors: str = "auto",
        standardize: bool | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.spread = spread
        self.prior = prior
        self.neighbors = neighbors
        self.standardize = standardize
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        triplets: Triplets | None = None,
    ) -> Self:
        """Learn the view.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            All rows, those about which nothing is known too. Also dask arrays and data frames, and torch tensors.
        y : array-like of shape (n_samples,), optional
            Labels, -1 or missing where unknown. All pairs of labelled rows become constraints.
        constraints : Constraints, optional
            Pairs of rows that belong together or do not. Adds to what `y` says.
        triplets : Triplets, optional
            Read as pairs that add to the others: a triplet attracts its near pair and repels its far one; see
            :meth:`Triplets.to_constraints`.

        Returns
        -------
        self : object
        """

        def known_of(n_samples: int) -> Constraints:
            if triplets is None:
                return combine(y, constraints, n_samples)
            pairs = over_rows(triplets, Triplets, n_samples).to_constraints()
            if constraints is not None:
                # Comparisons are relative: that their pairs contradict others is no mistake of anybody.
                with warnings.catch_warnings(action="ignore", category=ConflictWarning):
                    pairs = over_rows(constraints, Constraints, n_samples).merge(pairs, on_conflict="warn")
            return combine(y, pairs, n_samples)

        return self._fit(X, known_of)

    @property
    def _n_wanted(self) -> int:
        return self.n_components_

    def _fit_coordinates(self, X: Rows, known: Constraints) -> tuple[RowSpace, Constraints]:
        mean = exact_means(X)
        self.mean_ = mean.astype(X.dtype)
        if self.n_components == "auto":
            # The same coordinates as if the number that will be found had been asked for.
            space = principal_rows(X, mean, standardize=self.standardized_, anchors=known.rows)
            self.n_components_ = min(LARGEST_AUTO, max(1, space.dim))
        else:
            self.n_components_ = int(self.n_components)
            least = max(LEAST_COORDINATES, self.n_components_)
            space = principal_rows(X, mean, standardize=self.standardized_, at_least=least, anchors=known.rows)
        return space, known

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        stage = FirstStage.of(space.rows, n_neighbors=self.n_neighbors, spread=self.spread, search=self.neighbors)
        first = stage.fit(known, prior=self.prior, random_state=self.random_state)
        self.purity_, self.prior_strength_ = first.purity, first.strength
        held_out = first.held_out(self.n_components_)
        if self.n_components == "auto":
            self.n_components_ = min(2, space.dim) if held_out is None else held_out.smallest_good_dimension()
        self._judge(held_out, self.n_components_)
        self._warn_without_pairs(known)
        self._warn_of_contradiction()
        return stage.problem.matrices(known, first.strength)

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return generalized(repel, attract, self.n_components_)

    def _keep(self, space: RowSpace, directions: NDArray[np.float64], X: Rows) -> None:
        self.n_components_ = directions.shape[1]
        embedded = project(space.rows, np.zeros(space.dim), directions.T)
        self._calibrate_by_held_out(self._held_out, np.var(in_memory(embedded), axis=0))
        super()._keep(space, directions, X)
