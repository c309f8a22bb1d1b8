"""What is asked, what was answered and who has which question open: the vocabulary that every front end shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

__all__ = ["AlreadyAnsweredError", "Entry", "Kind", "Leases", "Purpose", "Question", "UnknownQuestionError"]

Kind = Literal["same", "place", "prefer", "skip"]
Purpose = Literal["place", "merge", "check", "audit", "overlap", "repeat", "pair", "skip", "given"]

PAIR_ANSWERS = ("same", "different", "unsure")
PREFER_ANSWERS = ("left", "right", "equal", "unsure")


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
    answers : tuple of str
        What may be answered.
    purpose : str
        Why it is asked: "place" a row, "merge" two groups, "check" a placed row again, "audit" (drawn at random),
        "overlap" (another person answered it), "repeat" (the same person answered it, sides swapped), "pair" (the
        strategies that choose pairs), "given" (an answer that was never asked for).
    groups : tuple of int
        Numbers of the shown groups, one for each representative, in ``groups_``; empty unless the kind is "place".
    annotator : str or None
        Who is asked.
    """

    id: str
    kind: Kind
    rows: tuple[int, ...]
    answers: tuple[str, ...]
    purpose: Purpose = "given"
    groups: tuple[int, ...] = ()
    annotator: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind={self.kind!r} must be one of {', '.join(get_args(Kind))}.")
        if self.purpose not in get_args(Purpose):
            raise ValueError(f"purpose={self.purpose!r} must be one of {', '.join(get_args(Purpose))}.")
        fewest, most = {"same": (2, 2), "prefer": (2, 2), "place": (2, 9), "skip": (1, 1)}[self.kind]
        if not fewest <= len(self.rows) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise ValueError(f"A question of kind {self.kind!r} has {wanted} rows, got rows={self.rows}.")
        if len(set(self.rows)) < len(self.rows):
            raise ValueError(f"rows={self.rows} must be distinct: a row is not compared with itself.")

    @classmethod
    def same(cls, i: int, j: int, *, id: str, annotator: str | None = None) -> Question:
        """ "Do these two belong together?" as somebody asked it who does not use :meth:`Asker.ask`."""
        return cls(id, "same", (int(i), int(j)), PAIR_ANSWERS, annotator=annotator)

    @classmethod
    def prefer(cls, i: int, j: int, *, id: str, annotator: str | None = None) -> Question:
        """ "Which of these two is better?" as somebody asked it who does not use :meth:`PreferenceAsker.ask`."""
        return cls(id, "prefer", (int(i), int(j)), PREFER_ANSWERS, annotator=annotator)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The comparisons that the question makes, each with its smaller row first."""
        first, *others = self.rows
        return tuple((min(first, other), max(first, other)) for other in others)

    def verdicts(self, answer: str) -> tuple[tuple[int, int, int], ...]:
        """What an answer says of each pair (i, j), i < j; nothing if it is "unsure".

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

    def check(self, answer: str) -> str:
        """`answer`, or ValueError if it is none of the possible ones."""
        if answer not in self.answers:
            raise ValueError(f"answer={answer!r} to question {self.id} must be one of {', '.join(self.answers)}.")
        return answer

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; :meth:`from_dict` reads them."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Question:
        """The question that :meth:`to_dict` wrote."""
        return cls(
            id=str(values["id"]),
            kind=values["kind"],
            rows=tuple(int(row) for row in values["rows"]),
            answers=tuple(str(answer) for answer in values["answers"]),
            purpose=values.get("purpose", "given"),
            groups=tuple(int(group) for group in values.get("groups", ())),
            annotator=values.get("annotator"),
        )


class Entry(NamedTuple):
    """One line of the log: ``question, answer = entry``."""

    question: Question
    answer: str


@dataclass(frozen=True)
class _Lease:
    question: Question
    expires: float | None


class Leases:
    """Questions that were asked and not yet answered.

    Parameters
    ----------
    length : float or None
        How long an unanswered question stays with the person, in the unit of the caller's clock; None is for ever.
    """

    def __init__(self, length: float | None) -> None:
        if length is not None and not length > 0:
            raise ValueError(f"lease={length!r} must be a positive number of seconds, or None for no end.")
        self._length = length
        self._open: dict[str, _Lease] = {}

    def __len__(self) -> int:
        return len(self._open)

    def take(self, question: Question, now: float | None) -> None:
        """Give a question to the person that it names."""
        expires = None if now is None or self._length is None else now + self._length
        self._open[question.id] = _Lease(question, expires)

    def drop(self, question_id: str) -> None:
        """Take a question back."""
        self._open.pop(question_id, None)

    def expire(self, now: float | None) -> None:
        """Take back what was not answered in time."""
        if now is not None:
            for name in [n for n, lease in self._open.items() if lease.expires is not None and lease.expires <= now]:
                del self._open[name]

    def questions(self) -> list[Question]:
        """The open questions, the oldest first."""
        return [lease.question for lease in self._open.values()]

    def pairs(self) -> set[tuple[int, int]]:
        """The pairs of rows of the open questions."""
        return {pair for lease in self._open.values() for pair in lease.question.pairs}

    def subjects(self) -> set[int]:
        """The rows that somebody is placing."""
        placing = (lease.question for lease in self._open.values() if lease.question.purpose in ("place", "check"))
        return {question.rows[0] for question in placing}
