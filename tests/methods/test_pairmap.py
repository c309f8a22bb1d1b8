"""PairMap: hard cases, new rows, warm starts, and what it says about itself."""

from __future__ import annotations

import pickle
import sys
import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import Constraints, PairMap, load, save
from pairlens.exceptions import ConflictWarning, MissingExtraError, SupervisionWarning
from pairlens.methods.pairmap.layout import align
from tests.methods.cases import FAST, quiet

pytest.importorskip("openTSNE", reason="pip install 'pairlens[map]'")


@pytest.fixture(scope="module")
def fitted(wine):
    X, _, pairs = wine
    return PairMap(random_state=0).fit(X, constraints=pairs)


def test_two_maps_of_one_seed_are_equal(fitted, wine):
    X, _, pairs = wine
    again = PairMap(random_state=0).fit(X, constraints=pairs)
    np.testing.assert_array_equal(again.embedding_, fitted.embedding_)
    assert again.auc_ == fitted.auc_


@pytest.mark.parametrize("n_landmarks", [10_000, 550])
def test_threads_do_not_change_the_map(n_landmarks):
    # More than 500 rows repel each other on a grid, whose transforms have threads too.
    X, y = load_digits(return_X_y=True)
    X, pairs = X[:600], Constraints.from_labels(y[:600], n_pairs=60, random_state=0)
    maps = [PairMap(n_jobs=jobs, n_landmarks=n_landmarks, **FAST).fit(X, constraints=pairs) for jobs in (1, 2, 4)]
    for other in maps[1:]:
        np.testing.assert_array_equal(other.embedding_, maps[0].embedding_)


def test_order_of_pairs_does_not_matter(wine):
    X, _, pairs = wine
    turned = Constraints(pairs.must_link[::-1, ::-1], pairs.cannot_link[::-1], n_samples=len(X))
    maps = [PairMap(**FAST).fit(X, constraints=known).embedding_ for known in (pairs, turned)]
    np.testing.assert_array_equal(*maps)


def test_training_rows_keep_their_place(fitted, wine):
    X, _, _ = wine
    np.testing.assert_array_equal(fitted.transform(X), fitted.embedding_)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(fitted.transform(X[order][:7]), fitted.embedding_[order][:7], rtol=0, atol=1e-12)


def test_new_rows_one_by_one_and_without_the_layout_library(wine, monkeypatch):
    X, y, _ = wine
    train, test, y_train, _ = train_test_split(X, y, random_state=0)
    model = PairMap(**FAST).fit(train, constraints=Constraints.from_labels(y_train, n_pairs=80, random_state=0))
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    together = model.transform(test)
    one_by_one = np.concatenate([model.transform(test[i : i + 1]) for i in range(len(test))])
    np.testing.assert_allclose(one_by_one, together, atol=1e-9 * np.abs(together).max())
    with pytest.raises(MissingExtraError, match=r"pip install 'pairlens\[map\]'"):
        PairMap().fit(train)


def test_new_rows_land_among_their_like(wine):
    X, y, _ = wine
    train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = PairMap(random_state=0).fit(train, constraints=Constraints.from_labels(y_train, n_pairs=80, random_state=0))
    placed = model.transform(test)
    nearest = np.argmin(((placed[:, None] - model.embedding_[None]) ** 2).sum(axis=2), axis=1)
    assert np.mean(y_train[nearest] == y_test) > 0.9
    assert model.score(test, y_test) > 0.9


def test_probabilities_tell_pairs_apart(fitted, wine):
    X, y, _ = wine
    rng = np.random.default_rng(1)
    left, right = rng.integers(0, len(X), (2, 500))
    probability = fitted.pair_proba(X[left], X[right])
    same = y[left] == y[right]
    assert probability[same].mean() > 0.7
    assert probability[~same].mean() < 0.2
    np.testing.assert_allclose(fitted.pair_proba(X[right], X[left]), probability, atol=1e-12)
    with pytest.raises(ValueError, match=r"^B must have 3 rows"):
        fitted.pair_proba(X[:3], X[:2])


