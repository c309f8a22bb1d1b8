"""GBWSDR on a cluster: through xgboost.dask, with preferences across partitions, as good as in memory."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

from pairlens.engines import config_context
from pairlens.exceptions import SupervisionWarning
from pairlens.preference import dask_trees
from pairlens.preference.gbwsdr import GBWSDR
from pairlens.supervision import Preferences

dask = pytest.importorskip("dask", reason="clusters need pairlens[dask]")
da = pytest.importorskip("dask.array", reason="clusters need pairlens[dask]")
distributed = pytest.importorskip("distributed", reason="clusters need pairlens[dask]")
pytest.importorskip("xgboost", reason="trees on a cluster need pairlens[boost]")
pytest.importorskip("pyarrow", reason="xgboost.dask needs pyarrow")

ROW_CHUNKS = (90, 0, 210, 33, 167)
N = sum(ROW_CHUNKS)
TOLERANCE = 0.02
"""Difference in held-out pairwise accuracy that the documentation allows for a given number of trees."""


@pytest.fixture(scope="module")
def cluster():
    with (
        # A busy machine takes longer to start a new worker than the 15 s after which the cluster would go on with one.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="1GiB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=300)
        yield client


@pytest.fixture(scope="module")
def ring():
    """Rows near a ring are better; the last 400 are held out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N + 400, 2)) + 2
    y = -np.abs(np.linalg.norm(X - 2, axis=1) - 1.2)
    return X, y, Preferences.from_scores(y[:N], n_pairs=4000, random_state=0)


def as_dask(X):
    return da.from_array(X[:N], chunks=(ROW_CHUNKS, X.shape[1]))


def options(**others):
    return {"min_samples_leaf": 5, "backend": "xgboost", "n_jobs": 1, "random_state": 0, **others}


@pytest.mark.parametrize(("d", "n_estimators"), [(1, 10), (2, 150)])
def test_same_trees_as_in_memory(d, n_estimators, ring, cluster):
    X, y, known = ring
    given = options(n_components=d, n_estimators=n_estimators)
    here = GBWSDR(**given).fit(X[:N], preferences=known)
    there = GBWSDR(**given).fit(as_dask(X), preferences=known)
    assert there.backend_ == "xgboost"
    assert there.n_estimators_ == n_estimators
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-8)
    np.testing.assert_allclose(there.loss_curve_[:10], here.loss_curve_[:10], rtol=1e-6)
    assert there.loss_curve_[-1] < 0.9 * there.loss_curve_[0]
    if d == 2:
        assert here.score(X[N:], y[N:]) > 0.65
    assert there.score(X[N:], y[N:]) == pytest.approx(here.score(X[N:], y[N:]), abs=TOLERANCE)


def test_early_stopping_agrees(ring, cluster):
    """Bins come from all rows here, in memory from those of the training folds, so held-out accuracies differ a bit."""
    X, y, known = ring
    here = GBWSDR(2, **options(max_trees=60)).fit(X[:N], preferences=known)
    there = GBWSDR(2, **options(max_trees=60)).fit(as_dask(X), preferences=known)
    assert there.n_estimators_ == np.argmax(there.validation_curve_) > 0
    assert there.validation_curve_[0] == pytest.approx(here.validation_curve_[0], abs=1e-6)
    shared = min(len(here.validation_curve_), len(there.validation_curve_))
    np.testing.assert_allclose(there.validation_curve_[:shared], here.validation_curve_[:shared], atol=0.03)
    assert there.score(X[N:], y[N:]) == pytest.approx(here.score(X[N:], y[N:]), abs=1.5 * TOLERANCE)


def test_view_is_lazy_and_the_model_is_small(ring, cluster):
    X, y, known = ring
    model = GBWSDR(2, **options(n_estimators=5)).fit(as_dask(X), preferences=known)
    view = model.transform(as_dask(X))
    assert isinstance(view, da.Array)
    assert view.chunks == (ROW_CHUNKS, (2,))
    np.testing.assert_allclose(view.compute(), model.transform(X[:N]), atol=1e-6)
    assert model.score(as_dask(X), y[:N]) == pytest.approx(model.score(X[:N], y[:N]))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X[N:]), model.transform(X[N:]))


@pytest.mark.parametrize(
    "changed", [{"init": "wsdr"}, {"gamma2": 0.5, "combinations": 20_000}, {"angle_loss": "squared"}]
)
def test_every_objective(changed, ring, cluster):
    X, _, known = ring
    here = GBWSDR(2, **options(n_estimators=2, **changed)).fit(X[:N], preferences=known)
    there = GBWSDR(2, **options(n_estimators=2, **changed)).fit(as_dask(X), preferences=known)
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-7)
    assert there.loss_curve_[0] == pytest.approx(here.loss_curve_[0], rel=1e-8)
    np.testing.assert_allclose(there.loss_curve_, here.loss_curve_, rtol=2e-2)


