"""Use fitted models: ``pairlens transform``, ``evaluate``, ``export`` and ``pairs predict``."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens.cli import _options as options
from pairlens.cli._console import print_json, progress, said, tell

if TYPE_CHECKING:
    from pairlens.supervision import Answers

ENDINGS = (".csv", ".tsv")

Model = Annotated[Path, typer.Argument(help="A model written by pairlens fit or pairlens.save.", metavar="MODEL")]


def transform(
    model: Model,
    data: options.Data,
    out: Annotated[Path | None, typer.Option("--out", help="File to write; its extension gives the format.")] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            "--vectors", help="Parquet file for a vector store, in place of --out: id, and vector, a list of float32."
        ),
    ] = None,
    id_column: options.IdColumn = None,
    rows: options.RowsFile = None,
    rep: options.Rep = None,
    drop: options.Drop = None,
    embed_model: options.EmbedModel = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Transform the rows of a file with a model, chunk by chunk: the file may be larger than memory.

    JSON lines, Excel files, NPZ archives, h5ad files and, because rows are joined, files with --rows are read whole.
    """
    from pairlens.cli._work import check_new, embedding_beside, remark_unmatched, use_model
    from pairlens.io.embedding import embed
    from pairlens.io.source import Source, kind_of

    target = vectors if out is None else out
    if target is None or (out is not None and vectors is not None):
        raise ValueError("give --out for a table of the view, or --vectors for a Parquet file of vectors")
    if kind_of(target, written=True) != "parquet" and vectors is not None:
        raise ValueError(f"--vectors writes Parquet: the name of the file must end in .parquet, got {target.name!r}")
    check_new(target, overwrite)
    fitted = load_view(model)
    use_model(fitted, embed_model)
    source = Source(data, id_column, drop=options.as_list(drop), rows=rows, rep=rep)
    with progress(f"transforming {data.name}") as update, embedding_beside(data, update):
        count = embed(
            fitted,
            source,
            target,
            vectors=vectors is not None,
            progress=update,
            opened=lambda table: remark_unmatched(source, table),
        )
    if as_json:
        columns = list(fitted.get_feature_names_out()) if vectors is None else ["vector"]
        print_json({"rows": count, "columns": columns, "out": str(target)})
    else:
        tell(f"wrote {count:,} rows to {target}")


def load_view(path: Path) -> Any:
    """Load a model that has a view; ValueError for others."""
    from pairlens.io.models import load
    from pairlens.selection.fitting import last_step

    fitted = load(path)
    if not hasattr(fitted, "transform"):
        raise ValueError(f"{path.name} holds a {type(last_step(fitted)).__name__}, which makes no view of rows")
    return fitted


