"""Choose the next question to ask, and replay the log of answers."""

from pairlens.asking.annotators import (
    Annotated,
    Annotator,
    AnnotatorError,
    CommandAnnotator,
    EndpointAnnotator,
    FunctionAnnotator,
    Reply,
    annotate,
    annotator_at,
)
from pairlens.asking.asker import Asker
from pairlens.asking.prefer import PreferenceAsker
from pairlens.asking.progress import Agreement, CurvePoint, StoppingHint
from pairlens.asking.questions import AlreadyAnsweredError, Entry, Question, UnknownQuestionError, is_machine
from pairlens.asking.ranking import Ranking, RankJob, RankLens
from pairlens.asking.reliability import ErrorRate, error_rates
from pairlens.asking.view import FitJob, Lens, View, fingerprint

__all__ = [
    "Agreement",
    "AlreadyAnsweredError",
    "Annotated",
    "Annotator",
    "AnnotatorError",
    "Asker",
    "CommandAnnotator",
    "CurvePoint",
    "EndpointAnnotator",
    "Entry",
    "ErrorRate",
    "FitJob",
    "FunctionAnnotator",
    "Lens",
    "PreferenceAsker",
    "Question",
    "RankJob",
    "RankLens",
    "Ranking",
    "Reply",
    "StoppingHint",
    "UnknownQuestionError",
    "View",
    "annotate",
    "annotator_at",
    "error_rates",
    "fingerprint",
    "is_machine",
]
