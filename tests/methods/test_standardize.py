"""Whether features are scaled or keep their scale: one parameter, and a warning where it takes what they say."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import Constraints, LinearPairLens, PairLens, PairMap, TableEncoder
from pairlens.exceptions import ScaleWarning

X, Y = load_wine(return_X_y=True)
X = X[::2]
Y = Y[::2]
Z = StandardScaler().fit_transform(X)
PAIRS = Constraints.from_labels(Y, n_pairs=60, random_state=0)
METHODS = [PairLens(2, random_state=0), LinearPairLens(2, random_state=0), PairMap(max_iter=20, random_state=0)]
methods = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)


def made(method, **parameters):
    if type(method) is PairMap:
        pytest.importorskip("openTSNE", reason="PairMap needs openTSNE: pip install 'pairlens[map]'")
    return type(method)(**{**method.get_params(), **parameters})


@methods
def test_z_scores_are_what_they_become(method):
    """Kept, z-scores give the view that raw features give when they are scaled; no column of wine is rare."""
    scaled = made(method).fit(X, constraints=PAIRS)
    kept = made(method, standardize=False).fit(Z, constraints=PAIRS)
    np.testing.assert_allclose(kept.auc_, scaled.auc_, rtol=1e-6)
    # A map depends on the last digits.
    if type(method) is not PairMap:
        # Signs follow the largest weight of a feature, which its unit decides.
        np.testing.assert_allclose(np.abs(kept.transform(Z)), np.abs(scaled.transform(X)), atol=1e-6)


@methods
def test_a_kept_scale_counts(method):
    weights = np.ones(X.shape[1])
    weights[3:] = 1e-2
    left, right = Z[:40], Z[40:80]
    alike = made(method, standardize=False).fit(Z, constraints=PAIRS)
    unlike = made(method, standardize=False).fit(Z * weights, constraints=PAIRS)
    scaled = made(method).fit(Z * weights, constraints=PAIRS)
    expected = alike.pair_proba(left, right)
    assert np.abs(unlike.pair_proba(left * weights, right * weights) - expected).max() > 0.01
    np.testing.assert_allclose(scaled.pair_proba(left * weights, right * weights), expected, atol=1e-5)


@methods
def test_principal_components_that_are_scaled_are_a_warning(method):
    scores = PCA().fit_transform(X / X.std(axis=0) * np.linspace(5, 1, X.shape[1]))
    name = type(method).__name__
    with pytest.warns(ScaleWarning, match=f"{name}: the columns of X look like principal components") as caught:
        made(method).fit(scores, constraints=PAIRS)
    assert [w.filename for w in caught if w.category is ScaleWarning] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaleWarning)
        made(method, standardize=False).fit(scores, constraints=PAIRS)
        made(method).fit(X, constraints=PAIRS)


def test_principal_components_keep_what_they_say():
    """Of components with falling variance, the scale says how much each counts; scaled to one, noise counts as much."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    rows = rng.standard_normal((200, 60))
    rows[:, :2] += 6 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    scores = PCA(40).fit_transform(rows)
    pairs = Constraints.from_labels(y, n_pairs=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)
        scaled, kept = (
            PairLens(2, standardize=standardize, random_state=0).fit(scores, constraints=pairs).score(scores, y)
            for standardize in (True, False)
        )
    assert kept > 0.9
    assert kept > scaled + 0.1


def test_files_keep_the_parameter(tmp_path):
    from pairlens.io.models import load, save

    model = PairLens(2, standardize=False, random_state=0).fit(Z, constraints=PAIRS)
    save(model, tmp_path / "m.pairlens")
    again = load(tmp_path / "m.pairlens")
    assert again.standardize is False
    np.testing.assert_array_equal(again.transform(Z), model.transform(Z))


@methods
def test_encoded_rows_are_plain_arrays_and_the_parameter_decides(method):
    pandas = pytest.importorskip("pandas", reason="TableEncoder needs pandas")
    frame = pandas.DataFrame(X[:, :5]).assign(word=np.array(["a", "b", "c"])[np.digitize(X[:, 0], [12.5, 13.5])])
    rows = TableEncoder().fit_transform(frame)
    assert type(rows) is np.ndarray
    name = type(method).__name__.lower()
    kept = make_pipeline(TableEncoder(), made(method, standardize=False))
    kept.fit(frame, **{f"{name}__constraints": PAIRS})
    by_rows = made(method, standardize=False).fit(rows, constraints=PAIRS)
    scaled = made(method).fit(rows, constraints=PAIRS)
    asked = rows[:30], rows[30:60]
    np.testing.assert_array_equal(kept[-1].pair_proba(*asked), by_rows.pair_proba(*asked))
    assert np.abs(scaled.pair_proba(*asked) - by_rows.pair_proba(*asked)).max() > 1e-3


@pytest.mark.parametrize("wrong", ["auto", None, 2])
def test_other_values_are_refused(wrong):
    with pytest.raises(ValueError, match="'standardize' parameter of PairLens"):
        PairLens(standardize=wrong).fit(X, constraints=PAIRS)
