"""The kernel forms of BWDR, WBDR and LPPSI, and a kernel in which must-linked rows are one point."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pairlens._sklearn import AUTO, COUNT, NOT_NEGATIVE, POSITIVE, Interval, StrOptions, estimator, parameter
from pairlens.engines import IntArray, Rows, checked_rows, column_means
from pairlens.exceptions import ArgumentError
from pairlens.kernels import KERNELS, TOLERANCE, MustLinkKernel, kernel_features, must_link_null_space, projected_kernel
from pairlens.methods import base, bwdr
from pairlens.methods.base import PairTransformer
from pairlens.methods.locality import side_information_scatters
from pairlens.spectral.rowspace import Matrix, Pencil, RowSpace, fix_signs, generalized, row_space
from pairlens.supervision import Constraints


@estimator
class KernelPairTransformer(PairTransformer):
    """Solve the problem of a linear method in kernel features.

    Directions are combinations of kernel functions at rows. A method has the two functions of
    :class:`~pairlens.methods.base.LinearPairTransformer`.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`.
    gamma : float or "auto", default="auto"
        Width of the kernel; "auto" is one over the median squared distance of up to 1,000 evenly spaced rows.
    rank : int, optional
        Number of leading kernel features to work in; all by default. The kernel is exact up to 2,000 rows; of more,
        2,000 evenly spaced ones span the solution (Nystroem), and memory is n x rank.

    Attributes
    ----------
    components_ : array of shape (n_components, n_kernel_features)
        Directions in the coordinates of the kernel.
    eigenvalues_ : array of shape (n_components,)
        Value of the objective in each direction, best first.
    """

    _needs: ClassVar[str] = "pairs"
    kernel: str | Callable[..., Any] = parameter(StrOptions(KERNELS), callable, default="rbf")
    gamma: float | str = parameter(POSITIVE, AUTO, default="auto")
    rank: int | None = parameter(COUNT, None, default=None)

    @abstractmethod
    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        """Return what should become small and what should become large, as matrices in the coordinates of `space`."""

    @abstractmethod
    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        """Return the eigenvalues of the k best directions, and these in columns, best first."""

    def _learn(self, rows: Rows, pairs: Constraints) -> None:
        base.in_range_of_numbers(lambda some: self._learn_directions(some, pairs), rows)

    def _learn_directions(self, rows: Rows, pairs: Constraints) -> None:
        space = self._coordinates(rows)
        lacking = base.lacking_supervision(self._needs, pairs)
        _, self.eigenvalues_, directions = base.solved(self, lacking, lambda _: (space, pairs), self._directions)
        # Kernel features have no order or sign of their own, so the embedded rows decide the signs.
        embedded = ((space.rows - space.offset) @ directions).T
        decided = fix_signs(embedded)
        self.components_ = directions.T * np.where(np.sum(decided * embedded, axis=1) < 0, -1.0, 1.0)[:, None]
        self._offset = self.components_ @ space.offset

    def _coordinates(self, rows: Rows) -> RowSpace:
        """Return the rows in kernel features; set the way there."""
        self._features = kernel_features(rows, kernel=self.kernel, gamma=self.gamma, rank=self.rank, center=True)
        coordinates = self._features(rows)
        # Distances of wide sparse rows are found in the coordinates of their row space, which need no dense copy.
        input_rows = row_space(rows, column_means(rows)).rows if sparse.issparse(rows) else rows
        return RowSpace(coordinates, coordinates.mean(axis=0), input_rows=input_rows)

    def _directions(self, space: RowSpace, pairs: Constraints) -> Pencil:
        attract, repel = self._scatters(space, pairs)
        return self._solve(base.finite(attract), base.finite(repel), self._n_wanted)

    def _check_n_components(self, rows: Rows) -> None:
        if self.n_components > rows.shape[0]:
            reason = f"must be at most the number of rows, {rows.shape[0]}"
            raise ArgumentError("n_components", self.n_components, reason)

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        rows = self._read(X, fitting=False)
        return (self._features(rows) @ self.components_.T - self._offset).astype(rows.dtype, copy=False)


@estimator
class ShrunkKernelTransformer(KernelPairTransformer):
    """Solve the problem of BWDR or WBDR, with shrunk scatters, in kernel principal components.

    Parameters
    ----------
    rank : int or None, default=150
        Number of leading kernel principal components to work in. All of them (None) overfit. The kernel is exact up to
        2,000 rows; of more, 2,000 evenly spaced ones span the solution (Nystroem).

    Attributes
    ----------
    components_ : array of shape (n_components, n_kernel_features)
        Directions in kernel principal components.
    """

    rank: int | None = parameter(default=150)
    shrinkage: float | str = parameter(*bwdr.SHRINKAGE, default="auto")
    shrinkage_factor: float = parameter(POSITIVE, default=1.0)

    _scatters = bwdr.shrunk_scatters


@estimator
class KernelBWDR(ShrunkKernelTransformer):
    r"""BWDR in kernel principal components.

    The solutions of :class:`BWDR` lie in the span of the mapped rows, so the method in the feature space of a kernel is
    the linear one in the coordinates of the centred kernel matrix, :math:`H K H = U \Lambda U'` with coordinates
    :math:`U \Lambda^{1/2}`, of which the leading `rank` are kept.

    Choose it when classes are not linearly separable. Shrunk, as by default, it is one of the strongest methods here
    for few and noisy pairs.

    Parameters
    ----------
    threshold : float in (0, 1], default=0.95
        Share of the between-class difference that the stretched directions hold; see :class:`BWDR`.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Within-class difference in each direction after stretching, smallest first.

    See Also
    --------
    BWDR : The linear form.

    References
    ----------
    .. [1] The paper of BWDR and WBDR, two dual linear methods for dimensionality reduction under pairwise constraints
       (vol. 8, 2020), which leaves the kernel form to future work.
    """

    threshold: float = parameter(bwdr.THRESHOLD, default=0.95)

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        solution, stretched = bwdr.stretch_between(attract, repel, k, self.threshold)
        bwdr.warn_without_influence(self, k, self.threshold, stretched, repel)
        return solution


@estimator
class KernelWBDR(ShrunkKernelTransformer):
    r"""WBDR in kernel principal components.

    It is :class:`WBDR` in the coordinates of :class:`KernelBWDR`.

    Choose it when classes are not linearly separable and there are more pairs than kernel principal components.

    Parameters
    ----------
    threshold : float in (0, 1], default=1.0
        Share of the within-class difference that the compressed directions hold; see :class:`WBDR`.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Between-class difference in each direction after compression, largest first.

    See Also
    --------
    WBDR : The linear form.

    References
    ----------
    .. [1] The paper of BWDR and WBDR, two dual linear methods for dimensionality reduction under pairwise constraints
       (vol. 8, 2020), which leaves the kernel form to future work.
    """

    threshold: float = parameter(bwdr.THRESHOLD, default=1.0)

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        return bwdr.compress_within(attract, repel, k, self.threshold)


@estimator
class KernelLPPSI(KernelPairTransformer):
    r"""Kernel locality preserving projections with side information.

    The original objective was not available; this form is our own, as that of :class:`LPPSI`: do not quote results as
    those of the original.

    :class:`LPPSI` with :math:`w = \Phi' a`, that is with the centred kernel matrix K in place of X:

    .. math:: \frac{a' K (L_s - \beta L_d) K a}{a' K D_s K a}.

    The graphs and their heat weights are those of the input space.

    Choose it over :class:`LPPSI` when classes are not linearly separable and there are a few thousand rows at most.

    Parameters
    ----------
    heat_gamma : float or "auto", default="auto"
        The heat weights are :math:`\exp(-\gamma_h d^2)`; "auto" is one over the squared mean norm of the centred rows.
    beta : float, default=1.0
        Weight of the cannot-links.

    References
    ----------
    .. [1] S. An, W. Liu, S. Venkatesh, "Exploiting side information in locality preserving projection", CVPR 2008.
    """

    _needs: ClassVar = ""
    n_neighbors: int = parameter(COUNT, default=5)
    heat_gamma: float | str = parameter(POSITIVE, AUTO, default="auto")
    beta: float = parameter(NOT_NEGATIVE, default=1.0)

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        base.warn_without_pairs(self, pairs)
        return side_information_scatters(space, pairs, self.n_neighbors, self.heat_gamma, self.beta)

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        return generalized(attract, repel, k, largest=False)


@estimator
class KernelNullSpace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MustLinkKernel):
    r"""The kernel of the null space of must-links.

    .. math:: \hat K(x, y) = K(x, y) - F_x \cdot F_y,

    where :math:`F_x` are the coordinates of x in the span of the differences of must-linked rows in the feature space
    of K. Must-linked rows coincide: :math:`\hat K` has equal rows and columns for them.

    Choose it to give must-links to any kernel method: ``SpectralClustering(affinity="precomputed")``,
    ``SVC(kernel="precomputed")``, ``KernelPCA(kernel="precomputed", n_components=2)``.

    Parameters
    ----------
    tol : float, default=1e-10
        Directions of must-link differences with an eigenvalue up to this share of the largest are kept in the kernel.

    Attributes
    ----------
    X_fit_ : array or CSR matrix of shape (n_samples, n_features)
        The rows of fit.
    rank_ : int
        Number of directions taken out of the kernel, at most linked rows less the groups that they form.

    See Also
    --------
    SKKMeans : K-means with this kernel, without an n x n matrix.
    DSP : Linear directions from the distances of this kernel; its n_components are far fewer than the rows.

    Notes
    -----
    Any set of must-links that joins the same rows gives the same kernel. :meth:`transform` returns one column for each
    row of fit, and so an n x n matrix for these rows themselves. Values may be negative, and numerically so by
    about 1e-12 where the kernel itself has none: methods that insist on non-negative affinities want
    ``np.maximum(K, 0)``. Without must-links this is the kernel itself. Of more than 2,000 must-linked rows that many
    are used, with a warning.

    References
    ----------
    .. [1] S. Yan, S. Bouaziz, D. Lee, J. Barlow, "Semi-supervised dimensionality reduction for analyzing
       high-dimensional data with constraints", Neurocomputing 76, 2012.
    .. [2] O. Tuzel, F. Porikli, P. Meer, "Kernel methods for weakly supervised mean shift clustering", ICCV 2009,
       where the projection comes from.

    Examples
    --------
    >>> import numpy as np
    >>> from pairlens import Constraints, KernelNullSpace
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> K = KernelNullSpace(gamma=0.5).fit_transform(X, constraints=Constraints([(0, 1)], n_samples=3))
    >>> bool(np.allclose(K[0], K[1]))
    True
    """

    tol: float = parameter(Interval(Real, 0, 1, closed="left"), default=TOLERANCE)

    def _learn(self, rows: Rows, chunklets: IntArray) -> None:
        """Find the span of the must-link differences."""
        self._space = must_link_null_space(rows, chunklets, kernel=self.kernel, gamma=self.gamma_, tol=self.tol)
        self.X_fit_ = rows.copy()
        self._coordinates = self._space.coordinates(rows)
        self.rank_ = self._space.rank

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        r"""Return the projected kernel of rows with those of fit.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        K : array of shape (n_samples, n_samples_fit)
        """
        check_is_fitted(self)
        rows = checked_rows(self, X, fitting=False)
        return projected_kernel(rows, self.X_fit_, self._space, self._coordinates).astype(rows.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return int(self.X_fit_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
