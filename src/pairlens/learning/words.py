"""How much answers decide, in words: the weights of the spaces of a fitted model as one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping

__all__ = ["what_answers_decide"]


def what_answers_decide(space_weights: Mapping[str, Mapping[str, float]], auc: float | None) -> str | None:
    """Return how much answers decide, and what they add; None if there were too few to hold any out.

    The arguments are `space_weights_` and `auc_` of a fitted :class:`~pairlens.PairMap` or :class:`~pairlens.PairLens`.

    >>> what_answers_decide({"linear": {"weight": 1.0, "auc": 0.9}}, 0.97)
    'Your answers decide all of this view. It tells your held-out pairs apart with AUC 0.97.'
    """
    if auc is None or math.isnan(auc):
        return None
    rows = space_weights.get("rows")
    if rows is None:
        return f"Your answers decide all of this view. It tells your held-out pairs apart with AUC {auc:.2f}."
    return (
        f"Your answers decide {1 - rows['weight']:.0%} of this map. The rows alone would tell your held-out pairs "
        f"apart with AUC {rows['auc']:.2f}; what the map has learned does with {auc:.2f}."
    )
