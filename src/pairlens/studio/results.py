"""A model and a report from the answers so far: jobs for a process of their own."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairlens.pipeline import Preparation, default_view
from pairlens.studio.maps import FEWEST_FOR_LAYOUT
from pairlens.supervision import Constraints, Preferences

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

__all__ = ["Snapshot", "make_model", "make_report", "nothing"]


@dataclass(frozen=True)
class Snapshot:
    """The rows and what is known of them.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
    features : sequence of str
        Names of the columns of X.
    ids : sequence of str
        What the rows are called.
    prepared : Preparation
        What made X of the table, and how its columns are made comparable.
    constraints, preferences : Constraints and Preferences, or None
        What is known; one of the two.
    labels : list
        The groups, None where unknown.
    title : str
    """

    X: NDArray[np.float64]
    features: Sequence[str]
    ids: Sequence[str]
    prepared: Preparation
    constraints: Constraints | None
    preferences: Preferences | None
    labels: list[Any]
    title: str


def nothing(_: dict[str, Any]) -> None:
    """Do nothing: the first job, where nothing has to be prepared."""


def _fitted(known: Snapshot) -> tuple[Pipeline, Pipeline]:
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

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline, _view = _fitted(known)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pairlens")
        save(pipeline, path)
        return path.read_bytes()


def make_groups(_: dict[str, Any], known: Snapshot) -> str:
    """Return the group of every row, as ``pairlens fit --groups`` writes it."""
    from pairlens.cluster.assigned import assign_rows

    assert known.constraints is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = assign_rows(known.X, known.constraints, known.labels, standardize=known.prepared.standardize)
    return found.to_csv(known.ids)


def make_report(_: dict[str, Any], known: Snapshot) -> str:
    """Return the report on the view."""
    from pairlens.report import build_report

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        view = _fitted(known)[1]
        return build_report(
            view,
            known.X,
            constraints=known.constraints,
            preferences=known.preferences,
            ids=known.ids,
            labels=known.labels if any(known.labels) else None,
            feature_names=known.features,
            title=known.title,
        )
