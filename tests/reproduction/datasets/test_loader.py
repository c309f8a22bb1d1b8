"""Data sets from files, from scikit-learn, made from others: right ones are taken, damaged ones refused."""

from __future__ import annotations

import warnings
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets as sklearn_datasets

from reproduction.datasets import DamagedDatasetError, MissingDatasetError, load, names
from reproduction.datasets.bundle import encode
from reproduction.datasets.derived import DERIVED, FROM_SKLEARN
from reproduction.datasets.files import array_digest, decode, load_bundled, names_bundled, rows_digest, write
from reproduction.datasets.registry import REGISTRY, digests

SKLEARN_NAMES = ["digits", "iris", "wdbc", "wine"]
LOCAL_NAMES = sorted({*SKLEARN_NAMES, *names_bundled(), "letter_abcd", "mfeat"})


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """No test reaches the internet, nor the user's cache."""

    def refuse(*args, **kwargs):
        raise OSError("no network in tests")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("time.sleep", lambda seconds: None)


@pytest.fixture
def bare(monkeypatch):
    monkeypatch.delenv("PAIRLENS_DATA", raising=False)


@pytest.fixture
def alone(tmp_path, stored):
    """A folder with copies of some sets and nothing else."""

    def make(*wanted: str) -> Path:
        place = tmp_path / "alone"
        place.mkdir()
        for name in wanted:
            write(place / f"{name}.npz", stored(name))
        return place

    return make


# --- what is known ---------------------------------------------------------------------------------------------------


def test_every_set_has_checksums_and_a_description():
    assert set(digests()) == set(REGISTRY)
    for name, entry in REGISTRY.items():
        assert {"X", "y", "rows"} <= set(digests()[name]) or {"user", "item", "rating"} <= set(digests()[name])
        assert str(entry.shape[0]) in entry.describe()
        assert name in entry.how_to_get()
    assert names_bundled() | set(FROM_SKLEARN) | set(DERIVED) <= set(REGISTRY)
    for derivation in DERIVED.values():
        assert set(derivation.parents) <= set(REGISTRY)


def test_names_of_a_machine_without_files(bare):
    assert names(available=True) == LOCAL_NAMES
    assert set(names()) == set(REGISTRY)


def test_names_leave_out_what_cannot_be_made_here(tmp_path, bare, monkeypatch):
    write(tmp_path / "coil20_128x128.npz", {"X": np.zeros((2, 2)), "y": np.zeros(2)})
    monkeypatch.setattr("reproduction.datasets.derived.find_spec", lambda name: None)
    assert "coil20" not in names(available=True, data_home=tmp_path)
    monkeypatch.setattr("reproduction.datasets.derived.find_spec", lambda name: object())
    assert "coil20" in names(available=True, data_home=tmp_path)


def test_names_count_files_and_what_can_be_made_of_them(tmp_path, bare):
    for name in ("letter", "my_own", ".hidden"):
        write(tmp_path / f"{name}.npz", {"X": np.zeros((2, 2)), "y": np.zeros(2)})
    assert names(available=True, data_home=tmp_path) == sorted([*LOCAL_NAMES, "my_own"])
    assert "my_own" in names(data_home=tmp_path)


def test_every_file_of_the_folder_is_known_and_whole(folder):
    for path in folder.glob("*.npz"):
        bunch = load(path.stem)
        assert (bunch.origin, bunch.filename) == ("file", str(path))
        entry = REGISTRY[path.stem]
        if len(entry.shape) == 1:
            assert bunch.rating.shape == entry.shape
            assert "data" not in bunch
            continue
        assert bunch.X.shape == entry.shape
        assert bunch.data is bunch.X
        assert bunch.target is bunch.y
        assert len(bunch.feature_names) == entry.shape[1]
        assert len(bunch.target_names) == entry.n_classes
        if entry.n_classes:
            np.testing.assert_array_equal(np.unique(bunch.y), np.arange(entry.n_classes))


