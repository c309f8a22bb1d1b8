"""What several commands do: read a table and answers, judge a model, check where to write."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import installed_version
from pairlens._version import __version__
from pairlens.cli._console import remark
from pairlens.cli._options import Conflict, ScaleBy
from pairlens.io.columns import check_column, label_values, naming
from pairlens.io.source import Source, Table, column_names, read_columns

if TYPE_CHECKING:
    from pairlens.pipeline import Preparation
    from pairlens.selection import HeldOutScore
    from pairlens.supervision import Answers

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "xgboost", "plotly")


@dataclass(frozen=True)
class Given:
    """A table, and what people know about its rows, as the options of a command name them.

    Attributes
    ----------
    data, pairs, prefer, rows, columns : Path or None
        Files.
    labels, colour, id_column : str or None
        Columns.
    rep : str or None
        Representation of cells.
    unknown, drop : sequence of str
    on_conflict : Conflict or None
    """

    data: Path
    pairs: Path | None = None
    labels: str | None = None
    prefer: Path | None = None
    id_column: str | None = None
    rows: Path | None = None
    rep: str | None = None
    unknown: Sequence[str] = ()
    drop: Sequence[str] = ()
    columns: Path | None = None
    colour: str | None = None
    on_conflict: Conflict | None = None

    @cached_property
    def choices(self) -> dict[str, dict[str, Any]]:
        """Roles and weights of columns."""
        return column_choices(self.columns)

    def table(self, model: Any = None) -> Table:
        """Read the table; as a fitted model takes it, if one is given."""
        text = [name for name, role in self.choices["roles"].items() if role not in ("number", "yes/no")]
        asked = [name for name in (self.labels, self.colour) if name is not None]
        source = Source(self.data, self.id_column, asked, self.drop, text, self.rows, self.rep)
        table = source.read(model)
        if self.columns is not None and not table.is_frame:
            raise ValueError(f"{table.source} is an array of numbers, so --columns has no columns to choose for")
        remark_unmatched(source, table)
        return table

    def preparation(self, table: Table, scale: ScaleBy = ScaleBy.auto) -> tuple[Preparation, Any, list[str]]:
        """Return what comes before a method of the table, the encoded rows, and the names of their columns."""
        from pairlens.pipeline import prepare

        # Genes and their components have one scale, which says how much each counts.
        own = scale is ScaleBy.auto and table.own_scale
        with naming(table.source):
            prepared = prepare(table.rows, scale="none" if own else scale.value, **self.choices)
            rows, names = prepared.encoded(table.rows)
        return prepared, rows, list(table.features) if names is None else names

    def answers(self, table: Table) -> Answers:
        """Read all that is known about the rows; ValueError if that is nothing."""
        # Imported here, because it takes a second in which mistakes in the table can be told already.
        from pairlens.supervision import Answers, Constraints, Preferences, read_answers

        if self.pairs is None and self.prefer is None and self.labels is None:
            raise ValueError("nothing to learn from: give --pairs, --labels or --prefer")
        if self.unknown and self.labels is None:
            raise ValueError("--unknown says which of the --labels nobody knows, and there are no --labels")
        policy: Any = None if self.on_conflict is None else self.on_conflict.value
        about: dict[str, Any] = {"ids": table.ids, "n_samples": table.n_rows, "on_conflict": policy}
        known = Constraints(n_samples=table.n_rows)
        preferences = Preferences(n_samples=table.n_rows)
        if self.pairs is not None:
            found = read_answers(self.pairs, **about)
            known, preferences = found.constraints, found.preferences
        if self.labels is not None:
            labelled = Constraints.from_labels(label_values(table.asked[self.labels], self.unknown))
            known = labelled.merge(known, on_conflict=policy)
        if self.prefer is not None:
            preferences = preferences.merge(Preferences.from_file(self.prefer, **about), on_conflict=policy)
        if known.n_pairs + preferences.n_pairs == 0:
            source = self.pairs or self.prefer
            raise ValueError(f"{source.name if source else f'the column {self.labels!r}'} holds no pairs to learn from")
        return Answers(known, preferences)

    def record(self) -> dict[str, Any]:
        """Return the options as text and numbers."""
        return {each.name: as_text(getattr(self, each.name)) for each in fields(self)}


def as_text(value: Any) -> Any:
    """Return an option as JSON can hold it."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return str(value) if isinstance(value, (Path, ScaleBy, Conflict)) else value


