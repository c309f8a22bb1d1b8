"""What other readings of the papers give: how far they turn the subspace, and what that changes.

Where a paper leaves something open, or we do something that it does not say, the method's page names it. The protocol
:func:`turned` compares the first method of an experiment, ours, with the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.linalg import subspace_angles
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from pairlens.engines import graph_scatter, projected_rows, weight_matrix
from pairlens.graphs.edges import default_gamma, heat_weights, normalized_graph
from pairlens.kernels import must_link_null_space
from pairlens.methods.dsp import DSP, cannot_links, far_edges, near_edges
from pairlens.methods.sodrpac import Terms
from pairlens.metrics import cumulative_purity
from pairlens.preference.wsdr import WSDR
from pairlens.spectral.rowspace import Matrix, RowSpace
from pairlens.supervision import Constraints
from reproduction.experiment import Array, Result, Unit


def turned(unit: Unit) -> Iterator[Result]:
    """Fit every method to the same pairs (or scores); the angle of its subspace to the first one's, and 1-NN in it."""
    X, y = unit.X, unit.y
    known: dict[str, Any]
    if "levels" in unit.data.params:
        X, edges = StandardScaler().fit_transform(X), np.linspace(0, 1, unit.data.params["levels"] + 1)[1:-1]
        y = np.searchsorted(np.quantile(y, edges), y).astype(np.int64)
        known = {"y": y}
    else:
        seed = unit.seed("pairs")
        known = {"constraints": Constraints.from_labels(y, per_class=unit.settings["pairs"], random_state=seed)}
    first = None
    for method in unit.methods:
        model = method.build(n_components=unit.settings["dims"]).fit(X, **known)
        first = model.components_ if first is None else first
        yield Result(method.name, float(subspace_angles(first.T, model.components_.T).max()), "angle")
        yield Result(method.name, float(cumulative_purity(X @ model.components_.T, y, 1)[0]), "1-NN")


class InputNeighbors(DSP):
    """DSP with the neighbours of equation 9 found in the input space instead of the projected kernel."""

    def _scatters(self, space: RowSpace, pairs: Constraints) -> tuple[Matrix, Matrix]:
        rows, chunklets = space.near_rows, pairs.chunklets()
        self.gamma_ = self._find_gamma(rows, pairs)
        null_space = must_link_null_space(rows, chunklets, gamma=self.gamma_)
        projected = projected_rows(rows, null_space.coordinates(rows), self.gamma_, chunklets)
        found = projected.neighbors(self.n_neighbors)
        nearest = NearestNeighbors(n_neighbors=self.n_neighbors).fit(rows).kneighbors(return_distance=False)
        S = near_edges(projected, replace(found, nearest=nearest))
        R = far_edges(projected, found, *cannot_links(pairs))
        return graph_scatter(space.rows, S), graph_scatter(space.rows, R)


class UncentredSODRPaC(BaseEstimator):
    """SODRPaC with the manifold term of the rows as they are, not about their mean."""

    def __init__(self, n_components: int = 2, lam: float = 8.0) -> None:
        self.n_components = n_components
        self.lam = lam

    def fit(self, X: Array, *, constraints: Constraints) -> UncentredSODRPaC:
        """Learn the directions of equation 10 as printed."""
        gamma = default_gamma(X)
        terms = Terms.of(RowSpace(X, X.mean(axis=0)), 3, 5)
        weights = heat_weights(terms.graph_squared, gamma)
        scaled = normalized_graph(weight_matrix(terms.graph, weights, len(X)))
        manifold = X.T @ X - X.T @ (scaled @ X)
        apart = terms.apart(constraints, terms.generate(constraints), gamma)
        _, vectors = np.linalg.eigh(apart - terms.together - self.lam * manifold / len(X))
        self.components_ = vectors[:, ::-1][:, : self.n_components].T
        return self


class ConstantPenalty(WSDR):
    """WSDR by alternating directions with a penalty mu that stays as it is."""

    def fit(self, X: Any, y: Any = None, **known: Any) -> ConstantPenalty:
        """Fit with the rule that balances the penalty switched off."""
        with patch("pairlens.preference.wsdr.BALANCE", np.inf):
            return super().fit(X, y, **known)
