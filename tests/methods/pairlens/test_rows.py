"""LinearPairLens and PairLens: new rows, odd inputs, errors, many rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from pairlens import Constraints, LinearPairLens, PairLens
from pairlens.exceptions import SupervisionWarning
from pairlens.methods.pairlens import lens as lens_module
from tests.methods.cases import lists, quiet
from tests.methods.pairlens.cases import LENSES, assert_same_up_to_sign
from tests.oracles import pairlens as oracle
from tests.oracles import subspace_angle

# ----------------------------------------------------------------------------------------------- new rows, odd inputs


@quiet
@pytest.mark.parametrize("n_components", [2, 4])
@pytest.mark.parametrize("cls", LENSES)
def test_transform_of_training_rows_is_fit_transform_and_row_by_row(wine, cls, n_components):
    X, _, pairs = wine
    model = cls(n_components, random_state=0)
    Z = model.fit_transform(X, constraints=pairs)
    np.testing.assert_allclose(model.transform(X), Z, atol=1e-9 * np.abs(Z).max())
    new = X[:5] * 1.01
    one_by_one = np.vstack([model.transform(row[None]) for row in new])
    np.testing.assert_allclose(model.transform(new), one_by_one, atol=1e-9 * np.abs(Z).max())


def test_a_training_row_has_its_own_place_in_the_diffusion_view(wine):
    X, _, pairs = wine
    model = PairLens(2, guard=False, random_state=0).fit(X, constraints=pairs)
    expected = oracle.staged(X, *lists(pairs), 2, prior=model.prior_strength_)
    assert_same_up_to_sign(model.transform(X[[17, 3]]), expected.embedding[[17, 3]])


@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize("cls", LENSES)
def test_float32_stays_float32_and_close(wine, cls, n_components):
    X, _, pairs = wine
    double = cls(n_components, random_state=0).fit_transform(X, constraints=pairs)
    single = cls(n_components, random_state=0).fit_transform(X.astype(np.float32), constraints=pairs)
    assert single.dtype == np.float32
    assert subspace_angle(single.T.astype(float), double.T) < 0.01


@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize("cls", LENSES)
def test_wide_rows(cls, n_components):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 25)
    X = rng.standard_normal((75, 400))
    X[:, :3] += 12 * np.eye(3)[y]
    X[:, :60] += np.repeat(3 * np.eye(3)[y], 20, axis=1)
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    model = cls(n_components, random_state=0).fit(X, constraints=pairs)
    assert model.score(X, y) > 0.9
    if cls is LinearPairLens:
        expected = oracle.linear(X, *lists(pairs), n_components, prior=model.prior_strength_)
        assert subspace_angle(model.components_, expected.components) < 1e-6


@pytest.mark.parametrize("shape", [(120, 40), (60, 300)])
@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize("cls", LENSES)
def test_sparse_rows_are_the_same_as_dense_ones(cls, n_components, shape):
    n, f = shape
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = rng.poisson(0.6, (n, f)) * rng.random((n, f))
    X[:, :15] += 2 * np.repeat(np.eye(3)[y], 5, axis=1)
    X[:, -1] = 1e4
    pairs = Constraints.from_labels(y, n_pairs=70, random_state=0)
    for guard in [{}] if cls is LinearPairLens else [{"guard": True}, {"guard": False}]:
        dense = cls(n_components, random_state=0, **guard).fit(X, constraints=pairs)
        stored = cls(n_components, random_state=0, **guard).fit(sparse.csr_matrix(X), constraints=pairs)
        expected = dense.transform(X[:20])
        np.testing.assert_allclose(
            stored.transform(sparse.csr_matrix(X[:20])), expected, atol=1e-6 * np.abs(expected).max()
        )


def test_the_guards_choice_keeps_sparse_rows_sparse(shells):
    X, y = shells
    pairs = Constraints.from_labels(y, n_pairs=120, random_state=0)
    stored = PairLens(2, random_state=5).fit(sparse.csr_matrix(X), constraints=pairs)
    assert stored.chosen_ == "kernel-bwdr"
    assert sparse.issparse(stored._other._features.anchors)
    dense = PairLens(2, random_state=5).fit(X, constraints=pairs).transform(X)
    np.testing.assert_allclose(stored.transform(sparse.csr_matrix(X)), dense, atol=1e-6 * np.abs(dense).max())


@quiet
@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize("cls", LENSES)
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
@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("cls", LENSES)
def test_very_few_rows(cls, n_components):
    X = np.random.default_rng(0).standard_normal((4, 3))
    pairs = Constraints([(0, 1)], [(0, 2)], 4)
    Z = cls(n_components, random_state=0).fit_transform(X, constraints=pairs)
    assert np.isfinite(Z).all()
    assert Z.shape[0] == 4


@pytest.mark.parametrize(
    "seed", [0, np.random.RandomState(0), np.random.default_rng(0)], ids=["int", "state", "generator"]
)
@pytest.mark.parametrize("cls", LENSES)
def test_the_same_seed_gives_the_same_view(wine, cls, seed):
    X, _, pairs = wine
    noisy = pairs.flip(0.1, random_state=0)
    first, again = (clone(cls(3, random_state=seed)).fit(X, constraints=noisy) for _ in range(2))
    assert first.purity_ == again.purity_
    np.testing.assert_array_equal(first.transform(X), again.transform(X))
    np.testing.assert_array_equal(first.suspicious_pairs().pairs, again.suspicious_pairs().pairs)


@pytest.mark.parametrize("cls", LENSES)
def test_scale_and_shift_of_features_do_not_matter(wine, cls):
    X, _, pairs = wine
    rng = np.random.default_rng(0)
    scaled = X * rng.uniform(0.1, 100, X.shape[1]) + rng.uniform(-50, 50, X.shape[1])
    one, other = (cls(2, random_state=0).fit(rows, constraints=pairs).transform(rows) for rows in (X, scaled))
    assert_same_up_to_sign(other, one, 1e-5)
    for factor in (1e200, 1e-200):
        extreme = cls(2, random_state=0).fit(factor * X, constraints=pairs).transform(factor * X)
        assert_same_up_to_sign(extreme, one, 1e-5)


# ------------------------------------------------------------------------------------------------------------- errors


def test_errors_say_what_would_be_right(wine):
    X, _, pairs = wine
    with pytest.raises(ValueError, match="n_components=14 must be at most the number of features, 13"):
        LinearPairLens(14).fit(X, constraints=pairs)
    with pytest.raises(ValueError, match="n_components=178 must be less than the number of rows, 178"):
        PairLens(178).fit(X, constraints=pairs)
    for cls in LENSES:
        with pytest.raises(ValueError, match="X has no variation"):
            cls().fit(np.ones((20, 3)), constraints=Constraints([(0, 1)], [(2, 3)], 20))
        with pytest.raises(ValueError, match="'n_components' parameter"):
            cls("many").fit(X, constraints=pairs)
        with pytest.raises(ValueError, match="constraints are for 178 rows but X has 100"):
            cls().fit(X[:100], constraints=pairs)
    for bad in ({"spread": 1.0}, {"prior": 0.0}, {"prior": "strong"}, {"n_neighbors": 0}):
        with pytest.raises(ValueError, match=f"'{next(iter(bad))}' parameter"):
            LinearPairLens(**bad).fit(X, constraints=pairs)


@quiet
def test_more_directions_than_the_second_stage_has_is_a_warning(wine):
    X, _, pairs = wine
    with pytest.warns(SupervisionWarning, match="found 50 usable directions of the n_components=60"):
        model = PairLens(60, guard=False, random_state=0).fit(X, constraints=pairs)
    assert model.transform(X).shape == (178, 50)


# ------------------------------------------------------------------------------------------------------- many rows


@pytest.mark.parametrize("lens", [LinearPairLens(3), PairLens(2, guard=False), PairLens(3, guard=False)], ids=str)
def test_an_index_gives_the_view_of_the_exact_search(lens):
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 1200)
    X = 2 * rng.standard_normal((4, 10))[y] + rng.standard_normal((1200, 10))
    pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    exact, approx = (
        clone(lens).set_params(neighbors=how, random_state=0).fit(X, constraints=pairs) for how in ("exact", "approx")
    )
    assert approx.auc_ == pytest.approx(exact.auc_, abs=0.01)
    assert approx.score(X, y) == pytest.approx(exact.score(X, y), abs=0.01)
    views = [model.transform(X) - model.transform(X).mean(axis=0) for model in (exact, approx)]
    assert not np.array_equal(*views)
    if lens.n_components == 3:
        # Groups that no edge joins leave the order of the diffusion coordinates to rounding.
        assert subspace_angle(*(np.linalg.qr(view)[0].T for view in views)) < 0.05


def test_of_many_rows_some_are_judged_by(monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(lens_module, "JUDGED_ROWS", 200)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = 3 * np.eye(3, 8)[y] + rng.standard_normal((600, 8))
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    every, some = (PairLens(2, neighbors=how, random_state=0).fit(X, constraints=pairs) for how in ("exact", "approx"))
    assert some.auc_ == pytest.approx(every.auc_, abs=0.05)
    given = sorted(np.concatenate([pairs.must_link, pairs.cannot_link]).tolist())
    assert sorted(some.suspicious_pairs().pairs.tolist()) == given
    assert some.score(X, y) == pytest.approx(every.score(X, y), abs=0.02)
