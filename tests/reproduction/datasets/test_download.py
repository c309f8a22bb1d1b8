"""Downloads through scikit-learn's real code, from a server on the loopback interface."""

from __future__ import annotations

import gzip
import hashlib
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from reproduction.datasets import DamagedDatasetError, MissingDatasetError, load, registry
from reproduction.datasets.derived import DERIVED, FROM_SKLEARN
from reproduction.datasets.downloads import OpenML
from reproduction.datasets.files import array_digest, rows_digest
from reproduction.datasets.loader import _bunch
from reproduction.datasets.registry import DataSet
from tests.reproduction.datasets.openml_server import Upload, serve

LETTERS = ["a", "b"]


@pytest.fixture(autouse=True)
def quiet_and_apart(monkeypatch, tmp_path, request, unbundled):
    if "stored" in request.fixturenames:
        request.getfixturevalue("stored")  # before its variable is taken away
    monkeypatch.delenv("PAIRLENS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A network error|Invalid cache")
        yield


@pytest.fixture
def known(monkeypatch):
    """Add a set to the known ones: its entry, and the arrays it must have."""

    def add(entry: DataSet, X: np.ndarray, y: np.ndarray) -> None:
        monkeypatch.setitem(registry.REGISTRY, entry.name, entry)
        sums = {"X": array_digest(X), "y": array_digest(y), "rows": rows_digest(X, y)}
        monkeypatch.setitem(registry.digests(), entry.name, sums)

    return add


def _upload(X, labels, *, nominal=(), **options) -> Upload:
    columns = [(f"f{i}", ["n", "y"] if i in nominal else None) for i in range(X.shape[1])]
    rows = [
        [
            None if np.isnan(value) else ["n", "y"][int(value)] if i in nominal else float(value)
            for i, value in enumerate(row)
        ]
        + [label]
        for row, label in zip(X, labels)
    ]
    target = sorted(set(labels)) if isinstance(labels[0], str) else None
    return Upload("toy", 1, [*columns, ("class", target)], rows, **options)


X = np.array([[0.1, 1.0, 5.0], [1 / 3, 0.0, np.nan], [-2e-17, np.nan, 1e300], [7.0, 1.0, 0.25]])
Y = np.array([1, 0, 0, 1])
ENTRY = DataSet("toy", (4, 3), "a test", "as they are", n_classes=2, openml=OpenML("toy", 1, 42, classes=("a", "b")))


def test_download_is_exact_verified_and_kept(tmp_path, monkeypatch, known):
    known(ENTRY, X, Y)
    with serve({42: _upload(X, ["b", "a", "a", "b"], nominal=(1,))}, monkeypatch) as server:
        bunch = load("toy", data_home=tmp_path)
        assert sum(path.startswith(("/file/", "/data/v1/download/")) for path in server.asked) == 1
        np.testing.assert_array_equal(bunch.X, X)
        np.testing.assert_array_equal(bunch.y, Y)
        assert (bunch.origin, bunch.feature_names) == ("download", ["f0", "f1", "f2"])
        asked = len(server.asked)
        again = load("toy", data_home=tmp_path)
        assert len(server.asked) == asked
    assert (again.origin, again.filename) == ("file", str(tmp_path / "toy.npz"))
    np.testing.assert_array_equal(again.X, X)
    assert [path.name for path in tmp_path.iterdir()] == ["toy.npz"]


def test_without_data_home_downloads_go_to_the_cache(tmp_path, monkeypatch, known):
    known(ENTRY, X, Y)
    with serve({42: _upload(X, ["b", "a", "a", "b"], nominal=(1,))}, monkeypatch):
        load("toy")
    assert (tmp_path / "cache" / "pairlens" / "toy.npz").is_file()
    assert load("toy").origin == "file"


def test_by_name_and_version_where_the_number_is_not_known(tmp_path, monkeypatch, known):
    y = np.array([0.5, 1.5, 2.5])
    known(DataSet("toy", (3, 2), "a test", "as they are", openml=OpenML("toy", 1)), np.ones((3, 2)), y)
    uploads = {7: _upload(np.ones((3, 2)), y.tolist()), 8: _upload(np.zeros((3, 2)), y.tolist())}
    uploads[8].version = 2
    with serve(uploads, monkeypatch):
        bunch = load("toy", data_home=tmp_path)
    np.testing.assert_array_equal(bunch.y, y)
    np.testing.assert_array_equal(bunch.X, np.ones((3, 2)))
    assert bunch.target_names == []


