"""Choosing by what was held out: the judgement of a view by pairs it did not see, and methods side by side."""

from typing import Any

from pairlens.judging import HeldOutScore
from pairlens.selection.comparison import Entry, compare
from pairlens.selection.held_out import held_out_accuracy, held_out_auc

__all__ = ["Entry", "HeldOutScore", "compare", "held_out_accuracy", "held_out_auc"]


def __getattr__(name: str) -> Any:
    if name == "HeldOutAUC":
        from pairlens._warnings import warn_user

        warn_user("pairlens.selection.HeldOutAUC is called HeldOutScore now.", FutureWarning)
        return HeldOutScore
    raise AttributeError(f"module 'pairlens.selection' has no attribute {name!r}")
