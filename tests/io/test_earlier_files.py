"""Model files that earlier versions wrote load, and give the numbers that they gave then."""

from __future__ import annotations

import json
import warnings
import zipfile

import numpy as np
import pytest

import pairlens
from pairlens.io import _registry
from pairlens.io._registry import EARLIER, HOMES, class_of, tag_of
from pairlens.io.models import FORMAT_VERSION, ModelFileError, load, save
from tests.io.fixtures.make import EXPECTED, FOLDER, METHODS, MODELS, new_rows, outputs

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


def manifest_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("manifest.json"))


def names_in(value):
    """Every name of a class in a manifest."""
    if isinstance(value, dict) and "object" in value:
        yield value["object"][0]
        yield from names_in(list(value["object"][1].values()))
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from names_in(part)


def test_no_file_names_a_module_of_ours(tmp_path):
    """A tag or a public name, so that a class can move without breaking files."""
    public = {f"pairlens.{name}" for name in pairlens.__all__}
    named = set()
    for path in FILES:
        save(loaded(path), tmp_path / path.name)
        assert manifest_of(tmp_path / path.name)["format_version"] == FORMAT_VERSION
        named |= set(names_in(manifest_of(tmp_path / path.name)["model"]))
    assert {name for name in named if name.startswith("pairlens.")} <= public
    assert {name for name in named if "." not in name} <= set(HOMES)
    assert {"diffusion", "kernel-features", "held-out-pairs", "second-stage", "null-space", "pair-table"} <= named


def test_every_tag_has_a_class_and_every_class_its_tag():
    for tag in [*HOMES, *EARLIER.values(), *(f"pairlens.{name}" for name in METHODS)]:
        found, kind = class_of(tag)
        assert found == tag
        assert tag_of(kind) == tag


def test_an_attribute_that_was_renamed_and_a_parameter_that_was_added(monkeypatch):
    path = FOLDER / "BWDR.pairlens"
    monkeypatch.setitem(_registry.RENAMED, "pairlens.BWDR", {"components_": "axes_", "shrinkage": "was_shrinkage"})
    with pytest.raises(ModelFileError, match=r"pairlens\.BWDR lacks 'shrinkage'"):
        load(path)
    monkeypatch.setitem(_registry.ADDED, "pairlens.BWDR", ("shrinkage",))
    model = load(path)
    assert model.shrinkage == pairlens.BWDR().shrinkage
    assert model.axes_.shape == (2, 4)
