"""The Palmer penguins: the whole table as it is in the source, as arrays and as a frame."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from pairlens import Constraints, TableEncoder
from pairlens.datasets import load_penguins


def counts(values):
    return {str(value): int(number) for value, number in zip(*np.unique(values.astype(str), return_counts=True))}


def test_the_table_is_complete():
    penguins = load_penguins()
    assert penguins.data.shape == (344, 4)
    assert penguins.target.dtype == np.int64
    assert np.bincount(penguins.target).tolist() == [152, 68, 124]
    np.testing.assert_array_equal(np.array(penguins.target_names)[penguins.target], penguins.species)
    assert counts(penguins.island) == {"Biscoe": 168, "Dream": 124, "Torgersen": 52}
    assert counts(penguins.sex) == {"None": 11, "female": 165, "male": 168}
    assert counts(penguins.year) == {"2007": 110, "2008": 114, "2009": 120}
    assert np.isnan(penguins.data).sum(axis=0).tolist() == [2, 2, 2, 2]
    np.testing.assert_allclose(
        np.nanmean(penguins.data, axis=0), [43.92193, 17.15117, 200.91520, 4201.75439], atol=5e-6
    )
    assert penguins.frame is None
    assert Path(penguins.filename).is_file()
    assert "CC0" in penguins.DESCR


def test_a_missing_sex_makes_no_pair():
    penguins = load_penguins()
    rows = np.flatnonzero([sex is None for sex in penguins.sex])
    pairs = Constraints.from_labels(penguins.sex)
    assert not np.isin(rows, pairs.must_link).any()
    assert not np.isin(rows, pairs.cannot_link).any()


def test_X_and_y():
    X, y = load_penguins(return_X_y=True)
    penguins = load_penguins()
    np.testing.assert_array_equal(X, penguins.data)
    np.testing.assert_array_equal(y, penguins.target)


def test_as_frame():
    pandas = pytest.importorskip("pandas")
    penguins = load_penguins(as_frame=True)
    expected = pandas.read_csv(penguins.filename)
    assert list(penguins.frame) == list(expected)
    for name in expected:
        missing = expected[name].isna()
        assert (penguins.frame[name].isna() == missing).all()
        assert (penguins.frame[name][~missing] == expected[name][~missing]).all()
    assert list(penguins.data) == penguins.feature_names
    assert penguins.sex.equals(penguins.frame["sex"])
    X, y = load_penguins(as_frame=True, return_X_y=True)
    assert X.equals(penguins.data)
    assert y.equals(penguins.target)
    assert TableEncoder().fit_transform(penguins.frame.drop(columns="species")).shape[0] == 344


def test_the_rows_are_those_of_the_league_of_notions():
    given, data = os.environ.get("PAIRLENS_NOTIONS"), os.environ.get("PAIRLENS_DATA")
    folder = given or (data and Path(data).absolute().parent / "notions")
    if not folder or not (path := Path(folder) / "penguins.npz").is_file():
        pytest.skip("set PAIRLENS_NOTIONS to the folder of the sets with several notions to run this test")
    penguins = load_penguins()
    known = np.flatnonzero([sex is not None for sex in penguins.sex])
    with np.load(path) as stored:
        np.testing.assert_array_equal(penguins.data[known], stored["X"])
        np.testing.assert_array_equal(penguins.target[known], stored["species"])
        np.testing.assert_array_equal(np.unique(penguins.sex[known], return_inverse=True)[1], stored["sex"])
