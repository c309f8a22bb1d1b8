"""``pairlens transform``, ``evaluate`` and ``export`` in detail."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from pairlens import WBDR, Constraints, PairLens
from pairlens.io import embedding
from pairlens.io.models import save
from pairlens.io.source import Source
from tests.cli.conftest import FIT, IDS, X, pairs_text

MODEL = "fitted/model.pairlens"


@pytest.fixture
def expected(fitted) -> np.ndarray:
    return np.loadtxt(fitted / "fitted" / "embedding.csv", delimiter=",", skiprows=1)[:, 1:]


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return arrays["embedding"]
    if path.suffix == ".parquet":
        pd = pytest.importorskip("pandas")
        return pd.read_parquet(path).iloc[:, 1:].to_numpy()
    return np.loadtxt(path, delimiter="\t" if path.suffix == ".tsv" else ",", skiprows=1)[:, 1:]


@pytest.mark.parametrize("source", ["csv", "tsv", "parquet", "npy", "npz"])
@pytest.mark.parametrize("target", ["csv", "tsv", "parquet", "npy", "npz"])
def test_every_kind_to_every_kind_in_chunks(source, target, fitted, expected, cli, monkeypatch):
    """Seven rows at a time give what all at once give."""
    if "parquet" in (source, target):
        pytest.importorskip("pyarrow", reason="needs the extra io")
    monkeypatch.setattr(embedding, "CHUNK_CELLS", 4 * 7)
    path = fitted / f"rows.{source}"
    if source in ("csv", "tsv"):
        text = (fitted / "data.csv").read_text()
        path.write_text(text if source == "csv" else text.replace(",", "\t"))
    elif source == "parquet":
        pd = pytest.importorskip("pandas")
        pd.read_csv(fitted / "data.csv", dtype={"id": str}).to_parquet(path)
    elif source == "npy":
        np.save(path, X)
    else:
        np.savez(path, X=X, id=np.array(IDS))
    ids = () if source == "npy" else ("--id", "id")
    outcome = cli("transform", MODEL, path.name, *ids, "--out", f"out.{target}")
    assert outcome.code == 0, outcome.err
    assert outcome.out == f"wrote 60 rows to out.{target}\n"
    np.testing.assert_allclose(read(fitted / f"out.{target}"), expected, rtol=1e-9, atol=1e-12)
    if target == "csv":
        names = [line.split(",")[0] for line in (fitted / "out.csv").read_text().splitlines()]
        assert names == (["row", *map(str, range(60))] if source == "npy" else ["id", *IDS])


@pytest.mark.parametrize("array", [np.asfortranarray(X), X.astype(np.float32), X.round().astype(np.int16)])
def test_arrays_of_other_layouts(array, fitted, cli, monkeypatch):
    from pairlens.io.models import load

    monkeypatch.setattr(embedding, "CHUNK_CELLS", 4 * 7)
    np.save(fitted / "rows.npy", array)
    assert cli("transform", MODEL, "rows.npy", "--out", "out.npy").code == 0
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(array.astype(np.float64), columns=list("wxyz"))
    expected = load(fitted / MODEL).transform(frame)
    np.testing.assert_allclose(np.load(fitted / "out.npy"), expected, atol=1e-5)


@pytest.mark.parametrize("save_archive", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("array", [X, np.asfortranarray(X), X.astype(">f4")])
def test_archives_of_other_layouts(save_archive, array, fitted, expected, cli, monkeypatch):
    monkeypatch.setattr(embedding, "CHUNK_CELLS", 4 * 7)
    save_archive(fitted / "rows.npz", X=array, other=np.ones((3, 3)), text=np.array(["a"]))
    outcome = cli("transform", MODEL, "rows.npz", "--out", "out.npy")
    assert outcome.code == 0, outcome.err
    np.testing.assert_allclose(np.load(fitted / "out.npy"), expected, atol=1e-5)


@pytest.mark.parametrize("target", ["out.csv", "out.tsv"])
def test_ids_are_neither_formulas_nor_new_rows(target, fitted, cli):
    """A spreadsheet calculates what begins with =, and takes a carriage return for the end of a row."""
    names = ["=1+1", "a\r=1+1", "-7", *IDS[3:]]
    pytest.importorskip("pyarrow", reason="needs the extra io")
    pandas = pytest.importorskip("pandas")
    pandas.read_csv(fitted / "data.csv", dtype={"id": str}).assign(name=names).to_parquet(fitted / "rows.parquet")
    assert cli("transform", MODEL, "rows.parquet", "--out", target, "--id", "name").code == 0
    with (fitted / target).open(newline="", encoding="utf-8") as file:
        found = [row[0] for row in csv.reader(file, delimiter="\t" if target.endswith("tsv") else ",")]
    assert found == ["name", "'=1+1", "a\r=1+1", "-7", *IDS[3:]]
    assert b'"a\r=1+1"' in (fitted / target).read_bytes()


def test_damaged_archives(fitted, cli):
    np.savez_compressed(fitted / "rows.npz", X=X)
    content = bytearray((fitted / "rows.npz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (fitted / "hurt.npz").write_bytes(content)
    assert (
        "hurt.npz is not a NumPy array of numbers, or is damaged: Bad CRC"
        in cli("transform", MODEL, "hurt.npz", "--out", "out.npy").error
    )
    np.savez(fitted / "rows.npz", X=X)
    (fitted / "cut.npz").write_bytes((fitted / "rows.npz").read_bytes()[:-100])
    assert "not an archive" in cli("transform", MODEL, "cut.npz", "--out", "out.npy").error
    np.save(fitted / "rows.npy", X)
    (fitted / "rows.npy").rename(fitted / "single.npz")
    for command in (
        ("transform", MODEL, "single.npz", "--out", "out.npy"),
        ("pairs", "check", "p.csv", "--data", "single.npz"),
    ):
        (fitted / "p.csv").write_text("a,b,kind\n0,1,must-link\n")
        assert "give it the ending .npy" in cli(*command).error
    np.savez(fitted / "two.npz", a=X, b=X)
    assert (
        "must have one table of numbers, or one named X" in cli("transform", MODEL, "two.npz", "--out", "o.npy").error
    )
    np.savez(fitted / "short.npz", X=X, id=np.arange(3))
    outcome = cli("transform", MODEL, "short.npz", "--id", "id", "--out", "o.npy")
    assert "id of short.npz must have one entry for each of the 60 rows" in outcome.error


def test_columns_in_another_order(fitted, expected, cli):
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(fitted / "data.csv", dtype={"id": str})
    frame[["z", "note", "id", "y", "x", "w"]].assign(more=1.0).to_csv(fitted / "other.csv", index=False)
    assert cli("transform", MODEL, "other.csv", "--out", "out.csv").code == 0
    np.testing.assert_allclose(read(fitted / "out.csv"), expected, rtol=1e-9, atol=1e-12)


def test_new_words_and_missing_numbers(table, cli):
    assert cli(*FIT[:-1], "class", "--method", "wbdr", "--out", "fitted").code == 0
    (table / "new.csv").write_text("note,z,y,x,w\nnever seen,1,2,,4\nremark 1,1,2,3,4\n")
    outcome = cli("transform", MODEL, "new.csv", "--out", "out.csv")
    assert outcome.code == 0, outcome.err
    assert np.isfinite(read(table / "out.csv")).all()
    np.save(table / "rows.npy", np.ones((3, 5)))
    assert "the model was fitted to a table" in cli("transform", MODEL, "rows.npy", "--out", "o.npy").error


def test_text_among_numbers_counts_as_missing(fitted, cli):
    (fitted / "new.csv").write_text("w,x,y,z\n1,2,3,\n1,2,3,oops\n1,2,3,NA\n")
    assert cli("transform", MODEL, "new.csv", "--out", "out.csv").code == 0
    places = read(fitted / "out.csv")
    assert np.isfinite(places).all()
    np.testing.assert_array_equal(places[0], places[1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("w,x,y\n1,2,3\n", "lacks columns that the model was fitted to: 'z'"),
        ("w,x,y,z\n1,2,3,inf\n", "new.csv: the column 'z' holds infinity in row 0"),
        ("w,x,y,z\n" + "1,2,3,4\n" * 9 + "1,2,3,1e300\n", "the column 'z' holds 1e+300"),
        ("w,x,y,z\n" + "1,2,3,4\n" * 9 + "1,2,3,1e300\n", "in row 9"),
        ("w,x,y,z\n", "new.csv has no rows"),
        ("", "new.csv is empty"),
    ],
)
def test_rows_that_do_not_fit(content, message, fitted, cli, monkeypatch):
    monkeypatch.setattr(embedding, "CHUNK_CELLS", 4 * 7)
    (fitted / "new.csv").write_text(content)
    assert message in cli("transform", MODEL, "new.csv", "--out", "out.csv").error
    assert not list(fitted.glob("*out*"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("w,x,y,z\n1,2,3,\n", "missing values: 1 in 'z'. Fill them in"),
        ("w,x,y,z\n1,2,3,4\n1,2,3,4\n1,2,3,oops\n", "'z' of new.csv holds text among numbers: 'oops' in row 2"),
        ("w,x,y,z\n1,2,3,a\n1,2,3,b\n", "'z' of new.csv must hold numbers, but holds text"),
        ("w,x,y,z\n1,2,3,inf\n", "infinite values: 1 in 'z'"),
        ("w,x,y,z\n1,2,3,1e300\n", "'z' of new.csv holds 1e+300"),
    ],
)
def test_rows_that_do_not_fit_a_model_without_an_encoder(content, message, table, cli):
    pd = pytest.importorskip("pandas")
    pairs = Constraints([(0, 1)], [(0, 30)], n_samples=60)
    save(WBDR(2).fit(pd.DataFrame(X, columns=list("wxyz")), constraints=pairs), table / "bare.pairlens")
    (table / "new.csv").write_text(content)
    assert message in cli("transform", "bare.pairlens", "new.csv", "--out", "out.csv").error
    assert not list(table.glob("*out*"))


def test_a_pipeline_of_scikit_learn(table, cli):
    """Words and missing numbers are handed on to steps that take them."""
    pd = pytest.importorskip("pandas")
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from pairlens.selection.fitting import fit_model

    frame = pd.read_csv(table / "data.csv")
    columns = ColumnTransformer(
        [("n", SimpleImputer(), list("wxyz")), ("w", OneHotEncoder(handle_unknown="ignore"), ["note"])],
        sparse_threshold=0,
    )
    pairs = Constraints([(0, 1)], [(0, 30)], n_samples=60)
    model = fit_model(make_pipeline(columns, WBDR(2)), frame[[*"wxyz", "note"]], pairs)
    save(model, table / "pipe.pairlens")
    (table / "new.csv").write_text("note,z,y,x,w\nnever seen,1,2,,4\nremark 1,1,2,3,4\n")
    outcome = cli("transform", "pipe.pairlens", "new.csv", "--out", "out.csv")
    assert outcome.code == 0, outcome.err
    assert np.isfinite(read(table / "out.csv")).all()
    np.save(table / "rows.npy", np.ones((3, 5)))
    assert "rows.npy has no named columns" in cli("transform", "pipe.pairlens", "rows.npy", "--out", "o.npy").error


def test_arrays_that_do_not_fit(fitted, cli):
    np.save(fitted / "wide.npy", np.ones((3, 5)))
    assert (
        "wide.npy has 5 columns, but the model was fitted to 4"
        in cli("transform", MODEL, "wide.npy", "--out", "out.npy").error
    )
    content = (fitted / "wide.npy").read_bytes()
    (fitted / "cut.npy").write_bytes(content[:-8])
    assert "cut.npy is cut short" in cli("transform", MODEL, "cut.npy", "--out", "out.npy").error
    np.save(fitted / "cube.npy", np.ones((3, 2, 2)))
    assert "cube.npy must be a table" in cli("transform", MODEL, "cube.npy", "--out", "out.npy").error
    assert "array without named columns" in cli("transform", MODEL, "wide.npy", "--id", "id", "--out", "out.npy").error


def test_where_to_write(fitted, cli):
    (fitted / "there.csv").write_text("mine")
    run = ("transform", MODEL, "data.csv", "--out")
    assert "there.csv exists already" in cli(*run, "there.csv").error
    assert (fitted / "there.csv").read_text() == "mine"
    assert cli(*run, "there.csv", "--overwrite").code == 0
    assert "none is not a folder" in cli(*run, "none/out.csv").error
    assert "out.xlsx must end in" in cli(*run, "out.xlsx").error


def test_models_made_in_python(table, cli):
    """They may not know the names of their columns."""
    pairs = Constraints([(0, 1)], [(0, 30)], n_samples=60)
    save(WBDR(2).fit(X, constraints=pairs), table / "plain.pairlens")
    outcome = cli("transform", "plain.pairlens", "data.csv", "--id", "id", "--out", "out.csv")
    assert outcome.code == 0, outcome.err
    save(WBDR(2).fit(X[:, :3], constraints=pairs), table / "narrow.pairlens")
    assert (
        "has 4 numeric columns, but the model was fitted to 3"
        in cli("transform", "narrow.pairlens", "data.csv", "--id", "id", "--out", "o.csv").error
    )
    assert cli("transform", "narrow.pairlens", "data.csv", "--drop", "id,z", "--out", "o.csv").code == 0


def test_json(fitted, cli):
    outcome = cli("transform", MODEL, "data.csv", "--id", "id", "--out", "out.csv", "--json")
    assert json.loads(outcome.out) == {"rows": 60, "columns": ["wbdr0", "wbdr1"], "out": "out.csv"}


EVALUATE = ("evaluate", MODEL, "data.csv", "--id", "id")


def test_evaluate_agrees_with_score(fitted, cli):
    from pairlens.io.models import load
    from pairlens.supervision import read_answers

    outcome = cli(*EVALUATE, "--pairs", "pairs.csv", "--json")
    assert outcome.code == 0, outcome.err
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(fitted / "data.csv", dtype={"id": str})
    pairs = read_answers(fitted / "pairs.csv", ids=frame["id"].to_numpy()).constraints
    model = load(fitted / MODEL)
    expected = model[-1].score(model[:-1].transform(frame), constraints=pairs)
    assert json.loads(outcome.out)["pair_auc"][0] == pytest.approx(expected)


def test_evaluate_by_cross_validation_agrees_with_fit(fitted, cli):
    outcome = cli(*EVALUATE, "--pairs", "pairs.csv", "--cross-validate", "--json")
    assert outcome.code == 0, outcome.err
    run = json.loads((fitted / "fitted" / "run.json").read_text())
    assert json.loads(outcome.out)["pair_auc"][0] == pytest.approx(run["result"]["held_out_pair_auc"])


def test_evaluate_preferences(table, cli):
    given = ("--prefer", "prefer.csv", "--id", "id")
    assert cli("fit", "data.csv", *given, "--drop", "class", "--out", "fitted").code == 0
    for more in ((), ("--cross-validate",)):
        outcome = cli("evaluate", MODEL, "data.csv", *given, *more)
        assert outcome.code == 0, outcome.err
        assert "accuracy on" in outcome.out
    assert (
        "these pairs cannot judge this model"
        in cli("evaluate", "fitted/model.pairlens", "data.csv", "--id", "id", "--pairs", write_one_pair(table)).error
    )


def write_one_pair(folder):
    (folder / "one.csv").write_text(f"a,b,kind\n{IDS[0]},{IDS[1]},must-link\n")
    return "one.csv"


def test_too_few_pairs_to_judge_by(fitted, cli):
    name = write_one_pair(fitted)
    assert "these pairs cannot judge" in cli(*EVALUATE, "--pairs", name).error
    assert "too few pairs to hold some out" in cli(*EVALUATE, "--pairs", name, "--cross-validate").error


def test_only_linear_models_are_exported(table, cli):
    pairs = Constraints([(0, 1)], [(0, 30)], n_samples=60)
    save(PairLens(random_state=0).fit(X, constraints=pairs), table / "lens.pairlens")
    for to in ("onnx", "safetensors", "sentence-transformers"):
        assert "PairLens is not linear" in cli("export", "lens.pairlens", "--to", to, "--out", "model").error
    assert not (table / "model").exists()


def test_a_mixed_table_is_named_where_it_stops_an_export(table, cli):
    fit = ("fit", "data.csv", "--pairs", "pairs.csv", "--id", "id", "--drop", "class", "--method", "linear-pairlens")
    assert cli(*fit, "--out", "mixed").code == 0
    said = cli("export", "mixed/model.pairlens", "--to", "safetensors", "--out", "model.safetensors").error
    assert "the columns 'note'" in said
    assert "leave them out by --drop" in said
    assert "LinearPairLens" not in said


def test_a_model_as_weight_and_bias(fitted, expected, cli):
    reader = pytest.importorskip("safetensors.numpy", reason="needs the extra embed")
    run = ("export", MODEL, "--to", "safetensors", "--dtype", "float64", "--out", "model.safetensors")
    outcome = cli(*run)
    assert outcome.out == "wrote model.safetensors: 4 columns of float64 in, 2 out\n", outcome.err
    found = reader.load_file(fitted / "model.safetensors")
    np.testing.assert_allclose(X @ found["weight"].T + found["bias"], expected, atol=1e-9)
    assert "exists already" in cli(*run).error
    assert json.loads(cli(*run, "--overwrite", "--json").out)["dimensions"] == 2


def test_a_module_is_not_written_over_another(fitted, cli):
    run = ("export", MODEL, "--to", "sentence-transformers", "--out", "adapter")
    (fitted / "adapter").mkdir()
    assert cli(*run).code == 0
    config = json.loads((fitted / "adapter" / "config.json").read_text())
    assert (config["in_features"], config["out_features"]) == (4, 2)
    assert "config.json exists already" in cli(*run).error
    assert cli(*run, "--overwrite").code == 0
    assert "must be 'float32' for sentence-transformers" in cli(*run, "--overwrite", "--dtype", "float64").error


def test_vectors_for_a_store(fitted, expected, cli, monkeypatch):
    """Ids and lists of 32-bit numbers of one length, in chunks; pairlens reads them too."""
    arrow = pytest.importorskip("pyarrow", reason="needs the extra io")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(embedding, "CHUNK_CELLS", 4 * 7)
    outcome = cli("transform", MODEL, "data.csv", "--id", "id", "--vectors", "out.parquet")
    assert outcome.out == "wrote 60 rows to out.parquet\n", outcome.err
    table = parquet.read_table(fitted / "out.parquet")
    assert table.column_names == ["id", "vector"]
    assert table.schema.field("vector").type == arrow.list_(arrow.float32(), 2)
    assert table["id"].to_pylist() == IDS
    np.testing.assert_allclose(table["vector"].to_pylist(), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(Source(fitted / "out.parquet", "id").read().rows, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "give --out for a table of the view, or --vectors for a Parquet file"),
        (("--out", "a.csv", "--vectors", "b.parquet"), "give --out for a table of the view, or --vectors"),
        (("--vectors", "b.csv"), "--vectors writes Parquet: the name of the file must end in .parquet, got 'b.csv'"),
    ],
)
def test_where_vectors_go_is_checked(given, message, fitted, cli):
    assert message in cli("transform", MODEL, "data.csv", "--id", "id", *given).error


def test_what_is_written_can_be_read_as_pairs_of_rows(fitted, cli):
    (fitted / "rows.csv").write_text(pairs_text(lambda row: row))
    assert cli("evaluate", MODEL, "data.csv", "--pairs", "rows.csv").code == 0


def test_columns_of_one_name_are_told_apart_as_in_fit(table, cli):
    """A table of numbers alone; those of mixed tables are the encoder's."""
    text = (table / "data.csv").read_text().replace("id,w,x,y,z", "id,w,w,w,", 1)
    (table / "data.csv").write_text("\n".join(",".join(line.split(",")[:5]) for line in text.splitlines()) + "\n")
    fit = ("fit", "data.csv", "--pairs", "pairs.csv", "--id", "id", "--method", "wbdr", "--out", "twice")
    assert cli(*fit).code == 0
    outcome = cli("transform", "twice/model.pairlens", "data.csv", "--id", "id", "--out", "again.csv")
    assert outcome.code == 0, outcome.err
    first, again = (np.loadtxt(name, delimiter=",", skiprows=1) for name in ("twice/embedding.csv", "again.csv"))
    np.testing.assert_allclose(again, first)
    assert cli("evaluate", "twice/model.pairlens", "data.csv", "--pairs", "pairs.csv", "--id", "id").code == 0
    (table / "data.csv").write_text("id,w\n1,2\n")
    assert (
        "lacks columns that the model was fitted to: 'w.2'"
        in cli("transform", "twice/model.pairlens", "data.csv", "--out", "none.csv").error
    )
