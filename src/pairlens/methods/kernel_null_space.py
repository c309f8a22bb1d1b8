"""KernelNullSpace: a kernel in which must-linked rows are one point."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray

from pairlens._deprecation import DEPRECATED
from pairlens._sklearn import ClassNamePrefixFeaturesOutMixin, Interval, TransformerMixin, check_is_fitted
from pairlens.engines import IntArray, Rows, checked_rows
from pairlens.kernels.nullspace import TOLERANCE, MustLinkKernel, must_link_null_space, projected_kernel


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

    Examples
    --------
    >>> import numpy as np
    >>> from pairlens import Constraints, KernelNullSpace
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> K = KernelNullSpace(gamma=0.5).fit_transform(X, constraints=Constraints([(0, 1)], n_samples=3))
    >>> bool(np.allclose(K[0], K[1]))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MustLinkKernel._parameter_constraints,
        "tol": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        *,
        gamma: float | str = "median",
        kernel: str | Callable[..., Any] = "rbf",
        tol: float = TOLERANCE,
        delta: float | str = DEPRECATED,
    ) -> None:
        self.gamma = gamma
        self.kernel = kernel
        self.tol = tol
        self.delta = delta

    def _learn(self, rows: Rows, chunklets: IntArray) -> None:
        """The span of the must-link differences."""
        self._space = must_link_null_space(rows, chunklets, kernel=self.kernel, gamma=self.gamma_, tol=self.tol)
        self.X_fit_ = rows.copy()
        self._coordinates = self._space.coordinates(rows)
        self.rank_ = self._space.rank

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        r"""The projected kernel of rows with those of fit.

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
