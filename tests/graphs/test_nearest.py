"""The one setting for neighbours: exact for few rows, an index with measured recall for many."""

from __future__ import annotations

import builtins
import warnings

import numpy as np
import pytest
from scipy import sparse

from pairlens import CLPP, LPP, LPPSI, NPSSDR, SDA, Constraints, SODRPaC
from pairlens.engines import neighbors
from pairlens.exceptions import ApproximationWarning, MissingExtraError
from pairlens.graphs import nearest as module
from pairlens.graphs.nearest import RowIndex, nearest_among, nearest_rows
from tests.oracles import subspace_angle

METHODS = [LPP, LPPSI, CLPP, NPSSDR, SDA, SODRPaC]


def mixture(n=3000, f=12, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 6, n)
    return 3 * rng.standard_normal((6, f))[y] + rng.standard_normal((n, f)), y


def recall(found, true):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, true)])


@pytest.fixture(scope="module")
def rows():
    pytest.importorskip("faiss")
    return mixture()


@pytest.mark.parametrize("k", [1, 10, 40])
def test_an_index_finds_the_true_neighbours_and_measures_them(rows, k):
    X, _ = rows
    found, distance = nearest_rows(X, k, search="approx")
    true = neighbors(X, n_nearest=k)
    assert recall(found, true.nearest) >= 0.95
    assert (found != np.arange(len(X))[:, None]).all()
    assert all(len(set(row)) == k for row in found)
    np.testing.assert_allclose(distance, np.linalg.norm(X[:, None] - X[found], axis=2), rtol=1e-12)
    assert (np.diff(distance, axis=1) >= 0).all()


def test_the_recall_that_an_index_claims_is_that_of_all_rows(rows):
    X, _ = rows
    index = RowIndex.of(X, 10)
    found = index(X, 11)[0]
    true = neighbors(X, n_nearest=10).nearest
    assert abs(recall(found, true) - index.recall) < 0.02


def test_less_effort_finds_less(rows):
    X, _ = rows
    lazy, eager = (RowIndex.of(X, 10, wanted=wanted) for wanted in (0.5, 0.999))
    true = neighbors(X, n_nearest=10).nearest
    assert lazy.n_probe < eager.n_probe
    assert recall(lazy(X, 11)[0], true) < recall(eager(X, 11)[0], true)


def test_wide_rows_are_coded_by_principal_components():
    pytest.importorskip("faiss")
    X, _ = mixture(2000, 100)
    found, _ = nearest_rows(X, 10, search="approx")
    assert recall(found, neighbors(X, n_nearest=10).nearest) >= 0.94


def test_scale_and_shift_do_not_matter(rows):
    X, _ = rows
    found, _ = nearest_rows(1e-20 * X, 5, search="approx")
    assert recall(found, neighbors(X, n_nearest=5).nearest) >= 0.95
    found, _ = nearest_rows(X + 1e6, 5, search="approx")
    assert recall(found, neighbors(X, n_nearest=5).nearest) >= 0.95


def test_repeated_and_constant_rows():
    pytest.importorskip("faiss")
    X = np.repeat(np.random.default_rng(0).standard_normal((60, 4)), 50, axis=0)
    found, distance = nearest_rows(X, 10, search="approx")
    assert (distance == 0).all()
    assert (found != np.arange(len(X))[:, None]).all()
    found, distance = nearest_rows(np.ones((1500, 3)), 4, search="approx")
    assert (distance == 0).all()


def test_few_rows_and_sparse_rows_are_searched_exactly(rows, monkeypatch):
    X, _ = rows
    true = neighbors(X, n_nearest=5)
    for search in ("auto", "exact"):
        found, distance = nearest_rows(X, 5, search=search)
        np.testing.assert_array_equal(found, true.nearest)
        np.testing.assert_array_equal(distance, true.nearest_distance)
    few = nearest_rows(X[:500], 5, search="approx")[0]
    np.testing.assert_array_equal(few, neighbors(X[:500], n_nearest=5).nearest)
    monkeypatch.setattr(module, "EXACT_ROWS", 1000)
    np.testing.assert_array_equal(nearest_rows(sparse.csr_matrix(X), 5)[0], true.nearest)


