"""The league of notions: cases, pairs, tables, the page, and a run that goes on where it was stopped."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs

notions = pytest.importorskip("benchmarks.notions", reason="needs the folder benchmarks of the repository")
league = pytest.importorskip("benchmarks.league")
notions_cases = pytest.importorskip("benchmarks.notions_cases")
notions_table = pytest.importorskip("benchmarks.notions_table")
maps_table = pytest.importorskip("benchmarks.maps_table")
LineStore = pytest.importorskip("benchmarks.lines").LineStore

Y = np.arange(60) % 3


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of notions with crabs that are blobs."""
    X, y = make_blobs(60, 4, centers=2, random_state=0)
    (tmp_path / "notions").mkdir()
    np.savez(tmp_path / "notions" / "crabs.npz", X=X, sp=y, sex=np.arange(60) % 2)
    monkeypatch.delenv(notions_cases.FOLDER, raising=False)
    monkeypatch.setenv("PAIRLENS_DATA", str(tmp_path / "data"))
    notions_cases.load_case.cache_clear()
    yield tmp_path
    notions_cases.load_case.cache_clear()


def test_cases_are_named_by_themselves_by_set_and_by_group():
    assert notions_cases.chosen_cases(["crabs:sex"]) == ["crabs:sex"]
    assert notions_cases.chosen_cases(["crabs", "crabs:sp"]) == ["crabs:sp", "crabs:sex"]
    assert notions_cases.chosen_cases(["dominant"]) == list(notions_cases.GROUPS["dominant"])
    everything = notions_cases.chosen_cases()
    assert len(everything) == len(set(everything)) == sum(map(len, notions_cases.GROUPS.values()))
    with pytest.raises(SystemExit, match=r"unknown cases.*lobsters"):
        notions_cases.chosen_cases(["lobsters"])


def test_rows_of_a_case_are_not_scaled(folder):
    X, y = notions_cases.load_case("crabs:sex")
    np.testing.assert_array_equal(y, np.arange(60) % 2)
    with np.load(folder / "notions" / "crabs.npz") as stored:
        np.testing.assert_array_equal(X, stored["X"])


def test_a_missing_folder_is_named(folder, monkeypatch):
    monkeypatch.setenv(notions_cases.FOLDER, str(folder / "elsewhere"))
    with pytest.raises(SystemExit, match=r"crabs\.npz is not in .*elsewhere.*PAIRLENS_NOTIONS"):
        notions_cases.load_case("crabs:sp")


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
@pytest.mark.parametrize("setting", notions.SETTINGS[1:], ids=str)
def test_half_of_the_pairs_are_must_links_and_a_share_of_each_kind_is_wrong(setting):
    pairs = notions.answers(setting, Y, "crabs:sp", 0)
    wrong = round(setting.wrong * setting.n_pairs / 2)
    for kind, same in ((pairs.must_link, True), (pairs.cannot_link, False)):
        assert len(kind) == setting.n_pairs // 2
        assert ((Y[kind[:, 0]] == Y[kind[:, 1]]) != same).sum() == wrong


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
def test_wrong_pairs_are_the_clean_ones_in_other_lists():
    def listed(constraints):
        return {tuple(pair) for pair in np.concatenate([constraints.must_link, constraints.cannot_link])}

    clean, wrong = (notions.answers(setting, Y, "crabs:sp", 0) for setting in notions.SETTINGS[2:])
    assert listed(clean) == listed(wrong)
    assert listed(clean) != listed(notions.answers(notions.SETTINGS[2], Y, "crabs:sp", 1))


def test_methods_without_answers_are_measured_once_a_draw():
    tasks = notions.all_tasks(["crabs:sp"], ["PairMap", "UMAP"], 2, "new")
    assert len([task for task in tasks if task.method == "PairMap"]) == 2 * len(notions.SETTINGS)
    alone = [task for task in tasks if task.method == "UMAP"]
    assert [(task.setting, task.draw, task.tag) for task in alone] == [(notions.NOTHING, draw, "") for draw in (0, 1)]


def test_a_run_goes_on_where_it_was(folder, monkeypatch):
    store = LineStore(folder / "results" / "notions.jsonl")
    first = notions.run(["crabs:sp"], ["LinearPairLens", "WBDR"], store, draws=1)
    assert [result.error for result in first] == [""] * 8
    assert max(result.ari for result in first) > 0.9
    # The line of a process that was killed while it wrote.
    text = store.file.read_text()
    store.file.write_text(text[:-20])
    monkeypatch.setattr(notions, "answers", None)
    last = notions.run(["crabs:sp"], ["LinearPairLens", "WBDR"], store, draws=1)
    assert last[:-1] == first[:-1]
    assert "TypeError" in last[-1].error


def test_another_version_is_computed_again(folder):
    store = LineStore(folder / "notions.jsonl")
    for tag in ("old", "new"):
        assert {r.tag for r in notions.run(["crabs:sp"], ["WBDR"], store, draws=1, tag=tag)} == {tag}
    assert len(store.lines()) == 8