def test_extra_arrays_come_as_they_are(folder):
    assert load("mnist").is_train.sum() == 60000
    assert set(np.unique(load("isolet1").y_halves)) == {0, 1}
    assert load("bookcrossing").R.shape == (88, 131)


def test_missing_cells_come_as_they_are():
    assert load("monks1").is_train.sum() == 124
    assert np.isnan(load("hepatitis").X).sum() == 167
    assert np.isnan(load("labor", return_X_y=True)[0]).sum() == 326


# --- in this package -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(names_bundled()))
def test_sets_of_this_package_need_no_file(name, bare):
    """With the checksums of the files that the experiments were run on."""
    bunch = load(name, download=False)
    assert (bunch.X.shape, bunch.origin, bunch.filename) == (REGISTRY[name].shape, "repository", None)
    assert (array_digest(bunch.X), array_digest(bunch.y)) == (digests()[name]["X"], digests()[name]["y"])
    assert bunch.X.flags.c_contiguous


def test_sets_of_this_package_are_the_files_bit_by_bit(folder):
    for name in names_bundled():
        with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
            made = load_bundled(name)
            assert set(made) == set(stored.files)
            for key, array in made.items():
                assert array.dtype == stored[key].dtype
                np.testing.assert_array_equal(array, stored[key])


def test_the_compact_form_gives_back_every_bit():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 300, 20)
    for X in (
        rng.integers(-3, 4, (20, 2)).astype(np.float32),
        np.column_stack([rng.random(20).round(7), rng.integers(0, 2**40, 20)]),
        rng.random((20, 3)),
        np.array([[0.1, np.nan]] * 20),
    ):
        stored = encode({"X": X, "y": y})
        assert stored["y"].dtype == np.uint16
        made = decode(stored)
        assert (made["X"].dtype, made["y"].dtype) == (X.dtype, np.int64)
        np.testing.assert_array_equal(made["X"], X)
        np.testing.assert_array_equal(made["y"], y)


def test_every_set_of_this_package_has_a_source_and_terms():
    text = files("reproduction.datasets").joinpath("CREDITS.md").read_text()
    shipped, _, others = text.partition("## Sets that are not in")
    rows = [line.split("|")[1:-1] for line in shipped.splitlines() if line.startswith("| `")]
    credited = {name.strip("` ") for row in rows for name in row[0].split(",")}
    assert credited == names_bundled()
    assert all(cell.strip() for row in rows for cell in row)
    assert all("CC BY 4.0" in row[-1] for row in rows)
    assert all(f"`{name}`" in text for name in REGISTRY), "each of the others has a reason"
    assert not [name for name in names_bundled() if f"`{name}`" in others]


# --- scikit-learn's own ----------------------------------------------------------------------------------------------


def test_bundled_sets_need_no_file(bare):
    for name in SKLEARN_NAMES:
        bunch = load(name, download=False)
        assert (bunch.X.shape, bunch.origin, bunch.filename) == (REGISTRY[name].shape, "scikit-learn", None)
    np.testing.assert_array_equal(load("wdbc").X, sklearn_datasets.load_breast_cancer().data)


def test_iris_is_the_uci_file_and_says_so(bare):
    iris, fisher = load("iris"), sklearn_datasets.load_iris()
    assert np.argwhere(fisher.data != iris.X).tolist() == [[34, 3], [37, 1], [37, 2]]
    assert "load_iris" in iris.DESCR
    np.testing.assert_array_equal(iris.y, fisher.target)


def test_bundled_sets_are_the_files_bit_by_bit(folder):
    for name in ("iris", "wine", "wdbc"):
        made, stored = FROM_SKLEARN[name](), load(name, data_home=folder)
        np.testing.assert_array_equal(made["X"], stored.X)
        np.testing.assert_array_equal(made["y"], stored.y)


