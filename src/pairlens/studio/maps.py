"""The map beside the question: fitted on a snapshot of the answers, laid on the last one."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.studio.worker import Worker, step_back
from pairlens.supervision import Constraints, Preferences

Points = NDArray[np.float64]

MOST_FOR_LAYOUT = 20_000
"""Rows up to which a map takes seconds; beyond, the linear view is shown."""
LAID_OUT = 2500
"""Rows that are laid out; of more, the others are placed among them."""
FEWEST_FOR_LAYOUT = 7
"""Rows from which PairMap's largest perplexity, (n - 1) / 3 - 1, is at least one neighbour."""
FEWEST_PREFERENCES = 5
FEWEST_TO_BEGIN = 10
MOST_JUDGED = 3000
"""Rows that are enough to judge answers by."""

log = logging.getLogger("pairlens.studio")


@dataclass(frozen=True)
class MapJob:
    """Answers that a map is fitted from."""

    n_answers: int
    constraints: Constraints | None
    preferences: Preferences | None = None


class LensMapper:
    """A map by the linear view that the asker chooses by: what depends on the rows alone is not computed again."""

    name = "LinearPairLens"

    def __init__(self, lens: Any) -> None:
        self._lens = lens

    def fit(self, job: MapJob) -> Points:
        """Fit again: two scatters and a small eigenproblem."""
        from pairlens.asking.view import FitJob

        known = job.constraints if job.constraints is not None else Constraints(n_samples=self._lens.n_rows)
        return _plane(self._lens.look(self._lens.directions(FitJob("", known, job.n_answers, 0))))


class LayoutMapper:
    """A map by PairMap, which starts from its last one, so that rows stay near where they were.

    Such a start cannot undo what was laid out too early: the map is made from scratch when the answers have doubled.
    """

    name = "PairMap"

    def __init__(self, X: NDArray[np.float64], standardize: bool) -> None:
        from pairlens import PairMap

        self.X = X
        self._layout = partial(PairMap, standardize=standardize, random_state=0, n_landmarks=LAID_OUT)
        self._former: Any = None
        self._from_scratch = 0

    def fit(self, job: MapJob) -> Points:
        """Fit again; the last map counts as it was before it was turned for the screen."""
        if self._former is None or job.n_answers >= 2 * max(FEWEST_TO_BEGIN, self._from_scratch):
            self._former, self._from_scratch = None, job.n_answers
        known = job.constraints if job.constraints is not None and job.constraints.n_pairs else None
        model = self._layout(init=self._former).fit(self.X, constraints=known)
        # A model would keep the one it began from, and that the one before.
        self._former = model.set_params(init=None)
        return _plane(model.embedding_)


class PrincipalMapper:
    """A map of too few rows, or of rows without a difference, to learn anything from answers."""

    def __init__(self, X: NDArray[np.float64]) -> None:
        from sklearn.preprocessing import StandardScaler

        self.name = "Principal components" if _differ(X) else "All rows are equal"
        self._places = _principal(StandardScaler().fit_transform(X))

    def fit(self, job: MapJob) -> Points:
        """Return the same places each time."""
        return self._places


class RankingMapper:
    """A map whose first axis is the ranking learned from preferences, and whose second one the rows vary most along.

    It is not turned to lie on the last one: better rows are on the right. Before there are enough preferences it shows
    the principal components.
    """

    def __init__(self, X: NDArray[np.float64], standardize: bool) -> None:
        from pairlens.asking.ranking import RankLens

        self._lens = RankLens(X, standardize=standardize)
        self.name = "Principal components"

    def fit(self, job: MapJob) -> Points:
        """Fit again."""
        from pairlens.asking.ranking import RankJob

        known, rows = job.preferences, self._lens.rows
        if known is None or known.n_pairs < FEWEST_PREFERENCES:
            self.name = "Principal components"
            return _principal(rows)
        self.name = "Ranking, better rows to the right"
        ranked = RankJob("", known.pairs, np.ones(known.n_pairs), np.asarray(known.weight, dtype=float), 0)
        weights = self._lens.fit(ranked).weights
        score, direction = rows @ weights, weights / (np.linalg.norm(weights) or 1.0)
        across = _principal(rows - np.outer(rows @ direction, direction))[:, 0]
        return _plane(np.column_stack([_scaled(score), _scaled(across)]))


