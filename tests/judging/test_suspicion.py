"""Which answers stand out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pairlens.judging.suspicion import SuspiciousPairs


def test_what_is_beyond_the_threshold_stands_out():
    suspicion, together = np.array([0.9, 0.51, 0.5, 0.1]), np.array([0.1, 0.6, 0.5, 0.2])
    found = SuspiciousPairs(np.arange(8).reshape(4, 2), np.array([1, -1, 1, -1]), suspicion, together, 0.5)
    out = found.standing_out
    assert out.pairs.tolist() == [[0, 1], [2, 3]]
    assert out.link.tolist() == [1, -1]
    assert out.suspicion.tolist() == [0.9, 0.51]
    assert out.together.tolist() == [0.1, 0.6]
    assert len(replace(found, threshold=0.9).standing_out) == 0
