"""LinearPairLens and PairLens: one choice that needs no choosing, for few and noisy pairs."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import DTYPES, Interval, StrOptions, check_is_fitted, fit_context, validate_data
from pairlens._threads import threads_for
from pairlens._warnings import warn_user
from pairlens.engines import Rows
from pairlens.exceptions import SupervisionWarning
from pairlens.judging import HeldOutDistances, PairFolds, SuspiciousPairs, held_out_distances, suspicious_pairs
from pairlens.judging.scores import CHANCE
from pairlens.methods._stages import (
    FEWEST_FOR_FOLDS,
    FirstStage,
    SecondStage,
    Standardiser,
    exact_means,
    first_stage,
    principal_rows,
    second_stage,
)
from pairlens.methods.base import LinearPairTransformer, PairTransformer
from pairlens.methods.kernel_bwdr import KernelBWDR
from pairlens.spectral.eigen import Matrix, Pencil, generalized
from pairlens.spectral.pairproblem import pair_matrices
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints
from pairlens.supervision.combined import combine

__all__ = ["LinearPairLens", "PairLens"]

LEAST_COORDINATES = 10
LARGEST_AUTO = 15
FIRST_STAGE_COLUMNS = 15
N_NEIGHBORS = 10
SPREAD = 0.5
GUARD_FOLDS = 3
FEWEST_FOR_GUARD = 5


class _Judged(PairTransformer):
    """What both estimators know of themselves from held-out pairs."""

    _held_out: HeldOutDistances | None
    _fewest_judged: ClassVar[int]
    """Pairs of a kind below which none is held out."""

    def suspicious_pairs(self) -> SuspiciousPairs:
        """The pairs of :meth:`fit`, those that look most like wrong answers first.

        Each pair is judged by a view that did not see it: its suspicion is the probability that a pair of such a
        distance is of the other kind, given how many there are of each.

        Returns
        -------
        SuspiciousPairs
            With the arrays ``pairs``, ``link`` (+1 or -1) and ``suspicion``, and ``to_frame()``.
        """
        check_is_fitted(self)
        if self._held_out is None:
            raise ValueError(
                f"suspicious_pairs needs at least {self._fewest_judged} must-links and {self._fewest_judged} "
                "cannot-links in fit: with fewer, none can be held out and judged by the others."
            )
        return suspicious_pairs(self._held_out)

    def _warn_without_pairs(self, known: Constraints) -> None:
        if known.n_pairs == 0:
            warn_user(
                f"{type(self).__name__}: no pairs were given, so the view shows the local structure of the rows alone. "
                "Give must-links and cannot-links by constraints=, or labels by y.",
                SupervisionWarning,
            )

    def _judge(self, held_out: HeldOutDistances | None, n_dims: int) -> None:
        """Keep the AUC of held-out pairs and its standard error."""
        self._held_out = held_out
        self.auc_ = self.auc_error_ = float("nan")
        if held_out is not None:
            self.auc_ = held_out.auc(min(n_dims, held_out.must.shape[1]))
            self.auc_error_ = held_out.standard_error(self.auc_)

    def _warn_of_contradiction(self) -> None:
        """Say so if held-out pairs are told apart worse than by chance, by more than the noise of few pairs."""
        if self._held_out is not None and self.auc_ < CHANCE - 2 * self._held_out.margin:
            warn_user(
                f"{type(self).__name__}: held-out must-links are longer than held-out cannot-links (AUC "
                f"{self.auc_:.2f}, where chance is 0.50). Many answers are wrong, or must_link and cannot_link are "
                "swapped; suspicious_pairs() lists them.",
                SupervisionWarning,
            )


class LinearPairLens(_Judged, LinearPairTransformer):
    r"""A linear view from few and noisy pairs.

    The rows are z-scored and reduced to the principal components that hold 99 % of their variance. There each pair
    spreads to the neighbours of its two rows, must-links are joined by a prior that calls near rows alike, cannot-links
    by one that calls all rows different,

    .. math::
        W = \frac{n_M [S_M] + c p W_0}{n_M + c p}, \qquad B = \frac{n_C [S_C] + p [T]}{n_C + p},

    and the directions maximise :math:`w' B w / w' W w` (see :mod:`pairlens.spectral.pairproblem`). The strength c of
    the prior follows from how must-links behave when they are held out: the fewer of them look right, the stronger.

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
    mean_ : array of shape (n_features,)
        Mean of the rows of X.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    PairLens : A non-linear second stage on top.

    Notes
    -----
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
        "random_state": ["random_state", np.random.Generator],
    }

    _fewest_judged = FEWEST_FOR_FOLDS
    n_components: Any

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        n_neighbors: int = 10,
        spread: float = 0.5,
        prior: float | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.spread = spread
        self.prior = prior
        self.random_state = random_state

    @property
    def _n_wanted(self) -> int:
        return self.n_components_

    def _check_n_components(self, X: Rows) -> None:
        if self.n_components != "auto":
            super()._check_n_components(X)

    def _fit_coordinates(self, X: Rows, known: Constraints) -> tuple[RowSpace, Constraints]:
        mean = exact_means(X)
        self.mean_ = mean.astype(X.dtype)
        if self.n_components == "auto":
            # The same coordinates as if the number that will be found had been asked for.
            space = principal_rows(X, mean, LEAST_COORDINATES, known.rows)
            self.n_components_ = min(LARGEST_AUTO, max(1, space.dim))
        else:
            self.n_components_ = int(self.n_components)
            space = principal_rows(X, mean, max(LEAST_COORDINATES, self.n_components_), known.rows)
        return space, known

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        stage = first_stage(
            space.rows,
            known,
            n_neighbors=self.n_neighbors,
            spread=self.spread,
            prior=self.prior,
            random_state=self.random_state,
        )
        self.purity_, self.prior_strength_ = stage.purity, stage.strength
        held_out = stage.held_out(self.n_components_)
        if self.n_components == "auto":
            self.n_components_ = min(2, space.dim) if held_out is None else held_out.smallest_good_dimension()
        self._judge(held_out, self.n_components_)
        self._warn_without_pairs(known)
        self._warn_of_contradiction()
        return pair_matrices(stage.field, known, stage.strength)

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return generalized(repel, attract, self.n_components_)

    def _keep(self, space: RowSpace, directions: NDArray[np.float64], X: Rows) -> None:
        self.n_components_ = directions.shape[1]
        super()._keep(space, directions, X)