def _scaled(column: NDArray[np.float64]) -> NDArray[np.float64]:
    return column / (column.std() or 1.0)


def by_lens(n_rows: int, ranking: bool) -> bool:
    """Return whether the map is the view of the asker's own lens, made by the process that holds it."""
    return n_rows > MOST_FOR_LAYOUT and not ranking


def make_mapper(
    X: NDArray[np.float64], ranking: bool = False, standardize: bool = True
) -> LensMapper | LayoutMapper | PrincipalMapper | RankingMapper:
    """Return the best map there is for rows of this number: what fits places in the plane, with a `name` of them.

    PairMap, the default view; the principal components of too few rows for it, LinearPairLens of too many to follow the
    answers, and a ranking where answers are preferences.
    """
    from pairlens.asking import Lens

    if not _differ(X) or (len(X) < FEWEST_FOR_LAYOUT and not ranking):
        return PrincipalMapper(X)
    if ranking:
        return RankingMapper(X, standardize)
    return LensMapper(Lens(X, standardize=standardize)) if by_lens(len(X), ranking) else LayoutMapper(X, standardize)


def align(points: Points, last: Points | None) -> Points:
    """Centre and scale a map, then turn and mirror it so that it lies on the last one (orthogonal Procrustes).

    Examples
    --------
    >>> last = align(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), None)
    >>> turned = last @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> bool(np.allclose(align(turned * 5 + 3, last), last))
    True
    """
    points = points - points.mean(axis=0)
    points = points / (np.sqrt((points**2).sum(axis=1).mean()) or 1.0)
    if last is None or last.shape != points.shape:
        return points
    left, _, right = np.linalg.svd(points.T @ last)
    return np.asarray(points @ (left @ right))


def _differ(X: NDArray[np.float64]) -> bool:
    """Return whether any two rows differ."""
    return bool((X[0] != X).any())


def _principal(rows: NDArray[np.float64]) -> Points:
    from sklearn.decomposition import PCA

    with np.errstate(invalid="ignore"):  # shares of a variance of zero
        return _plane(PCA(min(2, *rows.shape), random_state=0).fit_transform(rows))


def _plane(Z: Any) -> Points:
    """Return two columns of finite numbers, whatever a view has."""
    values = np.asarray(Z, dtype=np.float64)
    if values.shape[1] < 2:
        values = np.column_stack([values, np.zeros((len(values), 2 - values.shape[1]))])
    if not np.isfinite(values).all():
        raise ValueError("the fit gave places that are not finite")
    return values[:, :2]


def prepare_map(state: dict[str, Any], X: NDArray[np.float64], ranking: bool, standardize: bool) -> None:
    """Prepare the process that makes maps: its first job."""
    step_back(state)
    state["mapper"] = make_mapper(X, ranking, standardize)
    state["rows"], state["standardize"] = X, standardize


def fit_map(state: dict[str, Any], job: MapJob, last: Points | None) -> tuple[str, Points]:
    """Return the name of the map and its places, laid on the last one."""
    step_back(state)
    if "mapper" not in state:
        state["mapper"] = LensMapper(state["lens"])
    # What the estimators warn of (few answers, contradictions) the page says in its own place.
    with warnings.catch_warnings(action="ignore"):
        places = state["mapper"].fit(job)
    return state["mapper"].name, align(places, None if isinstance(state["mapper"], RankingMapper) else last)


def group_rows(
    state: dict[str, Any], known: Constraints, placed: list[str | None]
) -> tuple[list[str], NDArray[np.int64], NDArray[np.float64]]:
    """Return the names of the groups, the group of every row among them, and how sure that is."""
    from pairlens.cluster.assigned import assign_rows

    step_back(state)
    rows, standardize = _rows_of(state)
    with warnings.catch_warnings(action="ignore"):
        found = assign_rows(rows, known, placed, standardize=standardize)
    return found.names, np.asarray(found.group, dtype=np.int64), found.probability


