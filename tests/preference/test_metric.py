"""The metric learners: gradients by finite differences, slow oracles, and what metric-learn 0.7.0 found."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from pairlens import ITML, LMCA, LMNN, LSML, MLKR, RCA, SCML, Constraints, Quadruplets, Triplets
from pairlens.exceptions import ArgumentError, InputError, SupervisionWarning
from pairlens.preference.comparing import ComparisonResidual, comparison_accuracy
from pairlens.preference.lmca import ComparisonMargin, LargeMarginNeighbours, target_neighbours
from pairlens.preference.metric import BoundedPairs, KernelRegression, comparison_pairs, log_det_penalty
from pairlens.preference.objective import Pairs

FIXTURE = Path(__file__).parents[1] / "fixtures" / "metric_learn.npz"
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _own_random_numbers(monkeypatch):
    """Each test draws the same numbers, whichever tests ran before it."""
    monkeypatch.setitem(globals(), "RNG", np.random.default_rng(0))


Z = RNG.standard_normal((12, 3))
Y = np.array([0, 1, 2] * 4)


@pytest.fixture(scope="module")
def recorded():
    """Rows, answers, and the maps of metric-learn; benchmarks/bench_metric_learn.py made them."""
    with np.load(FIXTURE) as stored:
        return dict(stored)


def by_distance(X, n_triplets):
    """Random triplets that the distances of X answer."""
    drawn = np.argsort(np.random.default_rng(0).random((n_triplets, len(X))), axis=1)[:, :3]
    a, near, far = drawn.T
    swapped = np.linalg.norm(X[a] - X[far], axis=1) < np.linalg.norm(X[a] - X[near], axis=1)
    return Triplets(np.where(swapped[:, None], drawn[:, [0, 2, 1]], drawn), len(X))


def objectives():
    answers = Triplets.from_labels(Y, n_triplets=40, random_state=0).merge(
        Triplets.from_labels(Y, n_triplets=20, random_state=1)
    )
    pairs = comparison_pairs(answers)
    must = np.arange(30) < 15
    some = np.stack([RNG.integers(0, 6, 30), RNG.integers(6, 12, 30)], axis=1)
    return {
        "margin": ComparisonMargin(*pairs, c=2.0, sigma=0.3),
        "residual": ComparisonResidual(*pairs),
        "bounds": BoundedPairs(
            Pairs.of(some, 12), np.where(must, 2.0, 9.0), np.where(must, 1.0, -1.0), RNG.random(30), 0.7
        ),
        "kernel regression": KernelRegression(RNG.standard_normal(12)),
        "neighbours": LargeMarginNeighbours(target_neighbours(Z, Y, 2), Y, 1.5, 0.2),
    }


@pytest.mark.parametrize("name", list(objectives()))
def test_gradients(name):
    objective = objectives()[name]
    value, gradient = objective(Z)
    assert gradient.shape == Z.shape
    numeric = approx_fprime(Z.ravel(), lambda z: objective(z.reshape(Z.shape))[0], 1e-7)
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=2e-5 * max(1.0, np.abs(numeric).max()))
    assert value > 0


def test_gradient_of_the_penalty():
    L = np.eye(3) + 0.2 * RNG.standard_normal((3, 3))
    value, gradient = log_det_penalty(L)
    numeric = approx_fprime(L.ravel(), lambda x: log_det_penalty(x.reshape(3, 3))[0], 1e-7)
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=1e-5)
    assert value > 0
    assert log_det_penalty(np.eye(3))[0] == pytest.approx(0, abs=1e-14)
    assert log_det_penalty(np.zeros((3, 3)))[0] == np.inf


def hinge(t):
    return max(t, 0.0)


def distance(L, x, y):
    return float(np.sum((L @ (x - y)) ** 2))


def lmnn_loss(L, X, y, targets, push=0.5):
    """The objective of metric-learn's LMNN, by its definition."""
    D = np.sum(((X @ L.T)[:, None] - X @ L.T) ** 2, axis=2)
    value = 0.0
    for i, j in targets:
        value += (1 - push) * D[i, j]
        value += push * np.maximum(1 + D[i, j] - D[i, y != y[i]], 0).sum()
    return value


def mlkr_loss(L, X, target):
    D = np.sum(((X @ L.T)[:, None] - X @ L.T) ** 2, axis=2)
    np.fill_diagonal(D, np.inf)
    K = np.exp(-(D - D.min(axis=1, keepdims=True)))
    return float(np.sum((K @ target / K.sum(axis=1) - target) ** 2))


