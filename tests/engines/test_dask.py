"""Methods that learn from landmarks of a large dask array, and place all its rows by blocks."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens import Constraints, LinearPairLens, PairLens, PairMap
from pairlens.engines import config_context
from pairlens.exceptions import ApproximationWarning

da = pytest.importorskip("dask.array", reason="dask arrays need pairlens[dask]")

METHODS = [PairLens(2, random_state=0), PairLens(3, random_state=0), PairMap(2, max_iter=100, random_state=0)]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    return rng.standard_normal((300, 6)) + 6 * np.eye(3, 6)[y], y


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_few_rows_give_what_an_array_gives(table, method):
    X, y = table
    known = Constraints.from_labels(y, n_pairs=60, random_state=0)
    expected = method.fit(X, constraints=known).transform(X)
    places = method.fit(da.from_array(X, chunks=(120, 3)), constraints=known).transform(
        da.from_array(X, chunks=(120, 3))
    )
    assert isinstance(places, da.Array)
    assert places.chunks[0] == (120, 120, 60)
    np.testing.assert_allclose(places.compute(), expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_landmarks_stand_for_many_rows(table, method):
    X, y = table
    rows, known = da.from_array(X, chunks=(120, 6)), Constraints.from_labels(y, n_pairs=60, random_state=0)
    with (
        config_context(landmark_rows=150),
        pytest.warns(ApproximationWarning, match=r"learns from \d+ of the 300 rows"),
    ):
        model = method.fit(rows, constraints=known)
    assert model.transform(rows).shape == (300, method.n_components)
    assert model.score(X, y) > 0.95
    given = {tuple(pair) for pair in np.concatenate([known.must_link, known.cannot_link]).tolist()}
    assert {tuple(pair) for pair in model.suspicious_pairs().pairs.tolist()} == given


def test_landmarks_are_forgotten_with_the_next_fit(table):
    X, y = table
    known = Constraints.from_labels(y, n_pairs=60, random_state=0)
    model = LinearPairLens(2, random_state=0)
    with config_context(landmark_rows=100), pytest.warns(ApproximationWarning, match="of the 300 rows"):
        model.fit(da.from_array(X, chunks=(120, 6)), constraints=known)
    expected = LinearPairLens(2, random_state=0).fit(X, constraints=known).suspicious_pairs()
    np.testing.assert_array_equal(model.fit(X, constraints=known).suspicious_pairs().pairs, expected.pairs)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_bad_value_is_named_when_the_chunk_is_computed(table, method):
    X, y = table
    model = method.fit(X, constraints=Constraints.from_labels(y, n_pairs=60, random_state=0))
    X = X.copy()
    X[190, 2] = np.nan
    with pytest.raises(ValueError, match="row 70 of a chunk, column 2"):
        model.transform(da.from_array(X, chunks=(120, 6))).compute()
