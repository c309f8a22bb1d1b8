"""BWDR and WBDR: make one kind of difference equal in all directions, then rank the directions by the other."""

from __future__ import annotations

from typing import Any, ClassVar

from pairlens.engines import IntArray
from pairlens.methods._incremental import Incremental
from pairlens.methods._stretching import CompressWithin, ShrunkScatters, StretchBetween
from pairlens.supervision import Constraints

__all__ = ["BWDR", "WBDR"]


class _Linear(ShrunkScatters, Incremental):
    """The linear form: only rows in pairs count, unless a target of the shrinkage asks for all."""

    _rows_may_be: ClassVar = "anywhere"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Incremental._parameter_constraints,
        **ShrunkScatters._shrinkage_constraints,
    }

    def __init__(self, n_components: int, *, threshold: float, shrinkage: float | str, shrinkage_factor: float) -> None:
        super().__init__(n_components)
        self.threshold = threshold
        self.shrinkage = shrinkage
        self.shrinkage_factor = shrinkage_factor

    def _rows_used(self, known: Constraints) -> IntArray | None:
        pairs_suffice = self.shrinkage == 0 and known.n_must_link > 0 and known.n_cannot_link > 0
        return known.rows if pairs_suffice else None


class BWDR(StretchBetween, _Linear):
    r"""Dimensionality reduction by increasing between-class differences.

    With :math:`S_B = \sum_{C} (x_i - x_j)(x_i - x_j)'` over the cannot-links and :math:`S_W` likewise over the
    must-links, BWDR stretches the leading eigenvectors :math:`e_j` of :math:`S_B` to
    :math:`\sqrt{\lambda_1 / \lambda_j}\, e_j`, which makes the between-class difference :math:`\lambda_1` in every
    direction, and keeps the `n_components` directions in which :math:`S_W` is then smallest.

    Choose it when directions along which different things hardly differ are noise: it leaves them out. Standardise the
    features first: on raw data one large feature can hold more than the `threshold` of all between-class difference,
    and then the must-links have no say (a warning tells).

    Parameters
    ----------
    n_components : int, default=2
        Number of directions to keep.
    threshold : float in (0, 1], default=0.95
        Share :math:`t_0` of the between-class difference that the stretched directions hold: the largest i with
        :math:`\sum_{j \le i} \lambda_j \le t_0 \sum_j \lambda_j`, at least `n_components`. With 1.0 and regular
        scatters the directions are those of :class:`WBDR`.
    shrinkage : float in [0, 1] or "auto", default="auto"
        How far :math:`S_W` moves towards the identity and :math:`S_B` towards the total scatter of all rows, each
        scaled to the same trace. "auto" is p / (p + m) for p coordinates (features, or the rank of X if that is
        smaller because rows are few) and pairs of total weight m of that kind. Few or noisy pairs need it: without,
        the result is often worse than PCA. 0.0 is the method of the paper, for which only the rows in pairs count.
    shrinkage_factor : float, default=1.0
        Factor c of p in "auto". 1 to 3 suits clean pairs, 10 and more noisy ones.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions, scaled so that :math:`A' S_B A = \lambda_1 I`.
    eigenvalues_ : array of shape (n_components,)
        Within-class difference in each direction after stretching, smallest first.
    mean_ : array of shape (n_features,)
        Mean of the rows of X.
    n_features_in_ : int
        Number of features seen in fit.
    n_samples_seen_ : int
        Number of rows seen by fit, or by partial_fit in all batches.

    See Also
    --------
    WBDR : The dual, which compresses within-class differences first.

    Notes
    -----
    Without must-links :math:`S_W` is the identity, without cannot-links :math:`S_B` is the total scatter; without any
    pairs the directions are those of PCA.

    References
    ----------
    .. [1] The paper of BWDR and WBDR, two dual linear methods for dimensionality reduction under pairwise constraints
       (vol. 8, 2020), Algorithm 1.

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

    def __init__(
        self,
        n_components: int = 2,
        *,
        threshold: float = 0.95,
        shrinkage: float | str = "auto",
        shrinkage_factor: float = 1.0,
    ) -> None:
        super().__init__(n_components, threshold=threshold, shrinkage=shrinkage, shrinkage_factor=shrinkage_factor)


class WBDR(CompressWithin, _Linear):
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
    n_components : int, default=2
        Number of directions to keep.
    threshold : float in (0, 1], default=1.0
        Share :math:`t_0` of the within-class difference that the compressed directions hold; the others keep their
        scale.
    shrinkage : float in [0, 1] or "auto", default="auto"
        How far :math:`S_W` moves towards the identity and :math:`S_B` towards the total scatter of all rows; see
        :class:`BWDR`. 0.0 is the method of the paper, for which only the rows in pairs count.
    shrinkage_factor : float, default=1.0
        Factor c of p in "auto". 1 to 3 suits clean pairs, 10 and more noisy ones.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions; at threshold 1, :math:`A' S_W A` is a multiple of the identity.
    eigenvalues_ : array of shape (n_components,)
        Between-class difference in each direction after compression, largest first.
    mean_ : array of shape (n_features,)
        Mean of the rows of X.
    n_features_in_ : int
        Number of features seen in fit.
    n_samples_seen_ : int
        Number of rows seen by fit, or by partial_fit in all batches.

    See Also
    --------
    BWDR : The dual, which stretches between-class differences first.

    Notes
    -----
    Eigenvalues of :math:`S_W` below 1e-8 of the largest are raised to that: with zeros the printed algorithm is
    undefined. Without must-links :math:`S_W` is the identity, without cannot-links :math:`S_B` is the total scatter;
    without any pairs the directions are those of PCA.

    References
    ----------
    .. [1] The paper of BWDR and WBDR, two dual linear methods for dimensionality reduction under pairwise constraints
       (vol. 8, 2020), Algorithm 2.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pairlens import Constraints, WBDR
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    >>> WBDR(n_components=2).fit_transform(StandardScaler().fit_transform(X), constraints=pairs).shape
    (178, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        threshold: float = 1.0,
        shrinkage: float | str = "auto",
        shrinkage_factor: float = 1.0,
    ) -> None:
        super().__init__(n_components, threshold=threshold, shrinkage=shrinkage, shrinkage_factor=shrinkage_factor)
