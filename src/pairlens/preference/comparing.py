"""What LSML and SCML share: `fit` to all comparisons that a user passes, and the share that a view gets right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pairlens._sklearn import Interval, as_generator, fit_context
from pairlens.engines import Float64, Rows
from pairlens.preference.embedded import squared_lengths
from pairlens.preference.metric import MetricLearner
from pairlens.supervision import Quadruplets, Triplets
from pairlens.supervision.combined import over_rows
from pairlens.supervision.inputs import encode_labels

__all__ = ["ComparisonLearner", "comparison_accuracy"]


def comparison_accuracy(Z: Float64, known: Triplets | Quadruplets) -> float:
    """Return the share of the weight of comparisons whose closer pair is the closer one in Z; ties count half."""
    near, far = (squared_lengths(Z[pairs[:, 0]] - Z[pairs[:, 1]]) for pairs in (known.closer, known.farther))
    right = np.where(near < far, 1.0, np.where(near == far, 0.5, 0.0))
    return float(known.weight @ right / known.total)


class ComparisonLearner(MetricLearner, ABC):
    """Learn a metric from comparisons of pairs, and judge it by them.

    Parameters
    ----------
    max_comparisons : int, default=10000
        Most triplets that are drawn from classes `y`.
    random_state : int, RandomState, Generator or None, default=None
        For the draw of comparisons from classes.
    """

    max_comparisons: int
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MetricLearner._parameter_constraints,
        "max_comparisons": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }
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
            raise ValueError(f"y has {len(codes)} entries but X has {n_samples} rows; there must be one for each.")
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
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Classes, -1 or missing where unknown; `max_comparisons` triplets are drawn from them with a fixed seed.
        quadruplets : Quadruplets, optional
            Held-out comparisons of these rows.
        triplets : Triplets, optional
            The same with a row in common.

        Returns
        -------
        accuracy : float
            0.5 is chance.
        """
        embedded: Any = np.asarray(self.transform(X))
        known = self._known(y, quadruplets, triplets, len(embedded), np.random.default_rng(0))
        if known.n_quadruplets == 0:
            raise ValueError(
                "score needs at least one comparison among the rows: give quadruplets=, triplets= or classes by y."
            )
        return comparison_accuracy(embedded, known)
