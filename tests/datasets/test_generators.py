"""The toy of the SODRPaC paper: golden values, what its pairs join, and its errors."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.datasets import make_subclass_blobs
from pairlens.exceptions import ArgumentError


def _blobs(X: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(4), len(X) // 4)


def test_golden_sum():
    X, y, pairs = make_subclass_blobs(random_state=0)
    assert X.sum() == pytest.approx(577.975624, abs=5e-7)
    assert X.shape == (200, 2)
    assert np.bincount(y).tolist() == [100, 100]
    assert (pairs.n_must_link, pairs.n_cannot_link, len(pairs)) == (40, 40, 200)


@pytest.mark.parametrize(("kind", "inside"), [("inter", {False}), ("intra", {True}), ("mixed", {False, True})])
def test_kind_says_which_blobs_must_links_join(kind, inside):
    X, y, pairs = make_subclass_blobs(kind=kind, random_state=3)
    blob = _blobs(X)
    assert {bool(blob[i] == blob[j]) for i, j in pairs.must_link} == inside
    assert all(y[i] == y[j] for i, j in pairs.must_link)
    assert all(y[i] != y[j] for i, j in pairs.cannot_link)


def test_blobs_take_turns_along_the_first_feature():
    X, y, _ = make_subclass_blobs(500, random_state=1)
    centres = [X[_blobs(X) == b].mean(axis=0) for b in range(4)]
    np.testing.assert_allclose(centres, [[0, 0], [4, 0], [2, 0], [6, 0]], atol=0.25)
    np.testing.assert_allclose(X[_blobs(X) == 0].std(axis=0), [0.35, 1.5], rtol=0.1)
    assert y[np.argsort(X[:, 0])][[0, 700, 1300, -1]].tolist() == [0, 1, 0, 1]


def test_every_kind_of_random_state():
    for state in (7, np.random.default_rng(7)):
        np.testing.assert_array_equal(
            make_subclass_blobs(random_state=state)[0], make_subclass_blobs(random_state=7)[0]
        )
    first, second = (make_subclass_blobs(random_state=np.random.RandomState(7)) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    assert first[2] == second[2]
    assert not np.array_equal(make_subclass_blobs()[0], make_subclass_blobs()[0])


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"kind": "both"}, ("kind", "both")),
        ({"n_per_blob": 0}, ("n_per_blob", 0)),
        ({"n_per_blob": 2, "n_must_link": 9}, ("n_must_link", 9)),
        ({"n_cannot_link": -1}, ("n_cannot_link", -1)),
    ],
)
def test_errors_name_the_argument(wrong, expected):
    with pytest.raises(ArgumentError) as caught:
        make_subclass_blobs(**wrong)
    assert (caught.value.argument, caught.value.value) == expected