def test_rows_are_not_brought_together(ring, cluster, monkeypatch):
    from pairlens.engines.dask.rows import DaskRows

    X, _, known = ring
    fetched = []
    whole = DaskRows.gather
    monkeypatch.setattr(DaskRows, "gather", lambda self, rows: fetched.append(len(rows)) or whole(self, rows))
    with config_context(gather_bytes=1000):
        model = GBWSDR(2, **options(n_estimators=2)).fit(as_dask(X), preferences=known)
    assert fetched == []
    assert model.loss_curve_[-1] < model.loss_curve_[0]


@pytest.mark.processes
def test_a_killed_worker_changes_nothing(ring, cluster, monkeypatch):
    X, y, known = ring
    cluster.wait_for_workers(2, timeout=300)
    pids = list(cluster.run(os.getpid).values())
    killed = []

    def kill_one():
        # The task in which xgboost.dask trains.
        while not any(str(key).startswith("fn-") for keys in cluster.processing().values() for key in keys):
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(pids[0], signal.SIGKILL)
        killed.append(time.monotonic())

    killer = threading.Thread(target=kill_one)
    killer.start()
    trainings = []
    once = dask_trees.ClusterBoosting._train_once
    monkeypatch.setattr(
        dask_trees.ClusterBoosting, "_train_once", lambda *given: trainings.append(time.monotonic()) or once(*given)
    )
    model = GBWSDR(2, **options(n_estimators=400)).fit(as_dask(X), preferences=known)
    killer.join(timeout=10)
    assert trainings[0] < killed[0] < trainings[-1]
    reference = GBWSDR(2, **options(n_estimators=400)).fit(X[:N], preferences=known)
    assert model.n_estimators_ == 400
    np.testing.assert_allclose(model.loss_curve_[:10], reference.loss_curve_[:10], rtol=1e-6)
    assert model.score(X[N:], y[N:]) == pytest.approx(reference.score(X[N:], y[N:]), abs=TOLERANCE)


def test_a_second_attempt_does_not_go_on_with_the_record_of_the_first():
    """The worker that was not lost recorded some rounds already; the callback comes to it pickled."""
    cloudpickle = pytest.importorskip("cloudpickle")
    token = "attempted twice"
    recorder = pickle.loads(cloudpickle.dumps(dask_trees._recorder(token)))
    dask_trees._records[token] = [(2.0, 0.5)]
    recorder.before_training(None)
    dask_trees._records.setdefault(token, []).append((1.0, 0.6))
    assert dask_trees.taken_record(token) == [(1.0, 0.6)]


def test_a_failure_without_a_loss_is_raised(ring, cluster, monkeypatch):
    X, _, known = ring
    calls = []

    def fails(*_):
        calls.append(1)
        raise ArithmeticError

    monkeypatch.setattr(dask_trees, "NOTICE_SECONDS", 0.2)
    monkeypatch.setattr(dask_trees.ClusterBoosting, "_train_once", fails)
    with pytest.raises(ArithmeticError):
        GBWSDR(2, **options(n_estimators=2)).fit(as_dask(X), preferences=known)
    assert len(calls) == 1


def test_single_precision_and_few_partitions(ring, cluster):
    X, _, known = ring
    rows = da.from_array(X[:N].astype(np.float32), chunks=(N, 2))
    model = GBWSDR(2, **options(n_estimators=3)).fit(rows, preferences=known)
    assert model.components_.dtype == np.float32
    assert model.transform(rows).dtype == np.float32
    assert model.loss_curve_[-1] < model.loss_curve_[0]


def test_without_preferences_and_with_bad_values(ring, cluster):
    X, _, known = ring
    with pytest.warns(SupervisionWarning, match="no preferences were given"):
        model = GBWSDR(2).fit(as_dask(X))
    assert model.transform(as_dask(X)).compute().shape == (N, 2)
    bad = X.copy()
    bad[140, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN, for example in row 140, column 1"):
        GBWSDR(2).fit(as_dask(bad), preferences=known)
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.transform(as_dask(X)[:, :1])


def test_without_a_cluster_the_rows_are_collected_up_to_a_bound(ring):
    X, _, known = ring
    with dask.config.set(scheduler="synchronous"):
        model = GBWSDR(2, n_estimators=2, random_state=0).fit(as_dask(X), preferences=known)
        assert model.backend_ == "sklearn"
        reference = GBWSDR(2, n_estimators=2, random_state=0).fit(X[:N], preferences=known)
        np.testing.assert_array_equal(model.transform(X), reference.transform(X))
        with config_context(gather_bytes=1000), pytest.raises(ValueError, match=r"GBWSDR needs its rows.*X\.compute"):
            GBWSDR(2, n_estimators=2).fit(as_dask(X), preferences=known)