def judge_answers(state: dict[str, Any], known: Constraints) -> dict[tuple[int, int, int], float]:
    """Return how probable it is that each answer is wrong, by views that did not see it; empty for too few answers."""
    from pairlens import LinearPairLens

    rows, standardize = _rows_of(state)
    # The rows of the answers, and as many others as show where rows lie.
    asked = np.unique(np.concatenate([known.must_link.ravel(), known.cannot_link.ravel()]))
    others = np.setdiff1d(np.arange(len(rows)), asked)
    some = np.random.default_rng(0).permutation(others)[: max(0, MOST_JUDGED - len(asked))]
    chosen = np.sort(np.concatenate([asked, some]))
    with warnings.catch_warnings(action="ignore"):
        try:
            n_components = min(10, rows.shape[1], len(chosen) - 1)
            view = LinearPairLens(n_components, standardize=standardize, random_state=0)
            found = view.fit(rows[chosen], constraints=known[chosen]).suspicious_pairs()
        except ValueError:
            return {}
    pairs = np.sort(chosen[found.pairs], axis=1).tolist()
    return {(i, j, link): wrong for (i, j), link, wrong in zip(pairs, found.link.tolist(), found.suspicion.tolist())}


def _rows_of(state: dict[str, Any]) -> tuple[NDArray[np.float64], bool]:
    """Return the rows that a child has prepared, and whether they are to be standardised."""
    if "rows" in state:
        return state["rows"], state["standardize"]
    return state["lens"].rows, state["lens"].standardize


def prepare_lens(state: dict[str, Any], X: NDArray[np.float64], ranking: bool, standardize: bool) -> None:
    """Prepare the process that fits what the asker chooses by: its first job."""
    from pairlens.asking import Lens
    from pairlens.asking.ranking import RankLens

    state["lens"] = (RankLens if ranking else Lens)(X, standardize=standardize)


def send_lens(state: dict[str, Any]) -> Any:
    """Return what was prepared, for the asker in the other process."""
    return state["lens"]


def fit_lens(state: dict[str, Any], job: Any) -> Any:
    """Return the asker's view after more answers."""
    step_back(state)
    with warnings.catch_warnings(action="ignore"):
        return state["lens"].fit(job)


@dataclass(frozen=True)
class MapState:
    """The map that is shown: its version, 0 before the first, and the number of answers that it knows."""

    version: int = 0
    n_answers: int = 0
    name: str = ""
    points: NDArray[np.float64] | None = None
    error: str = ""


class MapKeeper:
    """Keeper of the map: the newest snapshot of the answers wins, and a failure keeps the old map.

    `worker` makes maps, `later` runs a function in the session's thread, and `drawn` is called there when a fit has
    ended, with whether there is a new map.
    """

    def __init__(self, worker: Worker, later: Callable[..., None], drawn: Callable[[bool], None]) -> None:
        self.state = MapState()
        self.worker = worker
        self._later = later
        self._drawn = drawn
        self._running: Future[Any] | None = None
        self._made = (-1, -1)

    @property
    def fitting(self) -> bool:
        """Return whether a map is being made."""
        return self._running is not None

    def want(self, revision: tuple[int, int], job: Callable[[], MapJob]) -> None:
        """Make a map of this state, unless one is being made or this one was made, or could not be, before."""
        if self._running is not None or self._made == revision:
            return
        wanted, began = job(), time.perf_counter()
        self._made = revision
        self._running = self.worker.submit("pairlens.studio.maps:fit_map", wanted, self.state.points)
        self._running.add_done_callback(lambda future: self._later(self._done, future, wanted.n_answers, began))

    def _done(self, future: Future[Any], n_answers: int, began: float) -> None:
        self._running = None
        error = future.exception()
        if error is None:
            name, points = future.result()
            self.state = MapState(self.state.version + 1, n_answers, name, points)
            log.info("a map of %d answers in %.1f s", n_answers, time.perf_counter() - began)
        else:
            self.state = replace(self.state, error=str(error))
            log.warning("the map could not be made: %s", error)
        self._drawn(error is None)
