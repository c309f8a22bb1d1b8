"""Every kind of model can be saved, and gives the same numbers when it is loaded."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import pairlens
from pairlens.io._codec import HOMES, class_of, tag_of
from pairlens.io.models import FORMAT_VERSION, load, save
from tests.io.every_model import METHODS, MODELS, fitted, new_rows, outputs


def made(name):
    if "xgboost" in name:
        pytest.importorskip("xgboost")
    if name == "PairMap":
        pytest.importorskip("openTSNE")
    return fitted(name)


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


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_gives_the_same_numbers(name, tmp_path):
    model, path = made(name), tmp_path / "model.pairlens"
    save(model, path)
    expected, found = outputs(model, new_rows()), outputs(load(path), new_rows())
    assert expected.keys() == found.keys() != set()
    for method, values in expected.items():
        np.testing.assert_array_equal(found[method], values)
    manifest = manifest_of(path)
    assert manifest["format_version"] == FORMAT_VERSION
    # A tag or a public name, so that a class can move without breaking files.
    named = set(names_in(manifest["model"]))
    assert {one for one in named if one.startswith("pairlens.")} <= {f"pairlens.{one}" for one in pairlens.__all__}
    assert {one for one in named if "." not in one} <= set(HOMES)


@pytest.mark.parametrize("name", ["LinearPairLens", "PairLens"])
def test_what_the_pairs_said_comes_back(name, tmp_path):
    save(fitted(name), tmp_path / "model.pairlens")
    found = load(tmp_path / "model.pairlens").suspicious_pairs()
    assert len(found.pairs) == len(found.suspicion) > 0


def test_every_tag_has_a_class_and_every_class_its_tag():
    for tag in [*HOMES, *(f"pairlens.{name}" for name in METHODS)]:
        found, kind = class_of(tag)
        assert found == tag
        assert tag_of(kind) == tag
