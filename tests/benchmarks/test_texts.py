"""The benchmark of raw texts: what is read of Debian's list, the measures by hand, and the page from its results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pairlens import Constraints

pytest.importorskip("pandas", reason="TableEncoder needs pandas")
texts = pytest.importorskip("benchmarks.texts", reason="needs the folder benchmarks of the repository")
DOCS = Path(__file__).parents[2] / "docs"

LISTING = """Package: one
Section: games
Tag: game::arcade, role::program, use::gameplaying,
 works-with::image
Description: arcade game with ships
 A long text
 of two lines, use::editing.

Package: two
Section: non-free/text
Tag: use::editing, use::viewing
Description: editor and viewer

Package: three
Section: contrib/text
Tag: use::editing
Description: editor

Package: four
Section: utils
Description: without tags
"""


def test_packages_with_one_use_are_read():
    found = texts.parse(LISTING)
    assert found.to_numpy().tolist() == [
        ["one", "arcade game with ships", "games", "gameplaying"],
        ["three", "editor", "text", "editing"],
    ]


def test_no_use_is_drawn_too_often(monkeypatch):
    monkeypatch.setattr(texts, "N_USES", 2)
    monkeypatch.setattr(texts, "N_SECTIONS", 1)
    monkeypatch.setattr(texts, "MOST_OF_A_USE", 4)
    import pandas

    rows = [(f"p{k}", f"text {k}", "ab"[k % 10 == 0], ("x", "x", "y", "TODO", "z")[k % 5]) for k in range(40)]
    found = texts.drawn(pandas.DataFrame(rows, columns=["package", "text", "section", "use"]))
    assert found["use"].value_counts().to_dict() == {"x": 4, "y": 4}
    assert set(found["section"]) == {"a"}


def test_measures_of_a_perfect_view():
    y = np.repeat([0, 1, 2], 8)
    view = np.column_stack([10.0 * y, np.arange(24) / 100])
    assert texts.judged(view, y) == (1.0, 1.0)
    everything = Constraints.from_labels(y)
    answers = everything.sample(10, random_state=0)
    texts_auc = texts.held_out_auc(view, everything, answers, np.random.default_rng(0))
    assert texts_auc == 1.0


def test_the_page_has_the_stored_results():
    stored = json.loads((DOCS / "texts.json").read_text())
    scores = [texts.Score(**score) for score in stored.pop("scores")]
    assert stored["rows"] >= 1500
    assert len(scores) == len(texts.NOTIONS) * len(texts.FEATURES) * (1 + len(texts.N_PAIRS)) * stored["draws"]
    assert texts.page(scores, stored) in (DOCS / "tables.md").read_text()
