"""The pass over two distances on torch tensors returns what the NumPy pass returns, groups and ties included."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pairlens import Constraints  # noqa: E402
from pairlens.engines import projected as module  # noqa: E402
from pairlens.engines import projected_rows, rows_in_memory  # noqa: E402
from pairlens.engines.projected import RowGroups, first_identical  # noqa: E402
from pairlens.engines.torch import TensorRows  # noqa: E402
from pairlens.engines.torch import rows as torch_device  # noqa: E402
from pairlens.exceptions import ArgumentError  # noqa: E402
from pairlens.kernels import delta_to_gamma, must_link_null_space  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
MUST = [(0, 100), (100, 250), (3, 4), (50, 60), (60, 70), (70, 80), (80, 90), (90, 95), (95, 99)]


def both(X, must, delta, device="cpu"):
    """The rows for both passes, with the same F."""
    chunklets, gamma = Constraints(must, n_samples=len(X)).chunklets(), delta_to_gamma(delta)
    F = must_link_null_space(X, chunklets, gamma=gamma).coordinates(X)
    tensors = (TensorRows(torch.from_numpy(part).to(device)) for part in (X, F))
    return projected_rows(X, F, gamma, chunklets), projected_rows(*tensors, gamma, chunklets)


def assert_same(found, expected) -> None:
    np.testing.assert_array_equal(found.farthest, expected.farthest)
    np.testing.assert_array_equal(found.nearest, expected.nearest)
    assert found.largest_projected == pytest.approx(expected.largest_projected, rel=1e-9)
    assert found.largest_input == pytest.approx(expected.largest_input, rel=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("delta", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("kind", ["normal", "outliers", "near duplicates", "duplicates", "grid", "far from zero"])
def test_same_as_numpy(kind, delta, dtype, device):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    if kind == "outliers":
        X[:20] *= 50
    elif kind == "near duplicates":
        X[100:200] = X[:100] + 1e-4 * rng.standard_normal((100, 4))
    elif kind == "duplicates":
        X = np.repeat(X[:60], 5, axis=0)
    elif kind == "grid":
        X = rng.integers(0, 4, (300, 3)).astype(float)
    elif kind == "far from zero":
        X += 1e3
    arrays, tensors = both(X.astype(dtype), MUST, delta, device)
    assert_same(tensors.neighbors(5), arrays.neighbors(5))


@pytest.mark.parametrize("device", DEVICES)
def test_many_rows_in_small_blocks(device, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 12)).astype(np.float32)
    arrays, tensors = both(X, rng.permutation(3000)[:200].reshape(-1, 2), 2.0, device)
    expected = arrays.neighbors(5)
    assert_same(tensors.neighbors(5), expected)
    monkeypatch.setattr(torch_device, "working_bytes", lambda _: 3_000_000)
    assert_same(tensors.neighbors(5), expected)


@pytest.mark.parametrize("k", [1, 3, 38, 39])
def test_k_up_to_all_other_rows(k):
    X = np.random.default_rng(0).standard_normal((40, 3))
    arrays, tensors = both(X, [(0, 1), (1, 2), (5, 6)], 2.0)
    assert_same(tensors.neighbors(k), arrays.neighbors(k))


def test_bounds_of_k():
    _, rows = both(np.arange(5.0)[:, None], [(0, 1)], 1.0)
    for k in (0, 5):
        with pytest.raises(ArgumentError, match="must lie between 1 and 4") as caught:
            rows.neighbors(k)
        assert (caught.value.argument, caught.value.value) == ("k", k)


def test_everything_in_one_group():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    found = both(X, [(0, 1), (1, 2), (2, 3)], 1.0)[1].neighbors(2)
    np.testing.assert_array_equal(found.nearest, [[1, 2], [0, 2], [1, 0], [2, 1]])
    assert found.largest_projected == 0


@pytest.mark.parametrize("seed", range(4))
def test_groups_larger_than_k_and_portions(seed, monkeypatch):
    monkeypatch.setattr(module, "PORTION", 17)
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (120, 2)).astype(float) if seed % 2 else rng.standard_normal((120, 2))
    first = rng.integers(120, size=60)
    linked = np.column_stack([first, (first + rng.integers(1, 120, size=60)) % 120])
    arrays, tensors = both(X, linked, 1.0)
    assert_same(tensors.neighbors(4), arrays.neighbors(4))


@pytest.mark.parametrize("device", DEVICES)
def test_coordinates_of_the_null_space(device):
    X = np.random.default_rng(0).standard_normal((200, 4)) + 100
    space = must_link_null_space(X, Constraints([(0, 1), (2, 3), (3, 4)], n_samples=200).chunklets(), gamma=0.3)
    F = rows_in_memory(space.coordinates(TensorRows(torch.from_numpy(X).to(device))))
    np.testing.assert_allclose(F, space.coordinates(X), atol=1e-12)


def test_no_must_links():
    X = np.random.default_rng(0).standard_normal((90, 4))
    arrays, tensors = both(X, np.empty((0, 2), dtype=int), 1.0)
    assert tensors.F.shape == (90, 0)
    assert_same(tensors.neighbors(3), arrays.neighbors(3))


class TestGroups:
    def test_identical_rows(self):
        X = np.array([[1.0, 2], [0, 0], [1, 2], [-0.0, 0], [1, 2.0000001]])
        np.testing.assert_array_equal(first_identical(TensorRows(torch.from_numpy(X))), [0, 1, 0, 1, 4])
        X = np.random.default_rng(0).integers(0, 3, (500, 4)).astype(np.float32)
        np.testing.assert_array_equal(first_identical(TensorRows(torch.from_numpy(X))), first_identical(X))

    @pytest.mark.parametrize("seed", range(5))
    def test_same_as_numpy(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 5, (60, 2)).astype(float)
        codes = np.where(rng.random(60) < 0.3, rng.integers(0, 6, 60), -1)
        ours, theirs = RowGroups.of(TensorRows(torch.from_numpy(X)), codes), RowGroups.of(X, codes)
        for name in ("group", "first", "members", "start", "sizes", "representative"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_distances_of_pairs():
    X = np.random.default_rng(0).standard_normal((80, 3))
    arrays, tensors = both(X, [(0, 1), (1, 2), (5, 6)], 1.3)
    rows, cols = np.divmod(np.arange(6400), 80)
    ours = tensors.squared_distances(rows, cols)
    np.testing.assert_allclose(ours, arrays.squared_distances(rows, cols), atol=1e-14)
