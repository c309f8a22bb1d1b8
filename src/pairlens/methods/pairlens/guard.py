"""The guard: KernelBWDR as the rival of the two stages, judged on the same folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import Rows
from pairlens.judging import HeldOutDistances, PairFolds, held_out_distances
from pairlens.kernels.features import kernel_features
from pairlens.methods.bwdr import shrunk_scatters, stretch_between
from pairlens.methods.kernel_bwdr import KernelBWDR
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints

__all__ = ["FEWEST_FOR_GUARD", "GUARD_FOLDS", "Rival"]

GUARD_FOLDS = 3
FEWEST_FOR_GUARD = 5
"""Pairs of a kind below which no question is asked."""


@dataclass(frozen=True)
class Rival:
    """KernelBWDR of z-scored rows: what depends on the rows alone, ready for the pairs of any fold.

    Attributes
    ----------
    method : KernelBWDR
        With its defaults: shrunk, in 150 kernel principal components of median width.
    space : RowSpace
        The kernel principal components of the rows.
    """

    method: KernelBWDR
    space: RowSpace

    @classmethod
    def of(cls, Z: Rows, n_components: int) -> Rival:
        """Prepare z-scored rows."""
        method = KernelBWDR(n_components)
        features = kernel_features(Z, kernel=method.kernel, gamma=method.gamma, rank=method.rank, center=True)
        coordinates = features(Z)
        return cls(method, RowSpace(coordinates, coordinates.mean(axis=0)))

    def view(self, known: Constraints) -> NDArray[np.float64]:
        """The rows in the view that KernelBWDR learns from these pairs."""
        method = self.method
        within, between = shrunk_scatters(self.space, known, method.shrinkage, method.shrinkage_factor)
        (_, directions), _ = stretch_between(within, between, method.n_components, method.threshold)
        return np.asarray(self.space.rows @ directions)

    def held_out(self, folds: PairFolds) -> HeldOutDistances:
        """Distances of held-out pairs in its views."""
        return held_out_distances(self.view, folds)