def test_auto_takes_the_index_above_the_limit(rows, monkeypatch):
    X, _ = rows
    monkeypatch.setattr(module, "EXACT_ROWS", 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = nearest_rows(X, 10)[0]
    np.testing.assert_array_equal(found, nearest_rows(X, 10, search="approx")[0])


def test_without_faiss_the_cost_and_the_remedy_are_named(monkeypatch):
    X, _ = mixture(1500)

    def refuse(name, *args, **kwargs):
        if name.partition(".")[0] == "faiss":
            raise ModuleNotFoundError("no faiss", name="faiss")
        return original(name, *args, **kwargs)

    original = builtins.__import__
    monkeypatch.setattr("importlib.import_module", refuse)
    monkeypatch.setattr(module, "EXACT_ROWS", 1000)
    with pytest.warns(ApproximationWarning, match=r"about [\d,]+ s on one core.*pip install 'pairlens\[ann\]'"):
        found, _ = nearest_rows(X, 5)
    np.testing.assert_array_equal(found, neighbors(X, n_nearest=5).nearest)
    with pytest.raises(MissingExtraError, match=r"pip install 'pairlens\[ann\]'"):
        nearest_rows(X, 5, search="approx")


def test_an_index_that_finds_too_little_is_given_up(rows, monkeypatch):
    X, _ = rows
    monkeypatch.setattr("pairlens.graphs.nearest.PROBED", np.array([1e-3]))
    with pytest.warns(ApproximationWarning, match=r"finds \d+% of their neighbours, less than 95%"):
        found, _ = nearest_rows(X, 10, search="approx")
    np.testing.assert_array_equal(found, neighbors(X, n_nearest=10).nearest)


def test_new_rows_find_their_nearest(rows):
    X, _ = rows
    new, _ = mixture(400, seed=1)
    squared = ((new[:, None] - X) ** 2).sum(axis=2)
    true = np.argsort(squared, axis=1, kind="stable")[:, :10]
    exact, distance = nearest_among(X, new, 10)
    np.testing.assert_array_equal(exact, true)
    np.testing.assert_allclose(distance, np.sqrt(np.take_along_axis(squared, true, axis=1)))
    assert recall(nearest_among(X, new, 10, search="approx")[0], true) >= 0.94


def test_what_a_row_finds_does_not_depend_on_others_that_come_with_it(rows):
    X, _ = rows
    new, _ = mixture(400, seed=1)
    index = RowIndex.of(X, 10)
    together = index(new, 10)[0]
    alone = np.vstack([index(row[None], 10)[0] for row in new])
    np.testing.assert_array_equal(alone, together)


def test_an_index_of_few_rows_is_made_where_many_look(rows, monkeypatch):
    X, _ = rows
    new, _ = mixture(50, seed=1)
    monkeypatch.setattr(module, "RowIndex", None)
    nearest_among(X.copy(), new, 3, n_queries=len(X))
    with pytest.raises(AttributeError):
        nearest_among(X.copy(), new, 3, n_queries=10**6)
    nearest_among(X.copy(), new, 3, n_queries=10**6, search="exact")


def test_the_index_of_training_rows_is_kept_as_long_as_they_are(rows, monkeypatch):
    X, new = rows[0].copy(), rows[0][:5]
    first = nearest_among(X, new, 3, search="approx")[0]
    monkeypatch.setattr(module, "RowIndex", None)
    np.testing.assert_array_equal(nearest_among(X, new, 3, search="approx")[0], first)
    kept = len(module._kept)
    del X
    assert len(module._kept) == kept - 1


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_the_setting_and_learns_the_same(rows, method):
    X, y = rows
    pairs = Constraints.from_labels(y, n_pairs=200, random_state=0)
    labels = np.where(np.arange(len(y)) < 60, y, -1) if method is SDA else None
    exact, approx = (method(3, neighbors=how).fit(X, labels, constraints=pairs) for how in ("exact", "approx"))
    assert subspace_angle(exact.components_, approx.components_) < 0.1
    assert not np.array_equal(exact.components_, approx.components_)
    with pytest.raises(ValueError, match="neighbors"):
        method(neighbors="fast").fit(X, constraints=pairs)