def evaluate(
    model: Model,
    data: options.Data,
    pairs: options.Pairs = None,
    labels: options.Labels = None,
    prefer: options.Prefer = None,
    id_column: options.IdColumn = None,
    rows: options.RowsFile = None,
    rep: options.Rep = None,
    unknown: options.Unknown = None,
    on_conflict: options.OnConflict = None,
    embed_model: options.EmbedModel = None,
    cross_validate: Annotated[
        bool,
        typer.Option(
            "--cross-validate",
            help="Fit the same model again to parts of the pairs and judge by the others: for pairs it was fitted to.",
        ),
    ] = False,
    folds: options.Folds = 5,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Judge a model by pairs: how well distance in its view tells must-links from cannot-links.

    The pairs should be others than those the model was fitted to; with --cross-validate they may be the same.
    """
    from pairlens.cli._work import Given, describe_pairs, embedding_beside, use_model
    from pairlens.io.models import load
    from pairlens.selection.fitting import last_step

    fitted = load(model)
    use_model(fitted, embed_model)
    with progress(f"reading {data.name}") as update, embedding_beside(data, update):
        unknowns = options.as_list(unknown)
        given = Given(data, pairs, labels, prefer, id_column, rows, rep, unknowns, on_conflict=on_conflict)
        table = given.table(fitted)
        known = given.answers(table)
        update(None, "judging")
        result: dict[str, Any] = {
            "model": type(last_step(fitted)).__name__,
            "rows": table.n_rows,
            "pairs": known.counts(),
            "cross_validated": cross_validate,
        }
        if cross_validate:
            result.update(_anew(fitted, table.rows, known, folds, seed, update))
        else:
            result.update(_as_it_is(fitted, table.rows, known))
    if as_json:
        print_json(result)
        return
    tell(f"{result['model']}: {table.n_rows:,} rows, {describe_pairs(result['pairs'])}")
    held_out = "held-out " if cross_validate else ""
    titles = {"pair_auc": f"AUC of {held_out}pairs", "preference_accuracy": f"accuracy on {held_out}preferences"}
    for name, title in titles.items():
        if name in result:
            tell(f"{title}: {said(*result[name])}")


def _anew(fitted: Any, X: Any, known: Answers, folds: int, seed: int, update: Any) -> dict[str, tuple[float, float]]:
    """Fit the model again and judge it by pairs that were held out."""
    from sklearn.base import clone

    from pairlens.cli._work import judge, score_name
    from pairlens.selection.fitting import fit_model, last_step

    again = fit_model(clone(fitted), X, known.constraints, known.preferences)
    judgement = judge(again, X, known, folds, seed, update)
    if math.isnan(judgement.score.mean):
        raise ValueError("there are too few pairs to hold some out: two of each kind are the least")
    return {score_name(last_step(again), judgement): (judgement.score.mean, judgement.score.standard_error)}


def _as_it_is(fitted: Any, X: Any, known: Answers) -> dict[str, tuple[float, float]]:
    import numpy as np

    from pairlens.judging import auc_standard_error, pair_auc, share_standard_error
    from pairlens.metrics import pairwise_accuracy

    result = {}
    pairs, preferences = known.constraints, known.preferences
    if min(pairs.n_must_link, pairs.n_cannot_link) > 0 and hasattr(fitted, "transform"):
        auc = pair_auc(np.asarray(fitted.transform(X), dtype=np.float64), pairs)
        result["pair_auc"] = (auc, auc_standard_error(auc, pairs.n_must_link, pairs.n_cannot_link))
    if preferences.n_pairs and hasattr(fitted, "decision_function"):
        accuracy = pairwise_accuracy(fitted.decision_function(X), preferences)
        result["preference_accuracy"] = (accuracy, share_standard_error(accuracy, preferences.n_pairs))
    if not result:
        raise ValueError(
            "these pairs cannot judge this model: a view needs must-links and cannot-links, a ranking preferences"
        )
    return result


Numbers = StrEnum("Numbers", "float32 float64")
"""The numbers that go in and come out."""


Format = StrEnum(
    "Format", {"onnx": "onnx", "safetensors": "safetensors", "sentence_transformers": "sentence-transformers"}
)
"""What a model can be written as."""


def export(
    model: Model,
    to: Annotated[
        Format,
        typer.Option(
            "--to",
            help="A file for ONNX runtimes, weight and bias as safetensors, or the folder of a Dense module for "
            "sentence-transformers.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="File or folder to write.")],
    dtype: Annotated[Numbers, typer.Option("--dtype", help="Numbers that go in and come out.")] = Numbers.float32,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Write a linear model, with the scaling in front of it, for programs that do not have pairlens."""
    from pairlens.cli._work import check_new
    from pairlens.exceptions import InputError
    from pairlens.io import export as exporting
    from pairlens.io.source import inputs_of

    check_new(out / exporting.DENSE_CONFIG if out.is_dir() and to is Format.sentence_transformers else out, overwrite)
    fitted = load_view(model)
    try:
        exporting.export(fitted, out, to=to.value, dtype=dtype.value)
    except TypeError as error:
        raise InputError(str(error)) from error
    wanted, width = inputs_of(fitted), len(fitted.get_feature_names_out())
    if as_json:
        columns = wanted.array_names or wanted.n_features
        print_json({"out": str(out), "to": to.value, "dtype": dtype.value, "columns": columns, "dimensions": width})
    else:
        tell(f"wrote {out}: {wanted.n_features} columns of {dtype.value} in, {width} out")


def predict(
    model: Model,
    pairs: Annotated[
        Path,
        typer.Argument(
            help="Pairs to judge: CSV or JSON lines with a and b; other columns are passed over.", metavar="PAIRS"
        ),
    ],
    data: Annotated[Path, typer.Option("--data", help="The table the pairs are about.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, .csv or .tsv: a, b and p_same.")],
    id_column: options.IdColumn = None,
    base_rate: Annotated[
        float | None,
        typer.Option(
            "--base-rate", help="Share of the pairs that belong together, if it is another than among the answers."
        ),
    ] = None,
    embed_model: options.EmbedModel = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Write the probability that the two rows of each pair belong together, as learned from held-out pairs.

    The table is held in memory; the pairs are read and written a block at a time, so there may be any number of them.
    """
    import numpy as np

    from pairlens._atomic import atomic_path
    from pairlens._text import TableWriter, delimiter_of
    from pairlens.cli._work import check_new, embedding_beside, use_model
    from pairlens.io.source import Source
    from pairlens.supervision.answers import read_pair_blocks

    if out.suffix.lower() not in ENDINGS:
        raise ValueError(f"the name of the file must end in {' or '.join(ENDINGS)}, got {out.name!r}")
    check_new(out, overwrite)
    fitted = load_view(model)
    use_model(fitted, embed_model)
    method = _calibrated(fitted, model.name)
    with progress(f"reading {data.name}") as update, embedding_beside(data, update):
        table = Source(data, id_column).read(fitted)
        rows = fitted[:-1].transform(table.rows) if len(getattr(fitted, "steps", ())) > 1 else table.rows
        rows = np.asarray(rows) if hasattr(rows, "to_numpy") else rows
        count = likely = 0
        with atomic_path(out) as partial, partial.open("w", newline="", encoding="utf-8") as file:
            writer = TableWriter(file, delimiter_of("", out.suffix))
            writer.row(["a", "b", "p_same"])
            for ends, named in read_pair_blocks(pairs, ids=table.ids, n_samples=table.n_rows):
                together = method.pair_proba(*(rows[end] for end in named.T), base_rate=base_rate)
                writer.rows(zip(*(end.tolist() for end in ends), (f"{p:.6g}" for p in together)))
                count += len(together)
                likely += int(np.count_nonzero(together > 0.5))
                update(None, f"{count:,} pairs")
    if as_json:
        print_json({"out": str(out), "pairs": count, "p_same_above_half": likely})
    else:
        tell(f"wrote {out}: {count:,} pairs, {likely:,} of them more probably the same than not")


def _calibrated(fitted: Any, name: str) -> Any:
    """Return the method of a model; ValueError if it gives no probabilities."""
    from pairlens.selection.fitting import last_step

    method = last_step(fitted)
    if not hasattr(method, "pair_proba"):
        raise ValueError(f"{name} holds a {type(method).__name__}, which gives no probabilities of pairs")
    if not method.is_calibrated:
        raise ValueError(
            f"{name} gives no probabilities: pairlens fit learns them from at least 5 must-links and 5 cannot-links"
        )
    return method
