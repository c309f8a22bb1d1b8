"""Hold what people know about rows: pairs that belong together or apart, which of two rows is better, which of two
pairs is more alike."""

from pairlens.supervision.combined import Answers, read_answers
from pairlens.supervision.comparisons import Preferences, Quadruplets, Triplets
from pairlens.supervision.conflicts import Conflict, Conflicts
from pairlens.supervision.constraints import Constraints

__all__ = ["Answers", "Conflict", "Conflicts", "Constraints", "Preferences", "Quadruplets", "Triplets", "read_answers"]
