"""SODRPaC: its criterion, the search for its parameters, and the estimator."""

from pairlens.methods.sodrpac.criterion import Terms
from pairlens.methods.sodrpac.estimator import LAM_GRID, THETA_GRID, SODRPaC
from pairlens.methods.sodrpac.search import Scores, held_out_scores

__all__ = ["LAM_GRID", "THETA_GRID", "SODRPaC", "Scores", "Terms", "held_out_scores"]
