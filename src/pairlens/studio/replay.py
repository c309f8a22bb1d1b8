"""From the log to what holds now: which answers count, in which order, what the groups are called."""

from __future__ import annotations

from collections.abc import Iterable
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
    """

    id: str
    question: dict[str, Any]
    answer: str
    annotator: str
    at: str
    changed: bool = False
    flagged: bool = False


@dataclass
class History:
    """The answers that count, in the order in which they were given, and the names of the groups.

    The state is a function of the events alone: applying the same events to a new History gives an equal one.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    annotators: list[str] = field(default_factory=list)
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
                event.id, dict(body["question"]), str(body["answer"]), event.annotator, event.at
            )
        elif event.kind in ("undo", "retract"):
            self.answers.pop(target, None)
        elif event.kind == "change" and target in self.answers:
            old = self.answers[target]
            self.answers[target] = replace(old, answer=str(body["answer"]), changed=True)
        elif event.kind == "flag" and target in self.answers:
            self.answers[target] = replace(self.answers[target], flagged=bool(body["flagged"]))
        elif event.kind == "name":
            self.names[str(body["group"])] = str(body["name"])
        elif event.kind == "annotator" and body["name"] not in self.annotators:
            self.annotators.append(str(body["name"]))

    def last_of(self, annotator: str) -> Answer | None:
        """The newest answer of a person that still counts."""
        return next((answer for answer in reversed(self.answers.values()) if answer.annotator == annotator), None)

    def recent(self, annotator: str, limit: int) -> list[Answer]:
        """The newest answers of a person, newest first."""
        found = []
        for answer in reversed(self.answers.values()):
            if answer.annotator == annotator:
                found.append(answer)
                if len(found) == limit:
                    break
        return found
