"""LSML: a metric from comparisons of pairs, by least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairlens.engines import Rows
from pairlens.preference.comparing import ComparisonLearner
from pairlens.preference.embedded import ComparisonResidual
from pairlens.preference.metric import comparison_pairs, log_det_penalty
from pairlens.supervision import Quadruplets

__all__ = ["LSML"]


class LSML(ComparisonLearner):
    r"""Least squares metric learning.

    A metric with the distance :math:`r(x, x') = \|L (x - x')\|` that minimises, over statements "a and b are more alike
    than c and d",

    .. math::
        \sum_m w_m\, h(r(a_m, b_m) - r(c_m, d_m))^2 + \mathrm{tr} M - \log\det M ,
        \qquad M = L'L , \quad h(t) = \max(t, 0) , \quad \sum_m w_m = 1 .

    The second part is the LogDet divergence from the identity: it keeps all directions, so few comparisons change the
    metric a little only. Standardise the features first.

    Choose it for comparisons of pairs that have no row in common. For triplets and a view of few dimensions,
    :class:`LMCA` is the better choice.

    Attributes
    ----------
    loss_curve_ : list of float
        The objective, less the number of features, at the start and after each iteration.

    See Also
    --------
    SCML : Triplets, with a large margin.

    References
    ----------
    .. [1] Eric Y. Liu, Zhishan Guo, Xiang Zhang, Vladimir Jojic and Wei Wang, "Metric learning from relative
       comparisons by minimizing squared residual", ICDM 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import LSML, Quadruplets
    >>> X, y = load_iris(return_X_y=True)
    >>> answers = Quadruplets.from_labels(y, 200, random_state=0)
    >>> LSML(2).fit(X, quadruplets=answers).transform(X).shape
    (150, 2)
    """

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        max_comparisons: int = 10_000,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, max_iter=max_iter, tol=tol)
        self.max_comparisons = max_comparisons
        self.random_state = random_state

    def _learn(self, rows: Rows, known: Quadruplets, rng: np.random.Generator) -> None:
        objective = ComparisonResidual(*comparison_pairs(known)) if known.n_quadruplets else None
        lacking = "no comparisons are known"
        self._fit_map(rows, known.rows, objective, whole=True, penalty=log_det_penalty, lacking=lacking)
