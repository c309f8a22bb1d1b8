"""``pairlens fit``: from a table and answered pairs to a view, a model and a report."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens._text import count
from pairlens.cli import _options as options
from pairlens.cli._console import plain, print_json, print_table, progress, remark, said, tell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairlens.cli._work import Work
    from pairlens.io.source import Table
    from pairlens.selection.comparison import ViewJudgement
    from pairlens.supervision import Answers

MODEL = "model.pairlens"
REPORT = "report.html"
RUN = "run.json"
GROUPS = "groups.csv"
MOST_SUSPICIOUS = 5
"""Answers that are named on the screen; run.json has all that stand out."""
MOST_COLUMNS = 30
"""Columns that are described on the screen; run.json and the report have all."""


def fit(
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for the model, the view and the report.")],
    pairs: options.Pairs = None,
    labels: options.Labels = None,
    prefer: options.Prefer = None,
    id_column: options.IdColumn = None,
    rows: options.RowsFile = None,
    rep: options.Rep = None,
    unknown: options.Unknown = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="The method; by default pairmap with --dims 2, else pairlens; wsdr with preferences alone.",
            autocompletion=options.complete_method,
        ),
    ] = None,
    dims: options.Dims = "2",
    scale: options.Scale = options.ScaleBy.auto,
    drop: options.Drop = None,
    columns: options.Columns = None,
    embed: options.Embed = None,
    embed_model: options.EmbedModel = None,
    colour: Annotated[
        str | None, typer.Option("--colour", metavar="COLUMN", help="Column that colours the report; not learned from.")
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="Write groups.csv too: the group of every row, and how sure that is.")
    ] = False,
    about: options.About = None,
    on_conflict: options.OnConflict = None,
    folds: options.Folds = 5,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Learn a view from a table and answered pairs.

    Writes the model, the embedded rows, a report that opens in a browser, and a record of the run. Nothing is written
    before all of it is done.
    """
    from pairlens.cli._work import Given, judge

    seconds: dict[str, float] = {}
    unknowns, dropped = options.as_list(unknown), options.as_list(drop)
    given = Given(
        *(data, pairs, labels, prefer, id_column, rows, rep, unknowns, dropped, columns, colour, on_conflict),
        embed=options.as_list(embed),
        embed_model=embed_model,
    )
    with progress(f"reading {data.name}") as update:
        with _timed(seconds, "read"):
            work = given.read(scale, update)
        if groups and work.known.constraints.n_pairs == 0:
            raise ValueError("--groups needs --pairs or --labels: preferences say nothing about groups")
        if about is not None and not groups:
            raise ValueError("--about is a guess at the number of groups: give --groups too")
        chosen = _method(method, work.known, options.as_dims(dims), seed)
        _check_folder(out, work.table.kind, overwrite)
        model = work.prepared.pipeline(chosen)
        view = work.prepared.view(model)
        update(None, f"fitting {type(chosen).__name__}")
        with _timed(seconds, "fit"):
            work.fit(view)
        update(None, "judging by held-out pairs")
        with _timed(seconds, "judge"):
            judgement = judge(view, work.values, work.known, folds, seed, update)
        command = {"method": method, "dims": dims, "scale": str(scale), "folds": folds, "out": str(out)}
        run = {
            **_record(work, chosen, judgement),
            "command": {**given.record(), **command},
            "seed": seed,
            "seconds": seconds,
            "suspicious": _suspicious(judgement, work.table),
        }
        update(None, "writing the report")
        with _timed(seconds, "report"):
            page = _report(view, work, run, judgement, seed, colour or labels)
        update(None, "writing files")
        written = _write(out, work.table, model, view.transform(work.values), run, page)
        if groups:
            update(None, "grouping the rows")
            written.append(_write_groups(out / GROUPS, view, work, labels, unknowns, about, seed))
    if as_json:
        print_json(run)
        return
    _tell(run, work, written)


@contextmanager
def _timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[part] = round(time.perf_counter() - start, 3)


