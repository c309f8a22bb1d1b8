"""What the papers prove, tried on random numbers: propositions, theorems and the figures that explain a method.

These checks need no stored results. Their numbers are counts and bounds, so that they are the same on every machine.
"""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from pairlens import WSDR, Preferences
from pairlens.kernels import must_link_null_space, projected_kernel
from pairlens.methods.bwdr import compress_within, stretch_between
from pairlens.preference.wsdr import Robustness, robustness
from reproduction.checks import IN_PART, Verdict
from reproduction.experiment import Array
from reproduction.results import Results

CASES = 50
EXACT = 1e-8


def _scatters(seed: int, p: int = 8) -> tuple[Array, Array, np.random.Generator]:
    """Return two random scatters of full rank."""
    rng = np.random.default_rng(seed)
    one, two = (rng.standard_normal((40, p)) * rng.uniform(0.2, 3, p) for _ in range(2))
    return one.T @ one, two.T @ two, rng


def _directions(rng: np.random.Generator, p: int, k: int) -> Array:
    return np.linalg.qr(rng.standard_normal((p, k)))[0]


def stretched_basis(S_B: Array, i: int) -> tuple[Array, float]:
    """Return the V_s of equation 6 for the i leading eigenvectors, and the largest eigenvalue."""
    values, vectors = np.linalg.eigh(S_B)
    values, vectors = values[::-1], vectors[:, ::-1]
    return vectors[:, :i] * np.sqrt(values[0] / values[:i]), float(values[0])


def compressed_basis(S_W: Array, i: int) -> tuple[Array, float]:
    """Return the V_c of equation 10, and the i-th eigenvalue."""
    values, vectors = np.linalg.eigh(S_W)
    values, vectors = values[::-1], vectors[:, ::-1]
    scale = np.where(np.arange(len(values)) < i, np.sqrt(values[i - 1] / values), 1.0)
    return vectors * scale, float(values[i - 1])


def _tried(good: list[bool], what: str) -> Verdict:
    return all(good), f"{what} in {sum(good)} of {len(good)} random cases"


def proposition_1(_results: Results) -> Verdict:
    """After stretching the between-class difference is the largest eigenvalue in every direction."""
    good = []
    for seed in range(CASES):
        _, S_B, rng = _scatters(seed)
        V, largest = stretched_basis(S_B, 5)
        w = _directions(rng, 5, 1)
        good.append(abs(float((w.T @ V.T @ S_B @ V @ w).item()) / largest - 1) < EXACT)
    return _tried(good, "equal to 1e-8")


def proposition_2(_results: Results) -> Verdict:
    """And its sum over K orthonormal directions does not depend on them."""
    good = []
    for seed in range(CASES):
        _, S_B, rng = _scatters(seed)
        V, largest = stretched_basis(S_B, 6)
        totals = [float(np.trace(U.T @ V.T @ S_B @ V @ U)) for U in (_directions(rng, 6, 3), _directions(rng, 6, 3))]
        good.append(max(abs(total / (3 * largest) - 1) for total in totals) < EXACT)
    return _tried(good, "equal to 1e-8")


def theorem_3(_results: Results) -> Verdict:
    """BWDR's directions have the least within-class difference of all, at equal between-class difference."""
    good = []
    for seed in range(CASES):
        S_W, S_B, rng = _scatters(seed)
        V, largest = stretched_basis(S_B, 8)
        (_, A), _ = stretch_between(S_W, S_B, 3, 1.0)
        U = V @ _directions(rng, 8, 3)
        least = float(np.trace(A.T @ S_W @ A))
        equal = abs(float(np.trace(A.T @ S_B @ A)) / (3 * largest) - 1) < EXACT
        good.append(equal and least <= float(np.trace(U.T @ S_W @ U)) * (1 + EXACT))
    return _tried(good, "no other directions are better")


def proposition_4(_results: Results) -> Verdict:
    """After compressing the within-class difference is at most the i-th eigenvalue, and equal to it for i = p."""
    good = []
    for seed in range(CASES):
        S_W, _, rng = _scatters(seed)
        w = _directions(rng, 8, 1)
        for i in (4, 8):
            V, level = compressed_basis(S_W, i)
            found = float((w.T @ V.T @ S_W @ V @ w).item()) / level
            good.append(found <= 1 + EXACT if i < 8 else abs(found - 1) < EXACT)
    return _tried(good, "bounded, and equal for i = p,")


def proposition_6(_results: Results) -> Verdict:
    """The within-class difference of K orthonormal directions is at most K times the i-th eigenvalue."""
    good = []
    for seed in range(CASES):
        S_W, _, rng = _scatters(seed)
        V, level = compressed_basis(S_W, 4)
        U = _directions(rng, 8, 3)
        good.append(float(np.trace(U.T @ V.T @ S_W @ V @ U)) <= 3 * level * (1 + EXACT))
    return _tried(good, "bounded")


