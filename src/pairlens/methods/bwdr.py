r"""BWDR and WBDR: make one kind of difference equal in all directions, then rank the directions by the other.

Both start from the scatters of the pairs, :math:`S_W` over the must-links and :math:`S_B` over the cannot-links
(eqs. 1 and 2 of the paper), shrunk where pairs are few (:func:`shrunk_scatters`). :func:`stretch_between` is
Algorithm 1, BWDR; :func:`compress_within` Algorithm 2, WBDR. :mod:`pairlens.methods.kernel` solves the same in
kernel principal components.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._sklearn import AUTO, POSITIVE, Interval, estimator, parameter
from pairlens._warnings import warn_user
from pairlens.engines import IntArray
from pairlens.exceptions import SupervisionWarning
from pairlens.methods.base import IncrementalPairTransformer, PairTransformer
from pairlens.spectral.rowspace import Matrix, Pencil, range_basis, symmetric
from pairlens.spectral.scatters import BatchSums, Space, cannot_link_scatter, must_link_scatter
from pairlens.supervision import Constraints

SPECTRUM_FLOOR = 1e-8
"""Smallest within-scatter eigenvalue, relative to the largest: with zeros the printed algorithm divides 0 by 0."""

THRESHOLD = Interval(Real, 0, 1, closed="right")
SHRINKAGE = (Interval(Real, 0, 1, closed="both"), AUTO)


def shrunk_scatters(method: Any, space: Space, pairs: Constraints | BatchSums) -> tuple[Matrix, Matrix]:
    r"""Return S_W of the must-links and S_B of the cannot-links, shrunk towards the identity and the total scatter.

    A scatter of pairs of total weight m in p coordinates moves by :math:`\rho = c p / (c p + m)` with the factor c if
    the `shrinkage` of the method is "auto", by `shrinkage` itself otherwise, and all the way where the pairs join equal
    rows only.
    """
    S_W, S_B = must_link_scatter(space, pairs), cannot_link_scatter(space, pairs)

    def weight(scatter: Matrix, total: float) -> float:
        if not np.trace(scatter) > 0:
            return 1.0
        prior = method.shrinkage_factor * len(scatter)
        return float(prior / (prior + total) if method.shrinkage == "auto" else method.shrinkage)

    weight_W, weight_B = weight(S_W, pairs.must_link_total), weight(S_B, pairs.cannot_link_total)
    if weight_W > 0:
        S_W = shrink(S_W, np.eye(space.dim), weight_W)
    if weight_B > 0:
        S_B = shrink(S_B, space.total_scatter(), weight_B)
    return S_W, S_B


def rows_in_pairs(method: Any, pairs: Constraints) -> IntArray | None:
    """Return the rows in pairs if they decide the solution; None if all do, which the targets of shrinkage need."""
    pairs_suffice = method.shrinkage == 0 and pairs.n_must_link > 0 and pairs.n_cannot_link > 0
    return pairs.rows if pairs_suffice else None


def shrink(S: Matrix, target: Matrix, weight: float) -> Matrix:
    r"""Move a scatter towards a target, :math:`(1 - \rho) [S] + \rho [T]`, both scaled to trace p."""
    p = len(S)
    trace = np.trace(S)
    own = S * (p / trace) if trace > 0 else np.zeros_like(S)
    return (1 - weight) * own + weight * target * (p / np.trace(target))


def threshold_index(values: NDArray[np.float64], threshold: float, at_least: int) -> int:
    r"""Return how many leading eigenvalues to treat.

    The largest i with :math:`\sum_{j \le i} \lambda_j / \sum_j \lambda_j \le t_0`, but at least `at_least` and at
    most all.
    """
    share = np.cumsum(values) / values.sum()
    i = int(np.count_nonzero(share <= threshold + 1e-12))
    return min(max(i, at_least), len(values))


def stretch_between(
    S_W: Matrix, S_B: Matrix, k: int, threshold: float, target: float | str = "auto"
) -> tuple[Pencil, int]:
    r"""Stretch the leading eigenvectors of S_B until the between-scatter is `target` in each (Algorithm 1).

    "auto" is :math:`\lambda_1`. Then take the k directions of smallest within-scatter. Returns ``(values, vectors)``
    and the number i of stretched directions; with i <= k the second step only rotates.
    """
    values, vectors = range_basis(S_B)
    i = threshold_index(values, threshold, k)
    level = values[0] if isinstance(target, str) else target
    stretched = vectors[:, :i] * np.sqrt(level / values[:i])
    within, rotation = symmetric(stretched.T @ S_W @ stretched)
    return (within[::-1][:k], stretched @ rotation[:, ::-1][:, :k]), i


def compress_within(S_W: Matrix, S_B: Matrix, k: int, threshold: float, target: float | str = "auto") -> Pencil:
    r"""Compress the leading eigenvectors of S_W until the within-scatter is `target` in each (Algorithm 2).

    "auto" is :math:`\lambda_i`. Then take the k directions of largest between-scatter.
    """
    values, vectors = symmetric(S_W)
    i = threshold_index(np.maximum(values, 0.0), threshold, k)
    floored = np.maximum(values, SPECTRUM_FLOOR * values[0])
    scale = np.ones(len(values))
    level = floored[i - 1] if isinstance(target, str) else target
    scale[:i] = np.sqrt(level / floored[:i])
    compressed = vectors * scale
    between, rotation = symmetric(compressed.T @ S_B @ compressed)
    return between[:k], compressed @ rotation[:, :k]


def warn_without_influence(method: PairTransformer, k: int, threshold: float, stretched: int, repel: Matrix) -> None:
    """Warn if no more directions are stretched than are asked for: S_W then only rotates them."""
    if stretched <= k < np.linalg.matrix_rank(repel):
        warn_user(
            f"{type(method).__name__}: {k} directions already hold more than threshold={threshold} of the "
            "between-class difference, so the must-links have no influence. Standardise the features, or raise "
            "threshold.",
            SupervisionWarning,
        )


@estimator
class BWDR(IncrementalPairTransformer):
    r"""Dimensionality reduction by increasing between-class differences.

    With :math:`S_B = \sum_{C} (x_i - x_j)(x_i - x_j)'` over the cannot-links and :math:`S_W` likewise over the
    must-links, BWDR stretches the leading eigenvectors :math:`e_j` of :math:`S_B` to
    :math:`\sqrt{\lambda_1 / \lambda_j}\, e_j`, which makes the between-class difference :math:`\lambda_1` in every
    direction, and keeps the `n_components` directions in which :math:`S_W` is then smallest.

    Choose it when directions along which different things hardly differ are noise: it leaves them out. Standardise the
    features first: on raw data one large feature can hold more than the `threshold` of all between-class difference,
    and then the must-links have no influence, with a warning.

    Parameters
    ----------
    threshold : float in (0, 1], default=0.95
        Share :math:`t_0` of the between-class difference that the stretched directions hold: the largest i with
        :math:`\sum_{j \le i} \lambda_j \le t_0 \sum_j \lambda_j`, at least `n_components`. With 1.0 and regular
        scatters the directions are those of :class:`WBDR`.
    shrinkage : float in [0, 1] or "auto", default="auto"
        How far :math:`S_W` moves towards the identity and :math:`S_B` towards the total scatter of all rows, each
        scaled to the same trace. "auto" is p / (p + m) for p coordinates (features, or the rank of X if that is
        smaller because rows are few) and pairs of total weight m of that kind. Few or noisy pairs need it: without,
        the result is often worse than PCA. 0.0 is the method of the paper, for which only the rows in pairs count.
    target : float or "auto", default="auto"
        What the between-class difference becomes in every stretched direction, Remark 1 of the paper. "auto" is
        :math:`\lambda_1`. Another value scales all coordinates of the view by the same factor.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions, scaled so that :math:`A' S_B A` is `target` times the identity.
    eigenvalues_ : array of shape (n_components,)
        Within-class difference in each direction after stretching, smallest first.

    See Also
    --------
    WBDR : The dual, which compresses within-class differences first.

    Notes
    -----
    Without must-links :math:`S_W` is the identity, without cannot-links :math:`S_B` is the total scatter.

    References
    ----------
    .. [1] The paper of BWDR and WBDR, two dual linear methods for dimensionality reduction under pairwise constraints
       (vol. 8, 2020), Algorithm 1; title and authors are not confirmed (docs/citing.md).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pairlens import BWDR, Constraints
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    >>> BWDR(n_components=2).fit_transform(StandardScaler().fit_transform(X), constraints=pairs).shape
    (178, 2)
    """

    threshold: float = parameter(THRESHOLD, default=0.95)
    shrinkage: float | str = parameter(*SHRINKAGE, default="auto")
    shrinkage_factor: float = parameter(POSITIVE, default=1.0)
    target: float | str = parameter(POSITIVE, AUTO, default="auto")

    _rows_used = rows_in_pairs
    _scatters = shrunk_scatters

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        solution, stretched = stretch_between(attract, repel, k, self.threshold, self.target)
        warn_without_influence(self, k, self.threshold, stretched, repel)
        return solution


@estimator
class WBDR(IncrementalPairTransformer):
    r"""Dimensionality reduction by compression of within-class differences.

    With :math:`S_W = \sum_{M} (x_i - x_j)(x_i - x_j)'` over the must-links and :math:`S_B` likewise over the
    cannot-links, WBDR compresses the leading eigenvectors :math:`e_j` of :math:`S_W` to
    :math:`\sqrt{\lambda_i / \lambda_j}\, e_j`, which makes the within-class difference at most :math:`\lambda_i` in
    every direction, and keeps the `n_components` directions in which :math:`S_B` is then largest.

    Choose it as the first method to try when there are at least as many pairs as features: it is discriminant analysis
    for pairs, does not depend on the scale of the features (unless shrunk), and keeps its directions when answers are
    flipped at random, because mixing the two scatters does not change their common eigenvectors.

    Parameters
    ----------
    threshold : float in (0, 1], default=1.0
        Share :math:`t_0` of the within-class difference that the compressed directions hold; the others keep their
        scale.
    target : float or "auto", default="auto"
        What the within-class difference becomes in every compressed direction, Remark 1 of the paper. "auto" is
        :math:`\lambda_i`. At threshold 1 another value scales all coordinates of the view by the same factor; below, a
        smaller one gives the compressed directions less weight beside the others.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions; at threshold 1, :math:`A' S_W A` is a multiple of the identity.
    eigenvalues_ : array of shape (n_components,)
        Between-class difference in each direction after compression, largest first.

    See Also
    --------
    BWDR : The dual, which stretches between-class differences first.

    Notes
    -----
    Eigenvalues of :math:`S_W` below 1e-8 of the largest are raised to that: with zeros the printed algorithm is
    undefined. Without must-links :math:`S_W` is the identity, without cannot-links :math:`S_B` is the total scatter.

    References
    ----------
    .. [1] The paper of BWDR and WBDR, two dual linear methods for dimensionality reduction under pairwise constraints
       (vol. 8, 2020), Algorithm 2; title and authors are not confirmed (docs/citing.md).
    """

    threshold: float = parameter(THRESHOLD, default=1.0)
    shrinkage: float | str = parameter(*SHRINKAGE, default="auto")
    shrinkage_factor: float = parameter(POSITIVE, default=1.0)
    target: float | str = parameter(POSITIVE, AUTO, default="auto")

    _rows_used = rows_in_pairs
    _scatters = shrunk_scatters

    def _solve(self, attract: Matrix, repel: Matrix, k: int) -> Pencil:
        return compress_within(attract, repel, k, self.threshold, self.target)