def remark_unmatched(source: Source, table: Table) -> None:
    """Say how many rows of each of two files are left out, if any."""
    if table.beside is None or source.rows is None:
        return
    for name, count in zip((source.path.name, source.rows.name), table.beside.n_unmatched):
        if count:
            remark(f"{count:,} rows of {name} have no partner in the other file and are left out")


def column_choices(path: Path | None) -> dict[str, dict[str, Any]]:
    """Read `roles` and `weights` from a file with the columns name, role and weight; one of them may be absent."""
    from pairlens.tables import Role

    roles: dict[str, str] = {}
    weights: dict[str, float] = {}
    names = [] if path is None else column_names(path)
    if path is None:
        return {"roles": roles, "weights": weights}
    for name in ("name", *(["role"] if "weight" not in names else [])):
        check_column(name, names, path.name)
    cells = read_columns(path, [name for name in ("name", "role", "weight") if name in names])
    for i in range(len(cells["name"])):
        name, role, weight = (
            "" if cells.get(part) is None or cells[part][i] is None else str(cells[part][i]).strip()
            for part in ("name", "role", "weight")
        )
        if role:
            if role not in [known.value for known in Role]:
                known = ", ".join(known.value for known in Role)
                raise ValueError(f"row {i} of {path.name} has the role {role!r}; it must be one of {known}")
            roles[name] = role
        if weight:
            try:
                weights[name] = float(weight)
            except ValueError:
                raise ValueError(f"row {i} of {path.name} has the weight {weight!r}; it must be a number") from None
    return {"roles": roles, "weights": weights}


def told_columns(table: Table, prepared: Preparation) -> dict[str, Any]:
    """Return which columns are used, which are left out, and what became of each column of a mixed table."""
    read = [] if prepared.encoder is None else prepared.encoder.columns_
    unused = [column.name for column in read if not column.n_features]
    return {
        "columns": [name for name in table.features if prepared.mixed or name not in unused],
        "left_out": [*table.left_out, *([] if prepared.mixed else unused)],
        "missing_filled_in": any(column.n_missing for column in read if column.n_features),
        "encoding": [asdict(column) for column in read] if prepared.mixed else None,
    }


def distinct_ids(names: NDArray[Any], column: str) -> NDArray[Any]:
    """Return the names of the rows; ValueError if one comes twice."""
    values, counts = np.unique(names.astype(str), return_counts=True)
    if (counts > 1).any():
        twice = int(counts.argmax())
        raise ValueError(
            f"ids must be distinct, but {values.tolist()[twice]!r} comes {counts[twice]} times in {column!r}"
        )
    return names


def held_out_score(
    view: Any, X: Any, known: Answers, folds: int, seed: int, update: Callable[..., None]
) -> tuple[str, HeldOutScore]:
    """Return how well a model tells held-out pairs apart, or orders held-out preferences, with the score's name."""
    from pairlens.selection import held_out_accuracy, held_out_auc
    from pairlens.selection.fitting import learns_from

    def step(done: int, total: int) -> None:
        update(done / total, f"judging by held-out pairs, {done + 1} of {total}")

    chosen: dict[str, Any] = {"n_splits": folds, "random_state": seed, "on_fold": step}
    if "preferences" in learns_from(view):
        return "preference_accuracy", held_out_accuracy(view, X, known.preferences, **chosen)
    return "pair_auc", held_out_auc(view, X, known.constraints, **chosen)


def describe_pairs(counts: dict[str, int]) -> str:
    """Return counts of pairs in words."""
    words = {"must_link": "must-link", "cannot_link": "cannot-link", "prefer": "preference"}
    parts = [f"{count:,} {words[kind]}{'s' if count != 1 else ''}" for kind, count in counts.items() if count]
    return " and ".join(parts) or "no pairs"


def check_new(path: Path, overwrite: bool) -> None:
    """Raise ValueError if a file is there and must not be replaced, or its folder is missing."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists already: choose another name, or give --overwrite")
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is not a folder, so {path.name} cannot be written there")


def versions() -> dict[str, str]:
    """Return the versions of all that takes part."""
    found = {"pairlens": __version__, "python": platform.python_version(), "platform": sys.platform}
    return found | {name: known for name in PACKAGES if (known := installed_version(name)) is not None}
