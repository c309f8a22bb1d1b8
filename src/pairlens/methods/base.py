"""The base classes of the methods, each with one job.

- :class:`PairTransformer`: the contract with scikit-learn: input, supervision, routing, score;
- :class:`SpectralPairTransformer`: two scatters and an eigenproblem, what to do where they determine too little;
- :class:`LinearPairTransformer`: directions that are weights of the features, for rows wherever they are;
- :class:`ScaleAware`: whether the features are scaled first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._docs import complete_docstring
from pairlens._sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    Interval,
    TransformerMixin,
    fit_context,
)
from pairlens._warnings import warn_fallback, warn_fewer, warn_user
from pairlens.engines import (
    IntArray,
    Placement,
    Rows,
    checked_rows,
    column_means,
    out_of_range,
    read_ahead,
    rows_to_learn_from,
    threads_for,
)
from pairlens.exceptions import ScaleWarning
from pairlens.judging.probability import PairProbabilities
from pairlens.judging.views import JudgedView, LinearView
from pairlens.spectral.eigen import Matrix, Pencil, fix_signs, generalized
from pairlens.spectral.rowspace import RowSpace, Standardiser, check_variation, looks_principal, row_space
from pairlens.spectral.scatters import unsupervised
from pairlens.supervision import Constraints
from pairlens.supervision.combined import combine


class PairTransformer(JudgedView, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """The contract of all methods: what goes into `fit`, how rows are checked, what `score` means.

    A method says in :meth:`_learn` what it makes of rows and pairs, and in :meth:`transform` where rows go.
    """

    # With metadata routing enabled, pipelines and searches hand `constraints` to fit unasked.
    __metadata_request__fit: ClassVar = {"constraints": True}
    _fewest_rows: ClassVar[int] = 2
    """Rows that `fit` needs at least."""
    _rows_may_be: ClassVar[Placement] = Placement.COLLECTED
    """Where the method can deal with rows."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete_docstring(cls)

    @abstractmethod
    def _learn(self, rows: Rows, known: Constraints) -> None:
        """Learn from checked rows and all that is known about them, and set the attributes."""

    @abstractmethod
    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Project rows, those of :meth:`fit` or new ones.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        Z : array of shape (n_samples, n_components)
        """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Learn the view.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            All rows, those about which nothing is known too. The linear methods also take dask arrays and data
            frames, and torch tensors.
        y : array-like of shape (n_samples,), optional
            Labels, -1 or missing where unknown. All pairs of labelled rows become constraints.
        constraints : Constraints, optional
            Pairs of rows that belong together or do not. Adds to what `y` says.

        Returns
        -------
        self : object
        """
        return self._fit(X, lambda n_samples: combine(y, constraints, n_samples))

    def _fit(self, X: Any, known_of: Callable[[int], Constraints]) -> Self:
        """Learn from rows, and from what is known about that number of them."""
        rows = self._read(X, fitting=True)
        self._check_n_components(rows)
        known = known_of(rows.shape[0])
        with threads_for(rows.shape):
            self._learn(rows, known)
        return self

    def _read(self, X: Any, *, fitting: bool, power: int = 2) -> Rows:
        """Check what a user passed as X.

        Parameters
        ----------
        X : any
        fitting : bool
            Whether to set the features; otherwise they are compared.
        power : int
            The highest power of the values as they are that `fit` sums; 0 if it rescales them.
        """
        in_memory = self._rows_may_be is Placement.COLLECTED
        return checked_rows(self, X, fitting=fitting, least=self._fewest_rows, in_memory=in_memory, power=power)

    def _within_reach(self, rows: Rows, known: Constraints) -> tuple[Rows, Constraints, IntArray | None]:
        """The rows to learn from, what is known about them, and their numbers if they are not all."""
        # An index of the rows, unlike an exact search, needs them in one memory.
        indexed = self._rows_may_be is Placement.ANYWHERE_SEARCHED and getattr(self, "neighbors", "auto") == "approx"
        placement = Placement.DEVICE if indexed else self._rows_may_be
        rows, chosen = rows_to_learn_from(rows, placement, needed=known.rows, who=type(self).__name__)
        return rows, known if chosen is None else known[chosen], chosen

    @abstractmethod
    def _check_n_components(self, X: Rows) -> None:
        """Refuse more directions than the rows can have."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class ScaleAware(PairTransformer):
    """A method that scales the features first.

    Parameters
    ----------
    standardize : bool, default=True
        Whether to divide each feature by its deviation; those in which few rows differ, such as pixels at the border of
        pictures, count less than that. Choose False for features on one scale of their own: principal components,
        embeddings, pixels, and the rows of a :class:`TableEncoder`.
    """

    _scale_constraints: ClassVar[dict[str, list[Any]]] = {"standardize": ["boolean"]}
    standardize: bool

    def _read(self, X: Any, *, fitting: bool, power: int = 2) -> Rows:
        return super()._read(X, fitting=fitting, power=0 if fitting and self.standardize else power)

    def _standardiser(self, rows: Rows) -> Standardiser:
        """Scale rows as it was asked for; warn if that takes from principal components what they say."""
        if self.standardize and looks_principal(rows):
            warn_user(
                f"{type(self).__name__}: the columns of X look like principal components (uncorrelated, with falling "
                "deviations), and standardize=True makes the last of them count as much as the first. Pass "
                "standardize=False to keep their scale.",
                ScaleWarning,
            )
        return Standardiser.of(rows, standardize=self.standardize)


class SpectralPairTransformer(PairProbabilities, PairTransformer):
    """Methods made of two scatters and an eigenproblem.

    A method adds which scatters attract and repel (:meth:`_scatters`), and which eigenproblem turns them into
    directions (:meth:`_solve`).

    Parameters
    ----------
    n_components : int, default=2
        Number of directions to keep. If the supervision determines fewer, fewer are returned with a
        :class:`~pairlens.exceptions.SupervisionWarning`.
    """

    components_: NDArray[Any]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, n_components: int = 2) -> None:
        self.n_components = n_components

    @abstractmethod
    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        """What should become small and what should become large, as matrices in the coordinates of `space`."""

    @abstractmethod
    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        """Eigenvalues, and the directions in columns, best first."""

    @abstractmethod
    def _fit_coordinates(self, X: Rows, known: Constraints) -> tuple[RowSpace, Constraints]:
        """The coordinates to solve in, and what is known about the rows in them."""

    @abstractmethod
    def _keep(self, space: RowSpace, directions: NDArray[np.float64], X: Rows) -> None:
        """Store what :meth:`transform` needs."""

    def _learn(self, rows: Rows, known: Constraints) -> None:
        """Learn, in float64 where squares leave the range of float32."""
        self._probability = None
        try:
            self._learn_in_dtype(rows, known)
        except FloatingPointError:
            if rows.dtype == np.float64:
                raise out_of_range() from None
            # Squares leave the range of float32 long before the values do.
            self._learn_in_dtype(rows.astype(np.float64), known)
            self._store_as(rows.dtype)

    def _learn_in_dtype(self, rows: Rows, known: Constraints) -> None:
        """Find and store the directions; FloatingPointError if squares overflow or vanish in the dtype of the rows."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            space, local = self._fit_coordinates(rows, known)
            values, directions = self._solve_in(space, local)
            if directions.shape[1] == 0:
                space, _ = self._fit_coordinates(rows, Constraints(n_samples=rows.shape[0]))
                check_variation(space.dim)
                identity, covariance = unsupervised(space)
                values, directions = generalized(finite(covariance), identity, self._n_wanted)
                if directions.shape[1] == 0:
                    raise FloatingPointError
                warn_fallback(self, "the given pairs single out no direction")
        if directions.shape[1] < self._n_wanted:
            warn_fewer(self, directions.shape[1], self._n_wanted, "the rows and pairs given determine no more")
        self.eigenvalues_ = values
        self._keep(space, directions, rows)

    def _solve_in(self, space: RowSpace, known: Constraints) -> Pencil:
        if space.dim == 0:
            return np.empty(0), np.empty((0, 0))
        attract, repel = self._scatters(space, known)
        return self._solve(finite(attract), finite(repel))

    def _store_as(self, dtype: np.dtype[Any]) -> None:
        """Convert what was learned to the dtype of the rows."""
        self.components_ = self.components_.astype(dtype)

    @property
    def _n_wanted(self) -> int:
        """How many directions are asked for; methods that find the number themselves say it here."""
        return self.n_components

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _check_n_components(self, X: Rows) -> None:
        # Methods that find the number take "auto".
        if self.n_components != "auto" and self.n_components > X.shape[1]:
            raise ValueError(f"n_components={self.n_components} must be at most the number of features, {X.shape[1]}.")


