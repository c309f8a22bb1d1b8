"""Embeddings with their rows in another file, and cells: fit, report and new rows."""

from __future__ import annotations

import base64
import csv
import io
import json
import re

import numpy as np
import pytest

N = 40
GROUP = np.arange(N) % 2
FEATURES = np.random.default_rng(3).normal(0, 1, (N, 4)) + 3 * GROUP[:, None]
NAMES = [f"n{i:02}" for i in range(N)]
PAIRS = [(a, (a * 7 + 3) % N) for a in range(0, N, 2)] + [(a, (a + 2) % N) for a in range(1, N, 4)]
FIT = ("--id", "name", "--pairs", "pairs.csv", "--method", "linear-pairlens", "--folds", "2", "--out", "r")


def write_csv(path, head, rows) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])


@pytest.fixture
def folder(tmp_path):
    rows = [
        (name, f"Row <b>{i}</b>", "abc"[i % 3], f"pictures/{i}.png" if i % 5 else "../outside.png")
        for i, name in enumerate(NAMES)
    ]
    write_csv(tmp_path / "table.csv", ["name", "title", "kind", "file"], rows)
    answers = [(NAMES[a], NAMES[b], "same" if GROUP[a] == GROUP[b] else "different") for a, b in PAIRS if a != b]
    write_csv(tmp_path / "pairs.csv", ["a", "b", "kind"], answers)
    np.save(tmp_path / "embeddings.npy", FEATURES)
    return tmp_path


def view(path) -> dict[str, list[float]]:
    with path.open(encoding="utf-8") as file:
        return {row[0]: [float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]}


def test_as_many_rows(folder, cli):
    outcome = cli("fit", "embeddings.npy", "--rows", "table.csv", "--colour", "kind", *FIT)
    assert outcome.code == 0, outcome.err
    assert list(view(folder / "r" / "embedding.csv")) == NAMES
    page = (folder / "r" / "report.html").read_text(encoding="utf-8")
    assert "Row &lt;b&gt;3&lt;/b&gt;" in page
    assert "Row <b>3" not in page
    assert json.loads((folder / "r" / "run.json").read_text())["command"]["rows"] == "table.csv"
    assert cli("transform", "r/model.pairlens", "embeddings.npy", "--out", "new.csv").code == 0
    np.testing.assert_allclose(
        list(view(folder / "new.csv").values()), list(view(folder / "r" / "embedding.csv").values())
    )


def test_archives_and_lists_are_joined_by_id(folder, cli):
    order = np.random.default_rng(0).permutation(N)
    np.savez(folder / "embeddings.npz", X=FEATURES[order], name=np.array(NAMES)[order])
    pandas = pytest.importorskip("pandas", reason="Parquet needs pandas")
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install 'pairlens[io]'")
    pandas.DataFrame(
        {"name": [*np.array(NAMES)[order], "nobody"], "vector": [*FEATURES[order].tolist(), [0.0] * 4]}
    ).to_parquet(folder / "embeddings.parquet")
    assert cli("fit", "embeddings.npy", "--rows", "table.csv", *FIT).code == 0
    expected = view(folder / "r" / "embedding.csv")
    for name in ("embeddings.npz", "embeddings.parquet"):
        outcome = cli("fit", name, "--rows", "table.csv", *FIT, "--overwrite")
        assert outcome.code == 0, outcome.err
        assert ("1 rows of embeddings.parquet have no partner" in outcome.err) == name.endswith("parquet")
        found = view(folder / "r" / "embedding.csv")
        assert list(found) == NAMES
        np.testing.assert_allclose(list(found.values()), list(expected.values()), atol=1e-8)
    assert cli("transform", "r/model.pairlens", "embeddings.parquet", "--id", "name", "--out", "new.csv").code == 0
    again = view(folder / "new.csv")
    np.testing.assert_allclose([again[name] for name in NAMES], list(expected.values()), atol=1e-8)
    # A file of lists needs no second file.
    assert cli("fit", "embeddings.parquet", *FIT, "--overwrite").code == 0
    outcome = cli("evaluate", "r/model.pairlens", "embeddings.parquet", "--id", "name", "--pairs", "pairs.csv")
    assert outcome.code == 0, outcome.err


