"""Which answers stand out."""

from __future__ import annotations

import numpy as np

from pairlens.judging.suspicion import SuspiciousPairs


def test_what_is_more_probably_wrong_than_right_stands_out():
    found = SuspiciousPairs(np.arange(8).reshape(4, 2), np.array([1, -1, 1, -1]), np.array([0.9, 0.51, 0.5, 0.1]))
    out = found.standing_out
    assert out.pairs.tolist() == [[0, 1], [2, 3]]
    assert out.link.tolist() == [1, -1]
    assert out.suspicion.tolist() == [0.9, 0.51]
    assert len(SuspiciousPairs(found.pairs[2:], found.link[2:], found.suspicion[2:]).standing_out) == 0
