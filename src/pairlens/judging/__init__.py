"""Distances of pairs in a view, and judging it by pairs that it did not see: folds, AUC, probabilities, suspicion."""

from pairlens.judging.held_out import (
    HeldOutDistances,
    HeldOutScore,
    PairFolds,
    auc,
    auc_standard_error,
    held_out_distances,
    share_standard_error,
)
from pairlens.judging.probability import SuspiciousPairs, suspicious_pairs
from pairlens.judging.views import pair_auc, pair_distance, pair_proba

__all__ = [
    "HeldOutDistances",
    "HeldOutScore",
    "PairFolds",
    "SuspiciousPairs",
    "auc",
    "auc_standard_error",
    "held_out_distances",
    "pair_auc",
    "pair_distance",
    "pair_proba",
    "share_standard_error",
    "suspicious_pairs",
]
