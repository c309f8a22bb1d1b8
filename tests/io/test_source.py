"""Data files as people have them, read whole and some rows at a time."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

from pairlens import WBDR, Constraints, view_pipeline
from pairlens.exceptions import InputError, MissingExtraError
from pairlens.io.columns import label_values
from pairlens.io.source import Source, column_names, inputs_of, read_columns
from pairlens.selection.fitting import fit_model
from pairlens.tables import TableEncoder

pandas = pytest.importorskip("pandas")

X = np.random.default_rng(0).standard_normal((40, 4))
KINDS = ["csv", "tsv", "csv.gz", "tsv.gz", "jsonl", "jsonl.gz", "xlsx", "parquet", "lists", "npy", "npz", "h5ad"]
WHOLE = ("jsonl", "jsonl.gz", "xlsx", "npz", "h5ad")
"""Kinds that are read at once."""


def write(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_kind(folder, kind, values=X, ids=None):
    """The same rows in a file of any kind, with the column "id" where it can have one."""
    ids = [f"r{i}" for i in range(len(values))] if ids is None else ids
    frame = pandas.DataFrame({"id": ids, **{name: values[:, j] for j, name in enumerate("abcd")}})
    path = folder / f"data.{'parquet' if kind == 'lists' else kind}"
    if kind.startswith(("csv", "tsv")):
        frame.to_csv(path, index=False, sep="," if kind.startswith("csv") else "\t")
    elif kind.startswith("jsonl"):
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    elif kind == "xlsx":
        pytest.importorskip("openpyxl", reason="needs the extra io")
        frame.to_excel(path, index=False)
    elif kind in ("parquet", "lists"):
        pytest.importorskip("pyarrow", reason="needs the extra io")
        lists = pandas.DataFrame({"id": ids, "vector": values.tolist()})
        (frame if kind == "parquet" else lists).to_parquet(path, row_group_size=15)
    elif kind == "npy":
        np.save(path, values)
    elif kind == "npz":
        np.savez(path, X=values, id=np.array(ids))
    else:
        anndata = pytest.importorskip("anndata", reason="needs the extra anndata")
        found = anndata.AnnData(np.zeros((len(values), 1)), obsm={"X_pca": values})
        found.obs_names = ids
        found.write_h5ad(path)
    return path


def numbers(table):
    return table.rows.to_numpy(dtype=float) if table.is_frame else table.rows


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_rows(kind, tmp_path):
    ids = None if kind in ("npy", "h5ad") else "id"
    table = Source(write_kind(tmp_path, kind), ids).read()
    np.testing.assert_allclose(numbers(table), X, rtol=1e-12)
    assert table.is_frame == (kind not in ("lists", "npy", "npz", "h5ad"))
    assert len(table.features) == 4
    assert (table.ids is None) == (kind == "npy")
    if kind != "npy":
        assert list(table.ids) == [f"r{i}" for i in range(40)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", [False, True])
def test_parts_of_a_file_make_up_the_whole(kind, named, tmp_path):
    """For a model that knows the names of its columns, and for one that knows only how many there are."""
    ids = None if kind in ("npy", "h5ad") else "id"
    rows = pandas.DataFrame(X, columns=list("abcd")) if named else X
    pairs = Constraints([(0, 1)], [(0, 20)], n_samples=40)
    model = fit_model(view_pipeline(rows, WBDR(2)), rows, pairs)
    source = Source(write_kind(tmp_path, kind), ids)
    shares = []
    parts = list(source.tables(model, chunk_cells=4 * 7, progress=shares.append))
    assert (len(parts) > 4) == (kind not in WHOLE)
    np.testing.assert_allclose(np.concatenate([numbers(part) for part in parts]), X, rtol=1e-12)
    np.testing.assert_allclose(numbers(source.read(model)), X, rtol=1e-12)
    assert all(part.is_frame == named for part in parts)
    if kind not in WHOLE:
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1)
    if ids is not None:
        assert [name for part in parts for name in part.ids] == [f"r{i}" for i in range(40)]


def test_what_a_model_takes():
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "same": 1.0, "b": [0, 1, 0], "word": ["x", "y", "z"]})
    mixed = inputs_of(TableEncoder().fit(frame))
    assert mixed.names == ("a", "b", "word")
    assert mixed.words == {"b", "word"}
    assert mixed.array_names is None
    plain = inputs_of(TableEncoder(standardize=False).fit(frame.drop(columns="word")))
    assert plain.names == ("a", "b")
    assert plain.array_names == ("a", "same", "b")
    assert plain.n_features == 3
    array = inputs_of(TableEncoder().fit([[1.0, np.nan], [2.0, 3.0], [0.0, 5.0]]))
    assert (array.names, array.n_features, array.fills_in) == (None, 2, True)


@pytest.mark.parametrize(
    ("content", "features"),
    [
        ("a,b,c\n1,2,x\n3,4,y\n", ("a", "b", "c")),
        ("\ufeffa,b\n1,2\n3,4\n", ("a", "b")),
        ("a;b\n1,5;2\n3,5;4\n", ("a", "b")),
        ("a\tb\n1\t2\n3\t4\n", ("a", "b")),
        ("a|b\n1|2\n3|4\n", ("a", "b")),
        (",a\n0,1\n1,3\n", ("(unnamed)", "a")),
        ("a,,c\n1,2,3\n4,5,6\n", ("a", "(unnamed)", "c")),
        ("a,a\n1,2\n3,4\n", ("a", "a.2")),
        ("a,b\n1,123456789012345678901234567890\n3,4\n", ("a", "b")),
        ('a,"b, c"\n1,2\n3,4\n', ("a", "b, c")),
        ("a,b\n1,2\n\n3,4\n\n", ("a", "b")),
    ],
)
def test_tables_as_people_have_them(content, features, tmp_path):
    table = Source(write(tmp_path, content)).read()
    assert table.features == tuple(table.rows.columns) == features
    assert table.n_rows == 2


def test_decimal_commas_are_decimals(tmp_path):
    assert Source(write(tmp_path, "a;b\n1,5;-2\n3,25;4\n")).read().rows["a"].tolist() == [1.5, 3.25]


def test_columns_are_handed_over_dropped_and_kept_as_text(tmp_path):
    path = write(tmp_path, "key,zip,x,y,label\n007,01234,1,2,\n008,00005,3,4,b\n")
    table = Source(path, "key", labels=["label"], drop=["y"], text=["zip"]).read()
    assert table.features == ("zip", "x")
    assert table.ids.tolist() == ["007", "008"]
    assert table.asked["label"].tolist() == ["", "b"]
    assert table.rows["zip"].tolist() == ["01234", "00005"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "has no rows"),
        ("a,b\n1,2\n", "only one row"),
        ("1,2\n3,4\n", "no header: its first line holds numbers only"),
        ("a,b\n1,2,3\n4,5,6\n", "more cells than the header"),
        ("a,b\n1,2\n3,4,5\n", "expected 2 fields in line 3, saw 3"),
        (b"\xff\xfea\x00,\x00b\x00", "is UTF-16 text: save the file as UTF-8"),
        (b"a,b\n1,2\n\x00\x00\n", "zero bytes"),
        (b"a,b\n1,\xe9\n2,3\n", "not UTF-8 text: line 2 has the byte 0xe9"),
    ],
)
def test_tables_that_are_none(content, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        Source(write(tmp_path, content)).read()


@pytest.mark.parametrize("lines", ["1,2,3,4,5\n1,2,3,4,5\n", "1,2,3,4\n1,2,3,4,5\n"])
def test_lines_that_are_too_long_are_refused_for_a_model_too(lines, tmp_path):
    rows = pandas.DataFrame(X, columns=list("abcd"))[["a", "b"]]
    model = WBDR(2).fit(rows, constraints=Constraints([(0, 1)], [(0, 20)], n_samples=40))
    with pytest.raises(ValueError, match=r"data\.csv is not a table"):
        Source(write(tmp_path, f"a,b,c,d\n{lines}")).read(model)


def test_an_array_of_another_shape_is_told_as_it_is(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, X[None])
    with pytest.raises(ValueError, match=r"has the shape \(1, 40, 4\)"):
        next(Source(path).tables(chunk_cells=8))


@pytest.mark.parametrize(
    "name", ["data.npy", "data.npz", "data.parquet", "data.h5ad", "data.xlsx", "data.jsonl", "data.csv.gz", "data.xls"]
)
def test_files_that_are_not_what_they_are_called(name, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="needs the extra io")
    if name.endswith("h5ad"):
        pytest.importorskip("anndata", reason="needs the extra anndata")
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl", reason="needs the extra io")
    with pytest.raises(ValueError, match=name):
        Source(write(tmp_path, "a,b\n1,2\n", name)).read()


@pytest.mark.parametrize("kind", ["csv.gz", "tsv.gz", "jsonl.gz"])
def test_compressed_files_that_are_damaged(kind, tmp_path):
    path = write_kind(tmp_path, kind)
    content = path.read_bytes()
    broken = bytearray(content)
    broken[len(content) // 2] ^= 0xFF
    for damaged in (content[: len(content) // 2], bytes(broken), b"\x1f\x8b"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"data\.{kind} is not .* or is damaged"):
            Source(path).read()


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"reading Excel files needs openpyxl.*pip install 'pairlens\[io\]'"):
        Source(write(tmp_path, b"PK", "data.xlsx")).read()


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"rep": "X_pca"}, "rep"),
        ({"rows": "data.csv", "drop": ["a"]}, "drop"),
        ({"rows": "data.npy"}, "rows"),
        ({"drop": ["id", "a", "b", "c", "d"]}, "drop"),
    ],
)
def test_errors_name_the_argument(arguments, argument, tmp_path):
    path = write_kind(tmp_path, "csv")
    given = {**arguments, **({"rows": tmp_path / arguments["rows"]} if "rows" in arguments else {})}
    with pytest.raises(InputError) as caught:
        Source(path, **given).read()
    assert caught.value.argument == argument
    assert "--" not in str(caught.value)


def test_a_column_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"data\.csv has no column 'ids'; did you mean 'id'\?") as caught:
        Source(write_kind(tmp_path, "csv"), "ids").read()
    assert caught.value.value == "ids"
    with pytest.raises(InputError, match=r"data\.npy is an array without named columns, so it has no column 'id'"):
        Source(write_kind(tmp_path, "npy"), "id").read()


@pytest.mark.parametrize(
    ("value", "message"), [(np.inf, "infinite values: 1 in 'x1'"), (1e300, "'x1' of data.npy holds 1e")]
)
def test_arrays_of_numbers_that_no_method_takes(value, message, tmp_path):
    rows = X.copy()
    rows[3, 1] = value
    with pytest.raises(InputError, match=message) as caught:
        Source(write_kind(tmp_path, "npy", rows)).read()
    assert caught.value.argument == "drop"


def test_archives(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.eye(3), names=["a", "b", "c"], other=np.zeros((3, 2)), feature_names=["u", "v", "w"])
    table = Source(path, "names").read()
    assert table.features == ("u", "v", "w")
    assert table.left_out == ("other",)
    assert read_columns(path, ["names"])["names"].tolist() == ["a", "b", "c"]
    assert column_names(path) == ["X", "names", "other", "feature_names"]
    np.savez(path, left=np.eye(3), right=np.eye(3))
    with pytest.raises(ValueError, match="one table of numbers, or one named X; it has 'left', 'right'"):
        Source(path).read()
    np.savez(path, X=np.eye(3), names=["a", "b"])
    with pytest.raises(ValueError, match="one entry for each of the 3 rows"):
        Source(path, "names").read()


def test_arrays_with_objects_are_not_unpickled(tmp_path):
    for name in ("data.npy", "data.npz"):
        (np.save if name.endswith("npy") else np.savez)(tmp_path / name, np.array([[{}]], dtype=object))
        with pytest.raises(ValueError, match=name):
            Source(tmp_path / name).read()


def test_rows_are_joined_by_id_or_by_order(tmp_path):
    order = np.random.default_rng(0).permutation(40)
    features = write_kind(tmp_path, "npz", X[order], [f"r{i}" for i in order])
    known = write(tmp_path, "id,kind\n" + "".join(f"r{i},{i % 3}\n" for i in range(5, 45)), "known.csv")
    table = Source(features, "id", labels=["kind"], rows=known).read()
    np.testing.assert_array_equal(table.rows, X[5:])
    assert table.ids.tolist() == [f"r{i}" for i in range(5, 40)]
    assert table.beside.n_unmatched == (5, 5)
    assert table.kind == "csv"
    table = Source(write_kind(tmp_path, "npy"), "id", rows=known).read()
    assert table.ids[0] == "r5"
    np.testing.assert_array_equal(table.rows, X)


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_a_file_larger_than_memory_may_be(kind, tmp_path):
    """Some rows at a time need a fraction of the memory of all."""
    rows = np.random.default_rng(0).standard_normal((2**18 if kind == "npy" else 2**14, 32))
    path = tmp_path / f"many.{kind}"
    if kind == "npy":
        np.save(path, rows)
    else:
        pandas.DataFrame(rows.round(3)).add_prefix("x").to_csv(path, index=False)
    tracemalloc.start()
    try:
        count = sum(part.n_rows for part in Source(path).tables(chunk_cells=2**14))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == len(rows)
    assert peak < rows.nbytes / 2


def test_labels_that_are_unknown():
    assert label_values(np.array(["1", "-1", "", "NA", None], dtype=object)).tolist() == ["1", None, None, None, None]
    assert label_values(np.array(["a", "-1"], dtype=object)).tolist() == ["a", "-1"]
    assert label_values(np.array([1, -1])).tolist() == [1, -1]
