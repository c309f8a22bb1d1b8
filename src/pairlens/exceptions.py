"""The errors and warnings of pairlens, each a subclass of the built-in one that fits."""

from __future__ import annotations

from typing import Any

__all__ = [
    "AnswerError",
    "ApproximationWarning",
    "ConflictError",
    "ConflictWarning",
    "InputError",
    "MissingExtraError",
    "ScaleWarning",
    "SupervisionWarning",
]


class InputError(ValueError):
    """An argument, or a file that an argument names, cannot be used.

    Parameters
    ----------
    reason : str
        What was found, and why it is wrong.
    argument : str, optional
        Name of the argument that would be changed.
    value : object
        What was given.
    remedy : str, optional
        What would be right. Reason and remedy write arguments as ``name=``.
    """

    def __init__(
        self, reason: str, *, argument: str | None = None, value: Any = None, remedy: str | None = None
    ) -> None:
        super().__init__(reason)
        self.reason, self.argument, self.value, self.remedy = reason, argument, value, remedy

    def __str__(self) -> str:
        return self.reason if self.remedy is None else f"{self.reason}. {self.remedy}"


class AnswerError(ValueError):
    """A file or data frame of answers, or one entry of it, cannot be read.

    The text is ``f"{statement}: {reason}; {remedy}"``; who offers another remedy says it by :meth:`phrased`.

    Parameters
    ----------
    statement : str
        What was found.
    reason : str
        Why that is wrong, or what was expected.
    remedy : str
        How to go on from Python; may be empty.
    problem : str
        A name for the mistake that does not change with the text: "unknown-id", "not-a-row", "out-of-range",
        "same-row", "unknown-kind", "other-kinds", "weight", "no-column" or "not-a-table".
    file : str or None
        Name of the file, None for a data frame.
    line : int or None
        Line of the file counted from 1, or row of the data frame counted from 0.
    column : str or None
        Name of the column.
    value : object
        The entry.
    """

    def __init__(
        self,
        statement: str,
        reason: str = "",
        remedy: str = "",
        *,
        problem: str = "not-a-table",
        file: str | None = None,
        line: int | None = None,
        column: str | None = None,
        value: Any = None,
    ) -> None:
        super().__init__(statement, reason, remedy)
        self.statement, self.reason, self.remedy = statement, reason, remedy
        self.problem, self.file, self.line, self.column, self.value = problem, file, line, column, value

    def __str__(self) -> str:
        return self.phrased()

    def phrased(self, *, reason: str | None = None, remedy: str | None = None) -> str:
        """The text with another reason or another remedy."""
        parts = (self.reason if reason is None else reason, self.remedy if remedy is None else remedy)
        why = "; ".join(part for part in parts if part)
        return f"{self.statement}: {why}" if why else self.statement


class ConflictError(ValueError):
    """Statements about rows contradict each other.

    Parameters
    ----------
    statement : str
        Which statements.
    remedy : str
        How to go on from Python.
    """

    def __init__(self, statement: str, remedy: str = "") -> None:
        super().__init__(statement, remedy)
        self.statement, self.remedy = statement, remedy

    def __str__(self) -> str:
        return f"{self.statement}. {self.remedy}" if self.remedy else self.statement


class ConflictWarning(UserWarning):
    """Some answers contradict others, as noisy answers do; the methods go on."""


class SupervisionWarning(UserWarning):
    """The given supervision is too little for what was asked, and something simpler was done."""


class MissingExtraError(ImportError):
    """A part of pairlens was used whose optional dependency is not installed."""


class ApproximationWarning(UserWarning):
    """The problem is too large to be solved exactly, and a documented approximation was made."""


class ScaleWarning(UserWarning):
    """The features have a scale that says something, and they were scaled all the same."""
