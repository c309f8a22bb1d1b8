"""Draw a view with matplotlib."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens._optional import require
from pairlens.exceptions import InputError
from pairlens.supervision import Constraints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_GROUPS = 20
"""Groups up to which the legend names them."""
MUST, CANNOT, SUSPICIOUS = "#22685f", "#a8481c", "#d4a017"


def plot(
    model: Any,
    X: Any = None,
    *,
    color: Any = None,
    constraints: Constraints | None = None,
    suspicious: bool = True,
    ax: Axes | None = None,
    **scatter: Any,
) -> Axes:
    """Draw the rows of a fitted view with matplotlib, coloured by group or by a column, with the pairs that are known.

    Parameters
    ----------
    model : estimator
        Fitted view: any method of pairlens, or a pipeline that ends in one.
    X : array-like or data frame of shape (n_samples, n_features), optional
        Rows to draw. By default those of `fit`, at the places that a map keeps (``embedding_``).
    color : str or array-like of shape (n_samples,), optional
        Name of a column of `X`, or one value for each row. Numbers with a fraction are drawn from low to high with a
        colour bar; all else names groups, and missing values are grey.
    constraints : Constraints, optional
        Pairs of these rows to draw: must-links as lines, cannot-links dashed.
    suspicious : bool, default=True
        Whether the answers in `constraints` that look wrong are marked, where the model can tell
        (``suspicious_pairs``).
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    **scatter : dict
        Passed to ``Axes.scatter``.

    Returns
    -------
    Axes
        Labels of the lines: "belong together", "do not" and "look wrong".

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from pairlens import Constraints, LinearPairLens, plot
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    >>> view = LinearPairLens(random_state=0).fit(X, constraints=pairs)
    >>> plot(view, X, color=y, constraints=pairs).get_title().partition(",")[0]
    'LinearPairLens'
    """
    require("matplotlib", extra="report", purpose="plot")
    from matplotlib import pyplot

    last = model[-1] if hasattr(model, "steps") else model
    places = _places(model, last, X)
    if constraints is not None and constraints.n_samples != len(places):
        raise InputError(
            f"constraints are about {constraints.n_samples} rows, and {len(places)} are drawn",
            argument="constraints",
            remedy="Give the rows that they were made for",
        )
    ax = pyplot.subplots(layout="constrained")[1] if ax is None else ax
    if constraints is not None:
        _draw_pairs(ax, places, constraints, last if suspicious else None)
    _draw_rows(ax, places, _values(color, X, len(places)), color if isinstance(color, str) else "", scatter)
    auc = float(getattr(last, "auc_", np.nan))
    ax.set_title(type(last).__name__ + (f", held-out AUC {auc:.2f}" if np.isfinite(auc) else ""))
    ax.set(xticks=[], yticks=[])
    return ax


def _places(model: Any, last: Any, X: Any) -> Any:
    """Return two coordinates for each row."""
    if X is not None and not hasattr(model, "transform"):
        raise InputError(
            f"{type(last).__name__} gives no places for rows",
            argument="model",
            remedy="Give a view, and groups or scores by color=",
        )
    if X is None and not hasattr(last, "embedding_"):
        raise InputError(
            f"{type(last).__name__} keeps no places of its rows", argument="X", remedy="Give the rows to draw"
        )
    Z = np.asarray(last.embedding_ if X is None else model.transform(X), dtype=float)
    return Z[:, :2] if Z.shape[1] > 1 else np.column_stack([Z, np.zeros(len(Z))])


def _values(color: Any, X: Any, n_rows: int) -> Any:
    """Return one value for each row, or None."""
    if color is None:
        return None
    if isinstance(color, str):
        if color not in getattr(X, "columns", ()):
            raise InputError(
                f"X has no column {color!r}", argument="color", value=color, remedy="Give one value per row"
            )
        color = X[color]
    values = np.asarray(color)
    if values.shape != (n_rows,):
        raise InputError(
            f"color must be one value for each of {n_rows} rows, got the shape {values.shape}", argument="color"
        )
    return values


def _draw_rows(ax: Axes, places: Any, values: Any, name: str, scatter: dict[str, Any]) -> None:
    given = {"s": max(4.0, min(30.0, 9000 / len(places))), "linewidths": 0, "zorder": 2, **scatter}
    if values is None:
        ax.scatter(*places.T, **{"color": "#586a7f", **given})
        return
    if values.dtype.kind == "f" and not np.array_equal(
        values[np.isfinite(values)], np.round(values[np.isfinite(values)])
    ):
        drawn = ax.scatter(*places.T, **{"c": values, "plotnonfinite": True, "cmap": "viridis", **given})
        ax.figure.colorbar(drawn, ax=ax, label=_verbatim(name))
        return
    from matplotlib import colormaps

    missing = np.array([value is None or value != value for value in values.tolist()])
    groups = sorted({str(value) for value in values[~missing].tolist()}, key=lambda word: (len(word), word))
    words = np.array([str(value) for value in values.tolist()])
    colours = colormaps["tab10" if len(groups) <= 10 else "tab20"]
    if missing.any():
        ax.scatter(*places[missing].T, **{"color": "#b5b5b5", **given})
    for k, group in enumerate(groups):
        chosen = ~missing & (words == group)
        ax.scatter(*places[chosen].T, label=_verbatim(group), **{"color": colours(k % colours.N), **given})
    if 0 < len(groups) <= MOST_GROUPS:
        ax.legend(title=_verbatim(name) or None, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def _verbatim(text: str) -> str:
    """Return a text of the data so that matplotlib sees no formula in it, and no name that legends leave out."""
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def _draw_pairs(ax: Axes, places: Any, known: Constraints, judge: Any) -> None:
    from matplotlib.collections import LineCollection

    wrong: list[list[int]] = []
    if hasattr(judge, "suspicious_pairs"):
        drawn = {tuple(sorted(pair)) for pair in np.concatenate([known.must_link, known.cannot_link]).tolist()}
        with suppress(ValueError):  # too few answers to judge any of them
            found = judge.suspicious_pairs().standing_out.pairs.tolist()
            wrong = [pair for pair in found if tuple(sorted(pair)) in drawn]
    for pairs, label, style in (
        (known.must_link, "belong together", {"color": MUST, "alpha": 0.5, "linewidths": 0.8}),
        (known.cannot_link, "do not", {"color": CANNOT, "alpha": 0.4, "linewidths": 0.8, "linestyles": "dashed"}),
        (wrong, "look wrong", {"color": SUSPICIOUS, "linewidths": 2.5}),
    ):
        if len(pairs):
            ax.add_collection(LineCollection(places[np.asarray(pairs)], label=label, zorder=1, **style))