def test_what_it_says_about_itself(fitted):
    assert fitted.auc_ > 0.9
    assert 0 < fitted.auc_error_ < 0.1
    assert 0.1 < fitted.long_range_ <= 0.75
    assert fitted.n_iter_ == 750
    assert list(fitted.get_feature_names_out()) == ["pairmap0", "pairmap1"]


@pytest.mark.parametrize("seed", range(3))
def test_right_answers_do_not_look_wrong(seed):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    pairs = Constraints.from_labels(y, n_pairs=100, random_state=seed)
    assert PairMap(**FAST).fit(X, constraints=pairs).suspicious_pairs().suspicion.max() < 0.5


def test_wrong_answers_are_found(wine):
    X, y, pairs = wine
    noisy = pairs.flip(0.1, random_state=0)
    model = PairMap(**FAST).fit(X, constraints=noisy)
    found = model.suspicious_pairs()
    assert len(found) == 100
    assert (np.diff(found.suspicion) <= 0).all()
    wrong = (y[found.pairs[:, 0]] == y[found.pairs[:, 1]]) != (found.link > 0)
    assert wrong.sum() == 10
    assert wrong[:10].mean() >= 0.6
    assert 0.03 <= model.mistakes_ <= 0.15


@quiet
def test_without_pairs_it_says_so_and_shows_the_rows(wine):
    X, y, _ = wine
    with pytest.warns(SupervisionWarning, match="local structure of the rows alone"):
        model = PairMap(random_state=0).fit(X)
    assert model.long_range_ == 0
    assert np.isnan([model.auc_, model.auc_error_, model.mistakes_]).all()
    np.testing.assert_array_equal(model.pair_proba(X[:4], X[4:8]), 0.5)
    assert adjusted_rand_score(y, KMeans(3, n_init=4, random_state=0).fit_predict(model.embedding_)) > 0.6
    with pytest.raises(ValueError, match="at least 3 must-links and 3 cannot-links"):
        model.suspicious_pairs()


with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConflictWarning)
    CONTRADICTION = Constraints([(0, 1), (1, 2), (3, 4), (5, 6)], [(0, 2), (7, 8), (0, 9), (3, 4)], on_conflict="warn")
HARD = {
    "must-links only": ("rows", Constraints([(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)])),
    "cannot-links only": ("rows", Constraints([], [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)])),
    "one pair": ("rows", Constraints([(0, 1)])),
    "contradictions": ("rows", CONTRADICTION),
    "three of each": ("rows", Constraints([(0, 1), (2, 3), (4, 5)], [(0, 2), (6, 7), (8, 9)])),
    "constant columns": ("constant columns", Constraints([(0, 1), (2, 3), (4, 5)], [(0, 2), (6, 7), (8, 9)])),
    "all rows equal": ("all equal", Constraints([(0, 1), (2, 3), (4, 5)], [(0, 2), (6, 7), (8, 9)])),
    "duplicates": ("duplicates", Constraints([(0, 1), (2, 3), (4, 5)], [(0, 2), (6, 7), (8, 9)])),
    "one feature": ("one feature", Constraints([(0, 1), (2, 3), (4, 5)], [(0, 2), (6, 7), (8, 9)])),
    "more features than rows": ("wide", Constraints([(0, 1), (2, 3), (4, 5)], [(0, 2), (6, 7), (8, 9)])),
}


