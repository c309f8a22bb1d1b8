"""Say errors and warnings of the library in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairlens.exceptions import AnswerError, ArgumentError, ConflictError, ConflictWarning, InputError

PATH_OPTIONS = frozenset(
    {"--closure", "--columns", "--data", "--files", "--groups", "--out", "--pairs", "--prefer", "--rows", "--store"}
)
"""Options whose value is the name of a file or folder."""

OPTIONS = {
    "cannot_link": "--pairs",
    "constraints": "--pairs",
    "drop": "--drop",
    "files": "--files",
    "fraction": "--fraction",
    "host": "--host",
    "ids": "--id",
    "must_link": "--pairs",
    "n_pairs": "--n-pairs",
    "n_splits": "--folds",
    "on_conflict": "--on-conflict",
    "per_class": "--per-class",
    "port": "--port",
    "preferences": "--prefer",
    "remap": "--remap",
    "rep": "--rep",
    "roles": "--columns",
    "rows": "--rows",
    "scale": "--scale",
    "store": "--store",
    "token": "--token",
    "weights": "--columns",
    "y": "--labels",
}
"""The options that stand for arguments of the library."""

_NAMED = (
    *("cannot_link", "constraints", "fraction", "ids", "must_link", "n_pairs", "n_splits", "on_conflict", "per_class"),
    *("preferences", "y"),
)
"""Arguments whose names are not words of a sentence, so that they are meant wherever they stand."""
_ARGUMENT = re.compile(rf"\b({'|'.join(_NAMED)})\b(?:='(\w+)')?")
_GIVEN = re.compile(rf"\b({'|'.join(OPTIONS)})=(?:'([^']*)')?")
"""An argument as it is given, such as ``drop=``."""

_SAID = [
    (re.compile(pattern), words)
    for pattern, words in (
        (r"\b(by|give) constraints=", r"\1 --pairs"),
        (r"\blabels( of at least two classes)? by y\b", r"labels\1 by --labels"),
        (r"\b(by|give) preferences=, or (?:ordinal scores by y|a y of at least two levels)", r"\1 --prefer"),
        (r"\bThe 'n_components' parameter of (\w+)", r"--dims of \1"),
        (r"\bn_components=(\w+)", r"--dims \1"),
        (r" neighbors=\"exact\" accepts the time\.", ""),
        (r"\bX has no variation", "the table has no variation"),
        (r"\bthe values of X\b", "the values of the table"),
        (
            r"\bRescale X, for example by sklearn\.preprocessing\.StandardScaler",
            "Rescale them, or give --scale standard",
        ),
        (
            r"Found array with (\d+) sample\(s\) \(shape=\([^)]*\)\) while a minimum of (\d+) is required by (\w+)\.",
            r"the table has too few rows for \3: \1, and at least \2 are needed.",
        ),
    )
]


def in_options(said: Exception) -> str:
    """Return the text of an error or a warning, with the options of the command in place of arguments."""
    if isinstance(said, AnswerError):
        if said.problem == "unknown-id":
            return said.phrased(reason="the data has no such id")
        if said.problem == "other-kinds":
            return said.phrased(reason="give it by --pairs")
        if said.problem in ("not-a-row", "out-of-range"):
            return said.phrased(
                remedy="if the lines name rows by an id, say which column of the data holds it with --id"
            )
        return str(said)
    if isinstance(said, ArgumentError):
        argument, reason, remedy = (
            _with_options(_ARGUMENT, part or "") for part in (said.argument, said.reason, said.remedy)
        )
        if isinstance(said, ConflictError):
            remedy += ". pairlens pairs check shows all"
        return said.phrased(argument=argument, reason=reason, remedy=remedy)
    if isinstance(said, InputError):
        return _with_options(_GIVEN, str(said))
    return _with_options(_ARGUMENT, str(said)) if isinstance(said, ConflictWarning) else reworded(str(said))


def _with_options(named: re.Pattern[str], text: str) -> str:
    """Return a text with ``--option`` in place of ``argument``, and ``--option value`` of ``argument='value'``."""
    return named.sub(lambda found: " ".join(filter(None, (OPTIONS[found[1]], found[2]))), text)


def reworded(text: str) -> str:
    """Return a text of the library with options in place of arguments."""
    for pattern, words in _SAID:
        text = pattern.sub(words, text)
    return text


def check_paths(arguments: Sequence[str]) -> None:
    """Raise ValueError for an empty name of a file or folder, which would mean the current folder."""
    for k, argument in enumerate(arguments):
        option, given, value = argument.partition("=")
        if option not in PATH_OPTIONS:
            continue
        if not given:
            value = arguments[k + 1] if k + 1 < len(arguments) else option
        if not value.strip():
            raise ValueError(f"{option} is empty: give the name of a file or folder; the current folder is called .")