def _method(name: str | None, known: Answers, n_components: int | str, seed: int) -> Any:
    """Return the method by name, or the default; ValueError if it cannot learn from what is known."""
    from pairlens.pipeline import default_view
    from pairlens.selection import fitting

    only_preferences = known.constraints.n_pairs == 0
    if name is None:
        estimator = default_view(n_components, preferences=only_preferences, random_state=seed)
        name = fitting.cli_name(type(estimator).__name__)
    elif not fitting.makes_view(fitting.method_class(name)):
        raise ValueError(f"{name} makes no view of its own; choose a method that does, such as pairlens")
    else:
        estimator = fitting.build(name, n_components, seed)
    if n_components == "auto" and not fitting.takes_dimension(type(estimator), "auto"):
        raise ValueError(f"{name} does not find the number of directions: give it by --dims")
    if isinstance(n_components, int) and not fitting.takes_dimension(type(estimator), n_components):
        raise ValueError(f"{name} makes no view of --dims {n_components}; pairlens takes any number of directions")
    sources = fitting.learns_from(estimator)
    if not sources & {"constraints", "preferences"}:
        what = " or ".join(sorted(sources)) or "numbers as a target"
        raise ValueError(
            f"{name} learns from {what}, which only Python can give it: choose a method that learns from pairs"
        )
    if "constraints" not in sources and known.preferences.n_pairs == 0:
        raise ValueError(f"{name} learns from preferences: give --prefer, or pairs of the kind prefer")
    if "preferences" not in sources and only_preferences:
        names = " or ".join(fitting.view_methods("preferences"))
        raise ValueError(f"{name} does not learn from preferences, and there is nothing else: choose --method {names}")
    for source, n_pairs, words in (
        ("constraints", known.constraints.n_pairs, "must-links and cannot-links"),
        ("preferences", known.preferences.n_pairs, "preferences"),
    ):
        if source not in sources and n_pairs:
            remark(f"{name} does not use the {n_pairs:,} {words}")
    return estimator


def _suspicious(judgement: ViewJudgement, table: Table) -> list[dict[str, Any]] | None:
    """Return the answers that stand out as wrong; None if the method does not judge them, or had too few."""
    if judgement.pairs is None or judgement.pairs.suspicious is None:
        return None
    found = judgement.pairs.suspicious.standing_out
    named = found.pairs if table.ids is None else table.ids[found.pairs]
    kinds = ["must-link" if link > 0 else "cannot-link" for link in found.link]
    return [
        {"a": plain(a), "b": plain(b), "kind": kind, "suspicion": round(float(suspicion), 3)}
        for (a, b), kind, suspicion in zip(named, kinds, found.suspicion)
    ]


def _check_folder(out: Path, kind: str, overwrite: bool) -> None:
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file: --out must name a folder")
    there = [name for name in (MODEL, f"embedding.{kind}", REPORT, RUN) if (out / name).exists()]
    if there and not overwrite:
        raise ValueError(f"{out} holds {there[0]} already: choose another folder, or give --overwrite")