def hard_rows(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    if kind == "constant columns":
        return np.column_stack([np.ones(40), X, np.full(40, 1e9)])
    if kind == "all equal":
        return np.full((40, 5), 3.7)
    if kind == "duplicates":
        return X[np.arange(40) % 4]
    return {"rows": X, "one feature": X[:, :1], "wide": rng.standard_normal((40, 300))}[kind]


@quiet
@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("n_components", [1, 2])
def test_hard_cases_never_fail(case, n_components):
    kind, known = HARD[case]
    X = hard_rows(kind)
    model = PairMap(n_components, **FAST)
    with np.errstate(all="raise"):
        Z = model.fit_transform(X, constraints=known.with_n_samples(40))
        placed = model.transform(X + 1e-3 * np.random.default_rng(1).standard_normal(X.shape))
        probability = model.pair_proba(X[:5], X[5:10])
    assert Z.shape == (40, n_components)
    assert np.isfinite(Z).all()
    assert np.isfinite(placed).all()
    assert ((probability >= 0) & (probability <= 1)).all()
    if kind != "all equal":
        assert np.ptp(Z, axis=0).min() > 0


@quiet
@pytest.mark.parametrize("n", range(3, 12))
def test_few_rows(n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 4))
    pairs = Constraints.from_labels(np.arange(n) % 2)
    model = PairMap(**FAST).fit(X, constraints=pairs)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(X + 0.1)).all()


def test_two_rows_are_too_few():
    with pytest.raises(ValueError, match="minimum of 3 is required"):
        PairMap().fit(np.eye(2))


@quiet
def test_sparse_rows_give_the_same_map():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 3
    X = np.maximum(rng.standard_normal((80, 20)) + 2 * np.eye(3, 20)[y], 0)
    pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    dense, csr = (PairMap(**FAST).fit(rows, constraints=pairs) for rows in (X, sparse.csr_matrix(X)))
    np.testing.assert_allclose(csr._rows @ csr._rows.T, dense._rows @ dense._rows.T, atol=1e-6)
    np.testing.assert_array_equal(csr.transform(sparse.csr_matrix(X)), csr.embedding_)


@quiet
def test_wide_sparse_rows_stay_sparse():
    y = np.arange(90) % 3
    X = sparse.random(90, 5000, density=0.01, format="csr", random_state=0)
    model = PairMap(**FAST).fit(X, constraints=Constraints.from_labels(y, n_pairs=60, random_state=0))
    assert model._rows.shape[1] < 200
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