def theorem_7(_results: Results) -> Verdict:
    """WBDR's directions have the most between-class difference, and within-class difference at most K lambda_i away."""
    good = []
    for seed in range(CASES):
        S_W, S_B, rng = _scatters(seed)
        for threshold in (0.9, 1.0):
            share = np.cumsum(np.linalg.eigvalsh(S_W)[::-1]) / np.trace(S_W)
            i = max(3, int(np.count_nonzero(share <= threshold + 1e-12)))
            V, level = compressed_basis(S_W, i)
            _, A = compress_within(S_W, S_B, 3, threshold)
            U = V @ _directions(rng, 8, 3)
            apart = abs(float(np.trace(A.T @ S_W @ A) - np.trace(U.T @ S_W @ U)))
            most = float(np.trace(A.T @ S_B @ A)) >= float(np.trace(U.T @ S_B @ U)) * (1 - EXACT)
            good.append(most and apart <= (3 * level if i < 8 else EXACT * level) * (1 + EXACT))
    return _tried(good, "no other directions are better")


def must_links_collapse(_results: Results) -> Verdict:
    """In the null space of the must-link differences every must-linked pair is one point."""
    good = []
    for seed in range(CASES):
        rng = np.random.default_rng(seed)
        X, groups = rng.standard_normal((30, 4)), rng.integers(-1, 4, 30)
        K = projected_kernel(X, X, must_link_null_space(X, groups, gamma=0.5))
        same = (groups[:, None] == groups) & (groups >= 0)[:, None]
        squared = np.diag(K)[:, None] + np.diag(K) - 2 * K
        good.append(float(np.abs(squared[same]).max(initial=0.0)) < 1e-6)
    return _tried(good, "distances below 1e-3")


def projection_is_optimal(_results: Results) -> Verdict:
    """Of all projections that make must-linked rows coincide, P keeps most of every point."""
    good = []
    for seed in range(CASES):
        rng = np.random.default_rng(seed)
        M, X = rng.standard_normal((3, 7)), rng.standard_normal((40, 7))
        P = np.eye(7) - M.T @ np.linalg.pinv(M @ M.T) @ M
        # Any other: P after one more projection, along a direction of what P leaves.
        v = P @ rng.standard_normal(7)
        other = P - np.outer(v, v) / (v @ v)
        lost, more = (np.linalg.norm(X - X @ Q, axis=1) for Q in (P, other))
        kept = np.linalg.norm(X @ P, axis=1) >= np.linalg.norm(X @ other, axis=1) - 1e-12
        good.append(bool(np.all(lost <= more + 1e-12) and np.all(kept)))
    return _tried(good, "no other keeps more")


def input_space_collapses(_results: Results) -> Verdict:
    """With more must-links than features less one, the projection in the input space makes all points one."""
    good = []
    for seed in range(CASES):
        rng = np.random.default_rng(seed)
        f = 5
        X = rng.standard_normal((40, f))
        pairs = np.repeat(np.arange(f), 2)
        groups = np.concatenate([pairs, np.full(40 - 2 * f, -1)])
        K = projected_kernel(X, X, must_link_null_space(X, groups, kernel="linear", gamma=None))
        good.append(float(np.abs(K).max()) < 1e-8)
    return _tried(good, "all points one")


def quadratic_points() -> tuple[Array, Array]:
    """Return 36 points on a line in two clusters that no threshold separates, as in DSP's Figures 1 and 2."""
    inner, outer = np.linspace(-0.9, 0.9, 18), np.linspace(1.2, 2.0, 9)
    x = np.concatenate([inner, -outer[::-1], outer])
    return x, np.repeat([0, 1], 18)


GOOD_LINK, BAD_LINK = (18, 35), (27, 31)
"""The two outermost points of the outer cluster, which lie on either side; and two of one side of it."""


def null_space_values(link: tuple[int, int]) -> Array:
    """Return the points of :func:`quadratic_points` in the null space of one must-link, for phi(x) = [x, x^2]."""
    x, _ = quadratic_points()
    phi = np.column_stack([x, x**2])
    difference = phi[link[1]] - phi[link[0]]
    normal = np.array([-difference[1], difference[0]]) / np.linalg.norm(difference)
    values: Array = phi @ normal
    return values


def _misplaced(link: tuple[int, int]) -> int:
    """Return how many points the best threshold in the null space leaves on the wrong side."""
    values, (_, y) = null_space_values(link), quadratic_points()
    order = y[np.argsort(values, kind="stable")]
    left = np.concatenate([[0], np.cumsum(order)])
    wrong = left + np.arange(len(y), -1, -1) - (y.sum() - left)
    return int(min(wrong.min(), (len(y) - wrong).min()))


def figure_1(_results: Results) -> Verdict:
    """A must-link across the outer cluster separates the clusters in the null space."""
    wrong = _misplaced(GOOD_LINK)
    return wrong == 0, f"{wrong} of 36 points on the wrong side of the best threshold in the null space"


def figure_2(_results: Results) -> Verdict:
    """Another must-link mixes them, although its own points coincide."""
    wrong = _misplaced(BAD_LINK)
    return wrong > 0, f"{wrong} of 36 points on the wrong side of the best threshold in the null space"


