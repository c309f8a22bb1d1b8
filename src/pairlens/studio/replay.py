"""From the log to what holds now: which answers count, in which order, what the groups are called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pairlens.asking import Question
from pairlens.studio.entries import Event

__all__ = ["Answer", "History"]

MOST_TOLD = 5


@dataclass(frozen=True)
class Answer:
    """An answer that counts.

    Attributes
    ----------
    id : str
        Id of the event that gave it.
    question : dict
        The question as it was put: id, kind, rows, answers and whatever else the asker needs to take it back.
    answer : str
        One of the question's answers.
    annotator : str
        Who gave it.
    at : str
        When it was given.
    changed : bool
        Whether it was another one before.
    flagged : bool
        Whether the person wants to come back to it.
    ids : tuple of str
        What its rows were called.
    seq : int
        Position of its event in the log.
    """

    id: str
    question: dict[str, Any]
    answer: str
    annotator: str
    at: str
    changed: bool = False
    flagged: bool = False
    ids: tuple[str, ...] = ()
    seq: int = 0


@dataclass
class History:
    """The answers that count, in the order in which they were given, and all else that people said.

    The state is a function of the events alone: applying the same events to a new History gives an equal one.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    annotators: list[str] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    named: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        """The state after these events; those that cannot be applied are stepped over, and told in `left_out`."""
        history = cls()
        for event in events:
            try:
                history.apply(event)
            except ValueError as error:
                kind = f" ({event.kind} by {event.annotator})" if event.kind else ""
                history.left_out.append(f"entry {event.seq} of {event.at or 'an unknown time'}{kind}: {error}")
        return history

    def apply(self, event: Event) -> None:
        """Take one more event into account; ValueError if it is not one.

        One that no longer has anything to act on changes nothing.
        """
        if event.damage:
            raise ValueError(event.damage)
        body = event.body
        if event.kind == "answer":
            self.answers[event.id] = _answer(event)
        elif event.kind in ("undo", "retract"):
            self.answers.pop(_text(body, "target"), None)
        elif event.kind == "change":
            target, answer = _text(body, "target"), _text(body, "answer")
            if target in self.answers:
                old = self.answers[target]
                Question.from_dict(old.question).check(answer)
                self.answers[target] = replace(old, answer=answer, changed=True)
                self.kept.discard(target)
        elif event.kind == "flag":
            target = _text(body, "target")
            if target in self.answers:
                self.answers[target] = replace(self.answers[target], flagged=body.get("flagged") is True)
        elif event.kind == "keep":
            self.kept.add(_text(body, "target"))
        elif event.kind == "name":
            group, name, row = _text(body, "group"), _text(body, "name"), _text(body, "id")
            self.names[group], self.named[group] = name, row
        elif event.kind == "annotator":
            if (name := _text(body, "name")) not in self.annotators:
                self.annotators.append(name)
        elif event.kind != "remap":
            raise ValueError(f"there is no event of the kind {event.kind!r}")
        self.seen.add(event.id)

    def about(self, ids: Sequence[str]) -> History:
        """The same answers about the rows of these ids; those whose rows are not in the table are left out."""
        where = {name: row for row, name in enumerate(ids)}
        result = replace(self, answers={}, left_out=list(self.left_out))
        for key, answer in self.answers.items():
            if all(name in where for name in answer.ids):
                question = {**answer.question, "rows": [where[name] for name in answer.ids]}
                result.answers[key] = replace(answer, question=question)
            else:
                gone = ", ".join(repr(name) for name in answer.ids if name not in where)
                result.leave_out(answer, f"the table has no row {gone}")
        rows = {row: str(where[name]) for row, name in self.named.items() if name in where}
        result.names = {rows[row]: name for row, name in self.names.items() if row in rows}
        result.named = {rows[row]: self.named[row] for row in rows}
        return result

    def leave_out(self, answer: Answer, reason: object) -> None:
        """Go on without an answer, and say so."""
        self.answers.pop(answer.id, None)
        self.left_out.append(f"entry {answer.seq} of {answer.at} (answer by {answer.annotator}): {reason}")

    def told(self) -> str:
        """What was left out and why, for people; empty if nothing was."""
        if not self.left_out:
            return ""
        n = len(self.left_out)
        more = f"; and {n - MOST_TOLD} more" if n > MOST_TOLD else ""
        head = f"{n} entries of the store are not used" if n > 1 else "1 entry of the store is not used"
        return f"{head}, all others are; nothing was removed. {'; '.join(self.left_out[:MOST_TOLD])}{more}"

    def last_of(self, annotator: str, questions: Collection[str]) -> Answer | None:
        """The newest answer of a person to one of these questions."""
        own = (answer for answer in reversed(self.answers.values()) if answer.annotator == annotator)
        return next((answer for answer in own if answer.question["id"] in questions), None)

    def recent(self, annotator: str, limit: int) -> list[Answer]:
        """The newest answers of a person, newest first."""
        found = []
        for answer in reversed(self.answers.values()):
            if answer.annotator == annotator:
                found.append(answer)
                if len(found) == limit:
                    break
        return found


def _answer(event: Event) -> Answer:
    given, ids, answer = event.body.get("question"), event.body.get("ids"), _text(event.body, "answer")
    if not isinstance(given, Mapping):
        raise ValueError(f"question={given!r} must be an object")
    question = Question.from_dict(given)
    question.check(answer)
    if not isinstance(ids, list) or len(ids) != len(question.rows) or not all(isinstance(name, str) for name in ids):
        raise ValueError(f"ids={ids!r} must name the {len(question.rows)} rows of the question")
    return Answer(event.id, question.to_dict(), answer, event.annotator, event.at, ids=tuple(ids), seq=event.seq)


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key}={value!r} must be a text")
    return value
