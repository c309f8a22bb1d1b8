"""Data files that are damaged, cut short or hostile: the error names the file and says what is wrong with it."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

from pairlens.io.embedding import embed
from pairlens.io.source import Source, column_names, read_columns

X = np.random.default_rng(0).standard_normal((40, 4))
SEEDS = range(25)


class Doubling:
    """A model of four columns that does next to nothing."""

    n_features_in_ = 4

    def transform(self, rows):
        return np.asarray(rows) * 2

    def get_feature_names_out(self):
        return ["a", "b", "c", "d"]


def refused(call, path):
    """Whether there is an error, which has to be a ValueError of one line that names the file."""
    try:
        call()
    except ValueError as error:
        text = str(error)
    else:
        return False
    assert path.name in text
    assert "\n" not in text
    return True


def hurt(content, seed):
    """A file that is cut, or has a few other bytes; its last part, where tables of contents are, more often."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        return content[: int(rng.integers(1, len(content)))]
    changed = bytearray(content)
    first = 0 if seed % 3 == 1 else len(content) // 2
    for place in rng.integers(first, len(content), 4):
        changed[place] = int(rng.integers(256))
    return bytes(changed)


def array(name):
    content = io.BytesIO()
    np.savez(content, X=X, id=np.arange(40)) if name.endswith("npz") else np.save(content, X)
    return content.getvalue()


def parquet():
    arrow = pytest.importorskip("pyarrow")
    content = io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(dict(zip("abcd", X.T))), content)
    return content.getvalue()


@pytest.mark.parametrize("name", ["data.npy", "data.npz", "data.parquet"])
def test_damaged_tables_are_named(name, tmp_path):
    content = parquet() if name.endswith("parquet") else array(name)
    path, count = tmp_path / name, 0
    for seed in SEEDS:
        path.write_bytes(hurt(content, seed))
        for call in (
            lambda: Source(path).read(),
            lambda: column_names(path),
            lambda: embed(Doubling(), Source(path), tmp_path / "out.csv"),
        ):
            count += refused(call, path)
    assert count > len(SEEDS) // 2


@pytest.mark.parametrize("name", ["data.xlsx", "data.jsonl.gz"])
def test_damaged_packed_tables_are_named(name, tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    path = tmp_path / name
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    content = path.read_bytes()
    count = 0
    for seed in SEEDS:
        path.write_bytes(hurt(content, seed))
        count += refused(lambda: Source(path).read(), path)
    assert count > len(SEEDS) // 2


def test_an_excel_file_whose_sheet_is_none(tmp_path):
    """The library's own words have several lines."""
    pytest.importorskip("openpyxl")
    path, whole = tmp_path / "data.xlsx", tmp_path / "whole.xlsx"
    pytest.importorskip("pandas").DataFrame(X).to_excel(whole, index=False)
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(path, "w") as changed:
        for part in archive.namelist():
            content = archive.read(part)
            if part == "xl/worksheets/sheet1.xml":
                content = content.replace(b"<worksheet", b'<!DOCTYPE a [<!ENTITY b "1">]><worksheet', 1)
                content = content.replace(b"<v>1</v>", b"<v>&b;&c;</v>", 1)
            changed.writestr(part, content)
    assert refused(lambda: Source(path).read(), path)


HEADERS = {
    "unbalanced": b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, }",
    "too large": b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 4), }",
    "without a size": b"{'descr': '|V0', 'fortran_order': False, 'shape': (1099511627776, 4), }",
    "empty": b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1125899906842624), }",
    "not one": b"(" * 90 + b"x" + b"(" * 900,
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_headers_that_promise_too_much(header, tmp_path):
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (tmp_path / "data.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "data.npz", "w") as archive:
        archive.writestr("X.npy", content)
    for name in ("data.npy", "data.npz"):
        path = tmp_path / name
        for call in (
            lambda path=path: Source(path).read(),
            lambda path=path: embed(Doubling(), Source(path), tmp_path / "out.npy"),
        ):
            with pytest.raises(ValueError, match=name):
                call()


def test_an_archive_with_a_part_that_is_locked_or_packed_unknown(tmp_path):
    path = tmp_path / "data.npz"
    for offset, value in ((8, 99), (6, 1)):  # the method of compression, and the mark of encryption
        content = bytearray(array("data.npz"))
        content[content.index(b"PK\x01\x02") + offset + 2] = value
        path.write_bytes(bytes(content))
        with pytest.raises(ValueError, match=r"data\.npz is not an archive of NumPy arrays, or is damaged"):
            read_columns(path, ["id"])


@pytest.fixture
def cells(tmp_path):
    anndata = pytest.importorskip("anndata", reason="needs the extra anndata")
    found = anndata.AnnData(sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0)), obsm={"X_pca": X})
    found.obs_names = [f"cell {k}" for k in range(len(X))]
    path = tmp_path / "cells.h5ad"
    found.write_h5ad(path)
    return path


@pytest.mark.parametrize("rep", ["X_pca", "X"])
def test_damaged_cells_are_named(cells, rep):
    content, count = cells.read_bytes(), 0
    for seed in SEEDS:
        cells.write_bytes(hurt(content, seed))
        count += refused(lambda: Source(cells, rep=rep).read(), cells)
    assert count


@pytest.mark.parametrize(("part", "place", "value"), [("indices", 0, 10**6), ("indptr", -1, 0)])
def test_sparse_cells_whose_entries_lie_outside_are_refused(part, place, value, cells):
    """Compiled code would read and write there."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(cells, "r+") as file:
        file[f"X/{part}"][place] = value
    with pytest.raises(ValueError, match=r"cells\.h5ad is not an h5ad file of annotated data, or is damaged"):
        Source(cells, rep="X").read()
