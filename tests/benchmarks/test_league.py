"""The league: its protocol, its files of results, its tables and its picture."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from pairlens import Constraints

league = pytest.importorskip("benchmarks.league", reason="needs the folder benchmarks of the repository")
league_table = pytest.importorskip("benchmarks.league_table")

METHODS = ["raw features", "PCA", "WBDR"]
WANTED = tuple((method, dim) for method in METHODS for dim in league.DIMS)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Three sets, one of them with a missing cell, a small class and a constant column, and two that do not count."""
    folder = tmp_path / "data"
    folder.mkdir()
    for seed, name in enumerate(("ring_one", "ring_two", "blobs")):
        X, y = make_blobs(90, 6, centers=4, cluster_std=4.0, random_state=seed)
        if name == "blobs":
            X[3, 2], X[:, 5], y[:2] = np.nan, 7.0, 9
        np.savez(folder / f"{name}.npz", X=X, y=y)
    np.savez(folder / "scores.npz", X=np.ones((9, 2)), y=np.linspace(0, 1, 9))
    np.savez(folder / "unlabelled.npz", X=np.ones((9, 2)))
    monkeypatch.setenv("PAIRLENS_DATA", str(folder))
    monkeypatch.setattr(league.datasets, "names", lambda **_: sorted(path.stem for path in folder.glob("*.npz")))
    return folder


@pytest.fixture
def small(data, tmp_path, monkeypatch):
    """A profile that takes a second, and folders to write to."""
    profile = league.Profile("small", max_rows=60, n_splits=2, n_pairs=(20, 50), noise=(0.0, 0.2))
    monkeypatch.setattr(league, "QUICK", profile)
    monkeypatch.setattr(league, "ROOT", tmp_path)
    monkeypatch.setattr(league, "DOCS", tmp_path / "docs")
    (tmp_path / "docs").mkdir()
    return profile


def made_records(seed=0):
    rng = np.random.default_rng(seed)
    return [
        league_table.Record(
            name, split, n_pairs, 0.1, dim, method, *rng.random(2).round(1), 0.5, 0.1, float(rng.integers(9)), ""
        )
        for name in ("ring_one", "ring_two", "blobs")
        for split in range(2)
        for n_pairs in (20, 50)
        for dim in league.DIMS
        for method in METHODS
    ]


def test_sets_that_count(data):
    assert league.labelled_sets() == ["blobs", "ring_one", "ring_two"]
    with pytest.raises(SystemExit, match="nothing"):
        league.labelled_sets(["nothing"])


def test_the_quick_sets_come_with_the_package(monkeypatch):
    monkeypatch.delenv("PAIRLENS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/nowhere")
    assert set(league.QUICK.sets) <= set(league.datasets.names(available=True))
    assert len(league.QUICK.sets) >= 25


def test_rows_are_drawn_in_proportion_and_small_classes_left_out(data):
    X, y = league.load("blobs", 60)
    assert len(X) == len(y) <= 60
    assert np.unique(y).tolist() == [0, 1, 2, 3]
    assert np.ptp(np.bincount(y)) <= 2
    again = league.load("blobs", 60)
    np.testing.assert_array_equal(X, again[0])