def test_float32_stays_float32(wine):
    X, _, pairs = wine
    model = PairMap(**FAST).fit(X.astype(np.float32), constraints=pairs)
    assert model.embedding_.dtype == np.float32
    assert model.transform(X[:5].astype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(model.transform(X.astype(np.float32)), model.embedding_)


def test_labels_as_y(wine):
    X, y, _ = wine
    partial = np.where(np.arange(len(y)) % 6 == 0, y, -1)
    by_y = PairMap(**FAST).fit(X, partial)
    by_pairs = PairMap(**FAST).fit(X, constraints=Constraints.from_labels(partial))
    np.testing.assert_array_equal(by_y.embedding_, by_pairs.embedding_)


@pytest.mark.parametrize("as_array", [True, False])
def test_warm_start_stays_where_it_was_and_costs_a_fraction(as_array, fitted, wine):
    X, _, pairs = wine
    init = fitted.embedding_ if as_array else fitted
    again = PairMap(random_state=0, init=init).fit(X, constraints=pairs)
    size = np.ptp(fitted.embedding_, axis=0).max()
    assert np.linalg.norm(again.embedding_ - fitted.embedding_, axis=1).max() < 0.1 * size
    assert again.n_iter_ <= fitted.n_iter_ / 5


def test_warm_start_after_ten_more_answers(fitted, wine):
    X, y, pairs = wine
    more = pairs.merge(Constraints.from_labels(y, n_pairs=10, random_state=7))
    again = PairMap(random_state=0, init=fitted).fit(X, constraints=more)
    size = np.ptp(fitted.embedding_, axis=0).max()
    moved = np.linalg.norm(again.embedding_ - fitted.embedding_, axis=1)
    assert np.median(moved) < 0.1 * size


def test_warm_start_for_other_rows(fitted, wine):
    X, y, _ = wine
    some = np.arange(0, len(X), 2)
    again = PairMap(random_state=0, init=fitted).fit(
        X[some], constraints=Constraints.from_labels(y[some], n_pairs=40, random_state=0)
    )
    assert again.embedding_.shape == (89, 2)


def test_starts_that_do_not_fit(wine):
    X, _, pairs = wine
    with pytest.raises(ValueError, match=r"init has the shape \(178, 3\).*\(178, 2\)"):
        PairMap(init=np.zeros((178, 3))).fit(X, constraints=pairs)
    with pytest.raises(ValueError, match="init holds NaN"):
        PairMap(init=np.full((178, 2), np.nan)).fit(X, constraints=pairs)
    everything_in_one_place = PairMap(init=np.zeros((178, 2)), **FAST).fit(X, constraints=pairs)
    assert np.ptp(everything_in_one_place.embedding_) > 0


def test_a_clone_keeps_parameters_and_drops_a_map_to_start_from(fitted):
    assert (
        clone(PairMap(perplexity=7, random_state=3)).get_params() == PairMap(perplexity=7, random_state=3).get_params()
    )
    assert not hasattr(clone(PairMap(init=fitted)).init, "embedding_")


def test_align_undoes_a_turn_a_mirror_and_a_shift():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((50, 2))
    turn = np.array([[0.6, 0.8], [0.8, -0.6]])
    np.testing.assert_allclose(align(Z @ turn + [3, -4], Z), Z, atol=1e-12)


def test_pickles_and_files_keep_what_is_computed_on_demand(fitted, wine, tmp_path):
    X, _, _ = wine
    save(fitted, tmp_path / "map.pairlens")
    for again in pickle.loads(pickle.dumps(fitted)), load(tmp_path / "map.pairlens"):
        np.testing.assert_array_equal(again.transform(X + 0.1), fitted.transform(X + 0.1))
        np.testing.assert_array_equal(again.suspicious_pairs().suspicion, fitted.suspicious_pairs().suspicion)
        assert again.mistakes_ == fitted.mistakes_


def test_pipeline_and_frames(wine):
    X, _, pairs = wine
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), PairMap(**FAST)).fit(X, constraints=pairs)
    assert pipe[-1].long_range_ > 0
    frame = PairMap(**FAST).set_output(transform="pandas").fit_transform(X, constraints=pairs)
    assert list(frame.columns) == ["pairmap0", "pairmap1"]


def test_progress_goes_to_standard_error(wine, capsys):
    X, _, pairs = wine
    PairMap(**FAST).fit(X, constraints=pairs)
    assert capsys.readouterr() == ("", "")
    PairMap(**FAST, verbose=1).fit(X, constraints=pairs)
    out, err = capsys.readouterr()
    assert out == ""
    assert "iteration 80 of 90" in err


def test_answers_join_what_the_rows_alone_part():
    """Each group is two far clusters: neighbours cannot tell, answers can."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    part = rng.integers(0, 2, 200)
    centres = np.array([[0, 0], [10, 10], [10, 0], [0, 10.0]])
    X = np.column_stack([centres[2 * y + part] + rng.standard_normal((200, 2)), rng.standard_normal((200, 3))])

    def ari(known):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SupervisionWarning)
            Z = PairMap(random_state=0).fit(X, constraints=known).embedding_
        return adjusted_rand_score(y, KMeans(2, n_init=4, random_state=0).fit_predict(Z))

    assert ari(Constraints(n_samples=200)) < 0.3
    assert ari(Constraints.from_labels(y, n_pairs=150, random_state=0)) > 0.8


def test_a_start_from_which_nothing_finds_back_and_no_threads_are_refused():
    rows = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(ValueError, match=r"init holds places up to .*e\+10, .* Give a former map"):
        PairMap(init=rows[:, :2] * 1e10, **FAST).fit(rows)
    with pytest.raises(ValueError, match="'n_jobs' parameter of PairMap"):
        PairMap(n_jobs=0, **FAST).fit(rows)
