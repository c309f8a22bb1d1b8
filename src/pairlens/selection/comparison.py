"""Methods side by side, on the same folds over the pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from pairlens.exceptions import SupervisionWarning
from pairlens.judging import HeldOutScore
from pairlens.selection.fitting import fit_model
from pairlens.selection.held_out import held_out_accuracy, held_out_auc
from pairlens.selection.measure import Cost, measured
from pairlens.supervision import Constraints, Preferences


@dataclass(frozen=True)
class Entry:
    """How one method did.

    Attributes
    ----------
    name : str
    n_components : int or None
        Directions of its view; None for a ranking without a view.
    score : HeldOutScore or None
        AUC of held-out pairs, or accuracy on held-out preferences; None if the method failed.
    cost : Cost or None
        Time and memory of one fit to all pairs.
    error : str or None
        Why it failed.
    """

    name: str
    n_components: int | None
    score: HeldOutScore | None
    cost: Cost | None
    error: str | None = None


def compare(
    models: Mapping[str, Any],
    X: Any,
    *,
    constraints: Constraints | None = None,
    preferences: Preferences | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
    on_step: Callable[[str, int, int], None] | None = None,
) -> Iterator[Entry]:
    """Fit each model to everything, for its cost, and cross-validate it over the pairs.

    All models see the same folds. A model that cannot take the data is an entry with its reason, and the others go on.

    Parameters
    ----------
    models : mapping of str to estimator
    X : array of shape (n_samples, n_features)
    constraints : Constraints, optional
        Judge views by held-out pairs.
    preferences : Preferences, optional
        Judge rankings by held-out preferences; one of the two is given.
    n_splits, random_state
        See :func:`~pairlens.selection.held_out_auc`.
    on_step : callable, optional
        ``on_step(name, done, total)`` is called before each fit, for progress.

    Yields
    ------
    Entry
        In the order of the models.
    """
    if (constraints is None) == (preferences is None):
        raise ValueError("compare judges by constraints= or by preferences=: give one of them")
    if not isinstance(models, Mapping):
        raise TypeError(f"models must be a mapping of names to estimators, got {type(models).__name__}")
    for name, model in models.items():

        def step(done: int, total: int, name: str = name) -> None:
            if on_step is not None:
                on_step(name, done + 1, total + 1)

        try:
            if on_step is not None:
                on_step(name, 0, n_splits + 1)
            with warnings.catch_warnings(action="ignore", category=SupervisionWarning):
                fitted, cost = measured(partial(fit_model, clone(model), X, constraints, preferences))
            options = {"n_splits": n_splits, "random_state": random_state, "on_fold": step}
            if constraints is not None:
                width = np.asarray(fitted.transform(X[:1])).shape[1]
                yield Entry(name, width, held_out_auc(model, X, constraints, **options), cost)
            else:
                width = len(fitted.get_feature_names_out()) if hasattr(fitted, "transform") else None
                assert preferences is not None
                yield Entry(name, width, held_out_accuracy(model, X, preferences, **options), cost)
        except (ValueError, TypeError, ImportError, np.linalg.LinAlgError) as error:
            yield Entry(name, None, None, None, " ".join(str(error).split()))