def test_transformations(tmp_path, monkeypatch, known):
    table = np.array([[9.0, 1, 2], [9.0, np.nan, 3], [9.0, 3, 4], [9.0, 4, 5]])
    entry = OpenML("toy", 1, 42, classes="appearance", skip_columns=1, rows=(1, 4), drop_missing=True, offset=1.0)
    known(
        DataSet("toy", (2, 2), "a test", "changed", n_classes=2, openml=entry),
        np.array([[4.0, 5.0], [5.0, 6.0]]),
        np.array([0, 1]),
    )
    with serve({42: _upload(table, ["10", "2", "10", "2"])}, monkeypatch):
        bunch = load("toy", data_home=tmp_path)
    np.testing.assert_array_equal(bunch.X, [[4, 5], [5, 6]])
    assert bunch.feature_names == ["f1", "f2"]


@pytest.mark.parametrize("pandas", [True, False])
def test_whole_numbers_are_read_alike_with_and_without_pandas(tmp_path, monkeypatch, known, pandas):
    if not pandas:
        monkeypatch.setattr("reproduction.datasets.downloads.find_spec", lambda name: None)
    table = np.arange(8, dtype=np.uint8).reshape(4, 2)
    entry = OpenML("toy", 1, 42, classes=("a", "b"), dtype="uint8", n_train=3)
    known(DataSet("toy", (4, 2), "a test", "grey", n_classes=2, openml=entry), table, Y)
    with serve({42: _upload(table.astype(float), ["b", "a", "a", "b"])}, monkeypatch):
        bunch = load("toy", data_home=tmp_path)
    np.testing.assert_array_equal(bunch.X, table)
    assert bunch.is_train.tolist() == [True, True, True, False]


@pytest.mark.parametrize("name", ["vehicle", "hepatitis", "labor", "breast", "triazines", "monks1", "krvskp", "glass"])
def test_real_sets_come_back_bit_by_bit(name, stored, tmp_path, monkeypatch):
    """What OpenML would send for a set, written from our file, becomes that file again."""
    stored = _bunch(name, stored(name), "file", None)
    upload = registry.REGISTRY[name].openml
    table = stored.X.astype(np.float64) - upload.offset
    words: dict[int, list[str]] = {}
    for i in range(table.shape[1]):
        codes = np.unique(table[~np.isnan(table[:, i]), i])
        # Codes become words where the set has them: some of the two-valued, or all of the monks.
        if name.startswith("monks") or (name in ("hepatitis", "labor", "krvskp") and codes.tolist() == [0.0, 1.0]):
            words[i] = [f"word {code}" for code in range(int(codes.max()) + 1)]
    columns = [(f"f{i}", words.get(i)) for i in range(table.shape[1])]
    labels = [upload.classes[code] for code in stored.y] if upload.classes else stored.y.tolist()
    rows = [
        [
            None if np.isnan(value) else words[i][int(value)] if i in words else float(value)
            for i, value in enumerate(row)
        ]
        + [label]
        for row, label in zip(table, labels)
    ]
    if upload.drop_missing:
        rows.insert(3, [None, *rows[3][1:]])
    target = list(upload.classes) if upload.classes else None
    sent = Upload(upload.name, upload.version, [*columns, ("class", target)], rows)
    with serve({upload.data_id or 5: sent}, monkeypatch):
        bunch = load(name, data_home=tmp_path)
    assert bunch.origin == "download"
    np.testing.assert_array_equal(bunch.X, stored.X)
    np.testing.assert_array_equal(bunch.y, stored.y)


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda body: body.replace(b"0.1", b"0.2"), "md5 checksum"),
        (lambda body: body[: len(body) // 2], "toy"),
        (lambda body: b"", "toy"),
    ],
    ids=["altered", "truncated", "empty"],
)
def test_altered_and_truncated_downloads_are_refused(tmp_path, monkeypatch, known, change, error):
    known(ENTRY, X, Y)
    upload = _upload(X, ["b", "a", "a", "b"], nominal=(1,), change=change)
    with (
        serve({42: upload}, monkeypatch),
        pytest.raises(MissingDatasetError, match=rf"download failed.*{error}"),
    ):
        load("toy", data_home=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("sent", "labels", "message"),
    [
        (X[:3], ["b", "a", "a"], "3 x 3, but toy is 4 x 3"),
        (X[:, :2], ["b", "a", "a", "b"], "4 x 2, but toy is 4 x 3"),
        (X, ["a", "a", "a", "b"], "checksum of y"),
        (X + 1.0, ["b", "a", "a", "b"], "checksum of X"),
        (X, ["b", "c", "a", "b"], r"labels \['c'\]"),
    ],
)
def test_another_table_under_that_number_is_refused(tmp_path, monkeypatch, known, sent, labels, message):
    known(ENTRY, X, Y)
    with (
        serve({42: _upload(sent, labels)}, monkeypatch),
        pytest.raises(DamagedDatasetError, match=message),
    ):
        load("toy", data_home=tmp_path)
    assert not list(tmp_path.iterdir())


