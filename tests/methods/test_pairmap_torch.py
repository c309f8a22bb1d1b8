"""PairMap on tensors: the parts are those in memory, and the map is as good."""

from __future__ import annotations

import contextlib
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from pairlens import Constraints, PairMap, load, save
from pairlens.judging import pair_auc
from pairlens.methods.pairmap import attraction, layout
from tests.methods.cases import FAST

torch = pytest.importorskip("torch")
pytest.importorskip("openTSNE", reason="pip install 'pairlens[map]'")
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
pytestmark = pytest.mark.parametrize("device", DEVICES)


def module():
    from pairlens.methods.pairmap import device as found

    return found


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1200], y[:1200], Constraints.from_labels(y[:1200], n_pairs=200, random_state=0)


@pytest.fixture(scope="module")
def metric(digits):
    X = digits[0].astype(np.float32)
    return (X - X.mean(axis=0)) / X.std()


def dense(graph, n):
    start, column = graph.start.cpu().numpy(), graph.column.cpu().numpy()
    table = np.zeros((n, n))
    table[np.repeat(np.arange(n), np.diff(start)), column] = graph.weight.cpu().numpy()
    return table


def test_affinities_are_those_in_memory(metric, device):
    n = len(metric)
    pairs = attraction.random_partners(n, np.random.default_rng(0))
    # Neighbours are partners too, so that places coincide.
    pairs = np.unique(np.concatenate([pairs, np.array([(0, 1), (2, 3)])]), axis=0)
    together = np.random.default_rng(1).random(len(pairs))
    far = attraction.long_range(pairs, together, 0.9, n)
    expected = attraction.joined(attraction.tsne_affinities(metric.astype(np.float64), 30.0), far)
    pull = np.maximum(0, 2 * together - 1)
    kept = pull > 0
    given = [torch.from_numpy(part).to(device) for part in (*pairs[kept].T.copy(), pull[kept] / pull.sum())]
    found = module().affinities(torch.from_numpy(metric).to(device), 30.0, tuple(given), far.strength)
    np.testing.assert_allclose(dense(found, n), expected.toarray(), rtol=0, atol=1e-4 * expected.max())
    assert float(found.weight.double().sum()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("size", [1e-3, 5.0, 60.0, 900.0])
def test_repulsion_is_that_in_memory(size, n_components, device):
    places = size * np.random.default_rng(0).random((3000, n_components))
    forces, total = layout.repulsion(places)
    tensor = torch.from_numpy(places).to(device)
    found, Z = module().Repulsion()(tensor, module().Grid.of(tensor))
    assert float(Z) == pytest.approx(total, rel=1e-5)
    np.testing.assert_allclose(found.cpu().numpy(), forces, rtol=0, atol=1e-4 * np.abs(forces).max())


@pytest.mark.parametrize("n_components", [1, 2])
def test_attraction_is_the_sum_over_entries(metric, n_components, device):
    n = len(metric)
    graph = module().affinities(torch.from_numpy(metric).to(device), 30.0, None, 0.0)
    places = np.random.default_rng(0).standard_normal((n, n_components))
    found = graph.pull(torch.from_numpy(places).to(device)).cpu().numpy()
    P, apart = dense(graph, n), places[:, None, :] - places
    force = P / (1 + np.einsum("ijk,ijk->ij", apart, apart))
    np.testing.assert_allclose(found, np.einsum("ij,ijk->ik", force, apart), rtol=0, atol=1e-5 * np.abs(found).max())


def divergence(P, places):
    """KL divergence of affinities and a map, of all pairs."""
    apart = places[:, None, :] - places
    near = 1 / (1 + np.einsum("ijk,ijk->ij", apart, apart))
    np.fill_diagonal(near, 0)
    row, column = P.nonzero()
    p = P[row, column]
    return float(p @ np.log(p / (near[row, column] / near.sum())))


def test_layout_is_as_good_as_that_in_memory(metric, device):
    """The same affinities from the same start: the same divergence, and neighbours that stay neighbours."""
    V = metric.astype(np.float64)
    affinities = attraction.tsne_affinities(V, 30.0)
    start = layout.principal_start(V, 2, np.random.default_rng(0))
    phases = layout.phases_of(layout.EARLY_ITER, layout.MAX_ITER)
    expected = layout.lay_out(affinities, start, phases, n_jobs=1)
    graph = module().affinities(torch.from_numpy(metric).to(device), 30.0, None, 0.0)
    found = module().lay_out(graph, torch.from_numpy(start).to(device), phases).cpu().numpy()
    P = affinities.toarray()
    assert divergence(P, found) == pytest.approx(divergence(P, expected), rel=0.03)


def test_calls_are_recorded_at_their_second_run_and_replayed_from_then_on(monkeypatch, device):
    """On a GPU nothing runs while it is recorded; here a stand-in for its graphs notes what it is asked."""
    log = []

    class Graph:
        def capture_begin(self, pool, capture_error_mode):
            assert capture_error_mode == "thread_local"
            log.append(pool or "begin")

        def capture_end(self):
            log.append("end")

        def pool(self):
            return "pool"

        def replay(self):
            log.append("replay")

    stream = type("Stream", (), {"__init__": lambda self, *_: None, "wait_stream": lambda self, other: None})
    cuda = module().torch.cuda
    for name, value in {
        "CUDAGraph": Graph,
        "Stream": stream,
        "current_stream": stream,
        "current_device": lambda: device,
        "stream": lambda _: contextlib.nullcontext(),
        "empty_cache": lambda: log.append("emptied"),
    }.items():
        monkeypatch.setattr(cuda, name, value)
    module()._recording_stream.cache_clear()
    run = module().Replay()
    for grid in "aaabbbb":
        run(log.append, grid)
    module()._recording_stream.cache_clear()
    first, second = ["a", "emptied", "begin", "a", "end", "replay"], ["b", "pool", "b", "end", "replay"]
    assert log == [*first, "replay", *second, "replay", "replay"]


def nearest_of_group(Z, y):
    near = NearestNeighbors(n_neighbors=2).fit(Z).kneighbors(Z, return_distance=False)[:, 1]
    return float(np.mean(y[near] == y))


@pytest.mark.parametrize("n_landmarks", [10_000, 400])
def test_the_map_is_as_good_as_that_in_memory(digits, n_landmarks, device):
    X, y, pairs = digits
    fresh = Constraints.from_labels(y, n_pairs=3000, random_state=1)
    tensor = torch.from_numpy(X).to(device)
    gained = []
    # The partners of the long-range term are other ones: 1-NN of two such maps differs by about .01.
    for seed in (0, 1):
        chosen = {"random_state": seed, "n_landmarks": n_landmarks, "max_iter": 200}
        here, there = (PairMap(**chosen).fit(rows, constraints=pairs) for rows in (X, tensor))
        maps = there.embedding_.cpu().numpy(), here.embedding_
        (near, auc), (near_here, auc_here) = ((nearest_of_group(Z, y), pair_auc(Z, fresh)) for Z in maps)
        gained.append((near - near_here, auc - auc_here))
    assert (np.mean(gained, axis=0) > -0.02).all()
    assert there.auc_ == pytest.approx(here.auc_, abs=0.02)
    assert there.long_range_ == pytest.approx(here.long_range_, abs=0.1)
    for name, space in here.space_weights_.items():
        assert there.space_weights_[name]["weight"] == pytest.approx(space["weight"], abs=0.05)


@pytest.fixture(scope="module", params=DEVICES)
def fitted(digits, request):
    X, _, pairs = digits
    tensor = torch.from_numpy(X[:1000]).to(request.param).float()
    return PairMap(**FAST, n_landmarks=500).fit(tensor, constraints=pairs[np.arange(1000)]), tensor


def test_results_stay_on_the_device(fitted, digits, device):
    model, tensor = fitted
    new = torch.from_numpy(digits[0][1000:]).to(tensor.device).float()
    for found in (model.embedding_, model.transform(new), model.pair_proba(new[:5], new[5:10])):
        assert found.device == tensor.device
        assert found.dtype == torch.float32
    torch.testing.assert_close(model.transform(tensor), model.embedding_)
    together = model.pair_proba(new[:5].cpu().numpy(), new[5:10].cpu().numpy())
    np.testing.assert_allclose(model.pair_proba(new[:5], new[5:10]).cpu().numpy(), together, atol=1e-3)


def test_new_rows_are_placed_as_in_memory(fitted, digits, device):
    model, tensor = fitted
    new = torch.from_numpy(digits[0][1000:]).to(tensor.device).float()
    apart = np.linalg.norm(model.transform(new).cpu().numpy() - model.transform(new.cpu().numpy()), axis=1)
    # A row between two islands may land on either, by its last digits.
    assert np.mean(apart < 1e-2 * model.embedding_.std().item()) > 0.98


def test_maps_of_one_seed_are_equal(fitted, digits, device):
    model, tensor = fitted
    again = PairMap(**FAST, n_landmarks=500).fit(tensor, constraints=digits[2][np.arange(1000)])
    assert torch.equal(again.embedding_, model.embedding_)
    assert again.auc_ == model.auc_


def test_files_and_pickles_hold_arrays(fitted, digits, tmp_path, device):
    model, tensor = fitted
    X = tensor.cpu().numpy()
    save(model, tmp_path / "map.pairlens")
    for read in (pickle.loads(pickle.dumps(model)), load(tmp_path / "map.pairlens")):
        assert isinstance(read.embedding_, np.ndarray)
        np.testing.assert_allclose(read.transform(X), model.embedding_.cpu().numpy(), atol=1e-4)
        np.testing.assert_allclose(read.transform(tensor).cpu().numpy(), model.embedding_.cpu().numpy(), atol=1e-4)
    assert isinstance(model.embedding_, torch.Tensor)


def test_a_former_map_is_a_start(fitted, digits, device):
    model, tensor = fitted
    pairs = digits[2][np.arange(1000)]
    warm = PairMap(**FAST, n_landmarks=500).set_params(init=model, max_iter=500).fit(tensor, constraints=pairs)
    moved = (warm.embedding_ - model.embedding_).norm(dim=1).median()
    # Beside the distance of two rows that have nothing to do with each other.
    assert float(moved) < float((model.embedding_ - model.embedding_.roll(37, 0)).norm(dim=1).median()) / 3


def test_rows_that_share_a_place_are_parted(device):
    start = torch.tensor([[0.0, 1.0], [0.0, 1.0], [2.0, 3.0], [0.0, 2.0]], dtype=torch.float64, device=device)
    moved = (module().parted(start, 1.0, 0) - start).abs().sum(dim=1) > 0
    assert moved.tolist() == [True, True, False, False]


def test_few_rows_without_pairs(device):
    tensor = torch.from_numpy(np.random.default_rng(0).standard_normal((12, 3))).to(device)
    with pytest.warns(UserWarning, match="pairs"):
        model = PairMap(random_state=0, max_iter=50).fit(tensor)
    assert torch.isfinite(model.embedding_).all()
    assert model.pair_proba(tensor[:2], tensor[2:4]).tolist() == [0.5, 0.5]


def test_fewer_rows_than_features(device):
    y = np.arange(40) % 2
    X = np.random.default_rng(0).standard_normal((40, 60)) + 2 * y[:, None] * (np.arange(60) < 5)
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    tensor = torch.from_numpy(X).to(device)
    models = [PairMap(**FAST).fit(rows, constraints=pairs) for rows in (X, tensor)]
    assert models[1].auc_ == pytest.approx(models[0].auc_, abs=0.01)
    assert torch.isfinite(models[1].embedding_).all()
    assert models[1].transform(tensor[:3]).device.type == device
    expected, found = models[0].pair_proba(X[:20], X[20:]), models[1].pair_proba(tensor[:20], tensor[20:])
    np.testing.assert_allclose(found.cpu(), expected, rtol=0, atol=0.01)


def test_scale_is_the_median_in_memory(device):
    places = 50 * np.random.default_rng(0).random((1500, 2))
    found = module().local_scale(torch.from_numpy(places).to(device))
    assert found == pytest.approx(layout.local_scale(places), rel=1e-6)
