"""What is asked, what was answered and who has which question open: the vocabulary that every front end shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

Kind = Literal["same", "place", "prefer", "skip"]
Purpose = Literal["place", "merge", "check", "audit", "overlap", "repeat", "pair", "skip", "given", "chosen"]

KINDS, PURPOSES = get_args(Kind), get_args(Purpose)
ROWS = {"same": (2, 2), "prefer": (2, 2), "place": (2, 9), "skip": (1, 1)}
"""Fewest and most rows of a question of each kind."""
MACHINE = "machine:"
"""Beginning of the name of an annotator that is not a person."""
MOST_GROUP = 2**53
"""Numbers of groups lie below it, so that every reader of JSON has them exactly."""


def is_machine(annotator: str | None) -> bool:
    """Return whether an annotator is a machine, by its name."""
    return annotator is not None and annotator.startswith(MACHINE)


class UnknownQuestionError(KeyError, ValueError):
    """No question of this id was answered, so there is nothing to change or retract."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class AlreadyAnsweredError(ValueError):
    """The question was answered before; :meth:`~pairlens.asking.Asker.change` changes an answer."""


@dataclass(frozen=True)
class Question:
    """One question about rows.

    Attributes
    ----------
    id : str
        Unique in a session.
    kind : {"same", "place", "prefer", "skip"}
        "same" shows two rows, "place" a row and one representative of each shown group, "prefer" two rows. "skip" is
        no question: it is how the log records that a row was set aside.
    rows : tuple of int
        Row numbers in the order in which they are shown.
    purpose : str
        Why it is asked: "place" a row, "merge" two groups, "check" a placed row again, "audit" (drawn at random),
        "overlap" (another person answered it), "repeat" (the same person answered it, sides swapped), "pair" (the
        strategies that choose pairs), "given" (an answer that was never asked for), "chosen" (likewise, about rows that
        the person chose on the map: they are placed at once).
    groups : tuple of int
        Numbers of the shown groups, one for each representative, in ``groups_``; empty unless the kind is "place".
    annotator : str or None
        Who is asked; the name of a machine begins with "machine:".
    answers : tuple of str
        What may be answered; it follows from the kind and the number of rows.
    """

    id: str
    kind: Kind
    rows: tuple[int, ...]
    purpose: Purpose = "given"
    groups: tuple[int, ...] = ()
    annotator: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} must be one of {', '.join(KINDS)}.")
        if self.purpose not in PURPOSES:
            raise ValueError(f"purpose={self.purpose!r} must be one of {', '.join(PURPOSES)}.")
        fewest, most = ROWS[self.kind]
        if not fewest <= len(self.rows) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise ValueError(f"A question of kind {self.kind!r} has {wanted} rows, got rows={self.rows}.")
        if len(set(self.rows)) < len(self.rows):
            raise ValueError(f"rows={self.rows} must be distinct: a row is not compared with itself.")
        if self.groups and (self.kind != "place" or len(self.groups) != len(self.rows) - 1):
            raise ValueError(
                f"groups={self.groups} must be one group for each row but the first, of kind 'place' alone."
            )
        if not all(0 <= group < MOST_GROUP for group in self.groups):
            raise ValueError(f"groups={self.groups} must be whole numbers from 0 on.")

    @classmethod
    def same(cls, i: int, j: int, *, id: str, annotator: str | None = None) -> Question:
        """Make the question "Do these two belong together?" without :meth:`Asker.ask`."""
        return cls(id, "same", (int(i), int(j)), annotator=annotator)

    @classmethod
    def prefer(cls, i: int, j: int, *, id: str, annotator: str | None = None) -> Question:
        """Make the question "Which of these two is better?" without :meth:`PreferenceAsker.ask`."""
        return cls(id, "prefer", (int(i), int(j)), annotator=annotator)

    @property
    def answers(self) -> tuple[str, ...]:
        """The possible answers."""
        if self.kind == "place":
            return (*map(str, range(1, len(self.rows))), "none", "unsure")
        if self.kind == "prefer":
            return ("left", "right", "equal", "unsure")
        return ("same", "different", "unsure") if self.kind == "same" else ("skip",)

    @property
    def asked_again(self) -> tuple[int, ...]:
        """Rows that were placed and are asked about again: of two groups that may be one, to check, or as before."""
        if self.kind == "prefer" or self.purpose not in ("merge", "check", "repeat"):
            return ()
        # The others of a screen stand for their groups.
        return self.rows[:1] if self.kind == "place" or self.purpose == "check" else self.rows

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The comparisons that the question makes, each with its smaller row first."""
        first, *others = self.rows
        return tuple((min(first, other), max(first, other)) for other in others)

    def verdicts(self, answer: str) -> tuple[tuple[int, int, int], ...]:
        """Return what an answer says of each pair (i, j), i < j; nothing if it is "unsure".

        +1 is same, -1 different; of two rows of which one is preferred, +1 if that is i, -1 if it is j, 0 if equal.
        """
        if answer in ("unsure", "skip"):
            return ()
        if self.kind == "place":
            chosen = None if answer == "none" else int(answer) - 1
            return tuple((i, j, 1 if at == chosen else -1) for at, (i, j) in enumerate(self.pairs))
        value = {"same": 1, "different": -1, "left": 1, "right": -1, "equal": 0}[answer]
        turned = self.kind == "prefer" and self.rows[0] > self.rows[1]
        return tuple((i, j, -value if turned else value) for i, j in self.pairs)

    def joins(self, values: Iterable[int]) -> bool:
        """Return whether these values of :meth:`verdicts` join rows, as a preference never does."""
        return self.kind != "prefer" and 1 in values

    def check(self, answer: str) -> str:
        """Return `answer`, or raise ValueError if it is not a possible one."""
        if answer not in self.answers:
            raise ValueError(f"answer={answer!r} to question {self.id} must be one of {', '.join(self.answers)}.")
        return answer

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; :meth:`from_dict` reads them, and needs no answers."""
        return {
            "id": self.id,
            "kind": self.kind,
            "rows": list(self.rows),
            "answers": list(self.answers),
            "purpose": self.purpose,
            "groups": list(self.groups),
            "annotator": self.annotator,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Question:
        """Return the question that :meth:`to_dict` wrote; ValueError if it did not."""
        name, annotator = values.get("id"), values.get("annotator")
        if not isinstance(name, str) or not name:
            raise ValueError(f"id={name!r} must be a text.")
        if annotator is not None and not isinstance(annotator, str):
            raise ValueError(f"annotator={annotator!r} must be a text or None.")
        return cls(
            id=name,
            kind=values.get("kind"),  # type: ignore[arg-type]  # checked there, as is the purpose
            rows=_whole_numbers(values, "rows"),
            purpose=values.get("purpose", "given"),
            groups=_whole_numbers(values, "groups"),
            annotator=annotator,
        )


def _whole_numbers(values: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """Return a list of whole numbers from JSON; a number with a point, true or a text is not one."""
    found = values.get(key, [])
    if not isinstance(found, (list, tuple)) or not all(type(number) is int for number in found):
        raise ValueError(f"{key}={found!r} must be a list of whole numbers.")
    return tuple(found)


class Entry(NamedTuple):
    """One line of the log: ``question, answer = entry``."""

    question: Question
    answer: str


class Leases:
    """Questions that were asked and not yet answered.

    An unanswered question stays with the person for `length`, in the unit of the caller's clock; None is for ever.
    """

    def __init__(self, length: float | None) -> None:
        if length is not None and not length > 0:
            raise ValueError(f"lease={length!r} must be a positive number of seconds, or None for no end.")
        self._length = length
        # Each question with the time at which it goes to somebody else.
        self._open: dict[str, tuple[Question, float | None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def take(self, question: Question, now: float | None) -> None:
        """Give a question to the person that it names."""
        expires = None if now is None or self._length is None else now + self._length
        self._open[question.id] = question, expires

    def drop(self, question_id: str) -> None:
        """Take a question back."""
        self._open.pop(question_id, None)

    def expire(self, now: float | None) -> None:
        """Take back what was not answered in time."""
        if now is not None:
            for name in [n for n, (_, end) in self._open.items() if end is not None and end <= now]:
                del self._open[name]

    def questions(self) -> list[Question]:
        """Return the open questions, the oldest first."""
        return [question for question, _ in self._open.values()]

    def pairs(self) -> set[tuple[int, int]]:
        """Return the pairs of rows of the open questions."""
        return {pair for question in self.questions() for pair in question.pairs}

    def subjects(self) -> set[int]:
        """Return the rows that somebody is placing."""
        return {question.rows[0] for question in self.questions() if question.purpose in ("place", "check")}
