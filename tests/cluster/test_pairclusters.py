"""PairClusters: the equations, what a clusterer promises, and that answers decide."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.special import betaln
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from pairlens import Constraints, PairClusters, load, save
from pairlens.cluster.grouping import (
    MOST_ITERATIONS,
    Evidence,
    Mixture,
    agreement,
    bounded,
    candidates,
    expected_rand,
    first_guesses,
    fit_mixture,
    likeliest,
    matched,
    named_groups,
)
from pairlens.cluster.pairclusters import broken_pairs
from pairlens.exceptions import InputError, SupervisionWarning
from tests.oracles.clusters import expected_adjusted_rand, probabilities_of_groups


@pytest.fixture(scope="module")
def blobs():
    """Four groups of 30 rows, and 60 pairs of them."""
    X, y = make_blobs(120, centers=4, n_features=5, cluster_std=1.5, random_state=3)
    return X, y, Constraints.from_labels(y, n_pairs=60, random_state=0)


@pytest.fixture(scope="module")
def fitted(blobs):
    X, _, pairs = blobs
    return PairClusters(random_state=0).fit(X, constraints=pairs)


def same_partition(one, two):
    return adjusted_rand_score(one, two) == 1.0


# The equations


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_are_those_of_the_equations(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((25, 3)) + 2 * np.repeat(np.eye(3)[:, :3], [8, 8, 9], axis=0)
    y = np.repeat([0, 1, 2], [8, 8, 9])
    pairs = Constraints.from_labels(y, n_pairs=12, random_state=seed)
    start = rng.integers(3, size=25)
    monkeypatch.setattr("pairlens.cluster.grouping.SETTLED", 0.0)
    _, q = fit_mixture(Z, start, 3, Evidence.of(pairs, 0.1))
    expected = probabilities_of_groups(Z, start, 3, pairs.must_link, pairs.cannot_link, 0.1, MOST_ITERATIONS)
    np.testing.assert_allclose(q, expected, atol=1e-9)


def test_the_expected_rand_index_counts_pairs(blobs):
    rng = np.random.default_rng(0)
    same = rng.random((15, 15))
    same = (same + same.T) / 2
    labels = rng.integers(4, size=15)
    assert expected_rand(labels, same) == pytest.approx(expected_adjusted_rand(labels, same))
    # Where P(same) is certain, it is the adjusted Rand index.
    y = rng.integers(3, size=15)
    sure = (y[:, None] == y).astype(float)
    assert expected_rand(labels, sure) == pytest.approx(adjusted_rand_score(y, labels))
    assert expected_rand(np.zeros(15, dtype=int), np.ones((15, 15))) == 0.0


def test_agreement_is_the_likelihood_of_the_answers():
    pairs = Constraints([(0, 1), (0, 2)], [(0, 3), (1, 4), (3, 4)], n_samples=6)
    labels = np.array([0, 0, 1, 1, 2, 2])
    # Four are right, one must-link is between two groups.
    expected = betaln(8.5, 1.5) - betaln(4.5, 0.5)
    assert agreement(labels, pairs) == pytest.approx(expected)
    assert agreement(np.array([0, 0, 0, 1, 2, 2]), pairs) > agreement(labels, pairs)
    assert agreement(labels, Constraints(n_samples=6)) == 0.0


def test_answers_name_groups():
    assert named_groups(Constraints([(0, 1)], n_samples=4)) == 1
    assert named_groups(Constraints([(0, 1)], [(0, 2), (1, 3), (2, 3), (3, 4)], n_samples=5)) == 3
    assert candidates(5, 3) == [1, 2, 3, 4, 5]
    assert {1, 60, 120} <= set(candidates(1000, 60))
    assert max(candidates(1000, 60)) == 120
    assert max(candidates(1000, 2)) == 40


def test_chains_of_must_links_start_groups(blobs):
    X, _, _ = blobs
    pairs = Constraints([(0, 1), (2, 3)], [(0, 2)], n_samples=len(X))
    guesses = list(first_guesses(X, 4, pairs, 0))
    assert len(guesses) == 2
    assert guesses[1][0] == guesses[1][1] != guesses[1][2] == guesses[1][3]
    assert len(list(first_guesses(X, 1, pairs, 0))) == 1


def test_caution_makes_groups_agree_with_what_is_probable():
    """Two rows of one group are together with q_i . q_j: where P(same) is that, the values are found again."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((60, 2)) + 3 * np.repeat([[0, 0], [1, 0], [0, 1]], 20, axis=0)
    mixture = Mixture.of(Z, np.eye(3)[np.repeat(np.arange(3), 20)])
    true = Mixture(mixture.centers, mixture.log_share, mixture.variance, caution=4.0, purity=0.8)
    q = true.probabilities(Z)
    np.testing.assert_allclose(q.sum(axis=1), 0.8)
    found = matched(mixture, Z, q @ q.T)
    assert found.caution == 4.0
    assert found.purity == pytest.approx(0.8, abs=0.01)


