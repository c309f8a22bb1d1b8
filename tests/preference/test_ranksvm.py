"""RankSVM against other solvers and known optima, and the folds of cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.svm import LinearSVC

from pairlens.engines import fitting_threads
from pairlens.metrics import pairwise_accuracy
from pairlens.preference.objective import Pairs
from pairlens.preference.ranksvm import C_PATH, RankSVM, accuracy, embedded_ranking, folds, rank_svm
from pairlens.supervision import Preferences
from tests.oracles import preference as oracle


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_optimum_is_that_of_a_general_solver(ranked, C):
    pairs, weight = ranked.preferences.pairs, np.linspace(0.5, 2, ranked.preferences.n_pairs)
    w, _ = rank_svm(ranked.X, Pairs.of(pairs, len(ranked.X), weight), C, tol=1e-10)

    def value(v):
        return oracle.rank_svm_objective(ranked.X, v, pairs.tolist(), C, weight.tolist())

    general = optimize.minimize(value, np.zeros(6), method="BFGS", options={"gtol": 1e-7})
    assert value(w) <= general.fun * (1 + 1e-9)
    np.testing.assert_allclose(w, general.x, atol=1e-3 * np.abs(general.x).max())
    assert np.linalg.norm(oracle.numerical_gradient(value, w)) < 1e-5 * max(1.0, C)


def test_weights_are_those_of_a_support_vector_machine_on_differences(ranked):
    pairs = ranked.preferences.pairs
    differences = ranked.X[pairs[:, 0]] - ranked.X[pairs[:, 1]]
    sign = np.where(np.arange(len(pairs)) % 2, 1, -1)
    C = 3.0
    peer = LinearSVC(loss="squared_hinge", C=C / len(pairs), fit_intercept=False, tol=1e-10, max_iter=100_000)
    peer.fit(differences * sign[:, None], sign)
    ours = RankSVM(C=C, tol=1e-10).fit(ranked.X, preferences=ranked.preferences)
    np.testing.assert_allclose(ours.coef_, peer.coef_.ravel(), rtol=1e-4)


def test_one_pair_has_a_known_optimum():
    # Along the difference q: w = a q / |q|^2 with a = 2 C |q|^2 / (1 + 2 C |q|^2).
    w, steps = rank_svm(np.array([[3.0, 0.0], [1.0, 0.0]]), Pairs.of(np.array([[0, 1]]), 2), C=2.0, tol=1e-12)
    np.testing.assert_allclose(w, [16 / 17 / 2, 0.0], atol=1e-12)
    assert steps <= 2


def test_predict_decision_function_and_rank_agree(ranked):
    ranker = RankSVM().fit(ranked.X, ranked.y)
    scores = ranker.decision_function(ranked.X)
    np.testing.assert_array_equal(ranker.predict(ranked.X), scores)
    assert np.all(np.diff(scores[ranker.rank(ranked.X)]) <= 0)
    assert ranker.score(ranked.X, ranked.y) > 0.9
    every = Preferences.from_scores(ranked.y)
    assert ranker.score(ranked.X, ranked.y) == oracle.pairwise_accuracy(scores, every.pairs.tolist())
    assert ranker.score(ranked.X, preferences=every) == pairwise_accuracy(scores, every)


def test_weights_of_rows_weigh_their_preferences(ranked):
    ranker = RankSVM().fit(ranked.X, ranked.y)
    first_half = np.repeat([1.0, 0.0], 40)
    assert ranker.score(ranked.X, ranked.y, sample_weight=first_half) == pytest.approx(
        ranker.score(ranked.X[:40], ranked.y[:40])
    )


def test_scores_and_their_preferences_say_the_same(ranked):
    from_scores = RankSVM().fit(ranked.X, ranked.y).coef_
    from_pairs = RankSVM().fit(ranked.X, preferences=Preferences.from_scores(ranked.y)).coef_
    np.testing.assert_array_equal(from_scores, from_pairs)


def test_groups_compare_rows_of_one_query_only():
    # Scores mean something inside a query only: the second query is shifted.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    groups = np.repeat(["a", "b"], 30)
    X[30:, 1] += 5
    y = X[:, 0] + np.where(groups == "b", -10.0, 0.0)
    inside = RankSVM(C=100.0).fit(X, y, groups=groups)
    across = RankSVM(C=100.0).fit(X, y)
    assert inside.score(X, y, groups=groups) > 0.98
    assert inside.score(X, y, groups=groups) > across.score(X, y, groups=groups)
    assert abs(inside.coef_[1]) < 0.1 * abs(inside.coef_[0])
    np.testing.assert_allclose(
        inside.coef_, RankSVM(C=100.0).fit(X, preferences=Preferences.from_scores(y, groups=groups)).coef_
    )


def test_search_takes_the_best_value_of_the_path(ranked):
    ranker = RankSVM(C="auto", random_state=0).fit(ranked.X, ranked.y)
    assert set(ranker.cv_scores_) == set(C_PATH)
    assert ranker.cv_scores_[ranker.C_] == max(ranker.cv_scores_.values())
    fixed = RankSVM(C=ranker.C_).fit(ranked.X, ranked.y)
    np.testing.assert_allclose(ranker.coef_, fixed.coef_, rtol=1e-3, atol=1e-5)


def test_sparse_rows_and_single_precision(ranked):
    dense = RankSVM().fit(ranked.X, ranked.y).coef_
    for kind in (sparse.csr_array, sparse.csr_matrix):
        np.testing.assert_allclose(RankSVM().fit(kind(ranked.X), ranked.y).coef_, dense, rtol=1e-8)
    single = RankSVM().fit(ranked.X.astype(np.float32), ranked.y).coef_
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, dense, rtol=1e-4)


def test_more_features_than_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 500))
    y = np.arange(20)
    assert RankSVM(C=100.0).fit(X, y).score(X, y) > 0.98


def test_ranking_an_embedding_does_not_depend_on_its_scale(ranked):
    pairs = Pairs.of(ranked.preferences.pairs, len(ranked.X))
    Z = ranked.X[:, :3]
    weights = embedded_ranking(Z, pairs)
    np.testing.assert_allclose(embedded_ranking(1000 * Z, pairs) * 1000, weights, rtol=1e-6)
    assert not embedded_ranking(np.ones((80, 2)), pairs).any()


def test_accuracy_counts_ties_half():
    assert accuracy(np.array([1.0, 1.0, 0.0]), Pairs.of(np.array([[0, 1], [0, 2], [2, 1], [1, 2]]), 3)) == 0.625


def test_folds_score_pairs_of_rows_that_were_not_trained_on(ranked):
    pairs = Pairs.of(ranked.preferences.pairs, len(ranked.X))
    seen = np.zeros(pairs.count, dtype=int)
    for train, scored in folds(pairs, 4, np.random.default_rng(0)):
        assert not np.intersect1d(pairs.rows[train], pairs.rows[scored]).size
        seen += scored
    assert seen.max() == 1


def test_folds_keep_queries_whole_and_lose_no_pair():
    rows = np.array([(3 * q + a, 3 * q + b) for q in range(40) for a, b in ((0, 1), (1, 2))])
    result = folds(Pairs.of(rows, 120), 4, np.random.default_rng(0))
    for train, scored in result:
        assert np.all(train ^ scored)
        assert not np.intersect1d(rows[train] // 3, rows[scored] // 3).size
    np.testing.assert_array_equal(sum(scored.astype(int) for _, scored in result), 1)


def test_few_pairs_are_scored_when_one_row_is_new():
    rows = np.array([(i, i + 1) for i in range(9)])
    for train, scored in folds(Pairs.of(rows, 10), 3, np.random.default_rng(0)):
        assert np.all(train ^ scored)


def test_errors_say_what_is_wrong(ranked):
    X, y = ranked.X, ranked.y
    with pytest.raises(ValueError, match="requires y to be passed"):
        RankSVM().fit(X)
    with pytest.raises(ValueError, match="at least one preference"):
        RankSVM().fit(X, np.ones(80))
    with pytest.raises(ValueError, match="at least one preference"):
        RankSVM().fit(X, y).score(X, np.ones(80))
    with pytest.raises(TypeError, match=r"must be a pairlens\.Preferences"):
        RankSVM().fit(X, preferences=[(0, 1)])
    with pytest.raises(ValueError, match="preferences must be for 80 rows, as many as X has; got 3"):
        RankSVM().fit(X, preferences=Preferences([(0, 1)], n_samples=3))
    with pytest.raises(ValueError, match="y must have 80 entries, one for each row of X; got 79"):
        RankSVM().fit(X, y[:-1])
    with pytest.raises(ValueError, match="groups must have 80 entries"):
        RankSVM().fit(X, y, groups=[1, 2])
    with pytest.raises(ValueError, match="y is None"):
        RankSVM().fit(X, groups=y, preferences=None)
    with pytest.raises(ValueError, match="Give more preferences"):
        RankSVM(C="auto").fit(X, preferences=Preferences([(0, 1)], n_samples=80))


def test_small_problems_run_on_one_thread():
    from threadpoolctl import threadpool_info

    def blas_threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = blas_threads()
    with fitting_threads(1000):
        assert set(blas_threads()) <= {1}
    with fitting_threads(10**12):
        assert blas_threads() == before
    assert blas_threads() == before
