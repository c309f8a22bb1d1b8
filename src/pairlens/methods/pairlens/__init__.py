"""PairLens, this library's own method for few and noisy pairs, and the stages that it is composed of.

Rows become principal components of their z-scores (:func:`~pairlens.spectral.rowspace.principal_rows`); a pair problem
(:mod:`~pairlens.methods.pairlens.problem`) is solved there (:class:`FirstStage`), and once more in non-linear
coordinates of its result (:class:`SecondStage`); a :class:`Rival` is judged on the same folds. A stage is prepared from
rows alone, so that it can be solved for many sets of pairs.
"""

from pairlens.methods.base import ScaleAware
from pairlens.methods.pairlens.guard import Rival
from pairlens.methods.pairlens.lens import PairLens
from pairlens.methods.pairlens.linear import LinearPairLens
from pairlens.methods.pairlens.problem import FirstFit, FirstStage, PairProblem
from pairlens.methods.pairlens.second_stage import Diffusion, SecondStage, SecondView
from pairlens.spectral.rowspace import Standardiser, exact_means, principal_rows

__all__ = [
    "Diffusion",
    "FirstFit",
    "FirstStage",
    "LinearPairLens",
    "PairLens",
    "PairProblem",
    "Rival",
    "ScaleAware",
    "SecondStage",
    "SecondView",
    "Standardiser",
    "exact_means",
    "principal_rows",
]
