"""From the log to what holds now: which answers count, in which order, what the groups are called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pairlens.studio.store import Event

__all__ = ["Answer", "History"]


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
    """

    id: str
    question: dict[str, Any]
    answer: str
    annotator: str
    at: str
    changed: bool = False
    flagged: bool = False
    ids: tuple[str, ...] = ()


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
    remapped: bool = False
    n_events: int = 0

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        """The state after these events."""
        history = cls()
        for event in events:
            history.apply(event)
        return history

    def apply(self, event: Event) -> None:
        """Take one more event into account; one that no longer has anything to act on changes nothing."""
        self.n_events += 1
        body = event.body
        target = str(body.get("target", ""))
        if event.kind == "answer":
            self.answers[event.id] = Answer(
                event.id,
                dict(body["question"]),
                str(body["answer"]),
                event.annotator,
                event.at,
                ids=tuple(body.get("ids", ())),
            )
        elif event.kind in ("undo", "retract"):
            self.answers.pop(target, None)
        elif event.kind == "change" and target in self.answers:
            old = self.answers[target]
            self.answers[target] = replace(old, answer=str(body["answer"]), changed=True)
            self.kept.discard(target)
        elif event.kind == "flag" and target in self.answers:
            self.answers[target] = replace(self.answers[target], flagged=bool(body["flagged"]))
        elif event.kind == "keep":
            self.kept.add(target)
        elif event.kind == "name":
            self.names[str(body["group"])] = str(body["name"])
            self.named[str(body["group"])] = str(body.get("id", ""))
        elif event.kind == "remap":
            self.remapped = True
        elif event.kind == "annotator" and body["name"] not in self.annotators:
            self.annotators.append(str(body["name"]))

    def translated(self, ids: Sequence[str]) -> History:
        """The same answers about the rows of these ids in another table; those whose rows are gone are left out."""
        where = {name: row for row, name in enumerate(ids)}
        answers = {
            key: replace(answer, question={**answer.question, "rows": [where[name] for name in answer.ids]})
            for key, answer in self.answers.items()
            if all(name in where for name in answer.ids)
        }
        rows = {row: str(where[name]) for row, name in self.named.items() if name in where}
        names = {rows[row]: name for row, name in self.names.items() if row in rows}
        return replace(self, answers=answers, names=names, named={rows[row]: self.named[row] for row in rows})

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
