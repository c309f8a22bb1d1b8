"""What LSML and SCML share: comparisons from all that a user may pass, and the share of them that a view gets right."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pairlens.preference.embedded import squared_lengths
from pairlens.preference.metric import MetricLearner
from pairlens.preference.pairs import Floats
from pairlens.supervision import Quadruplets, Triplets
from pairlens.supervision.combined import over_rows
from pairlens.supervision.comparisons import Comparisons
from pairlens.supervision.labels import encode_labels

__all__ = ["ComparisonLearner", "comparison_accuracy"]

QUADRUPLETS = "Quadruplets([(a, b, c, d), ...], n_samples=len(X))"
TRIPLETS = "Triplets([(a, near, far), ...], n_samples=len(X))"


def comparison_accuracy(Z: Floats, known: Comparisons) -> float:
    """Share of the weight of comparisons whose closer pair is the closer one in Z; ties count half."""
    near, far = (squared_lengths(Z[pairs[:, 0]] - Z[pairs[:, 1]]) for pairs in (known.closer, known.farther))
    right = np.where(near < far, 1.0, np.where(near == far, 0.5, 0.0))
    return float(known.weight @ right / known.total)


class ComparisonLearner(MetricLearner):
    """A metric learner that comparisons of pairs judge."""

    max_comparisons: int

    __metadata_request__score: ClassVar = {"quadruplets": True, "triplets": True}

    def _known(
        self,
        y: ArrayLike | None,
        quadruplets: Quadruplets | None,
        triplets: Triplets | None,
        n_samples: int,
        rng: np.random.Generator,
    ) -> Quadruplets:
        """All that is said, as quadruplets over `n_samples` rows."""
        known = Quadruplets(n_samples=n_samples)
        if quadruplets is not None:
            given = over_rows(quadruplets, Quadruplets, n_samples, name="quadruplets", example=QUADRUPLETS)
            known = known.merge(given, on_conflict="warn") if known.n_quadruplets else given
        if triplets is not None:
            more = over_rows(triplets, Triplets, n_samples, name="triplets", example=TRIPLETS).to_quadruplets()
            known = known.merge(more) if known.n_quadruplets else more
        if y is not None:
            more = self._triplets_of_classes(y, n_samples, rng).to_quadruplets()
            known = known.merge(more) if known.n_quadruplets else more
        return known

    def _triplets_of_classes(self, y: ArrayLike, n_samples: int, rng: np.random.Generator) -> Triplets:
        """Triplets that classes imply, at most `max_comparisons` of them."""
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
        """Share of the comparisons whose closer pair has the smaller embedded distance; ties count half.

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
