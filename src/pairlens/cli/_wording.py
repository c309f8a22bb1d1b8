"""Say errors and warnings of the library in the words of the command line."""

from __future__ import annotations

from collections.abc import Sequence

from pairlens.exceptions import AnswerError, ArgumentError, ConflictError, ConflictWarning

PATH_OPTIONS = frozenset(
    {
        "--closure",
        "--columns",
        "--data",
        "--files",
        "--groups",
        "--out",
        "--pairs",
        "--prefer",
        "--rows",
        "--store",
        "--vectors",
    }
)
"""Options whose value is the name of a file or folder."""

SAME = (
    "annotators base_rate budget by drop files fraction host key_variable model n_pairs on_conflict per_class port "
    "price_in price_out remap rep rows scale store timeout token"
)
"""Arguments of the library with an option of the same name."""
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in SAME.split()} | {
    "cannot_link": "--pairs",
    "constraints": "--pairs",
    "embed": "--embed-model",
    "ids": "--id",
    "must_link": "--pairs",
    "n_components": "--dims",
    "n_splits": "--folds",
    "preferences": "--prefer",
    "roles": "--columns",
    "weights": "--columns",
    "y": "--labels",
}
"""The options that stand for arguments of the library."""

PHRASES = {
    "X has no variation": "the table has no variation",
    "the values of X": "the values of the table",
    "Rescale X, for example by sklearn.preprocessing.StandardScaler": "Rescale them, or give --scale standard",
}
"""What is said otherwise at the command line."""

BARE = frozenset({"constraints", "fraction", "ids", "preferences", "y", *(name for name in OPTIONS if "_" in name)})
"""Arguments that are meant where an error about an argument names them, also without ``=``."""

ABSENT = ("neighbors=",)
"""Arguments without an option: sentences about them are left out."""


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
        argument = OPTIONS.get(said.argument or "") or translated(said.argument or "", bare=BARE)
        reason, remedy = (translated(part or "", bare=BARE) for part in (said.reason, said.remedy))
        if isinstance(said, ConflictError):
            remedy += ". pairlens pairs check shows all"
        return said.phrased(argument=argument, reason=reason, remedy=remedy)
    return translated(str(said), bare=BARE if isinstance(said, ConflictWarning) else frozenset())


def translated(text: str, *, bare: frozenset[str] = frozenset()) -> str:
    """Return a text with ``--option`` in place of ``argument=``, and ``--option value`` of ``argument='value'``.

    Examples
    --------
    >>> translated("Give n_components=3, or labels by y=.")
    'Give --dims 3, or labels by --labels.'
    """
    for phrase, other in PHRASES.items():
        text = text.replace(phrase, other)
    sentences = [part for part in text.split(". ") if not any(name in part for name in ABSENT)]
    return ". ".join(" ".join(_word(word, bare) for word in part.split(" ")) for part in sentences)


def _word(word: str, bare: frozenset[str]) -> str:
    core = word.rstrip(".,;:)")
    end = word[len(core) :]
    start = core[: len(core) - len(core.lstrip("("))]
    core = core[len(start) :]
    name, given, value = core.partition("=")
    if (given or name in bare) and name in OPTIONS:
        core = " ".join(filter(None, (OPTIONS[name], value.strip("'\""))))
    return f"{start}{core}{end}"


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
