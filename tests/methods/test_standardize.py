"""Whether features are z-scored or keep their scale."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import WBDR, Constraints, KernelWBDR, LinearPairLens, PairLens, PairMap, TableEncoder
from pairlens.exceptions import SupervisionWarning
from pairlens.judging import PairFolds, held_out_distances
from pairlens.tables.scaled import Scaled

X, Y = load_wine(return_X_y=True)
X = X[::2]
Y = Y[::2]
Z = StandardScaler().fit_transform(X)
PAIRS = Constraints.from_labels(Y, n_pairs=60, random_state=0)
METHODS = [PairLens(2, random_state=0), LinearPairLens(2, random_state=0), PairMap(n_iter=20, random_state=0)]


def made(method, **parameters):
    if type(method) is PairMap:
        pytest.importorskip("openTSNE", reason="PairMap needs openTSNE: pip install 'pairlens[map]'")
    return type(method)(**{**method.get_params(), **parameters})


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_z_scores_are_what_they_become(method):
    """Kept, z-scores give the view that raw features give when they are z-scored."""
    scored = made(method).fit(X, constraints=PAIRS)
    kept = made(method, standardize=False).fit(Z, constraints=PAIRS)
    assert scored.standardized_
    assert not kept.standardized_
    # A map depends on the last digits.
    if type(method) is PairMap:
        np.testing.assert_allclose(kept.auc_, scored.auc_, rtol=1e-6)
    else:
        # Signs follow the largest weight of a feature, which its unit decides.
        np.testing.assert_allclose(np.abs(kept.transform(Z)), np.abs(scored.transform(X)), atol=1e-6)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_a_kept_scale_counts(method):
    weights = np.ones(X.shape[1])
    weights[3:] = 1e-3
    alike = made(method, standardize=False).fit(Z, constraints=PAIRS)
    unlike = made(method, standardize=False).fit(Z * weights, constraints=PAIRS)
    assert abs(alike.auc_ - unlike.auc_) > 1e-3
    if type(method) is LinearPairLens:
        again = made(method, standardize=True).fit(Z * weights, constraints=PAIRS)
        np.testing.assert_allclose(np.abs(again.transform(Z * weights)), np.abs(alike.transform(Z)), atol=1e-6)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_auto_keeps_the_scale_of_an_encoder(method):
    frame = pytest.importorskip("pandas", reason="TableEncoder needs pandas").DataFrame(X[:, :5]).assign(word=Y > 0)
    fitted = make_pipeline(TableEncoder(), made(method)).fit(
        frame, **{f"{type(method).__name__.lower()}__constraints": PAIRS}
    )
    assert not fitted[-1].standardized_
    scaled = make_pipeline(TableEncoder(), StandardScaler(), made(method))
    scaled.fit(frame, **{f"{type(method).__name__.lower()}__constraints": PAIRS})
    assert scaled[-1].standardized_


@pytest.mark.parametrize("sparse_output", [False, True])
def test_the_mark_of_encoded_rows(sparse_output):
    pandas = pytest.importorskip("pandas", reason="TableEncoder needs pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "b": Y.astype(str)})
    rows = TableEncoder(sparse_output=sparse_output).fit_transform(frame)
    assert isinstance(rows, Scaled)
    assert isinstance(rows[:5], Scaled)
    assert isinstance(pickle.loads(pickle.dumps(rows)), Scaled)
    model = LinearPairLens(2, random_state=0).fit(rows, constraints=PAIRS)
    assert not model.standardized_
    if not sparse_output:
        assert not isinstance(np.asarray(rows), Scaled)
        assert not isinstance(rows - rows.mean(axis=0), Scaled)
        assert not isinstance(np.hstack([rows, X]), Scaled)
        assert not isinstance(PCA(2).fit_transform(rows), Scaled)
        assert type(rows.mean(axis=0)) is np.ndarray
        assert isinstance(rows.sum(), float)
    else:
        assert sparse.issparse(rows)
        assert not isinstance(rows.toarray(), Scaled)


def test_model_files_know(tmp_path):
    from pairlens.io.models import load, save

    model = PairLens(2, standardize=False, random_state=0).fit(Z, constraints=PAIRS)
    save(model, tmp_path / "m.pairlens")
    again = load(tmp_path / "m.pairlens")
    assert again.standardize is False
    np.testing.assert_array_equal(again.transform(Z), model.transform(Z))


def encoded():
    pandas = pytest.importorskip("pandas", reason="TableEncoder needs pandas")
    return TableEncoder().fit_transform(pandas.DataFrame(X).assign(word=np.where(X[:, 0] > 13, "a", "b")))


def test_the_guard_of_encoded_rows_with_few_pairs():
    """KernelWBDR has the only word; the stages keep theirs on plain rows, and without any pairs."""
    rows = encoded()
    few = Constraints([(0, 1), (2, 3)], [(0, 80), (1, 70)], n_samples=len(X))
    model = PairLens(2, random_state=0).fit(rows, constraints=few)
    assert model.chosen_ == "kernel-wbdr"
    other = KernelWBDR(2).fit(np.asarray(rows), constraints=few)
    np.testing.assert_allclose(np.abs(model.transform(rows)), np.abs(other.transform(np.asarray(rows))), atol=1e-7)
    assert PairLens(2, random_state=0).fit(np.asarray(rows), constraints=few).chosen_ == "diffusion"
    nothing = Constraints(n_samples=len(X))
    with pytest.warns(SupervisionWarning):
        assert PairLens(2, random_state=0).fit(rows, constraints=nothing).chosen_ == "diffusion"


def test_the_guard_of_encoded_rows_takes_the_best_on_the_same_folds(tmp_path):
    """Of KernelWBDR and WBDR the better one, unless the stages are better: with two directions by the margin."""
    from pairlens.io.models import load, save

    rows, chosen = encoded(), set()
    plain = np.asarray(rows)
    for n_dims, n_pairs, seed in itertools.product((2, 3), (24, 40), (0, 2)):
        pairs = Constraints.from_labels(Y, n_pairs=n_pairs, random_state=seed)
        model = PairLens(n_dims, random_state=seed).fit(rows, constraints=pairs)
        stages = PairLens(n_dims, guard=False, random_state=seed).fit(rows, constraints=pairs)
        folds = PairFolds.draw(pairs, 3, seed)
        aucs = {}
        for tag, rival in (("kernel-wbdr", KernelWBDR(n_dims)), ("wbdr", WBDR(n_dims))):
            held_out = held_out_distances(
                lambda train, r=rival: r.fit(plain, constraints=train).transform(plain), folds
            )
            aucs[tag] = held_out.auc(n_dims)
        best = max(aucs, key=aucs.get)
        lead = held_out.margin if n_dims == 2 else 0.0
        expected = stages.chosen_ if stages.auc_ > aucs[best] + lead else best
        assert model.chosen_ == expected
        assert model.auc_ == pytest.approx(aucs[best] if expected == best else stages.auc_)
        chosen.add(expected)
        if expected == "wbdr":
            save(model, tmp_path / "m.pairlens")
            np.testing.assert_array_equal(load(tmp_path / "m.pairlens").transform(rows), model.transform(rows))
            np.testing.assert_allclose(
                model.transform(rows), WBDR(n_dims).fit(plain, constraints=pairs).transform(plain), atol=1e-9
            )
    assert chosen >= {"wbdr", "kernel-wbdr"}


def test_asking_keeps_the_scale_of_an_encoder():
    """Without answers, distances are those of the encoded rows, up to one factor."""
    from pairlens.asking.view import Lens

    pandas = pytest.importorskip("pandas", reason="TableEncoder needs pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 6], "kind": Y.astype(str), "c": X[:, 9]})
    rows = TableEncoder(weights={"a": 9.0}).fit_transform(frame)
    marked, plain = Lens(rows), Lens(np.asarray(rows))
    assert np.ptp(pdist(marked.principal) / pdist(rows)) < 1e-6
    assert np.ptp(pdist(plain.principal) / pdist(rows)) > 1e-2
