"""Questions that come again, to the same person or to another, and how well their answers agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pairlens.asking.choosing import Draft
from pairlens.asking.progress import Agreement, agreement_of
from pairlens.asking.questions import Entry, Question

__all__ = ["agreement_between", "agreement_with_oneself", "overlapping", "repeated"]

REPEAT_AFTER = 10
"""Entries of the log before a question may come back."""
OVERLAP_WITHIN = 200
"""The latest entries from which a question is given to a second person."""


def _is_plain(entry: Entry) -> bool:
    """Whether a question was asked for its own sake and answered."""
    return entry.question.purpose not in ("repeat", "overlap", "skip") and entry.answer != "unsure"


def repeated(
    log: Sequence[Entry], annotator: str | None, taken: set[tuple[int, int]], rng: np.random.Generator
) -> Draft | None:
    """A question that this person answered some time ago, with sides swapped; none comes back twice."""
    again = {entry.question.pairs for entry in log if entry.question.purpose == "repeat"}
    found = [
        entry.question
        for entry in log[:-REPEAT_AFTER]
        if _is_plain(entry)
        and entry.question.annotator == annotator
        and entry.question.pairs not in again
        and taken.isdisjoint(entry.question.pairs)
    ]
    if not found:
        return None
    question = _any_of(found, rng)
    # On a screen the groups keep their slots.
    rows = question.rows if question.kind == "place" else question.rows[::-1]
    return Draft(question.kind, rows, "repeat", question.groups)


def overlapping(
    log: Sequence[Entry], annotator: str | None, taken: set[tuple[int, int]], rng: np.random.Generator
) -> Draft | None:
    """A question that somebody else answered lately and this person did not."""
    if annotator is None:
        return None
    own = {entry.question.pairs for entry in log if entry.question.annotator == annotator}
    found = [
        entry.question
        for entry in log[-OVERLAP_WITHIN:]
        if _is_plain(entry)
        and entry.question.annotator not in (None, annotator)
        and entry.question.pairs not in own
        and taken.isdisjoint(entry.question.pairs)
    ]
    if not found:
        return None
    question = _any_of(found, rng)
    return Draft(question.kind, question.rows, "overlap", question.groups)


def _any_of(questions: Sequence[Question], rng: np.random.Generator) -> Question:
    return questions[int(rng.integers(len(questions)))]


def agreement_between(log: Sequence[Entry]) -> Agreement:
    """How often two people agree on pairs that both were asked about."""
    said: dict[tuple[int, int], list[tuple[str, int]]] = {}
    twice: list[tuple[int, int]] = []
    for question, answer in log:
        if question.annotator is None or question.purpose == "repeat":
            continue
        for i, j, verdict in question.verdicts(answer):
            before = said.setdefault((i, j), [])
            twice.extend((earlier, verdict) for person, earlier in before if person != question.annotator)
            before.append((question.annotator, verdict))
    return agreement_of(twice)


def agreement_with_oneself(log: Sequence[Entry]) -> Agreement:
    """How often people agree with what they answered before."""
    said: dict[tuple[str | None, int, int], int] = {}
    twice: list[tuple[int, int]] = []
    for question, answer in log:
        for i, j, verdict in question.verdicts(answer):
            key = (question.annotator, i, j)
            if question.purpose == "repeat" and key in said:
                twice.append((said[key], verdict))
            elif question.purpose != "repeat":
                said[key] = verdict
    return agreement_of(twice)
