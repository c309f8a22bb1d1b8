"""Which question to ask next, the log of answers and its replay."""

from pairlens.asking.asker import Asker
from pairlens.asking.journal import Journal
from pairlens.asking.prefer import PreferenceAsker
from pairlens.asking.progress import Agreement, CurvePoint, StoppingHint
from pairlens.asking.questions import AlreadyAnsweredError, Entry, Question, UnknownQuestionError
from pairlens.asking.ranking import Ranking, RankJob, RankLens
from pairlens.asking.view import FitJob, Lens, View, fingerprint

__all__ = [
    "Agreement",
    "AlreadyAnsweredError",
    "Asker",
    "CurvePoint",
    "Entry",
    "FitJob",
    "Journal",
    "Lens",
    "PreferenceAsker",
    "Question",
    "RankJob",
    "RankLens",
    "Ranking",
    "StoppingHint",
    "UnknownQuestionError",
    "View",
    "fingerprint",
]
