"""Words that tell islands apart."""

from __future__ import annotations

import math

import numpy as np

from pairlens.tables.islands import TextIndex

TOPICS = [["violin", "cello", "orchestra"], ["goal", "referee", "stadium"], ["flour", "oven", "yeast"]]
FILLER = ["about", "something", "which", "people", "often", "during"]


def texts_of(n: int) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(0)
    topic = np.arange(n) % 3
    return [
        " ".join([*rng.choice(FILLER, 4), *rng.choice(TOPICS[k], 2, replace=False), *rng.choice(FILLER, 3)])
        for k in topic
    ], topic


def test_islands_have_the_words_of_their_topic_where_they_are():
    texts, topic = texts_of(150)
    centres = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0]])
    Z = centres[topic] + np.random.default_rng(1).standard_normal((150, 2))
    found = TextIndex.of(texts).islands(Z)
    assert len(found) == 3
    for island in found:
        k = int(np.argmin(((centres - [island.x, island.y]) ** 2).sum(axis=1)))
        assert math.dist(centres[k], (island.x, island.y)) < 1
        assert len(island.words) == 2
        assert set(island.words) <= set(TOPICS[k])


def test_the_value_of_a_word_by_hand():
    texts = ["red rose", "red tulip", "red car", "blue car"]
    # "red" is in 2 of 2 and in 1 of 2, "car" in none and in both.
    value = {"red": 2.5 / 3 * math.log(2.5 / 1.5), "rose": 1.5 / 3 * math.log(1.5 / 0.5)}
    assert value["rose"] > value["red"]
    assert TextIndex.of(texts).telling(np.array([0, 0, 1, 1]), most=9) == {
        0: ("rose", "tulip", "red"),
        1: ("car", "blue"),
    }


def test_forms_of_a_word_count_once_and_nothing_is_said_without_words():
    index = TextIndex.of(["game games", "game games tool", "tree", "tree"])
    assert index.telling(np.array([0, 0, 1, 1]))[0] == ("game", "tool")
    assert TextIndex.of(["1 2", "<b>", ""]).islands(np.zeros((3, 2))) == []


def test_common_words_are_not_shown():
    index = TextIndex.of(["bow with the violin", "cello with strings", "goal for home", "referee for them"])
    assert not {"with", "for", "the", "them"} & set(index.words)
    assert {"violin", "goal"} <= set(index.words)


def test_of_many_texts_some_are_counted():
    texts, topic = texts_of(9_000)
    index = TextIndex.of(texts)
    assert index.has.shape[0] == len(index.rows) == 3_000
    words = index.telling(topic[index.rows])
    assert [set(words[k]) <= set(TOPICS[k]) for k in range(3)] == [True] * 3
