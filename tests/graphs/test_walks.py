"""The random walk over near rows."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens import Constraints, PairLens
from pairlens.graphs.nearest import near_graph


def _simplex_and_outlier(exponent: float) -> np.ndarray:
    """Twelve rows at distance sqrt(2) from each other, and one whose weights to them are exp(-exponent)."""
    distance = np.sqrt(2) * exponent
    rows = np.zeros((13, 13))
    rows[:12, :12] = np.eye(12)
    rows[12, 12] = np.sqrt(distance**2 - 1)
    return rows


@pytest.mark.parametrize("exponent", [10.0, 600.0, 715.0, 730.0, 743.0, 1e5])
def test_a_row_far_from_a_tight_cluster_has_a_finite_walk(exponent):
    """Its weights come near the smallest number there is, whose inverse overflows."""
    graph = near_graph(_simplex_and_outlier(exponent), 10)
    assert np.isfinite(graph.walk.data).all()
    np.testing.assert_allclose(np.asarray(graph.walk.sum(axis=1)).ravel(), 1.0)


def test_pairs_spread_to_finite_directions_beside_an_outlier():
    X = _simplex_and_outlier(730.0)
    pairs = Constraints([(0, 1), (2, 3), (4, 5)], [(0, 6), (2, 7), (4, 12)], n_samples=13)
    assert np.isfinite(PairLens(2, random_state=0).fit(X, constraints=pairs).transform(X)).all()