def _record(work: Work, method: Any, judgement: ViewJudgement) -> dict[str, Any]:
    """Return what there is to say about the data, the method and the result."""
    from pairlens.cli._work import score_name, told_columns, versions

    score = judgement.score
    spaces = {}
    if hasattr(method, "space_weights_"):
        spaces = {"space_weights": plain(method.space_weights_), "auc": plain(method.auc_)}
    return {
        "versions": versions(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "method": {"name": type(method).__name__, "parameters": plain(method.get_params())},
        "data": {
            "file": work.table.source,
            "rows": work.table.n_rows,
            **told_columns(work.table, work.prepared),
            "scale": work.prepared.reason,
        },
        "pairs": work.known.counts(),
        "result": {
            "directions": len(method.get_feature_names_out()),
            f"held_out_{score_name(method, judgement)}": plain(score.mean),
            "standard_error": plain(score.standard_error),
            "folds": list(score.folds),
            "verdicts": [
                {
                    "against": verdict.other,
                    "difference": plain(verdict.difference),
                    "standard_error": plain(verdict.standard_error),
                    "says": str(verdict),
                }
                for verdict in judgement.verdicts
            ],
            "neighbours_moved": judgement.moved,
            **spaces,
        },
    }


def _report(
    view: Any, work: Work, run: dict[str, Any], judgement: ViewJudgement, seed: int, colour: str | None
) -> str | None:
    from pairlens.exceptions import MissingExtraError
    from pairlens.io.columns import label_values
    from pairlens.report import build_report
    from pairlens.selection.fitting import learns_from

    sources, table = learns_from(view), work.table
    cells, pictures = _shown(table)
    # These have sections of their own.
    apart = ("encoding", "space_weights", "auc", "verdicts", "neighbours_moved")
    told = {
        key: {name: each for name, each in value.items() if name not in apart} if key in ("data", "result") else value
        for key, value in run.items()
    }
    try:
        return build_report(
            view,
            work.values,
            constraints=work.known.constraints if "constraints" in sources else None,
            preferences=work.known.preferences if "preferences" in sources else None,
            ids=table.ids,
            labels=None if colour is None else label_values(table.asked[colour]),
            beside=cells,
            pictures=pictures,
            texts=_texts(work),
            columns=run["data"]["encoding"],
            feature_names=work.features,
            title=f"{run['method']['name']} of {table.source}",
            run=told,
            random_state=seed,
            judgement=judgement,
        )
    except MissingExtraError as error:
        remark(f"no {REPORT}, because {error}")
        return None


def _texts(work: Work) -> list[str] | None:
    """Return the texts of each row as one: columns that are learned from as texts, or long ones beside the features."""
    import pandas

    from pairlens.tables.roles import Role, role_of

    table, read = work.table, work.prepared.encoder
    if table.beside is not None:
        columns = [pandas.Series(column) for column in table.beside.columns.values()]
        found = [column for column in columns if role_of(column, "")[0] is Role.long_text]
    else:
        roles = (Role.long_text.value, Role.short_text.value)
        found = [] if read is None else [table.rows[each.name] for each in read.columns_ if each.role in roles]
    if not found:
        return None
    return [" ".join(cells) for cells in zip(*(column.fillna("").astype(str) for column in found))]


def _shown(table: Table) -> tuple[dict[str, NDArray[Any]] | None, Any]:
    """Return what the report shows of the rows: cells, and pictures where a column names files."""
    from pairlens.exceptions import MissingExtraError

    beside = table.beside
    if beside is None:
        return None, None
    cells = {name: column for name, column in beside.columns.items() if name != table.id_column}
    try:
        found = beside.pictures()
    except MissingExtraError as error:
        remark(f"no pictures, because {error}")
        return cells, None
    if found is None:
        return cells, None
    name, pictures = found
    return {column: values for column, values in cells.items() if column != name}, pictures


def _write(
    out: Path, table: Table, model: Any, embedded: NDArray[Any], run: dict[str, Any], page: str | None
) -> list[Path]:
    """Write everything to a folder of its own first, then move each file to its place."""
    import numpy as np

    from pairlens._atomic import atomic_path
    from pairlens.io.embedding import open_writer
    from pairlens.io.models import save
    from pairlens.selection.fitting import last_step

    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pairlens-", dir=out) as folder:
        stage = Path(folder)
        save(model, stage / MODEL)
        view = stage / f"embedding.{table.kind}"
        names = [str(name) for name in last_step(model).get_feature_names_out()]
        with open_writer(view, names, id_name=table.id_column) as write:
            write(np.asarray(embedded), np.arange(table.n_rows) if table.ids is None else table.ids)
        if page is not None:
            (stage / REPORT).write_text(page, encoding="utf-8")
        (stage / RUN).write_text(json.dumps(plain(run), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        written = []
        for name in (MODEL, view.name, REPORT, RUN):
            if (stage / name).exists():
                with atomic_path(out / name) as partial:
                    shutil.move(stage / name, partial)
                written.append(out / name)
    return written


def _write_groups(
    path: Path, view: Any, work: Work, labels: str | None, unknown: Sequence[str], about: int | None, seed: int
) -> Path:
    """Write the group of every row."""
    from pairlens.cluster.assigned import assign_rows, label_names
    from pairlens.io.columns import label_values

    placed = None if labels is None else label_names(label_values(work.table.asked[labels], unknown))
    scaled = work.values if work.prepared.scaler is None else view[:-1].transform(work.values)
    settings: dict[str, Any] = {"about": about, "standardize": work.prepared.standardize, "random_state": seed}
    found = assign_rows(scaled, work.known.constraints, placed, **settings)
    return found.write(path, work.table.ids)


def _tell(run: dict[str, Any], work: Work, written: list[Path]) -> None:
    from pairlens.cli._work import describe_pairs, what_embedding_would_change
    from pairlens.learning.spaces import what_answers_decide
    from pairlens.selection.comparison import NEAREST

    result = run["result"]
    tell(
        f"{run['method']['name']}: {work.table.n_rows:,} rows with {count(len(run['data']['columns']), 'column')}, "
        f"{describe_pairs(run['pairs'])}; {count(result['directions'], 'direction')} in {run['seconds']['fit']:.1f} s"
    )
    if run["data"]["encoding"] is not None:
        _tell_columns(run["data"]["encoding"])
    if hint := what_embedding_would_change(work.prepared):
        tell(hint)
    tell(f"scale: {run['data']['scale']}")
    if run["data"]["left_out"]:
        tell(f"left out: {', '.join(run['data']['left_out'])}")
    scored = "held_out_pair_auc" if "held_out_pair_auc" in result else "held_out_preference_accuracy"
    words = "AUC of held-out pairs" if scored == "held_out_pair_auc" else "accuracy on held-out preferences"
    if result[scored] is None:
        tell(f"{words}: not known, there are too few pairs to hold some out")
    else:
        tell(f"{words}: {said(result[scored], result['standard_error'])} (0.5 is chance, 1 is best)")
    says = {verdict["against"]: verdict["says"] for verdict in result["verdicts"]}
    if "PCA" in says:
        tell(f"compared with PCA: {says['PCA']}")
    if "t-SNE" in says:
        others = f"of the {NEAREST} rows nearest to a row, {result['neighbours_moved']:.0%} are others"
        tell(f"what the answers changed: {says['t-SNE']}; {others}")
    if "space_weights" in result and (decided := what_answers_decide(result["space_weights"], result["auc"])):
        tell(decided)
    if run["suspicious"] is not None:
        _tell_suspicious(run["suspicious"])
    for path in written:
        tell(f"wrote {path}")


def _tell_suspicious(found: list[dict[str, Any]]) -> None:
    """Say which answers stand out as wrong."""
    if not found:
        tell("answers that look wrong: none stands out")
        return
    shown = [f"{one['a']} and {one['b']} ({one['kind']}, {one['suspicion']:.0%})" for one in found[:MOST_SUSPICIOUS]]
    more = f", and {len(found) - len(shown):,} more in {RUN}" if len(found) > len(shown) else ""
    tell(f"answers that look wrong: {', '.join(shown)}{more}")


def _tell_columns(columns: list[dict[str, Any]]) -> None:
    """Say how each column was read, in one short table."""
    rows = [
        [
            column["name"],
            column["role"],
            str(column["n_features"]) if column["n_features"] else "left out",
            str(column["n_missing"] or ""),
            column["note"],
        ]
        for column in columns[:MOST_COLUMNS]
    ]
    print_table(["column", "read as", "features", "missing", ""], rows, numbers=(2, 3))
    if len(columns) > MOST_COLUMNS:
        tell(f"and {len(columns) - MOST_COLUMNS} more columns, in {RUN}")
