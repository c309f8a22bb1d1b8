"""Choosing by what was held out: the judgement of a view by pairs it did not see, and methods side by side."""

from pairlens.selection.comparison import Entry, compare
from pairlens.selection.held_out import HeldOutAUC, held_out_accuracy, held_out_auc

__all__ = ["Entry", "HeldOutAUC", "compare", "held_out_accuracy", "held_out_auc"]
