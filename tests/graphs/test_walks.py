"""The random walk over near rows."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens import Constraints, PairLens
from pairlens.graphs.walks import near_graph


def _cluster_and_outlier(ratio: float) -> np.ndarray:
    """A tight cluster, and one row whose distance to it is `ratio` times the distances inside."""
    cluster = np.random.default_rng(0).standard_normal((40, 3))
    return np.concatenate([cluster, [[ratio, 0, 0]]])


@pytest.mark.parametrize("ratio", [10.0, 500.0, 700.0, 720.0, 740.0, 1e5])
def test_a_row_far_from_a_tight_cluster_has_a_finite_walk(ratio):
    """Its weights come near the smallest number there is, whose inverse overflows."""
    graph = near_graph(_cluster_and_outlier(ratio), 10)
    assert np.isfinite(graph.walk.data).all()
    np.testing.assert_allclose(np.asarray(graph.walk.sum(axis=1)).ravel(), 1.0)


def test_all_outliers_leave_a_finite_view():
    X = np.concatenate([_cluster_and_outlier(ratio) + 3 * i for i, ratio in enumerate([690.0, 710.0, 725.0, 735.0])])
    pairs = Constraints.from_labels(np.repeat([0, 1, 2, 3], 41), n_pairs=60, random_state=0)
    assert np.isfinite(PairLens(2, random_state=0).fit(X, constraints=pairs).transform(X)).all()
