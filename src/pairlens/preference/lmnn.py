"""LMNN: the whole metric for nearest neighbours by classes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from pairlens._sklearn import Interval
from pairlens.engines import Rows, evenly_spaced
from pairlens.methods.base import PairTransformer
from pairlens.preference.embedded import LargeMarginNeighbours
from pairlens.preference.lmca import target_neighbours
from pairlens.preference.metric import MetricLearner
from pairlens.supervision import Constraints
from pairlens.supervision.combined import class_codes

__all__ = ["LMNN"]


class LMNN(MetricLearner, PairTransformer):
    r"""Large margin nearest neighbours.

    A metric :math:`d(x, x') = \|L (x - x')\|^2` that minimises

    .. math::
        (1 - \mu) \sum_{i, j} d(x_i, x_j)
        + \mu \sum_{i, j} \sum_{l \text{ of another class}} h(1 + d(x_i, x_j) - d(x_i, x_l)) ,
        \qquad h(t) = \max(t, 0) ,

    over the rows i and their target neighbours j, the `n_neighbors` nearest rows of the same class. All directions are
    learnt, from the identity on, and the view is cut from them.

    Choose it for nearest-neighbour classification with all directions (``n_components=None``). For a view of few
    dimensions :class:`LMCA` learns these dimensions themselves. Standardise the features first.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbours of each row.
    push : float, default=0.5
        Weight :math:`\mu` of the impostors, between 0 and 1.
    sigma : float, default=0.01
        Width of the rounded corner of the hinge.
    max_samples : int, default=5000
        Of more labelled rows this many, evenly spaced, are learnt from: an evaluation compares each with all others.
    tol : float, default=1e-4
        Stop when the objective improves by less than this share.

    Attributes
    ----------
    loss_curve_ : list of float
        The objective, over :math:`1 - \mu` and the number of target neighbours, at the start and after each iteration.

    See Also
    --------
    LMCA : The same objective in few dimensions.

    References
    ----------
    .. [1] Kilian Q. Weinberger and Lawrence K. Saul, "Distance metric learning for large margin nearest neighbor
       classification", JMLR 10, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import LMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> LMNN(n_components=None).fit(X, y).components_.shape
    (4, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MetricLearner._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "push": [Interval(Real, 0, 1, closed="left")],
        "sigma": [Interval(Real, 0, None, closed="left")],
        "max_samples": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        n_neighbors: int = 3,
        push: float = 0.5,
        sigma: float = 0.01,
        max_samples: int = 5_000,
        max_iter: int = 100,
        tol: float = 1e-4,
    ) -> None:
        super().__init__(n_components, max_iter=max_iter, tol=tol)
        self.n_neighbors = n_neighbors
        self.push = push
        self.sigma = sigma
        self.max_samples = max_samples

    def _learn(self, rows: Rows, known: Constraints) -> None:
        codes = class_codes(known)
        used = np.flatnonzero(codes >= 0)
        used = used[evenly_spaced(len(used), self.max_samples)]
        targets = target_neighbours(rows[used], codes[used], self.n_neighbors)
        objective = None
        if len(np.unique(codes[used])) >= 2 and len(targets):
            objective = LargeMarginNeighbours(targets, codes[used], self.push / (1 - self.push), float(self.sigma))
        self._fit_map(rows, used, objective, whole=True, lacking="no two classes with a row to spare are known")
