"""Answers worth a second look: those that contradict each other, and those that look wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pairlens.asking import Question
from pairlens.exceptions import ConflictWarning
from pairlens.studio.replay import Answer
from pairlens.supervision import Constraints, Preferences

__all__ = ["Doubt", "contradictions", "doubts", "suspicious", "verdicts"]

MOST = 50


@dataclass(frozen=True)
class Doubt:
    """A reason to ask again.

    Attributes
    ----------
    kind : {"contradiction", "suspicious", "flagged"}
    answer : str
        Id of the answer to be asked again.
    others : tuple of str
        Ids of the answers that it contradicts, in the order of the chain.
    chain : tuple of int
        The rows of the chain.
    weight : float
        How strong the doubt is, at most 1.
    """

    kind: str
    answer: str
    others: tuple[str, ...] = ()
    chain: tuple[int, ...] = ()
    weight: float = 1.0


def verdicts(answers: Iterable[Answer]) -> list[tuple[str, int, int, int]]:
    """What the answers say of pairs: the id of the answer, two rows, and +1 (same, or the first is better) or -1."""
    return [
        (answer.id, i, j, verdict)
        for answer in answers
        for i, j, verdict in Question.from_dict(answer.question).verdicts(answer.answer)
        if verdict
    ]


def contradictions(answers: Sequence[Answer], n_rows: int) -> list[Doubt]:
    """Each "different" that a chain of "same" contradicts, and each circle of preferences."""
    pairs = [answer for answer in answers if answer.question["kind"] != "prefer"]
    orders = [answer for answer in answers if answer.question["kind"] == "prefer"]
    return [*_chains(pairs, n_rows), *_circles(orders, n_rows)][:MOST]


def _chains(answers: Sequence[Answer], n_rows: int) -> list[Doubt]:
    said: dict[tuple[int, int, int], str] = {}
    for name, i, j, verdict in verdicts(answers):
        said[i, j, verdict] = name
    together = [(i, j) for i, j, verdict in said if verdict > 0]
    apart = [(i, j) for i, j, verdict in said if verdict < 0]
    if not together or not apart:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)
        found = Constraints(together, apart, n_rows, on_conflict="warn").conflicts()
    result = []
    for conflict in found[:MOST]:
        i, j = sorted(conflict.pair)
        links = [tuple(sorted(link)) for link in zip(conflict.chain, conflict.chain[1:])]
        others = tuple(dict.fromkeys(said[a, b, 1] for a, b in links))
        result.append(Doubt("contradiction", said[i, j, -1], others, tuple(int(row) for row in conflict.chain)))
    return result


def _circles(answers: Sequence[Answer], n_rows: int) -> list[Doubt]:
    said: dict[tuple[int, int], str] = {}
    for name, i, j, verdict in verdicts(answers):
        said[(i, j) if verdict > 0 else (j, i)] = name
    if not said:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)
        circles = Preferences(list(said), n_rows, on_conflict="warn").cycles()
    result = []
    for circle in circles:
        links = [said[a, b] for a, b in zip(circle, (*circle[1:], circle[0]))]
        # The newest answer is asked again: it closed the circle.
        order = {answer.id: place for place, answer in enumerate(answers)}
        last = max(links, key=order.__getitem__)
        others = tuple(name for name in links if name != last)
        result.append(Doubt("contradiction", last, others, tuple(int(row) for row in (*circle, circle[0]))))
    return result


def suspicious(
    answers: Sequence[Answer], groups: Mapping[int, Sequence[int]], confidence: Mapping[int, float]
) -> list[Doubt]:
    """Answers that disagree with the groups, the surest disagreement first."""
    where = {row: number for number, rows in groups.items() for row in rows}
    strongest: dict[str, float] = {}
    for name, i, j, verdict in verdicts(answers):
        if i in where and j in where and (where[i] == where[j]) != (verdict > 0):
            weight = confidence.get(i, 1.0) * confidence.get(j, 1.0)
            strongest[name] = max(weight, strongest.get(name, 0.0))
    ordered = sorted(strongest.items(), key=lambda pair: -pair[1])
    return [Doubt("suspicious", name, weight=weight) for name, weight in ordered[:MOST]]


def doubts(history: Any, asker: Any, n_rows: int) -> list[Doubt]:
    """All that is worth a second look and was not kept before, each answer once: contradictions, suspicions, flags."""
    answers = list(history.answers.values())
    pairs = [answer for answer in answers if answer.question["kind"] != "prefer"]
    found = contradictions(answers, n_rows)
    if hasattr(asker, "groups_"):
        found += suspicious(pairs, asker.groups_, asker.confidence_)
    found += [Doubt("flagged", answer.id) for answer in answers if answer.flagged]
    result: dict[str, Doubt] = {}
    for doubt in found:
        flagged = history.answers[doubt.answer].flagged
        if doubt.answer not in result and (flagged or doubt.answer not in history.kept):
            result[doubt.answer] = doubt
    return list(result.values())
