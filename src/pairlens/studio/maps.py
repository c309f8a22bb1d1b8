"""The map beside the question: fitted on a snapshot of the answers, laid on the last one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pairlens.studio.worker import step_back
from pairlens.supervision import Constraints, Preferences

__all__ = [
    "MapJob",
    "Mapper",
    "align",
    "by_lens",
    "fit_lens",
    "fit_map",
    "make_mapper",
    "prepare_lens",
    "prepare_map",
    "send_lens",
]

Points = NDArray[np.float64]

MOST_FOR_LAYOUT = 20_000
"""Rows up to which a map takes seconds; beyond, the linear view is shown."""
LAID_OUT = 2500
"""Rows that are laid out; of more, the others are placed among them."""
FEWEST_FOR_LAYOUT = 7
"""Rows from which PairMap's largest perplexity, (n - 1) / 3 - 1, is at least one neighbour."""
FEWEST_PREFERENCES = 5
FEWEST_TO_BEGIN = 10


@dataclass(frozen=True)
class MapJob:
    """What a map is fitted from."""

    n_answers: int
    constraints: Constraints | None
    preferences: Preferences | None = None


class Mapper(Protocol):
    """All that the studio asks of a map: places in the plane for all rows, given what is known.

    Attributes
    ----------
    name : str
        What the last fit shows, in the words of the page.
    """

    name: str

    def fit(self, job: MapJob, last: Points | None) -> Points:
        """Places of shape (n_rows, 2); `last` is the map that is shown now."""


class LensMapper:
    """A map by the linear view that the asker chooses by: what depends on the rows alone is not computed again.

    Parameters
    ----------
    lens : pairlens.asking.Lens
    """

    name = "LinearPairLens"

    def __init__(self, lens: Any) -> None:
        self._lens = lens

    def fit(self, job: MapJob, last: Points | None) -> Points:
        """Fit again: two scatters and a small eigenproblem."""
        from pairlens.asking.view import FitJob

        known = job.constraints if job.constraints is not None else Constraints(n_samples=self._lens.n_rows)
        return _plane(self._lens.look(self._lens.directions(FitJob("", known, job.n_answers, 0))))


class LayoutMapper:
    """A map by PairMap, which starts from its last one, so that rows stay near where they were.

    Such a start cannot undo what was laid out too early: the map is made from scratch when the answers have doubled.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    standardize : bool
        Parameter of PairMap.
    """

    name = "PairMap"

    def __init__(self, X: NDArray[np.float64], standardize: bool) -> None:
        from pairlens import PairMap

        self.X = X
        self._layout = partial(PairMap, standardize=standardize, random_state=0, n_landmarks=LAID_OUT)
        self._former: Any = None
        self._from_scratch = 0

    def fit(self, job: MapJob, last: Points | None) -> Points:
        """Fit again; the last map counts as it was before it was turned for the screen."""
        if self._former is None or job.n_answers >= 2 * max(FEWEST_TO_BEGIN, self._from_scratch):
            self._former, self._from_scratch = None, job.n_answers
        known = job.constraints if job.constraints is not None and job.constraints.n_pairs else None
        model = self._layout(init=self._former).fit(self.X, constraints=known)
        # A model would keep the one it began from, and that the one before.
        self._former = model.set_params(init=None)
        return _plane(model.embedding_)


class PrincipalMapper:
    """A map of too few rows, or of rows without a difference, to learn anything from answers.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    """

    def __init__(self, X: NDArray[np.float64]) -> None:
        self.name = "Principal components" if _differ(X) else "All rows are equal"
        self._places = _principal(_standardized(X))

    def fit(self, job: MapJob, last: Points | None) -> Points:
        """The same places each time."""
        return self._places


class RankingMapper:
    """A map that shows the ranking learned from preferences; the principal components before there are enough."""

    def __init__(self, X: NDArray[np.float64]) -> None:
        self._rows = _standardized(X)
        self.name = "Principal components"

    def fit(self, job: MapJob, last: Points | None) -> Points:
        """Fit again."""
        from pairlens import WSDR

        known = job.preferences
        if known is None or known.n_pairs < FEWEST_PREFERENCES:
            self.name = "Principal components"
            return _principal(self._rows)
        self.name = "WSDR"
        view = WSDR(min(2, self._rows.shape[1]), random_state=0).fit(self._rows, preferences=known)
        return _plane(view.transform(self._rows))


def by_lens(n_rows: int, ranking: bool) -> bool:
    """Whether the map is the view of the asker's own lens, made by the process that holds it."""
    return n_rows > MOST_FOR_LAYOUT and not ranking


def make_mapper(X: NDArray[np.float64], ranking: bool = False, standardize: bool = True) -> Mapper:
    """Return the best map there is for rows of this number.

    PairMap, the default view; the principal components of too few rows for it, LinearPairLens of too many to follow the
    answers, and a ranking where answers are preferences.
    """
    from pairlens.asking import Lens

    if not _differ(X) or (len(X) < FEWEST_FOR_LAYOUT and not ranking):
        return PrincipalMapper(X)
    if ranking:
        return RankingMapper(X)
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
    """Whether any two rows differ."""
    return bool((X[0] != X).any())


def _standardized(X: NDArray[np.float64]) -> NDArray[np.float64]:
    from sklearn.preprocessing import StandardScaler

    return np.asarray(StandardScaler().fit_transform(X), dtype=np.float64)


def _principal(rows: NDArray[np.float64]) -> Points:
    from sklearn.decomposition import PCA

    with np.errstate(invalid="ignore"):  # shares of a variance of zero
        return _plane(PCA(min(2, *rows.shape), random_state=0).fit_transform(rows))


def _plane(Z: Any) -> Points:
    """Two columns of finite numbers, whatever a view has."""
    values = np.asarray(Z, dtype=np.float64)
    if values.shape[1] < 2:
        values = np.column_stack([values, np.zeros((len(values), 2 - values.shape[1]))])
    if not np.isfinite(values).all():
        raise ValueError("the fit gave places that are not finite")
    return values[:, :2]


def prepare_map(state: dict[str, Any], X: NDArray[np.float64], ranking: bool, standardize: bool) -> None:
    """The first job of the process that makes maps."""
    step_back(state)
    state["mapper"] = make_mapper(X, ranking, standardize)


def fit_map(state: dict[str, Any], job: MapJob, last: Points | None) -> tuple[str, Points]:
    """A job: the name of the map and its places, laid on the last one."""
    step_back(state)
    if "mapper" not in state:
        state["mapper"] = LensMapper(state["lens"])
    with warnings.catch_warnings():
        # What the estimators warn of (few answers, contradictions) the page says in its own place.
        warnings.simplefilter("ignore")
        places = state["mapper"].fit(job, last)
    return state["mapper"].name, align(places, last)


def prepare_lens(state: dict[str, Any], X: NDArray[np.float64], ranking: bool, standardize: bool) -> None:
    """The first job of the process that fits what the asker chooses by."""
    from pairlens.asking import Lens
    from pairlens.asking.ranking import RankLens

    state["lens"] = (RankLens if ranking else Lens)(X, standardize=standardize)


def send_lens(state: dict[str, Any]) -> Any:
    """A job: what was prepared, for the asker in the other process."""
    return state["lens"]


def fit_lens(state: dict[str, Any], job: Any) -> Any:
    """A job: the asker's view after more answers."""
    step_back(state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return state["lens"].fit(job)