def test_the_protocol(data):
    job = league.Job("blobs", 0, 30, 0.2, 90, WANTED)
    train, y_train, test, _, pairs = job.prepare()
    assert np.isfinite(train).all()
    assert np.isfinite(test).all()
    assert len(test) == pytest.approx(0.4 * (len(train) + len(test)), abs=1)
    np.testing.assert_allclose(train.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(np.delete(train.std(axis=0), [2, 5]), 1)
    np.testing.assert_array_equal(train[:, 5], 0)
    assert pairs.n_pairs == 30
    same = y_train[pairs.must_link[:, 0]] == y_train[pairs.must_link[:, 1]]
    different = y_train[pairs.cannot_link[:, 0]] != y_train[pairs.cannot_link[:, 1]]
    assert np.count_nonzero(~same) + np.count_nonzero(~different) == 6
    # The same pairs are asked about, whatever the noise.
    clean = replace(job, noise=0.0).prepare()[-1]
    asked = [{tuple(pair) for pair in np.concatenate([p.must_link, p.cannot_link]).tolist()} for p in (pairs, clean)]
    assert asked[0] == asked[1]


def test_the_score_of_pca(data):
    job = league.Job("ring_one", 1, 20, 0.0, 90, WANTED)
    found = {(record.method, record.dim): record for record in league.run_job(job)}
    assert len(found) == len(WANTED)
    train, y_train, test, y_test, _ = job.prepare()
    for dim, d in (("2", 2), ("5", 5), ("k-1", 3)):
        view = PCA(d).fit(train)
        Z, Z_test = view.transform(train), view.transform(test)
        clusters = KMeans(4, n_init=4, random_state=0).fit_predict(Z_test)
        record = found["PCA", dim]
        assert record.ari == pytest.approx(adjusted_rand_score(y_test, clusters))
        nearest = ((Z_test[:, None] - Z) ** 2).sum(axis=2).argmin(axis=1)
        assert record.nearest == pytest.approx((y_train[nearest] == y_test).mean())
        assert record.error == ""
        assert record.seconds > 0
    assert found["raw features", "2"].ari == found["raw features", "5"].ari


def test_a_method_that_fails_scores_zero_and_is_named(data, monkeypatch):
    class Broken(PCA):
        def fit(self, X, y=None):
            raise RuntimeError("out of order")

    monkeypatch.setitem(league.ENTRIES, "Broken", lambda n_components, random_state: Broken(n_components))
    (record,) = league.run_job(league.Job("ring_one", 0, 20, 0.0, 60, (("Broken", "2"),)))
    assert (record.ari, record.error) == (0.0, "RuntimeError: out of order")
    assert "- Broken: 1 times, for example ring_one: RuntimeError: out of order" in league_table.failures([record])


def test_every_method_for_pairs_is_in_it():
    """Each in the table of docs/choosing.md that takes pairs and makes a view of some dimensions."""
    table = (league.ROOT.parent / "docs" / "choosing.md").read_text().split("From preferences")[0]
    named = set(re.findall(r"^\| (.+?) \|", table, re.MULTILINE)) - {"method"}
    methods = {name.strip("` ") for names in named for name in names.split(",")}
    others = {"KernelNullSpace", "LSML", "MLKR", "PairClusters", "PairMap", "SCML", "SKKMeans"}
    assert set(league.ENTRIES) - {"raw features", "PCA"} >= methods - others


def test_a_run_that_was_stopped_goes_on(small, tmp_path, capsys):
    """What is there is not computed again, half a file counts for nothing, and results repeat."""
    arguments = ["--methods", *METHODS, "--jobs", "1"]
    league.main(arguments)
    folder = tmp_path / "results" / "league-small-60"
    files = sorted(folder.glob("*/*.json"))
    first = scores(files)
    assert len(files) == 3 * 2 * 4
    assert len(first) == 3 * 2 * 4 * 3 * len(METHODS)
    page = (tmp_path / "docs" / "league.md").read_text()
    assert page in capsys.readouterr().out
    assert "`make league`: 3 data sets of at most 60 rows, 2 splits" in page
    # Of the later files one was being written, one lacks a method, and the others are not there.
    kept = {path: path.read_bytes() for path in files[:10]}
    for path in files[10:]:
        path.unlink()
    (files[10].parent / f".{files[10].stem}.half.part.json").write_text('[{"set"')
    records = [record for record in json.loads(files[9].read_text()) if record["method"] != "WBDR"]
    files[9].write_text(json.dumps([{**record, "seconds": 7.0} for record in records]))
    del kept[files[9]]
    league.main(arguments)
    assert {path: path.read_bytes() for path in kept} == kept
    assert [record["seconds"] == 7.0 for record in json.loads(files[9].read_text())] == [True] * 6 + [False] * 3
    assert scores(sorted(folder.glob("*/[!.]*.json"))) == first
    before = {path: path.stat().st_mtime_ns for path in files}
    league.main([*arguments, "--only-print"])
    assert {path: path.stat().st_mtime_ns for path in files} == before


def scores(files):
    records = [league_table.Record(**row) for path in files for row in json.loads(path.read_text())]
    return {(r.set, r.split, r.n_pairs, r.noise, r.dim, r.method): (r.ari, r.f_score, r.nearest) for r in records}


def test_three_lines_enter_a_method(small, tmp_path, monkeypatch, capsys):
    (tmp_path / "my_entry.py").write_text(
        "from benchmarks.league import entry\n"
        "from sklearn.decomposition import TruncatedSVD\n\n\n"
        '@entry("My method")\n'
        "def my_method(n_components, random_state):\n"
        "    return TruncatedSVD(n_components)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(league, "ENTRIES", dict(league.ENTRIES))
    arguments = ["--entries", "my_entry", "--sets", "ring_one", "--splits", "1", "--jobs", "1", "--only-print"]
    league.main([*arguments, "--methods", "PCA", "My method"])
    shown = capsys.readouterr().out
    assert "| My method |" in shown
    assert 'make league ARGS="--splits 1"' in shown
    assert not (tmp_path / "docs" / "league.md").exists()
    sys.modules.pop("my_entry", None)


def test_unknown_methods_are_refused(small, capsys):
    with pytest.raises(SystemExit):
        league.main(["--methods", "Nothing"])
    assert "unknown methods ['Nothing']; there are raw features, PCA" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------------------- tables


def test_ranks_wins_and_gains_against_counting_by_hand():
    records = [record for record in made_records() if record.dim == "5"]
    scores = league_table.Scores.of(records)
    assert (scores.methods, scores.sets) == (sorted(METHODS), ["blobs", "ring_one", "ring_two"])
    assert scores.settings == [(20, 0.1), (50, 0.1)]

    def mean(method, name, n_pairs):
        found = [r.ari for r in records if (r.method, r.set, r.n_pairs) == (method, name, n_pairs)]
        assert len(found) == 2
        return sum(found) / 2

    cells = [(name, n_pairs) for name in scores.sets for n_pairs in (20, 50)]
    for place, method in enumerate(scores.methods):
        rank = {}
        wins = 0.0
        for cell in cells:
            values = [round(mean(other, *cell), 12) for other in scores.methods]
            own = values[place]
            better, equal = sum(v > own for v in values), sum(v == own for v in values)
            rank[cell] = better + (equal + 1) / 2
            wins += 1 / equal if better == 0 else 0
        assert scores.ranks()[place].mean() == pytest.approx(np.mean(list(rank.values())))
        assert scores.wins()[place] == pytest.approx(wins)
        of_set = {name: np.mean([rank[name, n] for n in (20, 50)]) for name in scores.sets}
        rings = (of_set["ring_one"] + of_set["ring_two"]) / 2
        assert scores.family_ranks()[place] == pytest.approx((of_set["blobs"] + rings) / 2)
        above = [np.mean([mean(method, name, n) - mean("PCA", name, n) for n in (20, 50)]) for name in scores.sets]
        gain, error = scores.gains()
        assert gain[place] == pytest.approx(np.mean(above))
        assert error[place] == pytest.approx(np.std(above, ddof=1) / np.sqrt(3), abs=1e-12)


def test_sets_that_not_all_methods_have_are_left_out():
    records = made_records()
    fewer = [r for r in records if not (r.set == "blobs" and r.method == "WBDR")]
    assert league_table.Scores.of(r for r in fewer if r.dim == "2").sets == ["ring_one", "ring_two"]


def test_the_picture_repeats(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra report")
    from benchmarks import league_figure

    tables = league_table.scores_by_dim(made_records())
    for name in ("a.png", "b.png"):
        league_figure.save(tables, tmp_path / "pictures" / name)
    content = (tmp_path / "pictures" / "a.png").read_bytes()
    assert content == (tmp_path / "pictures" / "b.png").read_bytes()
    figure = league_figure.draw(tables)
    assert len(figure.axes) == len(league.DIMS)
    for axes, scores in zip(figure.axes, tables.values()):
        drawn = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
        for method, values in zip(scores.methods, scores.ari.mean(axis=2)):
            np.testing.assert_allclose(drawn[method], values)


@pytest.mark.parametrize("name", ["LSML", "SCML"])
def test_learners_of_comparisons_read_pairs(name):
    """Their entry learns from must-links beside cannot-links, and sees no label."""
    X, y = make_blobs(60, 4, centers=3, cluster_std=5.0, random_state=0)
    pairs = Constraints.from_labels(y, n_pairs=40, random_state=0)
    model = league.ENTRIES[name](2, 0).fit(X, constraints=pairs)
    assert model.transform(X).shape == (60, 2)
    assert model.learner.loss_curve_[-1] < model.learner.loss_curve_[0]
