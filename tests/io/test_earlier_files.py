"""Model files that earlier versions wrote load, and give the numbers that they gave then."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pairlens.io.models import load, save
from tests.io.fixtures.make import EXPECTED, FOLDER, MODELS, new_rows, outputs

FILES = sorted(FOLDER.glob("*.pairlens"))


def loaded(path):
    if "xgboost" in path.name:
        pytest.importorskip("xgboost")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*was written with scikit-learn", UserWarning)
        return load(path)


def test_every_model_of_the_list_has_its_file():
    assert {path.stem for path in FILES} == set(MODELS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_earlier_files_give_the_same_numbers(path, tmp_path):
    model = loaded(path)
    with np.load(EXPECTED) as stored:
        expected = {key.partition("/")[2]: stored[key] for key in stored.files if key.startswith(f"{path.stem}/")}
    assert expected
    again = tmp_path / "again.pairlens"
    save(model, again)
    for one in (model, load(again)):
        found = outputs(one, new_rows())
        assert found.keys() == expected.keys()
        for method, values in expected.items():
            np.testing.assert_allclose(found[method], values, rtol=1e-10, atol=1e-10 * np.abs(values).max())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_parameters_of_earlier_files_can_be_fitted_again(path):
    model = loaded(path)
    assert type(model)(**model.get_params(deep=False)).get_params(deep=False).keys() == model.get_params(False).keys()


def test_what_the_pairs_said_comes_back():
    for name in ("LinearPairLens", "PairLens-diffusion", "PairLens-kernel-bwdr"):
        found = loaded(FOLDER / f"{name}.pairlens").suspicious_pairs()
        assert len(found.pairs) == len(found.suspicion) > 0
