"""The widget without a browser: one script of the page's modules, and requests as messages."""

from __future__ import annotations

import json
import shutil
import subprocess
from concurrent.futures import Future

import numpy as np
import pandas as pd
import pytest

import pairlens
from pairlens import Preferences
from pairlens.exceptions import InputError
from pairlens.studio.rows import rows_from_array
from pairlens.studio.run import open_store
from pairlens.studio.store import Event
from tests.studio.conftest import PATIENCE, until

pytest.importorskip("anywidget", reason="the widget needs anywidget: pip install 'pairlens[notebook]'")
module = pytest.importorskip("pairlens.studio.widget")


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_normal((30, 3)) + 6 * np.eye(3)[np.arange(30) % 3]


@pytest.fixture
def shown(rows, tmp_path, quick_children):
    made = []

    def start(X=rows, **options):
        made.append(pairlens.widget(X, **{"store": tmp_path / "answers.db", **options}))
        return made[-1]

    yield start
    for each in made:
        each.close()


class Page:
    """What the page does: it sends messages and waits for their replies."""

    def __init__(self, widget):
        self.widget, self.number, self.replies, self.heard = widget, 0, {}, []
        widget.send = self._take

    def _take(self, content, buffers=None):
        self.open = content.get("open")
        if "topic" in content:
            self.heard.append((content["topic"], content["content"]))
        else:
            self.replies[content["reply"]] = (content.get("status"), content.get("type"), b"".join(buffers or []))

    def ask(self, path, body=None):
        self.number += 1
        ask = f"{id(self)}-{self.number}"
        method = "GET" if body is None else "POST"
        text = "" if body is None else json.dumps(body)
        self.widget._handle_custom_msg({"ask": ask, "path": path, "method": method, "body": text}, [])
        return until(lambda: self.replies.get(ask))

    def json(self, path, body=None):
        status, kind, content = self.ask(path, body)
        assert (status, kind) == (200, "application/json"), content
        return json.loads(content)

    def question(self):
        self.widget._desk.session.prepared.result(PATIENCE)
        return self.json("/api/next", {})["questions"][0]

    def answer(self, answer):
        question = self.question()
        reply = self.json("/api/answer", {"id": question["id"], "question": question["raw"], "answer": answer})
        assert reply["recent"][0]["answer"] == answer
        return question["raw"]["rows"]


def test_answers_come_back_as_constraints_and_stay_in_the_store(shown):
    ids = [f"r{k}" for k in range(30)]
    first = shown(ids=ids)
    # At once: the rows are still being read.
    assert first.constraints().n_pairs == 0
    pair = Page(first).answer("same")
    assert first.constraints().to_lists()[0] == [tuple(sorted(pair))]
    with pytest.raises(InputError, match=r"Call constraints\(\)"):
        first.preferences()
    first.close()
    assert shown(ids=ids).constraints().n_must_link == 1


def test_preferences(shown):
    widget = shown(question="prefer")
    assert widget.preferences() == Preferences(n_samples=30)
    assert widget.groups().empty
    with pytest.raises(InputError, match=r"Call preferences\(\)"):
        widget.constraints()


def test_what_happens_is_told_to_every_widget_of_the_store(shown):
    """A cell that is run again goes on with the same session; another question begins a new one on the same store."""
    one, two = shown(question="same"), shown(question="same")
    pages = [Page(one), Page(two)]
    assert one._desk is two._desk
    pages[0].answer("same")
    for page in pages:
        assert ("status", 1) in [(topic, content.get("answers")) for topic, content in page.heard]
    one.close()
    assert two.constraints().n_pairs == 1
    three = shown(question="place")
    assert three._desk is not two._desk
    assert three.constraints().n_pairs == 1


def test_the_kernel_says_at_once_what_it_is_asked_at_present(shown, monkeypatch):
    """The page sends again what was lost on the way."""
    widget = shown()
    page = Page(widget)
    monkeypatch.setattr(widget._desk, "request", lambda *_: Future())
    widget._handle_custom_msg({"ask": "long", "path": "/api/export/report.html", "method": "GET", "body": ""}, [])
    widget._handle_custom_msg({"ask": ""}, [])
    assert page.open == ["long"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({}, 400),
        ({"path": 5, "method": "GET", "body": ""}, 400),
        ({"path": "/api/state", "method": None, "body": ""}, 400),
        ({"path": "/api/state", "method": "GET", "body": None}, 400),
        ({"path": "/api/find?text=\ud83d", "method": "GET", "body": ""}, 200),
        ({"path": "/api/\ud83d", "method": "GET", "body": ""}, 404),
        ({"path": "/api/answer", "method": "POST", "body": "\ud83d"}, 400),
        ({"path": "/api/answer", "method": "POST", "body": "[" * 50_000}, 400),
    ],
)
def test_whatever_is_asked_is_replied_to(shown, request_, status):
    widget = shown()
    page = Page(widget)
    widget._handle_custom_msg({"ask": "odd", **request_}, [])
    assert until(lambda: page.replies.get("odd"))[0] == status
    assert page.json("/api/state")["status"]["answers"] == 0
    assert not widget._asked


