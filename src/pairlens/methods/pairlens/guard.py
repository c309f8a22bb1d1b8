"""The guard: KernelBWDR, or KernelWBDR and WBDR, as the rivals of the two stages, judged on the same folds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import Rows, along, column_means, rows_in_memory
from pairlens.exceptions import SupervisionWarning
from pairlens.judging import HeldOutDistances, PairFolds, held_out_distances
from pairlens.kernels.features import KernelFeatures, kernel_features
from pairlens.methods.bwdr import WBDR, compress_within, shrunk_scatters, stretch_between
from pairlens.methods.kernel_bwdr import KernelBWDR, KernelWBDR
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints

GUARD_FOLDS = 3
FEWEST_FOR_GUARD = 5
"""Pairs of a kind below which no question is asked."""
RANK = 150
THRESHOLD = {KernelBWDR: 0.95, KernelWBDR: 1.0}


@dataclass(frozen=True)
class Rival:
    """A kernel method of z-scored rows: what depends on the rows alone, ready for the pairs of any fold.

    Attributes
    ----------
    Z : array or CSR matrix of shape (n_samples, n_features)
        The rows, z-scored unless their scale is kept.
    features : KernelFeatures
        The map from z-scored rows to kernel principal components, 150 of median width.
    space : RowSpace
        The rows there.
    n_components : int
    method : type
        :class:`KernelBWDR` or :class:`KernelWBDR`.
    """

    Z: Rows
    features: KernelFeatures
    space: RowSpace
    n_components: int
    method: type[KernelBWDR] = KernelBWDR

    @classmethod
    def of(
        cls,
        Z: Rows,
        n_components: int,
        *,
        method: type[KernelBWDR] = KernelBWDR,
        features: KernelFeatures | None = None,
    ) -> Rival:
        """Prepare z-scored rows; `features` are those of the same rows, if they are known from before."""
        if features is None:
            features = kernel_features(Z, kernel="rbf", gamma="median", rank=RANK, center=True)
        coordinates = features(Z)
        return cls(Z, features, RowSpace(coordinates, column_means(coordinates)), n_components, method)

    def directions(self, known: Constraints) -> NDArray[np.float64]:
        """What the method learns from these pairs, in the kernel principal components."""
        within, between = shrunk_scatters(self.space, known, "auto", 1.0)
        threshold = THRESHOLD[self.method]
        if self.method is KernelWBDR:
            return compress_within(within, between, self.n_components, threshold)[1]
        return stretch_between(within, between, self.n_components, threshold)[0][1]

    def view(self, known: Constraints) -> NDArray[np.float64]:
        """The rows in the view that the method learns from these pairs."""
        return np.asarray(rows_in_memory(along(self.space.rows, self.directions(known))))

    def held_out(self, folds: PairFolds) -> HeldOutDistances:
        """Distances of held-out pairs in its views."""
        return held_out_distances(self.view, folds)

    def fit(self, known: Constraints) -> KernelBWDR:
        """The estimator itself, for all pairs."""
        with warnings.catch_warnings(action="ignore", category=SupervisionWarning):
            chosen = self.method(
                self.n_components, kernel="rbf", gamma="median", rank=RANK, threshold=THRESHOLD[self.method]
            )
            return chosen.fit(rows_in_memory(self.Z), constraints=known)


@dataclass(frozen=True)
class LinearRival:
    """:class:`WBDR` of rows in the scale of an encoder.

    Attributes
    ----------
    Z : array or CSR matrix of shape (n_samples, n_features)
    n_components : int
        At most the number of features.
    """

    Z: Rows
    n_components: int
    method = WBDR

    def held_out(self, folds: PairFolds) -> HeldOutDistances:
        """Distances of held-out pairs in its views."""
        return held_out_distances(lambda train: np.asarray(self.fit(train).transform(rows_in_memory(self.Z))), folds)

    def fit(self, known: Constraints) -> WBDR:
        """The estimator itself."""
        with warnings.catch_warnings(action="ignore", category=SupervisionWarning):
            return WBDR(self.n_components).fit(rows_in_memory(self.Z), constraints=known)
