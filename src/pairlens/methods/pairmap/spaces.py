"""The spaces in which PairMap measures rows: as they are, and as pairs have taught methods to see them.

Every space is centred on the training rows and has a given total variance there, so that distances in different spaces
can be compared and added: 1 for the rows as they are, and for the taught spaces the more, the more answers there are
(:func:`taught_variances`). What depends on the rows alone is prepared once (:class:`Prepared`) and serves the pairs of
all folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from pairlens.engines import Float64, Rows, row_blocks
from pairlens.kernels.features import KernelFeatures
from pairlens.methods.pairlens import FirstStage, Rival, SecondStage, SecondView
from pairlens.methods.pairmap.probability import effective_answers
from pairlens.spectral.rowspace import RowSpace, Standardiser, column_scale, exact_means, principal_rows
from pairlens.supervision import Constraints

if TYPE_CHECKING:
    from sklearn.decomposition import PCA

__all__ = [
    "LensSpaces",
    "Prepared",
    "RawSpace",
    "Seen",
    "Spaces",
    "Unit",
    "local_metric",
    "steady_scale",
    "taught_variances",
]

Seen = tuple[Float64, Float64, Float64, Float64]
"""Rows as they are, and in the spaces of LinearPairLens, PairLens and KernelBWDR."""

LINEAR_COLUMNS = 15
UNTAUGHT = np.array([0.5, 0.25])
"""Total variance of the spaces of LinearPairLens and PairLens without answers, beside 1 of the rows as they are."""
HALF_TAUGHT = 100.0
"""Number of answers that bring these half the way to 1."""
LEAST_STEADINESS = 0.5
"""Ratio of the mean absolute to the standard deviation of a column, below which few rows differ in it."""
WIDEST_SPARSE = 2000
"""Columns up to which sparse rows are made dense; wider ones are reduced to their leading principal components."""
SPARSE_COMPONENTS = 200


def local_metric(seen: Seen) -> Float64:
    """V: the rows as they are beside the spaces of LinearPairLens and PairLens."""
    return np.hstack(seen[:3])


@dataclass(frozen=True)
class Unit:
    """Centres rows and scales them by one number, so that the training rows have a given total variance."""

    mean: Float64
    size: float

    @classmethod
    def of(cls, rows: Float64, variance: float = 1.0) -> Unit:
        mean = rows.mean(axis=0)
        centred = rows - mean
        size = float(np.sqrt(np.einsum("ij,ij->", centred, centred) / (variance * len(rows))))
        # Rows that are equal up to rounding stay equal.
        return cls(mean, size if size > 1e-12 * float(np.abs(mean).max(initial=0.0)) else float("inf"))

    def __call__(self, rows: Float64) -> Float64:
        return np.asarray((rows - self.mean) / self.size)


def taught_variances(known: Constraints) -> tuple[float, float]:
    """Total variance of the spaces of LinearPairLens and PairLens: from 1/2 and 1/4 without answers towards 1.

    The space of PairLens has two columns only: with the variance of the rows it would decide who is near, by the word
    of few answers.
    """
    answers = effective_answers(known)
    taught = answers / (answers + HALF_TAUGHT)
    linear, lens = (UNTAUGHT + taught * (1 - UNTAUGHT)).tolist()
    return linear, lens


def steady_scale(X: Rows, mean: Float64) -> Float64:
    r"""What columns are divided by: their deviation, and more where few rows differ; constant ones become zero.

    .. math::
        s_j \max\left(1, \frac{s_j}{2 a_j}\right), \qquad
        s_j^2 = \mathrm{mean}_i (x_{ij} - m_j)^2, \quad a_j = \mathrm{mean}_i |x_{ij} - m_j|

    A normal column has :math:`a_j = 0.8 s_j` and is divided by its deviation. Where fewer than about one row in 15
    differs, as in a pixel at the border of a picture or a rare word, :math:`a_j < s_j / 2`: z-scores would put these
    few rows far from everybody. Here 0 and 1 are four units apart then, however rare one of them is.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
    mean : array of shape (n_features,)
    """
    deviation = column_scale(X, mean, standardize=True)
    varies = np.isfinite(deviation)
    absolute = np.zeros(X.shape[1])
    for block in row_blocks(X.shape[0], 8 * X.shape[1]):
        rows = X[block]
        if sparse.issparse(rows):
            stored = np.bincount(rows.indices, np.abs(rows.data - mean[rows.indices]), X.shape[1])
            filled = np.bincount(rows.indices, minlength=X.shape[1])
            absolute += stored + (rows.shape[0] - filled) * np.abs(mean)
        else:
            absolute += np.abs(rows - mean).sum(axis=0)
    scale = np.full(X.shape[1], np.inf)
    steadiness = absolute[varies] / X.shape[0] / deviation[varies]
    scale[varies] = deviation[varies] * np.maximum(1.0, LEAST_STEADINESS / steadiness)
    return scale


@dataclass(frozen=True)
class RawSpace:
    """The rows as they are, scaled column by column; wide sparse rows in their leading principal components."""

    standardiser: Standardiser
    principal: PCA | None
    unit: Unit

    @classmethod
    def of(cls, X: Rows, *, standardize: bool = True) -> RawSpace:
        """Columns scaled by the statistics of these rows, or in the scale that they have."""
        mean = exact_means(X)
        standardiser = Standardiser(mean, steady_scale(X, mean) if standardize else column_scale(X, mean, False))
        scores = standardiser(X)
        principal = None
        if sparse.issparse(X) and X.shape[1] > WIDEST_SPARSE:
            from sklearn.decomposition import PCA

            kept = min(SPARSE_COMPONENTS, X.shape[0] - 1)
            principal = PCA(kept, svd_solver="arpack", random_state=0).fit(scores)
        return cls(standardiser, principal, Unit.of(_dense(scores, principal)))

    def __call__(self, X: Rows) -> Float64:
        return self.unit(_dense(self.standardiser(X), self.principal))


def _dense(scores: Rows, principal: PCA | None) -> Float64:
    if principal is not None:
        return np.asarray(principal.transform(scores))
    return np.asarray(scores.toarray() if sparse.issparse(scores) else scores)


@dataclass(frozen=True)
class LensSpaces:
    """The spaces that pairs have taught.

    Attributes
    ----------
    components : array of shape (n_directions, n_features)
        15 columns of LinearPairLens, or all.
    second : SecondView
        Two columns of PairLens, from diffusion coordinates of these.
    kernel : KernelFeatures or None
        Kernel principal components of the scaled rows; None where no probability is asked for.
    directions : array of shape (n_kernel_features, 2)
        Two columns of KernelBWDR there.
    units : tuple of Unit
        Of the three spaces.
    """

    components: Float64
    second: SecondView
    kernel: KernelFeatures | None
    directions: Float64
    units: tuple[Unit, Unit, Unit]

    def linear_and_lens(self, X: Rows, standardiser: Standardiser) -> tuple[Float64, Float64]:
        """Rows in the spaces of LinearPairLens and PairLens."""
        linear = np.asarray(X @ self.components.T) - standardiser.mean @ self.components.T
        return self.units[0](linear), self.units[1](self.second.embed(linear))

    def kernel_view(self, X: Rows, standardiser: Standardiser) -> Float64:
        """Rows in the space of KernelBWDR."""
        kernel = np.zeros((X.shape[0], 0)) if self.kernel is None else self.kernel(standardiser(X)) @ self.directions
        return self.units[2](kernel)


@dataclass(frozen=True)
class Spaces:
    """All four spaces; rows without variation have the first only."""

    raw: RawSpace
    learned: LensSpaces | None

    def __call__(self, X: Rows) -> Seen:
        rows = X.astype(np.float64, copy=False)
        if self.learned is None:
            nothing = np.zeros((X.shape[0], 0))
            return self.raw(rows), nothing, nothing, nothing
        known = self.raw.standardiser
        return self.raw(rows), *self.learned.linear_and_lens(rows, known), self.learned.kernel_view(rows, known)

    def local(self, X: Rows) -> Float64:
        """V of rows: :func:`local_metric` without the space of KernelBWDR, which takes longest and is no part of it."""
        rows = X.astype(np.float64, copy=False)
        if self.learned is None:
            return self.raw(rows)
        return np.hstack([self.raw(rows), *self.learned.linear_and_lens(rows, self.raw.standardiser)])


@dataclass(frozen=True)
class Prepared:
    """What the spaces need of the rows alone.

    Attributes
    ----------
    raw : RawSpace
    plain : array of shape (n_rows, n_columns)
        The rows there.
    space : RowSpace
        The coordinates of the first stage.
    first : FirstStage or None
        None for rows without variation.
    rival : Rival or None
        None where no probability is asked for.
    search : {"auto", "exact", "approx"}
        How neighbours are found.
    stand_for : int
        Number of rows of which these are landmarks, or 0.
    variances : tuple of float
        Total variances of the spaces of LinearPairLens and PairLens, in all folds.
    """

    raw: RawSpace
    plain: Float64
    space: RowSpace
    first: FirstStage | None
    rival: Rival | None
    search: str
    stand_for: int
    variances: tuple[float, float]

    @classmethod
    def of(
        cls,
        X: Rows,
        known: Constraints,
        *,
        kernel: bool,
        standardize: bool = True,
        search: str = "auto",
        stand_for: int = 0,
        former: Spaces | None = None,
    ) -> Prepared:
        """Prepare rows in float64.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
        known : Constraints
            All pairs. Their number decides how much taught spaces weigh; their rows are spanned where not all can be.
        kernel : bool
            Whether a probability will be asked for.
        standardize : bool
        search : {"auto", "exact", "approx"}
        stand_for : int
            Number of rows of which these are landmarks, if they are.
        former : Spaces, optional
            Of a former map of the same rows: kernel features are taken from there.
        """
        raw = RawSpace.of(X, standardize=standardize)
        space = principal_rows(X, raw.standardiser.mean, standardize=raw.standardiser.scale, anchors=known.rows)
        first = FirstStage.of(space.rows, search=search) if space.dim else None
        features = None if former is None or former.learned is None else former.learned.kernel
        rival = Rival.of(raw.standardiser(X), 2, features=features) if kernel and space.dim else None
        return cls(raw, raw(X), space, first, rival, search, stand_for, taught_variances(known))

    def learn(self, known: Constraints, seed: int) -> tuple[Spaces, Seen]:
        """The spaces that these pairs teach, and the rows in them."""
        nothing = np.zeros((len(self.plain), 0))
        if self.first is None:
            return Spaces(self.raw, None), (self.plain, nothing, nothing, nothing)
        fit = self.first.fit(known, random_state=seed)
        directions = fit.directions(LINEAR_COLUMNS)[1]
        linear = self.first.problem.rows @ directions
        stage = SecondStage.of(linear, diffuse=True, search=self.search, n_queries=self.stand_for)
        second, lens = stage.fit(known, strength=fit.strength, n_components=2)
        kernel, turned = nothing, np.zeros((0, 2))
        if self.rival is not None:
            turned = self.rival.directions(known)
            kernel = np.asarray(self.rival.space.rows @ turned)
        units = (Unit.of(linear, self.variances[0]), Unit.of(lens, self.variances[1]), Unit.of(kernel))
        learned = LensSpaces(
            self.space.lift(directions), second, None if self.rival is None else self.rival.features, turned, units
        )
        return Spaces(self.raw, learned), (self.plain, units[0](linear), units[1](lens), units[2](kernel))