def test_unknown_number_and_no_server_say_how_to_get_it(tmp_path, monkeypatch, known):
    known(ENTRY, X, Y)
    with serve({}, monkeypatch), pytest.raises(MissingDatasetError, match=r"download failed.*42 not found"):
        load("toy", data_home=tmp_path)
    with serve({}, monkeypatch):
        pass
    with pytest.raises(MissingDatasetError, match=r"download failed.*OpenML as 'toy'"):
        load("toy", data_home=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_cache_that_cannot_be_written_does_not_lose_the_download(tmp_path, monkeypatch, known):
    known(ENTRY, X, Y)
    (tmp_path / "file").write_text("in the way")
    with (
        serve({42: _upload(X, ["b", "a", "a", "b"], nominal=(1,))}, monkeypatch),
        pytest.warns(UserWarning, match="could not be kept"),
    ):
        bunch = load("toy", data_home=tmp_path / "file")
    np.testing.assert_array_equal(bunch.X, X)
    assert bunch.filename is None


@pytest.mark.parametrize("where", ["reproduction.datasets.downloads.encode", "pairlens._atomic.os.fsync"])
def test_interrupted_download_leaves_nothing(tmp_path, monkeypatch, known, where):
    known(ENTRY, X, Y)

    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, serve({42: _upload(X, ["b", "a", "a", "b"], nominal=(1,))}, patched):
        patched.setattr(where, interrupt)
        with pytest.raises(KeyboardInterrupt):
            load("toy", data_home=tmp_path)
    assert not list(tmp_path.iterdir())


def test_parents_are_downloaded_for_a_derived_set(stored, tmp_path, monkeypatch):
    """letter_abcd from a downloaded letter, both of which must pass their checksums."""
    expected, letter = stored("letter_abcd"), stored("letter")
    monkeypatch.setattr(
        "reproduction.datasets.loader.downloads.fetch", lambda entry: {"X": letter["X"], "y": letter["y"]}
    )
    bunch = load("letter_abcd", data_home=tmp_path)
    np.testing.assert_array_equal(bunch.X, expected["X"])
    np.testing.assert_array_equal(bunch.row_index, expected["row_index"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letter.npz", "letter_abcd.npz"]
    assert DERIVED["letter_abcd"].parents == ("letter",)


def test_kdd_cup_through_scikit_learn(tmp_path, monkeypatch, known):
    """A few lines of the archive from the loopback interface, through scikit-learn's real downloader."""
    import sklearn.datasets._kddcup99 as sklearn_kdd

    lines = [
        ["0", "tcp", "http", "SF", "181", *["0"] * 35, "0.05", "normal."],
        ["2", "udp", "dns", "S0", "7", *["1"] * 35, "0.33", "smurf."],
        ["0", "tcp", "dns", "SF", "9", *["0"] * 35, "1.00", "back."],
    ]
    archive = gzip.compress("\n".join(map(",".join, lines)).encode())
    expected = np.zeros((3, 41), dtype=np.float32)
    expected[:, 0] = [0, 2, 0]
    expected[:, 1], expected[:, 2], expected[:, 3], expected[:, 4] = [0, 1, 0], [1, 0, 0], [1, 0, 1], [181, 7, 9]
    expected[1, 5:40], expected[:, 40] = 1, [0.05, 0.33, 1.0]
    known(
        DataSet(
            "kddcup99_10pct", (3, 41), "a test", "", n_classes=3, download=registry.REGISTRY["kddcup99_10pct"].download
        ),
        expected,
        np.array([1, 2, 0]),
    )

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(archive)))
            self.end_headers()
            self.wfile.write(archive)

        def log_message(self, *args) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        remote = sklearn_kdd.ARCHIVE_10_PERCENT._replace(
            url=f"http://127.0.0.1:{server.server_address[1]}/kdd.gz", checksum=hashlib.sha256(archive).hexdigest()
        )
        monkeypatch.setattr(sklearn_kdd, "ARCHIVE_10_PERCENT", remote)
        bunch = load("kddcup99_10pct", data_home=tmp_path)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    np.testing.assert_array_equal(bunch.X, expected)
    assert bunch.target_names == ["back", "normal", "smurf"]
    assert bunch.categories_service.tolist() == ["dns", "http"]
    assert [path.name for path in tmp_path.iterdir()] == ["kddcup99_10pct.npz"]
    assert FROM_SKLEARN.keys().isdisjoint({"kddcup99_10pct"})
