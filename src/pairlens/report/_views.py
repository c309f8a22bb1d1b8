"""Take a fitted model apart: its view of the rows, and which features make the directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from pairlens.engines import Rows, canonical, column_deviations, column_means, evenly_spaced, row_blocks, take_rows
from pairlens.exceptions import ArgumentError

MAX_AXES = 10
CHECKED_ROWS = 50
LINEAR_TOLERANCE = 1e-3


@dataclass(frozen=True)
class FittedView:
    """The view of the rows by a model.

    `estimator` is the last step, which makes the view `Z` of `rows` as it receives them, from features called `names`;
    `steps` are those before it. `axes` are the names of the axes of the view.
    """

    estimator: Any
    steps: tuple[Any, ...]
    rows: Rows
    Z: NDArray[np.float64]
    axes: tuple[str, ...]
    names: list[str]


def look(model: Any, X: Any, feature_names: ArrayLike | None) -> FittedView:
    """Take a model apart and let it transform the rows."""
    check_is_fitted(model)
    front, estimator, steps = None, model, ()
    if isinstance(model, Pipeline):
        estimator = model.steps[-1][1]
        steps = tuple(step for _, step in model.steps[:-1] if step is not None and step != "passthrough")
        front = model[:-1] if len(model.steps) > 1 else None
    received = X if front is None else front.transform(X)
    if hasattr(estimator, "transform"):
        Z = estimator.transform(received)
        axis = "direction"
    elif hasattr(estimator, "decision_function"):
        Z = np.asarray(estimator.decision_function(received))
        axis = "score"
    else:
        raise TypeError(
            f"a report needs a model that turns rows into a view, but {type(estimator).__name__} has neither transform "
            "nor decision_function."
        )
    Z = np.asarray(Z.toarray() if sparse.issparse(Z) else Z, dtype=np.float64)
    Z = Z[:, None] if Z.ndim == 1 else Z
    axes = (axis,) if Z.shape[1] == 1 else tuple(f"{axis} {i + 1}" for i in range(Z.shape[1]))
    rows = canonical(check_array(received, accept_sparse="csr", dtype=[np.float64, np.float32]))
    return FittedView(estimator, steps, rows, Z, axes, _names(model, X, front, rows.shape[1], feature_names))


def _names(model: Any, X: Any, front: Any, n_features: int, given: ArrayLike | None) -> list[str]:
    if given is not None:
        names = [str(name) for name in np.asarray(given, dtype=object).ravel()]
    elif hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
    elif hasattr(model, "feature_names_in_"):
        names = [str(name) for name in model.feature_names_in_]
    else:
        names = [f"feature {i}" for i in range(X.shape[1] if hasattr(X, "shape") else len(X[0]))]
    if front is not None:
        try:
            made = front.get_feature_names_out(np.asarray(names, dtype=object))
        except (AttributeError, ValueError):
            made = names
        names = [str(name) for name in made]
    if len(names) == n_features:
        return names
    if given is not None and front is None:
        raise ArgumentError("feature_names", len(names), f"must have {n_features} entries, one for each feature")
    return [f"feature {i}" for i in range(n_features)]


def feature_weights(fitted: FittedView) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the effect of each feature in each direction, and its weight; None if the view is not linear.

    For a linear view the effect is the weight times the standard deviation of the feature, else their correlation.
    """
    n_axes = min(MAX_AXES, fitted.Z.shape[1])
    mean = column_means(fitted.rows)
    deviation = column_deviations(fitted.rows, mean)
    weight = _linear_weights(fitted)
    if weight is not None:
        return weight[:n_axes] * deviation, weight[:n_axes]
    centred = fitted.Z[:, :n_axes] - fitted.Z[:, :n_axes].mean(axis=0)
    products = np.zeros((n_axes, fitted.rows.shape[1]))
    for block in row_blocks(fitted.rows.shape[0], 8 * fitted.rows.shape[1]):
        part = fitted.rows[block]
        products += np.asarray(centred[block].T @ part if sparse.issparse(part) else centred[block].T @ (part - mean))
    scale = np.outer(np.sqrt((centred**2).mean(axis=0)), deviation) * len(centred)
    with np.errstate(all="ignore"):
        return np.where(scale > 0, products / scale, 0.0), None


def _linear_weights(fitted: FittedView) -> NDArray[np.float64] | None:
    """Return the weights, if the model has some and they do explain the view of a few rows."""
    estimator = fitted.estimator
    components = getattr(estimator, "components_", getattr(estimator, "coef_", None))
    if components is None:
        return None
    weight = np.atleast_2d(np.asarray(components, dtype=np.float64))
    if weight.shape != (fitted.Z.shape[1], fitted.rows.shape[1]):
        return None
    chosen = evenly_spaced(len(fitted.Z), CHECKED_ROWS)
    Z = fitted.Z[chosen]
    guess = take_rows(fitted.rows, chosen) @ weight.T
    # Directions see differences of rows: what the origin is does not matter.
    gap = np.abs((guess - guess.mean(axis=0)) - (Z - Z.mean(axis=0))).max()
    return weight if gap <= LINEAR_TOLERANCE * max(np.abs(Z - Z.mean(axis=0)).max(), 1e-300) else None
