"""From files to what models are fitted with, for the commands that need both."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairlens._version import __version__
from pairlens.cli._console import remark
from pairlens.cli._options import Conflict, ScaleBy
from pairlens.io.tables import Table, label_values, read_table, suspected_ids

if TYPE_CHECKING:
    from pairlens.supervision import Answers

__all__ = [
    "check_new",
    "describe_pairs",
    "prepared",
    "read_all_answers",
    "read_data",
    "scaler",
    "versions",
]

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "xgboost", "plotly")


def read_data(
    data: Path,
    *,
    ids: str | None,
    labels: Sequence[str | None] = (),
    drop: Sequence[str] = (),
    one_hot: bool = False,
    impute: bool = False,
) -> Table:
    """The table, with the columns asked for beside it."""
    wanted = [name for name in labels if name is not None]
    table = read_table(data, ids=ids, labels=wanted, drop=drop, one_hot=one_hot, impute=impute)
    for name in suspected_ids(table):
        remark(f"the column {name!r} looks like a name of the rows, but is used as a feature; see --id")
    return table


def read_all_answers(
    table: Table,
    pairs: Path | None,
    prefer: Path | None,
    labels: str | None,
    ids: str | None,
    conflict: Conflict | None,
) -> Answers:
    """All that is known about the rows; ValueError if that is nothing."""
    # Imported here, because it takes a second in which mistakes in the table can be told already.
    from pairlens.supervision import Answers, Constraints, Preferences, read_answers

    if pairs is None and prefer is None and labels is None:
        raise ValueError("nothing to learn from: give --pairs, --labels or --prefer")
    names = None if ids is None else table.asked[ids]
    policy = None if conflict is None else conflict.value
    known = Constraints(n_samples=table.n_rows)
    preferences = Preferences(n_samples=table.n_rows)
    if pairs is not None:
        answers = read_answers(pairs, ids=names, n_samples=table.n_rows, on_conflict=policy)  # type: ignore[arg-type]
        known, preferences = answers.constraints, answers.preferences
    if labels is not None:
        given = label_values(table.asked[labels])
        known = Constraints.from_labels(given).merge(known, on_conflict=policy)  # type: ignore[arg-type]
    if prefer is not None:
        more = Preferences.from_file(prefer, ids=names, n_samples=table.n_rows, on_conflict=policy)  # type: ignore[arg-type]
        preferences = preferences.merge(more, on_conflict=policy)  # type: ignore[arg-type]
    if known.n_pairs + preferences.n_pairs == 0:
        source = pairs or prefer
        raise ValueError(f"{source.name if source else f'the column {labels!r}'} holds no pairs to learn from")
    return Answers(known, preferences)


def prepared(table: Table, impute: bool) -> tuple[list[tuple[str, Any]], NDArray[Any], list[str]]:
    """The fitted steps that turn a table into numbers, these numbers, and the names of their columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    filler = SimpleImputer(strategy="median") if impute else None
    if not table.is_frame:
        if filler is None:
            return [], table.rows, list(table.numbers)
        return [("impute", filler)], filler.fit_transform(table.rows), list(table.numbers)
    parts: list[tuple[str, Any, list[str]]] = [("numbers", filler or "passthrough", list(table.numbers))]
    if table.words:
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        parts.append(("words", encoder, list(table.words)))
    columns = ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)
    values = np.asarray(columns.fit_transform(table.rows), dtype=np.float64)
    return [("columns", columns)], values, [str(name) for name in columns.get_feature_names_out()]


def scaler(scale: ScaleBy) -> list[tuple[str, Any]]:
    """The step that makes columns comparable, if any."""
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    return {
        ScaleBy.standard: [("scale", StandardScaler())],
        ScaleBy.minmax: [("scale", MinMaxScaler())],
        ScaleBy.none: [],
    }[scale]


def describe_pairs(counts: dict[str, int]) -> str:
    """Counts of pairs in words."""
    words = {"must_link": "must-link", "cannot_link": "cannot-link", "prefer": "preference"}
    parts = [f"{count:,} {words[kind]}{'s' if count != 1 else ''}" for kind, count in counts.items() if count]
    return " and ".join(parts) or "no pairs"


def check_new(path: Path, overwrite: bool) -> None:
    """ValueError if a file is there and must not be replaced, or has no folder to go to."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists already: choose another name, or give --overwrite")
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is no folder, so {path.name} cannot be written there")


def versions() -> dict[str, str]:
    """Versions of all that takes part."""
    found = {"pairlens": __version__, "python": platform.python_version(), "platform": sys.platform}
    for package in PACKAGES:
        for name in (package, f"{package}-cpu"):
            try:
                found[package] = version(name)
                break
            except PackageNotFoundError:
                continue
    return found
