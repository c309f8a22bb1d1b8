"""How rows of a map repel each other: the grid against all pairs, and against the slope of the potential."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import fft

from pairlens.methods.pairmap import layout as module
from pairlens.methods.pairmap.layout import repulsion


def all_pairs(Z: np.ndarray) -> tuple[np.ndarray, float]:
    """The definition, one pair after another."""
    force, total = np.zeros_like(Z), 0.0
    for i in range(len(Z)):
        for j in range(len(Z)):
            if i != j:
                near = 1 / (1 + np.sum((Z[i] - Z[j]) ** 2))
                force[i] += near**2 * (Z[i] - Z[j])
                total += near
    return force, total


@pytest.mark.parametrize("n_components", [1, 2])
def test_few_rows_are_summed_pair_by_pair(n_components):
    Z = 3 * np.random.default_rng(0).standard_normal((30, n_components))
    force, total = repulsion(Z)
    expected, expected_total = all_pairs(Z)
    np.testing.assert_allclose(force, expected, atol=1e-12)
    assert total == pytest.approx(expected_total, rel=1e-12)


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize(("size", "off"), [(1e-4, 1e-4), (1.0, 1e-3), (6.0, 5e-3), (25.0, 2e-2)])
def test_the_grid_agrees_with_all_pairs(n_components, size, off, monkeypatch):
    Z = size * np.random.default_rng(1).standard_normal((1500, n_components)) + 100 * size
    force, total = repulsion(Z)
    monkeypatch.setattr(module, "FEWEST_ON_GRID", len(Z))
    expected, expected_total = repulsion(Z)
    assert np.linalg.norm(force - expected) <= off * np.linalg.norm(expected)
    assert total == pytest.approx(expected_total, rel=1e-2)


def test_closer_nodes_give_what_all_pairs_give(monkeypatch):
    Z = 4 * np.random.default_rng(2).standard_normal((600, 2))
    monkeypatch.setattr(module, "SPACING", {1: 0.05, 2: 0.05})
    monkeypatch.setattr(module, "FINE", 1e9)
    force, total = module._on_grid(Z, float(np.ptp(Z, axis=0).max()), 1)
    expected, expected_total = module._of_all_pairs(Z)
    np.testing.assert_allclose(force, expected, atol=2e-4 * np.abs(expected).max())
    assert total == pytest.approx(expected_total, rel=1e-6)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(48,), (48, 48)])
def test_transforms_axis_by_axis_are_those_of_the_padded_grid(shape, precision):
    grid = np.random.default_rng(6).random(shape).astype(precision)
    length = int(fft.next_fast_len(2 * shape[0] + module.RING, real=True))
    padded = (length,) * len(shape)
    kernel = module._kernel(length, len(shape), 0.3, precision)
    expected = fft.irfftn(fft.rfftn(grid, s=padded) * kernel, s=padded)[tuple(map(slice, shape))]
    found = module._convolved(grid, 0.3, 1)
    assert found.dtype == precision
    np.testing.assert_allclose(found, expected, rtol=100 * np.finfo(precision).eps)


def test_rows_in_one_place_do_not_push_each_other():
    force, total = repulsion(np.ones((700, 2)))
    np.testing.assert_allclose(force, 0, atol=1e-6)
    assert total == pytest.approx(700 * 699)


def test_rows_far_between_are_summed_pair_by_pair():
    Z = 400 * np.random.default_rng(3).standard_normal((700, 2))
    force, total = repulsion(Z)
    expected, expected_total = module._of_all_pairs(Z)
    np.testing.assert_array_equal(force, expected)
    assert total == expected_total


def test_many_rows_over_a_wide_map_stay_within_the_largest_grid():
    Z = 2000 * np.random.default_rng(4).standard_normal((5000, 2))
    force, total = repulsion(Z)
    assert np.isfinite(force).all()
    assert total > 0


def test_threads_do_not_change_the_result():
    Z = 10 * np.random.default_rng(5).standard_normal((2000, 2))
    np.testing.assert_array_equal(repulsion(Z)[0], repulsion(Z, workers=2)[0])
