"""How rows are read and shown."""

from __future__ import annotations

import base64
import json

import numpy as np
import pandas
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA

from pairlens import Constraints, LinearPairLens, PairMap, Preferences, load
from pairlens.exceptions import InputError
from pairlens.pipeline import default_view
from pairlens.studio.files import Snapshot, make_model, make_report
from pairlens.studio.maps import MapJob, align, make_mapper
from pairlens.studio.rows import rows_from_array, rows_from_file


@pytest.fixture
def mixed(tmp_path):
    """Companies: words, numbers with gaps, and long texts."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "key": [f"c{k}" for k in range(80)],
            "name": [f"{'Acme' if k % 2 else 'Globex'} {k % 20}" for k in range(80)],
            "city": [["Berlin", "Paris", "Rome"][k % 3] for k in range(80)],
            "staff": np.where(rng.random(80) < 0.2, np.nan, np.round(rng.normal(100, 20, 80))),
            "story": ["It was a long day in the life of a company. " * (3 + k % 4) for k in range(80)],
        }
    )
    path = tmp_path / "companies.csv"
    frame.to_csv(path, index=False)
    return path, frame


def test_a_table_of_mixed_columns(mixed):
    path, frame = mixed
    rows = rows_from_file(path, ids="key")
    assert rows.ids == frame["key"].tolist()
    assert list(rows.cells) == ["name", "city", "staff"]
    assert list(rows.texts) == ["story"]
    assert np.isfinite(rows.X).all()
    assert rows.X.shape[1] == len(rows.features) > 5
    shown = rows.shown(4)
    assert dict(shown["cells"])["city"] == "Paris"
    assert shown["texts"] == [["story", frame["story"][4], 0]]
    gap = int(np.flatnonzero(frame["staff"].isna())[0])
    assert dict(rows.shown(gap)["cells"])["staff"] == ""


def test_the_page_is_told_how_columns_are_scaled(mixed):
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((60, 5))
    components = PCA().fit_transform(rng.standard_normal((60, 10)) * np.geomspace(10, 0.1, 10))
    assert "counts the same to begin with" in rows_from_file(mixed[0], ids="key").describe()["scale"]
    assert "divided by its deviation" in rows_from_array(numbers).describe()["scale"]
    assert "look like principal components" in rows_from_array(components).describe()["scale"]


def test_what_is_shown_can_be_chosen(mixed):
    path, _ = mixed
    assert list(rows_from_file(path, ids="key", show=["city"]).cells) == ["city"]
    assert list(rows_from_file(path, ids="key", text=["name"]).texts) == ["name"]
    dropped = rows_from_file(path, ids="key", drop=["story", "city"])
    assert "story" not in {**dropped.cells, **dropped.texts}
    assert not [name for name in dropped.features if "city" in name]
    with pytest.raises(ValueError, match="has no column 'town'"):
        rows_from_file(path, show=["town"])


def test_a_model_of_a_mixed_table_takes_such_tables(mixed, tmp_path):
    path, frame = mixed
    rows = rows_from_file(path, ids="key")
    pairs = Constraints([(0, 2), (4, 6)], [(0, 1), (2, 3), (4, 5)], len(frame))
    known = Snapshot(rows.X, rows.features, rows.ids, rows.prepared, pairs, None, [None] * 80, None, "companies")
    (tmp_path / "model.pairlens").write_bytes(make_model({}, known))
    model = load(tmp_path / "model.pairlens")
    assert type(model[-1]) is type(default_view()) is PairMap
    assert model.transform(frame).shape == (80, 2)
    assert make_report({}, known).startswith("<!doctype html>")


def test_digits_are_drawn(tmp_path):
    digits = load_digits()
    names = [f"pixel_{k}" for k in range(64)]
    frame = pandas.DataFrame(digits.data[:50].astype(int), columns=names)
    frame.insert(0, "scan", [f"s{k}" for k in range(50)])
    frame.to_csv(tmp_path / "digits.csv", index=False)
    for rows in (rows_from_file(tmp_path / "digits.csv", ids="scan"), rows_from_array(digits.data[:50])):
        assert rows.ink.shape == (50, 8, 8)
        height, width, ink = rows.shown(7)["pixels"]
        drawn = np.frombuffer(base64.b64decode(ink), dtype=np.uint8).reshape(height, width)
        np.testing.assert_allclose(drawn / 255, digits.images[7] / 16, atol=1 / 255)
    with pytest.raises(ValueError, match="a picture of 7 x 9 has 63 pixels, not 64"):
        rows_from_file(tmp_path / "digits.csv", ids="scan", image="7x9")


def test_many_numbers_beside_other_columns_are_folded(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"who": ["ann", "ben", "cleo"] * 10, **{f"e{j}": rng.standard_normal(30).round(2) for j in range(13)}}
    path = tmp_path / "mixed.csv"
    pandas.DataFrame(columns).to_csv(path, index=False)
    rows = rows_from_file(path)
    assert list(rows.cells) == ["who"]
    assert [name for name, _ in rows.shown(3)["numbers"]] == [f"e{j}" for j in range(13)]
    assert float(dict(rows.shown(3)["numbers"])["e2"]) == columns["e2"][3]
    assert list(rows_from_file(path, show=["who", "e1"]).cells) == ["who", "e1"]
    pandas.DataFrame(columns).drop(columns="e12").to_csv(path, index=False)
    assert list(rows_from_file(path).cells) == ["who", *(f"e{j}" for j in range(12))]


def test_many_numbers_are_a_line():
    rng = np.random.default_rng(0)
    rows = rows_from_array(rng.standard_normal((30, 40)))
    assert len(rows.shown(0)["line"]) == 40
    assert rows.describe()["line"]["words"] == "values"
    scaled = rows_from_array(rng.standard_normal((30, 40)) * np.geomspace(1, 1e4, 40))
    assert "standardised" in scaled.describe()["line"]["words"]
    assert len(rows_from_array(rng.standard_normal((30, 1000))).shown(0)["line"]) == 256
    few = rows_from_array(rng.standard_normal((30, 3)), feature_names=["a", "b", "c"])
    assert [name for name, _ in few.shown(0)["cells"]] == ["a", "b", "c"]


def test_rows_that_cannot_be_used():
    with pytest.raises(ValueError, match="NaN or infinity"):
        rows_from_array([[1.0, np.nan], [2.0, 3.0]])
    with pytest.raises(ValueError, match="at least two rows"):
        rows_from_array([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"must differ, but 'a' is there more than once"):
        rows_from_array([[1.0], [2.0]], ids=["a", "a"])
    with pytest.raises(ValueError, match="story must have one entry for each of the 2 rows, got 1"):
        rows_from_array([[1.0], [2.0]], texts={"story": ["x"]})


def test_lists_and_halves_of_characters_in_json_lines_are_shown_as_text(tmp_path):
    path = tmp_path / "things.jsonl"
    lines = [{"id": f"r{k}\udc00", "a": k / 2, "words": "x \udc00 y", "tags": [k, "b"], "none": []} for k in range(9)]
    path.write_text("\ufeff" + "\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows = rows_from_file(path, ids="id")
    assert rows.ids[:2] == ["r0\ufffd", "r1\ufffd"]
    cells = dict(rows.shown(1)["cells"])
    assert (cells["words"], cells["none"]) == ("x \ufffd y", "[]")
    assert cells["tags"].startswith("[1")
    json.dumps([rows.shown(0), rows.describe()], ensure_ascii=False, allow_nan=False).encode()
    beside = rows_from_array(np.eye(3), ids=["a\ud83d", "b", "c"], texts={"t": ["\udc00", "x", "😀"]})
    json.dumps([beside.shown(0), beside.ids], ensure_ascii=False).encode()
    assert beside.shown(2)["texts"][0][1] == "😀"


def test_long_texts_are_cut():
    rows = rows_from_array([[1.0], [2.0]], texts={"story": ["x" * 30_000, "y"]})
    name, text, left_out = rows.shown(0)["texts"][0]
    assert (name, len(text), left_out) == ("story", 20_000, 10_000)


def test_a_map_lies_on_the_last_one():
    """Procrustes: a turned, mirrored, moved and scaled map comes back exactly."""
    rng = np.random.default_rng(0)
    last = align(rng.standard_normal((50, 2)), None)
    turn = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]]) @ np.diag([1.0, -1.0])
    np.testing.assert_allclose(align(7 * last @ turn + 3, last), last, atol=1e-12)
    np.testing.assert_allclose((last**2).sum(axis=1).mean(), 1)


@pytest.mark.parametrize("ranking", [False, True])
def test_every_mapper_gives_two_finite_columns(ranking):
    rng = np.random.default_rng(0)
    for n_columns in (1, 5):
        X = rng.standard_normal((60, n_columns))
        mapper = make_mapper(X, ranking)
        for constraints in (None, Constraints([(0, 1)], [(2, 3)], 60)):
            places = mapper.fit(MapJob(2, constraints))
            assert places.shape == (60, 2)
            assert np.isfinite(places).all()


@pytest.mark.parametrize("n_rows", [2, 3, 6])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_few_rows_are_shown_in_their_principal_components(n_rows, n_columns):
    """A row needs six others to have neighbours. Distances of so few rows are those of the rows, in the plane."""
    X = np.random.default_rng(0).standard_normal((n_rows, n_columns))
    pairs = Constraints([(0, 1)], n_samples=n_rows)
    for ranking, job in ((False, MapJob(1, pairs)), (True, MapJob(1, None, Preferences([(0, 1)], n_rows)))):
        mapper = make_mapper(X, ranking)
        places = mapper.fit(job)
        assert mapper.name == "Principal components"
        assert places.shape == (n_rows, 2)
        standard = (X - X.mean(axis=0)) / X.std(axis=0)
        if n_rows <= 3:
            # A ranking has rows of total variance 1.
            scale = pdist(standard).max() / pdist(places).max() if ranking else 1.0
            np.testing.assert_allclose(scale * pdist(places), pdist(standard), atol=1e-9)


@pytest.mark.parametrize("ranking", [False, True])
@pytest.mark.parametrize("n_rows", [2, 30])
def test_a_map_says_that_all_rows_are_equal(n_rows, ranking):
    prefer = Preferences([(0, 1)] * 6 + [(k, k + 1) for k in range(n_rows - 1)], n_rows)
    mapper = make_mapper(np.ones((n_rows, 2)), ranking)
    places = mapper.fit(MapJob(9, None, prefer) if ranking else MapJob(1, Constraints([(0, 1)], n_samples=n_rows)))
    assert mapper.name == "All rows are equal"
    np.testing.assert_array_equal(align(places, None), np.zeros((n_rows, 2)))


def test_a_map_of_a_ranking_says_what_it_shows():
    X = np.random.default_rng(0).standard_normal((20, 1))
    mapper = make_mapper(X, ranking=True)
    few, more = (Preferences([(k, k + 1) for k in range(count)], 20) for count in (2, 9))
    mapper.fit(MapJob(2, None, few))
    assert mapper.name == "Principal components"
    assert mapper.fit(MapJob(9, None, more)).shape == (20, 2)
    assert mapper.name == "Ranking, better rows to the right"


def test_the_map_of_a_ranking_is_not_a_line_and_has_the_better_rows_on_the_right():
    X = np.random.default_rng(0).standard_normal((60, 3))
    order = np.argsort(-X[:, 0])
    known = Preferences([(int(a), int(b)) for a, b in zip(order[:40], order[5:45])], 60)
    places = make_mapper(X, ranking=True).fit(MapJob(40, None, known))
    assert np.corrcoef(places[:, 0], X[:, 0])[0, 1] > 0.9
    assert abs(np.corrcoef(places.T)[0, 1]) < 0.5
    assert places[:, 1].std() == pytest.approx(places[:, 0].std())


def test_rows_beside_embeddings_are_shown_and_not_learned_from(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "vectors.npz", X=rng.standard_normal((6, 4)), key=np.array([f"k{i}" for i in range(6)]))
    lines = [f"k{i},{'red' if i % 2 else 'blue'},secret{i}" for i in (5, 4, 3, 2, 1, 0)]
    (tmp_path / "rows.csv").write_text("key,colour,hidden\n" + "\n".join(lines) + "\n")
    rows = rows_from_file(tmp_path / "vectors.npz", ids="key", rows=tmp_path / "rows.csv", drop=["hidden"])
    assert rows.ids == [f"k{i}" for i in (5, 4, 3, 2, 1, 0)]
    assert list(rows.cells) == ["colour"]
    assert rows.cells["colour"] == ["red", "blue"] * 3
    assert rows.X.shape == (6, 4)
    assert rows.find("RED") == [0, 2, 4]
    assert rows.find("k3") == [2]
    assert rows.column("colour") == {"names": ["red", "blue"], "codes": [0, 1] * 3}
    assert rows.column("hidden") is None


def test_a_folder_of_pictures_is_a_table(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'pairlens[studio]'")
    (tmp_path / "more").mkdir()
    for k in range(4):
        shade = np.full((20, 30, 3), 10 + 70 * (k % 2), dtype=np.uint8)
        image.fromarray(shade).save(tmp_path / ("more" if k > 1 else "") / f"p{k}.png")
    (tmp_path / "notes.txt").write_text("no picture")
    (tmp_path / "broken.jpg").write_bytes(b"no picture either")
    rows = rows_from_file(tmp_path)
    assert rows.ids == ["broken.jpg", "more/p2.png", "more/p3.png", "p0.png", "p1.png"]
    assert rows.X.shape == (5, 3 * 16 * 16)
    np.testing.assert_allclose(rows.X[1], rows.X[3])
    np.testing.assert_allclose(rows.X[0], rows.X[1:].mean(axis=0))
    assert rows.shown(2)["picture"]
    (tmp_path / "more" / "p3.png").unlink()
    with pytest.raises(InputError, match="has only one row") as caught:
        rows_from_file(tmp_path / "more")
    assert caught.value.argument == "path"


def test_what_is_usual_in_a_column(tmp_path):
    lines = [f"r{i},{i % 10},{'same' if i else 'other'},{i % 7}x" for i in range(100)]
    (tmp_path / "t.csv").write_text("name,number,mostly,mixed\n" + "\n".join(lines) + "\n")
    typical = rows_from_file(tmp_path / "t.csv", ids="name").describe()["typical"]
    assert 6 <= typical["number"] <= 8
    assert typical["mostly"] is True
    assert typical["mixed"] is False


def test_the_map_of_many_rows_is_the_linear_view(monkeypatch):
    monkeypatch.setattr("pairlens.studio.maps.MOST_FOR_LAYOUT", 50)
    X, y = load_wine(return_X_y=True)
    pairs = Constraints.from_labels(y, n_pairs=40, random_state=0)
    places = make_mapper(X).fit(MapJob(40, pairs))
    view = LinearPairLens(2, random_state=0).fit(X, constraints=pairs).transform(X)
    np.testing.assert_allclose(np.abs(np.corrcoef(places.T, view.T)[:2, 2:].diagonal()), 1, atol=1e-9)
