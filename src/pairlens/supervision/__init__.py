"""What people know about rows: pairs that belong together or apart, which of two is better,
which of two pairs is more alike."""

from pairlens.supervision._conflicts import Conflict, Conflicts
from pairlens.supervision.answers import Answers, read_answers
from pairlens.supervision.comparisons import Quadruplets, Triplets
from pairlens.supervision.constraints import Constraints
from pairlens.supervision.preferences import Preferences

__all__ = ["Answers", "Conflict", "Conflicts", "Constraints", "Preferences", "Quadruplets", "Triplets", "read_answers"]
