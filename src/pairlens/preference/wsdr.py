"""WSDR: a linear view in which preferences are far apart and point the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from pairlens._sklearn import AUTO, COUNT, NOT_NEGATIVE, POSITIVE, StrOptions, estimator, parameter
from pairlens._warnings import warn_user
from pairlens.engines import Float64, Rows, as_numpy, checked_rows, evenly_spaced, fitting_threads, is_tensor
from pairlens.engines.torch import TensorRows
from pairlens.exceptions import InputError
from pairlens.preference._base import C_PATH, MarginTransformer
from pairlens.preference.metric import LinearView, Solution, ValueAndGradient, minimize
from pairlens.preference.objective import Objective, Pairs, largest_differences_on_device, like, namespace
from pairlens.preference.ranksvm import embedded_ranking, folds, held_out_scores
from pairlens.spectral.rowspace import RowSpace, fix_signs, symmetric
from pairlens.supervision import Preferences
from pairlens.supervision.combined import combine_preferences

INNER_ITERATIONS = 10
"""Steps in each of the two problems of a round of alternating directions."""

BALANCE = 10.0
"""Ratio of disagreement to movement, or the other way round, beyond which the penalty changes."""

CONSENSUS = 1e-2
FLAT = 0.1
"""Disagreement of the two copies of alternating directions, and slope where they end, that are worth a warning."""

MAX_COMPARED = 5_000
"""Preferences whose angles are compared; of more, an even choice is taken."""


class Robustness(NamedTuple):
    """The lengths of preferences in a view, from `a` to `b`, and the largest `angle` between two, in radians."""

    a: float
    b: float
    angle: float

    def bound(self, norm: float) -> float:
        r"""Return how much the hinge losses of two of them can differ, for a ranking w of the given norm.

        Theorem 1 of the paper, :math:`\|w\| \sqrt{2 b^2 - 2 a^2 \cos\theta}`. For angles above 90 degrees, for which
        it does not hold as printed, b takes the place of a.
        """
        cosine = float(np.cos(self.angle))
        shorter = self.a if cosine >= 0 else self.b
        return float(norm * np.sqrt(max(2 * self.b**2 - 2 * shorter**2 * cosine, 0.0)))


def robustness(steps: Float64) -> Robustness:
    """Return the shortest and the longest of some differences of rows, and the largest angle between two of them."""
    length = np.linalg.norm(steps, axis=1)
    unit = steps[length > 0] / length[length > 0, None]
    unit = unit[evenly_spaced(len(unit), MAX_COMPARED)]
    cosine = float((unit @ unit.T).min()) if len(unit) else 1.0
    return Robustness(float(length.min()), float(length.max()), float(np.arccos(np.clip(cosine, -1.0, 1.0))))


@estimator
class WSDR(LinearView, MarginTransformer):
    r"""Large-margin weakly supervised dimensionality reduction.

    A linear map :math:`z = L x` that minimises, over the preferences m = (i better than j) with
    :math:`q_m = z_i - z_j`,

    .. math::
        \mathrm{mean}_m\, h(\gamma_1 - \|q_m\|)
        + C\, \mathrm{mean}_{m, m'}\, h\Big(\gamma_2 - \frac{q_m \cdot q_{m'}}{\|q_m\| \|q_{m'}\|}\Big)
        + \tfrac{\rho}{2} \|L\|^2 , \qquad h(t) = \max(t, 0) :

    the rows of a preference move apart, and all preferences turn into one direction.

    Choose it when you want to *look* at data of which you know what is better than what: the first component points to
    the better rows. Use ``C="auto"`` unless you know C; it matters more than everything else. For a ranking alone,
    :class:`RankSVM` on all features was as good on all data that we measured. Standardise the features first.

    Parameters
    ----------
    C : float or "auto", default=1.0
        Weight of the angles. Small values tend to PCA, large ones to a single ranking direction. "auto" takes the best
        of 0.001, 0.01, 0.1 and 1 by cross-validation in which rows, with their preferences, are held out; each value
        starts from the solution of the one before.
    reg : float, default=0.1
        Weight :math:`\rho` of the ridge.
    solver : {"lbfgs", "admm"}, default="lbfgs"
        "lbfgs" minimises both terms together. "admm" alternates between them as the paper does; it is slower, and
        where the angle term dominates it can stop short of a minimum, about which it warns.
    mu : float, default=100.0
        Largest weight of the agreement of the two copies of L, for ``solver="admm"``.
    max_iter : int, default=40
        Iterations, for ``C="auto"`` of each value. More iterations need not rank better.
    tol : float, default=1e-8
        Stop when the objective improves by less than this share.
    cv : int, default=5
        Number of folds for ``C="auto"``.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The map L, turned so that the components are uncorrelated and ordered by variance; the better rows lie, on
        average, at the higher end of each.
    loss_curve_ : list of float
        The objective at the start and after each iteration of the last fit.
    C_ : float
        The C used.
    cv_scores_ : dict
        Mean held-out pairwise accuracy by C; for ``C="auto"`` only.
    n_iter_ : int
        Number of iterations of the last fit.
    disagreement_ : float
        Relative distance of the two copies of L at the end; for ``solver="admm"`` only.

    See Also
    --------
    GBWSDR : The same objective for a nonlinear view, by boosted trees.
    RankSVM : A ranking from all features.

    Notes
    -----
    The losses are means, so C(paper) = C / M for M preferences, up to a factor 2. For gamma2 >= 1 the angle term drives
    L towards rank one; the ridge and a small C keep more dimensions. Without preferences the result is that of PCA. On
    the experiments of the paper see docs/preference.md: they reproduce only in part.

    Three things are ours: the ridge, which equation 5 does not have (without it the plane turns by 1.3 to 1.5 rad on
    the three sets of the paper's Table 2); joint minimisation, in place of ``solver="admm"`` (0.4 to 1.5 rad apart);
    and a penalty `mu` that changes in the rounds of "admm" (kept at 100: 0.7 to 1.5 rad from joint minimisation).
    docs/preference.md names our readings of the paper.

    A torch tensor is learned from on its device in float64, and the result agrees with that of a NumPy array to about
    1e-8 where the solver converges.

    References
    ----------
    .. [1] Chang Xu, Dacheng Tao, Chao Xu, Yong Rui, "Large-margin weakly supervised dimensionality reduction",
       ICML 2014, PMLR 32(2):865-873.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pairlens import Preferences, WSDR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> worse = Preferences.from_scores(y, n_pairs=500, random_state=0)
    >>> view = WSDR(n_components=2, C=0.1).fit(X, preferences=worse)
    >>> view.transform(X).shape
    (442, 2)
    >>> bool(view.score(X, y) > 0.7)
    True
    """

    C: float | str = parameter(NOT_NEGATIVE, AUTO, default=1.0)
    reg: float = parameter(NOT_NEGATIVE, default=0.1)
    solver: str = parameter(StrOptions({"lbfgs", "admm"}), default="lbfgs")
    mu: float = parameter(POSITIVE, default=100.0)
    max_iter: int = parameter(COUNT, default=40)
    tol: float = parameter(NOT_NEGATIVE, default=1e-8)

    def _learn(self, rows: Rows, known: Preferences, rng: np.random.Generator) -> None:
        space, directions = self._start(rows, known)
        if known.n_pairs == 0:
            self._keep_principal(space, directions, rows)
            self.n_iter_ = 0
            return
        inside, objective = self._problem(rows, space, known)
        start = starting_map(directions, inside, objective)
        with fitting_threads(inside.shape[0] * inside.shape[1] * len(start)):
            values = self._search(inside, objective, start, rng) if self.C == "auto" else [float(self.C)]
            solution = Solution(start, [])
            for C in values:
                solution = self._solve(LinearProblem(inside, replace(objective, C=C), self.reg), solution.L)
            L = _canonical(solution.L, space, inside, objective.pairs)
            self.ranking_ = as_numpy(embedded_ranking(inside @ like(inside, L).T, objective.pairs))
        if solution.disagreement > CONSENSUS or solution.slope > FLAT:
            warn_user(
                "alternating directions did not reach consensus: the copies of L differ by "
                f"{solution.disagreement:.1%} and the objective still slopes by {solution.slope:.2g} (0 is a minimum). "
                'Lower C, change mu, raise max_iter, or use solver="lbfgs".',
                ConvergenceWarning,
            )
        self.C_ = values[-1]
        self.loss_curve_ = solution.curve
        self.n_iter_ = len(solution.curve) - 1
        if self.solver == "admm":
            self.disagreement_ = solution.disagreement
        self.components_ = space.lift(L.T).astype(rows.dtype)

    def robustness(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        preferences: Preferences | None = None,
        groups: ArrayLike | None = None,
    ) -> Robustness:
        """Return the a, b and angle of Theorem 1 of the paper: how alike preferences are in the view.

        Parameters
        ----------
        X, y, preferences, groups
            As for :meth:`fit`.

        Returns
        -------
        robustness : Robustness
            `a` and `b`, the smallest and the largest distance of the two rows of a preference, and the largest `angle`
            between two preferences (of more than 5,000, that many evenly chosen ones).
        """
        Z = np.asarray(as_numpy(self.transform(X)), dtype=np.float64)
        known = combine_preferences(y, preferences, len(Z), groups=groups, max_pairs=self.max_pairs, random_state=0)
        if known.n_pairs == 0:
            raise InputError(
                "robustness needs at least one preference",
                argument="preferences",
                remedy="Give preferences=, or a y of two levels.",
            )
        return robustness(Z[known.pairs[:, 0]] - Z[known.pairs[:, 1]])

    def _problem(self, rows: Rows, space: RowSpace, known: Preferences) -> tuple[Rows, Objective]:
        """Return the rows that occur in preferences, in the coordinates of the problem, and the objective.

        Those of a tensor are on its device.
        """
        if not isinstance(rows, TensorRows):
            objective, used = self._objective(rows, known, 1.0)
            return space.rows[used].astype(np.float64), objective
        X = rows.tensor
        ends = like(X, known.pairs)
        used, local = ends.unique(return_inverse=True)
        # The coordinates of wide rows, which are few, come as an array.
        inside = space.rows.tensor if isinstance(space.rows, TensorRows) else like(X[:0].double(), space.rows)
        pairs = Pairs.of(local.view(ends.shape), len(used), like(X[:0].double(), known.weight))
        objective = self._objective_of(pairs, largest_differences_on_device(X, ends), 1.0)
        return inside[used].double(), objective

    def _read(self, X: Any, *, fitting: bool) -> Rows:
        return checked_rows(self, X, fitting=fitting, in_memory=not is_tensor(X))

    def _solve(self, problem: LinearProblem, start: Float64) -> Solution:
        if self.solver == "admm":
            return solve_admm(problem, start, self.max_iter, self.tol, self.mu)
        return solve_lbfgs(problem, start, self.max_iter, self.tol)

    def _search(self, rows: Rows, objective: Objective, start: Float64, rng: np.random.Generator) -> Sequence[float]:
        """Return the values of C up to the best one."""

        def path(train: NDArray[np.bool_]) -> Iterator[Callable[[Rows], Float64]]:
            part, L = objective.select(train), start
            for C in C_PATH:
                L = self._solve(LinearProblem(rows, replace(part, C=C), self.reg), L).L
                weights = embedded_ranking(rows @ like(rows, L).T, part.pairs) @ like(rows, L)
                yield lambda Z, w=weights: Z @ w  # type: ignore[misc]

        scores = held_out_scores(rows, objective.pairs, folds(objective.pairs, self.cv, rng), path)
        self.cv_scores_ = dict(zip(C_PATH, scores.tolist()))
        return C_PATH[: np.argmax(scores) + 1]


def _canonical(L: Float64, space: RowSpace, rows: Rows, pairs: Pairs) -> Float64:
    """Return L turned to uncorrelated components, largest variance first, with the better rows at the higher end.

    The objective does not see a rotation of the view, so without this the result would depend on the start.
    """
    _, turn = symmetric(L @ space.covariance() @ L.T)
    L = fix_signs(turn.T @ L)
    better = as_numpy(pairs.weight @ pairs.differences(rows @ like(rows, L).T))
    return L * np.where(better < 0, -1.0, 1.0)[:, None]


@dataclass(frozen=True)
class LinearProblem:
    """Compute J as a function of L of shape (d, n_coordinates), for rows in these coordinates."""

    rows: Rows
    objective: Objective
    reg: float

    def __call__(self, L: Float64) -> tuple[float, Float64]:
        """Return both terms and the ridge."""
        return self._ridge(L, *self.objective(self._embed(L)))

    def distance(self, L: Float64) -> tuple[float, Float64]:
        """Return the distance term and the ridge."""
        return self._ridge(L, *self.objective(self._embed(L), angle=False))

    def angle(self, L: Float64) -> tuple[float, Float64]:
        """Return the angle term alone."""
        value, gradient = self.objective(self._embed(L), distance=False)
        return value, self._pull(gradient)

    def _embed(self, L: Float64) -> Float64:
        return self.rows @ like(self.rows, L).T

    def _pull(self, gradient: Float64) -> Float64:
        """Return the gradient with respect to L from that with respect to the embedding."""
        return as_numpy(self.rows.T @ gradient).T

    def _ridge(self, L: Float64, value: float, gradient: Float64) -> tuple[float, Float64]:
        return value + 0.5 * self.reg * float(np.vdot(L, L)), self._pull(gradient) + self.reg * L


def starting_map(directions: Float64, rows: Rows, problem: Objective) -> Float64:
    """Return principal directions, scaled so that pairs are on average half of the distance margin apart."""
    xp = namespace(rows)
    differences = problem.pairs.differences(rows @ like(rows, directions).T)
    mean = float(problem.pairs.weight @ xp.sqrt(xp.einsum("ij,ij->i", differences, differences)))
    return directions * (0.5 * problem.gamma1 / mean) if mean > 0 else directions


def solve_lbfgs(problem: LinearProblem, start: Float64, max_iter: int, tol: float) -> Solution:
    """Minimise both terms together."""
    found = minimize(problem, start, max_iter, tol)
    return Solution(found.L, [problem(start)[0], *found.curve])


def solve_admm(problem: LinearProblem, start: Float64, max_iter: int, tol: float, mu: float) -> Solution:
    r"""Solve by alternating directions: L for the distance term, K for the angle term, :math:`\beta = \lambda / \mu`.

    The penalty :math:`\mu` is doubled while the copies are further apart than they move, and halved in the opposite
    case. Ends when the copies agree, and the angle copy stands still, to within the square root of `tol`, relative to
    the copies and to the multiplier.
    """
    L, K, beta = start, start, np.zeros_like(start)
    curve = [problem(start)[0]]
    disagreement, largest = np.inf, mu
    for _ in range(max_iter):
        L = minimize(_near(problem.distance, K - beta, mu), L, INNER_ITERATIONS, tol).L
        previous, K = K, minimize(_near(problem.angle, L + beta, mu), K, INNER_ITERATIONS, tol).L
        beta = beta + L - K
        curve.append(problem(K)[0])
        apart, moved = float(np.linalg.norm(L - K)), float(np.linalg.norm(K - previous))
        disagreement = apart / max(float(np.linalg.norm(L)), np.finfo(float).tiny)
        if disagreement <= np.sqrt(tol) and moved <= np.sqrt(tol) * float(np.linalg.norm(beta)):
            break
        factor = 2.0 if apart > BALANCE * moved else 0.5 if moved > BALANCE * apart else 1.0
        factor = min(factor, largest / mu)
        mu, beta = mu * factor, beta / factor
    value, gradient = problem(K)
    slope = float(np.linalg.norm(gradient) * np.linalg.norm(K)) / max(value, np.finfo(float).tiny)
    return Solution(K, curve, disagreement, slope)


def _near(term: ValueAndGradient, centre: Float64, mu: float) -> ValueAndGradient:
    """Return a term plus ``mu / 2 |A - centre|^2``."""

    def function(A: Float64) -> tuple[float, Float64]:
        value, gradient = term(A)
        offset = A - centre
        return value + 0.5 * mu * float(np.vdot(offset, offset)), gradient + mu * offset

    return function
