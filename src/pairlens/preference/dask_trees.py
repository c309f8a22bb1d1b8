"""Trees of GBWSDR for rows of a dask array, grown by ``xgboost.dask`` on a cluster.

The rows stay with the workers, in whatever partitions they are. What is communicated in every round, besides
XGBoost's histograms, is the view: each worker puts the places of its rows into a table of all rows in preferences, and
an allreduce adds the tables up. So a preference may join rows of any two partitions, every combination of preferences
counts, and the gradient is that of a fit in memory. A worker holds all preferences and this table: a few numbers for
each, however many features the rows have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.engines import Float64, IntArray, map_rows, project
from pairlens.engines.dask import DaskRows, take_chunk, task
from pairlens.preference.objective import Objective
from pairlens.preference.pairs import Pairs
from pairlens.preference.ranking import accuracy, embedded_ranking
from pairlens.preference.trees import SklearnTrees, TreeOptions, Trees, XGBoostTrees

PURPOSE = "growing the trees of GBWSDR on a cluster"
MOST_ROWS = 1 << 24
"""Rows in preferences: their numbers travel as labels, which XGBoost keeps in float32."""
TREES_AT_A_TIME = 15
"""Trees that are grown before held-out accuracies of several folds are compared."""
NOTICE_SECONDS = 2.0
RECORD = "pairlens"
"""Attribute of the trees in which what a worker recorded comes home."""
_records: dict[str, list[tuple[float, float]]] = {}
"""What this process, as a worker, has recorded: by training. XGBoost copies whatever it is given."""


def active_client() -> Any:
    """The distributed client that dask uses at present, or None."""
    scheduler = require("dask", extra="dask", purpose=PURPOSE).base.get_scheduler()
    client = getattr(scheduler, "__self__", None)
    return client if hasattr(client, "scheduler_info") else None


class GrownTrees(XGBoostTrees):
    """Trees that have been grown elsewhere."""

    def __init__(self, booster: Any, n_outputs: int) -> None:
        self.n_outputs = n_outputs
        self._rows = None
        self._booster = booster
        self._count = booster.num_boosted_rounds()


class TrainingRows:
    """The rows that occur in preferences, on the workers.

    Parameters
    ----------
    X : DaskRows
    used : int array
        Numbers of these rows, ascending.
    """

    def __init__(self, X: DaskRows, used: IntArray) -> None:
        if len(used) > MOST_ROWS:
            raise ValueError(
                f"{len(used):,} rows of the dask array occur in preferences; up to {MOST_ROWS:,} do. Give fewer "
                "preferences, or a smaller max_pairs."
            )
        array = require("dask.array", extra="dask", purpose=PURPOSE)
        parts = []
        for start, stop, chunk in X.chunks():
            local = used[np.searchsorted(used, start) : np.searchsorted(used, stop)] - start
            if len(local):
                shape = (len(local), X.shape[1])
                parts.append(array.from_delayed(task(take_chunk, chunk, local), shape, dtype=X.dtype))
        self.rows = DaskRows(array.concatenate(parts))
        self._matrices: dict[int, Any] = {}

    @property
    def n(self) -> int:
        return self.rows.shape[0]

    def matrix(self, n_outputs: int) -> Any:
        """The rows as XGBoost takes them, with their places among all rows in preferences for labels."""
        if n_outputs not in self._matrices:
            array = require("dask.array", extra="dask", purpose=PURPOSE)
            xgboost = require("xgboost.dask", extra="boost", purpose=PURPOSE)
            place = np.repeat(np.arange(self.n, dtype=np.float32)[:, None], n_outputs, axis=1)
            labels = array.from_array(place, chunks=(self.rows.array.chunks[0], n_outputs))
            self._matrices[n_outputs] = xgboost.DaskDMatrix(active_client(), self.rows.array, labels)
        return self._matrices[n_outputs]

    def forget(self) -> None:
        """Make the matrices anew when they are asked for: parts of them are lost."""
        self._matrices.clear()

    def view(self, mean: Float64, linear: Float64) -> Float64:
        """A linear view of the rows, fetched: a few numbers for each."""
        return np.asarray(project(self.rows, mean, linear).compute(), dtype=np.float64)


class ClusterBoosting:
    """Trees that grow down the gradient of an objective on a cluster: as `_Boosting` of GBWSDR does in memory.

    Parameters
    ----------
    objective : Objective
        Of the preferences to learn from, over all training rows.
    rows : TrainingRows
    Z : array of shape (n_rows, n_components)
        The linear view of the rows.
    linear : array
        The map that made it.
    options : TreeOptions
    """

    def __init__(self, objective: Objective, rows: TrainingRows, Z: Float64, linear: Float64, options: TreeOptions):
        self.objective, self.rows, self.linear, self.options = objective, rows, linear, options
        self.Z = self._start = Z
        self._booster: Any = None

    def grow(self, count: int) -> list[float]:
        """Grow more trees; gives the objective before each."""
        if count == 0:
            return []
        curve = self._train(Gradient(self.objective, self._start), count)
        added = map_rows(self.rows.rows, self.finished().predict, self._start.shape[1]).compute()
        self.Z = self._start + np.asarray(added, dtype=np.float64)
        return [loss for loss, _ in curve]

    def held_out(self, other: Pairs) -> Iterator[float]:
        """Accuracy of a ranking of the view on other pairs, after 0, 1, 2, ... trees."""
        while True:
            yield from (
                score for _, score in self._train(Gradient(self.objective, self._start, other), TREES_AT_A_TIME)
            )

    def finished(self) -> Trees:
        """The trees."""
        d = self._start.shape[1]
        return SklearnTrees(None, d, self.options) if self._booster is None else GrownTrees(self._booster, d)

    def _train(self, gradient: Gradient, count: int) -> list[tuple[float, float]]:
        """Grow trees; where a worker is lost meanwhile, again, on those that are left or have come."""
        client = active_client()
        while True:
            workers = set(client.nthreads())
            try:
                return self._train_once(client, gradient, count)
            except Exception:
                if not _lost(client, workers):
                    raise
                self.rows.forget()
                client.wait_for_workers(1)

    def _train_once(self, client: Any, gradient: Gradient, count: int) -> list[tuple[float, float]]:
        xgboost = require("xgboost.dask", extra="boost", purpose=PURPOSE)
        options = self.options
        found = xgboost.train(
            client,
            {
                "multi_strategy": "multi_output_tree",
                "tree_method": "hist",
                "max_depth": options.max_depth,
                "max_leaves": max(2, gradient.n_trained // options.min_samples_leaf),
                "learning_rate": options.learning_rate,
                "reg_lambda": 0.0,
                "min_child_weight": float(options.min_samples_leaf),
                "seed": options.seed,
                "verbosity": 1,
                "disable_default_eval_metric": True,
                # Trees that were begun know it, in a form of their own.
                **({"base_score": 0.0} if self._booster is None else {}),
                **({} if options.n_jobs is None else {"nthread": options.n_jobs}),
            },
            self.rows.matrix(self._start.shape[1]),
            num_boost_round=count,
            obj=gradient,
            callbacks=[_recorder(gradient.token)],
            xgb_model=self._booster,
            verbose_eval=False,
        )
        self._booster = found["booster"]
        record = json.loads(self._booster.attr(RECORD))
        return [(loss, score) for loss, score in record]


def _lost(client: Any, workers: set[str]) -> bool:
    """Whether some of the workers are gone; a scheduler may take a moment to notice."""
    deadline = monotonic() + NOTICE_SECONDS
    while monotonic() < deadline:
        if workers - set(client.nthreads()):
            return True
        sleep(0.1)
    return False


class Gradient:
    """What a worker computes in each round: the gradient for its rows, from the places of all.

    Parameters
    ----------
    objective : Objective
    start : array of shape (n_rows, n_components)
        The linear view that trees add to.
    other : Pairs, optional
        Held-out pairs, of which the accuracy is recorded.
    """

    def __init__(self, objective: Objective, start: Float64, other: Pairs | None = None) -> None:
        self.objective, self.start, self.other = objective, start, other
        self.trained = np.zeros(len(start))
        self.trained[np.unique(objective.pairs.rows)] = 1.0
        self.token = uuid4().hex
        self._weights: Float64 | None = None

    @property
    def n_trained(self) -> int:
        return int(self.trained.sum())

    def __call__(self, margins: NDArray[Any], rows: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """First and second derivatives for the rows of this worker."""
        collective = require("xgboost.collective", extra="boost", purpose=PURPOSE)
        place = rows.get_label().reshape(rows.num_row(), -1)[:, 0].astype(np.int64)
        grown = np.zeros_like(self.start)
        grown[place] = margins.reshape(len(place), -1)
        Z = self.start + collective.allreduce(grown, collective.Op.SUM).reshape(grown.shape)
        value, gradient = self.objective(Z)
        score = float("nan")
        if self.other is not None:
            self._weights = embedded_ranking(Z, self.objective.pairs, self._weights)
            score = accuracy(Z @ self._weights, self.other)
        _records.setdefault(self.token, []).append((value, score))
        # Rows without a training pair have no gradient; with the weight 0 they do not pull leaves towards zero.
        weight = np.repeat(self.trained[place, None], grown.shape[1], axis=1)
        return self.n_trained * gradient[place], weight


def _recorder(token: str) -> Any:
    """A callback that sends home what a worker recorded, with the trees.

    It travels by value and would take a copy of `_records` along, so it reaches it through functions of this module,
    which travel by name.
    """
    xgboost = require("xgboost", extra="boost", purpose=PURPOSE)

    class Recorder(xgboost.callback.TrainingCallback):  # type: ignore[name-defined]
        def before_training(self, model: Any) -> Any:
            forget_record(token)
            return model

        def after_training(self, model: Any) -> Any:
            model.set_attr(**{RECORD: json.dumps(taken_record(token))})
            return model

    return Recorder()


def forget_record(token: str) -> None:
    """A worker that outlived an attempt which lost another one holds the rounds of that attempt."""
    _records.pop(token, None)


def taken_record(token: str) -> list[tuple[float, float]]:
    """Objective and held-out accuracy before each tree of a training; forgotten here."""
    return _records.pop(token)
