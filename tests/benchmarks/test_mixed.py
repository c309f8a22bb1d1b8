"""The league of mixed tables: means over sets, the page, and a run that goes on where it was stopped."""

from __future__ import annotations

import pytest

pytest.importorskip("pandas", reason="TableEncoder needs pandas")
mixed = pytest.importorskip("benchmarks.mixed", reason="needs the folder benchmarks of the repository")


def scores(sets=("customers", "survey")):
    return [
        mixed.Score(name, split, n, dim, method, 0.5 + 0.1 * (method == "PairLens") - 0.2 * (name == "survey"), 0.1, "")
        for name in sets
        for split in range(2)
        for n in mixed.N_PAIRS
        for dim in mixed.DIMS
        for method in mixed.METHODS
    ]


def test_means_by_hand():
    found = mixed.means(scores())
    assert found["PairLens", "2", 20] == pytest.approx(0.5)
    assert found["PCA", "k-1", 200] == pytest.approx(0.4)
    # A set with more splits counts no more.
    more = [*scores(), mixed.Score("survey", 2, 20, "2", "PCA", 0.3, 0.1, "")]
    assert mixed.means(more)["PCA", "2", 20] == pytest.approx(0.4)


def test_the_page_tells_the_halves_apart():
    text = mixed.page(scores(), "make league")
    assert "All tables (customers, survey)" in text
    assert "chosen on (customers)" in text
    assert "run after that (survey)" in text
    assert text.count("| PairLens less the best of WBDR, KernelWBDR, PCA | +0.100") == 3
    assert set(mixed.CHOSEN_ON) < set(mixed.mixed_sets())


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(mixed, "ROOT", tmp_path)
    monkeypatch.setattr(mixed, "N_PAIRS", (20,))
    monkeypatch.setattr(mixed, "MOST_ROWS", 60)
    mixed.load.cache_clear()
    monkeypatch.setattr(mixed, "METHODS", {name: mixed.METHODS[name] for name in ("PairLens", "PCA")})
    first = mixed.run(["customers"], 1, 1, again=False)
    mixed.load.cache_clear()
    assert [(score.method, score.dim, score.error) for score in first] == [
        (method, dim, "") for dim in ("2", "k-1") for method in ("PairLens", "PCA")
    ]
    monkeypatch.setattr(mixed, "measure", None)
    assert mixed.run(["customers"], 1, 1, again=False) == first
