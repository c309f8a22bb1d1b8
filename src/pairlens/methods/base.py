"""The classes that turn rows and pairs into a view.

- :class:`PairTransformer`: what every method has: `fit`, `score`, `pair_distance`, `calibrate` and `pair_proba`;
- :class:`LinearPairTransformer`: a linear view from two functions of a method, `_scatters` and `_solve`;
- :class:`IncrementalPairTransformer`: the same with `partial_fit`, for scatters that are sums over pairs.

Without supervision that a method can use, all of them fit PCA and warn (:meth:`PairTransformer.fit`).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from pairlens import engines
from pairlens._markup import sketch
from pairlens._sklearn import COUNT, complete_docstring, estimator, fit_context, parameter
from pairlens._warnings import warn_fallback, warn_fewer, warn_user
from pairlens.engines import Float64, IntArray, Placement, Rows
from pairlens.exceptions import ArgumentError, InputError, ScaleWarning
from pairlens.judging.held_out import PairFolds, held_out_distances
from pairlens.judging.probability import CALIBRATION_FOLDS, FEWEST_OF_A_KIND, PairProbability
from pairlens.judging.views import Metric, check_paired, in_memory, pair_auc, pair_distance
from pairlens.spectral import rowspace
from pairlens.spectral.rowspace import Matrix, Pencil, RowSpace, Standardiser
from pairlens.spectral.scatters import BatchSums, Space
from pairlens.supervision import Constraints
from pairlens.supervision.combined import combine


@estimator
class PairTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Learn a view of rows from must-links and cannot-links.

    A method learns in :meth:`_learn` and maps rows in :meth:`transform`.

    Parameters
    ----------
    n_components : int, default=2
        Number of directions to keep. If the supervision determines fewer, fewer are returned with a
        :class:`~pairlens.exceptions.SupervisionWarning`.
    """

    # With metadata routing enabled, pipelines and searches hand `constraints` to fit and score unasked.
    __metadata_request__fit: ClassVar = {"constraints": True}
    __metadata_request__score: ClassVar = {"constraints": True}
    n_components: Any = parameter(COUNT, default=2, kw_only=False)
    _fewest_rows: ClassVar[int] = 2
    """Rows that `fit` needs at least."""
    _rows_may_be: ClassVar[Placement] = Placement.COLLECTED
    """Where the method can deal with rows."""
    _probability: PairProbability | None = field(init=False, default=None)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete_docstring(cls)

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

        Notes
        -----
        Without supervision of the kind that the method learns from, the result is that of PCA. Methods whose objective
        also describes the neighbourhoods of the rows minimise the rest of it. Both give a
        :class:`~pairlens.exceptions.SupervisionWarning`.
        """
        rows = self._read(X, fitting=True)
        return self._fit(rows, combine(y, constraints, rows.shape[0]))

    def _fit(self, rows: Rows, pairs: Constraints) -> Self:
        """Learn from checked rows and all pairs of them."""
        self._probability = None
        with engines.threads_for(rows.shape):
            self._learn(rows, pairs)
        return self

    @abstractmethod
    def _learn(self, rows: Rows, pairs: Constraints) -> None:
        """Learn from checked rows and all pairs of them, and set the attributes."""

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

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the AUC with which distance in the view tells must-links from cannot-links.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Labels, -1 or missing where unknown. Above a million pairs, a million drawn with a fixed seed are used.
        constraints : Constraints, optional
            Held-out pairs of these rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; a pair counts by the product of the weights of its rows.

        Returns
        -------
        auc : float
            0.5 is chance, 1.0 means that every must-link is shorter than every cannot-link. Without pairs of both kinds
            among the rows it is 0.5, with a warning.
        """
        if y is None and constraints is None:
            raise InputError(
                "score needs pairs to judge by", argument="constraints", remedy="Give constraints=, or labels by y=."
            )
        embedded = self.transform(X)
        rows: Rows = engines.engine_rows(embedded, fitting=True)
        if rows is None:
            rows = np.asarray(embedded)
        return pair_auc(rows, combine(y, constraints, rows.shape[0]), sample_weight)

    def pair_distance(self, A: ArrayLike, B: ArrayLike) -> NDArray[Any]:
        """Return distances of pairs of rows in the view: row i of A and row i of B are one pair.

        See Also
        --------
        pairlens.judging.pair_distance : The same for a Pipeline, with the parameters.
        """
        return pair_distance(self, A, B)

    def calibrate(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Learn how distances in the fitted view translate to probabilities, for :meth:`pair_proba`.

        The view stays as it is. Three copies of it are fitted to two thirds of the pairs each, and measure the others;
        over rows instead of pairs where there are more than two pairs for each row in them, because pairs then imply
        one another. So it takes three times as long as :meth:`fit`.

        Parameters
        ----------
        X, y, constraints
            What :meth:`fit` was given: at least three pairs of each kind.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        view = in_memory(self.transform(X))
        pairs = combine(y, constraints, len(view))
        if min(pairs.n_must_link, pairs.n_cannot_link) < FEWEST_OF_A_KIND:
            raise InputError(
                f"calibrate needs at least {FEWEST_OF_A_KIND} must-links and {FEWEST_OF_A_KIND} cannot-links, and got "
                f"{pairs.n_must_link} and {pairs.n_cannot_link}: what tells them apart cannot be learned from one kind",
                argument="constraints",
            )

        def embed(train: Constraints) -> Float64:
            # What is to be said about the pairs, fit said.
            with warnings.catch_warnings(action="ignore"):
                return in_memory(clone(self).fit(X, constraints=train).transform(X))

        held_out = held_out_distances(embed, PairFolds.draw_independent(pairs, CALIBRATION_FOLDS, 0))
        self._probability = PairProbability.of(held_out, view.var(axis=0))
        return self

    @property
    def is_calibrated(self) -> bool:
        """Return whether :meth:`pair_proba` has learned from held-out pairs."""
        return self._probability is not None

    def pair_proba(self, A: ArrayLike, B: ArrayLike, *, base_rate: float | None = None) -> Float64:
        """Return the probability that rows belong together, pair by pair, calibrated by held-out pairs.

        Parameters
        ----------
        A, B : array-like or CSR matrices of shape (n_pairs, n_features)
            Row i of A and row i of B are one pair, of rows of :meth:`fit` or new ones.
        base_rate : float in (0, 1), optional
            Share of pairs that belong together among those to be judged; by default that of must-links among the
            answers.

        Returns
        -------
        together : array of shape (n_pairs,)

        See Also
        --------
        pairlens.judging.pair_proba : The same for a Pipeline.
        """
        check_is_fitted(self)
        if self._probability is None:
            raise InputError(self._why_no_probability(), argument="constraints")
        left, right = self._seen_as_new(A), self._seen_as_new(B)
        check_paired(left, right)
        return self._probability(left, right, base_rate)

    def _seen_as_new(self, X: ArrayLike) -> Float64:
        """Return rows where the view places new ones, from which training rows may differ."""
        return in_memory(self.transform(X))

    def _why_no_probability(self) -> str:
        return (
            f"this {type(self).__name__} is not calibrated: call calibrate(X, constraints=...) after fit, with "
            "must-links and cannot-links. It fits the view three times more, to measure pairs that it did not see"
        )

    def _read(self, X: Any, *, fitting: bool) -> Rows:
        """Check what a user passed as X; `fitting` sets the features, otherwise they are compared."""
        rows = engines.checked_rows(
            self,
            X,
            fitting=fitting,
            least=self._fewest_rows,
            in_memory=self._rows_may_be is Placement.COLLECTED,
            # The highest power of the values that fit sums, unless it rescales them first.
            power=1 if fitting and getattr(self, "standardize", False) else 2,
        )
        if fitting:
            self._check_n_components(rows)
        return rows

    def _check_n_components(self, rows: Rows) -> None:
        """Raise an InputError for more directions than the rows can have."""
        # Methods that find the number take "auto".
        if self.n_components != "auto" and self.n_components > rows.shape[1]:
            reason = f"must be at most the number of features, {rows.shape[1]}"
            raise ArgumentError("n_components", self.n_components, reason)

    def _within_reach(self, rows: Rows, pairs: Constraints) -> tuple[Rows, Constraints, IntArray | None]:
        """Return the rows to learn from, the pairs of them, and their numbers if they are not all."""
        rows, chosen = engines.rows_to_learn_from(rows, self._rows_may_be, needed=pairs.rows, who=type(self).__name__)
        return rows, pairs if chosen is None else pairs[chosen], chosen

    @property
    def _n_wanted(self) -> int:
        """Number of directions asked for; methods that find the number themselves return it here."""
        return int(self.n_components)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram, and below it the map of the rows, or the distances of held-out pairs."""
        diagram: str = super()._repr_html_inner()
        groups, caption = self._learned()
        return diagram + sketch(groups, caption) if groups else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return what a notebook shows."""
        output: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in output:
            output["text/html"] = self._repr_html_inner()
        return output

    def _learned(self) -> tuple[list[tuple[str, Any]], str]:
        """Return what of the fit can be drawn, and its caption."""
        auc = float(getattr(self, "auc_", np.nan))
        judged = f"held-out AUC {auc:.2f} ± {self.auc_error_:.2f}" if np.isfinite(auc) else ""
        places, held_out = getattr(self, "embedding_", None), getattr(self, "_held_out", None)
        if places is not None and places.shape[1] > 1 and not hasattr(places, "is_cuda"):
            return [("", places[:, :2])], f"Map of {len(places):,} rows" + (f", {judged}" if judged else "")
        if held_out is None or not judged:
            return [], ""
        last = min(self.n_components_, held_out.must.shape[1]) - 1
        kinds = (("belong together", held_out.must), ("do not", held_out.cannot))
        return [(label, np.sqrt(pairs[:, last])) for label, pairs in kinds], f"Distances of held-out pairs, {judged}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class LinearPairTransformer(PairTransformer):
    r"""Compose two scatters and an eigenproblem to a linear view :math:`z = L (x - m)`.

    A method says which scatters attract and repel (:meth:`_scatters`), and which eigenproblem turns them into
    directions (:meth:`_solve`).

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions, in the dtype of X; the largest weight of each is positive.
    mean_ : array of shape (n_features,)
        Mean of the rows of X; it is mapped to the origin.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, best first.
    """

    _rows_may_be: ClassVar = Placement.MEMORY
    _needs: ClassVar[str] = "pairs"
    """The supervision without which there is only PCA: "pairs", "must-links", "cannot-links", or "" for none."""
    components_: NDArray[Any]
    mean_: NDArray[Any]

    @abstractmethod
    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        """Return what should become small and what should become large, as matrices in the coordinates of `space`."""

    @abstractmethod
    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        """Return the eigenvalues of the k best directions, and these in columns, best first."""

    def _rows_used(self, pairs: Constraints) -> IntArray | None:
        """Return the rows that decide the solution, or None if all do."""
        return None

    def _lacking(self, pairs: Constraints) -> str:
        """Return what keeps the method from more than PCA; empty if nothing does."""
        return lacking_supervision(self._needs, pairs)

    def _learn(self, rows: Rows, pairs: Constraints) -> None:
        reached, pairs, self._landmarks = self._within_reach(rows, pairs)
        in_range_of_numbers(lambda some: self._learn_directions(some, pairs, reached.dtype), reached)
        self.mean_ = (self.mean_ if reached is rows else engines.column_means(rows)).astype(rows.dtype)

    def _learn_directions(self, rows: Rows, pairs: Constraints, dtype: np.dtype[Any]) -> None:
        def coordinates(supervised: bool) -> tuple[RowSpace, Constraints]:
            return self._coordinates(rows, pairs if supervised else Constraints(n_samples=len(pairs)))

        space, self.eigenvalues_, directions = solved(self, self._lacking(pairs), coordinates, self._directions)
        self._keep(space, directions, dtype)

    def _coordinates(self, rows: Rows, pairs: Constraints) -> tuple[RowSpace, Constraints]:
        """Return the coordinates to solve in, and the pairs of the rows there; set the mean."""
        used = self._rows_used(pairs) if pairs.n_pairs else None
        anchors = pairs.rows if used is None else used
        engines.read_ahead(rows, anchors, scatter=used is None)
        self.mean_ = engines.column_means(rows)
        if used is None:
            return rowspace.row_space(rows, self.mean_, anchors=anchors), pairs
        return rowspace.row_space(rows, self.mean_, used=used), pairs[used]

    def _directions(self, space: RowSpace, pairs: Constraints) -> Pencil:
        """Solve the problem of the method."""
        attract, repel = self._scatters(space, pairs)
        return self._solve(finite(attract), finite(repel), self._n_wanted)

    def _keep(self, space: Space, directions: Matrix, dtype: np.dtype[Any]) -> None:
        with np.errstate(over="ignore"):
            self.components_ = rowspace.fix_signs(space.lift(directions)).astype(dtype)
        if not np.isfinite(self.components_).all():
            raise engines.out_of_range()

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Project rows, :math:`(x - m) L'` with :attr:`components_` as L and :attr:`mean_` as m.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            A torch tensor or a dask array, too, where :meth:`fit` takes one.

        Returns
        -------
        Z : array of shape (n_samples, n_components)
            A tensor on the device of X for a tensor, and a dask array, not computed yet, for a dask array or data
            frame.
        """
        check_is_fitted(self)
        return engines.project(self._read(X, fitting=False), self.mean_, self.components_)

    def get_mahalanobis_matrix(self) -> NDArray[Any]:
        r"""Return the matrix :math:`M = L' L` of the metric :math:`d^2(u, v) = (u - v)' M (u - v)`.

        Returns
        -------
        M : array of shape (n_features, n_features)
            Of rank n_components at most: rows that differ only in what the view leaves out have distance 0.
        """
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def get_metric(self) -> Metric:
        """Return the distance in the view as a function of two rows of features, for scikit-learn's ``metric=``.

        It keeps the components as they are now, whatever becomes of the estimator. Transforming the rows first and
        taking Euclidean distances gives the same faster.

        Returns
        -------
        metric : callable
            ``metric(u, v)``, or ``metric(u, v, squared=True)``.
        """
        check_is_fitted(self)
        return Metric(self.components_.astype(np.float64))


class IncrementalPairTransformer(LinearPairTransformer):
    """Compose a linear method that can learn from batches of rows which are gone afterwards.

    Attributes
    ----------
    n_samples_seen_ : int
        Number of rows seen by :meth:`fit`, or by :meth:`partial_fit` in all batches.
    """

    __metadata_request__partial_fit: ClassVar = {"constraints": True}
    _rows_may_be: ClassVar = Placement.ANYWHERE
    _sums: ClassVar[tuple[str, ...]] = ("must_link", "cannot_link")
    """Names of the scatters, in :data:`pairlens.spectral.scatters.SUMS`, that the method is made of."""
    _batches: BatchSums | None = None

    @abstractmethod
    def _scatters(self, space: Space, pairs: Constraints | BatchSums) -> tuple[Matrix, Matrix]:
        """Return what should become small and what should become large, from rows and pairs or from their sums."""

    def _learn(self, rows: Rows, pairs: Constraints) -> None:
        super()._learn(rows, pairs)
        self.n_samples_seen_ = int(rows.shape[0])
        self._batches = None

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Learn from one more batch of rows, with the pairs among them.

        After the last batch the directions are those that :meth:`fit` finds for all rows and pairs at once, in whatever
        order the batches came. Kept are the mean and a few matrices of n_features x n_features. It goes on from other
        batches, not from :meth:`fit`, which keeps no sums.

        Parameters
        ----------
        X, y, constraints
            As for :meth:`fit`, but of this batch, whose rows are numbered from 0. Rows of different batches are in no
            pair, whatever their labels. The first batch needs two different rows.

        Returns
        -------
        self : object
        """
        if self._batches is None and hasattr(self, "components_"):
            warn_user(
                f"this {type(self).__name__} was fitted by fit, which keeps no sums to go on from: partial_fit begins "
                "anew with this batch.",
                UserWarning,
            )
        rows = self._read(X, fitting=self._batches is None)
        self._check_n_components(rows)
        batches = BatchSums.of(rows, combine(y, constraints, rows.shape[0]), self._sums)
        if self._batches is not None:
            batches = self._batches.merge(batches)
        self._learn_sums(batches)
        self._batches, self._probability = batches, None
        return self

    def _learn_sums(self, batches: BatchSums) -> None:
        def coordinates(_: bool) -> tuple[BatchSums, BatchSums]:
            sums = batches.in_coordinates()
            return sums, sums

        try:
            lacking = lacking_supervision(self._needs, batches)
            space, self.eigenvalues_, directions = solved(self, lacking, coordinates, self._directions)
        except FloatingPointError:
            raise engines.out_of_range() from None
        self._keep(space, directions, batches.dtype)
        self.mean_ = batches.moments.mean.astype(batches.dtype)
        self.n_samples_seen_ = batches.moments.n


def solved(
    method: PairTransformer,
    lacking: str,
    coordinates: Callable[[bool], tuple[Any, Any]],
    solve: Callable[[Any, Any], Pencil],
) -> tuple[Any, Float64, Matrix]:
    """Solve the problem of a method; without supervision, or where it leaves no direction, that of PCA.

    ``coordinates(supervised)`` returns the coordinates to solve in, those of PCA if not supervised, and the pairs
    there; ``solve(space, pairs)`` eigenvalues, and directions in columns. Warnings name the method and what is
    `lacking`. FloatingPointError if squares overflow or vanish in the dtype of the rows.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if not lacking:
            space, pairs = coordinates(True)
            values, directions = solve(space, pairs) if space.dim else (np.empty(0), np.empty((0, 0)))
            lacking = "" if directions.shape[1] else "the given pairs single out no direction"
        if lacking:
            space, _ = coordinates(False)
            rowspace.check_variation(space.dim)
            values, directions = rowspace.generalized(finite(space.covariance()), np.eye(space.dim), method._n_wanted)
            if directions.shape[1] == 0:
                raise FloatingPointError
            warn_fallback(method, lacking)
    if directions.shape[1] < method._n_wanted:
        warn_fewer(method, directions.shape[1], method._n_wanted, "the rows and pairs given determine no more")
    return space, values, directions


def in_range_of_numbers(learn: Callable[[Rows], None], rows: Rows) -> None:
    """Learn from rows, in float64 where squares leave the range of float32."""
    try:
        learn(rows)
    except FloatingPointError:
        if rows.dtype == np.float64:
            raise engines.out_of_range() from None
        # Squares leave the range of float32 long before the values do.
        learn(rows.astype(np.float64))


def lacking_supervision(needs: str, pairs: Constraints | BatchSums) -> str:
    """Return the supervision that is needed and missing, as a warning says it; empty if none is."""
    given = {"pairs": pairs.n_pairs, "must-links": pairs.n_must_link, "cannot-links": pairs.n_cannot_link, "": 1}
    return "" if given[needs] else f"no {needs} were given"


def warn_without_pairs(method: PairTransformer, pairs: Constraints) -> None:
    """Warn if there are no pairs, of a method whose objective describes the neighbourhoods of the rows too."""
    if pairs.n_pairs == 0:
        warn_fallback(method, "no pairs were given", "the view shows the local structure of the rows alone")


def finite(scatter: Matrix) -> Matrix:
    """Return the scatter; FloatingPointError if squares overflowed."""
    if not np.isfinite(scatter).all():
        raise FloatingPointError
    return scatter


def checked_standardiser(method: PairTransformer, rows: Rows) -> Standardiser:
    """Return the scaling that the parameter `standardize` of a method asks for.

    Warn if it takes the meaning from principal components.
    """
    standardize = bool(method.get_params(deep=False)["standardize"])
    if standardize and rowspace.looks_principal(rows):
        warn_user(
            f"{type(method).__name__}: the columns of X look like principal components (uncorrelated, with falling "
            "deviations), and standardize=True makes the last of them count as much as the first. Pass "
            "standardize=False to keep their scale.",
            ScaleWarning,
        )
    return Standardiser.of(rows, standardize=standardize)
