"""WSDR: a linear view in which preferences are far apart and point the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import singledispatchmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from pairlens._sklearn import Interval, StrOptions
from pairlens._warnings import warn_user
from pairlens.engines import Float64, Rows, checked_rows, fitting_threads, is_tensor
from pairlens.engines.torch import TensorRows
from pairlens.preference._arrays import as_numpy, like
from pairlens.preference._base import C_PATH, MarginTransformer
from pairlens.preference.linear import LinearProblem, Solution, solve_admm, solve_lbfgs, starting_map
from pairlens.preference.metric import LinearView
from pairlens.preference.objective import Objective
from pairlens.preference.pairs import Pairs, TorchPairs, largest_differences_on_device
from pairlens.preference.ranking import embedded_ranking, folds, select
from pairlens.spectral.rowspace import RowSpace, fix_signs, symmetric
from pairlens.supervision import Preferences

CONSENSUS = 1e-2
FLAT = 0.1
"""Disagreement of the two copies of alternating directions, and slope where they end, that are worth a warning."""


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
    random_state : int, RandomState, Generator or None, default=None
        For the draws and the folds.

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

    Of a torch tensor, value and gradient of the objective and the ranking are computed on its device in float64; the
    L-BFGS steps are those of SciPy on the small L. The result agrees with that of the same rows as a NumPy array to
    about 1e-8 where the solver converges; where it stops on the way, as far as with rows in another order. On a GPU the
    order of sums, and with it the last digits, may change from run to run.

    References
    ----------
    .. [1] Chang Xu, Dacheng Tao, Chao Xu, Yong Rui, "Large-margin weakly supervised dimensionality reduction",
       ICML 2014.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MarginTransformer._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "reg": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"lbfgs", "admm"})],
        "mu": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma1: float = 1.0,
        gamma2: float = 1.0,
        C: float | str = 1.0,
        reg: float = 0.1,
        sigma: float = 0.1,
        angle_loss: str = "hinge",
        solver: str = "lbfgs",
        mu: float = 100.0,
        max_iter: int = 40,
        tol: float = 1e-8,
        max_pairs: int = 200_000,
        combinations: int | str = "auto",
        cv: int = 5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.C = C
        self.reg = reg
        self.sigma = sigma
        self.angle_loss = angle_loss
        self.solver = solver
        self.mu = mu
        self.max_iter = max_iter
        self.tol = tol
        self.max_pairs = max_pairs
        self.combinations = combinations
        self.cv = cv
        self.random_state = random_state

    def _learn(self, rows: Rows, known: Preferences, rng: np.random.Generator) -> None:
        space, directions = self._start(rows, known)
        if known.n_pairs == 0:
            self._keep_principal(space, directions, rows)
            self.n_iter_ = 0
            return
        inside, objective = self._problem(rows, space, known, rng)
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

    @singledispatchmethod
    def _problem(
        self, rows: Rows, space: RowSpace, known: Preferences, rng: np.random.Generator
    ) -> tuple[Rows, Objective]:
        """Return the rows that occur in preferences, in the coordinates of the problem, and the objective."""
        objective, used = self._objective(rows, known, 1.0, rng)
        return space.rows[used].astype(np.float64), objective

    @_problem.register(TensorRows)
    def _problem_on_device(
        self, rows: TensorRows, space: RowSpace, known: Preferences, rng: np.random.Generator
    ) -> tuple[Rows, Objective]:
        """Return the same on the device of a tensor."""
        X = rows.tensor
        ends = like(X, known.pairs)
        used, local = ends.unique(return_inverse=True)
        shifts = self._shifts(known.n_pairs, rng)
        # The coordinates of wide rows, which are few, come as an array.
        inside = space.rows.tensor if isinstance(space.rows, TensorRows) else like(X[:0].double(), space.rows)
        pairs: Any = TorchPairs.of(local.view(ends.shape), len(used), like(X[:0].double(), known.weight))
        placed = None if shifts is None else (like(X, shifts[0]), shifts[1])
        objective = self._objective_of(pairs, largest_differences_on_device(X, ends), 1.0, placed)
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
            part, L = objective.select(train, self._shifts(int(train.sum()), rng)), start
            for C in C_PATH:
                L = self._solve(LinearProblem(rows, replace(part, C=C), self.reg), L).L
                weights = embedded_ranking(rows @ like(rows, L).T, part.pairs) @ like(rows, L)
                yield lambda Z, w=weights: Z @ w  # type: ignore[misc]

        found = select(rows, objective.pairs, folds(objective.pairs, self.cv, rng), path)
        self.cv_scores_ = dict(zip(C_PATH, found.scores.tolist()))
        return C_PATH[: found.best + 1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _canonical(L: Float64, space: RowSpace, rows: Rows, pairs: Pairs) -> Float64:
    """Return L turned to uncorrelated components, largest variance first, with the better rows at the higher end.

    The objective does not see a rotation of the view, so without this the result would depend on the start.
    """
    _, turn = symmetric(L @ space.covariance() @ L.T)
    L = fix_signs(turn.T @ L)
    better = as_numpy(pairs.weight @ pairs.differences(rows @ like(rows, L).T))
    return L * np.where(better < 0, -1.0, 1.0)[:, None]