class LinearPairTransformer(LinearView, SpectralPairTransformer):
    """Base of the methods whose directions are weights of the features.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions, in the dtype of X; the largest weight of each is positive.
    mean_ : array of shape (n_features,)
        Mean of the rows of X; it is mapped to the origin.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the directions in the problem of the method.
    """

    _rows_may_be: ClassVar = Placement.MEMORY

    def _learn(self, rows: Rows, known: Constraints) -> None:
        reached, known, self._landmarks = self._within_reach(rows, known)
        super()._learn(reached, known)
        if reached is not rows:
            self.mean_ = column_means(rows).astype(rows.dtype)

    def _rows_used(self, known: Constraints) -> IntArray | None:
        """The rows that decide the solution, if not all do."""
        return None

    def _fit_coordinates(self, X: Rows, known: Constraints) -> tuple[RowSpace, Constraints]:
        used = self._rows_used(known)
        anchors = known.rows if used is None else used
        read_ahead(X, anchors, scatter=used is None)
        mean = column_means(X)
        self.mean_ = mean.astype(X.dtype)
        if used is None:
            return row_space(X, mean, anchors=anchors), known
        return row_space(X, mean, used=used), known[used]

    def _keep(self, space: RowSpace, directions: NDArray[np.float64], X: Rows) -> None:
        with np.errstate(over="ignore"):
            self.components_ = fix_signs(space.lift(directions)).astype(X.dtype)
        if not np.isfinite(self.components_).all():
            raise out_of_range()

    def _store_as(self, dtype: np.dtype[Any]) -> None:
        super()._store_as(dtype)
        self.mean_ = self.mean_.astype(dtype)


def finite(scatter: Matrix) -> Matrix:
    """The scatter, or FloatingPointError if squares overflowed."""
    if not np.isfinite(scatter).all():
        raise FloatingPointError
    return scatter
