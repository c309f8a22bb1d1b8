"""Compare methods by the same pairs, and a fitted view with views that saw none of them: PCA, and for a map a t-SNE."""

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
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_array

from pairlens.engines import Float64, Rows, canonical, evenly_spaced, pair_squared_distances
from pairlens.exceptions import InputError, SupervisionWarning
from pairlens.judging import HeldOutScore, PairFolds, auc, auc_standard_error
from pairlens.methods.pairmap.estimator import PairMap
from pairlens.methods.pairmap.layout import plain_map
from pairlens.selection import held_out
from pairlens.selection.fitting import fit_model, last_step, learns_from
from pairlens.selection.held_out import JudgedPairs, Verdict
from pairlens.spectral.rowspace import Standardiser
from pairlens.supervision import Constraints, Preferences

INTERVAL = 0.005
STATUS = Path("/proc/self/statm")
NEAREST = 15
"""Nearest rows of a row that are compared in two views."""
MOST_COMPARED = 2_000

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
                judged = JudgedPairs.of_fit(fitted) or held_out.held_out_pairs(model, X, constraints, **options)
                if judged is None:
                    yield Entry(name, width, held_out.NOTHING, cost)
                    continue
                rows = fitted[:-1].transform(X) if len(getattr(fitted, "steps", ())) > 1 else X
                found = tuple(held_out.verdicts(judged, controls, last_step(fitted), rows))
                yield Entry(name, width, judged.score, cost, verdicts=found)
            else:
                width = len(fitted.get_feature_names_out()) if hasattr(fitted, "transform") else None
                assert preferences is not None
                yield Entry(name, width, held_out.held_out_accuracy(model, X, preferences, **options), cost)
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


@dataclass(frozen=True)
class Control:
    """Hold a view of the same rows that sees no pair, with the key of its panel in a page, its name and its axes."""

    key: str
    name: str
    axes: tuple[str, ...]
    Z: Float64


@dataclass(frozen=True)
class ViewJudgement:
    """Hold how good a view is, and how it compares with controls, views that saw no pair.

    `pairs` is None without two pairs of each kind, `accuracy`, that of held-out preferences, if the model does not
    rank, and `moved`, the share of the nearest rows of a row in the map that are others than in the t-SNE, without a
    t-SNE.
    """

    pairs: JudgedPairs | None
    accuracy: HeldOutScore | None
    controls: tuple[Control, ...]
    verdicts: tuple[Verdict, ...] = ()
    moved: float | None = None

    @property
    def score(self) -> HeldOutScore:
        """The AUC of held-out pairs, or the accuracy on held-out preferences."""
        return self.pairs.score if self.pairs is not None else self.accuracy or held_out.NOTHING


def judge_view(
    model: Any,
    X: Any,
    *,
    constraints: Constraints | None = None,
    preferences: Preferences | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
    on_fold: Callable[[int, int], None] | None = None,
) -> ViewJudgement:
    """Judge a fitted view by the pairs and the preferences that it was fitted with.

    A method that held out pairs in `fit` is not fitted again, nor is any with fewer than two `n_splits`; other
    parameters are those of :func:`~pairlens.selection.held_out_auc`.

    >>> from sklearn.datasets import load_wine
    >>> from pairlens import Constraints, LinearPairLens
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=200, random_state=0)
    >>> judged = judge_view(LinearPairLens(2, random_state=0).fit(X, constraints=pairs), X, constraints=pairs)
    >>> [(verdict.other, verdict.tells, verdict.difference > 0) for verdict in judged.verdicts]
    [('PCA', True, True)]
    """
    method = last_step(model)
    rows = model[:-1].transform(X) if len(getattr(model, "steps", ())) > 1 else X
    rows = canonical(check_array(rows, accept_sparse="csr", dtype=[np.float64, np.float32]))
    if "preferences" not in learns_from(model) or n_splits < 2:
        preferences = None
    options: dict[str, Any] = {"n_splits": n_splits, "random_state": random_state, "on_fold": on_fold}
    found = views_without_pairs(method, rows, random_state)
    accuracy = (
        held_out.held_out_accuracy(model, X, preferences, **options)
        if preferences is not None and preferences.n_pairs
        else None
    )
    pairs = None
    if constraints is not None and min(constraints.n_must_link, constraints.n_cannot_link) > 0:
        pairs = JudgedPairs.of_fit(model)
        if pairs is None and n_splits >= 2 and hasattr(method, "transform"):
            pairs = held_out.held_out_pairs(model, X, constraints, preferences=preferences, **options)
    said = () if pairs is None else tuple(held_out.verdicts(pairs, {each.name: each.Z for each in found}, method, rows))
    drawn = [each.Z for each in found if each.key == "tsne"]
    moved = _moved(method.embedding_, drawn[0]) if drawn else None
    return ViewJudgement(pairs, accuracy, found, said, moved)


def views_without_pairs(method: Any, rows: Rows, seed: Any) -> tuple[Control, ...]:
    """Return PCA in as many directions as a fitted method has; for a map also the t-SNE of the rows alone.

    Both see columns scaled as the method scales them.
    """
    width = len(method.get_feature_names_out()) if hasattr(method, "get_feature_names_out") else 1
    scaled = Standardiser.of(rows)(rows) if getattr(method, "standardize", False) else rows
    Z, shares = _principal(scaled, width, seed)
    axes = tuple(f"component {i + 1} ({share:.1%} of variance)" for i, share in enumerate(shares))
    found = [Control("pca", "PCA", axes, Z)]
    if isinstance(method, PairMap):
        alone = plain_map(
            rows,
            method.n_components,
            perplexity=method.perplexity,
            standardize=method.standardize,
            n_jobs=method.n_jobs,
            random_state=seed,
            reuse=True,
        )
        found.append(Control("tsne", "t-SNE", tuple(f"direction {i + 1}" for i in range(alone.shape[1])), alone))
    return tuple(found)


def _principal(rows: Rows, n_dims: int, seed: Any) -> tuple[Float64, Float64]:
    """Return the first principal components of the rows, and their shares of the variance."""
    from sklearn.decomposition import PCA

    n_dims = max(1, min(n_dims, *rows.shape))
    if sparse.issparse(rows) and n_dims >= min(rows.shape):
        rows = rows.toarray()
    pca = PCA(n_dims, svd_solver="arpack" if sparse.issparse(rows) else "auto", random_state=seed)
    with np.errstate(all="ignore"):
        Z = np.nan_to_num(np.asarray(pca.fit_transform(rows.astype(np.float64, copy=False)), dtype=np.float64))
    return Z, np.nan_to_num(pca.explained_variance_ratio_)


def _moved(Z: Float64, other: Float64) -> float:
    """Return the share of the nearest rows in one view that are not among the nearest in the other."""
    from sklearn.neighbors import NearestNeighbors

    k = min(NEAREST, len(Z) - 1)
    chosen = evenly_spaced(len(Z), MOST_COMPARED)
    first, second = (
        NearestNeighbors(n_neighbors=k + 1).fit(each).kneighbors(each[chosen], return_distance=False)
        for each in (Z, other)
    )
    # A row is among its own nearest rows in both.
    shared = [len(np.intersect1d(a, b)) - 1 for a, b in zip(first, second)]
    return 1.0 - max(float(np.mean(shared)), 0.0) / k
