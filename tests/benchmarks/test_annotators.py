"""The benchmark of machines that answer: what they say, and who is asked what."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pandas", reason="benchmarks.texts needs pandas")
annotators = pytest.importorskip("benchmarks.annotators", reason="needs the folder benchmarks of the repository")


@pytest.fixture(scope="module")
def rows():
    y = np.arange(120) % 6
    return 2 * np.eye(6)[y] + np.random.default_rng(0).standard_normal((120, 6)), y


def test_a_fifth_of_the_pairs_is_similar_whatever_the_length_of_the_rows(rows):
    X, _ = rows
    said = annotators.similar(X)
    assert said[np.triu_indices(120, 1)].mean() == pytest.approx(annotators.SIMILAR, abs=0.001)
    assert np.array_equal(said, said.T)
    longer = X * np.where(np.arange(120) < 60, 1.0, 4.0)[:, None]
    assert np.array_equal(annotators.similar(longer), said)


@pytest.mark.parametrize(
    ("how", "by_person", "by_machine"), [("person", 40, 0), ("blind", 400, 0), ("audited", 40, 400)]
)
def test_who_answers(rows, how, by_person, by_machine):
    X, y = rows
    said = annotators.similar(X)
    asker = annotators.answered(X, y, said, how, "random", 0, standardize=False)
    names = [question.annotator for question, _ in asker.log]
    people = names.count("person")
    # A random share of some 48 is audited, at most 40 of them.
    assert 20 < people <= by_person if how == "audited" else people == by_person
    assert len(names) - people == by_machine
    right = said if how == "blind" else y[:, None] == y
    told = [(question.rows, answer) for question, answer in asker.log if question.annotator == "person"]
    assert all(answer == ("same" if right[pair] else "different") for pair, answer in told)
