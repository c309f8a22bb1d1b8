"""The kernel forms of BWDR and WBDR: the linear methods in kernel principal components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pairlens._warnings import warn_fallback
from pairlens.methods.bwdr import (
    SHRINKAGE_PARAMETERS,
    compress_within,
    shrunk_scatters,
    stretch_between,
    warn_without_influence,
)
from pairlens.methods.kernel import KernelPairTransformer
from pairlens.spectral.eigen import Matrix, Pencil
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints


class KernelBWDR(KernelPairTransformer):
    r"""BWDR in kernel principal components.

    The solutions of :class:`BWDR` lie in the span of the mapped rows, so the method in the feature space of a kernel is
    the linear one in the coordinates of the centred kernel matrix, :math:`H K H = U \Lambda U'` with coordinates
    :math:`U \Lambda^{1/2}`, of which the leading `rank` are kept.

    Choose it when classes are not linearly separable. Shrunk, as by default, it is one of the strongest methods here
    for few and noisy pairs.

    Parameters
    ----------
    rank : int or None, default=150
        Number of leading kernel principal components to work in. All of them (None) overfit. The kernel is exact up to
        2,000 rows; of more, 2,000 evenly spaced ones span the solution (Nystroem).
    threshold : float in (0, 1], default=0.95
        Share of the between-class difference that the stretched directions hold; see :class:`BWDR`.
    shrinkage : float in [0, 1] or "auto", default="auto"
        How far the scatters move towards the identity and the total scatter; see :class:`BWDR`.
    shrinkage_factor : float, default=1.0
        Factor of the number of coordinates in "auto".

    Attributes
    ----------
    components_ : array of shape (n_components, n_kernel_features)
        Directions in kernel principal components.
    eigenvalues_ : array of shape (n_components,)
        Within-class difference in each direction after stretching, smallest first.

    See Also
    --------
    BWDR : The linear form.

    References
    ----------
    .. [1] The paper of BWDR and WBDR, two dual linear methods for dimensionality reduction under pairwise constraints
       (vol. 8, 2020), which leaves the kernel form to future work.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import Constraints, KernelBWDR
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelBWDR().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=30, random_state=0)).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelPairTransformer._parameter_constraints,
        **SHRINKAGE_PARAMETERS,
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | str = "median",
        rank: int | None = 150,
        threshold: float = 0.95,
        shrinkage: float | str = "auto",
        shrinkage_factor: float = 1.0,
    ) -> None:
        super().__init__(n_components, kernel=kernel, gamma=gamma, rank=rank)
        self.threshold = threshold
        self.shrinkage = shrinkage
        self.shrinkage_factor = shrinkage_factor

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        if known.n_must_link == known.n_cannot_link == 0:
            warn_fallback(self, "no pairs were given")
        return shrunk_scatters(space, known, self.shrinkage, self.shrinkage_factor)

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        solution, stretched = stretch_between(attract, repel, self.n_components, self.threshold)
        warn_without_influence(self, stretched, repel)
        return solution


class KernelWBDR(KernelBWDR):
    r"""WBDR in kernel principal components.

    The solutions of :class:`WBDR` lie in the span of the mapped rows, so the method in the feature space of a kernel is
    the linear one in the coordinates of the centred kernel matrix, :math:`H K H = U \Lambda U'` with coordinates
    :math:`U \Lambda^{1/2}`, of which the leading `rank` are kept.

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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import Constraints, KernelWBDR
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelWBDR().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=30, random_state=0)).shape
    (150, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | str = "median",
        rank: int | None = 150,
        threshold: float = 1.0,
        shrinkage: float | str = "auto",
        shrinkage_factor: float = 1.0,
    ) -> None:
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            rank=rank,
            threshold=threshold,
            shrinkage=shrinkage,
            shrinkage_factor=shrinkage_factor,
        )

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return compress_within(attract, repel, self.n_components, self.threshold)