def test_groups_that_hold_many_classes_are_not_sure_of_their_rows():
    """Two groups where P(same) says that there are eight: a row is in the group's class less often than always."""
    Z = np.random.default_rng(0).standard_normal((80, 2)) + 20 * np.repeat([[0, 0], [1, 0]], [76, 4], axis=0)
    mixture = Mixture.of(Z, np.eye(2)[np.repeat([0, 1], [76, 4])])
    found = matched(mixture, Z, np.kron(np.eye(8), np.ones((10, 10))))
    assert found.probabilities(Z).max() < 0.5
    # Answers about such rows do not make them surer.
    chain = Constraints([(i, i + 1) for i in range(9)], n_samples=80)
    assert likeliest(Z, found, Evidence.of(chain, 0.05))[1].max() < 0.5


def test_few_answers_bound_the_purity():
    """Two groups of rows with 28 cannot-links and no must-link hold more classes than two."""
    rng = np.random.default_rng(0)
    Z = np.concatenate([rng.normal(-3, 1, (40, 2)), rng.normal(3, 1, (40, 2))])
    groups = Mixture.of(Z, np.eye(2)[np.arange(80) // 40])
    pairs = rng.permutation(80)[:56].reshape(28, 2)
    found = bounded(groups, Z, Constraints(cannot_link=pairs, n_samples=80))
    q = groups.probabilities(Z)
    together = np.mean([[a @ b for a in q] for b in q])
    assert found.purity == pytest.approx((1 / 30 / together) ** 0.5)
    assert found.probabilities(Z).max() < 0.3
    assert bounded(groups, Z, Constraints(n_samples=80)).purity == 0.9
    assert bounded(groups, Z, Constraints(must_link=pairs, n_samples=80)).purity == 0.9


def test_an_answer_moves_a_row_between_groups():
    Z = np.concatenate([np.full((10, 1), -1.0), np.full((10, 1), 1.0), [[-0.2]]])
    mixture = Mixture(np.array([[-1.0], [1.0]]), np.log([0.5, 0.5]), 1.0, caution=4.0)
    nothing = Evidence.of(Constraints(n_samples=21), 0.05)
    assert likeliest(Z, mixture, nothing)[0][20] == 0
    labels, chance = likeliest(Z, mixture, Evidence.of(Constraints([(10, 20), (11, 20)], n_samples=21), 0.05))
    assert labels[20] == 1
    assert chance[20] > 0.8


# Answers decide


def test_groups_of_blobs_are_found(blobs, fitted):
    X, y, pairs = blobs
    assert fitted.n_clusters_ == 4
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    assert (fitted.labels_[np.unique(fitted.labels_, return_index=True)[1]] == np.arange(4)).all()
    assert np.all(np.diff(np.unique(fitted.labels_, return_index=True)[1]) > 0)
    free = np.setdiff1d(np.arange(len(X)), pairs.rows)
    np.testing.assert_array_equal(fitted.predict(X)[free], fitted.labels_[free])
    q = fitted.predict_proba(X)
    assert (q.sum(axis=1) <= 1 + 1e-12).all()
    np.testing.assert_allclose(q.max(axis=1)[free], fitted.probabilities_[free])
    assert 0 < fitted.error_rate_ < 0.1


def test_a_group_that_no_answer_named_is_found():
    X, y = make_blobs(150, centers=4, n_features=4, random_state=1)
    X = np.column_stack([X, np.random.default_rng(0).standard_normal(150)])
    X[:30, 4] += 15
    y[:30] = 4
    pairs = Constraints.from_labels(np.where(y < 4, y, -1), n_pairs=80, random_state=0)
    model = PairClusters(random_state=0).fit(X, constraints=pairs)
    assert not set(model.labels_[:30]) & set(model.labels_[30:])
    assert adjusted_rand_score(y, model.labels_) > 0.85


def test_two_questions_give_two_groupings():
    """Rows in a square: left and right by one person's answers, above and below by another's."""
    rng = np.random.default_rng(0)
    corner = rng.integers(4, size=160)
    X = rng.standard_normal((160, 2)) * 0.6 + 4 * np.column_stack([corner // 2, corner % 2])
    for y in (corner // 2, corner % 2):
        pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
        assert adjusted_rand_score(y, PairClusters(random_state=0).fit_predict(X, constraints=pairs)) > 0.95


def test_labels_are_groups():
    X, y = load_wine(return_X_y=True)
    partial = np.where(np.arange(len(y)) % 6 == 0, y, -1)
    model = PairClusters(random_state=0).fit(X, partial)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(y, model.labels_) > 0.8
    by_pairs = PairClusters(random_state=0).fit(X, constraints=Constraints.from_labels(partial))
    np.testing.assert_array_equal(by_pairs.labels_, model.labels_)


def test_without_pairs_it_clusters_the_rows():
    X, y = make_blobs(90, centers=3, cluster_std=0.5, random_state=0)
    model = PairClusters(random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(y, model.labels_) > 0.75
    assert len(model.broken_) == 0
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_one_group_if_all_answers_say_same():
    X = np.random.default_rng(0).standard_normal((40, 3))
    together = Constraints([(i, i + 1) for i in range(39)], n_samples=40)
    assert PairClusters(random_state=0).fit(X, constraints=together).n_clusters_ == 1
    assert PairClusters(1, random_state=0).fit(X).n_clusters_ == 1


@pytest.mark.parametrize("seed", range(3))
def test_cannot_links_alone_keep_rows_apart(seed):
    X, y = make_blobs(60, centers=3, cluster_std=0.3, random_state=seed)
    rows = np.unique(y, return_index=True)[1]
    apart = Constraints(cannot_link=[(i, j) for i in rows for j in rows if j < i], n_samples=60)
    model = PairClusters(random_state=0).fit(X, constraints=apart)
    assert len(set(model.labels_[rows])) == 3
    assert model.n_clusters_ == 3
    assert not len(model.broken_)


@pytest.mark.parametrize("seed", range(3))
def test_the_last_digits_do_not_decide_the_number_of_groups(seed):
    """Two of four rows that differ pairwise are in one blob: which further group that makes, the rows leave open."""
    X, y = make_blobs(60, centers=3, cluster_std=0.3, random_state=(0, 1, 4)[seed])
    rows = [*np.unique(y, return_index=True)[1], np.flatnonzero(y == 0)[5]]
    apart = Constraints(cannot_link=[(i, j) for i in rows for j in rows if j < i], n_samples=60)
    rng = np.random.default_rng(0)
    found = [
        PairClusters(random_state=0).fit(X + size * rng.standard_normal(X.shape), constraints=apart).n_clusters_
        for size in (0.0, 1e-13, 1e-12, 1e-11)
    ]
    assert set(found) in ({3}, {4})


def test_wrong_must_links_do_not_merge_groups():
    """With ten groups and a tenth of the answers wrong, half of all must-links are wrong."""
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(10), 20)
    X = 6 * rng.standard_normal((10, 8))[y] + 1.5 * rng.standard_normal((200, 8))
    drawn = np.unique(np.sort(rng.integers(200, size=(260, 2)), axis=1), axis=0)
    drawn = rng.permutation(drawn[drawn[:, 0] < drawn[:, 1]])[:200]
    said = (y[drawn[:, 0]] == y[drawn[:, 1]]) ^ (np.arange(200) % 10 == 0)
    pairs = Constraints(drawn[said], drawn[~said], n_samples=200)
    model = PairClusters(random_state=0).fit(X, constraints=pairs)
    assert model.n_clusters_ == 10
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_broken_answers_are_listed_with_the_reason():
    known = Constraints([(0, 2), (3, 4)], [(0, 1), (2, 3)], n_samples=5)
    found = broken_pairs(np.array([0, 0, 1, 1, 1]), known, np.random.default_rng(0))
    assert len(found) == 3
    frame = found.to_frame()
    assert frame[["a", "b", "link"]].values.tolist() == [[0, 2, "must"], [0, 1, "cannot"], [2, 3, "cannot"]]
    assert frame["reason"].tolist() == [
        "the rows are like those of different groups",
        "the rows are like those of one group",
        "the rows are like those of one group",
    ]


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
def test_the_reason_is_in_the_answers_where_they_contradict_each_other():
    labels = np.array([0, 0, 0, 1, 1])
    known = Constraints([(0, 1), (1, 2), (3, 4), (2, 3)], [(0, 4)], n_samples=5, on_conflict="warn")
    found = broken_pairs(labels, known, np.random.default_rng(0))
    assert found.pairs.tolist() == [[2, 3]]
    assert found.reasons == ["other answers keep the two apart"]
    joined = Constraints([(0, 1), (1, 2)], [(0, 2)], n_samples=3, on_conflict="warn")
    assert broken_pairs(np.zeros(3, dtype=int), joined, np.random.default_rng(0)).reasons == [
        "other answers join the two"
    ]


@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
def test_wrong_answers_are_outweighed(blobs):
    X, y, _ = blobs
    pairs = Constraints.from_labels(y, n_pairs=200, random_state=0)
    must, cannot = pairs.must_link, pairs.cannot_link
    swapped = Constraints(
        np.concatenate([must[3:], cannot[:3]]),
        np.concatenate([cannot[3:], must[:3]]),
        n_samples=120,
        on_conflict="warn",
    )
    model = PairClusters(random_state=0).fit(X, constraints=swapped)
    assert adjusted_rand_score(y, model.labels_) > 0.85
    broken = {tuple(sorted(pair)) for pair in model.broken_.pairs.tolist()}
    wrong = {tuple(sorted(pair)) for pair in np.concatenate([must[:3], cannot[:3]]).tolist()}
    assert broken
    assert broken <= wrong


# What a clusterer promises


def test_the_order_of_rows_and_pairs_does_not_matter(blobs, fitted):
    X, _, pairs = blobs
    order = np.random.default_rng(1).permutation(len(X))
    model = PairClusters(random_state=0).fit(X[order], constraints=pairs[order])
    assert same_partition(model.labels_, fitted.labels_[order])
    shuffled = Constraints(pairs.must_link[::-1, ::-1], pairs.cannot_link[::-1], n_samples=len(X))
    np.testing.assert_array_equal(PairClusters(random_state=0).fit(X, constraints=shuffled).labels_, fitted.labels_)


def test_duplicated_pairs_are_one_answer(blobs, fitted):
    X, _, pairs = blobs
    twice = pairs.merge(Constraints(pairs.must_link, pairs.cannot_link, n_samples=len(X)))
    assert twice.n_pairs == pairs.n_pairs
    np.testing.assert_array_equal(PairClusters(random_state=0).fit(X, constraints=twice).labels_, fitted.labels_)


def test_equal_rows_are_in_one_group(blobs):
    X, _, pairs = blobs
    doubled = np.concatenate([X, X])
    model = PairClusters(random_state=0).fit(
        doubled, constraints=Constraints(pairs.must_link, pairs.cannot_link, n_samples=240)
    )
    free = np.setdiff1d(np.arange(120), pairs.rows)
    np.testing.assert_array_equal(model.labels_[free], model.labels_[120 + free])
    one = PairClusters(random_state=0).fit(np.ones((6, 2)), constraints=Constraints([(0, 1)], [(2, 3)], n_samples=6))
    assert one.labels_.tolist() == [0] * 6
    assert one.n_clusters_ == 1
    assert one.predict(np.zeros((2, 2))).tolist() == [0, 0]
    assert one.broken_.reasons == ["the rows are like those of one group"]


def test_doubt_leaves_rows_out(blobs, fitted):
    X, _, pairs = blobs
    careful = PairClusters(doubt=0.1, random_state=0).fit(X, constraints=pairs)
    unsure = careful.probabilities_ < 0.9
    np.testing.assert_array_equal(careful.labels_, np.where(unsure, -1, fitted.labels_))
    q = careful.predict_proba(X)
    np.testing.assert_array_equal(careful.predict(X) == -1, q.max(axis=1) < 0.9)
    assert (PairClusters(doubt=0.0, random_state=0).fit(X, constraints=pairs).labels_ == -1).sum() >= unsure.sum()


def test_a_number_that_was_asked_for_is_found(blobs):
    X, _, pairs = blobs
    assert PairClusters(2, random_state=0).fit(X, constraints=pairs).n_clusters_ == 2
    assert PairClusters(6, random_state=0).fit(X, constraints=pairs).n_clusters_ == 6


def test_a_guess_at_the_number_decides_where_nothing_else_does():
    """Six groups in three heaps of two: the rows do not tell how many they are, a guess and many answers do."""
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0], [0, 4], [20, 0], [20, 4], [0, 30], [4, 30]])
    y = np.repeat(np.arange(6), 15)
    X = centers[y] + rng.normal(0, 0.6, (90, 2))
    sure = Constraints.from_labels(y, n_pairs=300, random_state=0)
    few, many = (PairClusters(about=about, random_state=0).fit(X).n_clusters_ for about in (2, 12))
    assert few == 2
    assert many > PairClusters(random_state=0).fit(X).n_clusters_
    for about in (2, 12):
        assert PairClusters(about=about, random_state=0).fit(X, constraints=sure).n_clusters_ == 6
    assert PairClusters(2, about=6, random_state=0).fit(X).n_clusters_ == 2
    assert set(candidates(90, 2)) < set(candidates(90, 2, 50)) | {40}
    assert 50 in candidates(90, 2, 50)


def test_sparse_rows_and_single_precision(blobs, fitted):
    X, _, pairs = blobs
    X = np.where(np.abs(X) < 1, 0, X)
    dense = PairClusters(random_state=0).fit(X, constraints=pairs)
    thin = PairClusters(random_state=0).fit(sparse.csr_matrix(X), constraints=pairs)
    assert same_partition(dense.labels_, thin.labels_)
    single = PairClusters(random_state=0).fit(X.astype(np.float32), constraints=pairs)
    assert adjusted_rand_score(single.labels_, dense.labels_) > 0.95


def test_dask_and_torch(blobs, fitted):
    X, _, pairs = blobs
    dask = pytest.importorskip("dask.array")
    lazy = PairClusters(random_state=0).fit(dask.from_array(X, chunks=(50, 5)), constraints=pairs)
    np.testing.assert_array_equal(lazy.labels_, fitted.labels_)
    np.testing.assert_array_equal(lazy.predict(dask.from_array(X, chunks=(50, 5))), fitted.predict(X))
    torch = pytest.importorskip("torch")
    tensor = PairClusters(random_state=0).fit(torch.from_numpy(X), constraints=pairs)
    np.testing.assert_array_equal(tensor.labels_, fitted.labels_)


def test_many_rows_are_put_in_the_groups_of_landmarks(monkeypatch):
    X, y = make_blobs(3000, centers=4, n_features=4, random_state=2)
    pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    monkeypatch.setattr("pairlens.learning.spaces.LANDMARKS", 500)
    monkeypatch.setattr("pairlens.cluster.grouping.CHOICE_ROWS", 300)
    model = PairClusters(random_state=0).fit(X, constraints=pairs)
    assert model.labels_.shape == (3000,)
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_models_are_saved(blobs, fitted, tmp_path):
    X, _, _ = blobs
    save(fitted, tmp_path / "groups.pairlens")
    again = load(tmp_path / "groups.pairlens")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    assert again.broken_.reasons == fitted.broken_.reasons
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_errors_say_what_is_wrong():
    X, _ = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="n_clusters must be at most the number of rows, 150; got 151") as caught:
        PairClusters(151).fit(X)
    assert (caught.value.argument, caught.value.value) == ("n_clusters", 151)
    for name, value in (("n_clusters", 0), ("n_clusters", "many"), ("doubt", 1.5), ("standardize", "yes")):
        with pytest.raises(ValueError, match=f"'{name}' parameter of PairClusters"):
            PairClusters(**{name: value}).fit(X)
    with pytest.raises(NotFittedError):
        PairClusters().predict(X)
    with pytest.warns(SupervisionWarning, match="found 2 groups of the n_clusters=3"):
        PairClusters(3).fit(np.repeat([[0.0], [1.0]], 5, axis=0))


def test_groups_of_a_real_set_are_found():

    X, y = load_wine(return_X_y=True)
    pairs = Constraints.from_labels(y, n_pairs=200, random_state=0)
    assert adjusted_rand_score(y, PairClusters(random_state=0).fit_predict(X, constraints=pairs)) > 0.9