def lsml_loss(L, X, quadruplets):
    residuals = [hinge(distance(L, X[a], X[b]) ** 0.5 - distance(L, X[c], X[d]) ** 0.5) for a, b, c, d in quadruplets]
    M = L.T @ L
    return float(np.mean(np.square(residuals)) + np.trace(M) - np.linalg.slogdet(M)[1])


def itml_loss(L, X, pairs, signs, bounds, gamma=1.0):
    M = L.T @ L
    value = np.trace(M) - np.linalg.slogdet(M)[1]
    for (a, b), sign in zip(pairs, signs):
        d, bound = distance(L, X[a], X[b]), bounds[0] if sign > 0 else bounds[1]
        if sign * (d - bound) > 0:
            value += gamma * (d / bound - 1 - np.log(d / bound))
    return float(value)


def test_objectives_by_their_definitions():
    L = np.eye(3)
    targets = target_neighbours(Z, Y, 2)
    found = LargeMarginNeighbours(targets, Y, 1.0, 0.0)(Z)[0] * len(targets) / 2
    assert found == pytest.approx(lmnn_loss(L, Z, Y, targets))
    target = RNG.standard_normal(12)
    assert KernelRegression(target)(Z)[0] == pytest.approx(mlkr_loss(L, Z, target))
    some = by_distance(Z, 30).to_quadruplets().flip(0.5, random_state=0)
    residual = ComparisonResidual(*comparison_pairs(some))(Z)[0]
    assert residual + 3 == pytest.approx(lsml_loss(L, Z, some.quadruplets))


def test_lmnn_is_no_worse_than_theirs(recorded):
    X, y = recorded["X"], recorded["y"]
    targets = target_neighbours(X, y, 3)
    ours = lmnn_loss(LMNN(None, max_iter=300).fit(X, y).components_, X, y, targets)
    assert ours <= lmnn_loss(recorded["components/LMNN"], X, y, targets) * (1 + 1e-3)


def test_mlkr_is_no_worse_than_theirs(recorded):
    X, target = recorded["X"], recorded["target"]
    ours = mlkr_loss(MLKR(None, max_iter=1000, tol=1e-9).fit(X, target).components_, X, target)
    assert ours <= mlkr_loss(recorded["components/MLKR"], X, target) * (1 + 1e-3)


def test_lsml_is_no_worse_than_theirs_and_unique(recorded):
    X, given = recorded["X"], recorded["quadruplets"]
    answers = Quadruplets(given, len(X))
    L = LSML(None, max_iter=500, tol=1e-12).fit(X, quadruplets=answers).components_
    assert lsml_loss(L, X, given) <= lsml_loss(recorded["components/LSML"], X, given) + 1e-3
    # The problem is convex in M: another start, by turned features, finds the same metric.
    turn = np.linalg.qr(RNG.standard_normal((12, 12)))[0]
    other = LSML(None, max_iter=500, tol=1e-12).fit(X @ turn, quadruplets=answers).components_ @ turn.T
    np.testing.assert_allclose(L.T @ L, other.T @ other, atol=1e-4)


def test_itml_agrees_with_theirs(recorded):
    X, pairs, signs, bounds = (recorded[name] for name in ("X", "pairs", "signs", "bounds"))
    known = Constraints(pairs[signs == 1], pairs[signs == -1], len(X), on_conflict="warn")
    L = ITML(None, bounds=tuple(bounds), max_iter=1000, tol=1e-14).fit(X, constraints=known).components_
    theirs = recorded["components/ITML"]
    assert itml_loss(L, X, pairs, signs, bounds) <= itml_loss(theirs, X, pairs, signs, bounds) + 1e-3
    np.testing.assert_allclose(L.T @ L, theirs.T @ theirs, atol=2e-3)


def test_rca_agrees_with_theirs(recorded):
    X = recorded["X"]
    known = Constraints.from_chunklets(recorded["chunks"])
    L, theirs = RCA(12).fit(X, constraints=known).components_, recorded["components/RCA"]
    ours, other = L.T @ L, theirs.T @ theirs
    np.testing.assert_allclose(ours / np.trace(ours), other / np.trace(other), atol=2e-3)


