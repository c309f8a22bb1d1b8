"""LinearPairLens: the pair learner in principal components of the rows."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import Interval, StrOptions, fit_context
from pairlens.engines import Placement, Rows, project
from pairlens.exceptions import ConflictWarning
from pairlens.graphs.nearest import SEARCHES
from pairlens.judging.probability import JudgedByHeldOutPairs, in_memory
from pairlens.learning.learner import FEWEST_FOR_FOLDS, N_COLUMNS, PRIORS, PairLearner, Prior, choose_prior, weighted
from pairlens.methods.base import LinearPairTransformer, ScaleAware
from pairlens.spectral.eigen import Matrix, Pencil
from pairlens.spectral.rowspace import MOST_COORDINATES, RowSpace, whitened_rows
from pairlens.supervision import Constraints, Triplets
from pairlens.supervision.combined import combine, over_rows

SHAPES = ("near", "rows", "local", "iso", "white")


class LinearPairLens(JudgedByHeldOutPairs, ScaleAware, LinearPairTransformer):
    r"""A linear view from few and noisy pairs.

    In whitened principal components of the rows, where no direction is favoured, must-links are weighed against a prior
    of what differs inside a group, and cannot-links against the total scatter,

    .. math::
        W = \frac{n_M S_M + c p W_0}{n_M + c p}, \qquad B = \frac{n_C S_C + p\, b I}{n_C + p},

    and the directions maximise :math:`\mu = w' B w / w' W w`, each scaled by :math:`\sqrt{1 - 1 / \mu}` (see
    :mod:`pairlens.learning.learner`). The shape of the prior, its strength c, and whether pairs spread to the
    neighbours of their rows are chosen by held-out pairs.

    Choose it when the view must be linear, has to be explained by feature weights, or rows are many. It needs no
    tuning.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of directions. "auto" takes the fewest whose AUC of held-out pairs is within one standard error of the
        best.
    prior : {"auto", "near", "rows", "local", "iso", "white"}, default="auto"
        What differs inside a group: what near rows differ in ("local"), the same in all directions of the rows ("iso"),
        the same two with a strength that is measured along the rows ("near", "rows"), or everything in proportion
        ("white"). With "auto" it is "near" unless held-out pairs clearly ask for "local" or "iso". With "white" the
        probabilities of pairs do not depend on any invertible linear map of the features.
    random_state : int, RandomState, Generator or None, default=None
        Makes the folds over the pairs repeatable.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions, as weights of the raw features.
    eigenvalues_ : array of shape (n_components,)
        The ratio :math:`\mu` of each direction, largest first.
    n_components_ : int
        Number of directions.
    prior_ : Prior
        The prior that was used: its `shape`, `spread` and `strength`.
    purity_ : float
        Estimated share of must-links that behave like must-links; 0.6 if there are fewer than 8 pairs of a kind.
    auc_, auc_error_ : float
        AUC with which distance in the view tells held-out pairs apart, and its standard error; NaN without both kinds.

    See Also
    --------
    PairLens : A non-linear view that starts from this one.

    Notes
    -----
    Triplets of classes, read as pairs, add to few pairs. Where answers follow a graded likeness rather than groups,
    :class:`LMCA` and :class:`SCML` are better with triplets.

    Without pairs, the view is that of the local structure alone, with a warning.

    References
    ----------
    .. [1] The method is this library's own: docs/pairlens.md defines it, docs/league.md and docs/notions.md show how it
       stands.

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
        "prior": [StrOptions({"auto", *SHAPES})],
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
        prior: str = "auto",
        neighbors: str = "auto",
        standardize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
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
        standardiser = self._standardiser(X)
        self.mean_ = standardiser.mean.astype(X.dtype)
        wanted = N_COLUMNS if self.n_components == "auto" else int(self.n_components)
        space, self._values = whitened_rows(X, standardiser, at_most=max(MOST_COORDINATES, wanted), anchors=known.rows)
        self.n_components_ = min(wanted, max(1, space.dim)) if self.n_components == "auto" else wanted
        return space, known

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        near = self.prior in ("auto", "near", "local")
        learner = PairLearner.of(space.rows, self._values, near=near, search=self.neighbors)
        del self._values
        chosen = PRIORS if self.prior == "auto" else tuple(Prior(self.prior, 0.0, c) for c in (3.0, 1.0))
        choice = choose_prior(learner, known, self.random_state, priors=chosen)
        self.prior_, self.purity_ = choice.prior, choice.purity
        held_out = None if choice.folds is None else learner.held_out(choice.folds, self.prior_, self.n_components_)
        if self.n_components == "auto":
            self.n_components_ = min(2, space.dim) if held_out is None else held_out.smallest_good_dimension()
        self._judge(held_out, self.n_components_)
        self._warn_without_pairs(known)
        if choice.folds is not None:
            self._warn_of_contradiction(learner.plain_auc(choice.folds.known))
        return learner.matrices(known, self.prior_)

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return weighted(attract, repel, self.n_components_)

    def _keep(self, space: RowSpace, directions: NDArray[np.float64], X: Rows) -> None:
        self.n_components_ = directions.shape[1]
        embedded = project(space.rows, np.zeros(space.dim), directions.T)
        self._calibrate_by_held_out(self._held_out, np.var(in_memory(embedded), axis=0))
        super()._keep(space, directions, X)