def test_new_features_with_their_rows(folder, cli):
    """transform and evaluate find ids and labels in the second file, as fit does."""
    assert cli("fit", "embeddings.npy", "--rows", "table.csv", *FIT).code == 0
    expected = view(folder / "r" / "embedding.csv")
    order = np.random.default_rng(0).permutation(N)[:30]
    np.savez(folder / "some.npz", X=FEATURES[order], name=np.array(NAMES)[order])
    for data, known in (("embeddings.npy", NAMES), ("some.npz", [NAMES[i] for i in sorted(order)])):
        rows = (data, "--rows", "table.csv", "--id", "name")
        outcome = cli("transform", "r/model.pairlens", *rows, "--out", "new.csv", "--overwrite")
        assert outcome.code == 0, outcome.err
        assert ("10 rows of table.csv have no partner" in outcome.err) == (data == "some.npz")
        found = view(folder / "new.csv")
        assert list(found) == known
        np.testing.assert_allclose([found[name] for name in known], [expected[name] for name in known], atol=1e-8)
    by_pairs = cli("evaluate", "r/model.pairlens", "embeddings.npy", *rows[1:], "--pairs", "pairs.csv", "--json")
    assert json.loads(by_pairs.out)["pair_auc"][0] > 0.9
    by_labels = cli("evaluate", "r/model.pairlens", *rows, "--labels", "kind", "--json")
    assert json.loads(by_labels.out)["rows"] == 30
    write_csv(folder / "features.csv", ["x0", "x1", "x2", "x3"], FEATURES.tolist())
    assert cli("transform", "r/model.pairlens", "features.csv", *rows[1:], "--out", "csv.csv").code == 0
    np.testing.assert_allclose(list(view(folder / "csv.csv").values()), list(expected.values()), atol=1e-8)
    for more, message in (
        (("--drop", "x1"), "--drop is for the columns of a table"),
        (("--rep", "X_pca"), "--rep chooses among the representations of an h5ad file"),
    ):
        assert message in cli("transform", "r/model.pairlens", *rows, *more, "--out", "x.csv").error
    np.save(folder / "narrow.npy", FEATURES[:, :3])
    narrow = cli("transform", "r/model.pairlens", "narrow.npy", *rows[1:], "--out", "x.csv")
    assert "narrow.npy has 3 columns, but the model was fitted to 4" in narrow.error


def test_pictures_stay_small_few_and_inside(folder, cli, monkeypatch):
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'pairlens[studio]'")
    (folder / "pictures").mkdir()
    for i in range(N):
        noise = np.random.default_rng(i).integers(0, 255, (300, 200, 3), dtype=np.uint8)
        image.fromarray(noise).save(folder / "pictures" / f"{i}.png")
    (folder / "pictures" / "7.png").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>")
    image.fromarray(np.zeros((9, 9, 3), dtype=np.uint8)).save(folder.parent / "outside.png")
    monkeypatch.setattr("pairlens.report._points.MOST_PICTURES", 20)
    assert cli("fit", "embeddings.npy", "--rows", "table.csv", *FIT).code == 0
    page = (folder / "r" / "report.html").read_text(encoding="utf-8")
    assert "svg+xml" not in page.partition('id="rows"')[2].partition("</section>")[0]
    payload = page.partition('id="data"')[2].partition("</script>")[0]
    found = set(re.findall(r"data:image/(?:png|jpeg);base64,([A-Za-z0-9+/=]+)", payload))
    assert 10 < len(found) < 20
    for content in found:
        picture = image.open(io.BytesIO(base64.b64decode(content)))
        # Those of 9 x 9 pixels lie outside the folder.
        assert max(picture.size) == 64
        assert len(content) <= 16 * 1024 * 4 / 3 + 4
    assert "pictures could not be shown" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("embeddings.npy", "--rows", "short.csv"), "embeddings.npy has 40 rows and short.csv 39"),
        (("embeddings.npy", "--rows", "embeddings.npy"), "must be a table with named columns"),
        (("embeddings.npy", "--rows", "table.csv", "--labels", "knd"), "did you mean 'kind'?"),
        (("embeddings.npy", "--rows", "table.csv", "--drop", "x1"), "--drop is for the columns of a table"),
        (("embeddings.npy", "--rep", "X_pca"), "--rep chooses among the representations of an h5ad file"),
        (("other.npz", "--rows", "table.csv"), "have no id in common"),
        (("twice.npz", "--rows", "table.csv"), "must differ, but 'n00' is there more than once"),
        (("embeddings.npy", "--rows", "table.csv", "--unknown", "a"), "there are no --labels"),
    ],
)
def test_what_is_refused(folder, cli, arguments, message):
    lines = (folder / "table.csv").read_text().splitlines(keepends=True)
    (folder / "short.csv").write_text("".join(lines[:-1]))
    np.savez(folder / "other.npz", X=FEATURES, name=np.array([f"m{i}" for i in range(N)]))
    np.savez(folder / "twice.npz", X=FEATURES, name=np.array(["n00"] * N))
    assert message in cli("fit", *arguments, *FIT).error


