"""Estimators that need their rows in memory collect a dask array up to a bound, and say so beyond it."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest
from sklearn.base import is_clusterer

from pairlens import PairClusters, PairLens, PairMap
from pairlens.engines import collected, config_context
from pairlens.preference._base import PreferenceEstimator
from pairlens.supervision import Constraints, Preferences
from tests.estimators import all_estimators, linear_methods
from tests.methods.test_promises import make

da = pytest.importorskip("dask.array", reason="dask arrays need pairlens[dask]")

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")
LANDMARKS = (PairClusters, PairLens, PairMap)
"""They learn from landmarks of a large dask array, and transform it by blocks."""
IN_MEMORY = [cls for cls in all_estimators() if cls not in linear_methods() and cls not in LANDMARKS]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    return rng.standard_normal((90, 5)) + 3 * np.eye(3, 5)[y], y


def supervision(cls, y):
    if issubclass(cls, PreferenceEstimator):
        return {"preferences": Preferences.from_scores(y, n_pairs=150, random_state=0)}
    if "constraints" not in signature(cls.fit).parameters:
        return {"y": y}
    return {"constraints": Constraints.from_labels(y, n_pairs=60, random_state=0)}


@pytest.mark.parametrize("cls", IN_MEMORY)
def test_collected_up_to_a_bound(cls, table):
    X, y = table
    rows, known = da.from_array(X, chunks=(40, 3)), supervision(cls, y)
    reference, model = make(cls).fit(X, **known), make(cls).fit(rows, **known)
    result = "predict" if is_clusterer(model) or not hasattr(model, "transform") else "transform"
    result = result if hasattr(model, result) else "decision_function"
    expected = getattr(reference, result)(X)
    np.testing.assert_allclose(np.asarray(getattr(model, result)(rows)), expected, atol=1e-10)
    with config_context(gather_bytes=1000), pytest.raises(ValueError, match=rf"{cls.__name__} needs.*X\.compute\(\)"):
        make(cls).fit(rows, **known)


def test_only_dask_is_touched(table):
    X, _ = table
    assert collected(X, "it") is X
    text = ["a", "b"]
    assert collected(text, "it") is text


def test_unknown_sizes_are_counted_and_names_kept(table):
    X, _ = table
    rows = da.from_array(X, chunks=(40, 5))
    unknown = rows[rows[:, 0] > -100]
    with config_context(gather_bytes=1000), pytest.raises(ValueError, match="it needs its rows in memory"):
        collected(unknown, "it")
    assert np.isnan(unknown.shape[0])
    np.testing.assert_array_equal(collected(unknown, "it"), X)
    pd = pytest.importorskip("pandas", reason="data frames need pairlens[io]")
    dd = pytest.importorskip("dask.dataframe", reason="dask data frames need dask[dataframe]")
    frame = pd.DataFrame(X, columns=list("abcde"))
    pd.testing.assert_frame_equal(collected(dd.from_pandas(frame, npartitions=2), "it"), frame)
    with config_context(gather_bytes=1000), pytest.raises(ValueError, match="it needs its rows in memory"):
        collected(dd.from_pandas(frame, npartitions=2), "it")
