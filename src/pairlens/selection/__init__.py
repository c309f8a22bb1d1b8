"""Judge views by pairs that they did not see, compare methods, and fit any of them."""

from pairlens.judging import HeldOutScore
from pairlens.selection.comparison import Entry, compare
from pairlens.selection.held_out import JudgedPairs, Verdict, held_out_accuracy, held_out_auc, held_out_pairs, verdicts

__all__ = [
    "Entry",
    "HeldOutScore",
    "JudgedPairs",
    "Verdict",
    "compare",
    "held_out_accuracy",
    "held_out_auc",
    "held_out_pairs",
    "verdicts",
]