def test_scml_learns_from_triplets(recorded):
    X, given = recorded["X"], recorded["triplets"]
    answers = Triplets(given, len(X))
    train, test = next(answers.split(3, random_state=0))
    ours = SCML(None, random_state=0).fit(X, triplets=train)
    assert ours.score(X, triplets=test) > comparison_accuracy(X, test)
    theirs = comparison_accuracy(X @ recorded["components/SCML"].T, answers)
    assert SCML(None, random_state=0).fit(X, triplets=answers).score(X, triplets=answers) >= theirs - 0.01
    assert (ours.weights_ >= 0).all()
    sparse = SCML(None, beta=0.01, random_state=0).fit(X, triplets=train).weights_
    assert (sparse == 0).mean() > max(0.5, (ours.weights_ == 0).mean())


def test_scml_minimises_its_objective():
    """The weights are optimal: the gradient is 0 where they are positive, and not negative where they are 0."""
    X = RNG.standard_normal((60, 4))
    answers = by_distance(X * [1, 1, 0, 0], 300)
    model = SCML(None, n_regions=3, tol=1e-13, max_iter=2000, random_state=0).fit(X, triplets=answers)
    assert model.score(X, triplets=answers) > 0.9
    more = SCML(None, n_regions=3, tol=1e-13, max_iter=4000, random_state=0).fit(X, triplets=answers)
    assert more.loss_curve_[-1] == pytest.approx(model.loss_curve_[-1], rel=1e-5)


def test_lmca_takes_triplets():
    """A triplet is what a target neighbour and an impostor are, so all of them make the objective of the classes."""
    X = RNG.standard_normal((30, 5)) + 2 * np.eye(3, 5)[np.repeat([0, 1, 2], 10)]
    X *= [1, 1, 1, 3, 3]
    y = np.repeat([0, 1, 2], 10)
    answers = Triplets.from_labels(y)
    plain = comparison_accuracy(LMCA(2).fit(X, y).transform(X), answers)
    found = LMCA(2).fit(X, triplets=answers)
    assert comparison_accuracy(found.transform(X), answers) > max(0.9, comparison_accuracy(X, answers), plain - 0.05)
    both = LMCA(2).fit(X, y, triplets=answers)
    assert both.loss_curve_[0] > found.loss_curve_[0]
    targets = target_neighbours(X, y, 3)
    start = LMCA(2, max_iter=1).fit(X, y).loss_curve_[0]
    assert both.loss_curve_[0] == pytest.approx(start + found.loss_curve_[0])
    assert len(targets) == 90


@pytest.mark.parametrize("cls", [LMNN, LSML, SCML, ITML, LMCA, MLKR])
def test_whole_metric_and_views(cls):
    X = RNG.standard_normal((40, 5))
    y = np.repeat([0, 1], 20)
    X[y == 1, 0] += 3
    seed = {"random_state": 0} if "random_state" in cls().get_params() else {}
    whole = cls(None, **seed).fit(X, y)
    assert whole.components_.shape == (5, 5)
    view = whole.transform(X)
    covariance = np.cov(view.T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-8 * covariance.max())
    assert (np.diff(np.diag(covariance)) <= 1e-8).all()
    two = cls(2, **seed).fit(X, y)
    assert two.components_.shape == (2, 5)
    if cls not in (LMCA, MLKR):
        np.testing.assert_allclose(two.components_, whole.components_[:2], atol=1e-8)
    with pytest.raises(ArgumentError, match="n_components must be at most the number of features, 5; got 6"):
        cls(6).fit(X, y)
    with pytest.warns(SupervisionWarning):
        cls(2).fit(X)
    # Fewer rows than features, and sparse rows.
    from scipy import sparse

    wide = RNG.standard_normal((12, 30))
    narrow = cls(2, **seed).fit(wide, y[14:26]).transform(wide)
    spare = cls(2, **seed).fit(sparse.csr_matrix(wide), y[14:26]).transform(sparse.csr_matrix(wide))
    np.testing.assert_allclose(spare, narrow, atol=1e-5 * np.abs(narrow).max())


def test_answers_are_routed():
    import sklearn
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = RNG.standard_normal((60, 4))
    answers = by_distance(X * [3, 1, 0, 0], 3000)
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(SCML(2, random_state=0), X, params={"triplets": answers}, cv=3)
        fitted = make_pipeline(StandardScaler(), LSML(2)).fit(X, triplets=answers)
    assert scores.min() > 0.7
    assert fitted.transform(X).shape == (60, 2)


