"""Two small tables for the checks of the oracles."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_iris, load_wine

from tests.oracles.base import Array


@pytest.fixture(scope="module")
def wine() -> tuple[Array, Array]:
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.fixture(scope="module")
def iris() -> tuple[Array, Array]:
    return load_iris(return_X_y=True)