# --- made from others ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(DERIVED) - {"mfeat"}))
def test_derived_sets_are_the_files_bit_by_bit(name, alone, stored, unbundled):
    if name == "coil20":
        pytest.importorskip("PIL")
    made = load(name, data_home=alone(*DERIVED[name].parents), download=False)
    expected = stored(name)
    assert made.origin == f"made from {', '.join(DERIVED[name].parents)}"
    for key, array in expected.items():
        if key in made and key != "feature_names":
            np.testing.assert_array_equal(made[key], array, err_msg=key)
            assert made[key].dtype == array.dtype, key
    for key in ("X", "y"):
        assert array_digest(made[key]) == digests()[name][key]
    assert made.target_names == expected["class_names"].tolist()


def test_mfeat_is_made_from_its_blocks_and_never_in_a_circle(alone, stored, unbundled):
    place = alone(*DERIVED["mfeat"].parents)
    made, expected = load("mfeat", data_home=place, download=False), stored("mfeat")
    np.testing.assert_array_equal(made.X, expected["X"])
    np.testing.assert_array_equal(made.view_start, expected["view_start"])
    assert made.feature_names == expected["feature_names"].tolist()
    (place / "mfeat_mor.npz").unlink()
    with pytest.raises(MissingDatasetError, match="mfeat"):
        load("mfeat", data_home=place, download=False)


def test_part_of_isolet_needs_to_know_the_parts(alone, folder, tmp_path):
    whole = load("isolet", data_home=folder)
    write(tmp_path / "isolet.npz", {"X": whole.X, "y": whole.y})
    with pytest.raises(MissingDatasetError, match="no array 'part'"):
        load("isolet1", data_home=tmp_path, download=False)


# --- files that are not right ----------------------------------------------------------------------------------------


def _wine_file(place: Path, **changes) -> Path:
    arrays = {**FROM_SKLEARN["wine"](), **changes}
    write(place / "wine.npz", {name: array for name, array in arrays.items() if array is not None})
    return place / "wine.npz"


def test_a_file_comes_before_scikit_learn(tmp_path):
    path = _wine_file(tmp_path)
    assert load("wine", data_home=tmp_path).filename == str(path)


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.95])
def test_truncated_file_is_refused(tmp_path, keep):
    path = _wine_file(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(DamagedDatasetError, match=r"wine\.npz.*delete wine\.npz"):
        load("wine", data_home=tmp_path)


def test_one_flipped_bit_is_refused(tmp_path):
    path = _wine_file(tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)
    with pytest.raises(DamagedDatasetError, match=r"wine\.npz"):
        load("wine", data_home=tmp_path)


def test_not_an_archive_and_pickled_objects_are_refused(tmp_path):
    (tmp_path / "wine.npz").write_text("<html>404</html>")
    with pytest.raises(DamagedDatasetError, match="cannot be read"):
        load("wine", data_home=tmp_path)
    np.savez(tmp_path / "wine.npz", X=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DamagedDatasetError, match="cannot be read"):
        load("wine", data_home=tmp_path)
    with (tmp_path / "wine.npz").open("wb") as stream:
        np.save(stream, np.zeros((178, 13)))
    with pytest.raises(DamagedDatasetError, match="not named ones"):
        load("wine", data_home=tmp_path)


def test_changed_value_is_refused_unless_told_otherwise(tmp_path):
    X = FROM_SKLEARN["wine"]()["X"].copy()
    X[17, 3] += 1e-9
    _wine_file(tmp_path, X=X)
    with pytest.raises(DamagedDatasetError, match=r"wine\.npz is not wine: the checksum of X.*verify=False"):
        load("wine", data_home=tmp_path)
    np.testing.assert_array_equal(load("wine", data_home=tmp_path, verify=False).X, X)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((177, 13)), "y": np.zeros(177, int)}, "177 x 13, but wine is 178 x 13"),
        ({"X": np.zeros((178, 13, 1))}, "table of numbers"),
        ({"y": np.zeros(5)}, "one entry for each of the 178 rows"),
        ({"y": None}, "no y"),
        ({"X": None}, "no array X"),
        ({"feature_names": np.array(["a"])}, "13 columns"),
        ({"y": np.ones(178, dtype=np.int64)}, "checksum of y"),
        ({"X": FROM_SKLEARN["wine"]()["X"].astype(np.float32)}, "checksum of X"),
        ({"y": np.zeros(178, dtype="datetime64[s]")}, "numbers or strings"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path, changes, message):
    _wine_file(tmp_path, **changes)
    with pytest.raises(DamagedDatasetError, match=message):
        load("wine", data_home=tmp_path)


