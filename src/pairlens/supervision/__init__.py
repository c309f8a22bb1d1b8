"""What people know about rows: pairs that belong together or apart, and which of two is better."""

from pairlens.supervision._conflicts import Conflict, Conflicts
from pairlens.supervision.answers import Answers, read_answers
from pairlens.supervision.constraints import Constraints
from pairlens.supervision.preferences import Preferences

__all__ = ["Answers", "Conflict", "Conflicts", "Constraints", "Preferences", "read_answers"]
