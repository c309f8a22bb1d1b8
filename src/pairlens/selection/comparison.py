"""Compare methods by the same pairs, with views that saw none of them beside."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone

from pairlens.engines import Float64, pair_squared_distances
from pairlens.exceptions import InputError, SupervisionWarning
from pairlens.judging import HeldOutScore, PairFolds, auc, auc_standard_error
from pairlens.selection.fitting import fit_model, last_step, learns_from
from pairlens.selection.held_out import (
    NOTHING,
    JudgedPairs,
    Verdict,
    held_out_accuracy,
    held_out_pairs,
    verdicts,
)
from pairlens.supervision import Constraints, Preferences

INTERVAL = 0.005
STATUS = Path("/proc/self/statm")

Result = TypeVar("Result")


class Cost(NamedTuple):
    """Hold the seconds, and the bytes added at the highest; None where the system does not tell."""

    seconds: float
    memory: int | None


def resident_memory() -> int | None:
    """Return the bytes of memory that this process holds now; None where the system does not tell."""
    try:
        return int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError, ValueError):
        return None


def measured(call: Callable[[], Result]) -> tuple[Result, Cost]:
    """Return what a call gives, and what it cost; memory is looked at every 5 ms.

    Examples
    --------
    >>> result, cost = measured(lambda: sum(range(1000)))
    >>> result, cost.seconds > 0
    (499500, True)
    """
    _give_back_free_memory()
    before = peak = resident_memory()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(INTERVAL):
            now = resident_memory()
            peak = now if peak is None or (now is not None and now > peak) else peak

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start = time.perf_counter()
    try:
        result = call()
    finally:
        seconds = time.perf_counter() - start
        done.set()
        watcher.join()
    return result, Cost(seconds, None if peak is None or before is None else peak - before)


def _give_back_free_memory() -> None:
    """Return freed memory to the system, or a call that uses it again would seem to need none."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return


@dataclass(frozen=True)
class Entry:
    """Hold how one method did.

    Attributes
    ----------
    name : str
    n_components : int or None
        Directions of its view; None for a ranking without a view.
    score : HeldOutScore or None
        AUC of held-out pairs, or accuracy on held-out preferences; None if the method failed.
    cost : Cost or None
        Time and memory of one fit to all pairs.
    error : Exception or None
        Why it failed.
    verdicts : tuple of Verdict
        Against each of the controls, on the same pairs.
    """

    name: str
    n_components: int | None
    score: HeldOutScore | None
    cost: Cost | None
    error: Exception | None = None
    verdicts: tuple[Verdict, ...] = ()


def compare(
    models: Mapping[str, Any],
    X: Any,
    *,
    constraints: Constraints | None = None,
    preferences: Preferences | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
    on_step: Callable[[str, int, int], None] | None = None,
) -> Iterator[Entry]:
    """Fit each model to everything, for its cost, and judge it by pairs that it did not see.

    Methods that hold out pairs in `fit` have judged themselves; others are fitted again to parts of the pairs. A model
    that takes no pairs, such as PCA, is a control: the others are compared with it on the same pairs. A model that
    cannot take the data is an entry with its reason, and the others go on.

    Parameters
    ----------
    models : mapping of str to estimator
    X : array of shape (n_samples, n_features)
    constraints : Constraints, optional
        Judge views by held-out pairs.
    preferences : Preferences, optional
        Judge rankings by held-out preferences; one of the two is given.
    n_splits, random_state
        See :func:`~pairlens.selection.held_out_auc`.
    on_step : callable, optional
        ``on_step(name, done, total)`` is called before each fit, for progress.

    Yields
    ------
    Entry
        In the order of the models.
    """
    if (constraints is None) == (preferences is None):
        raise InputError("compare judges by constraints= or by preferences=: give one of them", argument="constraints")
    if not isinstance(models, Mapping):
        raise TypeError(f"models must be a mapping of names to estimators, got {type(models).__name__}")
    failures = (ValueError, TypeError, ImportError, np.linalg.LinAlgError)
    controls: dict[str, Float64] = {}
    entries: dict[str, Entry] = {}
    step = on_step or (lambda name, done, total: None)
    options: dict[str, Any] = {"n_splits": n_splits, "random_state": random_state}
    for name, model in models.items():
        if constraints is None or "constraints" in learns_from(model):
            continue
        step(name, 0, 1)
        try:
            controls[name], cost = measured(partial(_embedded, model, X))
            score = _judged_unlearnt(controls[name], constraints, random_state)
            entries[name] = Entry(name, controls[name].shape[1], score, cost)
        except failures as error:
            entries[name] = _failed(name, error)
    for name, model in models.items():
        if name in entries:
            yield entries[name]
            continue
        step(name, 0, n_splits + 1)
        options["on_fold"] = lambda done, total, name=name: step(name, done + 1, total + 1)
        try:
            with warnings.catch_warnings(action="ignore", category=SupervisionWarning):
                fitted, cost = measured(partial(fit_model, clone(model), X, constraints, preferences))
            if constraints is not None:
                width = np.asarray(fitted.transform(X[:1])).shape[1]
                judged = JudgedPairs.of_fit(fitted) or held_out_pairs(model, X, constraints, **options)
                if judged is None:
                    yield Entry(name, width, NOTHING, cost)
                    continue
                rows = fitted[:-1].transform(X) if len(getattr(fitted, "steps", ())) > 1 else X
                found = tuple(verdicts(judged, controls, last_step(fitted), rows))
                yield Entry(name, width, judged.score, cost, verdicts=found)
            else:
                width = len(fitted.get_feature_names_out()) if hasattr(fitted, "transform") else None
                assert preferences is not None
                yield Entry(name, width, held_out_accuracy(model, X, preferences, **options), cost)
        except failures as error:
            yield _failed(name, error)


def _failed(name: str, error: Exception) -> Entry:
    return Entry(name, None, None, None, error)


def _embedded(model: Any, X: Any) -> Float64:
    Z = clone(model).fit_transform(X)
    return np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)


def _judged_unlearnt(Z: Float64, constraints: Constraints, random_state: Any) -> HeldOutScore:
    """Return the AUC of a view that saw no pair; NaN without pairs of both kinds."""
    known = PairFolds.draw(constraints, 2, random_state).known
    must, cannot = (pair_squared_distances(Z, pairs) for pairs in (known.must_link, known.cannot_link))
    mean = auc(must, cannot)
    return HeldOutScore(mean, auc_standard_error(mean, len(must), len(cannot)), ())