def test_same_rows_in_another_order_are_taken_with_a_warning(tmp_path):
    arrays, order = FROM_SKLEARN["wine"](), np.random.default_rng(0).permutation(178)
    _wine_file(tmp_path, X=arrays["X"][order], y=arrays["y"][order])
    with pytest.warns(UserWarning, match="another order"):
        load("wine", data_home=tmp_path)
    _wine_file(tmp_path, X=arrays["X"][order])
    with pytest.raises(DamagedDatasetError, match="checksum"):
        load("wine", data_home=tmp_path)


def test_own_file_is_loaded_without_checksum_but_not_without_order(tmp_path):
    write(tmp_path / "mine.npz", {"X": np.eye(3), "y": np.array([0, 1, 1]), "note": np.array(["a"])})
    bunch = load("mine", data_home=tmp_path)
    assert (bunch.feature_names, bunch.target_names, bunch.note[0]) == (["x0", "x1", "x2"], ["0", "1"], "a")
    write(tmp_path / "mine.npz", {"X": np.eye(3)})
    assert load("mine", data_home=tmp_path).X.shape == (3, 3)
    with pytest.raises(ValueError, match="no X and y"):
        load("mine", data_home=tmp_path, return_X_y=True)
    write(tmp_path / "mine.npz", {"user": np.arange(3), "item": np.arange(3), "rating": np.arange(2)})
    with pytest.raises(DamagedDatasetError, match="one length"):
        load("mine", data_home=tmp_path)
    write(tmp_path / "mine.npz", {"Z": np.arange(3)})
    with pytest.raises(DamagedDatasetError, match="no array X"):
        load("mine", data_home=tmp_path)


# --- errors of the caller --------------------------------------------------------------------------------------------


def test_unknown_name_says_what_is_near(bare):
    with pytest.raises(ValueError, match="did you mean 'vehicle'"):
        load("vehicel")
    with pytest.raises(ValueError, match="known are balance"):
        load("zzzzzzzz")


@pytest.mark.parametrize("name", ["../wine", "a/b", "", "wine.npz", "."])
def test_a_name_is_no_path(name):
    with pytest.raises(ValueError, match="letters, digits"):
        load(name)


def test_missing_set_says_how_to_get_it(bare, tmp_path, unbundled):
    with pytest.raises(MissingDatasetError, match=r"usps\.npz.*data_home or PAIRLENS_DATA.*usps\.h5"):
        load("usps")
    with pytest.raises(MissingDatasetError, match=r"OpenML as 'vehicle', version 1"):
        load("vehicle", download=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(MissingDatasetError, match=r"download failed.*no network in tests"):
            load("vehicle", data_home=tmp_path)
    assert not list(tmp_path.glob("*.npz"))


# --- checksums -------------------------------------------------------------------------------------------------------


def test_digest_sees_values_shape_and_type_only():
    X = np.array([[0.0, np.nan], [1.0, 2.0]])
    odd = np.array([[-0.0, -np.nan], [1.0, 2.0]])
    assert array_digest(X) == array_digest(odd) == array_digest(np.asfortranarray(X)) == array_digest(X.astype(">f8"))
    others = [X.astype(np.float32), X.ravel(), X.T, X + 1e-15 * np.eye(2)]
    assert len({array_digest(X), *map(array_digest, others)}) == 5
    y = np.array([3, 4])
    assert rows_digest(X, y) == rows_digest(X[::-1], y[::-1])
    assert rows_digest(X, y) != rows_digest(X[::-1], y)


def test_write_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = _wine_file(tmp_path)
    before = path.read_bytes()

    def full_disk(partial, **arrays):
        partial.write_bytes(b"half a file")
        raise OSError("no space left")

    monkeypatch.setattr("reproduction.datasets.files.np.savez_compressed", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write(path, {"X": np.zeros(3)})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["wine.npz"]
