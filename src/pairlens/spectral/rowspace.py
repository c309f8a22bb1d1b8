r"""The coordinates in which a linear method is solved, the eigenproblems there, and the way back to features.

The directions a method can find lie in the span of the rows it looks at. So there are three ways to set up the same
problem, and a method does not see which one was taken:

- as many rows as features or more: the features themselves are the coordinates, without those that are constant;
- fewer rows than features: an orthonormal basis of the row space, from the eigenvectors of the c x c Gram matrix
  :math:`(X - m)(X - m)' = U \Lambda U'`. The coordinates are :math:`U \Lambda^{1/2}`, the basis
  :math:`(X - m)' U \Lambda^{-1/2}` is never formed, and sparse rows stay sparse;
- more than :data:`EXACT_LIMIT` of both: the span of :data:`LANDMARKS` rows, those in pairs first. This one is an
  approximation and says so.

The pair learner is solved in whitened principal components (:func:`whitened_rows`), where the unit of a feature and its
correlation with others do not matter.

The eigenproblems take symmetric float64 matrices of the size of the coordinates and return ``(values, vectors)`` with
the vectors in columns, best first, at most as many as were asked for. Directions in which nothing varies are cut by one
relative tolerance, so rank-deficient problems give fewer columns, never NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens import engines
from pairlens._warnings import warn_user
from pairlens.engines import EngineRows, FloatArray, IntArray, Rows
from pairlens.exceptions import ApproximationWarning, InputError

RELATIVE_TOLERANCE = 1e-9
"""Eigenvalues up to this share of the largest one count as zero."""

NEGLIGIBLE = 1e-28
"""A denominator up to this share of the numerator is rounding: the square of what double precision resolves."""

WHITEN_FLOOR = 1e-12
"""Smallest eigenvalue that a direction is divided by, relative to the largest."""

Matrix = NDArray[np.float64]
Pencil = tuple[NDArray[np.float64], NDArray[np.float64]]

EXACT_LIMIT = 5000
"""Largest eigenproblem that is solved exactly: f x f or rows x rows, whichever is smaller."""

LANDMARKS = 1000
"""Rows that span the coordinates beyond that."""

GRAM_TOLERANCE = 1e-13
"""Eigenvalues of the Gram matrix up to this share of the largest are rounding (singular values: 3e-7)."""

LEAST_VARIANCE = 1e-7
"""Principal components with at most this share of the variance of the first are rounding."""

MOST_COORDINATES = 100
"""Principal components that are kept of more."""

FEWEST_PRINCIPAL = 3
MOST_CORRELATED = 0.01
"""Columns from which, and correlation up to which, features are taken for principal components."""

LEAST_STEADINESS = 0.5
"""Ratio of the mean absolute to the standard deviation of a column, below which few rows differ in it."""


def symmetric(A: Matrix, at_most: int | None = None) -> Pencil:
    """Return eigenvalues, largest first, with orthonormal eigenvectors: all, or the leading ones."""
    return engines.symmetric_eigen(A, A, at_most)


def range_basis(
    A: Matrix,
    tol: float = RELATIVE_TOLERANCE,
    *,
    at_most: int | None = None,
    rounding: float = 0.0,
    near: Rows | None = None,
) -> Pencil:
    """Return eigenvalues and eigenvectors of a positive semi-definite matrix without its null space, largest first.

    `rounding` is the size of the errors that A was computed with, where it may be nothing but these. The work is done
    where the rows `near` are.
    """
    values, vectors = engines.symmetric_eigen(A if near is None else near, A, at_most)
    keep = values > max(tol * values.max(initial=0.0), rounding)
    return values[keep], vectors[:, keep]


def difference(attract: Matrix, repel: Matrix, k: int) -> Pencil:
    """Return orthonormal leading eigenvectors of ``repel - attract`` among the directions in which anything varies.

    The difference has negative eigenvalues, above which the zeros of the null space would rank: without the cut a
    constant feature would win.
    """
    _, basis = range_basis(attract + repel)
    values, vectors = symmetric(basis.T @ (repel - attract) @ basis)
    return values[:k], basis @ vectors[:, :k]


def generalized(A: Matrix, B: Matrix, k: int, *, largest: bool = True) -> Pencil:
    r"""Return extreme generalised eigenvectors of :math:`A w = \lambda B w` with :math:`w' B w = 1`.

    Simultaneous diagonalisation: B's null space is dropped, B is whitened, and A is diagonalised there. Where the
    largest are asked for, directions with a zero or negative eigenvalue are dropped: they carry nothing of A.
    """
    scale, basis = range_basis(B)
    # An identity, as in PCA, is not a sum of squares of the rows: it is exact, whatever their unit.
    if scale.max(initial=0.0) <= NEGLIGIBLE * np.trace(A) and not np.array_equal(B, np.eye(len(B))):
        return np.empty(0), np.empty((len(A), 0))
    whiten = basis / np.sqrt(scale)
    values, vectors = symmetric(whiten.T @ A @ whiten)
    if largest:
        keep = values > RELATIVE_TOLERANCE * values.max(initial=0.0)
        values, vectors = values[keep], vectors[:, keep]
    else:
        values, vectors = values[::-1], vectors[:, ::-1]
    return values[:k], whiten @ vectors[:, :k]


def attract_whitened(attract: Matrix, repel: Matrix, k: int) -> Pencil:
    r"""Return directions of smallest :math:`w' A w / w' B w`, scaled so that :math:`w' A w = 1`.

    Eigenvalues below :data:`WHITEN_FLOOR` of the largest are raised to that before dividing; if A is zero, B is
    whitened instead.
    """
    values, directions = generalized(attract, repel, len(repel), largest=False)
    largest = values.max(initial=0.0)
    if largest > 0:
        directions = directions / np.sqrt(np.maximum(values, WHITEN_FLOOR * largest))
    return values[:k], directions[:, :k]


def fix_signs(components: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows with their largest entry positive; of entries that tie within rounding, the first decides."""
    size = np.abs(components)
    decisive = np.argmax(size >= (1 - 1e-6) * size.max(axis=1, keepdims=True), axis=1)
    return components * np.where(components[np.arange(len(components)), decisive] < 0, -1.0, 1.0)[:, None]


