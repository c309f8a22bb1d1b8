"""The studio in a notebook, without a browser."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
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

    def start(**options):
        with patch("pairlens.studio.run.DEFAULT_PORT", 0):
            started.append(show(rows, store=tmp_path / "answers.db", notebook="http://127.0.0.1:8888", **options))
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
