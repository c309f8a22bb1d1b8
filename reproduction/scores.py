"""The scores of clusterings that the papers use: over all pairs of rows, together when the two have the same label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics.cluster import pair_confusion_matrix


def pairwise_f_score(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Compute the F-score of the pairs put together, :math:`2PR / (P + R)`.

    Precision P is the share of the pairs together in `labels_pred` that are together in `labels_true`, recall R the
    share of those together in `labels_true` that are found. Large clusters are rewarded: one cluster for everything can
    score high.
    """
    (_, false_together), (missed, found) = pair_confusion_matrix(labels_true, labels_pred)
    denominator = 2 * found + false_together + missed
    return float(2 * found / denominator) if denominator else 1.0


def normalized_rand_score(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Compute the mean of the accuracy on pairs of one class and on pairs of two classes.

    The Rand index with both kinds of pairs, as the true classes define them, weighing the same: 0.5 for one cluster,
    and for clusters drawn at random in expectation. It is eq. 13 of the BWDR paper, read by true classes. With one
    kind of pair only, the accuracy on that kind.
    """
    (apart, false_together), (missed, found) = pair_confusion_matrix(labels_true, labels_pred)
    parts = [hit / (hit + miss) for hit, miss in ((found, missed), (apart, false_together)) if hit + miss]
    return float(np.mean(parts)) if parts else 1.0
