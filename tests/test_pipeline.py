"""The one builder of pipelines, and the one default."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from pairlens import WSDR, Constraints, LinearPairLens, PairLens, PairMap, view_pipeline
from pairlens.exceptions import InputError
from pairlens.pipeline import default_view, prepare

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
NUMBERS = RNG.standard_normal((60, 4)) * [1.0, 5.0, 2.0, 9.0]
FRAME = pandas.DataFrame(NUMBERS, columns=list("abcd"))
MIXED = FRAME.assign(word=[["red", "green", "blue"][i % 3] for i in range(60)])
COMPONENTS = PCA().fit_transform(RNG.standard_normal((60, 10)) * np.geomspace(10, 0.1, 10))
GAPS = np.where(RNG.random((60, 4)) < 0.1, np.nan, NUMBERS)
PAIRS = Constraints([(0, 1), (2, 3), (4, 5)], [(0, 30), (1, 31), (2, 32)], n_samples=60)


@pytest.mark.parametrize(
    ("rows", "steps", "standardize"),
    [
        (NUMBERS, ["scale", "method"], True),
        (FRAME, ["columns", "scale", "method"], True),
        (MIXED, ["columns", "method"], False),
        (COMPONENTS, ["method"], False),
        (pandas.DataFrame(COMPONENTS).add_prefix("pc"), ["columns", "method"], False),
        (GAPS, ["columns", "method"], False),
        ({"a": [1.0, 2.0, 4.0], "b": ["x", "y", "x"]}, ["columns", "method"], False),
    ],
    ids=["array", "numbers", "mixed", "components", "table of components", "gaps", "mapping"],
)
def test_rows_decide_about_the_steps(rows, steps, standardize):
    pipeline = view_pipeline(rows, random_state=0)
    assert list(pipeline.named_steps) == steps
    assert pipeline["method"].standardize is standardize


@pytest.mark.parametrize(
    ("scale", "step"), [("standard", "StandardScaler"), ("minmax", "MinMaxScaler"), ("none", None)]
)
@pytest.mark.parametrize("rows", [NUMBERS, MIXED], ids=["array", "mixed"])
def test_scale_can_be_chosen(scale, step, rows):
    found = view_pipeline(rows, scale=scale).named_steps.get("scale")
    assert (None if found is None else type(found).__name__) == step
    with pytest.raises(InputError) as caught:
        view_pipeline(rows, scale="log")
    assert caught.value.argument == "scale"


def test_one_default():
    assert type(view_pipeline(NUMBERS)["method"]) is type(default_view()) is PairMap
    assert type(view_pipeline(NUMBERS, n_components=3)["method"]) is PairLens
    assert type(default_view("auto")) is PairLens
    assert type(default_view(preferences=True)) is WSDR


def test_the_steps_work_together():
    for rows in (NUMBERS, FRAME, MIXED, GAPS):
        model = view_pipeline(rows, LinearPairLens(random_state=0)).fit(rows, method__constraints=PAIRS)
        assert np.isfinite(model.transform(rows)).all()


def test_numbers_of_a_table_are_those_of_an_array():
    models = [view_pipeline(rows, LinearPairLens(random_state=0)) for rows in (FRAME, NUMBERS)]
    one, two = (model.fit(X, method__constraints=PAIRS).transform(X) for model, X in zip(models, (FRAME, NUMBERS)))
    np.testing.assert_allclose(one, two, atol=1e-10)


def test_roles_and_weights_reach_the_encoder():
    pipeline = view_pipeline(FRAME, roles={"a": "dropped"}, weights={"b": 4.0}).fit(FRAME, method__constraints=PAIRS)
    assert pipeline["columns"].get_feature_names_out().tolist() == ["b", "c", "d"]
    assert pipeline[:-1].transform(FRAME).var(axis=0) == pytest.approx([4, 1, 1])


def test_what_is_fitted_behind_the_encoder_is_fitted_in_the_pipeline():
    prepared = prepare(MIXED)
    rows, names = prepared.encoded(MIXED)
    assert rows.shape == (60, len(names))
    pipeline = prepared.pipeline(LinearPairLens(random_state=0))
    prepared.view(pipeline).fit(rows, method__constraints=PAIRS)
    np.testing.assert_array_equal(pipeline.transform(MIXED), prepared.view(pipeline).transform(rows))


def test_sparse_rows_stay_sparse():
    rows = sparse.csr_matrix(np.where(np.abs(NUMBERS) > 1, NUMBERS, 0))
    assert list(view_pipeline(rows, LinearPairLens(), scale="none").named_steps) == ["method"]
