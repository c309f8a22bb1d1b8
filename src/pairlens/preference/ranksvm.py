r"""RankSVM: a linear ranking from preferences, and its cross-validation.

.. math::
    \min_w \tfrac12 \|w\|^2 + C \sum_m \omega_m \max(0, 1 - w \cdot (z_i - z_j))^2

is piecewise quadratic, so Newton's method ends after a few steps. Each step is solved by conjugate gradients, whose
products with the Hessian touch rows and pairs but form neither the Hessian nor the differences of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.utils.validation import check_is_fitted

from pairlens._sklearn import AUTO, COUNT, NOT_NEGATIVE, POSITIVE, SEED, Interval, estimator, parameter
from pairlens._warnings import warn_user
from pairlens.engines import Float64, IntArray, Rows, as_numpy, fitting_threads
from pairlens.exceptions import InputError, SupervisionWarning
from pairlens.preference._base import PreferenceEstimator
from pairlens.preference.objective import Pairs, like, namespace
from pairlens.supervision import Preferences

C_PATH = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)


EMBEDDED_C = 10.0
"""Weight of the errors in the ranking of an embedding, once its coordinates have variance 1 on average."""

GROUPS_PER_FOLD = 5
"""Separate groups of pairs that a fold needs, so that whole groups are held out."""

SCORED_PAIRS = 30
"""Pairs of two held-out rows that cross-validation wants to score, over all folds."""

Mask = NDArray[np.bool_]
Path = Callable[[Mask], Iterator[Callable[[Rows], Float64]]]


def rank_svm(
    rows: Rows, pairs: Pairs, C: float, *, start: Float64 | None = None, tol: float = 1e-6, max_iter: int = 100
) -> tuple[Float64, int]:
    """Return the weights w, and the number of Newton steps.

    Stops where the gradient is below `tol` times its size at w = 0.
    """
    xp = namespace(rows)
    w = like(rows, np.zeros(rows.shape[1])) if start is None else start
    scale = 2 * C * float(xp.linalg.norm(rows.T @ pairs.gather(pairs.weight)))
    margin = pairs.differences(rows @ w)
    for step in range(max_iter):
        slack = xp.clip(1.0 - margin, 0.0, None)
        gradient = w - 2 * C * (rows.T @ pairs.gather(pairs.weight * slack))
        if float(xp.linalg.norm(gradient)) <= tol * scale:
            return w, step
        curvature = 2 * C * pairs.weight * (slack > 0)
        direction = _newton_direction(rows, pairs, curvature, gradient)
        change = pairs.differences(rows @ direction)
        length = _exact_step(w, direction, margin, change, 2 * C * pairs.weight)
        w = w + length * direction
        margin = margin + length * change
    return w, max_iter


def _newton_direction(rows: Rows, pairs: Pairs, curvature: Float64, gradient: Float64) -> Float64:
    """Solve ``(I + D' diag(curvature) D) v = -gradient`` by conjugate gradients, D the differences of the rows."""
    v = namespace(gradient).zeros_like(gradient)
    residual = -gradient
    search = -gradient
    size = float(residual @ residual)
    goal = 1e-4 * size
    for _ in range(len(gradient) + 10):
        if size <= goal:
            break
        moved = curvature * pairs.differences(rows @ search)
        product = search + rows.T @ pairs.gather(moved)
        length = size / float(search @ product)
        v += length * search
        residual -= length * product
        previous, size = size, float(residual @ residual)
        search = residual + (size / previous) * search
    return v


def _exact_step(w: Float64, direction: Float64, margin: Float64, change: Float64, weight: Float64) -> float:
    """Return the best length along a direction: the objective there is convex and piecewise quadratic in one number."""
    xp = namespace(w)
    length, low, high = 1.0, 0.0, np.inf
    linear, square = float(w @ direction), float(direction @ direction)
    for _ in range(50):
        slack = xp.clip(1.0 - margin - length * change, 0.0, None)
        slope = linear + length * square - float(weight @ (slack * change))
        if slope > 0:
            high = length
        else:
            low = length
        bend = square + float(weight @ (change**2 * (slack > 0)))
        proposal = length - slope / bend
        if not low < proposal < high:
            proposal = 0.5 * (low + high) if np.isfinite(high) else 2 * length
        if abs(proposal - length) <= 1e-10 * length:
            return proposal
        length = proposal
    return length


def embedded_ranking(Z: Float64, pairs: Pairs, start: Float64 | None = None) -> Float64:
    """Return weights that rank an embedding. One factor for all coordinates makes their mean variance 1 beforehand."""
    scale = float(((Z - Z.mean(axis=0)) ** 2).mean()) ** 0.5
    if scale == 0:
        return like(Z, np.zeros(Z.shape[1]))
    begin = None if start is None else start * scale
    return rank_svm(Z / scale, pairs, EMBEDDED_C, start=begin, tol=1e-4)[0] / scale


def accuracy(scores: Float64, pairs: Pairs) -> float:
    """Return the share of the pairs in which the better row scores higher; ties count half."""
    gap = pairs.differences(scores)
    return float(pairs.weight @ (0.5 + 0.5 * namespace(gap).sign(gap)))


def folds(pairs: Pairs, n_splits: int, rng: np.random.Generator) -> list[tuple[Mask, Mask]]:
    """Return which pairs each fold trains on, and which it scores.

    Rows are held out, not pairs: from (a, b) and (b, c) the pair (a, c) would be no surprise. Pairs of two held-out
    rows are scored. Pairs of a held-out row with a training row are neither trained on nor scored, because a ranking
    that fits its training rows too closely does well on them; only where fewer than :data:`SCORED_PAIRS` would be left
    they are scored too. Where the pairs fall into many separate groups, as with one group for each query, whole groups
    are held out and there are no such pairs. A fold with nothing to train on or nothing to score is left out.
    """
    ends = as_numpy(pairs.rows)
    graph = sparse.coo_array((np.ones(pairs.count), tuple(ends.T)), shape=(pairs.n_rows, pairs.n_rows))
    _, unit = csgraph.connected_components(graph, directed=False)
    involved = np.unique(ends)
    if len(np.unique(unit[involved])) < GROUPS_PER_FOLD * n_splits:
        unit = np.arange(pairs.n_rows)
    units = rng.permutation(np.unique(unit[involved]))
    fold_of_unit = np.full(int(unit.max()) + 1, -1)
    fold_of_unit[units] = np.arange(len(units)) % n_splits
    better, worse = fold_of_unit[unit][ends].T
    within = better == worse
    if within.sum() < SCORED_PAIRS:
        within = np.ones(pairs.count, dtype=bool)
    result = []
    for k in range(n_splits):
        touched = (better == k) | (worse == k)
        scored = touched & within
        if scored.any() and not touched.all():
            result.append((~touched, scored))
    if not result:
        raise InputError(
            f"cross-validation needs preferences to train on and others to hold out, but every one of the {n_splits} "
            f"folds of rows takes all of the {pairs.count} pairs or none",
            argument="preferences",
            remedy="Give more preferences, or a number in place of the search.",
        )
    return result


def held_out_scores(rows: Rows, pairs: Pairs, splits: Sequence[tuple[Mask, Mask]], path: Path) -> Float64:
    """Follow a path of values on the training pairs of every fold; return the mean accuracy of each on held-out pairs.

    `path` takes the mask of the training pairs and yields, for one value after another, a function from rows to
    scores.
    """
    curves = []
    for train, scored in splits:
        held = pairs.select(scored)
        curves.append([accuracy(score(rows), held) for score in path(train)])
    return np.asarray(np.mean(curves, axis=0))


@estimator
class RankSVM(PreferenceEstimator):
    r"""Linear ranking with a large margin.

    Weights w that minimise

    .. math:: \tfrac12 \|w\|^2 + C\, \mathrm{mean}_m \max(0, 1 - w \cdot (x_i - x_j))^2

    over the preferences m = (i better than j).

    Choose it when a ranking is all you need, and beside every reduction to fewer dimensions as a control: on the data
    that we measured no linear reduction ranks better than RankSVM on all features. Standardise the features first.

    Parameters
    ----------
    C : float or "auto", default=1.0
        Weight of the errors, taken as a mean, so that it does not depend on the number of preferences. "auto" takes the
        best of 0.001, 0.01, ..., 100 by cross-validation in which rows, with their preferences, are held out; each
        value starts from the solution of the one before.
    cv : int, default=5
        Number of folds for ``C="auto"``.
    max_pairs : int, default=200000
        If `y` implies more preferences, this many are drawn.
    tol : float, default=1e-6
        Stop when the norm of the gradient, relative to that of the zero ranking, is below this.
    max_iter : int, default=100
        Most Newton steps.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The weights w.
    C_ : float
        The C used.
    cv_scores_ : dict
        Mean held-out pairwise accuracy by C; for ``C="auto"`` only.
    n_iter_ : int
        Newton steps of the last fit.

    See Also
    --------
    WSDR : A linear view of `n_components` dimensions from preferences, and a ranking in it.

    Notes
    -----
    A piecewise quadratic problem: Newton steps with an exact line search reach the optimum in a few steps, each solved
    by conjugate gradients that cost O(n_samples * n_features + n_pairs) per product. Sparse X stays sparse.

    References
    ----------
    .. [1] T. Joachims, "Optimizing search engines using clickthrough data", KDD 2002.
    .. [2] O. Chapelle and S. S. Keerthi, "Efficient algorithms for ranking with SVMs", Information Retrieval 13, 2010.

    Examples
    --------
    >>> from pairlens import Preferences, RankSVM
    >>> X = [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]
    >>> ranker = RankSVM().fit(X, preferences=Preferences([(2, 1), (1, 0)], n_samples=3))
    >>> ranker.rank(X)
    array([2, 1, 0])
    """

    _power: ClassVar = 4
    C: float | str = parameter(POSITIVE, AUTO, default=1.0, kw_only=False)
    cv: int = parameter(Interval(Integral, 2, None, closed="left"), default=5)
    max_pairs: int = parameter(COUNT, default=200_000)
    tol: float = parameter(NOT_NEGATIVE, default=1e-6)
    max_iter: int = parameter(COUNT, default=100)
    random_state: Any = parameter(*SEED, default=None)

    def _check(self, rows: Rows, y: ArrayLike | None, preferences: Preferences | None) -> None:
        if y is None and preferences is None:
            raise InputError(
                "RankSVM requires y to be passed, but the target y is None, and so is preferences",
                argument="preferences",
                remedy="Give ordinal scores by y=, or pairs by preferences=",
            )

    def _learn(self, rows: Rows, known: Preferences, rng: np.random.Generator) -> None:
        if known.n_pairs == 0:
            raise InputError(
                "RankSVM needs at least one preference, but y has one level only",
                argument="preferences",
                remedy="Give pairs by preferences=, or a y of at least two levels",
            )
        used = known.rows
        pairs = Pairs.of(np.searchsorted(used, known.pairs), len(used), known.weight)
        inside = rows[used].astype(np.float64)
        weights, self.n_iter_ = None, 0
        with fitting_threads(inside.shape[0] * inside.shape[1]):
            values = [float(self.C)] if self.C != "auto" else self._search(inside, pairs, rng)
            for C in values:
                weights, self.n_iter_ = rank_svm(inside, pairs, C, start=weights, tol=self.tol, max_iter=self.max_iter)
        assert weights is not None
        if not weights.any():
            warn_user(
                "RankSVM: the preferences cancel out, or are between equal rows, so all rows have the same score.",
                SupervisionWarning,
            )
        self.C_ = values[-1]
        self.coef_ = weights.astype(rows.dtype)

    def _search(self, rows: Rows, pairs: Pairs, rng: np.random.Generator) -> list[float]:
        """Return the values of C up to the best one."""

        def path(train: NDArray[np.bool_]) -> Iterator[Callable[[Rows], Float64]]:
            part, weights = pairs.select(train), None
            for C in C_PATH:
                weights, _ = rank_svm(rows, part, C, start=weights, tol=1e-4, max_iter=self.max_iter)
                yield lambda Z, w=weights: np.asarray(Z @ w)  # type: ignore[misc]

        scores = held_out_scores(rows, pairs, folds(pairs, self.cv, rng), path)
        self.cv_scores_ = dict(zip(C_PATH, scores.tolist()))
        return list(C_PATH[: np.argmax(scores) + 1])

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        rows = self._read(X, fitting=False)
        return np.asarray(rows @ self.coef_)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return scores that order rows, higher is better; the same as :meth:`decision_function`."""
        return self.decision_function(X)

    def rank(self, X: ArrayLike) -> IntArray:
        """Return numbers of the rows, best first.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        order : int array of shape (n_samples,)
            Rows of equal score stay in the order of X.
        """
        return np.argsort(-self.decision_function(X), kind="stable")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
