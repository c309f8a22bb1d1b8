"""Tables and pairs as people have them."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens._atomic import atomic_path
from pairlens.io.tables import label_values, read_columns, read_table

pytest.importorskip("pandas")


def write(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "numbers", "left_out"),
    [
        ("a,b,c\n1,2,x\n3,4,y\n", ("a", "b"), ("c",)),
        ("\ufeffa,b\n1,2\n3,4\n", ("a", "b"), ()),
        ("a;b\n1,5;2\n3,5;4\n", ("a", "b"), ()),
        ("a\tb\n1\t2\n3\t4\n", ("a", "b"), ()),
        ("a|b\n1|2\n3|4\n", ("a", "b"), ()),
        (",a\n0,1\n1,3\n", ("a",), ("(unnamed)",)),
        ("a,b\n1, 2\n3,4 \n", ("a", "b"), ()),
        ("a,empty\n1,\n3,\n", ("a",), ("empty",)),
        ("a,flag\n1,True\n3,False\n", ("a", "flag"), ()),
        ("a,day\n1,2020-01-01\n3,2020-01-02\n", ("a",), ("day",)),
        ("a,b\n1,123456789012345678901234567890\n3,4\n", ("a", "b"), ()),
        ('a,"b, c"\n1,2\n3,4\n', ("a", "b, c"), ()),
        ("a,b\n1,2\n\n3,4\n\n", ("a", "b"), ()),
    ],
)
def test_which_columns_are_numbers(content, numbers, left_out, tmp_path):
    table = read_table(write(tmp_path, content))
    assert table.numbers == numbers
    assert table.left_out == left_out
    assert table.n_rows == 2
    assert np.isfinite(table.rows.to_numpy()).all()


def test_decimal_commas_are_decimals(tmp_path):
    assert read_table(write(tmp_path, "a;b\n1,5;-2\n3,25;4\n")).rows["a"].tolist() == [1.5, 3.25]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "has no rows"),
        ("a,b\n1,2\n", "only one row"),
        ("1,2\n3,4\n", "no header: its first line holds numbers only"),
        ("a,,c\n1,2,3\n", "a column without a name"),
        ("a,a\n1,2\n3,4\n", "2 columns named 'a'"),
        ("a,b\n1,2,3\n4,5,6\n", "more cells than the header"),
        ("a,b\n1,2\n3,4,5\n", "expected 2 fields in line 3, saw 3"),
        ("a,b\n1,x\n2,3\n4,5\n", "'b' of data.csv holds text among numbers: 'x' in row 0. Mend it"),
        ("a,b\n1,x\n2,y\n4,5\n6,7\n8,9\n", "'x' in row 0, and 1 more such cell"),
        ("a,b\n1,-inf\n2,3\n", "infinite values: 1 in 'b'"),
        ("a,b\n1,NA\n2,3\n", "missing values: 1 in 'b'"),
        ("a,b\nx,y\nz,w\n", "no numeric columns"),
        (b"\xff\xfea\x00,\x00b\x00", "is UTF-16 text: save the file as UTF-8"),
        (b"a,b\n1,2\n\x00\x00\n", "zero bytes"),
        (b"a,b\n1,\xe9\n2,3\n", "not UTF-8 text: line 2 has the byte 0xe9"),
    ],
)
def test_tables_that_are_none(content, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, content))


@pytest.mark.parametrize("name", ["data.npy", "data.npz", "data.parquet", "data.xlsx"])
def test_files_that_are_not_what_they_are_called(name, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="needs the extra io")
    with pytest.raises(ValueError, match=name):
        read_table(write(tmp_path, "a,b\n1,2\n", name))


def test_archives(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.eye(3), names=["a", "b", "c"], other=np.zeros((3, 2)), feature_names=["u", "v", "w"])
    table = read_table(path, ids="names")
    assert table.numbers == ("u", "v", "w")
    assert table.left_out == ("other",)
    assert read_columns(path, ["names"])["names"].tolist() == ["a", "b", "c"]
    np.savez(path, left=np.eye(3), right=np.eye(3))
    with pytest.raises(ValueError, match="one table of numbers, or one named X; it has 'left', 'right'"):
        read_table(path)
    np.savez(path, X=np.eye(3), names=["a", "b"])
    with pytest.raises(ValueError, match="one entry for each of the 3 rows"):
        read_table(path, ids="names")


def test_arrays_with_objects_are_not_unpickled(tmp_path):
    for name in ("data.npy", "data.npz"):
        (np.save if name.endswith("npy") else np.savez)(tmp_path / name, np.array([[{}]], dtype=object))
        with pytest.raises(ValueError, match=name):
            read_table(tmp_path / name)


def test_one_hot_only_of_categories(tmp_path):
    path = write(tmp_path, "a,word\n" + "".join(f"{k},word {k}\n" for k in range(200)))
    with pytest.raises(ValueError, match=r"'word' of data\.csv has 200 different words, too many for --one-hot"):
        read_table(path, one_hot=True)
    assert read_table(path).left_out == ("word",)


def test_labels_that_are_unknown():
    assert label_values(np.array(["1", "-1", "", "NA", None], dtype=object)).tolist() == ["1", None, None, None, None]
    assert label_values(np.array(["a", "-1"], dtype=object)).tolist() == ["a", "-1"]
    assert label_values(np.array([1, -1])).tolist() == [1, -1]


def test_files_are_whole_or_not_there(tmp_path):
    path = tmp_path / "result.txt"

    def fail():
        with atomic_path(path) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []
    with atomic_path(path) as partial:
        partial.write_text("whole")
    assert path.read_text() == "whole"
    plain = tmp_path / "plain.txt"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
