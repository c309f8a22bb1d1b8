"""ONNX files agree with transform, by ONNX's own reference implementation and by onnxruntime."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

from pairlens import LMCA, WBDR, WSDR, Constraints, PairLens, Preferences, view_pipeline
from pairlens.io.onnx import export_onnx
from pairlens.selection.fitting import fit_model
from tests.estimators import linear_methods

onnx = pytest.importorskip("onnx", reason="needs the extra io: pip install 'pairlens[io]'")

RNG = np.random.default_rng(0)
Y = np.repeat(np.arange(3), 30)
X = RNG.standard_normal((90, 6)) + 2 * np.eye(3, 6)[Y]
PAIRS = Constraints.from_labels(Y, n_pairs=60, random_state=0)
ORDER = Preferences.from_scores(Y, n_pairs=60, random_state=0)


def fitted(model, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_model(model, rows, PAIRS, ORDER)


def run(path, rows):
    ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime to run what was exported")
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["embedding"], {"X": rows})[0]


def assert_agrees(model, rows, path):
    dtype = str(rows.dtype)
    export_onnx(model, path, dtype=dtype)
    found = run(path, rows)
    expected = np.asarray(model.transform(rows))
    assert found.dtype == rows.dtype
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=1e-5)


@pytest.mark.parametrize("cls", [*linear_methods(), WSDR, LMCA])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_linear_method(cls, dtype, tmp_path):
    rows = X.astype(dtype)
    assert_agrees(fitted(cls(), rows), rows, tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        MinMaxScaler(),
        MinMaxScaler((-1, 3), clip=True),
        MaxAbsScaler(),
        RobustScaler(),
        PCA(4),
        PCA(4, whiten=True),
        "passthrough",
    ],
    ids=repr,
)
def test_pipelines(scaler, tmp_path):
    model = fitted(make_pipeline(scaler, WBDR(2)), X)
    assert_agrees(model, X.astype(np.float32), tmp_path / "model.onnx")


@pytest.mark.parametrize("scaler", ["passthrough", StandardScaler(), MinMaxScaler()], ids=repr)
@pytest.mark.parametrize("fitted_to", [np.float32, np.float64])
def test_float32_rows_far_from_zero(scaler, fitted_to, tmp_path):
    """1e5 away, float32 still tells rows apart by 1e-2; nothing of that may be lost.

    The judge is transform of the same rows in 64 bits: in 32, the scalers of scikit-learn lose digits themselves.
    """
    rows = (X + 1e5).astype(np.float32)
    model = fitted(make_pipeline(scaler, WBDR(2)), rows.astype(fitted_to))
    path = tmp_path / "model.onnx"
    export_onnx(model, path)
    exact = model.transform(rows.astype(np.float64))
    np.testing.assert_allclose(run(path, rows), exact, rtol=0, atol=1e-5 * np.abs(exact).max())


def test_missing_values(tmp_path):
    rows = X.copy()
    rows[3, 2] = rows[7, 0] = np.nan
    assert_agrees(fitted(make_pipeline(SimpleImputer(strategy="median"), WBDR(2)), rows), rows, tmp_path / "m.onnx")


def test_columns_of_a_table(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcdef"))
    model = fitted(make_pipeline(StandardScaler(), WBDR(2)), table)
    path = tmp_path / "model.onnx"
    export_onnx(model, path, dtype="float64")
    np.testing.assert_allclose(run(path, X), model.transform(table), atol=1e-12)
    properties = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert properties == {"columns": "a\nb\nc\nd\ne\nf"}


def test_numbers_of_a_table(tmp_path):
    """The encoder in front leaves out columns of one value and fills in medians."""
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcdef")).assign(c=1.0)
    model = fitted(view_pipeline(table, WBDR(2)), table)
    path = tmp_path / "model.onnx"
    export_onnx(model, path, dtype="float64")
    rows = table.to_numpy()
    rows[3, 1] = np.nan
    np.testing.assert_allclose(
        run(path, rows), model.transform(table.set_axis(range(90)).mask(np.isnan(rows))), atol=1e-12
    )
    words = table.assign(word=["x", "y", "z"] * 30)
    with pytest.raises(TypeError, match=r"encodes the columns 'word' cannot be written as ONNX.*drop="):
        export_onnx(fitted(view_pipeline(words, WBDR(2)), words), tmp_path / "words.onnx")


def test_any_number_of_rows(tmp_path):
    model = fitted(WBDR(2), X)
    export_onnx(model, tmp_path / "model.onnx")
    assert run(tmp_path / "model.onnx", X[:1].astype(np.float32)).shape == (1, 2)


@pytest.mark.parametrize("model", [PairLens(random_state=0), make_pipeline(StandardScaler(), PairLens(random_state=0))])
def test_what_is_not_linear_is_refused(model, tmp_path):
    with pytest.raises(TypeError, match=r"PairLens is not linear.*LinearPairLens"):
        export_onnx(fitted(model, X), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_words_are_refused(tmp_path):
    words = np.array([["a"], ["b"]] * 45, dtype=object)
    model = fit_model(make_pipeline(OneHotEncoder(sparse_output=False), WBDR(1)), words, PAIRS)
    with pytest.raises(TypeError, match="OneHotEncoder is not linear"):
        export_onnx(model, tmp_path / "model.onnx")


def test_the_type_of_numbers_is_checked(tmp_path):
    with pytest.raises(ValueError, match="float16"):
        export_onnx(fitted(WBDR(2), X), tmp_path / "model.onnx", dtype="float16")
