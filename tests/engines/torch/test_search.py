"""Neighbours on torch tensors are those of the NumPy pass, ties and all, whatever the precision of the screen."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pairlens.engines import config_context, near_walk, neighbors  # noqa: E402
from pairlens.engines.torch import TensorRows  # noqa: E402
from pairlens.engines.torch import rows as torch_device  # noqa: E402
from pairlens.engines.torch import search as module  # noqa: E402
from pairlens.engines.torch.search import TorchRows, torch_neighbors  # noqa: E402
from pairlens.exceptions import ArgumentError  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def table(kind: str, dtype: type) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 5))
    if kind == "far from zero":
        X += 1e4
    elif kind == "grid":
        X = rng.integers(0, 3, (700, 4)).astype(float)
    elif kind == "duplicates":
        X = np.repeat(X[:100], 7, axis=0)
    elif kind == "near duplicates":
        X[350:] = X[:350] + 1e-5 * rng.standard_normal((350, 5))
    elif kind == "outliers":
        X[:10] *= 1e3
    elif kind == "tiny":
        X *= 1e-30
    elif kind == "all equal":
        X[:] = 3.0
    return X.astype(dtype)


KINDS = ["normal", "far from zero", "grid", "duplicates", "near duplicates", "outliers", "tiny", "all equal"]


def assert_same(found, expected) -> None:
    np.testing.assert_array_equal(found.nearest.cpu().numpy(), expected.nearest)
    np.testing.assert_allclose(found.nearest_distance.cpu().numpy(), expected.nearest_distance, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_same_as_numpy(kind, dtype, device):
    X = table(kind, dtype)
    found = torch_neighbors(torch.from_numpy(X).to(device), n_nearest=5)
    assert found.nearest.device.type == device
    assert_same(found, neighbors(X, n_nearest=5))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["normal", "grid"])
def test_same_as_sorting_all_distances(kind, device):
    X = table(kind, np.float64)[:300]
    squared = ((X[:, None] - X) ** 2).sum(axis=2).round(9)
    index = np.broadcast_to(np.arange(300), squared.shape)
    found = torch_neighbors(torch.from_numpy(X).to(device), n_nearest=6)
    key = np.where(np.eye(300, dtype=bool), np.inf, squared)
    np.testing.assert_array_equal(found.nearest.cpu().numpy(), np.lexsort((index, key), axis=1)[:, :6])


@pytest.mark.parametrize("device", DEVICES)
def test_nearly_all_rows_asked_for(device):
    X = np.random.default_rng(0).standard_normal((70, 3))
    T = torch.from_numpy(X).to(device)
    for k in (1, 63, 68, 69):
        assert_same(torch_neighbors(T, n_nearest=k), neighbors(X, n_nearest=k))


@pytest.mark.parametrize("device", DEVICES)
def test_integers(device):
    X = np.random.default_rng(0).integers(0, 9, (200, 3))
    T = torch.from_numpy(X).to(device)
    assert_same(torch_neighbors(T, n_nearest=3), neighbors(X, n_nearest=3))


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_change_nothing(kind, monkeypatch):
    X = torch.from_numpy(table(kind, np.float32))
    whole = torch_neighbors(X, n_nearest=5)
    monkeypatch.setattr(torch_device, "CPU_BYTES", 100_000)
    parts = torch_neighbors(X, n_nearest=5)
    assert torch.equal(whole.nearest, parts.nearest)


def test_products_with_a_walk_in_parts_are_those_of_the_whole(monkeypatch):
    rows = TensorRows(torch.from_numpy(np.random.default_rng(0).random((300, 4))))
    walk = near_walk(rows, 5, scale_neighbor=5, accuracy=1e-9).walk
    columns = torch.from_numpy(np.random.default_rng(1).random((300, 7)))
    whole = walk @ columns
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    monkeypatch.setattr(torch_device, "CPU_BYTES", 50_000)
    assert torch.equal(walk @ columns, whole)
    assert torch.equal(walk @ columns[:, 0], whole[:, 0])


@pytest.mark.parametrize("unit", [1e-3, 1e-2, 10.0])
def test_a_poor_screen_costs_time_not_correctness(unit, monkeypatch):
    """With an error bound this large most rows have no proof, look into more groups, or are compared with all."""
    compared = []
    original = module._compare_all

    def counted(screen, name, side, rows, found):
        compared.append(len(rows))
        original(screen, name, side, rows, found)

    monkeypatch.setattr(module, "_compare_all", counted)
    monkeypatch.setattr(module, "error_unit", lambda rows, dtype: unit)
    X = np.random.default_rng(0).standard_normal((3000, 6)).astype(np.float32)
    found = torch_neighbors(torch.from_numpy(X), n_nearest=5)
    assert_same(found, neighbors(X, n_nearest=5))
    assert (sum(compared) == 3000) == (unit == 10.0)


def test_most_rows_of_plain_data_are_proved_at_once(monkeypatch):
    def forbidden(*args):
        raise AssertionError("a row was compared with all others in float64")

    monkeypatch.setattr(module, "_compare_all", forbidden)
    X = np.random.default_rng(0).standard_normal((4000, 20)).astype(np.float32)
    torch_neighbors(torch.from_numpy(X), n_nearest=5)


def test_products_keep_their_digits_whatever_torch_was_told():
    before = torch.get_float32_matmul_precision()
    X = np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32)
    try:
        torch.set_float32_matmul_precision("medium")
        assert_same(torch_neighbors(torch.from_numpy(X), n_nearest=5), neighbors(X, n_nearest=5))
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_more_neighbours_than_rows():
    with pytest.raises(ArgumentError, match="n_nearest must lie between 1 and 3, one less than the 4 rows of X; got 4"):
        torch_neighbors(torch.zeros((4, 2)), n_nearest=4)


if torch.cuda.is_available():

    @pytest.mark.parametrize("n_features", [3, 64, 300])
    def test_bounds_of_the_kernels_hold_and_are_tight(n_features):
        X = torch.randn((2000, n_features), device="cuda") + 5
        kernels, rows = torch_device.triton_kernels(X), TorchRows.of(X)
        screen = kernels.TritonEuclidScreen(rows)
        strip = screen.strip(slice(512, 1024))
        squared = screen.fine_squared(torch.arange(512, 1024, device="cuda"))
        for name, sign in (("near", 1), ("far", -1)):
            signed = torch.nn.functional.pad(sign * squared, (0, -2000 % kernels.GROUP), value=torch.inf)
            best = signed.unflatten(1, (-1, kernels.GROUP)).amin(dim=2)
            gap = best - strip.bounds(name)[:, : best.shape[1]].double()
            assert 0 <= gap.min() <= gap.max() < 1e-3

    @pytest.mark.parametrize("kind", KINDS)
    def test_without_triton(kind, monkeypatch):
        monkeypatch.setattr(torch_device, "_kernels", lambda: None)
        X = table(kind, np.float32)
        found = torch_neighbors(torch.from_numpy(X).cuda(), n_nearest=5)
        assert_same(found, neighbors(X, n_nearest=5))

    def test_tf32_finds_nearly_all():
        X = torch.randn((20_000, 64), device="cuda")
        exact = torch_neighbors(X, n_nearest=5)
        with config_context(tf32=True):
            loose = torch_neighbors(X, n_nearest=5)
        assert (exact.nearest == loose.nearest).double().mean() > 0.999


def test_leading_vectors_of_a_walk_over_parts():
    """Four parts: the eigenvalue 1 occurs three times after that of the constant vector."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((160, 4))
    X[:, 0] += 100 * (np.arange(160) % 4)
    graph = near_walk(TensorRows(torch.from_numpy(X)), 8, scale_neighbor=7, accuracy=1e-12)
    weights = graph.symmetric_weights().toarray()
    root = 1 / np.sqrt(weights.sum(axis=1))
    whole = root[:, None] * weights * root
    true = np.linalg.eigvalsh(whole)[::-1]
    values, vectors = graph.leading_vectors(7, 1e-10)
    np.testing.assert_allclose(values, true[1:8], atol=1e-9)
    assert values[2] > 1 - 1e-9 > values[3]
    np.testing.assert_allclose(whole @ vectors, vectors * values, atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(7), atol=1e-9)
    np.testing.assert_allclose(vectors.T @ (1 / root), 0, atol=1e-8)
