"""Rows and pairs for all tests of the two lenses."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="module")
def shells():
    """A shell inside another, so thin that neighbours lie on both: the guard's other choice sees them better."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 240)
    X = rng.standard_normal((240, 6))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * np.where(y == 1, 1.0, 0.5)[:, None], y