@dataclass(frozen=True)
class RowSpace:
    """Hold rows in the coordinates of a method, not centred where these are the features; the offset is their mean.

    `input_rows` are those whose distances say who is near whom, where the coordinates do not: the input of a kernel
    method. `all_rows` says whether these are all rows of the data, whose mean is then the offset. `lift` turns
    directions in these coordinates (in columns) into components in the features (in rows).
    """

    rows: Rows
    offset: NDArray[np.float64]
    input_rows: Rows | None = None
    all_rows: bool = False
    lift: Callable[[Matrix], Matrix] = np.transpose

    @property
    def near_rows(self) -> Rows:
        """The rows whose distances say who is near whom."""
        return self.rows if self.input_rows is None else self.input_rows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return int(self.rows.shape[1])

    def total_scatter(self, weight: FloatArray | None = None) -> NDArray[np.float64]:
        """Return the scatter of the rows about the mean of the data, each with its weight."""
        return engines.weighted_scatter(self.rows, weight=weight, offset=self.offset, is_mean=self.all_rows)

    def covariance(self) -> NDArray[np.float64]:
        """Return the total scatter divided by the number of rows."""
        return self.total_scatter() / self.n_rows


@dataclass(frozen=True)
class _Dual:
    """Hold a basis of the span of some rows as the combinations of the rows that form it."""

    anchors: Rows
    centre: NDArray[np.float64]
    combination: NDArray[np.float64]

    def lift(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        coefficients = (self.combination @ directions).T
        combined = np.asarray((self.anchors.T @ coefficients.T).T, dtype=np.float64)
        return combined - np.outer(coefficients.sum(axis=1), self.centre)

    def coordinates(self, rows: Rows) -> NDArray[np.float64]:
        result = np.empty((rows.shape[0], self.combination.shape[1]))
        for block in engines.row_blocks(rows.shape[0], 8 * self.anchors.shape[0]):
            few = engines.rows_in_memory(rows[block])
            result[block] = _centred_product(few, self.anchors, self.centre) @ self.combination
        return result


def row_space(
    X: Rows, mean: NDArray[np.float64], *, used: IntArray | None = None, anchors: IntArray | None = None
) -> RowSpace:
    """Choose the coordinates for a method, measured from the mean of all rows.

    `used` are the only rows the method looks at, all by default, and `anchors` those among them that the span must
    contain when not all can: those in pairs.
    """
    rows = X if used is None else X[used]
    n, f = rows.shape
    if min(n, f) > EXACT_LIMIT:
        return _landmark_space(rows, mean, np.empty(0, dtype=np.int64) if anchors is None else anchors)
    if f <= n:
        varying = np.flatnonzero(engines.varying_columns(rows))
        if len(varying) == f:
            return RowSpace(rows, mean, all_rows=used is None)

        def lift(directions: Matrix) -> Matrix:
            components = np.zeros((directions.shape[1], f))
            components[:, varying] = directions.T
            return components

        return RowSpace(rows[:, varying], mean[varying], all_rows=used is None, lift=lift)
    dual, coordinates = _dual_basis(engines.rows_in_memory(rows), mean)
    return RowSpace(coordinates, np.zeros(coordinates.shape[1]), lift=dual.lift)


def check_variation(n_directions: int) -> None:
    """Raise an InputError if there is no direction in which rows differ."""
    if n_directions == 0:
        raise InputError("X has no variation: all its rows are equal, so there is no direction to learn", argument="X")


def principal_directions(space: RowSpace, k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the covariance of the rows, and its leading directions (in rows); ValueError if there are none."""
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = space.covariance()
    if not np.isfinite(covariance).all():
        raise engines.out_of_range()
    _, directions = generalized(covariance, np.eye(space.dim), k)
    check_variation(directions.shape[1])
    return covariance, directions.T


def _landmark_space(rows: Rows, mean: NDArray[np.float64], anchors: IntArray) -> RowSpace:
    n, f = rows.shape
    others = np.setdiff1d(engines.evenly_spaced(n, LANDMARKS), anchors)
    chosen = np.sort(np.concatenate([anchors[:EXACT_LIMIT], others[: max(0, LANDMARKS - len(anchors))]]))
    warn_user(
        f"X has {n} rows and {f} features, both more than {EXACT_LIMIT}: the method is solved in the span of "
        f"{len(chosen)} rows, those in pairs first. Reduce the features beforehand for another choice.",
        ApproximationWarning,
    )
    dual, _ = _dual_basis(engines.rows_in_memory(rows, chosen), mean)
    return RowSpace(dual.coordinates(rows), np.zeros(dual.combination.shape[1]), lift=dual.lift)


def _dual_basis(anchors: Rows, centre: NDArray[np.float64]) -> tuple[_Dual, NDArray[np.float64]]:
    gram = _centred_product(anchors, anchors, centre)
    values, vectors = range_basis((gram + gram.T) / 2, GRAM_TOLERANCE)
    root = np.sqrt(values)
    return _Dual(anchors, centre, vectors / root), vectors * root


def _centred_product(left: Rows, right: Rows, centre: NDArray[np.float64]) -> Matrix:
    """Return ``(left - centre) @ (right - centre).T`` of few rows in memory."""
    if sparse.issparse(left):
        product = np.asarray((left.astype(np.float64) @ right.T).toarray())
        product -= (left @ centre)[:, None] + (right @ centre)[None, :]
        return product + centre @ centre
    product = np.zeros((left.shape[0], right.shape[0]))
    # Blocks of columns, so that no float64 copy of all is made.
    for block in engines.row_blocks(left.shape[1], 8 * max(left.shape[0], right.shape[0]), 1 << 25):
        shift = centre[block]
        product += (left[:, block] - shift) @ (right[:, block] - shift).T
    return product


@dataclass(frozen=True)
class Standardiser:
    """Scale columns by the statistics of training rows; sparse rows keep their zeros and are only scaled.

    That is enough for what depends on differences of rows, which all the uses here do.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, X: Rows, *, standardize: bool = True) -> Standardiser:
        mean = exact_means(X)
        return cls(mean, column_scale(X, mean, standardize))

    def __call__(self, X: Rows) -> Rows:
        return engines.rescaled(X, offset=self.mean, scale=self.scale)


def exact_means(X: Rows) -> NDArray[np.float64]:
    """Return means of the columns to the accuracy of float64; those of float32 rows are accurate to 1e-6 at first."""
    mean = engines.column_means(X)
    if isinstance(X, np.ndarray) and X.dtype == np.float32:
        mean = mean + engines.column_means(X - mean)
    return mean


def column_scale(X: Rows, mean: NDArray[np.float64], standardize: bool) -> NDArray[np.float64]:
    r"""Return what columns are divided by: a measure of their spread, or 1 where their scale is kept.

    .. math::
        s_j \max\left(1, \frac{s_j}{2 a_j}\right), \qquad
        s_j^2 = \mathrm{mean}_i (x_{ij} - m_j)^2, \quad a_j = \mathrm{mean}_i |x_{ij} - m_j|

    A normal column has :math:`a_j = 0.8 s_j` and is divided by its deviation. Where fewer than about one row in 15
    differs, as in a pixel at the border of a picture or a rare word, :math:`a_j < s_j / 2`: z-scores would put these
    few rows far from all others. Here 0 and 1 are four units apart then, however rare one of them is. The scale of
    constant columns is infinite, so that they become zero.
    """
    deviation = engines.column_deviations(X, mean)
    if not np.isfinite(deviation).all():
        raise engines.out_of_range()
    varies = deviation > 1e-10 * np.maximum(np.abs(mean), 1e-300)
    scale = np.where(varies, 1.0, np.inf)
    if standardize:
        steadiness = engines.absolute_deviations(X, mean)[varies] / deviation[varies]
        scale[varies] = deviation[varies] * np.maximum(1.0, LEAST_STEADINESS / steadiness)
    return scale


def looks_principal(X: Rows) -> bool:
    """Return whether columns are those of a principal component analysis: uncorrelated, with falling deviations.

    Their scale says how much each of them counts, and dividing by it raises noise to the level of the signal. Numbers
    that people measure are neither uncorrelated nor in order. It takes three columns and more rows than columns to
    tell.
    """
    n, f = X.shape
    if not (FEWEST_PRINCIPAL <= f < n):
        return False
    if f > EXACT_LIMIT:
        return False
    mean = exact_means(X)
    deviation = engines.column_deviations(X, mean)
    if not (deviation > 0).all() or (np.diff(deviation) > 1e-3 * deviation[:-1]).any():
        return False
    covariance = (
        engines.weighted_scatter(engines.rescaled(X, scale=deviation), offset=mean / deviation, is_mean=True) / n
    )
    return bool(np.abs(covariance - np.diag(np.diag(covariance))).max() < MOST_CORRELATED)


def whitened_rows(
    X: Rows, standardiser: Standardiser, *, at_most: int = MOST_COORDINATES, anchors: IntArray | None = None
) -> tuple[RowSpace, NDArray[np.float64]]:
    """Return scaled rows in whitened principal components, and the variances of these before they were whitened.

    Every component above rounding is kept, up to `at_most`: the least of them may be what people ask about. Where not
    all rows can be spanned, the `anchors` are: those in pairs.
    """
    mean, scale = standardiser.mean, standardiser.scale
    space = row_space(engines.rescaled(X, scale=scale), mean / scale, anchors=anchors)
    values, vectors = symmetric(space.total_scatter() / X.shape[0])
    kept = np.flatnonzero(values > LEAST_VARIANCE * values.max(initial=0.0))[:at_most]
    values, basis = values[kept], vectors[:, kept] / np.sqrt(values[kept])
    rows = engines.along(space.rows, basis, origin=space.offset)
    if not isinstance(rows, EngineRows):
        # Where there are fewer rows than features, they are computed in memory.
        rows = getattr(X, "like", np.asarray)(rows)
    return RowSpace(rows, np.zeros(len(kept)), lift=lambda found: space.lift(basis @ found) / scale), values
