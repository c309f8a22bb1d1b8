"""Who has which question open, so that no two people are asked the same."""

from __future__ import annotations

from dataclasses import dataclass

from pairlens.asking.questions import Question

__all__ = ["Leases"]


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
