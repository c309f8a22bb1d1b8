"""What LinearPairLens and PairLens have in common: odd inputs, few or bad pairs, what they say about themselves."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from pairlens import Constraints, LinearPairLens, PairLens, load, save
from pairlens.exceptions import SupervisionWarning
from pairlens.judging import auc_standard_error
from tests.learning.cases import assert_same_geometry
from tests.methods.cases import quiet
from tests.oracles import subspace_angle

LENSES = [LinearPairLens, PairLens]
contradicted = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
both = pytest.mark.parametrize("cls", LENSES)


# ---------------------------------------------------------------------------------------------- new rows, odd inputs


@quiet
@pytest.mark.parametrize("n_components", [2, 4])
@both
def test_transform_of_training_rows_is_fit_transform_and_row_by_row(wine, cls, n_components):
    X, _, pairs = wine
    model = cls(n_components, random_state=0)
    Z = model.fit_transform(X, constraints=pairs)
    np.testing.assert_allclose(model.transform(X), Z, atol=1e-9 * np.abs(Z).max())
    new = X[:5] * 1.01
    one_by_one = np.vstack([model.transform(row[None]) for row in new])
    np.testing.assert_allclose(model.transform(new), one_by_one, atol=1e-9 * np.abs(Z).max())


@pytest.mark.parametrize("n_components", [2, 3])
@both
def test_float32_stays_float32_and_close(wine, cls, n_components):
    X, _, pairs = wine
    double = cls(n_components, random_state=0).fit_transform(X, constraints=pairs)
    single = cls(n_components, random_state=0).fit_transform(X.astype(np.float32), constraints=pairs)
    assert single.dtype == np.float32
    assert subspace_angle(single.T.astype(float), double.T) < 0.01


@pytest.mark.parametrize("n_components", [2, 3])
@both
def test_wide_rows(cls, n_components):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 25)
    X = rng.standard_normal((75, 400))
    X[:, :3] += 12 * np.eye(3)[y]
    X[:, :60] += np.repeat(3 * np.eye(3)[y], 20, axis=1)
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    assert cls(n_components, random_state=0).fit(X, constraints=pairs).score(X, y) > 0.9


@pytest.mark.parametrize("shape", [(120, 40), (60, 300)])
@pytest.mark.parametrize("n_components", [2, 3])
@both
def test_sparse_rows_are_the_same_as_dense_ones(cls, n_components, shape):
    n, f = shape
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = rng.poisson(0.6, (n, f)) * rng.random((n, f))
    X[:, :15] += 2 * np.repeat(np.eye(3)[y], 5, axis=1)
    X[:, -1] = 1e4
    pairs = Constraints.from_labels(y, n_pairs=70, random_state=0)
    dense, stored = (cls(n_components, random_state=0).fit(rows, constraints=pairs) for rows in (X, _csr(X)))
    assert_same_geometry(stored.transform(_csr(X)), dense.transform(X), 1e-6)
    np.testing.assert_allclose(stored.pair_proba(_csr(X[:9]), _csr(X[9:18])), dense.pair_proba(X[:9], X[9:18]))


def _csr(X):
    return sparse.csr_matrix(X)


@quiet
@pytest.mark.parametrize("n_components", [2, 3])
@both
def test_repeated_rows_do_no_harm(wine, cls, n_components):
    X, y = wine[0][::2], wine[1][::2]
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    many = np.repeat(X, 12, axis=0)
    spaced = Constraints(12 * pairs.must_link, 12 * pairs.cannot_link, len(many))
    model = cls(n_components, random_state=0).fit(many, constraints=spaced)
    Z = model.transform(many)
    assert np.isfinite(Z).all()
    assert model.score(X, y) > 0.85
    np.testing.assert_allclose(Z, np.repeat(Z[::12], 12, axis=0), atol=1e-9 * np.abs(Z).max())


@quiet
@pytest.mark.parametrize("n", [3, 4, 6, 9])
@pytest.mark.parametrize("n_components", [1, 2])
@both
def test_very_few_rows(cls, n_components, n):
    X = np.random.default_rng(0).standard_normal((n, 3))
    pairs = Constraints([(0, 1)], [(0, 2)], n)
    Z = cls(n_components, random_state=0).fit_transform(X, constraints=pairs)
    assert Z.shape == (n, n_components)
    assert np.isfinite(Z).all()


@pytest.mark.parametrize(
    "seed", [0, np.random.RandomState(0), np.random.default_rng(0)], ids=["int", "state", "generator"]
)
@both
def test_the_same_seed_gives_the_same_view(wine, cls, seed):
    X, _, pairs = wine
    noisy = pairs.flip(0.1, random_state=0)
    first, again = (clone(cls(3, random_state=seed)).fit(X, constraints=noisy) for _ in range(2))
    assert first.auc_ == again.auc_
    np.testing.assert_array_equal(first.transform(X), again.transform(X))
    np.testing.assert_array_equal(first.suspicious_pairs().pairs, again.suspicious_pairs().pairs)


@both
def test_scale_and_shift_of_features_do_not_matter(wine, cls):
    X, _, pairs = wine
    rng = np.random.default_rng(0)
    scaled = X * rng.uniform(0.1, 100, X.shape[1]) + rng.uniform(-50, 50, X.shape[1])
    one, *others = (
        cls(2, random_state=0).fit(rows, constraints=pairs).transform(rows)
        for rows in (X, scaled, 1e200 * X, 1e-200 * X)
    )
    for other in others:
        assert_same_geometry(other, one, 1e-5)


@both
def test_dask_rows_give_the_view_of_an_array(wine, cls):
    da = pytest.importorskip("dask.array", reason="dask rows need pairlens[dask]")
    X, _, pairs = wine
    expected = cls(2, random_state=0).fit(X, constraints=pairs)
    chunks = da.from_array(X, chunks=(50, 13))
    found = cls(2, random_state=0).fit(chunks, constraints=pairs)
    assert_same_geometry(np.asarray(found.transform(chunks)), expected.transform(X), 1e-8)
    assert found.auc_ == pytest.approx(expected.auc_)


@both
def test_pickles_and_files_keep_all_that_was_learned(wine, cls, tmp_path):
    X, _, pairs = wine
    model = cls(2, random_state=0).fit(X, constraints=pairs)
    save(model, tmp_path / "model.pairlens")
    for again in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.pairlens")):
        np.testing.assert_array_equal(again.transform(X + 0.1), model.transform(X + 0.1))
        np.testing.assert_array_equal(again.pair_proba(X[:9], X[9:18]), model.pair_proba(X[:9], X[9:18]))
        np.testing.assert_array_equal(again.suspicious_pairs().suspicion, model.suspicious_pairs().suspicion)
        assert again.get_params() == model.get_params()
        for name in ("prior_", "space_weights_"):
            assert getattr(again, name, None) == getattr(model, name, None)


def test_errors_say_what_would_be_right(wine):
    X, _, pairs = wine
    with pytest.raises(ValueError, match="n_components must be at most the number of features, 13; got 14"):
        LinearPairLens(14).fit(X, constraints=pairs)
    with pytest.raises(ValueError, match="n_components must be less than the number of rows, 178; got 178"):
        PairLens(178).fit(X, constraints=pairs)
    for cls in LENSES:
        with pytest.raises(ValueError, match="X has no variation"):
            cls().fit(np.ones((20, 3)), constraints=Constraints([(0, 1)], [(2, 3)], 20))
        with pytest.raises(ValueError, match="'n_components' parameter"):
            cls("many").fit(X, constraints=pairs)
        with pytest.raises(ValueError, match="constraints must be for 100 rows, as many as X has; got 178"):
            cls().fit(X[:100], constraints=pairs)


# --------------------------------------------------------------------------------------------------- few or bad pairs


def supervision(kind, X, y):
    pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    must, cannot = pairs.must_link, pairs.cannot_link
    return {
        "none": Constraints(n_samples=len(X)),
        "must only": Constraints(must, n_samples=len(X)),
        "cannot only": Constraints(cannot_link=cannot, n_samples=len(X)),
        "all wrong": Constraints(cannot, must, len(X), on_conflict="warn"),
        "one must": Constraints(must[:1], n_samples=len(X)),
        "one cannot": Constraints(cannot_link=cannot[:1], n_samples=len(X)),
        "one of each": Constraints(must[:1], cannot[:1], len(X)),
        "two of each": Constraints(must[:2], cannot[:2], len(X)),
    }[kind]


KINDS = ["none", "must only", "cannot only", "all wrong", "one must", "one cannot", "one of each", "two of each"]


@contradicted
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_components", [2, 3, "auto"])
@both
def test_any_supervision_gives_a_finite_view_and_a_warning_where_due(wine, cls, n_components, kind):
    X, y, _ = wine
    known = supervision(kind, X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = cls(n_components, random_state=0).fit(X, constraints=known)
    Z = model.transform(X)
    assert np.isfinite(Z).all()
    assert Z.shape == (len(X), model.n_components_)
    assert (Z.std(axis=0) > 1e-6).all()
    said = [str(w.message) for w in caught if issubclass(w.category, SupervisionWarning)]
    due = {"none": "no pairs were given", "all wrong": "swapped"}.get(kind)
    assert len(said) == (due is not None)
    assert all(due in text for text in said)
    assert all(w.filename == __file__ for w in caught if issubclass(w.category, SupervisionWarning))
    # Wine's classes are its local structure: it takes many wrong answers to hide them.
    if kind != "all wrong":
        assert model.score(X, y) > 0.7


@contradicted
@pytest.mark.parametrize("n_pairs", [60, 200])
@both
def test_swapped_answers_are_told(wine, cls, n_pairs):
    """A view that follows the answers sees noise in them; the rows as they are see the opposite."""
    X, y, _ = wine
    for seed in range(3):
        pairs = Constraints.from_labels(y, n_pairs=n_pairs, random_state=seed)
        swapped = Constraints(pairs.cannot_link, pairs.must_link, len(X))
        with pytest.warns(SupervisionWarning, match=f"{cls.__name__}: must-links are longer .* suspicious_pairs"):
            cls(random_state=0).fit(X, constraints=swapped)


@both
def test_a_notion_that_the_rows_contradict_is_no_mistake(cls):
    """Rows that belong together are far apart in most of the variance, and the view finds where they are not."""
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    X = np.column_stack([10 * rng.standard_normal(160), y + 0.1 * rng.standard_normal(160)])
    left, right = np.argsort(X[:, 0])[:80], np.argsort(X[:, 0])[80:]
    must = [(i, j) for i, j in zip(left, right) if y[i] == y[j]]
    near = np.argsort(X[:, 0])
    cannot = [(i, j) for i, j in pairwise(near) if y[i] != y[j]]
    with warnings.catch_warnings():
        warnings.simplefilter("error", SupervisionWarning)
        model = cls(1, standardize=False, random_state=0).fit(X, constraints=Constraints(must, cannot, 160))
    assert model.auc_ > 0.9


@quiet
@both
def test_auto_without_pairs_makes_a_picture(wine, cls):
    X, _, pairs = wine
    assert cls("auto").fit(X).transform(X).shape == (178, 2)
    assert cls("auto", random_state=0).fit(X, constraints=pairs).n_components_ in (1, 2, 3)


# --------------------------------------------------------------------------------------------- attributes, suspicion


@both
def test_attributes_say_what_was_done(wine, cls):
    X, _, pairs = wine
    model = cls(2, random_state=0).fit(X, constraints=pairs)
    assert model.n_components_ == 2
    assert len(model.eigenvalues_) == 2
    assert np.all(np.diff(model.eigenvalues_) <= 0)
    assert 0.9 < model.auc_ <= 1
    assert model.auc_error_ == auc_standard_error(model.auc_, pairs.n_must_link, pairs.n_cannot_link)
    assert model.get_feature_names_out().tolist() == [f"{cls.__name__.lower()}{k}" for k in range(2)]


@contradicted
@both
def test_flipped_pairs_are_the_suspicious_ones(wine, cls):
    X, y, _ = wine
    clean = Constraints.from_labels(y, n_pairs=200, random_state=1)
    noisy = clean.flip(0.1, random_state=1)
    found = cls(random_state=0).fit(X, constraints=noisy).suspicious_pairs()
    assert len(found) == 200
    assert set(map(tuple, found.pairs)) == set(map(tuple, np.concatenate([noisy.must_link, noisy.cannot_link])))
    wrong = (y[found.pairs[:, 0]] == y[found.pairs[:, 1]]) != (found.link > 0)
    assert wrong.sum() == 20
    assert wrong[:20].mean() > 0.6
    assert np.all(np.diff(found.suspicion) <= 0)
    assert found.suspicion.min() >= 0
    assert found.suspicion.max() <= 1


@both
def test_pairs_that_labels_imply_are_judged_too(wine, cls):
    X, y, _ = wine
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(len(y)) < 0.25, y, -1)
    labelled = np.flatnonzero(labels >= 0)
    wrong = int(labelled[3])
    labels[wrong] = (labels[wrong] + 1) % 3
    found = cls(random_state=0).fit(X, labels).suspicious_pairs()
    n = len(labelled)
    assert len(found) == n * (n - 1) // 2
    same = labels[found.pairs[:, 0]] == labels[found.pairs[:, 1]]
    np.testing.assert_array_equal(same, found.link > 0)
    assert np.mean(np.any(found.pairs[:n] == wrong, axis=1)) > 2 * 2 / n


@pytest.mark.parametrize(("cls", "fewest"), [(LinearPairLens, 2), (PairLens, 3)])
def test_too_few_pairs_cannot_be_judged(wine, cls, fewest):
    X, _, pairs = wine
    few = Constraints(pairs.must_link[: fewest - 1], pairs.cannot_link, len(X))
    with pytest.raises(ValueError, match=f"at least {fewest} must-links and {fewest} cannot-links"):
        cls().fit(X, constraints=few).suspicious_pairs()
    enough = Constraints(pairs.must_link[:fewest], pairs.cannot_link, len(X))
    assert len(cls(random_state=0).fit(X, constraints=enough).suspicious_pairs()) == enough.n_pairs


@both
def test_probabilities_of_the_lenses_are_reliable(cls):
    """Gaussian classes in one direction among noise: of the pairs that are called p, a share of about p is the same."""
    rng = np.random.default_rng(0)
    found, true = [], []
    for seed in range(6):
        y = rng.integers(0, 2, 400)
        rows = rng.standard_normal((400, 4))
        rows[:, 0] += 2.5 * y
        pairs = Constraints.from_labels(y[:200], n_pairs=150, random_state=seed)
        model = cls(1, random_state=0).fit(rows[:200], constraints=pairs)
        a, b = rng.permutation(np.arange(200, 400)).reshape(2, 100)
        found.append(model.pair_proba(rows[a], rows[b]))
        true.append(y[a] == y[b])
    together, same = np.concatenate(found), np.concatenate(true)
    for low in (0.0, 1 / 3, 2 / 3):
        inside = (together >= low) & (together < low + 1 / 3)
        assert inside.sum() > 30
        assert abs(together[inside].mean() - same[inside].mean()) < 0.13