def test_results_from_elsewhere_are_merged(tmp_path):
    store, part = LineStore(tmp_path / "notions.jsonl"), LineStore(tmp_path / "part.jsonl")
    store.file.write_text('{"key": "a", "rows": [1]}\n{"key": "b", "rows": [2]}\n{"key": "c", "ro')
    part.file.write_text('{"key": "a", "rows": [1]}\n{"key": "b", "rows": [3]}\n{"key": "d", "rows": [4]}\n{"ke')
    store.merge([part.file])
    assert store.lines() == {"a": [1], "b": [3], "d": [4]}
    assert len(store.file.read_text().splitlines()) == 4
    with pytest.raises(FileNotFoundError, match=r"other\.jsonl to merge"):
        store.merge([tmp_path / "other.jsonl"])


def test_lines_that_are_not_results_are_named(tmp_path):
    store = LineStore(tmp_path / "notions.jsonl")
    store.file.write_text(json.dumps({"key": "a", "rows": []}) + "\n{}\n")
    with pytest.raises(ValueError, match="line 2 of"):
        store.lines()


def test_the_league_hands_over(folder):
    league.main(
        ["--notions", "--sets", "crabs:sex", "--methods", "WBDR", "--draws", "1", "--out", str(folder / "x.jsonl")]
    )
    assert len(LineStore(folder / "x.jsonl").lines()) == 4


def test_unknown_methods_are_named(capsys):
    with pytest.raises(SystemExit):
        notions.main(["--methods", "PairMap,Nothing"])
    assert "unknown methods ['Nothing']" in capsys.readouterr().err


# --- the page --------------------------------------------------------------------------------------------------------


def results(draws=2, methods=("PairMap", "UMAP")):
    """Scores of two minor cases; PairMap is better by 0.1 in the first draw and by 0.3 in the second."""
    return [
        notions.Result(case, setting, draw, method, "", gap + 0.1 * number, 0.5, 0.6, 0.7, 1.0, "")
        for number, case in enumerate(("crabs:sp", "crabs:sex"))
        for draw in range(draws)
        for method in methods
        for gap in [(0.1 + 0.2 * draw) * (method == "PairMap")]
        for setting in (["0"] if method == "UMAP" else map(str, notions.SETTINGS))
    ]


def test_table_by_hand():
    summary = notions_table.Summary.of(results(), 2, "new")
    assert summary.value("crabs:sp", "PairMap", "60") == pytest.approx(0.2)
    assert summary.value("crabs:sp", "PairLens", "60") is None
    text = notions.generated(summary)
    cells = " | ".join(["**0.250** (0.050)"] * 4)
    assert f"| PairMap | {cells} | 0.500 | 0.600 | 0.700 | 1.0 |" in text
    assert f"| UMAP | {' | '.join(['0.050 (0.050)'] * 4)} | 0.500" in text
    assert "| UMAP | +0.200 (0.000), 2 of 2 | +0.000 (0.000), 0 of 2" in text
    assert "0.250 (60)" in text
    assert "UMAP 0.050, which see no answer" in text
    assert "| crabs:sex | 0.30 | 0.30 |  |  |  |  |  | 0.10 |" in text
    assert "Ordinary sets" not in text


def test_methods_without_all_results_are_left_out():
    found = [r for r in results() if (r.method, r.case, r.draw, r.setting) != ("PairMap", "crabs:sex", 1, "60")]
    summary = notions_table.Summary.of(found, 2, "new")
    assert summary.methods("minor", [str(setting) for setting in notions.SETTINGS]) == ["UMAP"]
    assert "PairMap less" not in notions.generated(summary)


def test_the_summary_is_read_as_it_was_written():
    summary = notions_table.Summary.of(results(), 2, "new")
    assert notions_table.Summary.read(summary.written()) == summary


def test_the_page_is_made_of_the_summary():
    page, stored = league.DOCS / "notions.md", league.DOCS / "notions.json"
    if not stored.exists():
        pytest.skip("the pages are not in this distribution")
    text = page.read_text()
    summary = notions_table.Summary.read(stored.read_text())
    assert text == maps_table.filled_page(text, notions.generated(summary), notions_table.BEGIN)


def test_the_page_of_what_is_stored(folder, monkeypatch, capsys):
    monkeypatch.setattr(notions, "DOCS", folder)
    (folder / "notions.md").write_text(f"before\n{notions_table.BEGIN}\n{maps_table.END}\nafter\n")
    arguments = ["--sets", "crabs:sex", "--draws", "1", "--out", str(folder / "x.jsonl")]
    notions.main([*arguments, "--methods", "WBDR"])
    assert not (folder / "notions.json").exists()
    printed = capsys.readouterr().out
    notions.main([*arguments, "--page"])
    assert capsys.readouterr().out == printed
    assert printed.strip() in (folder / "notions.md").read_text()
    assert "crabs:sex" in notions_table.Summary.read((folder / "notions.json").read_text()).means


def test_the_picture(folder, monkeypatch):
    pytest.importorskip("matplotlib")
    figure = pytest.importorskip("benchmarks.notions_figure")
    monkeypatch.setattr(figure, "CASES", ("crabs:sp", "crabs:sex"))
    monkeypatch.setattr(figure, "SHOWN", ("PairLens(2)",))
    monkeypatch.setattr(figure, "SETTING", notions.SETTINGS[0])
    for name in ("a.png", "b.png"):
        figure.save(folder / name)
    assert (folder / "a.png").read_bytes() == (folder / "b.png").read_bytes()
