"""What the leagues of maps and of notions share: how good placed rows are, and the maps of umap-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from pairlens import Constraints

__all__ = ["SCORES", "Array", "Codes", "Placed", "scores", "umap", "umap_with_labels"]

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Placed = tuple[Array, Array]
"""Places of the training rows and of the test rows."""

FRESH_PAIRS = 2000
SCORES = ("ari", "nn1", "nn5", "auc")


def scores(train: Array, y_train: Codes, test: Array, y_test: Codes) -> dict[str, float]:
    """Return the scores of a view, by its test rows."""
    clusters = KMeans(int(y_test.max()) + 1, n_init=4, random_state=0).fit_predict(test)
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, len(test), (2, FRESH_PAIRS))
    left, right = left[left != right], right[left != right]
    length, same = np.linalg.norm(test[left] - test[right], axis=1), y_test[left] == y_test[right]
    return {
        "ari": float(adjusted_rand_score(y_test, clusters)),
        "nn1": float(KNeighborsClassifier(1).fit(train, y_train).score(test, y_test)),
        "nn5": float(KNeighborsClassifier(5).fit(train, y_train).score(test, y_test)),
        "auc": float(roc_auc_score(same, -length)),
    }


def umap(train: Array, test: Array, known: Constraints) -> Placed:  # noqa: ARG001
    """umap-learn with its defaults, test rows by its own transform."""
    return _placed(_umap().fit(train), test)


def umap_with_labels(train: Array, test: Array, known: Constraints) -> Placed:
    """umap-learn, rows that must-links join having a common label and all others none."""
    groups = known.chunklets()
    return _placed(_umap().fit(train, groups if (groups >= 0).any() else None), test)


def _umap() -> Any:
    from umap import UMAP

    return UMAP(random_state=0, n_jobs=1)


def _placed(model: Any, test: Array) -> Placed:
    return np.asarray(model.embedding_, dtype=np.float64), np.asarray(model.transform(test), dtype=np.float64)
