"""Small problems that several tests share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from pairlens.supervision import Preferences


class Ranked(NamedTuple):
    """Rows, ordinal levels from a noisy linear score, and some of the preferences they imply."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    preferences: Preferences


@pytest.fixture
def ranked() -> Ranked:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 6)) * [3.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    score = X[:, 2] + 0.5 * X[:, 3] + 0.3 * rng.normal(size=80)
    y = np.digitize(score, np.quantile(score, [0.33, 0.66]))
    return Ranked(X, y, Preferences.from_scores(y, n_pairs=400, random_state=0))


@pytest.fixture
def few(ranked: Ranked) -> Preferences:
    """So few preferences that every combination of two can be looked at one by one."""
    return Preferences(ranked.preferences.pairs[::8], n_samples=len(ranked.X))
