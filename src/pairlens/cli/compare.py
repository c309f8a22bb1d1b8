"""``pairlens compare``: methods side by side, judged by pairs that none of them saw."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens._text import count
from pairlens.cli import _options as options
from pairlens.cli._console import print_json, print_table, progress, said, tell
from pairlens.cli._wording import in_options

if TYPE_CHECKING:
    from pairlens.pipeline import Preparation
    from pairlens.selection import Entry, Verdict

MIB = 1 << 20
CONTROLS = {"pca": "PCA", "tsne": "t-SNE", "none": "no reduction"}
"""What every comparison holds beside the methods, with its name: none of them sees a pair."""


def compare(
    data: options.Data,
    pairs: options.Pairs = None,
    labels: options.Labels = None,
    prefer: options.Prefer = None,
    id_column: options.IdColumn = None,
    rows: options.RowsFile = None,
    rep: options.Rep = None,
    unknown: options.Unknown = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            metavar="NAMES",
            help="Methods to compare, comma-separated; by default all that suit the pairs. PCA, "
            "t-SNE and no reduction are always included.",
            autocompletion=options.complete_method,
        ),
    ] = None,
    dims: options.Dims = "2",
    scale: options.Scale = options.ScaleBy.auto,
    drop: options.Drop = None,
    columns: options.Columns = None,
    embed: options.Embed = None,
    embed_model: options.EmbedModel = None,
    on_conflict: options.OnConflict = None,
    folds: options.Folds = 5,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Compare methods on the same table and the same pairs, with PCA, t-SNE and no reduction as controls."""
    from pairlens.cli._work import Given, describe_pairs, told_columns, what_embedding_would_change

    n_components = options.as_dims(dims)
    unknowns, dropped = options.as_list(unknown), options.as_list(drop)
    given = Given(
        *(data, pairs, labels, prefer, id_column, rows, rep, unknowns, dropped, columns),
        on_conflict=on_conflict,
        embed=options.as_list(embed),
        embed_model=embed_model,
    )
    with progress(f"reading {data.name}") as update:
        work = given.read(scale, update)
        table, known, prepared, values = work.table, work.known, work.prepared, work.values
        contests = _contests(known, options.as_list(methods), n_components, seed, prepared)
        total = sum(len(models) for _, models in contests) * (folds + 1)
        steps = 0

        def step(name: str, done: int, of: int) -> None:
            nonlocal steps
            steps += 1
            update(min(1.0, steps / total), f"{name}, fit {done + 1} of {of}")

        results = {source: list(_run(models, values, known, source, folds, seed, step)) for source, models in contests}
    if as_json:
        told = told_columns(table, prepared)
        print_json(
            {
                "rows": table.n_rows,
                "columns": told["columns"],
                "left_out": told["left_out"],
                "pairs": known.counts(),
                "folds": folds,
                "seed": seed,
                "results": {source: [_as_dict(entry) for entry in found] for source, found in results.items()},
            }
        )
        return
    tell(f"{table.n_rows:,} rows with {count(values.shape[1], 'column')}, {describe_pairs(known.counts())}")
    if hint := what_embedding_would_change(prepared):
        tell(hint)
    for source, found in results.items():
        tell("")
        _print(source, found)


def _contests(
    known: Any, wanted: list[str], n_components: int | str, seed: int, prepared: Preparation
) -> list[tuple[str, dict[str, Any]]]:
    """Return which models are judged by what."""
    from pairlens.selection.fitting import cli_name, makes_view, method_class, takes_dimension, view_methods

    size = 2 if n_components == "auto" else int(n_components)
    names = [cli_name(method_class(name).__name__) for name in wanted if name not in CONTROLS]
    result = []
    if known.constraints.n_pairs:
        suits = view_methods("constraints")
        chosen = [name for name in suits if name in names or (not names and takes_dimension(method_class(name), size))]
        result.append(("pairs", [*chosen, *CONTROLS]))
    if known.preferences.n_pairs:
        suits = [*view_methods("preferences"), "rank-svm"]
        result.append(("preferences", [name for name in suits if not names or name in names]))
    known_to_none = [name for name in names if not any(name in chosen for _, chosen in result)]
    for name in known_to_none:
        reason = "makes no view" if not makes_view(method_class(name)) else "does not learn from the pairs given"
        raise ValueError(f"{name} cannot be compared: it {reason}")
    return [(source, _models(chosen, n_components, seed, prepared)) for source, chosen in result if chosen]


