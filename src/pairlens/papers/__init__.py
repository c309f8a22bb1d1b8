"""The experiments of the papers, as data, and one runner for all of them: ``pairlens reproduce``.

See :mod:`pairlens.papers.experiment` for how an experiment is written down.
"""

from pairlens.papers.catalogue import experiments
from pairlens.papers.experiment import (
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
from pairlens.papers.results import Results
from pairlens.papers.runner import Outcome, run

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
