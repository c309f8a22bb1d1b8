"""Fit any model, a method or a pipeline that ends in one, with what it learns from."""

from __future__ import annotations

import inspect
from typing import Any

import sklearn
from numpy.typing import ArrayLike

from pairlens.supervision import Constraints, Preferences, Quadruplets, Triplets

SOURCES = ("constraints", "preferences", "triplets", "quadruplets")


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def learns_from(model: Any) -> frozenset[str]:
    """Return the kinds of answers, such as "constraints", that the `fit` of a model or of its last step takes.

    Examples
    --------
    >>> from pairlens import WBDR, WSDR
    >>> sorted(learns_from(WBDR())), sorted(learns_from(WSDR()))
    (['constraints'], ['preferences'])
    """
    taken = inspect.signature(last_step(model).fit).parameters
    return frozenset(source for source in SOURCES if source in taken)


def fit_model(
    model: Any,
    X: ArrayLike,
    constraints: Constraints | None = None,
    preferences: Preferences | None = None,
    triplets: Triplets | None = None,
    quadruplets: Quadruplets | None = None,
) -> Any:
    """Fit a model with those of the given answers that it learns from; returns the model."""
    given = {
        "constraints": constraints,
        "preferences": preferences,
        "triplets": triplets,
        "quadruplets": quadruplets,
    }
    known = {name: given[name] for name in learns_from(model) if given[name] is not None}
    # Pipelines hand pairs to the step that asks for them only while routing is on.
    with sklearn.config_context(enable_metadata_routing=True):
        return model.fit(X, **known)