class PairLens(_Judged):
    r"""A view from few and noisy pairs that needs no choice.

    First a :class:`LinearPairLens` with 15 directions, then a second pair problem in non-linear coordinates of its
    result: two directions come from diffusion coordinates :math:`\lambda_j^4 \psi_j` of the neighbour graph, other
    numbers from 50 kernel principal components (RBF, median width). A guard compares the view with that of a shrunk
    :class:`KernelBWDR` on held-out pairs and takes that if it is better by more than the standard error: classes that
    ignore the local structure of the rows need it.

    Choose it first, unless the view has to be linear.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of directions. "auto" takes the number that :class:`LinearPairLens` finds from held-out pairs.
    guard : bool, default=True
        Whether to compare with :class:`KernelBWDR`.
    random_state : int, RandomState, Generator or None, default=None
        Makes the folds over the pairs repeatable.

    Attributes
    ----------
    chosen_ : {"diffusion", "kernel", "kernel-bwdr"}
        The second stage, or that the guard took :class:`KernelBWDR`.
    n_components_ : int
        Number of directions.
    purity_ : float
        Estimated share of must-links that behave like must-links.
    prior_strength_ : float
        Strength of the local prior.
    auc_, auc_error_ : float
        AUC with which distance tells held-out pairs apart, and its standard error; NaN with fewer than five pairs of a
        kind.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    LinearPairLens : The first stage.

    Notes
    -----
    A new row of the diffusion form takes the weighted mean of its ten nearest training rows; one that coincides with
    training rows takes their place, so :meth:`transform` of the training rows is what :meth:`fit_transform` gives.

    The diffusion form needs the neighbours and the eigenvectors of a graph of all rows; kernel principal components are
    exact up to 2,000 rows and those of 2,000 evenly spaced anchors beyond (Nystroem). Comparing on held-out pairs fits
    both views three times more.

    Honest limits: with no pairs at all the view already profits from local structure, and 20 pairs add little; up
    to 60 pairs with a fifth of them wrong add next to nothing; for 1-NN all features stay the best space.

    References
    ----------
    .. [1] The method is this library's own: docs/pairlens.md defines it, docs/league.md shows how it stands.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from pairlens import Constraints, PairLens
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    >>> PairLens(n_components=2, random_state=0).fit(X, constraints=pairs).transform(X).shape
    (178, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "guard": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    _fewest_judged = FEWEST_FOR_GUARD

    def __init__(self, n_components: int | str = 2, *, guard: bool = True, random_state: Any = None) -> None:
        self.n_components = n_components
        self.guard = guard
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Learn the view.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            All rows, those about which nothing is known too.
        y : array-like of shape (n_samples,), optional
            Labels, -1 or missing where unknown. All pairs of labelled rows become constraints.
        constraints : Constraints, optional
            Pairs of rows that belong together or do not. Adds to what `y` says.

        Returns
        -------
        self : object
        """
        rows: Rows = validate_data(self, X, dtype=DTYPES, accept_sparse="csr", ensure_min_samples=2)
        known = combine(y, constraints, rows.shape[0])
        if self.n_components != "auto" and self.n_components > rows.shape[0] - 1:
            raise ValueError(f"n_components={self.n_components} must be less than the number of rows, {rows.shape[0]}.")
        self._warn_without_pairs(known)
        with threads_for(rows.shape):
            self._learn(rows, known)
        self._warn_of_contradiction()
        found = len(self.eigenvalues_)
        if found < self.n_components_:
            warn_user(
                f"PairLens found {found} usable directions of the n_components={self.n_components_} asked for: the "
                "rows given determine no more.",
                SupervisionWarning,
            )
        return self

    def _learn(self, rows: Rows, known: Constraints) -> None:
        """Both stages, and the guard."""
        self._mean = exact_means(rows)
        space = principal_rows(rows, self._mean, LEAST_COORDINATES, known.rows)
        if space.dim == 0:
            raise ValueError("X has no variation: all its rows are equal, so there is no direction to learn.")
        first = first_stage(
            space.rows,
            known,
            n_neighbors=N_NEIGHBORS,
            spread=SPREAD,
            prior="auto",
            random_state=self.random_state,
        )
        self.purity_, self.prior_strength_ = first.purity, first.strength
        self.n_components_ = self._choose_dimension(first, known)
        directions = first.solve(known, FIRST_STAGE_COLUMNS)[1]
        self._first_components = space.lift(directions)
        self._second, _ = self._second_stage(first.field.rows @ directions, known)
        self.chosen_ = "diffusion" if self.n_components_ == 2 else "kernel"
        self.eigenvalues_ = self._second.eigenvalues
        self._other: KernelBWDR | None = None
        self._ask_the_guard(rows, first, known)

    def _choose_dimension(self, first: FirstStage, known: Constraints) -> int:
        if self.n_components != "auto":
            return int(self.n_components)
        held_out = first.held_out(LARGEST_AUTO)
        return min(2, len(first.field.rows) - 1) if held_out is None else held_out.smallest_good_dimension()

    def _second_stage(self, Z: NDArray[np.float64], known: Constraints) -> tuple[SecondStage, NDArray[np.float64]]:
        return second_stage(
            Z,
            known,
            n_components=self.n_components_,
            n_neighbors=N_NEIGHBORS,
            spread=SPREAD,
            strength=self.prior_strength_,
        )

    def _ask_the_guard(self, rows: Rows, first: FirstStage, known: Constraints) -> None:
        """Judge the view by held-out pairs, and take KernelBWDR if that is clearly better."""

        def lens(train: Constraints) -> NDArray[np.float64]:
            return self._second_stage(first.field.rows @ first.solve(train, FIRST_STAGE_COLUMNS)[1], train)[1]

        if min(known.n_must_link, known.n_cannot_link) < FEWEST_FOR_GUARD:
            self._judge(None, self.n_components_)
            return
        folds = PairFolds.draw(known, GUARD_FOLDS, self.random_state)
        self._judge(held_out_distances(lens, folds), self.n_components_)
        if not self.guard:
            return
        standardised = Standardiser.of(rows, self._mean)
        other = KernelBWDR(min(self.n_components_, rows.shape[0] - 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SupervisionWarning)
            Z = standardised(rows)
            space, _ = other._fit_coordinates(Z, known)

            def kernel_bwdr(train: Constraints) -> NDArray[np.float64]:
                return np.asarray(space.rows @ other._solve(*other._scatters(space, train))[1])

            rival = held_out_distances(kernel_bwdr, folds)
            n_dims = min(self.n_components_, rival.must.shape[1])
            if rival.auc(n_dims) <= self.auc_ + rival.margin:
                return
            self._other, self._standardised = other.fit(Z, constraints=known), standardised
        self.chosen_, self.eigenvalues_ = "kernel-bwdr", other.eigenvalues_
        self._judge(rival, n_dims)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Project rows, those of :meth:`fit` or new ones.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        Z : array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        rows: Rows = validate_data(self, X, dtype=DTYPES, accept_sparse="csr", reset=False)
        if self._other is not None:
            view = self._other.transform(self._standardised(rows))
        else:
            components = self._first_components
            view = self._second.embed(rows @ components.T - self._mean @ components.T)
        return np.asarray(view).astype(rows.dtype, copy=False)
