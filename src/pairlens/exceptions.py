"""Define the errors and warnings of pairlens, each a subclass of the built-in one that fits."""

from __future__ import annotations

import reprlib
from typing import Any

__all__ = [
    "AnswerError",
    "ApproximationWarning",
    "ArgumentError",
    "ConflictError",
    "ConflictWarning",
    "EndpointError",
    "InputError",
    "MissingExtraError",
    "ScaleWarning",
    "SupervisionWarning",
]


class InputError(ValueError):
    """Report an argument, or a file that an argument names, that cannot be used.

    The text is ``f"{reason}. {remedy}"``.

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
        return f"{self.reason}. {self.remedy}" if self.remedy else self.reason


class ArgumentError(InputError):
    """Report an argument whose value is not what it must be.

    The text is ``f"{argument} {reason}; got {value}. {remedy}."``.

    Parameters
    ----------
    argument : str
        Name of the argument, such as "n_pairs", or of an entry of it, such as "must_link[3]".
    value : object
        What was given, or the part of it that is wrong.
    reason : str
        What would be right, as in "must be at least 1".
    remedy : str
        How to go on, a sentence without its full stop; may be empty.
    """

    def __init__(self, argument: str, value: Any, reason: str, remedy: str = "") -> None:
        super().__init__(reason, argument=argument, value=value, remedy=remedy)
        self.args = (argument, value, reason, remedy)

    def __str__(self) -> str:
        return self.phrased()

    def phrased(self, *, argument: str | None = None, reason: str | None = None, remedy: str | None = None) -> str:
        """Return the text with another name of the argument, another reason or another remedy."""
        remedy = self.remedy if remedy is None else remedy
        return self._text(argument or self.argument or "", reason or self.reason, remedy or "")

    def _text(self, argument: str, reason: str, remedy: str) -> str:
        statement = f"{argument} {reason}; got {reprlib.repr(self.value)}"
        return f"{statement}. {remedy}." if remedy else statement


class AnswerError(ArgumentError):
    """Report a file or data frame of answers, or one entry of it, that cannot be read.

    The text is ``f"{statement}: {reason}; {remedy}"``.

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
        super().__init__("frame" if file is None else "path", value, reason, remedy)
        self.args = (statement, reason, remedy)
        self.statement, self.problem = statement, problem
        self.file, self.line, self.column = file, line, column

    def _text(self, argument: str, reason: str, remedy: str) -> str:
        why = "; ".join(part for part in (reason, remedy) if part)
        return f"{self.statement}: {why}" if why else self.statement


class ConflictError(ArgumentError):
    """Report answers that contradict each other.

    The text is ``f"{reason}. {remedy}."``.

    Parameters
    ----------
    argument : str
        Which answers: "cannot_link", "pairs", "triplets" or "quadruplets".
    value : tuple of int
        The rows of one of them.
    reason : str
        How many contradict others, and the example.
    remedy : str
        How to go on.
    """

    def _text(self, argument: str, reason: str, remedy: str) -> str:
        return f"{reason}. {remedy}." if remedy else reason


class EndpointError(InputError):
    """Report an address that gave no usable reply.

    Parameters
    ----------
    reason : str
        What happened.
    url : str
        The address.
    problem : str
        A name for it that does not change with the text: "no-connection", "timeout", "cut-off", "not-http", "not-json",
        "too-large", "redirect", "rate-limit", "server", "rejected" or "malformed", which is JSON that lacks what was
        asked for.
    status : int or None
        The HTTP status of the last reply, if it was an error.
    attempts : int
        How often the request was sent.
    remedy : str, optional
        How to go on.
    """

    def __init__(
        self,
        reason: str,
        *,
        url: str = "",
        problem: str = "malformed",
        status: int | None = None,
        attempts: int = 1,
        remedy: str | None = None,
    ) -> None:
        super().__init__(reason, argument="url", value=url, remedy=remedy)
        self.url, self.problem, self.status, self.attempts = url, problem, status, attempts


class ConflictWarning(UserWarning):
    """Warn that some answers contradict others, as noisy answers do; the methods go on."""


class SupervisionWarning(UserWarning):
    """Warn that the supervision is too little for what was asked, and that something simpler was done."""


class MissingExtraError(ImportError):
    """Report that an optional dependency is not installed."""


class ApproximationWarning(UserWarning):
    """Warn that a problem is too large to be solved exactly, and that a documented approximation was made."""


class ScaleWarning(UserWarning):
    """Warn that features were scaled although their scale has a meaning."""
