r"""Kernel features, and the null space of must-links.

*Features* are coordinates in which inner products are (nearly) those of a kernel. With anchor rows a and
:math:`K_{aa} = U \Lambda U'`, the features of a row x are :math:`K(x, a)\, U \Lambda^{-1/2}`. If the anchors are all
training rows, their inner products are exactly the kernel matrix; with fewer anchors this is the Nystroem
approximation. With :math:`K_{aa}` centred and the leading eigenvectors kept, the features are kernel principal
components.

The *null space of must-links* is the part of a kernel's feature space in which must-linked rows coincide. Let
:math:`\phi` be the feature map of a kernel K. The differences :math:`\phi(a) - \phi(b)` of must-linked rows span a
subspace; what is left of :math:`\phi(x)` orthogonal to it has the kernel

.. math:: \hat K(x, y) = K(x, y) - F_x \cdot F_y,

where :math:`F_x` holds the coordinates of :math:`\phi(x)` in an orthonormal basis of that subspace. With
:math:`K(x, x) = 1` the distance there is :math:`\hat d^2(x, y) = 2 - 2 K(x, y) - \|F_x - F_y\|^2`.

A must-link matters only through the *chunklet* of rows that it joins: the differences inside a chunklet of c rows span
the same c - 1 directions whichever pairs were given, one chain of c - 1 or all c (c - 1) / 2. So the basis is built
from c - 1 orthonormal contrasts H of each chunklet instead of from pairs. With
:math:`W = H K H' = V \operatorname{diag}(w) V'` and the linked rows p, :math:`F_x = K(x, p) H' V w^{-1/2}`. For pairs
that share no row this is the W of the paper, halved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import helmert
from sklearn.base import BaseEstimator

from pairlens import engines
from pairlens._sklearn import AUTO, POSITIVE, StrOptions, estimator, fit_context, parameter
from pairlens._warnings import warn_user
from pairlens.engines import IntArray, Kernel, Rows
from pairlens.exceptions import ApproximationWarning
from pairlens.spectral.rowspace import range_basis
from pairlens.supervision import Constraints
from pairlens.supervision.combined import combine

ANCHORS = 2000
"""Rows up to which kernel features are exact; of more rows, this many evenly spaced ones are the anchors."""
KERNEL_TOLERANCE = 1e-12
"""Eigenvalues of the kernel matrix of the anchors up to this share of the largest are rounding."""
MAX_LINKED = 2000
"""Rows in must-links up to which the null space is exact; of more, this many are used, spread over the chunklets."""

KERNELS = {"additive_chi2", "chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid"}
"""Those of scikit-learn, named here because asking for its list costs an import."""
TOLERANCE = 1e-10
"""Eigenvalues of W up to this share of the largest are dropped."""

ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""And those up to this share, for each linked row, of the largest term that the entries of W are sums of."""


@dataclass(frozen=True)
class KernelFeatures:
    """Map rows to kernel features."""

    anchors: Rows
    combination: NDArray[np.float64]
    offset: NDArray[np.float64]
    kernel: Kernel
    gamma: float | None

    def __call__(self, X: Rows) -> Rows:
        """Return features of rows: an array, or rows on the device of a tensor."""
        return engines.kernel_product(
            X, self.anchors, self.combination, kernel=self.kernel, gamma=self.gamma, offset=self.offset
        )

    def along(self, directions: NDArray[np.float64]) -> KernelFeatures:
        """Return the map to the features along directions, which are columns; few of them are computed at once."""
        return replace(self, combination=self.combination @ directions, offset=self.offset @ directions)


def kernel_features(
    X: Rows, *, kernel: Kernel, gamma: float | str | None, rank: int | None = None, center: bool = False
) -> KernelFeatures:
    """Choose anchors and build the map to the leading `rank` features, all by default.

    A gamma of "auto" is one over the median squared distance. Centred over the anchors, the features are kernel
    principal components.
    """
    width = engines.median_gamma(X) if gamma == "auto" else gamma
    assert not isinstance(width, str)
    anchors = engines.rows_in_memory(X, engines.evenly_spaced(X.shape[0], ANCHORS))
    K = engines.kernel_matrix(anchors, anchors, kernel, width)
    mean = K.mean(axis=0) if center else np.zeros(len(K))
    if center:
        K = K - mean - mean[:, None] + mean.mean()
    values, vectors = range_basis(K, KERNEL_TOLERANCE, at_most=rank, near=X)
    combination = vectors / np.sqrt(values)
    # The other two terms of a centred kernel are the same for all anchors, which these combinations do not feel.
    return KernelFeatures(anchors, combination, mean @ combination, kernel, width)