def test_lists_of_different_lengths(folder, cli):
    pandas = pytest.importorskip("pandas", reason="Parquet needs pandas")
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install 'pairlens[io]'")
    lists = [*FEATURES.tolist()[:-1], [1.0]]
    pandas.DataFrame({"name": NAMES, "vector": lists}).to_parquet(folder / "ragged.parquet")
    assert "the first has 4, that of row 39 has 1" in cli("fit", "ragged.parquet", *FIT).error


def test_lists_beside_columns_can_be_dropped(table, cli):
    """Otherwise the lists are the features, and what else is there is said to be left out."""
    pandas = pytest.importorskip("pandas", reason="Parquet needs pandas")
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install 'pairlens[io]'")
    frame = pandas.read_csv("data.csv", dtype={"id": str})[["id", "w", "x", "y"]]
    frame["lists"] = frame[["w", "x"]].to_numpy().tolist()
    frame.assign(more=frame["lists"]).to_parquet("both.parquet")
    frame.to_parquet("data.parquet")
    frame["lists"] = [[], *([[1.0]] * (len(frame) - 1))]
    frame.to_parquet("empty.parquet")
    fit = ("--pairs", "pairs.csv", "--id", "id", "--method", "wbdr", "--out")
    learned = cli("fit", "data.parquet", *fit, "lists")
    assert learned.code == 0
    assert "left out: w, x, y" in learned.out
    for name, drop in (("data", "lists"), ("both", "lists,more"), ("empty", "lists")):
        outcome = cli("fit", f"{name}.parquet", "--drop", drop, *fit, name)
        assert outcome.code == 0, outcome.err
        assert "60 rows with 3 columns" in outcome.out
        assert cli("transform", f"{name}/model.pairlens", f"{name}.parquet", "--out", f"view-{name}.csv").code == 0
    assert (
        "several columns of lists, lists, more. Leave out all but the one to learn from by --drop"
        in cli("fit", "both.parquet", *fit, "none").error
    )
    assert (
        "must hold numbers, all of them as many: that of row 0 has 0" in cli("fit", "empty.parquet", *fit, "no").error
    )


@pytest.fixture
def cells(folder):
    anndata = pytest.importorskip("anndata", reason="h5ad files need anndata: pip install 'pairlens[anndata]'")
    pandas = pytest.importorskip("pandas", reason="anndata needs pandas")
    from scipy import sparse

    kinds = np.where(np.arange(N) % 3, "Unknown", np.array(["B", "T"])[GROUP])
    obs = pandas.DataFrame({"cell_type": pandas.Categorical(kinds)}, index=NAMES)
    adata = anndata.AnnData(sparse.csr_matrix(np.maximum(FEATURES, 0)), obs=obs)
    adata.obsm["X_pca"] = FEATURES
    adata.write_h5ad(folder / "cells.h5ad")
    return adata


LABELS = ("--labels", "cell_type", "--unknown", "Unknown", "--folds", "2", "--out", "r", "--overwrite")


def test_cells_as_in_python(folder, cells, cli):
    import pairlens.anndata

    outcome = cli("fit", "cells.h5ad", "--rep", "X_pca", *LABELS)
    assert outcome.code == 0, outcome.err
    pairlens.anndata.embed(cells, labels="cell_type")
    found = view(folder / "r" / "embedding.csv")
    assert list(found) == NAMES
    np.testing.assert_allclose(list(found.values()), cells.obsm["X_pairlens"], atol=1e-8)
    assert cli("transform", "r/model.pairlens", "cells.h5ad", "--out", "new.csv").code == 0
    np.testing.assert_allclose(list(view(folder / "new.csv").values()), list(found.values()), atol=1e-8)
    # Pairs name the cells.
    outcome = cli("evaluate", "r/model.pairlens", "cells.h5ad", "--pairs", "pairs.csv")
    assert outcome.code == 0, outcome.err
    outcome = cli("fit", "cells.h5ad", "--rep", "X", "--method", "linear-pairlens", *LABELS)
    assert outcome.code == 0, outcome.err
    compared = cli("compare", "cells.h5ad", *LABELS[:6], "--methods", "linear-pairlens")
    assert compared.code == 0, compared.err


def test_what_cells_lack(folder, cells, cli):
    said = cli("fit", "cells.h5ad", "--rep", "X_umap", *LABELS).error
    assert "obsm has no 'X_umap'" in said
    assert "Choose one of 'X', 'X_pca'" in said
    assert "did you mean 'cell_type'?" in cli("fit", "cells.h5ad", "--labels", "cell_typ", "--out", "r").error
    assert "is for the columns of a table" in cli("fit", "cells.h5ad", "--drop", "a", *LABELS).error
    (folder / "broken.h5ad").write_bytes(b"no file of cells")
    assert "broken.h5ad is not an h5ad file" in cli("fit", "broken.h5ad", *LABELS).error
