"""A model and a report from the answers so far: jobs for a process of their own."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.supervision import Constraints, Preferences

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
    constraints, preferences : Constraints and Preferences, or None
        What is known; one of the two.
    labels : list
        The groups, None where unknown.
    title : str
    named : bool
        Whether rows come as tables with named columns.
    encoder : TableEncoder or None
        What made X of them.
    standardize : bool
        Whether columns are divided by their deviations.
    """

    X: NDArray[np.float64]
    features: Sequence[str]
    ids: Sequence[str]
    constraints: Constraints | None
    preferences: Preferences | None
    labels: list[Any]
    title: str
    named: bool
    encoder: Any = None
    standardize: bool = True


def nothing(_: dict[str, Any]) -> None:
    """The first job, where nothing has to be prepared."""


def _fitted(known: Snapshot) -> tuple[Any, list[tuple[str, Any]]]:
    """The view that ``pairlens fit`` would learn, and the steps that come before it."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from pairlens import WSDR, PairLens
    from pairlens.selection.fitting import fit_model

    ranking = known.constraints is None
    n_rows, n_columns = known.X.shape
    keep = not known.standardize
    lens = PairLens(min(2, n_rows - 1), standardize=not keep, random_state=0)
    method = WSDR(min(2, n_columns), random_state=0) if ranking else lens
    view = Pipeline([*([] if keep else [("scale", StandardScaler())]), ("method", method)])
    fit_model(view, known.X, known.constraints, known.preferences)
    before: list[tuple[str, Any]] = [] if known.encoder is None else [("columns", known.encoder)]
    if known.named and known.encoder is None:
        import pandas

        columns = ColumnTransformer([("numbers", "passthrough", list(known.features))], verbose_feature_names_out=False)
        columns.fit(pandas.DataFrame(known.X, columns=list(known.features)))
        before = [("columns", columns)]
    return view, before


def make_model(_: dict[str, Any], known: Snapshot) -> bytes:
    """A job: the content of a model file, as ``pairlens fit`` writes it and ``pairlens transform`` reads it."""
    from sklearn.pipeline import Pipeline

    from pairlens.io.models import save

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        view, before = _fitted(known)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pairlens")
        save(Pipeline([*before, *view.steps]), path)
        return path.read_bytes()


def make_groups(_: dict[str, Any], known: Snapshot) -> str:
    """A job: the group of every row, as ``pairlens fit --groups`` writes it."""
    from pairlens.cluster.assigned import assign_rows

    assert known.constraints is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = assign_rows(known.X, known.constraints, known.labels, standardize=known.standardize)
    return found.to_csv(known.ids)


def make_report(_: dict[str, Any], known: Snapshot) -> str:
    """A job: the report on the view."""
    from pairlens.report import build_report

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        view = _fitted(known)[0]
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