def test_requests_are_those_of_the_server_less_its_links(shown):
    page = Page(shown())
    page.question()
    state = page.json("/api/state")
    assert state["annotator"] == "me"
    assert page.json("/api/rows?rows=3,4")[1]["row"] == 4
    status, kind, content = page.ask("/api/map")
    assert (status, kind) == (200, "application/octet-stream")
    assert len(content) > 4
    assert page.ask("/api/rows?rows=999")[0] == 404
    for path in ("/", "/page/app.js", "/api/events"):
        assert page.ask(path)[0] == 404
    assert page.ask("/api/link", {"id": "a", "name": "Ann"})[0] == 404
    assert page.ask("/api/answer", {"id": "a"})[0] == 400


def test_what_is_left_out_of_the_store_is_told(shown, rows, tmp_path):
    with open_store(tmp_path / "answers.db", rows_from_array(rows)) as store:
        store.append(Event("bad", "answer", "me", {}))
    with pytest.warns(UserWarning, match="1 entry of the store is not used"):
        shown()


def test_any_frame_with_its_answers_beside_the_notebook(shown, rows, tmp_path, monkeypatch):
    """Words, dates and gaps are read as the command reads them; the frame itself is what a selection is taken from."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(
        name=[f"bird{k:03d}" for k in range(30)], kind=["owl", "duck", None] * 10, seen="2024-05-01"
    )
    widget = shown(frame, ids="name", drop=["c"], store=None)
    assert widget.store.resolve().parent == tmp_path
    page = Page(widget)
    assert {cell[0] for row in page.question()["rows"] for cell in row["cells"]} >= {"a", "b", "kind"}
    page.json("/api/choose", {"id": "x", "action": "group", "rows": [0, 3, 6], "group": None, "name": "owls"})
    page.json("/api/choose", {"id": "y", "action": "group", "rows": [1, 4, 7], "group": None, "name": "ducks"})
    number = {each["name"]: each["number"] for each in page.json("/api/groups")}["ducks"]
    page.json("/api/choose", {"id": "z", "action": "apart", "rows": [0, 3], "group": number})
    groups = widget.groups()
    assert list(groups) == ["id", "group", "probability", "known"]
    assert groups["id"].tolist() == frame["name"].tolist()
    assert groups["group"][[0, 3, 6, 1, 4, 7]].tolist() == ["owls"] * 3 + ["ducks"] * 3
    assert set(groups["known"][[0, 3, 6]]) == {"placed"}
    widget.set_state({"selected": [4, 2]})
    pd.testing.assert_frame_equal(widget.selection(), frame.iloc[[4, 2]])
    model = widget.model()
    assert model.transform(frame.drop(columns=["c", "name"])).shape == (30, 2)


def test_an_array_is_selected_from_as_a_frame(shown, rows):
    widget = shown(ids=[f"r{k}" for k in range(30)])
    with pytest.raises(InputError, match="no answer yet"):
        widget.model()
    assert widget.groups().empty
    widget.set_state({"selected": [2, 5]})
    chosen = widget.selection()
    assert chosen.index.tolist() == ["r2", "r5"]
    np.testing.assert_array_equal(chosen.to_numpy(), rows[[2, 5]])


@pytest.mark.parametrize(
    "names",
    [[0, 1, 2], [2020, 2021, 2022], ["a", "a", "b"], pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")])],
    ids=["numbers", "years", "twice", "levels"],
)
def test_names_of_columns_that_no_file_has(shown, rows, names):
    frame = pd.DataFrame(rows, columns=names)
    widget = shown(frame)
    page = Page(widget)
    page.answer("same")
    page.json("/api/choose", {"id": "x", "action": "group", "rows": [0, 3, 6], "group": None, "name": "one"})
    page.json("/api/choose", {"id": "y", "action": "group", "rows": [1, 4, 7], "group": None, "name": "other"})
    assert len(widget.groups()) == 30
    assert widget.model().transform(frame).shape == (30, 2)
    widget.set_state({"selected": [4]})
    pd.testing.assert_frame_equal(widget.selection(), frame.iloc[[4]])


def test_rows_of_frames_are_called_as_they_are(shown, rows, tmp_path):
    frame = pd.DataFrame(rows, columns=["id", "b", "c"])
    named = frame.set_index(pd.Index([f"r{k}" for k in range(30)]))
    widget = shown(named.assign(says="half \ud83d"))
    assert widget._desk.session.rows.ids == named.index.tolist()
    # The index takes no column of the same name away.
    assert set(widget._desk.session.rows.cells) >= {"id", "b", "c", "says"}
    widget.close()
    polars = pytest.importorskip("polars", reason="needs polars: pip install polars")
    lazy = shown(polars.from_pandas(frame).lazy(), store=tmp_path / "lazy.db")
    lazy.set_state({"selected": [2, 5]})
    assert lazy.selection().rows() == [tuple(frame.iloc[row]) for row in (2, 5)]


@pytest.mark.parametrize(
    ("given", "argument"),
    [({"ids": ["a"]}, "ids"), ({"images": ["a.png"]}, "images"), ({"question": "which?"}, "question")],
)
def test_arguments_that_do_not_fit_are_named(shown, rows, given, argument, tmp_path):
    with pytest.raises(InputError) as caught:
        shown(pd.DataFrame(rows, columns=["a", "b", "c"]), **given)
    assert caught.value.argument == argument
    assert not module.Desk._open
    assert not (tmp_path / "answers.db").exists()


@pytest.mark.parametrize("given", [{"ids": "name"}, {"drop": ["name"]}, {"ids": "twice"}])
def test_errors_do_not_name_a_file_that_nobody_gave(shown, rows, given):
    with pytest.raises(InputError, match="the frame") as caught:
        shown(pd.DataFrame(rows, columns=["a", "b", "c"]).assign(twice="x"), **given)
    assert ".csv" not in str(caught.value)


def test_the_share_of_audits_is_that_of_the_store(shown, rows, tmp_path):
    with open_store(tmp_path / "answers.db", rows_from_array(rows)) as store:
        store.set_meta({"overlap": 0.5})
    assert shown()._desk.session.settings.overlap == 0.5


def test_arguments_of_arrays_are_refused_for_frames(rows):
    with pytest.raises(InputError) as caught:
        pairlens.widget(pd.DataFrame(rows), cells={"a": range(30)})
    assert caught.value.argument == "X"
    assert not module.Desk._open


def test_one_script_runs_its_modules_anew_for_every_widget(tmp_path, monkeypatch):
    page = tmp_path / "page"
    page.mkdir()
    (page / "counter.js").write_text(
        "let n = 0;\nexport function count() {\n  return ++n;\n}\nexport const NAME = 'c';\n"
    )
    (page / "again.js").write_text('import { count as next } from "./counter.js";\nexport class Again { go = next }\n')
    (page / "entry.js").write_text(
        'import {\n  NAME,\n  count,\n} from "./counter.js";\nimport { Again } from "./again.js";\n'
        "export async function render(context, files) {\n  count();\n"
        "  return [NAME, new Again().go(), context, files.css];\n}\n"
    )
    (page / "index.html").write_text("<p>")
    (page / "style.css").write_text("p { color: red }")
    monkeypatch.setattr("pairlens.studio.widget.files", lambda _: tmp_path)
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: install nodejs to test the page's modules")
    script = tmp_path / "widget.mjs"
    (tmp_path / "made.mjs").write_text(module.bundle("entry"))
    script.write_text(
        'import made from "./made.mjs";\nconsole.log(JSON.stringify([await made.render(1), await made.render(2)]));\n'
    )
    done = subprocess.run([node, script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [["c", 2, 1, "p { color: red }"], ["c", 2, 2, "p { color: red }"]]
    (page / "entry.js").write_text("export default 3;\n")
    with pytest.raises(ValueError, match="cannot be bundled: export default 3;"):
        module.bundle("entry")


def test_the_script_holds_all_of_the_page_but_its_entry():
    text = module.bundle()
    for name in ("app", "map", "question", "choose", "review"):
        assert text.count(f"const ${name} = ") == 1
    assert "const $page" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
