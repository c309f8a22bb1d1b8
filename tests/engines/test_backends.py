"""Every linear method gives the same directions wherever the rows are: NumPy, a Dask cluster, a torch tensor."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import pairlens
from pairlens import Constraints
from pairlens.engines import Placement, config_context, settings
from pairlens.exceptions import ApproximationWarning, ArgumentError
from tests.engines.chunks import slow_chunk
from tests.estimators import linear_methods
from tests.methods.test_promises import make

dask = pytest.importorskip("dask", reason="the Dask engine needs pairlens[dask]")
da = pytest.importorskip("dask.array", reason="the Dask engine needs pairlens[dask]")
distributed = pytest.importorskip("distributed", reason="the Dask engine needs pairlens[dask]")
torch = pytest.importorskip("torch", reason="the torch engine needs pairlens[gpu]")

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")
METHODS = linear_methods()
# These learn on one machine, in memory or on a GPU: of a dask array at most landmark_rows are taken.
ONE_MACHINE = {
    pairlens.LPP,
    pairlens.CLPP,
    pairlens.LPPSI,
    pairlens.NPSSDR,
    pairlens.SDA,
    pairlens.SODRPaC,
    pairlens.DSP,
    pairlens.LinearPairLens,
}
ROW_CHUNKS = (50, 37, 163, 0, 110)
N = sum(ROW_CHUNKS)


@pytest.fixture(scope="module")
def cluster():
    """Two processes; started once."""
    with (
        # A worker that waits for one that was killed should not wait long; the cluster waits for a new one, which on a
        # busy machine takes longer than the 15 s after which it would go on with one.
        dask.config.set(
            {
                "distributed.comm.timeouts.connect": "2s",
                "distributed.comm.retry.count": 0,
                "distributed.deploy.lost-worker-timeout": "10 minutes",
            }
        ),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="1GiB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    X = rng.standard_normal((N, 12)) * np.linspace(1, 2, 12) + 1.5 * rng.standard_normal((3, 12))[y] + 5
    X[:, 4] = 7.0
    return X, y, Constraints.from_labels(y, n_pairs=90, random_state=0)


def as_dask(X):
    return da.from_array(X, chunks=(ROW_CHUNKS, (5, X.shape[1] - 5)))


def as_torch(X):
    """On the GPU where there is one."""
    return torch.from_numpy(X.copy()).to("cuda" if torch.cuda.is_available() else "cpu")


def host(view):
    return view.cpu().numpy() if isinstance(view, torch.Tensor) else np.asarray(view)


def assert_same(model, reference, tol=1e-8):
    scale = np.abs(reference.components_).max()
    np.testing.assert_allclose(model.components_, reference.components_, rtol=0, atol=tol * scale)
    np.testing.assert_allclose(model.mean_, reference.mean_, rtol=tol)
    np.testing.assert_allclose(
        model.eigenvalues_, reference.eigenvalues_, rtol=tol, atol=tol * np.abs(reference.eigenvalues_).max()
    )


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize("kind", ["numpy", "dask", "torch"])
def test_every_linear_method_agrees(cls, kind, table, cluster):
    X, _, pairs = table
    rows = {"numpy": np.asfortranarray, "dask": as_dask, "torch": as_torch}[kind](X)
    assert (cls._rows_may_be in (Placement.MEMORY, Placement.DEVICE)) == (cls in ONE_MACHINE)
    reference = make(cls).fit(X, constraints=pairs)
    model = make(cls).fit(rows, constraints=pairs)
    assert_same(model, reference)
    lazy = model.transform(rows)
    assert type(lazy) is type(rows)
    view = host(lazy)
    np.testing.assert_allclose(view, reference.transform(X), rtol=0, atol=1e-8 * np.abs(view).max())
    assert model.score(rows, constraints=pairs) == pytest.approx(reference.score(X, constraints=pairs), abs=1e-8)


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize("kind", ["dask", "torch"])
def test_labels_agree(cls, kind, table):
    """Labels for more than half of the rows: groups are summed where the chunks are."""
    X, y, _ = table
    y = np.where(np.arange(N) % 5 == 0, -1, y)
    rows, labels = (as_dask(X), da.from_array(y, chunks=90)) if kind == "dask" else (as_torch(X), as_torch(y))
    assert_same(make(cls).fit(rows, labels), make(cls).fit(X, y))


@pytest.mark.parametrize("cls", [cls for cls in METHODS if cls is not pairlens.SLPP])  # 0 / 0 decides there
@pytest.mark.parametrize("kind", ["dask", "torch"])
def test_fewer_rows_than_features_agree(cls, kind):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3
    X = rng.standard_normal((40, 60)) + 2 * np.eye(3, 60)[y]
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    rows = da.from_array(X, chunks=(13, 60)) if kind == "dask" else as_torch(X)
    model, reference = (make(cls).fit(part, constraints=pairs) for part in (rows, X))
    scale = np.abs(reference.components_).max()
    np.testing.assert_allclose(model.components_, reference.components_, rtol=0, atol=1e-6 * scale)


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize("kind", ["dask", "torch"])
def test_float32_stays_float32(cls, kind, table):
    X, _, pairs = table
    single = X.astype(np.float32)
    rows = as_dask(single) if kind == "dask" else as_torch(single)
    model = make(cls).fit(rows, constraints=pairs)
    reference = make(cls).fit(single, constraints=pairs)
    assert model.components_.dtype == np.float32
    lazy = model.transform(rows)
    assert lazy.dtype == (torch.float32 if kind == "torch" else np.float32)
    view = host(lazy)
    np.testing.assert_allclose(view, reference.transform(single), atol=2e-3 * np.abs(view).max())


@pytest.mark.processes
@pytest.mark.parametrize("cls", [pairlens.SSDR, pairlens.LPP, pairlens.DSP])
def test_a_killed_worker_changes_nothing(cls, table, cluster, tmp_path):
    X, _, pairs = table
    n_chunks = 24
    rows = da.from_array(X, chunks=(N // n_chunks, 12)).map_blocks(slow_chunk, tmp_path, 0.05, meta=X[:0, :0])
    cluster.wait_for_workers(2, timeout=300)
    workers = set(cluster.run(os.getpid).values())
    killed = {}

    def kill_one():
        while len(made := list(tmp_path.iterdir())) < 6:
            time.sleep(0.005)
        pid = int(made[0].name.partition("-")[0])
        if pid in workers:
            os.kill(pid, signal.SIGKILL)
            killed.update(pid=pid, when=time.monotonic_ns(), chunks=len(made))

    killer = threading.Thread(target=kill_one)
    killer.start()
    model = make(cls).fit(rows, constraints=pairs)
    killer.join(timeout=10)
    assert killed["pid"] in workers
    assert killed["chunks"] < n_chunks
    made = [path.name.split("-") for path in tmp_path.iterdir()]
    later = [pid for pid, when in made if int(when) > killed["when"]]
    assert len(later) > n_chunks - killed["chunks"]  # what the lost worker held was made again
    assert str(killed["pid"]) not in later
    assert_same(model, make(cls).fit(X, constraints=pairs))


class Spy:
    """A scheduler that notes what it is asked to bring back."""

    def __init__(self):
        self.calls, self.largest = 0, 0

    def __call__(self, graph, keys, **kwargs):
        from dask.local import get_sync

        self.calls += 1
        results = get_sync(graph, keys, **kwargs)
        self._look(results)
        return results

    def _look(self, found):
        if isinstance(found, np.ndarray) and found.ndim == 2:
            self.largest = max(self.largest, len(found))
        elif isinstance(found, list | tuple):
            for part in found:
                self._look(part)


def test_one_pass_and_only_the_rows_of_pairs():
    rng = np.random.default_rng(0)
    rows = da.from_array(rng.standard_normal((5000, 6)), chunks=(700, 6))
    pairs = Constraints(rng.integers(0, 2500, (40, 2)) * [1, 1] + [0, 2500], [(1, 4000), (2, 3000)], n_samples=5000)
    for cls in (pairlens.BWDR, pairlens.SSDR, pairlens.RCA, pairlens.CMM, pairlens.DCA, pairlens.SLPP):
        spy = Spy()
        with dask.config.set(scheduler=spy):
            model = cls().fit(rows, constraints=pairs)
            assert spy.calls == 1
            assert 1 <= spy.largest <= len(pairs.rows)
            before = spy.calls
            view = model.transform(rows)
            assert spy.calls == before
            assert view.chunks == (rows.chunks[0], (2,))
            assert view.dtype == np.float64
            assert isinstance(view._meta, np.ndarray)


@pytest.mark.parametrize("gamma", ["auto", "search", 0.05])
def test_threads_agree(gamma, table):
    X, _, pairs = table
    model = pairlens.DSP(gamma=gamma, n_clusters=3, random_state=0, verbose=0)
    with dask.config.set(scheduler="threads"):
        model.fit(as_dask(X), constraints=pairs)
    reference = pairlens.DSP(gamma=gamma, n_clusters=3, random_state=0, verbose=0).fit(X, constraints=pairs)
    assert model.gamma_ == pytest.approx(reference.gamma_, rel=1e-12)
    assert_same(model, reference)


@pytest.mark.parametrize("where", ["fit", "transform"])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_bad_values_are_named(where, value, word, table):
    X, _, pairs = table
    bad = X.copy()
    bad[201, 7] = value
    fitted = pairlens.SSDR().fit(X, constraints=pairs)
    for rows in (as_dask(bad), as_torch(bad)):
        # A chunk of a lazy transform does not know where it lies.
        place = "row 114 of a chunk" if where == "transform" and hasattr(rows, "dask") else "row 201"
        with pytest.raises(ValueError, match=f"contains {word}, for example in {place}, column 7"):
            host(fitted.transform(rows)) if where == "transform" else fitted.fit(rows, constraints=pairs)


@pytest.mark.parametrize("cls", [pairlens.DSP, pairlens.CMM, pairlens.LPP])
def test_bad_values_are_named_by_every_way_to_read(cls, table):
    X, _, pairs = table
    bad = X.copy()
    bad[pairs.rows[3], 7] = np.nan
    with pytest.raises(ValueError, match=f"contains NaN, for example in row {pairs.rows[3]}, column 7"):
        make(cls).fit(as_dask(bad), constraints=pairs)


def test_unknown_chunk_sizes_are_counted(table):
    X, _, pairs = table
    rows = as_dask(X)
    unknown = rows[rows[:, 4] > 0]
    assert np.isnan(unknown.shape[0])
    model = pairlens.WBDR().fit(unknown, constraints=pairs)
    assert np.isnan(unknown.shape[0])
    assert_same(model, pairlens.WBDR().fit(X, constraints=pairs))
    view = model.transform(unknown)
    np.testing.assert_allclose(view.compute(), model.transform(X))


def test_data_frames(table):
    pd = pytest.importorskip("pandas", reason="data frames need pairlens[io]")
    dd = pytest.importorskip("dask.dataframe", reason="dask data frames need dask[dataframe]")
    X, _, pairs = table
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)])
    reference = pairlens.BWDR().fit(frame, constraints=pairs)
    model = pairlens.BWDR().fit(dd.from_pandas(frame, npartitions=3), constraints=pairs)
    assert_same(model, reference)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_allclose(
        model.transform(dd.from_pandas(frame, npartitions=2)).compute(), reference.transform(frame)
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(dd.from_pandas(frame.rename(columns={"f3": "g3"}), npartitions=2))


def test_wrong_input_is_refused(table):
    from scipy import sparse

    X, _, pairs = table
    model = pairlens.SSDR().fit(X, constraints=pairs)
    with pytest.raises(ValueError, match="two dimensions"):
        pairlens.SSDR().fit(da.ones(5))
    with pytest.raises(ValueError, match="two dimensions"):
        pairlens.SSDR().fit(torch.ones(5))
    with pytest.raises(ValueError, match="Complex"):
        pairlens.SSDR().fit(da.ones((5, 2), dtype=complex))
    with pytest.raises(ValueError, match="Complex"):
        pairlens.SSDR().fit(torch.ones((5, 2), dtype=torch.complex64))
    with pytest.raises(TypeError, match="dense tensor"):
        pairlens.SSDR().fit(as_torch(X).to_sparse())
    with pytest.raises(TypeError, match="must be NumPy arrays"):
        pairlens.SSDR().fit(as_dask(X).map_blocks(sparse.csr_matrix))
    for rows in (as_dask(X)[:, :9], as_torch(X)[:, :9]):
        with pytest.raises(ValueError, match="9 features, but SSDR is expecting 12"):
            model.transform(rows)
    for rows in (as_dask(X)[:1], as_torch(X)[:1]):
        with pytest.raises(ValueError, match="minimum of 2"):
            pairlens.SSDR().fit(rows)
    with pytest.raises(ValueError, match="at most 5,000 are taken"):
        pairlens.SSDR().fit(da.zeros((6000, 5001), chunks=(1000, 5001)))
    with pytest.raises(ValueError, match="constraints must be for"):
        pairlens.SSDR().fit(as_dask(X)[:100], constraints=pairs)


def test_memory_is_bounded(table):
    X, _, pairs = table
    with config_context(gather_bytes=1000), pytest.raises(ValueError, match=r"gather_bytes allows.*Give fewer pairs"):
        pairlens.CMM().fit(as_dask(X), constraints=pairs)
    with (
        config_context(gather_bytes=1000),
        pytest.raises(ValueError, match=r"LinearPairLens needs 360 rows.*Lower landmark_rows"),
    ):
        make(pairlens.LinearPairLens).fit(as_dask(X), constraints=pairs)
    # Labels are summed where the chunks are.
    y = np.arange(len(X)) % 3
    with config_context(gather_bytes=1000):
        model = pairlens.SSDR().fit(as_dask(X), y)
    assert_same(model, pairlens.SSDR().fit(X, y))


@pytest.mark.parametrize("cls", [pairlens.LPP, pairlens.SDA, pairlens.DSP, pairlens.LinearPairLens])
def test_landmarks_stand_for_very_many_rows(cls):
    rng = np.random.default_rng(0)
    n = 1500
    y = rng.integers(0, 3, n)
    X = rng.standard_normal((n, 6)) + 6 * np.eye(3, 6)[y]
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    rows = da.from_array(X, chunks=(700, 6))
    with (
        config_context(landmark_rows=500),
        pytest.warns(ApproximationWarning, match=f"{cls.__name__} learns from 5.. of the 1,500 rows"),
    ):
        model = make(cls).fit(rows, constraints=pairs)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0))
    exact = make(cls).fit(X, constraints=pairs)
    assert model.score(X, y) > exact.score(X, y) - 0.02


def test_tensors_keep_device_and_gradient_out(table):
    X, _, pairs = table
    rows = as_torch(X).requires_grad_()
    model = pairlens.SSDR().fit(rows, constraints=pairs)
    assert isinstance(model.components_, np.ndarray)
    view = model.transform(rows)
    assert view.device == rows.device
    assert not view.requires_grad
    whole = pairlens.SSDR().fit((as_torch(X) * 10).to(torch.int64), constraints=pairs)
    assert whole.components_.dtype == np.float64
    assert pairlens.SSDR().fit(as_torch(X).to(torch.bfloat16), constraints=pairs).components_.dtype == np.float32


def test_tf32_is_off_unless_asked_for():
    from pairlens.engines.torch.rows import product_precision

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with product_precision(torch.device("cuda")):
            assert torch.get_float32_matmul_precision() == "highest"
        with config_context(tf32=True), product_precision(torch.device("cuda")):
            assert torch.get_float32_matmul_precision() == "high"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


def test_settings_are_checked_and_restored():
    for change in ({"speed": 3}, {"gather_bytes": 0}, {"tf32": "yes"}):
        with pytest.raises(ArgumentError) as caught, config_context(**change):
            pass
        assert {caught.value.argument: caught.value.value} == change
    before = settings()
    with pytest.raises(RuntimeError), config_context(landmark_rows=5):
        raise RuntimeError
    assert settings() == before


@pytest.mark.parametrize("scheduler", ["threads", "cluster"])
def test_progress_is_reported(scheduler, table, cluster, capsys):
    X, _, pairs = table
    chosen = {"scheduler": "threads"} if scheduler == "threads" else {}
    with config_context(progress=True), dask.config.set(**chosen):
        model = pairlens.SSDR().fit(as_dask(X), constraints=pairs)
    shown = capsys.readouterr()
    assert f"one pass over {N} rows: total scatter" in shown.err
    assert "100%" in shown.err
    assert shown.out == ""
    assert_same(model, pairlens.SSDR().fit(X, constraints=pairs))


@pytest.mark.processes
def test_importing_pairlens_imports_no_engine():
    import subprocess
    import sys

    code = (
        "import sys, numpy, pairlens; pairlens.SSDR().fit(numpy.eye(4)[:, :3]);"
        "print([name for name in ('dask', 'distributed', 'torch') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_values_whose_squares_leave_float32():
    rng = np.random.default_rng(0)
    X = (1e25 * rng.standard_normal((60, 4))).astype(np.float32)
    pairs = Constraints.from_labels(np.arange(60) % 3, n_pairs=40, random_state=0)
    reference = pairlens.SSDR().fit(X, constraints=pairs)
    for rows in (da.from_array(X, chunks=(25, 4)), as_torch(X)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = pairlens.SSDR().fit(rows, constraints=pairs)
        assert model.components_.dtype == np.float32
        np.testing.assert_allclose(model.components_, reference.components_, atol=1e-5)
