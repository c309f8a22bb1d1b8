"""The two steps of BWDR and WBDR, for their linear and their kernel form."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from pairlens._sklearn import Interval, StrOptions
from pairlens._warnings import warn_fallback, warn_user
from pairlens.exceptions import SupervisionWarning
from pairlens.spectral.eigen import Matrix, Pencil
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import cannot_link_scatter, must_link_scatter
from pairlens.spectral.stretch import compress_within, shrink, stretch_between
from pairlens.supervision import Constraints

__all__ = ["CompressWithin", "ShrunkScatters", "StretchBetween"]


class ShrunkScatters:
    """The two scatters of BWDR and WBDR, and their shrinkage."""

    n_components: int
    threshold: float
    shrinkage: float | str
    shrinkage_factor: float

    _shrinkage_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Interval(Real, 0, 1, closed="right")],
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "shrinkage_factor": [Interval(Real, 0, None, closed="neither")],
    }

    def _shrinkage_weight(self, scatter: Matrix, total: float) -> float:
        """Weight of the target for a scatter of pairs of this total weight; 1 if they join equal rows only."""
        if not np.trace(scatter) > 0:
            return 1.0
        if self.shrinkage == "auto":
            prior = self.shrinkage_factor * len(scatter)
            return prior / (prior + total)
        return float(self.shrinkage)

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        """S_W of the must-links and S_B of the cannot-links, shrunk towards the identity and the total scatter."""
        S_W, S_B = must_link_scatter(space, known), cannot_link_scatter(space, known)
        weight_W = self._shrinkage_weight(S_W, known.must_link_total)
        weight_B = self._shrinkage_weight(S_B, known.cannot_link_total)
        if weight_W > 0:
            S_W = shrink(S_W, np.eye(space.dim), weight_W)
        if weight_B > 0:
            S_B = shrink(S_B, space.total_scatter(), weight_B)
        if known.n_must_link == known.n_cannot_link == 0:
            warn_fallback(self, "no pairs were given")
        return S_W, S_B


class StretchBetween(ShrunkScatters):
    """The eigenproblem of BWDR."""

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        solution, stretched = stretch_between(attract, repel, self.n_components, self.threshold)
        if stretched <= self.n_components < np.linalg.matrix_rank(repel):
            warn_user(
                f"{type(self).__name__}: {self.n_components} directions already hold more than "
                f"threshold={self.threshold} of the between-class difference, so the must-links have no influence. "
                "Standardise the features, or raise threshold.",
                SupervisionWarning,
            )
        return solution


class CompressWithin(ShrunkScatters):
    """The eigenproblem of WBDR."""

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return compress_within(attract, repel, self.n_components, self.threshold)
