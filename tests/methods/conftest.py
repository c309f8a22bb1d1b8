"""Rows and pairs for the tests of the lenses and of the map."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_wine

from pairlens import Constraints


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X, y, Constraints.from_labels(y, n_pairs=100, random_state=0)