@pytest.mark.parametrize(
    ("cls", "remedy"),
    [
        (LSML, "comparisons by triplets= or quadruplets=, or classes by y=."),
        (SCML, "comparisons by triplets= or quadruplets=, or classes by y=."),
        (MLKR, "numbers by y=."),
        (LMNN, "must-links and cannot-links by constraints=, or labels by y=."),
        (ITML, "must-links and cannot-links by constraints=, or labels by y=."),
        (LMCA, "must-links and cannot-links by constraints=, comparisons by triplets=, or labels by y=."),
    ],
)
def test_without_supervision_one_warning_names_what_the_method_takes(cls, remedy):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cls(2).fit(Z)
    assert [str(warning.message).partition("so the result is that of PCA. Give ")[2] for warning in caught] == [remedy]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda X, y: ITML(2, bounds=(2.0, 1.0)).fit(X, y), ("bounds", (2.0, 1.0))),
        (lambda X, y: LSML(2).fit(X, quadruplets=Quadruplets(n_samples=3)), ("quadruplets", 3)),
        (lambda X, y: SCML(2).fit(X, y[:5]), ("y", 5)),
        (lambda X, y: MLKR(2).fit(X, y[:5]), ("y", 5)),
        (lambda X, y: MLKR(2).fit(X, np.where(y == 1, np.inf, 0.0)), ("y", np.inf)),
        (lambda X, y: LSML(2).fit(X, y).score(X), ("triplets", None)),
    ],
)
def test_errors_name_the_argument(make, expected):
    with pytest.raises(InputError) as caught:
        make(RNG.standard_normal((20, 3)), np.repeat([0, 1], 10))
    assert (caught.value.argument, caught.value.value) == expected


def test_triplets_in_a_list_are_refused():
    with pytest.raises(TypeError, match=r"triplets must be a pairlens\.Triplets, got list"):
        SCML(2).fit(RNG.standard_normal((20, 3)), triplets=[(0, 1, 2)])


def test_triplets_and_pairs_in_one_fit():
    """A triplet is read as a must-link and a cannot-link."""
    from pairlens import LinearPairLens

    X = RNG.standard_normal((60, 5)) + 2 * np.eye(3, 5)[np.repeat([0, 1, 2], 20)]
    y = np.repeat([0, 1, 2], 20)
    pairs = Constraints.from_labels(y, n_pairs=20, random_state=0)
    triplets = Triplets.from_labels(y, n_triplets=60, random_state=0)
    both = LinearPairLens(2, random_state=0).fit(X, constraints=pairs, triplets=triplets)
    other = LinearPairLens(2, random_state=0).fit(X, constraints=pairs.merge(triplets.to_constraints()))
    np.testing.assert_array_equal(both.components_, other.components_)
    alone = LinearPairLens(2, random_state=0).fit(X, triplets=triplets)
    assert alone.score(X, constraints=pairs) > 0.8
    with pytest.raises(TypeError, match=r"triplets must be a pairlens\.Triplets, got list"):
        LinearPairLens(2).fit(X, triplets=[(0, 1, 2)])


def test_products_of_a_fit_are_on_one_thread(monkeypatch):
    """Threads that wait for each other took four times as long on a busy machine."""
    from threadpoolctl import threadpool_limits

    from pairlens.engines import blas_threads
    from pairlens.preference.metric import KernelRegression

    seen, evaluate = [], KernelRegression.__call__

    def recorded(self, Z):
        seen.append(blas_threads())
        return evaluate(self, Z)

    monkeypatch.setattr(KernelRegression, "__call__", recorded)
    X = np.random.default_rng(0).standard_normal((800, 40))
    with threadpool_limits(limits=2):
        MLKR(None, max_iter=2).fit(X, X[:, 0])
    assert set(seen) == {1}


def test_weights_of_directions_are_found_on_one_thread(monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits

    from pairlens.preference import comparing

    seen, solve = [], comparing.minimize

    def recorded(*args, **options):
        seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return solve(*args, **options)

    monkeypatch.setattr(comparing, "minimize", recorded)
    X = np.random.default_rng(0).standard_normal((60, 4))
    with threadpool_limits(limits=2):
        SCML(2, random_state=0).fit(X, X[:, 0] > 0)
    assert set(seen) == {1}