def _models(names: list[str], n_components: int | str, seed: int, prepared: Preparation) -> dict[str, Any]:
    from pairlens.selection.fitting import build, method_class, takes_dimension

    models = {}
    for name in names:
        # Those that do not find the number of directions themselves show what two can do.
        is_fixed = name in CONTROLS or not takes_dimension(method_class(name), "auto")
        directions = 2 if n_components == "auto" and is_fixed else n_components
        models[name] = prepared.view(prepared.pipeline(build(name, directions, seed)))
    return models


def _run(models: dict[str, Any], values: Any, known: Any, source: str, folds: int, seed: int, step: Any) -> list[Entry]:
    from pairlens.selection import compare as run

    given = {"constraints": known.constraints} if source == "pairs" else {"preferences": known.preferences}
    entries = list(run(models, values, n_splits=folds, random_state=seed, on_step=step, **given))
    # Best first; what failed, or could not be judged, last.
    return sorted(
        entries, key=lambda entry: 2.0 if entry.score is None or math.isnan(entry.score.mean) else -entry.score.mean
    )


def _as_dict(entry: Entry) -> dict[str, Any]:
    return {
        "method": entry.name,
        "dimensions": entry.n_components,
        "score": None if entry.score is None else entry.score.mean,
        "standard_error": None if entry.score is None else entry.score.standard_error,
        "seconds": None if entry.cost is None else entry.cost.seconds,
        "memory_bytes": None if entry.cost is None else entry.cost.memory,
        "verdicts": {verdict.other: str(verdict) for verdict in _named(entry)},
        "error": _why(entry),
    }


def _named(entry: Entry) -> list[Verdict]:
    """Return the verdicts against PCA and t-SNE, with the names that people know."""
    return [
        replace(verdict, other=CONTROLS[verdict.other])
        for verdict in entry.verdicts
        if verdict.other in ("pca", "tsne")
    ]


def _why(entry: Entry) -> str | None:
    return None if entry.error is None else " ".join(in_options(entry.error).split())


def _brief(verdict: Verdict) -> str:
    if not verdict.tells:
        return "too few to tell"
    word = "better" if verdict.difference > 0 else "worse"
    return f"{word} by {abs(verdict.difference):.2f} ± {verdict.standard_error:.2f}"


def _print(source: str, entries: list[Entry]) -> None:
    scored = "AUC of held-out pairs" if source == "pairs" else "accuracy, held-out preferences"
    against = list(dict.fromkeys(verdict.other for entry in entries for verdict in _named(entry)))
    rows = []
    for entry in entries:
        if entry.score is None or entry.cost is None:
            rows.append([entry.name, "", f"failed: {_why(entry)}", "", "", *("" for _ in against)])
            continue
        memory = "" if entry.cost.memory is None else f"{entry.cost.memory / MIB:.0f} MiB"
        name = f"{CONTROLS[entry.name]} (control)" if entry.name in CONTROLS else entry.name
        width = "" if entry.n_components is None else str(entry.n_components)
        score = said(entry.score.mean, entry.score.standard_error)
        verdicts = {verdict.other: _brief(verdict) for verdict in _named(entry)}
        told = (verdicts.get(other, "") for other in against)
        rows.append([name, width, score, f"{entry.cost.seconds:.2f} s", memory, *told])
    print_table(
        ["method", "dims", scored, "fit", "memory", *(f"against {other}" for other in against)], rows, (1, 3, 4)
    )
