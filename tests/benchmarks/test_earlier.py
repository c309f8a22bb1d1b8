"""This version beside an earlier one: the same rows and pairs in two processes, and the table of differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

earlier = pytest.importorskip("benchmarks.earlier", reason="needs the folder benchmarks of the repository")


def test_a_version_fits_what_was_prepared(tmp_path):
    X, y = make_blobs(60, 4, centers=2, random_state=0)
    pairs = {"must 30": links(y, True), "cannot 30": links(y, False)}
    np.savez(tmp_path / "blobs.npz", train=X[:40], test=X[40:], y_train=y[:40], y_test=y[40:], **pairs)
    rows = earlier.run(None, tmp_path)
    # Of four columns no view with five directions is made.
    assert [row[:3] for row in rows] == [["blobs", "30", m] for m in earlier.METHODS if "(5)" not in m]
    assert min(row[3] for row in rows) > 0.9


def links(y, same):
    return [(i, j) for i in range(10) for j in range(i) if (y[i] == y[j]) == same][:15]


def test_the_table_has_differences_over_cases():
    before = [[case, "60", "PairMap", value, 0.5, 0.5] for case, value in (("wine", 0.2), ("seeds", 0.4))]
    now = [[case, setting, method, value + 0.1, 0.5, 0.6] for case, setting, method, value, *_ in before]
    shown = earlier.table({"before": before, "now": now})
    assert "| PairMap | 0.300 → 0.400, +0.100 (0.000), 2 of 2 | 0.500 → 0.500, +0.000 (0.000), 0 of 2 |" in shown


def test_the_page_shows_what_is_stored():
    stored = earlier.json.loads(Path(earlier.STORED).read_text())
    assert earlier.table(stored) in Path(earlier.PAGE).read_text()
