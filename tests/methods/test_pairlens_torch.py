"""LinearPairLens and PairLens on tensors: what NumPy gives, on the device."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens import Constraints, LinearPairLens, PairLens
from pairlens.exceptions import ArgumentError
from pairlens.graphs.nearest import near_graph

torch = pytest.importorskip("torch")
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 600)
    X = 3 * rng.standard_normal((4, 12))[y] + rng.standard_normal((600, 12))
    X[:, 5] = 1.0
    return X, Constraints.from_labels(y, n_pairs=150, random_state=0).flip(0.1, random_state=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "lens", [LinearPairLens(3, random_state=0), PairLens(2, random_state=0), PairLens(4, random_state=0)], ids=str
)
def test_a_tensor_gives_what_an_array_gives(rows, lens, dtype, device):
    X, pairs = rows
    X = X.astype(dtype)
    tensor = torch.from_numpy(X).to(device)
    expected = lens.fit(X, constraints=pairs)
    view, auc, suspects = expected.transform(X), expected.auc_, expected.suspicious_pairs().pairs
    found = lens.fit(tensor, constraints=pairs)
    places = found.transform(tensor)
    assert places.device.type == device
    assert places.dtype == tensor.dtype
    scale = np.abs(view).max()
    np.testing.assert_allclose(places.cpu().numpy(), view, atol=(1e-9 if dtype == "float64" else 1e-3) * scale)
    assert found.auc_ == pytest.approx(auc, abs=1e-6 if dtype == "float64" else 1e-2)
    if dtype == "float64":
        np.testing.assert_array_equal(found.suspicious_pairs().pairs, suspects)
        np.testing.assert_allclose(found.transform(X), view, atol=1e-9 * scale)


@pytest.mark.parametrize("device", DEVICES)
def test_the_walk_on_a_device_is_that_in_memory(rows, device):
    from pairlens.engines.torch import TensorRows

    X = np.concatenate([rows[0], rows[0][:20], np.repeat(rows[0][:1], 9, axis=0)])
    here, there = near_graph(X, 10), near_graph(TensorRows(torch.from_numpy(X).to(device)), 10)
    for ours, theirs in ((here.walk, there.walk), (here.back, there.back)):
        dense = theirs @ torch.eye(len(X), dtype=torch.float64, device=device)
        np.testing.assert_allclose(dense.cpu().numpy(), ours.toarray(), atol=1e-12)
    start = np.arange(float(len(X)))
    spread = there.spread(TensorRows(torch.from_numpy(start).to(device)), 0.5)
    np.testing.assert_allclose(np.asarray(spread), here.spread(start, 0.5), rtol=1e-9)
    np.testing.assert_allclose(there.spread_back(start, 0.5), here.spread_back(start, 0.5), rtol=1e-9)


def test_an_index_is_for_arrays(rows):
    with pytest.raises(ArgumentError, match="not in memory") as caught:
        LinearPairLens(neighbors="approx").fit(torch.from_numpy(rows[0]), constraints=rows[1])
    assert (caught.value.argument, caught.value.value) == ("neighbors", "approx")
