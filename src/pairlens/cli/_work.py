"""From files to what models are fitted with, for the commands that need both."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import installed_version
from pairlens._version import __version__
from pairlens.cli._console import remark
from pairlens.cli._options import Conflict, ScaleBy
from pairlens.io.tables import Table, check_column, column_names, label_values, read_columns, read_table, suspected_ids

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from pairlens.io.beside import RowsBeside
    from pairlens.selection import HeldOutScore
    from pairlens.supervision import Answers

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "xgboost", "plotly")


def read_data(
    data: Path,
    *,
    ids: str | None,
    labels: Sequence[str | None] = (),
    drop: Sequence[str] = (),
    one_hot: bool = False,
    impute: bool = False,
    strict: bool = False,
    columns: ColumnChoices | None = None,
) -> Table:
    """The table, with the columns asked for beside it.

    Its columns are left as they are for TableEncoder, unless `strict`, `one_hot` or `impute` ask for numbers.
    """
    wanted = [name for name in labels if name is not None]
    raw = not (strict or one_hot or impute)
    if columns is not None and not raw:
        raise ValueError("--columns says how TableEncoder reads a table; leave out --strict, --one-hot and --impute")
    text = () if columns is None else columns.text
    table = read_table(data, ids=ids, labels=wanted, drop=drop, one_hot=one_hot, impute=impute, raw=raw, text=text)
    if columns is not None and not table.is_frame:
        raise ValueError(f"{table.source} is an array of numbers, so --columns has no columns to choose for")
    if table.is_raw:
        return table
    for name in suspected_ids(table):
        remark(f"the column {name!r} looks like a name of the rows, but is used as a feature; see --id")
    return table


def read_features(
    data: Path,
    *,
    rows: Path | None,
    rep: str | None,
    ids: str | None,
    labels: Sequence[str | None] = (),
    **reading: Any,
) -> tuple[Table, RowsBeside | None]:
    """What is learned from, wherever it is: a table, features with their rows in another file, or cells.

    Parameters
    ----------
    data, rows : Path
    rep : str or None
        Representation of cells.
    ids, labels
        Columns to hand over.
    **reading
        How :func:`read_data` reads a table.
    """
    from pairlens.io.cells import are_cells, check_rep, read_cells

    wanted = [name for name in labels if name is not None]
    check_rep(data, rep)
    if rows is None and not are_cells(data):
        return read_data(data, ids=ids, labels=labels, **reading), None
    given = [name for name, value in reading.items() if value]
    if given:
        source = "--rows" if rows is not None else "an h5ad file"
        raise ValueError(f"--{given[0].replace('_', '-')} is for the columns of a table, not for {source}")
    if are_cells(data):
        if rows is not None:
            raise ValueError(f"{data.name} holds what is known of its cells in obs: leave out --rows")
        return read_cells(data, rep="X_pca" if rep is None else rep, ids=ids, labels=wanted), None
    from pairlens.io.beside import read_beside

    table, beside = read_beside(data, rows, ids=ids, labels=wanted)  # type: ignore[arg-type]
    remark_unmatched(data, rows, beside)  # type: ignore[arg-type]
    return table, beside


def read_new(
    fitted: Any,
    data: Path,
    *,
    rows: Path | None,
    ids: str | None,
    labels: Sequence[str] = (),
    rep: str | None,
    drop: Sequence[str] = (),
) -> Table:
    """Rows for a fitted model, wherever they are; parameters are those of :func:`read_features`."""
    from pairlens.io.cells import are_cells, check_rep
    from pairlens.io.streams import read_beside_for, read_for

    if rows is None:
        return read_for(fitted, data, ids=ids, labels=labels, rep=rep)
    if are_cells(data):
        raise ValueError(f"{data.name} holds what is known of its cells in obs: leave out --rows")
    check_rep(data, rep)
    if drop:
        raise ValueError("--drop is for the columns of a table, not for --rows")
    table, beside = read_beside_for(fitted, data, rows, ids=ids, labels=labels)
    remark_unmatched(data, rows, beside)
    return table


def remark_unmatched(data: Path, rows: Path, beside: RowsBeside) -> None:
    """Say how many rows of each file are left out, if any."""
    for source, count in zip((data.name, rows.name), beside.n_unmatched):
        if count:
            remark(f"{count:,} rows of {source} have no partner in the other file and are left out")


def read_all_answers(
    table: Table,
    pairs: Path | None,
    prefer: Path | None,
    labels: str | None,
    ids: str | None,
    conflict: Conflict | None,
    unknown: Sequence[str] = (),
) -> Answers:
    """All that is known about the rows; ValueError if that is nothing."""
    # Imported here, because it takes a second in which mistakes in the table can be told already.
    from pairlens.supervision import Answers, Constraints, Preferences, read_answers

    if pairs is None and prefer is None and labels is None:
        raise ValueError("nothing to learn from: give --pairs, --labels or --prefer")
    if unknown and labels is None:
        raise ValueError("--unknown says which of the --labels nobody knows, and there are no --labels")
    ids = ids or table.id_column
    names = None if ids is None else table.asked[ids]
    policy = None if conflict is None else conflict.value
    known = Constraints(n_samples=table.n_rows)
    preferences = Preferences(n_samples=table.n_rows)
    if pairs is not None:
        answers = read_answers(pairs, ids=names, n_samples=table.n_rows, on_conflict=policy)  # type: ignore[arg-type]
        known, preferences = answers.constraints, answers.preferences
    if labels is not None:
        given = label_values(table.asked[labels], unknown)
        known = Constraints.from_labels(given).merge(known, on_conflict=policy)  # type: ignore[arg-type]
    if prefer is not None:
        more = Preferences.from_file(prefer, ids=names, n_samples=table.n_rows, on_conflict=policy)  # type: ignore[arg-type]
        preferences = preferences.merge(more, on_conflict=policy)  # type: ignore[arg-type]
    if known.n_pairs + preferences.n_pairs == 0:
        source = pairs or prefer
        raise ValueError(f"{source.name if source else f'the column {labels!r}'} holds no pairs to learn from")
    return Answers(known, preferences)


@dataclass(frozen=True)
class ColumnChoices:
    """How some columns are to be read.

    Attributes
    ----------
    roles : dict of str to str
        Roles by name of column.
    weights : dict of str to float
        Weights by name of column.
    """

    roles: dict[str, str]
    weights: dict[str, float]

    @property
    def text(self) -> tuple[str, ...]:
        """Columns whose cells stay as they are written."""
        return tuple(name for name, role in self.roles.items() if role not in ("number", "yes/no"))


def read_columns_file(path: Path | None) -> ColumnChoices | None:
    """The choices in a file with the columns name, role and weight, of which role or weight may be absent or empty."""
    from pairlens.tables import Role

    if path is None:
        return None
    names = column_names(path)
    for name in ("name", *(["role"] if "weight" not in names else [])):
        check_column(name, names, path.name)
    cells = read_columns(path, [name for name in ("name", "role", "weight") if name in names])
    rows = len(cells["name"])
    roles: dict[str, str] = {}
    weights: dict[str, float] = {}
    for i in range(rows):
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
    return ColumnChoices(roles, weights)


def prepared(
    table: Table, impute: bool, columns: ColumnChoices | None = None
) -> tuple[list[tuple[str, Any]], NDArray[Any], list[str]]:
    """The fitted steps that turn a table into numbers, these numbers, and the names of their columns."""
    if table.is_raw:
        from pairlens.tables import TableEncoder

        choices = columns or ColumnChoices({}, {})
        try:
            encoder = TableEncoder(roles=choices.roles or None, weights=choices.weights or None)
            encoded = encoder.fit_transform(table.rows)
        except ValueError as error:
            raise ValueError(f"{table.source}: {error}") from None
        return [("columns", encoder)], encoded, [str(name) for name in encoder.get_feature_names_out()]
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
    transformer = ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)
    values = np.asarray(transformer.fit_transform(table.rows), dtype=np.float64)
    return [("columns", transformer)], values, [str(name) for name in transformer.get_feature_names_out()]


def encoding(steps: Sequence[tuple[str, Any]]) -> list[dict[str, Any]] | None:
    """What TableEncoder did with each column; None if there is none among the steps."""
    for _, step in steps:
        if hasattr(step, "columns_"):
            return [asdict(column) for column in step.columns_]
    return None


@dataclass(frozen=True)
class Scaling:
    """How columns are made comparable.

    Attributes
    ----------
    scale : ScaleBy
        What was asked for.
    keep : bool
        Whether the scale that the columns have is kept.
    reason : str
        Why, in words.
    """

    scale: ScaleBy
    keep: bool
    reason: str

    @classmethod
    def of(cls, scale: ScaleBy, table: Table, rows: Any) -> Scaling:
        """Decide for the rows of a table."""
        from pairlens.spectral.rowspace import looks_principal

        if scale is ScaleBy.standard:
            return cls(scale, False, "every column is divided by its deviation")
        if scale is ScaleBy.minmax:
            return cls(scale, True, "every column goes from 0 to 1")
        if scale is ScaleBy.none:
            return cls(scale, True, "columns keep their scale")
        if table.is_raw:
            return cls(scale, True, "every column of the table counts the same to begin with")
        if table.own_scale:
            return cls(scale, True, "columns keep their scale, as those of annotated data have one")
        if looks_principal(rows):
            return cls(scale, True, "the columns look like principal components, so they keep their scale")
        return cls(scale, False, "every column is divided by its deviation")

    def pipeline(self, estimator: Any) -> Pipeline:
        """Return the step that makes columns comparable, if any, and the method."""
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import MinMaxScaler, StandardScaler

        steps: list[tuple[str, Any]] = []
        if self.scale is ScaleBy.minmax:
            steps = [("scale", MinMaxScaler())]
        elif not self.keep:
            steps = [("scale", StandardScaler())]
        if "standardize" in estimator.get_params():
            estimator.set_params(standardize=not self.keep)
        return Pipeline([*steps, ("method", estimator)])


def distinct_ids(names: NDArray[Any], column: str) -> NDArray[Any]:
    """The names of the rows; ValueError if one comes twice."""
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
    """How well a model tells held-out pairs apart, or orders held-out preferences; and the name of that score."""
    from pairlens.selection import held_out_accuracy, held_out_auc
    from pairlens.selection.fitting import learns_from

    def step(done: int, total: int) -> None:
        update(done / total, f"judging by held-out pairs, {done + 1} of {total}")

    chosen: dict[str, Any] = {"n_splits": folds, "random_state": seed, "on_fold": step}
    if "preferences" in learns_from(view):
        return "preference_accuracy", held_out_accuracy(view, X, known.preferences, **chosen)
    return "pair_auc", held_out_auc(view, X, known.constraints, **chosen)


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
    return found | {name: known for name in PACKAGES if (known := installed_version(name)) is not None}
