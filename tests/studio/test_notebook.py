"""The studio in a notebook, without a browser."""

from __future__ import annotations

import sys
from types import ModuleType
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from pairlens import Preferences
from pairlens.studio import show
from pairlens.studio.rows import rows_from_array
from pairlens.studio.run import open_store
from pairlens.studio.store import Event
from tests.studio.conftest import Person


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_normal((30, 3)) + 6 * np.eye(3)[np.arange(30) % 3]


@pytest.fixture
def shown(rows, tmp_path, quick_children):
    started = []

    def start(X=rows, **options):
        with patch("pairlens.studio.run.DEFAULT_PORT", 0):
            given = {"store": tmp_path / "answers.db", "notebook": "http://127.0.0.1:8888", **options}
            started.append(show(X, **given))
        return started[-1]

    yield start
    for studio in started:
        studio.stop()


def test_answers_come_back_as_constraints_and_stay_in_the_store(shown):
    first = shown(ids=[f"r{k}" for k in range(30)])
    # At once: the rows are still being read.
    assert first.constraints().n_pairs == 0
    person = Person.enter(first.url)
    question = person.question()
    person.answer("same")
    assert first.constraints().to_lists()[0] == [tuple(sorted(question["raw"]["rows"]))]
    with pytest.raises(ValueError, match=r"are constraints: call constraints\(\)"):
        first.preferences()
    assert f'src="{first.url.partition("?")[0]}' in first._repr_html_()
    first.stop()
    assert shown(ids=[f"r{k}" for k in range(30)]).constraints().n_must_link == 1


def test_preferences(shown):
    studio = shown(question="prefer")
    assert studio.preferences() == Preferences(n_samples=30)
    with pytest.raises(ValueError, match=r"are preferences: call preferences\(\)"):
        studio.constraints()


def test_what_is_left_out_of_the_store_is_told(shown, rows, tmp_path):
    with open_store(tmp_path / "answers.db", rows_from_array(rows)) as store:
        store.append(Event("bad", "answer", "me", {}))
    with pytest.warns(UserWarning, match="1 entry of the store is not used"):
        shown()


def test_any_frame_is_shown_and_its_answers_stay_beside_the_notebook(shown, rows, tmp_path, monkeypatch):
    """Words, dates and gaps are read as the command reads them."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(
        name=[f"bird{k:03d}" for k in range(30)], kind=["owl", "duck", None] * 10, seen="2024-05-01"
    )
    first = shown(frame, ids="name", drop=["c"], store=None, notebook=None)
    assert first.notebook == "http://localhost:8888"
    assert first.store.parent.resolve() == tmp_path
    assert first.store.exists()
    person = Person.enter(first.url)
    assert {cell[0] for row in person.question()["rows"] for cell in row["cells"]} >= {"a", "b", "kind"}
    person.answer("same")
    first.stop()
    again = shown(frame, ids="name", drop=["c"], store=None)
    assert again.constraints().n_must_link == 1
    assert "notebook=" in again._repr_html_()


def test_the_address_is_that_of_the_server_that_runs_the_notebook(shown, monkeypatch):
    servers = [{"pid": 7, "url": "http://localhost:8889/lab"}, {"pid": 8, "url": "http://localhost:8890/"}]
    module = ModuleType("jupyter_server.serverapp")
    module.list_running_servers = lambda: iter(servers)
    monkeypatch.setitem(sys.modules, "jupyter_server", ModuleType("jupyter_server"))
    monkeypatch.setitem(sys.modules, "jupyter_server.serverapp", module)
    monkeypatch.setenv("JPY_PARENT_PID", "8")
    assert shown(notebook=None).notebook == "http://localhost:8890"
