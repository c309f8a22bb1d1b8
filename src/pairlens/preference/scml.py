"""SCML: a metric as a sparse combination of local directions, from triplets."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from pairlens._sklearn import Interval
from pairlens._warnings import warn_fallback
from pairlens.engines import Float64, Rows
from pairlens.preference.comparing import ComparisonLearner
from pairlens.preference.linear import minimize
from pairlens.preference.metric import comparison_pairs
from pairlens.preference.objective import smoothed_hinge
from pairlens.spectral.rowspace import generalized, symmetric
from pairlens.supervision import Quadruplets

__all__ = ["SCML", "local_directions"]

RIDGE = 1e-3
"""Share of the mean scatter that is added to that of the closer pairs, where they are few."""


def local_directions(
    near: Float64, far: Float64, places: Float64, weight: Float64, n_regions: int, n_directions: int, seed: int
) -> Float64:
    """Return directions in which the far pairs of a region are long and the close ones short, in rows of length 1.

    Parameters
    ----------
    near, far : arrays of shape (n_comparisons, n_features)
        Differences of the closer and the farther pairs.
    places : array of shape (n_comparisons, n_features)
        Where each comparison is, for the regions.
    weight : array of shape (n_comparisons,)
    n_regions : int
        Clusters of the places; all comparisons together are one region more.
    n_directions : int
        Leading directions of each region.
    seed : int
        For the clusters.
    """
    from sklearn.cluster import KMeans

    regions = [np.ones(len(near), dtype=bool)]
    n_regions = min(n_regions, len(np.unique(places, axis=0)))
    if n_regions > 1:
        label = KMeans(n_regions, n_init=1, random_state=seed).fit_predict(places)
        regions += [label == k for k in range(label.max() + 1)]
    found = []
    for region in regions:
        attract, repel = ((V[region] * weight[region][:, None]).T @ V[region] for V in (near, far))
        ridge = RIDGE * (np.trace(attract) + np.trace(repel)) / len(attract)
        found.append(generalized(repel, attract + max(ridge, 1e-300) * np.eye(len(attract)), n_directions)[1].T)
    directions = np.concatenate(found)
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


class SCML(ComparisonLearner):
    r"""Sparse compositional metric learning.

    A metric :math:`M = \sum_b w_b\, v_b v_b'` of given directions :math:`v_b` with weights :math:`w_b \ge 0` that
    minimise, over triplets,

    .. math::
        \sum_m u_m\, h\big(1 + d_M(a_m, near_m) - d_M(a_m, far_m)\big) + \beta \sum_b w_b ,
        \qquad h(t) = \max(t, 0) , \quad \sum_m u_m = 1 .

    The directions are those in which, in a region of the data, far pairs are longest in relation to close ones. The
    problem is convex, and many weights come out as exactly 0, the more the larger `beta` is.

    Choose it for many triplets in many features: only the weights are learnt, so it is fast and hard to overfit.
    Standardise the features first.

    Parameters
    ----------
    n_components : int or None, default=2
        Number of dimensions of the view: those in which the embedded rows vary most. None keeps all that were found.
    n_regions : int, default=20
        Regions of the data, by k-means, that give directions of their own, beside those of all data.
    n_directions : int, default=10
        Directions of each region.
    beta : float, default=1e-5
        Weight :math:`\beta` of the sum of the weights.
    sigma : float, default=0.1
        Width of the rounded corner of the hinge.
    random_state : int, RandomState, Generator or None, default=None
        For the regions and the draw of comparisons.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        A map L with L'L = M, turned so that the components are uncorrelated and ordered by variance.
    weights_ : array of shape (n_bases,)
        The weights of all directions.

    See Also
    --------
    LMCA : Learns the directions too.

    References
    ----------
    .. [1] Yuan Shi, Aurélien Bellet and Fei Sha, "Sparse compositional metric learning", AAAI 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import SCML, Triplets
    >>> X, y = load_iris(return_X_y=True)
    >>> answers = Triplets.from_labels(y, n_triplets=200, random_state=0)
    >>> SCML(2, random_state=0).fit(X, triplets=answers).transform(X).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ComparisonLearner._parameter_constraints,
        "n_regions": [Interval(Integral, 1, None, closed="left")],
        "n_directions": [Interval(Integral, 1, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "sigma": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        n_regions: int = 20,
        n_directions: int = 10,
        beta: float = 1e-5,
        sigma: float = 0.1,
        max_comparisons: int = 10_000,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, max_iter=max_iter, tol=tol)
        self.n_regions = n_regions
        self.n_directions = n_directions
        self.beta = beta
        self.sigma = sigma
        self.max_comparisons = max_comparisons
        self.random_state = random_state

    def _learn(self, rows: Rows, known: Quadruplets, rng: np.random.Generator) -> None:
        place = self._coordinates(rows, known.rows)
        self.loss_curve_, self.weights_ = [], np.empty(0)
        if known.n_quadruplets == 0:
            warn_fallback(self, "no comparisons are known")
            self._keep(place, place.directions, rows.dtype)
            return
        closer, farther = comparison_pairs(known)
        inside = place.space.rows[known.rows]
        inside = np.asarray(inside.todense() if hasattr(inside, "todense") else inside, dtype=np.float64)
        near, far = closer.differences(inside), farther.differences(inside)
        directions = local_directions(
            near,
            far,
            inside[closer.rows[:, 0]],
            closer.weight,
            self.n_regions,
            min(self.n_directions, place.space.dim),
            int(rng.integers(2**31)),
        )
        gain = np.square(near @ directions.T) - np.square(far @ directions.T)
        scale = float(np.abs(gain).mean()) or 1.0

        def function(w: Float64) -> tuple[float, Float64]:
            loss, slope = smoothed_hinge(1.0 + gain @ w, float(self.sigma))
            return float(closer.weight @ loss + self.beta * w.sum()), (closer.weight * slope) @ gain + self.beta

        start = np.full(len(directions), 1.0 / (scale * len(directions)))
        found = minimize(function, start, self.max_iter, self.tol, lowest=0.0)
        self.loss_curve_ = [function(start)[0], *found.curve]
        self.weights_ = found.L
        values, vectors = symmetric((directions * found.L[:, None]).T @ directions)
        self._keep(place, (vectors * np.sqrt(np.maximum(values, 0.0))).T, rows.dtype)
