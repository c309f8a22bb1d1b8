r"""Minimising the large-margin objective over linear maps :math:`z = L x`, with a ridge on L.

Two solvers: limited-memory BFGS on both terms together, and the paper's alternating directions, which give each term
its own copy of L (eq. 9-11) and pull the copies together.

The rows may be a torch tensor. L is small and stays with SciPy's optimiser in this process; only value and gradient are
computed where the rows are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairlens.engines import Float64, Rows
from pairlens.preference._arrays import as_numpy, like, namespace
from pairlens.preference.objective import Objective

INNER_ITERATIONS = 10
"""Steps in each of the two problems of a round of alternating directions."""

BALANCE = 10.0
"""Ratio of disagreement to movement, or the other way round, beyond which the penalty changes."""

Function = Callable[[Float64], tuple[float, Float64]]


@dataclass(frozen=True)
class LinearProblem:
    """J as a function of L of shape (d, n_coordinates), for rows in these coordinates."""

    rows: Rows
    objective: Objective
    reg: float

    def __call__(self, L: Float64) -> tuple[float, Float64]:
        """Return both terms and the ridge."""
        return self._ridge(L, *self.objective(self._embed(L)))

    def distance(self, L: Float64) -> tuple[float, Float64]:
        """Return the distance term and the ridge."""
        return self._ridge(L, *self.objective.terms(self._embed(L), angle=False))

    def angle(self, L: Float64) -> tuple[float, Float64]:
        """Return the angle term alone."""
        value, gradient = self.objective.terms(self._embed(L), distance=False)
        return value, self._pull(gradient)

    def _embed(self, L: Float64) -> Float64:
        return self.rows @ like(self.rows, L).T

    def _pull(self, gradient: Float64) -> Float64:
        """Return the gradient with respect to L from that with respect to the embedding."""
        return as_numpy(self.rows.T @ gradient).T

    def _ridge(self, L: Float64, value: float, gradient: Float64) -> tuple[float, Float64]:
        return value + 0.5 * self.reg * float(np.vdot(L, L)), self._pull(gradient) + self.reg * L


@dataclass(frozen=True)
class Solution:
    """A map, and the objective after each iteration.

    Of alternating directions also how far the two copies are apart, relative to L, and how far the objective is from
    flat there: the size of its gradient times that of L, relative to the objective.
    """

    L: Float64
    curve: list[float]
    disagreement: float = 0.0
    slope: float = 0.0


def starting_map(directions: Float64, rows: Rows, problem: Objective) -> Float64:
    """Return principal directions, scaled so that pairs are on average half of the distance margin apart."""
    xp = namespace(rows)
    differences = problem.pairs.differences(rows @ like(rows, directions).T)
    mean = float(problem.pairs.weight @ xp.sqrt(xp.einsum("ij,ij->i", differences, differences)))
    return directions * (0.5 * problem.gamma1 / mean) if mean > 0 else directions


def minimize(function: Function, start: Float64, max_iter: int, tol: float, *, lowest: float | None = None) -> Solution:
    """Minimise a function of a matrix by limited-memory BFGS, whose entries may have a lower bound."""
    from scipy import optimize

    def flat(x: Float64) -> tuple[float, Float64]:
        value, gradient = function(x.reshape(start.shape))
        return value, gradient.ravel()

    curve: list[float] = []

    def note(intermediate_result: optimize.OptimizeResult) -> None:
        curve.append(float(intermediate_result.fun))

    found = optimize.minimize(
        flat,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=None if lowest is None else [(lowest, None)] * start.size,
        callback=note,
        options={"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": tol, "gtol": 1e-3 * tol},
    )
    return Solution(found.x.reshape(start.shape), curve)


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


def _near(term: Function, centre: Float64, mu: float) -> Function:
    """Return a term plus ``mu / 2 |A - centre|^2``."""

    def function(A: Float64) -> tuple[float, Float64]:
        value, gradient = term(A)
        offset = A - centre
        return value + 0.5 * mu * float(np.vdot(offset, offset)), gradient + mu * offset

    return function
