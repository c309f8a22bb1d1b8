"""``pairlens evaluate``: a model judged by pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens.cli import _options as options
from pairlens.cli._console import print_json, progress, said, tell
from pairlens.cli.transform import Model

if TYPE_CHECKING:
    from pairlens.supervision import Answers


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
    from pairlens.cli._work import Given, describe_pairs, held_out_score
    from pairlens.io.models import load
    from pairlens.selection.fitting import last_step

    fitted = load(model)
    with progress(f"reading {data.name}") as update:
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
            name, score = held_out_score(fitted, table.rows, known, folds, seed, update)
            if not score.folds:
                raise ValueError("there are too few pairs to hold some out: two of each kind are the least")
            result[name] = (score.mean, score.standard_error)
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
