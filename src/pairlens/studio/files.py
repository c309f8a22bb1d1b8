"""Write what leaves the studio: answers, groups, the map; a model and a report by a process of their own."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairlens._text import csv_text
from pairlens.asking.ranking import RankedRows
from pairlens.cluster.assigned import AssignedRows, assign_rows
from pairlens.pipeline import Preparation, default_view
from pairlens.studio.maps import FEWEST_FOR_LAYOUT
from pairlens.studio.replay import Answer, verdicts
from pairlens.supervision import Constraints, Preferences

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

ANSWER_COLUMNS = ("a", "b", "kind", "answer", "annotator", "at")


@dataclass(frozen=True)
class Snapshot:
    """The rows and what is known of them; `labels` are the groups, None where unknown."""

    X: NDArray[np.float64]
    features: Sequence[str]
    ids: Sequence[str]
    prepared: Preparation
    constraints: Constraints | None
    preferences: Preferences | None
    labels: list[Any]
    texts: list[str] | None
    title: str


def fit_view(known: Snapshot) -> tuple[Pipeline, Pipeline]:
    """Fit the default view, which is also the one that the page shows; return the pipeline, and it for encoded rows.

    Of too few rows for a map the exported view is PairLens.
    """
    from pairlens import PairLens
    from pairlens.selection.fitting import fit_model

    ranking = known.constraints is None
    n_rows, n_columns = known.X.shape
    n_components = min(2, n_columns) if ranking else 2
    method = default_view(n_components, preferences=ranking, random_state=0)
    if not ranking and n_rows < FEWEST_FOR_LAYOUT:
        method = PairLens(min(2, n_rows - 1), random_state=0)
    pipeline = known.prepared.pipeline(method)
    view = known.prepared.view(pipeline)
    fit_model(view, known.X, known.constraints, known.preferences)
    return pipeline, view


def make_model(_: dict[str, Any], known: Snapshot) -> bytes:
    """Return the content of a model file, as ``pairlens fit`` writes it and ``pairlens transform`` reads it."""
    from pairlens.io.models import save

    with warnings.catch_warnings(action="ignore"):
        pipeline, _view = fit_view(known)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pairlens")
        save(pipeline, path)
        return path.read_bytes()


def find_groups(known: Snapshot) -> AssignedRows:
    """Return the group of every row."""
    assert known.constraints is not None
    with warnings.catch_warnings(action="ignore"):
        return assign_rows(known.X, known.constraints, known.labels, standardize=known.prepared.standardize)


def make_groups(_: dict[str, Any], known: Snapshot) -> str:
    """Return the group of every row, as ``pairlens fit --groups`` writes it."""
    return find_groups(known).to_csv(known.ids)


def make_report(_: dict[str, Any], known: Snapshot) -> str:
    """Return the report on the view."""
    from pairlens.report import build_report

    with warnings.catch_warnings(action="ignore"):
        view = fit_view(known)[1]
        return build_report(
            view,
            known.X,
            constraints=known.constraints,
            preferences=known.preferences,
            ids=known.ids,
            labels=known.labels if any(known.labels) else None,
            texts=known.texts,
            feature_names=known.features,
            title=known.title,
        )


def _lines(answers: Sequence[Answer], ids: Sequence[str]) -> Iterable[dict[str, Any]]:
    """Yield one line for each comparison, in the form that ``pairlens fit --pairs`` reads."""
    for answer, i, j, verdict in verdicts(answers):
        kind = "must-link" if verdict > 0 else "cannot-link"
        a, b = ids[i], ids[j]
        if answer.question["kind"] == "prefer":
            kind, (a, b) = "prefer", (a, b) if verdict > 0 else (b, a)
        yield {"a": a, "b": b, "kind": kind, "answer": answer.answer, "annotator": answer.annotator, "at": answer.at}


def answers_csv(answers: Sequence[Answer], ids: Sequence[str]) -> str:
    """Return the answers as CSV, without "can't tell" and "equally good", of which nothing follows."""
    return csv_text(ANSWER_COLUMNS, ([line[name] for name in ANSWER_COLUMNS] for line in _lines(answers, ids)))


def answers_jsonl(answers: Sequence[Answer], ids: Sequence[str]) -> str:
    """Return the answers as JSON lines, ids exactly as in the table."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(answers, ids))


def ranking_csv(ranked: RankedRows, answers: Sequence[Answer], ids: Sequence[str]) -> str:
    """Return the rows in order, with the intervals of their ranks and how often each was compared."""
    compared = Counter(row for _, i, j, _ in verdicts(answers) for row in (i, j))
    lines = (
        (rank, ids[row], f"{ranked.score[row]:.6g}", ranked.low[row], ranked.high[row], compared[row])
        for rank, row in enumerate(ranked.order.tolist(), start=1)
    )
    return csv_text(("rank", "id", "score", "rank_low", "rank_high", "comparisons"), lines)


def map_csv(points: Any, groups: Sequence[dict[str, Any]], ids: Sequence[str]) -> str:
    """Return the places of all rows, with their groups where they have one."""
    where = {row: (group["shown"], group["name"]) for group in groups for row in group["rows"]}
    places = np.asarray(points).tolist()
    lines = ((ids[k], f"{x:.6g}", f"{y:.6g}", *where.get(k, ("", ""))) for k, (x, y) in enumerate(places))
    return csv_text(("id", "x", "y", "group", "name"), lines)
