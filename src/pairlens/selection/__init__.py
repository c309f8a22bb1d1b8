"""Choosing by what was held out: the judgement of a view by pairs it did not see, and methods side by side."""

from pairlens.judging import HeldOutScore
from pairlens.selection.comparison import Entry, compare
from pairlens.selection.held_out import held_out_accuracy, held_out_auc

__all__ = ["Entry", "HeldOutScore", "compare", "held_out_accuracy", "held_out_auc"]
