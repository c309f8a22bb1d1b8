"""What is exported computes what transform does: by onnxruntime, by safetensors and NumPy, by sentence-transformers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

from pairlens import LMCA, WBDR, WSDR, Constraints, LinearPairLens, PairLens, Preferences, export, view_pipeline
from pairlens.exceptions import ArgumentError
from pairlens.selection.fitting import fit_model
from tests.estimators import linear_methods

RNG = np.random.default_rng(0)
Y = np.repeat(np.arange(3), 30)
X = RNG.standard_normal((90, 6)) + 2 * np.eye(3, 6)[Y]
PAIRS = Constraints.from_labels(Y, n_pairs=60, random_state=0)
ORDER = Preferences.from_scores(Y, n_pairs=60, random_state=0)


def fitted(model, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_model(model, rows, PAIRS, ORDER)


def to_onnx(model, path, dtype="float32"):
    pytest.importorskip("onnx", reason="needs the extra io: pip install 'pairlens[io]'")
    export(model, path, to="onnx", dtype=dtype)


def run(path, rows):
    ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime to run what was exported")
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["embedding"], {"X": rows})[0]


def assert_agrees(model, rows, path):
    dtype = str(rows.dtype)
    to_onnx(model, path, dtype=dtype)
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
    to_onnx(model, path)
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
    to_onnx(model, path, dtype="float64")
    np.testing.assert_allclose(run(path, X), model.transform(table), atol=1e-12)
    properties = {entry.key: entry.value for entry in pytest.importorskip("onnx").load(path).metadata_props}
    assert properties == {"columns": "a\nb\nc\nd\ne\nf"}


def test_numbers_of_a_table(tmp_path):
    """The encoder in front leaves out columns of one value and fills in medians."""
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcdef")).assign(c=1.0)
    model = fitted(view_pipeline(table, WBDR(2)), table)
    path = tmp_path / "model.onnx"
    to_onnx(model, path, dtype="float64")
    rows = table.to_numpy()
    rows[3, 1] = np.nan
    np.testing.assert_allclose(
        run(path, rows), model.transform(table.set_axis(range(90)).mask(np.isnan(rows))), atol=1e-12
    )
    words = table.assign(word=["x", "y", "z"] * 30)
    with pytest.raises(TypeError, match=r"encodes the columns 'word' cannot be exported.*drop="):
        export(fitted(view_pipeline(words, WBDR(2)), words), tmp_path / "words.onnx", to="onnx")


def test_any_number_of_rows(tmp_path):
    model = fitted(WBDR(2), X)
    to_onnx(model, tmp_path / "model.onnx")
    assert run(tmp_path / "model.onnx", X[:1].astype(np.float32)).shape == (1, 2)


@pytest.mark.parametrize("model", [PairLens(random_state=0), make_pipeline(StandardScaler(), PairLens(random_state=0))])
def test_what_is_not_linear_is_refused(model, tmp_path):
    with pytest.raises(TypeError, match=r"PairLens is not linear.*LinearPairLens"):
        export(fitted(model, X), tmp_path / "model.onnx", to="onnx")
    assert not list(tmp_path.iterdir())


def test_a_model_without_a_fit_is_refused(tmp_path):
    with pytest.raises(NotFittedError, match="LinearPairLens"):
        export(LinearPairLens(), tmp_path / "model", to="safetensors")


def test_words_are_refused(tmp_path):
    words = np.array([["a"], ["b"]] * 45, dtype=object)
    model = fit_model(make_pipeline(OneHotEncoder(sparse_output=False), WBDR(1)), words, PAIRS)
    with pytest.raises(TypeError, match="OneHotEncoder is not linear"):
        export(model, tmp_path / "model.onnx", to="onnx")


@pytest.mark.parametrize(
    ("to", "dtype", "message"),
    [
        ("onnx", "float16", "dtype must be 'float32' or 'float64'; got 'float16'"),
        ("pickle", "float32", "to must be one of 'onnx', 'safetensors', 'sentence-transformers'; got 'pickle'"),
        ("sentence-transformers", "float64", "dtype must be 'float32' for sentence-transformers"),
    ],
)
def test_arguments_are_checked(to, dtype, message, tmp_path):
    with pytest.raises(ArgumentError, match=message):
        export(fitted(WBDR(2), X), tmp_path / "model", to=to, dtype=dtype)
    assert not list(tmp_path.iterdir())


def affine(path):
    """Weight and bias of a file, read by the library that defines the format."""
    reader = pytest.importorskip("safetensors.numpy", reason="needs the extra embed")
    tensors = reader.load_file(path)
    assert set(tensors) == {"weight", "bias"}
    return tensors["weight"], tensors["bias"]


SCALERS = [
    "passthrough",
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((-1, 3)),
    MaxAbsScaler(),
    RobustScaler(),
    SimpleImputer(strategy="median"),
    PCA(4, whiten=True),
]


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
def test_one_affine_map_is_what_a_pipeline_computes(scaler, tmp_path):
    model = fitted(make_pipeline(scaler, WBDR(2)), X)
    export(model, tmp_path / "model.safetensors", to="safetensors", dtype="float64")
    weight, bias = affine(tmp_path / "model.safetensors")
    assert weight.shape == (2, 6)
    np.testing.assert_allclose(X @ weight.T + bias, model.transform(X), atol=1e-12)


def test_the_affine_map_of_a_table_leaves_out_what_its_encoder_leaves_out(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcdef")).assign(c=1.0)
    model = fitted(view_pipeline(table, WBDR(2)), table)
    path = tmp_path / "model.safetensors"
    export(model, path, to="safetensors")
    weight, bias = affine(path)
    assert weight.dtype == np.float32
    assert not weight[:, 2].any()
    np.testing.assert_allclose(table.to_numpy() @ weight.T + bias, model.transform(table), atol=1e-5)
    with pytest.importorskip("safetensors").safe_open(path, "numpy") as file:
        assert file.metadata() == {"columns": "a\nb\nc\nd\ne\nf", "format": "pt"}


def test_what_clips_is_no_affine_map(tmp_path):
    model = fitted(make_pipeline(MinMaxScaler(clip=True), WBDR(2)), X)
    with pytest.raises(TypeError, match="clip=True is not affine"):
        export(model, tmp_path / "model.safetensors", to="safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_adapter_in_sentence_transformers_gives_the_same_vectors(tmp_path):
    """The texts are embedded by a small network with random weights: what it knows does not matter here."""
    library = pytest.importorskip("sentence_transformers", reason="needs the extra embed")
    torch = pytest.importorskip("torch")
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    words = [f"word{k}" for k in range(40)]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words[10 * y : 10 * y + 20], 6)) for y in Y]
    torch.manual_seed(0)
    bag = modules.BoW(vocab=words)
    dense = modules.Dense(len(words), 64)
    base = library.SentenceTransformer(modules=[bag, dense, modules.Normalize()], device="cpu")
    embeddings = base.encode(texts)
    model = LinearPairLens(8, standardize=False, random_state=0).fit(embeddings, constraints=PAIRS)
    export(model, tmp_path / "adapter", to="sentence-transformers")
    adapted = library.SentenceTransformer(modules=[*base, modules.Dense.load(str(tmp_path / "adapter"))], device="cpu")
    found, expected = adapted.encode(texts), model.transform(embeddings.astype(np.float64))
    assert found.shape == (90, 8)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    adapted.save(str(tmp_path / "whole"))
    again = library.SentenceTransformer(str(tmp_path / "whole"), device="cpu")
    np.testing.assert_array_equal(again.encode(texts), found)
