"""LSML and SCML: metrics from comparisons of pairs, by least squares and by a sparse sum of local directions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pairlens._sklearn import COUNT, NOT_NEGATIVE, SEED, as_generator, estimator, fit_context, parameter
from pairlens._warnings import warn_fallback
from pairlens.engines import Float64, Rows, one_thread
from pairlens.exceptions import ArgumentError, InputError
from pairlens.preference.metric import MetricLearner, comparison_pairs, log_det_penalty, minimize
from pairlens.preference.objective import Pairs, smoothed_hinge, squared_lengths
from pairlens.spectral.rowspace import generalized, symmetric
from pairlens.supervision import Quadruplets, Triplets
from pairlens.supervision.combined import over_rows
from pairlens.supervision.inputs import encode_labels

RIDGE = 1e-3
"""Share of the mean scatter that is added to that of the closer pairs, where they are few."""


def comparison_accuracy(Z: Float64, known: Triplets | Quadruplets) -> float:
    """Return the share of the weight of comparisons whose closer pair is the closer one in Z; ties count half."""
    near, far = (squared_lengths(Z[pairs[:, 0]] - Z[pairs[:, 1]]) for pairs in (known.closer, known.farther))
    right = np.where(near < far, 1.0, np.where(near == far, 0.5, 0.0))
    return float(known.weight @ right / known.total)


@estimator
class ComparisonLearner(MetricLearner, ABC):
    """Learn a metric from comparisons of pairs, and judge it by them.

    Parameters
    ----------
    max_comparisons : int, default=10000
        Most triplets that are drawn from classes `y`.
    """

    max_comparisons: int = parameter(COUNT, default=10_000)
    random_state: Any = parameter(*SEED, default=None)
    __metadata_request__fit: ClassVar = {"quadruplets": True, "triplets": True}
    __metadata_request__score: ClassVar = {"quadruplets": True, "triplets": True}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        quadruplets: Quadruplets | None = None,
        triplets: Triplets | None = None,
    ) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Classes, -1 or missing where unknown: a row is more like one of its class than like one of another.
        quadruplets : Quadruplets, optional
            Which of two pairs of rows is more alike.
        triplets : Triplets, optional
            Which of two rows is more like a third.

        Returns
        -------
        self : object
        """
        rows = self._read(X, fitting=True)
        rng = as_generator(self.random_state)
        with one_thread():
            self._learn(rows, self._known(y, quadruplets, triplets, rows.shape[0], rng), rng)
        return self

    @abstractmethod
    def _learn(self, rows: Rows, known: Quadruplets, rng: np.random.Generator) -> None:
        """Learn from checked rows and all that is known about them."""

    def _known(
        self,
        y: ArrayLike | None,
        quadruplets: Quadruplets | None,
        triplets: Triplets | None,
        n_samples: int,
        rng: np.random.Generator,
    ) -> Quadruplets:
        """Return all that is said, as quadruplets over `n_samples` rows."""
        known = Quadruplets(n_samples=n_samples)
        if quadruplets is not None:
            known = over_rows(quadruplets, Quadruplets, n_samples)
        if triplets is not None:
            more = over_rows(triplets, Triplets, n_samples).to_quadruplets()
            known = known.merge(more) if known.n_quadruplets else more
        if y is not None:
            more = self._triplets_of_classes(y, n_samples, rng).to_quadruplets()
            known = known.merge(more) if known.n_quadruplets else more
        return known

    def _triplets_of_classes(self, y: ArrayLike, n_samples: int, rng: np.random.Generator) -> Triplets:
        """Return triplets that classes imply, at most `max_comparisons` of them."""
        codes = encode_labels(y)
        if len(codes) != n_samples:
            raise ArgumentError("y", len(codes), f"must have {n_samples} entries, one for each row of X")
        size = np.bincount(codes[codes >= 0])
        available = int((size * (size - 1) * (size.sum() - size)).sum())
        return Triplets.from_labels(codes, n_triplets=min(available, self.max_comparisons), random_state=rng)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        quadruplets: Quadruplets | None = None,
        triplets: Triplets | None = None,
    ) -> float:
        """Return the share of the comparisons whose closer pair has the smaller embedded distance; ties count half.

        Parameters
        ----------
        X, y, quadruplets, triplets
            As for :meth:`fit`, held out; `max_comparisons` triplets are drawn from classes with a fixed seed.

        Returns
        -------
        accuracy : float
            0.5 is chance.
        """
        embedded: Any = np.asarray(self.transform(X))
        known = self._known(y, quadruplets, triplets, len(embedded), np.random.default_rng(0))
        if known.n_quadruplets == 0:
            raise InputError(
                "score needs at least one comparison among the rows",
                argument="triplets",
                remedy="Give quadruplets=, triplets= or classes by y=",
            )
        return comparison_accuracy(embedded, known)


@dataclass(frozen=True)
class ComparisonResidual:
    r"""Sum the squared residuals of violated comparisons, :math:`\sum_m w_m h(r_m^{near} - r_m^{far})^2`."""

    closer: Pairs
    farther: Pairs

    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        near, far = self.closer.differences(Z), self.farther.differences(Z)
        short, long = np.sqrt(squared_lengths(near)), np.sqrt(squared_lengths(far))
        residual = np.maximum(short - long, 0.0)
        slope = 2 * self.closer.weight * residual
        tiny = np.finfo(np.float64).tiny
        # Where the far rows coincide there is no direction to push them in.
        push = np.where(long > 0, slope / np.maximum(long, tiny), 0.0)
        value = float(self.closer.weight @ residual**2)
        return value, self.closer.gather(near, slope / np.maximum(short, tiny)) - self.farther.gather(far, push)


@estimator
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

    def _learn(self, rows: Rows, known: Quadruplets, rng: np.random.Generator) -> None:
        objective = ComparisonResidual(*comparison_pairs(known)) if known.n_quadruplets else None
        lacking = "no comparisons are known"
        self._fit_map(rows, known.rows, objective, whole=True, penalty=log_det_penalty, lacking=lacking)


def local_directions(
    near: Float64, far: Float64, places: Float64, weight: Float64, n_regions: int, n_directions: int, seed: int
) -> Float64:
    """Return directions in which the far pairs of a region are long and the close ones short, in rows of length 1.

    `near` and `far` are differences of the closer and the farther pairs. The regions are clusters of the places of the
    comparisons, and all comparisons together are one region more; each gives its leading directions.
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


@estimator
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

    n_regions: int = parameter(COUNT, default=20)
    n_directions: int = parameter(COUNT, default=10)
    beta: float = parameter(NOT_NEGATIVE, default=1e-5)
    sigma: float = parameter(NOT_NEGATIVE, default=0.1)

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
