"""What the library says to users of Python, in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairlens.exceptions import AnswerError, ConflictError, InputError

PATH_OPTIONS = frozenset(
    {"--closure", "--columns", "--data", "--files", "--out", "--page", "--pairs", "--prefer", "--rows", "--store"}
)
"""Options whose value is the name of a file or folder."""

_SAID = [
    (re.compile(pattern), words)
    for pattern, words in (
        (r"on_conflict='(\w+)'", r"--on-conflict \1"),
        (r"\b(by|give) constraints=", r"\1 --pairs"),
        (r"\blabels( of at least two classes)? by y\b", r"labels\1 by --labels"),
        (r"\b(by|give) preferences=, or (?:ordinal scores by y|a y of at least two levels)", r"\1 --prefer"),
        (r"\bThe 'n_components' parameter of (\w+)", r"--dims of \1"),
        (r"\bn_components=(\w+)", r"--dims \1"),
        (r"\bn_pairs=(\d+) exceeds", r"--n-pairs \1 exceeds"),
        (r"\bn_splits=(\d+) folds need", r"--folds \1 need"),
        (
            r"\bby Constraints\.from_labels\(y, n_pairs=\.\.\.\) or \.sample\(n_pairs\)",
            "by pairlens pairs sample --n-pairs",
        ),
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


OPTIONS = {
    "drop": "--drop",
    "files": "--files",
    "host": "--host",
    "ids": "--id",
    "port": "--port",
    "remap": "--remap",
    "rep": "--rep",
    "roles": "--columns",
    "rows": "--rows",
    "scale": "--scale",
    "store": "--store",
    "token": "--token",
    "weights": "--columns",
}
"""The option of the command line that sets an argument."""


def in_options(said: Exception) -> str:
    """Return the text of an error or a warning, with options of the command in place of arguments of a function."""
    if isinstance(said, InputError):
        return re.sub(r"\b([a-z]+)=(?:'([^']*)')?", _option, str(said))
    if isinstance(said, ConflictError):
        remedy = "Take back one of the statements, or choose --on-conflict warn or drop"
        return f"{said.statement}. {remedy}. pairlens pairs check shows all."
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
    return reworded(str(said))


def _option(found: re.Match[str]) -> str:
    """Return the option for an argument, with the value that was named, if any."""
    if found[1] not in OPTIONS:
        return found[0]
    return OPTIONS[found[1]] if found[2] is None else f"{OPTIONS[found[1]]} {found[2]}"


def reworded(text: str) -> str:
    """The text with options in place of arguments."""
    for pattern, words in _SAID:
        text = pattern.sub(words, text)
    return text


def check_paths(arguments: Sequence[str]) -> None:
    """Refuse an empty name of a file or folder, which would mean the current folder."""
    for k, argument in enumerate(arguments):
        option, given, value = argument.partition("=")
        if option not in PATH_OPTIONS:
            continue
        if not given:
            value = arguments[k + 1] if k + 1 < len(arguments) else option
        if not value.strip():
            raise ValueError(f"{option} is empty: give the name of a file or folder; the current folder is called .")
