"""What the tests of the lenses and of the map share."""

from __future__ import annotations

import pytest

quiet = pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")
FAST = {"max_iter": 60, "early_exaggeration_iter": 30, "random_state": 0}
"""A PairMap of few iterations."""


def lists(pairs):
    """Pairs as the oracles want them."""
    return pairs.must_link.tolist(), pairs.cannot_link.tolist()
