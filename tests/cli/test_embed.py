"""Raw texts and pictures on the command line: fit, new rows, what is kept and what is sent."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from pairlens._endpoint import KEY_VARIABLE
from pairlens.studio.rows import rows_from_file
from pairlens.tables import embedding_context
from tests.endpoint_server import endpoint_server

KEY = "sk-very-secret"
SUBJECTS = ("engine of the car", "wheels of the truck", "soup with tomatoes", "bread of the baker")
N = 48


def topic(text: str) -> list[float]:
    """A vector that knows what a text is about, and little else."""
    subject = next((k for k, words in enumerate(SUBJECTS) if words in text), 0)
    return [*np.eye(2)[subject // 2].tolist(), 0.1 * (subject % 2), 0.01 * (len(text) % 7)]


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)

    def answer(path, body):
        return {"data": [{"index": k, "embedding": topic(text)} for k, text in enumerate(body["input"])]}

    with endpoint_server(answer) as running:
        yield running


@pytest.fixture
def reviews(tmp_path):
    with (tmp_path / "reviews.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "kind"])
        for k in range(N):
            writer.writerow([f"r{k}", f"the {SUBJECTS[k % 4]} was number {k} of all", ("car", "food")[k % 4 // 2]])
    return tmp_path


FIT = ("fit", "reviews.csv", "--id", "id", "--labels", "kind", "--method", "linear-pairlens", "--folds", "2")


def test_without_the_flag_one_line_says_what_it_would_change(reviews, cli):
    outcome = cli(*FIT, "--out", "out")
    assert outcome.code == 0, outcome.err
    (line,) = (line for line in outcome.out.splitlines() if "--embed" in line)
    assert "--embed text would" in line
    assert not (reviews / "reviews.csv.embeddings").exists()


def test_texts_are_embedded_at_an_address_that_the_command_names(reviews, cli, server):
    model = f"{server.url}#small"
    outcome = cli(*FIT, "--embed", "text", "--embed-model", model, "--out", "out")
    assert outcome.code == 0, outcome.err
    assert f"embedded by {model}" in outcome.out
    assert "would" not in "".join(line for line in outcome.out.splitlines() if "--embed" in line)
    assert sum(len(body["input"]) for _, _, body in server.requests) == N
    run = json.loads((reviews / "out" / "run.json").read_text())
    assert run["command"]["embed"] == ["text"]
    assert run["data"]["encoding"][0]["n_features"] == 4
    # A second run asks for nothing, and a model file sends nothing by itself.
    server.requests.clear()
    assert cli(*FIT, "--embed", "text", "--embed-model", model, "--out", "again").code == 0
    for name in ("embedding.csv", "model.pairlens"):
        assert (reviews / "again" / name).read_bytes() == (reviews / "out" / name).read_bytes()
    move = ("transform", "out/model.pairlens", "reviews.csv", "--id", "id", "--out", "view.csv")
    error = cli(*move).error
    assert "only a file names" in error
    assert f"--embed-model {model}" in error
    assert server.requests == []
    (reviews / "new").mkdir()
    (reviews / "new" / "reviews.csv").write_bytes((reviews / "reviews.csv").read_bytes())
    outcome = cli(
        "transform",
        "out/model.pairlens",
        "new/reviews.csv",
        "--id",
        "id",
        "--out",
        "view.csv",
        *("--embed-model", model),
    )
    assert outcome.code == 0, outcome.err
    assert len(server.requests) == 1
    assert (reviews / "view.csv").read_text() == (reviews / "out" / "embedding.csv").read_text()
    files = [path for path in reviews.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_server_that_fails_ends_in_words(reviews, cli, server, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    server.answer = lambda path, body: {"nonsense": KEY}
    error = cli(*FIT, "--embed", "text", "--embed-model", f"{server.url}#small", "--out", "out").error
    assert "one vector of numbers" in error
    assert KEY not in error
    assert not (reviews / "out").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--embed", "txt"], "'text'"),
        (["--embed-model", "somewhere"], "--embed"),
        (["--embed", "text", "--embed-model", "somewhere"], "--embed-model"),
        (["--embed", "text", "--embed-model", "http://127.0.0.1:1/v1"], "--embed-model http://127.0.0.1:1/v1#NAME"),
    ],
)
def test_mistakes(reviews, cli, options, words):
    assert words in cli(*FIT, *options, "--out", "out").error


def test_the_extra_is_named_where_it_is_missing(reviews, cli, monkeypatch):
    (reviews / "model").mkdir()
    (reviews / "model" / "modules.json").write_text('[{"type": "sentence_transformers.models.Transformer"}]')
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    assert (
        "pip install 'pairlens[embed]'" in cli(*FIT, "--embed", "text", "--embed-model", "model", "--out", "out").error
    )


def test_the_studio_learns_from_vectors(reviews, server):
    rows = rows_from_file(reviews / "reviews.csv", ids="id", drop=["kind"], embed={"text": f"{server.url}#small"})
    assert rows.X.shape == (N, 4)
    assert [name for name, _, learned in rows._columns() if learned] == ["text"]
    assert "engine of the car" in str(rows.shown(0))


# Pictures


@pytest.fixture
def pictures(tmp_path):
    """Two folders of red and blue pictures, and answers about the first."""
    Image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'pairlens[studio]'")
    rng = np.random.default_rng(0)
    for folder, count in (("pictures", 30), ("more", 6)):
        (tmp_path / folder / "inside").mkdir(parents=True)
        for k in range(count):
            pixels = rng.integers(0, 60, (24, 30, 3), dtype=np.uint8)
            pixels[..., 2 * (k % 2)] += 180
            Image.fromarray(pixels).save(tmp_path / folder / (f"inside/{k:02}.png" if k % 3 == 0 else f"{k:02}.png"))
    names = {k: f"inside/{k:02}.png" if k % 3 == 0 else f"{k:02}.png" for k in range(30)}
    pairs = [(a, b) for a, b in rng.integers(0, 30, (50, 2)).tolist() if a != b]
    kinds = ("cannot-link", "must-link")
    lines = [f"{names[a]},{names[b]},{kinds[int(a % 2 == b % 2)]}" for a, b in dict.fromkeys(pairs)]
    (tmp_path / "pairs.csv").write_text("\n".join(["a,b,kind", *lines]) + "\n")
    return tmp_path


def colours(view: Path) -> dict[int, list[tuple[float, ...]]]:
    """The places of red and of blue pictures."""
    found: dict[int, list[tuple[float, ...]]] = {0: [], 1: []}
    for line in csv.DictReader(view.open()):
        found[int(Path(line.pop("file")).stem) % 2].append(tuple(map(float, line.values())))
    return found


def is_apart(view: Path) -> bool:
    red, blue = (np.array(places) for places in colours(view).values())
    within = max(np.ptp(red, axis=0).max(), np.ptp(blue, axis=0).max())
    return bool(np.linalg.norm(red.mean(axis=0) - blue.mean(axis=0)) > within)


FIT_PICTURES = (
    "fit",
    "pictures",
    "--pairs",
    "pairs.csv",
    "--method",
    "linear-pairlens",
    "--folds",
    "2",
    "--on-conflict",
    "drop",
)


def test_a_folder_of_pictures_is_a_table(pictures, cli):
    outcome = cli(*FIT_PICTURES, "--out", "out")
    assert outcome.code == 0, outcome.err
    assert is_apart(pictures / "out" / "embedding.csv")
    assert "data:image/png;base64" in (pictures / "out" / "report.html").read_text()
    assert cli("transform", "out/model.pairlens", "more", "--out", "more.csv").code == 0
    assert is_apart(pictures / "more.csv")
    assert [line["file"] for line in csv.DictReader((pictures / "more.csv").open())][-1] == "inside/03.png"
    outcome = cli("evaluate", "out/model.pairlens", "pictures", "--pairs", "pairs.csv", "--on-conflict", "drop")
    assert outcome.code == 0, outcome.err


def test_a_table_beside_a_folder_of_pictures(pictures, cli):
    names = sorted(str(path.relative_to(pictures / "pictures")) for path in (pictures / "pictures").rglob("*.png"))
    lines = [f"{name},{'red' if int(Path(name).stem) % 2 == 0 else 'blue'}" for name in names[::-1][:20]]
    (pictures / "known.csv").write_text("\n".join(["file,colour", *lines]) + "\n")
    options = ("--rows", "known.csv", "--id", "file", "--labels", "colour", "--method", "wbdr", "--folds", "2")
    outcome = cli("fit", "pictures", *options, "--out", "out")
    assert outcome.code == 0, outcome.err
    assert "10 rows of pictures" in outcome.err
    assert len((pictures / "out" / "embedding.csv").read_text().splitlines()) == 21
    assert "data:image/png;base64" in (pictures / "out" / "report.html").read_text()


def test_pictures_are_embedded_by_an_onnx_file(pictures, cli):
    from tests.tables.test_embedders import onnx_model

    onnx_model(pictures / "model.onnx", ["n", 3, 8, 8])
    outcome = cli(*FIT_PICTURES, "--embed-model", "model.onnx", "--out", "out")
    assert outcome.code == 0, outcome.err
    assert is_apart(pictures / "out" / "embedding.csv")
    assert list((pictures / "pictures.embeddings").iterdir())
    assert cli("transform", "out/model.pairlens", "more", "--out", "more.csv").code == 0
    assert is_apart(pictures / "more.csv")
    (pictures / "model.onnx").rename(pictures / "moved.onnx")
    move = ("transform", "out/model.pairlens", "more", "--out", "again.csv")
    assert "model.onnx" in cli(*move).error
    assert cli(*move, "--embed-model", "moved.onnx").code == 0
    assert (pictures / "again.csv").read_text() == (pictures / "more.csv").read_text()
    with embedding_context(files=pictures / "pictures"):
        rows = rows_from_file(pictures / "pictures", embed={"file": str(pictures / "moved.onnx")})
    assert rows.X.shape == (30, 3)
    assert rows.shown(0)["cells"] == [["width", "30"], ["height", "24"]]


def test_a_column_of_names_of_pictures(pictures, cli):
    from tests.tables.test_embedders import onnx_model

    onnx_model(pictures / "model.onnx", ["n", 3, 8, 8])
    lines = [f"pictures/{k:02}.png,{'ab'[k % 2]}" for k in range(30) if k % 3]
    (pictures / "table.csv").write_text("\n".join(["picture,kind", *lines]) + "\n")
    options = (
        "--labels",
        "kind",
        "--embed",
        "picture",
        "--embed-model",
        "model.onnx",
        "--method",
        "wbdr",
        "--folds",
        "2",
    )
    outcome = cli("fit", "table.csv", *options, "--out", "out")
    assert outcome.code == 0, outcome.err
    assert "picture" in outcome.out
    encoding = json.loads((pictures / "out" / "run.json").read_text())["data"]["encoding"]
    assert [(column["role"], column["n_features"]) for column in encoding] == [("picture", 3)]


def test_folders_without_pictures(tmp_path, cli):
    (tmp_path / "empty").mkdir()
    (tmp_path / "pairs.csv").write_text("a,b,kind\n0,1,must-link\n")
    assert "holds no pictures" in cli("fit", "empty", "--pairs", "pairs.csv", "--out", "out").error
    (tmp_path / "empty" / "a.png").write_text("no picture")
    assert "can be read" in cli("fit", "empty", "--pairs", "pairs.csv", "--out", "out").error
    assert "--embed-model" in cli("fit", "empty", "--pairs", "pairs.csv", "--embed", "file", "--out", "out").error
