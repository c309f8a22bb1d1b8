"""Views of annotated data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

anndata = pytest.importorskip("anndata")
pandas = pytest.importorskip("pandas")

import pairlens.anndata  # noqa: E402
from pairlens import Constraints, LinearPairLens, PairMap  # noqa: E402
from pairlens.exceptions import InputError  # noqa: E402


@pytest.fixture
def cells():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    names = np.array(["B", "T", "NK"])[y].astype(object)
    names[::3] = "Unknown"
    names[1] = None
    adata = anndata.AnnData(sparse.csr_matrix(np.maximum(X, 0)), obs=pandas.DataFrame({"cell_type": names}))
    adata.obs.index = [f"cell{i}" for i in range(len(X))]
    adata.obs["cell_type"] = adata.obs["cell_type"].astype("category")
    adata.obsm["X_pca"] = X[:, :8]
    return adata


def test_labels_become_a_view(cells):
    assert pairlens.anndata.embed(cells, labels="cell_type") is None
    labels = np.array([None if w in ("Unknown", None) or w != w else w for w in cells.obs["cell_type"]], dtype=object)
    expected = PairMap(standardize=False, random_state=0).fit(cells.obsm["X_pca"], labels)
    np.testing.assert_array_equal(cells.obsm["X_pairlens"], expected.transform(cells.obsm["X_pca"]))
    record = cells.uns["pairlens"]
    assert record["params"]["method"] == "PairMap"
    assert record["params"]["rep"] == "X_pca"
    assert record["auc"] == pytest.approx(expected.auc_)


def test_pairs_sparse_rows_and_another_method(cells):
    pairs = Constraints([(0, 3), (10, 12)], [(0, 100)], n_samples=cells.n_obs)
    changed = pairlens.anndata.embed(
        cells, pairs, rep="X", method=LinearPairLens(3, random_state=0), key_added="X_view", copy=True
    )
    assert "X_view" not in cells.obsm
    assert changed.obsm["X_view"].shape == (cells.n_obs, 3)
    assert changed.uns["view"]["params"]["n_must_link"] == 2


def test_backed_files_and_writing(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    pairlens.anndata.embed(cells, labels="cell_type", rep="X")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    pairlens.anndata.embed(backed, labels="cell_type", rep="X")
    np.testing.assert_allclose(backed.obsm["X_pairlens"], cells.obsm["X_pairlens"], atol=1e-8)
    cells.write_h5ad(tmp_path / "result.h5ad")
    again = anndata.read_h5ad(tmp_path / "result.h5ad")
    assert float(again.uns["pairlens"]["auc"]) == pytest.approx(cells.uns["pairlens"]["auc"])
    backed.file.close()


def test_what_is_wrong_is_said(cells):
    for arguments, expected in (
        ({}, ("constraints", None)),
        ({"labels": "cell_type", "rep": "X_umap"}, ("rep", "X_umap")),
        ({"labels": "type"}, ("labels", "type")),
        ({"labels": "cell_type", "unknown": ["B", "T", "NK", "Unknown"]}, ("labels", "cell_type")),
    ):
        with pytest.raises(InputError) as caught:
            pairlens.anndata.embed(cells, **arguments)
        assert (caught.value.argument, caught.value.value) == expected
