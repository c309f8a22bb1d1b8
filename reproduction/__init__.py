"""The experiments of the papers, as data, and one runner for all of them: ``python -m reproduction``.

See :mod:`reproduction.experiment` for how an experiment is written down.
"""

from reproduction.catalogue import experiments
from reproduction.experiment import (
    Claim,
    Column,
    DataSet,
    Experiment,
    Figure,
    Method,
    Quick,
    Result,
    Table,
    Unit,
)
from reproduction.results import Results
from reproduction.runner import Outcome, run

__all__ = [
    "Claim",
    "Column",
    "DataSet",
    "Experiment",
    "Figure",
    "Method",
    "Outcome",
    "Quick",
    "Result",
    "Results",
    "Table",
    "Unit",
    "experiments",
    "run",
]
