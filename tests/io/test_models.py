"""Model files: everything comes back bit for bit, and nothing but whole, honest files is read."""

from __future__ import annotations

import io
import json
import pickle
import re
import tracemalloc
import warnings
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from pairlens import (
    GBWSDR,
    MLKR,
    WBDR,
    Constraints,
    KernelBWDR,
    LinearPairLens,
    PairLens,
    Preferences,
    TableEncoder,
    Triplets,
)
from pairlens.io.models import FORMAT_VERSION, ModelFileError, load, save
from pairlens.selection.fitting import fit_model, learns_from
from tests.estimators import all_estimators

RNG = np.random.default_rng(0)
Y = np.repeat(np.arange(3), 30)
X = RNG.standard_normal((90, 6)) + 2 * np.eye(3, 6)[Y]
NEW = RNG.standard_normal((20, 6))
PAIRS = Constraints.from_labels(Y, n_pairs=60, random_state=0)
TRIPLETS = Triplets.from_labels(Y, n_triplets=60, random_state=0)
ORDER = Preferences.from_scores(Y, n_pairs=60, random_state=0)


def fitted(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(model, MLKR):
            return model.fit(X, Y)
        if "quadruplets" in learns_from(model):
            return model.fit(X, triplets=TRIPLETS)
        return fit_model(model, X, PAIRS, ORDER)


def outputs(model, rows):
    return {
        name: np.asarray(getattr(model, name)(rows))
        for name in ("transform", "predict", "decision_function")
        if hasattr(model, name)
    }


def roundtrip(model, tmp_path):
    path = tmp_path / "model.pairlens"
    save(model, path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    return load(path)


def assert_same(model, again, rows=NEW):
    assert type(again) is type(model)
    before, after = outputs(model, rows), outputs(again, rows)
    assert before
    for name, values in before.items():
        assert after[name].dtype == values.dtype
        np.testing.assert_array_equal(after[name], values)


@pytest.mark.parametrize("cls", all_estimators())
def test_every_estimator_comes_back_bit_for_bit(cls, tmp_path):
    model = fitted(cls())
    again = roundtrip(model, tmp_path)
    assert_same(model, again)
    assert again.get_params() == model.get_params()
    assert set(vars(again)) == set(vars(model))
    assert learns_from(again) == learns_from(model)


@pytest.mark.parametrize(
    "model",
    [
        PairLens(n_components=3, random_state=0),
        PairLens(n_components="auto", random_state=np.random.RandomState(3)),
        KernelBWDR(2, kernel="linear"),
        GBWSDR(backend="xgboost", n_estimators=5, random_state=0),
        GBWSDR(1, backend="xgboost", n_estimators=5, random_state=0),
        GBWSDR(backend="sklearn", n_estimators=5, random_state=0),
        WBDR(2).set_output(transform="pandas"),
        LinearPairLens(2, random_state=np.random.default_rng(4)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_forms_of_the_methods(model, tmp_path):
    assert_same(fitted(model), roundtrip(model, tmp_path))


@pytest.mark.parametrize(
    "state", [np.random.RandomState(3), np.random.default_rng(4)], ids=lambda state: type(state).__name__
)
def test_a_generator_becomes_a_seed_and_does_not_move_on(state, tmp_path):
    """Compiled code trusts the state of a generator, so a file holds none."""
    again = roundtrip(PairLens(random_state=state), tmp_path)
    once_more = roundtrip(PairLens(random_state=state), tmp_path)
    assert isinstance(again.random_state, int)
    assert again.random_state == once_more.random_state


def test_what_is_known_of_the_pairs_comes_back(tmp_path):
    model = fitted(PairLens(random_state=0))
    before, after = model.suspicious_pairs(), roundtrip(model, tmp_path).suspicious_pairs()
    np.testing.assert_array_equal(before.pairs, after.pairs)
    np.testing.assert_array_equal(before.suspicion, after.suspicion)


def test_labels_as_supervision(tmp_path):
    assert_same(model := PairLens(random_state=0).fit(X, Y), roundtrip(model, tmp_path))


def test_sparse_anchors(tmp_path):
    rows = sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    model = KernelBWDR(2).fit(rows, constraints=PAIRS)
    assert_same(model, roundtrip(model, tmp_path), rows[:20])


def test_float32(tmp_path):
    model = WBDR(2).fit(X.astype(np.float32), constraints=PAIRS)
    assert_same(model, roundtrip(model, tmp_path), NEW.astype(np.float32))


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), PCA(4), SimpleImputer(strategy="median")])
@pytest.mark.parametrize("method", [WBDR(2), PairLens(random_state=0)], ids=["linear", "not linear"])
def test_pipelines(scaler, method, tmp_path):
    model = fitted(make_pipeline(scaler, method))
    assert_same(model, roundtrip(model, tmp_path))


def test_a_pipeline_over_a_table(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["colour"] = np.array(["red", "green", "blue"])[RNG.integers(0, 3, len(X))]
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["a", "c", "f"]),
            ("rest", "passthrough", ["b"]),
            ("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour"]),
        ],
        verbose_feature_names_out=False,
    )
    model = fit_model(make_pipeline(columns, WBDR(2)), table, PAIRS)
    again = roundtrip(model, tmp_path)
    shuffled = table[::-1][["colour", "f", "e", "d", "c", "b", "a"]]
    np.testing.assert_array_equal(again.transform(shuffled), model.transform(table)[::-1])
    assert list(again[:-1].get_feature_names_out()) == list(model[:-1].get_feature_names_out())


