"""The league of maps: answers, scores, tables, and a run that goes on where it was stopped."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

maps = pytest.importorskip("benchmarks.maps", reason="needs the folder benchmarks of the repository")
maps_table = pytest.importorskip("benchmarks.maps_table")
Y = np.repeat(np.arange(4), 25)


def test_random_pairs_and_wrong_ones():
    clean, noisy = (maps.answers(maps.Setting("R", 60, wrong), Y, "blobs") for wrong in (0.0, 0.2))
    for known, wrong in ((clean, 0), (noisy, 12)):
        must = (Y[known.must_link[:, 0]] != Y[known.must_link[:, 1]]).sum()
        cannot = (Y[known.cannot_link[:, 0]] == Y[known.cannot_link[:, 1]]).sum()
        assert known.n_pairs == 60
        assert must + cannot == wrong
    assert maps.answers(maps.NOTHING, Y, "blobs").n_pairs == 0


def test_known_rows_of_groups_and_wrong_ones():
    clean, noisy = (maps.answers(maps.Setting("G", 5, wrong), Y, "blobs").labels for wrong in (0.0, 0.1))
    assert np.bincount(Y[clean >= 0]).tolist() == [5, 5, 5, 5]
    assert (clean[clean >= 0] == Y[clean >= 0]).all()
    assert (noisy[noisy >= 0] != Y[noisy >= 0]).sum() == 2


def test_scores_of_perfect_and_of_useless_maps():
    rng = np.random.default_rng(0)
    corners = np.array([[0, 0], [9, 0], [0, 9], [9, 9.0]])
    good = maps.scores(corners[Y] + 0.1 * rng.random((100, 2)), Y, corners[Y] + 0.1 * rng.random((100, 2)), Y)
    assert good == {"ari": 1.0, "nn1": 1.0, "nn5": 1.0, "auc": 1.0}
    bad = maps.scores(rng.random((100, 2)), Y, rng.random((100, 2)), Y)
    assert bad["ari"] < 0.1
    assert 0.4 < bad["auc"] < 0.6


def test_methods_without_answers_are_measured_once():
    found = maps.wanted(maps.SETTINGS, ["PairMap", "t-SNE"])
    assert len([method for method, _ in found if method == "PairMap"]) == len(maps.SETTINGS)
    assert [setting for method, setting in found if method == "t-SNE"] == [maps.NOTHING]


def cells(gap):
    return [
        maps_table.Cell(name, method, setting, 0.5 + gap * (method == "PairMap") * number, 0.6, 0.6, 0.7, 1.0, "")
        for number, name in enumerate(("a", "b", "c"))
        for method in ("PairMap", "t-SNE")
        for setting in (("R0", "R60") if method == "PairMap" else ("R0",))
    ]


def test_table_by_hand():
    scores = maps_table.MapScores.of(cells(0.1), ["PairMap", "t-SNE"], ["R0", "R60"])
    assert scores.sets == ["a", "b", "c"]
    mean, error, ahead = maps_table.differences(scores, "ari")["t-SNE"]
    assert mean == pytest.approx(0.1)
    assert error == pytest.approx(0.1 / np.sqrt(3))
    assert ahead == 2
    text = maps_table.tables(scores, "make league")
    assert "| PairMap | **0.600** | **0.600** | 0.600 | 0.600 | 0.600 | 0.700 | 1.0 |" in text
    assert "+0.100 (0.058), 2 of 3" in text


def test_sets_that_lack_a_cell_are_left_out():
    scores = maps_table.MapScores.of(cells(0.1)[:-2], ["PairMap", "t-SNE"], ["R0", "R60"])
    assert scores.sets == ["a", "b"]


def test_page_keeps_what_is_written_by_hand():
    page = f"before\n{maps_table.BEGIN}\nold\n{maps_table.END}\nafter\n"
    filled = maps_table.filled_page(page, "new\n")
    assert filled.startswith("before\n")
    assert filled.endswith("\nafter\n")
    assert "new" in filled
    assert "old" not in filled
    with pytest.raises(ValueError, match="no place for the tables"):
        maps_table.filled_page("nothing", "new")


def test_a_run_is_stored_and_goes_on(tmp_path, monkeypatch):
    pytest.importorskip("openTSNE")
    X, y = make_blobs(80, 5, centers=3, cluster_std=3.0, random_state=0)
    np.savez(tmp_path / "blobs.npz", X=X, y=y)
    monkeypatch.setenv("PAIRLENS_DATA", str(tmp_path))
    monkeypatch.setattr(maps, "ROOT", tmp_path)
    settings = (maps.NOTHING, maps.Setting("G", 3))
    first = maps.run(["blobs"], ["PairMap", "t-SNE"], rows=100, settings=settings)
    assert [(cell.method, cell.setting, cell.error) for cell in first] == [
        ("PairMap", "R0", ""),
        ("PairMap", "G3", ""),
        ("t-SNE", "R0", ""),
    ]
    monkeypatch.setattr(maps, "measure", None)
    assert maps.run(["blobs"], ["PairMap", "t-SNE"], rows=100, settings=settings) == first
