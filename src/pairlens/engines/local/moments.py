r"""Count, mean and scatter of some rows, and how those of two sets become those of both.

With :math:`d = m_b - m_a`, the scatter about the common mean is
:math:`T = T_a + T_b + \frac{n_a n_b}{n_a + n_b} d d'`. Nothing large is subtracted, so chunks and batches may be merged
in any order without loss of digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.engines.interface import column_means, take_rows, varying_columns, weighted_scatter
from pairlens.engines.types import IntArray, Rows


@dataclass(frozen=True)
class Moments:
    """What is kept of rows.

    Attributes
    ----------
    n : int
        How many.
    mean : array of shape (n_features,)
    scatter : array of shape (n_features, n_features), optional
        About the mean; None if it was not asked for.
    first : array of shape (n_features,)
        One of the rows.
    varies : bool array of shape (n_features,)
        Which features are not constant.
    """

    n: int
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64] | None
    first: NDArray[np.float64]
    varies: NDArray[np.bool_]

    @classmethod
    def of(cls, X: Rows, *, scatter: bool = True) -> Moments:
        """Those of at least one row."""
        mean = column_means(X)
        return cls(
            n=int(X.shape[0]),
            mean=mean,
            scatter=weighted_scatter(X, offset=mean, is_mean=True) if scatter else None,
            first=take_rows(X, np.array([0]))[0],
            varies=varying_columns(X),
        )

    def merge(self, other: Moments) -> Moments:
        """Those of both sets of rows."""
        n = self.n + other.n
        step = other.mean - self.mean
        scatter = None
        if self.scatter is not None and other.scatter is not None:
            scatter = self.scatter + other.scatter + (self.n * (other.n / n)) * np.outer(step, step)
        return Moments(
            n=n,
            mean=self.mean + step * (other.n / n),
            scatter=scatter,
            first=self.first,
            varies=self.varies | other.varies | (self.first != other.first),
        )

    def about(self, offset: NDArray[Any]) -> NDArray[np.float64]:
        """The scatter about another point."""
        assert self.scatter is not None
        step = self.mean - offset
        return self.scatter + self.n * np.outer(step, step)

    def columns(self, chosen: IntArray) -> Moments:
        """Those of some of the features."""
        scatter = None if self.scatter is None else self.scatter[np.ix_(chosen, chosen)]
        return replace(
            self, mean=self.mean[chosen], scatter=scatter, first=self.first[chosen], varies=self.varies[chosen]
        )


def merge_moments(parts: Sequence[Moments]) -> Moments:
    """Those of all sets of rows."""
    return reduce(Moments.merge, parts)
