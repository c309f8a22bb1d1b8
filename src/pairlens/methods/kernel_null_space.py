"""KernelNullSpace: a kernel in which must-linked rows are one point."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray

from pairlens._deprecation import DEPRECATED, NOT_GIVEN, RenamedAttribute, former_parameter
from pairlens._sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    Interval,
    StrOptions,
    TransformerMixin,
    check_is_fitted,
    fit_context,
)
from pairlens.engines import checked_rows
from pairlens.kernels.nullspace import (
    TOLERANCE,
    delta_to_gamma,
    gamma_to_delta,
    must_link_null_space,
    projected_kernel,
    resolved_gamma,
)
from pairlens.supervision import Constraints
from pairlens.supervision.combined import combine


class KernelNullSpace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""The kernel of the null space of must-links.

    .. math:: \hat K(x, y) = K(x, y) - F_x \cdot F_y,

    where :math:`F_x` are the coordinates of x in the span of the differences of must-linked rows in the feature space
    of K. Must-linked rows coincide: :math:`\hat K` has equal rows and columns for them.

    Choose it to give must-links to any kernel method: ``SpectralClustering(affinity="precomputed")``,
    ``SVC(kernel="precomputed")``, ``KernelPCA(kernel="precomputed", n_components=2)``.

    Parameters
    ----------
    gamma : float or "median", default="median"
        Of the kernel; that of an RBF kernel is :math:`\exp(-\gamma d^2)`. "median" is :math:`1 / 2 m^2`, with m the
        median distance of up to 1,000 rows.
    kernel : str or callable, default="rbf"
        A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`.
    tol : float, default=1e-10
        Directions of must-link differences with an eigenvalue up to this share of the largest are kept in the kernel.
    delta : float or "median", optional
        Former name: :math:`\gamma = 1 / 2 \delta^2`. It still works, with a FutureWarning.

    Attributes
    ----------
    X_fit_ : array or CSR matrix of shape (n_samples, n_features)
        The rows of fit.
    gamma_ : float
        The value used.
    rank_ : int
        Number of directions taken out of the kernel, at most linked rows less the groups that they form.
    n_features_in_ : int
        Number of features seen in fit.

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
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
        "kernel": [str, callable],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "delta": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"}), NOT_GIVEN],
    }
    delta_ = RenamedAttribute("gamma_", gamma_to_delta, deprecated=True)
    gamma_: Any = RenamedAttribute("delta_", delta_to_gamma, deprecated=False)
    __metadata_request__fit: ClassVar = {"constraints": True}

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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Find the span of the must-link differences.

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
        rows = checked_rows(self, X, fitting=True, least=1).copy()
        chunklets = combine(y, constraints, rows.shape[0]).chunklets()
        delta = former_parameter(self, "delta", "gamma", "gamma = 1 / (2 delta^2)")
        self.gamma_ = resolved_gamma(rows, self.gamma, delta)
        self._space = must_link_null_space(rows, chunklets, kernel=self.kernel, gamma=self.gamma_, tol=self.tol)
        self.X_fit_ = rows
        self._coordinates = self._space.coordinates(rows)
        self.rank_ = self._space.rank
        return self

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
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