def test_requests_for_metadata_come_back(tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        model = WBDR(2).set_fit_request(constraints="pairs").fit(X, constraints=PAIRS)
    again = roundtrip(model, tmp_path)
    assert again.get_metadata_routing().fit.requests == {"constraints": "pairs"}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelBWDR(2, kernel=lambda a, b: float(a @ b)), r"kernel of KernelBWDR is a function"),
        (LogisticRegression(), r"the model is a sklearn.linear_model"),
        (make_pipeline(LogisticRegression()), r"steps of Pipeline is a sklearn.linear_model"),
        (make_pipeline(WBDR(2), memory="cache"), r"memory of Pipeline must be None"),
    ],
)
def test_what_has_no_place_in_a_file_is_refused(model, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        save(model, tmp_path / "model.pairlens")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def good(tmp_path) -> Path:
    path = tmp_path / "good.pairlens"
    save(fitted(GBWSDR(backend="sklearn", n_estimators=3, random_state=0)), path)
    return path


def rewrite(path: Path, change) -> Path:
    """The file with its parts changed by `change(parts)`, and all its digests made right again."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts.pop("manifest.json"))
    change(parts, manifest)
    manifest["digests"] = {name: sha256(content).hexdigest() for name, content in parts.items()}
    text = json.dumps(manifest).encode()
    changed = path.with_name("changed.pairlens")
    with zipfile.ZipFile(changed, "w") as archive:
        for name, content in {**parts, "manifest.json": text}.items():
            archive.writestr(name, content)
        archive.comment = sha256(text).hexdigest().encode()
    return changed


def test_a_rewritten_file_without_changes_loads(good):
    assert_same(load(good), load(rewrite(good, lambda parts, manifest: None)))


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_refused_and_not_run(protocol, tmp_path):
    path, mark = tmp_path / "evil.pairlens", tmp_path / "executed"
    path.write_bytes(pickle.dumps(Bomb(mark), protocol=protocol))
    with pytest.raises(ModelFileError, match=r"not a model written by pairlens\.save"):
        load(path)
    assert not mark.exists()


def test_a_pickle_inside_an_array_is_refused_and_not_run(good, tmp_path):
    mark = tmp_path / "executed"
    payload = io.BytesIO()
    np.save(payload, np.array([Bomb(mark)], dtype=object), allow_pickle=True)

    def change(parts, manifest):
        parts["arrays/0.npy"] = payload.getvalue()

    with pytest.raises(ModelFileError, match="pickled objects"):
        load(rewrite(good, change))
    assert not mark.exists()


@pytest.mark.parametrize(
    "name", ["os.system", "builtins.eval", "sklearn.linear_model.LogisticRegression", "pairlens.io"]
)
def test_other_classes_are_refused(name, good):
    def change(parts, manifest):
        manifest["model"]["object"][0] = name

    with pytest.raises(ModelFileError, match="is refused: it names"):
        load(rewrite(good, change))


def test_every_cut_is_noticed(good):
    content = good.read_bytes()
    for length in [0, 1, 4, 30, *range(100, len(content), len(content) // 40), len(content) - 1]:
        good.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"good\.pairlens"):
            load(good)


def test_every_flipped_byte_is_noticed_or_harmless(good):
    """Of the bytes of the zip directory some say nothing (dates, attributes); the model is whole then."""
    content, before = good.read_bytes(), load(good)
    for position in np.random.default_rng(1).integers(0, len(content), 150):
        changed = bytearray(content)
        changed[position] ^= 0x5A
        good.write_bytes(bytes(changed))
        try:
            after = load(good)
        except ModelFileError:
            continue
        assert_same(before, after)


def state_of(manifest):
    return manifest["model"]["object"][1]


def unknown_tag(parts, manifest):
    state_of(manifest)["mean_"] = {"call": "os.system"}


def not_one_key(parts, manifest):
    state_of(manifest)["mean_"] = {"array": "arrays/0.npy", "tuple": []}


def missing_array(parts, manifest):
    state_of(manifest)["mean_"] = {"array": "arrays/999.npy"}


def missing_parameter(parts, manifest):
    del state_of(manifest)["n_components"]


def method_replaced(parts, manifest):
    state_of(manifest)["transform"] = 3


def dunder(parts, manifest):
    state_of(manifest)["__class__"] = 3


def deep(parts, manifest):
    value: list = []
    for _ in range(300):
        value = [value]
    state_of(manifest)["mean_"] = value


def huge_shape(parts, manifest):
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": (1 << 50,)})
    parts["arrays/0.npy"] = content.getvalue()


def sizeless(parts, manifest):
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "|V0", "fortran_order": False, "shape": (1 << 60,)})
    parts["arrays/0.npy"] = content.getvalue()


def empty_but_wide(parts, manifest):
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": (0, 1 << 50)})
    parts["arrays/0.npy"] = content.getvalue()


def unbalanced(parts, manifest):
    parts["arrays/0.npy"] = npy_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, }")


def parentheses(parts, manifest):
    """The parser of Python takes for ever over some of these."""
    parts["arrays/0.npy"] = npy_header(b"(" * 90 + b"\xa0" + b"(" * 5000)


def npy_header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def stored_generator(parts, manifest):
    state_of(manifest)["random_state"] = {"random_state": {"dict": [["pos", -(10**9)]]}}


def no_array(parts, manifest):
    parts["arrays/0.npy"] = b"hello"


def no_model(parts, manifest):
    manifest["model"] = {"tuple": [1, 2]}


def change_trees(parts, manifest, name, value):
    """Change the first number of one of the arrays of the trees."""
    place = state_of(manifest)["_trees"]["object"][1][name]["array"]
    numbers = np.load(io.BytesIO(parts[place]))
    numbers.flat[0] = value
    content = io.BytesIO()
    np.save(content, numbers)
    parts[place] = content.getvalue()


def wild_child(parts, manifest):
    change_trees(parts, manifest, "children", 10**6)


def endless_tree(parts, manifest):
    change_trees(parts, manifest, "children", 0)


def wild_feature(parts, manifest):
    change_trees(parts, manifest, "feature", 10**6)


def wild_root(parts, manifest):
    change_trees(parts, manifest, "roots", -1)


def other_trees(parts, manifest):
    state_of(manifest)["_trees"] = {"tuple": []}


def wide_rows(parts, manifest):
    state_of(manifest)["n_features_in_"] = 1


def wide_view(parts, manifest):
    state_of(manifest)["components_"] = state_of(manifest)["mean_"]


@pytest.mark.parametrize(
    "change",
    [
        unknown_tag,
        not_one_key,
        missing_array,
        missing_parameter,
        method_replaced,
        dunder,
        deep,
        huge_shape,
        sizeless,
        empty_but_wide,
        unbalanced,
        parentheses,
        stored_generator,
        no_array,
        no_model,
        wild_child,
        endless_tree,
        wild_feature,
        wild_root,
        other_trees,
        wide_rows,
        wide_view,
    ],
)
def test_tampering_with_right_digests_is_refused(change, good):
    with pytest.raises(ModelFileError, match=r"changed\.pairlens"):
        load(rewrite(good, change))


def test_a_pipeline_with_a_cache_is_refused(tmp_path):
    path = tmp_path / "model.pairlens"
    save(make_pipeline(StandardScaler(), WBDR(2)), path)

    def change(parts, manifest):
        state_of(manifest)["memory"] = "evil"

    with pytest.raises(ModelFileError, match="names a folder to cache in"):
        load(rewrite(path, change))


def test_a_manifest_of_many_small_parts_is_refused_before_it_is_read(good):
    """Of 3 bytes of text it would make 64 bytes of lists."""

    def change(parts, manifest):
        manifest["model"] = [[]] * 2_000_000

    path = rewrite(good, change)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=r"2,000,0\d\d lists and objects"):
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * path.stat().st_size


def test_the_same_array_over_and_over_does_not_fill_the_memory(tmp_path):
    """Each mention of a sparse matrix makes another one."""
    path = tmp_path / "model.pairlens"
    model = WBDR(2)
    model.matrix_ = sparse.eye_array(1000, format="csr")
    save(model, path)

    def change(parts, manifest):
        state_of(manifest)["matrix_"] = [state_of(manifest)["matrix_"]] * 10_000

    with pytest.raises(ModelFileError, match="names the same arrays again and again"):
        load(rewrite(path, change))


@pytest.mark.parametrize("last", [0, -(2**31)])
def test_pointers_of_a_sparse_matrix_that_decrease_are_refused(last, tmp_path):
    """SciPy sees a matrix without entries in them, and the next product reads foreign memory."""
    path = tmp_path / "model.pairlens"
    model = WBDR(2)
    model.matrix_ = sparse.eye_array(1000, format="csr")
    save(model, path)

    def change(parts, manifest):
        name = state_of(manifest)["matrix_"]["sparse"][2][2]
        pointers = np.load(io.BytesIO(parts[name]))
        pointers[-1] = last
        written = io.BytesIO()
        np.save(written, pointers)
        parts[name] = written.getvalue()

    with pytest.raises(ModelFileError, match="must not decrease"):
        load(rewrite(path, change))


def test_a_model_of_more_words_than_a_file_holds_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("pairlens.io.models.MAX_MANIFEST", 100)
    with pytest.raises(TypeError, match="more words and small parts than a model file holds"):
        save(WBDR(2), tmp_path / "model.pairlens")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "value"), [("pooled", 2**40), ("words", "abc"), ("share", 1.0)])
def test_fields_hold_what_they_are_for(name, value, tmp_path):
    """A number in the place of a bool would make as many columns."""
    pd = pytest.importorskip("pandas")
    path = tmp_path / "model.pairlens"
    save(TableEncoder().fit(pd.DataFrame({"a": X[:, 0], "word": np.array(["x", "y", "z"])[Y]})), path)

    def change(parts, manifest):
        text = json.dumps(manifest["model"])
        start = text.index("category-column")
        place = text.index(f'"{name}": ', start) + len(name) + 4
        _, end = json.JSONDecoder().raw_decode(text[place:])
        manifest["model"] = json.loads(text[:place] + json.dumps(value) + text[place + end :])

    with pytest.raises(ModelFileError, match=rf"'{name}' of category-column is not of the type"):
        load(rewrite(path, change))


def test_empty_words_come_back(tmp_path):
    model = WBDR(2)
    model.word_ = np.str_("")
    assert roundtrip(model, tmp_path).word_ == ""


def test_changed_without_care_is_told(good):
    with zipfile.ZipFile(good) as archive:
        parts, comment = {name: archive.read(name) for name in archive.namelist()}, archive.comment
    parts["arrays/0.npy"] = parts["arrays/0.npy"][:-1] + b"\x01"
    with zipfile.ZipFile(good, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        archive.comment = comment
    with pytest.raises(ModelFileError, match="has been changed since"):
        load(good)


def test_a_zip_bomb_is_refused(good):
    with zipfile.ZipFile(good) as archive:
        manifest = archive.read("manifest.json")
    with zipfile.ZipFile(good, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", manifest)
        archive.writestr("arrays/0.npy", bytes(50_000_000))
    assert good.stat().st_size < 1_000_000
    with pytest.raises(ModelFileError, match="compressed"):
        load(good)


def test_a_newer_format_says_so(good):
    def change(parts, manifest):
        manifest.update(format_version=FORMAT_VERSION + 1, pairlens="9.0")

    with pytest.raises(
        ModelFileError, match=rf"written by pairlens 9\.0 in format {FORMAT_VERSION + 1}.*upgrade pairlens"
    ):
        load(rewrite(good, change))


def test_another_scikit_learn_is_mentioned(tmp_path):
    path = tmp_path / "model.pairlens"
    save(fitted(make_pipeline(StandardScaler(), WBDR(2))), path)

    def change(parts, manifest):
        manifest["packages"]["scikit-learn"] = "1.0.2"

    with pytest.warns(UserWarning, match=r"written with scikit-learn 1\.0\.2"):
        load(rewrite(path, change))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"\x93NUMPY\x01\x00", "NumPy array"),
        (b"PAR1....", "Parquet"),
        (b"a,b,kind\n1,2,must-link\n", "does not start like one"),
        (b"PK\x05\x06" + bytes(18), "does not start like one"),
    ],
)
def test_foreign_files(content, message, tmp_path):
    path = tmp_path / "foreign.pairlens"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_another_zip_is_refused(tmp_path):
    path = tmp_path / "foreign.pairlens"
    np.savez(path.open("wb"), X=X)
    with pytest.raises(ModelFileError, match="no manifest"):
        load(path)


def test_an_interrupted_save_leaves_the_old_file(good, monkeypatch):
    before = good.read_bytes()

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(KeyboardInterrupt):
        save(WBDR(2), good)
    assert good.read_bytes() == before
    assert [file.name for file in good.parent.iterdir()] == [good.name]


def test_where_a_model_cannot_be_written_is_named(tmp_path):
    model = WBDR().fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(FileNotFoundError, match=rf"no such folder to write to: '{re.escape(str(tmp_path / 'none'))}'"):
        save(model, tmp_path / "none" / "model.pairlens")
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        save(model, tmp_path)