def delta_to_gamma(delta: float) -> float:
    r"""Return the gamma for which :math:`\exp(-\gamma d^2) = \exp(-d^2 / 2 \delta^2)`, the form of the papers."""
    return 0.5 / delta**2


def resolved_gamma(X: Rows, gamma: float | str) -> float:
    """Return the gamma to use: the one given, or that of the median distance for "auto"."""
    return delta_to_gamma(median_distance(X)) if isinstance(gamma, str) else float(gamma)


def median_distance(X: Rows) -> float:
    """Return the median distance of up to 1,000 evenly spaced rows; 1 if most are equal."""
    return float(engines.median_gamma(X) ** -0.5)


@dataclass(frozen=True)
class NullSpace:
    """Map rows to F, their coordinates in the span of must-link differences: ``K(X, points) @ combination``.

    The points are the rows in must-links. From these and from X a `shift` is taken, which a kernel of differences does
    not feel but its rounding does. `residual` bounds the squared distance that may be left between must-linked rows
    because small eigenvalues were dropped.
    """

    points: Rows
    combination: NDArray[np.float64]
    kernel: Kernel
    gamma: float | None
    shift: NDArray[np.float64] | None
    residual: float

    @property
    def rank(self) -> int:
        """Number of directions taken away."""
        return int(self.combination.shape[1])

    def coordinates(self, X: Rows) -> Rows:
        """Return F, of shape (n, rank): an array, or rows on the device of a tensor."""
        return engines.kernel_product(
            X, self.points, self.combination, kernel=self.kernel, gamma=self.gamma, shift=self.shift, contrasts=True
        )


def must_link_null_space(
    X: Rows, chunklets: IntArray, *, kernel: Kernel = "rbf", gamma: float | None, tol: float = TOLERANCE
) -> NullSpace:
    """Return the null space of the must-links inside groups of rows; a chunklet of -1 is a row in no must-link.

    Eigenvalues of W up to the share `tol` of the largest are dropped, and those that rounding of K may have made.
    """
    rows = linked_sample(chunklets)
    points = engines.rows_in_memory(X, rows)
    shift = None
    if kernel == "rbf" and not sparse.issparse(X) and len(rows):
        shift = points.mean(axis=0, dtype=np.float64)
        points = points - shift
    if len(rows) == 0:
        return NullSpace(points, np.empty((0, 0)), kernel, gamma, shift, 0.0)
    H = contrasts(chunklets[rows])
    K = engines.kernel_matrix(points, points, kernel, gamma, contrasts=True)
    W = H @ (H @ K).T
    # Must-linked rows that are identical differ by rounding alone, which is not a direction.
    rounding = ROUNDING * len(rows) * _largest_term(points, K, kernel, gamma)
    values, vectors = range_basis((W + W.T) / 2, tol, rounding=rounding)
    combination = np.asarray(H.T @ (vectors / np.sqrt(values)))
    return NullSpace(points, combination, kernel, gamma, shift, max(tol * float(values.max(initial=0.0)), rounding))


def _largest_term(points: Rows, K: NDArray[np.float64], kernel: Kernel, gamma: float | None) -> float:
    """Return the largest number that is added up to a difference of kernels, and whose rounding is hence left in it."""
    if kernel != "rbf" or gamma is None:
        return float(np.abs(K).max())
    square = points.multiply(points) if sparse.issparse(points) else points.astype(np.float64) ** 2
    return min(1.0, gamma * float(square.sum(axis=1).max()))