def robustness_bound(_results: Results) -> Verdict:
    """Theorem 1 of WSDR for random preferences: with angles up to 90 degrees, and with larger ones."""
    kept = {True: 0, False: 0}
    total = {True: 0, False: 0}
    for seed in range(40 * CASES):
        rng = np.random.default_rng(seed)
        q = rng.standard_normal((2, 3)) * rng.uniform(0.1, 3, (2, 1))
        w = rng.standard_normal(3)
        lengths = np.linalg.norm(q, axis=1)
        cosine = float(q[0] @ q[1] / lengths.prod())
        # The interval of lengths holds those of the two pairs, as it must.
        a, b = float(lengths.min()), float(lengths.max())
        bound = float(np.linalg.norm(w)) * np.sqrt(max(2 * b**2 - 2 * a**2 * cosine, 0.0))
        losses = np.maximum(1 - q @ w, 0)
        total[cosine >= 0] += 1
        kept[cosine >= 0] += bool(abs(losses[0] - losses[1]) <= bound + 1e-12)
    counter = counter_example()
    words = (
        f"kept in {kept[True]} of {total[True]} random pairs of preferences up to 90 degrees apart, and in "
        f"{kept[False]} of {total[False]} further apart, with a and b the lengths of the two, but if a third, shorter "
        f"preference sets a, the losses of two opposite ones differ by {counter[0]:.2f} where the bound says "
        f"{counter[1]:.2f}"
    )
    return IN_PART if kept[True] == total[True] else False, words


def counter_example() -> tuple[float, float]:
    """Return the difference of two losses and the bound of Theorem 1, which it exceeds: angles above 90 degrees.

    Lengths are in [a, b] = [0.1, 0.5] because of a third preference; the two compared have length b and point opposite
    ways. With cos(theta) below 0 the bound would need b in place of a.
    """
    a, b, w = 0.1, 0.5, 1.0
    losses = 1 - w * b, 1 + w * b
    return losses[1] - losses[0], w * float(np.sqrt(2 * b**2 - 2 * a**2 * -1.0))


def concentration(_results: Results) -> Verdict:
    """Proposition 1 of WSDR: multinomial shares exceed the bound in no more than the share delta of draws."""
    rng, n, delta = np.random.default_rng(0), 200, 0.1
    worst = 0.0
    for K in (2, 5, 10):
        shares = rng.dirichlet(np.ones(K))
        bound = np.sqrt((2 * K * np.log(2) + 2 * np.log(1 / delta)) / n)
        draws = rng.multinomial(n, shares, 2000) / n
        worst = max(worst, float(np.mean(np.abs(draws - shares).sum(axis=1) > bound)))
    return worst <= delta, f"exceeded in at most {worst:.3f} of the draws, allowed {delta}"


def theorem_2(_results: Results) -> Verdict:
    """Training and true loss of a ranking along the mean preference, with K sectors of a circle as the partition."""
    K, n, delta, a, b = 8, 200, 0.1, 0.9, 1.0
    epsilon = Robustness(a, b, 2 * np.pi / K).bound(1.0)
    bound = epsilon + 2 * (1 + b) * float(np.sqrt((2 * K * np.log(2) + 2 * np.log(1 / delta)) / n))
    gaps = []
    for seed in range(CASES):
        rng = np.random.default_rng(seed)
        angle = rng.vonmises(0.0, 1.0, n + 20_000)
        steps = rng.uniform(a, b, (len(angle), 1)) * np.column_stack([np.cos(angle), np.sin(angle)])
        w = steps[:n].mean(axis=0)
        losses = np.maximum(1 - steps @ (w / np.linalg.norm(w)), 0)
        gaps.append(abs(float(losses[n:].mean() - losses[:n].mean())))
    good = sum(gap <= bound for gap in gaps)
    words = (
        f"kept in {good} of {CASES} random cases, but loose: the losses differ by at most {max(gaps):.2f}, the bound"
    )
    return good >= (1 - delta) * CASES, f"{words} says {bound:.2f}"


def view_is_more_robust(_results: Results) -> Verdict:
    """Preferences in the view of WSDR have smaller angles than in that of PCA, most of them or the largest as well."""
    most, largest = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 6))
        pairs = Preferences.from_scores(X @ rng.standard_normal(6), n_pairs=60, random_state=seed)
        views = (WSDR(2).fit(X, preferences=pairs).transform(X), PCA(2, svd_solver="full").fit_transform(X))
        steps = [Z[pairs.pairs[:, 0]] - Z[pairs.pairs[:, 1]] for Z in views]
        unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in steps]
        ours, theirs = (float(np.median(part @ part.T)) for part in unit)
        most.append(ours > theirs)
        ours, theirs = (robustness(part).angle for part in steps)
        largest.append(ours < theirs - 0.1)
    words = (
        f"the median angle between preferences is smaller than in principal components in {sum(most)} of {len(most)} "
        "random cases, but not always the largest angle, on which the bound depends: one preference against the others "
        "keeps it near 180 degrees"
    )
    return all(most) and (all(largest) or IN_PART), words
