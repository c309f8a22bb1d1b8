"""The simulation of asking: answers, tables and the page."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks import asking_page, bench_asking
from pairlens.asking import Question

POINTS = (0, 100, 200)


def record(scores, comparisons=(0, 100, 200)):
    return {"scores": list(scores), "comparisons": list(comparisons), "seconds": 60.0}


RECORDS = [
    *(("a", noise, "random", record([0.1, 0.2, 0.4])) for noise in (0.0, 0.1)),
    *(("b", noise, "random", record([0.3, 0.4, 0.6])) for noise in (0.0, 0.1)),
    *(("a", noise, "place", record([0.1, 0.5, 0.6])) for noise in (0.0, 0.1)),
    *(("b", noise, "place", record([0.3, 0.6, 0.9])) for noise in (0.0, 0.1)),
    *((name, noise, "placement", record([0.2, 0.7, 0.8], (0, 400, 900))) for name in "ab" for noise in (0.0, 0.1)),
    *((name, noise, "uncertain", record([0.2, 0.3, 0.4])) for name in "ab" for noise in (0.0, 0.1)),
]


MAP_POINTS = (0, 30, 60, 120, 200)
MAPPED = [
    (name, 0.0, strategy, record(scores, MAP_POINTS))
    for name, strategy, scores in (
        ("a", "random", [0.1, 0.1, 0.1, 0.2, 0.3]),
        ("b", "random", [0.3, 0.3, 0.3, 0.4, 0.5]),
        ("a", "place", [0.1, 0.1, 0.2, 0.4, 0.5]),
        ("b", "place", [0.3, 0.3, 0.4, 0.4, 0.7]),
    )
]


def test_what_the_map_gains_by_hand():
    table = asking_page.map_table(asking_page.Results.of(MAPPED, MAP_POINTS))
    gains = "+0.100 (0.100) | +0.200 (0.000) | +0.100 (0.000) | +0.200 (0.100) | +0.400 (0.000)"
    assert f"| 0% | rows placed, pair by pair | {gains} |" in table
    assert "| 0% | random pairs |  |  | +0.000 (0.000) | +0.100 (0.000) | +0.200 (0.000) |" in table


def test_which_runs_there_are():
    tasks = bench_asking.tasks_of(["lens", "map", "prefer"], ("a", "b"), 2, ["place", "random", "uncertain"])
    assert len(tasks) == len({task.key for task in tasks}) == 2 * 2 * 3 * 3 + 2 * 2 * 2 * 2 + 2 * 4 * 3 * 2
    assert {task.strategy for task in tasks if task.view == "map"} == {"place", "random"}


def test_tables_by_hand():
    results = asking_page.Results.of(RECORDS, POINTS)
    assert results.sets == ("a", "b")
    np.testing.assert_allclose(results.area((0.0, "place")), [0.55, 0.75])
    # Gains of area of 0.25 in both sets: no error.
    assert "| 0% | rows placed, pair by pair | 0.650 | +0.250 (0.000) | 0.750 | +0.250 (0.050) |" in (
        asking_page.gain_table(results)
    )
    # Random pairs reach 0.5 after 200; placing gets from 0.2 to 0.55 in the first 100, screens from 0.2 to 0.7.
    assert asking_page.needs(results, 0.0, "place") == pytest.approx((100 * 0.3 / 0.35,) * 2)
    assert asking_page.needs(results, 0.0, "placement") == pytest.approx((60, 240))
    assert asking_page.needs(results, 0.0, "uncertain") is None
    assert "more than 200" in asking_page.needs_table(results)


def test_the_page_and_its_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    (tmp_path / "pictures").mkdir()
    results = asking_page.Results.of(RECORDS, POINTS)
    views = {"lens": results, "map": asking_page.Results.of(MAPPED, MAP_POINTS)}
    (tmp_path / "asking.md").write_text(f"# Before\n\n{asking_page.BEGIN}\nold\n<!-- end of generated -->\n\nAfter\n")
    asking_page.write_page(views, {0: results, 7: results}, tmp_path)
    text = (tmp_path / "asking.md").read_text()
    assert "| 7 | 2 | +0.250 (0.000) | +0.250 (0.000) |" in text
    assert "on the map that PairMap makes" in text
    assert "gains +0.250 of area with clean answers" in text
    assert text.startswith("# Before")
    assert text.endswith("After\n")
    assert "old" not in text
    assert not re.search(r"\{\w+(:[^}]*)?\}", text)  # all fields are filled in
    assert (tmp_path / "pictures" / "asking.png").stat().st_size > 1000
    assert "2 sets" in capsys.readouterr().out


def test_wrong_answers_are_a_share_and_always_the_same():
    y = np.repeat([0, 1], 50)
    questions = [Question.same(i, j, id=f"{i}-{j}") for i in range(20) for j in range(40, 70)]
    true = [bench_asking.answer(question, y, 0.0, 0) for question in questions]
    assert true == ["same" if y[q.rows[0]] == y[q.rows[1]] else "different" for q in questions]
    noisy = [bench_asking.answer(question, y, 0.2, 0) for question in questions]
    assert noisy == [bench_asking.answer(question, y, 0.2, 0) for question in questions]
    assert 0.15 < np.mean([a != b for a, b in zip(true, noisy)]) < 0.25


def test_a_run_and_its_results_are_kept(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.standard_normal((60, 4)) + 4 * np.eye(3, 4)[y]
    monkeypatch.setattr(bench_asking, "labelled_rows", lambda name, split, most: (X, y, X, y))
    monkeypatch.setattr(bench_asking, "N_QUESTIONS", 20)
    monkeypatch.setitem(bench_asking.POINTS, "lens", (0, 10, 20))
    found = bench_asking.run(bench_asking.Task("lens", "toy", 0, 0.0, "placement"))
    assert len(found["scores"]) == 3
    assert found["comparisons"][-1] > 20
    assert found["groups"] == 3
    path = tmp_path / "results.jsonl"
    path.write_text('{"key": "x", "scores": [1]}\n{"key": "y", "sco')
    assert list(bench_asking.run_all([], path, 1)) == ["x"]