def feature_null_space(features: NDArray[np.float64], chunklets: IntArray) -> tuple[NDArray[np.float64], float]:
    """Return the same for explicit features: an orthonormal basis Q, in columns, of what must-linked rows differ in.

    ``features - (features @ Q) @ Q.T`` are then the features of the projected kernel. Also returns the bound on the
    squared distance that may be left between must-linked rows.
    """
    space = must_link_null_space(features, chunklets, kernel="linear", gamma=None)
    return space.points.T @ space.combination, space.residual


def linked_sample(chunklets: IntArray) -> NDArray[np.int64]:
    """Return the rows in must-links, sorted by chunklet; of too many, an even choice with two or more of each."""
    order = np.argsort(chunklets, kind="stable")
    order = order[np.searchsorted(chunklets[order], 0) :]
    if len(order) <= MAX_LINKED:
        return order
    sizes = np.bincount(chunklets[order])
    kept = np.maximum(2, sizes * MAX_LINKED // len(order))
    groups = np.flatnonzero(sizes)[engines.evenly_spaced(int(np.count_nonzero(sizes)), MAX_LINKED // 2)]
    end = np.cumsum(sizes)
    chosen = np.concatenate(
        [order[end[g] - sizes[g] + engines.evenly_spaced(int(sizes[g]), int(kept[g]))] for g in groups]
    )
    warn_user(
        f"{len(order)} rows are must-linked; the null space is built from {len(chosen)} of them, spread evenly over "
        f"{len(groups)} of the {np.count_nonzero(sizes)} groups they form. Rows of one group still count as one point.",
        ApproximationWarning,
    )
    return chosen


def contrasts(codes: IntArray) -> sparse.csr_matrix:
    """Return orthonormal contrasts inside each group of rows sorted by group: c - 1 rows for c of them."""
    _, sizes = np.unique(codes, return_counts=True)
    return sparse.block_diag([sparse.csr_matrix(helmert(int(size))) for size in sizes], format="csr")


def projected_kernel(X: Rows, Y: Rows, space: NullSpace, F_Y: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    r"""Return the projected kernel :math:`\hat K` between two sets of rows, given F of the second where it is known."""
    if F_Y is None:
        F_Y = space.coordinates(Y)
    shift = 0.0 if space.shift is None else space.shift
    right = Y if space.shift is None else Y - shift
    result = np.empty((X.shape[0], Y.shape[0]))
    for block in engines.row_blocks(X.shape[0], 8 * Y.shape[0]):
        left = X[block] if space.shift is None else X[block] - shift
        similarity = engines.kernel_matrix(left, right, space.kernel, space.gamma)
        result[block] = similarity - space.coordinates(X[block]) @ F_Y.T
    return result


@estimator
class MustLinkKernel(BaseEstimator, ABC):
    r"""Learn with a kernel in the null space of must-links.

    Parameters
    ----------
    gamma : float or "auto", default="auto"
        Of the kernel; that of an RBF kernel is :math:`\exp(-\gamma d^2)`. "auto" is :math:`1 / 2 m^2`, with m the
        median distance of up to 1,000 rows.
    kernel : str or callable, default="rbf"
        A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`.

    Attributes
    ----------
    gamma_ : float
        The value used.
    """

    gamma: float | str = parameter(POSITIVE, AUTO, default="auto")
    kernel: Kernel = parameter(StrOptions(KERNELS), callable, default="rbf")

    __metadata_request__fit: ClassVar = {"constraints": True}

    @abstractmethod
    def _learn(self, rows: Rows, chunklets: IntArray) -> None:
        """Learn from checked rows, with the kernel of width `gamma_`, and the groups of rows that must-links join."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Learn from rows, and from which of them belong together.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            All rows, those about which nothing is known too.
        y : array-like of shape (n_samples,), optional
            Labels, -1 or missing where unknown. Rows with the same label are must-linked.
        constraints : Constraints, optional
            Pairs of rows that belong together. Adds to what `y` says.

        Returns
        -------
        self : object
        """
        rows = engines.checked_rows(self, X, fitting=True, least=1)
        known = combine(y, constraints, rows.shape[0])
        self.gamma_ = resolved_gamma(rows, self.gamma)
        self._learn(rows, known.chunklets())
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
