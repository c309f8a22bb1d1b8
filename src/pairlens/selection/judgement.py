"""Judge a fitted view beside views of the same rows that saw no pair: PCA, and for a map a t-SNE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from pairlens.engines import Float64, Rows, canonical, evenly_spaced
from pairlens.judging import HeldOutScore
from pairlens.methods.pairmap.estimator import PairMap
from pairlens.methods.pairmap.placement import plain_map
from pairlens.selection.fitting import last_step, learns_from
from pairlens.selection.held_out import (
    NOTHING,
    JudgedPairs,
    Verdict,
    held_out_accuracy,
    held_out_pairs,
    verdicts,
)
from pairlens.supervision import Constraints, Preferences

NEAREST = 15
"""Nearest rows of a row that are compared in two views."""
MOST_COMPARED = 2_000


@dataclass(frozen=True)
class Control:
    """Hold a view of the same rows that sees no pair, with the key of its panel in a page, its name and its axes."""

    key: str
    name: str
    axes: tuple[str, ...]
    Z: Float64


@dataclass(frozen=True)
class ViewJudgement:
    """Hold how good a view is, and how it compares with controls, views that saw no pair.

    `pairs` is None without two pairs of each kind, `accuracy`, that of held-out preferences, if the model does not
    rank, and `moved`, the share of the nearest rows of a row in the map that are others than in the t-SNE, without a
    t-SNE.
    """

    pairs: JudgedPairs | None
    accuracy: HeldOutScore | None
    controls: tuple[Control, ...]
    verdicts: tuple[Verdict, ...] = ()
    moved: float | None = None

    @property
    def score(self) -> HeldOutScore:
        """The AUC of held-out pairs, or the accuracy on held-out preferences."""
        return self.pairs.score if self.pairs is not None else self.accuracy or NOTHING


def judge_view(
    model: Any,
    X: Any,
    *,
    constraints: Constraints | None = None,
    preferences: Preferences | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
    on_fold: Callable[[int, int], None] | None = None,
) -> ViewJudgement:
    """Judge a fitted view by the pairs and the preferences that it was fitted with.

    A method that held out pairs in `fit` is not fitted again, nor is any with fewer than two `n_splits`; other
    parameters are those of :func:`~pairlens.selection.held_out_auc`.

    >>> from sklearn.datasets import load_wine
    >>> from pairlens import Constraints, LinearPairLens
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=200, random_state=0)
    >>> judged = judge_view(LinearPairLens(2, random_state=0).fit(X, constraints=pairs), X, constraints=pairs)
    >>> [(verdict.other, verdict.tells, verdict.difference > 0) for verdict in judged.verdicts]
    [('PCA', True, True)]
    """
    method = last_step(model)
    rows = model[:-1].transform(X) if len(getattr(model, "steps", ())) > 1 else X
    rows = canonical(check_array(rows, accept_sparse="csr", dtype=[np.float64, np.float32]))
    if "preferences" not in learns_from(model) or n_splits < 2:
        preferences = None
    options: dict[str, Any] = {"n_splits": n_splits, "random_state": random_state, "on_fold": on_fold}
    found = views_without_pairs(method, rows, random_state)
    accuracy = (
        held_out_accuracy(model, X, preferences, **options) if preferences is not None and preferences.n_pairs else None
    )
    pairs = None
    if constraints is not None and min(constraints.n_must_link, constraints.n_cannot_link) > 0:
        pairs = JudgedPairs.of_fit(model)
        if pairs is None and n_splits >= 2 and hasattr(method, "transform"):
            pairs = held_out_pairs(model, X, constraints, preferences=preferences, **options)
    said = () if pairs is None else tuple(verdicts(pairs, {each.name: each.Z for each in found}, method, rows))
    drawn = [each.Z for each in found if each.key == "tsne"]
    moved = _moved(method.embedding_, drawn[0]) if drawn else None
    return ViewJudgement(pairs, accuracy, found, said, moved)


def views_without_pairs(method: Any, rows: Rows, seed: Any) -> tuple[Control, ...]:
    """Return PCA in as many directions as a fitted method has; for a map also the t-SNE of the rows alone."""
    width = len(method.get_feature_names_out()) if hasattr(method, "get_feature_names_out") else 1
    Z, shares = _principal(rows, width, seed)
    axes = tuple(f"component {i + 1} ({share:.1%} of variance)" for i, share in enumerate(shares))
    found = [Control("pca", "PCA", axes, Z)]
    if isinstance(method, PairMap):
        alone = plain_map(
            rows,
            method.n_components,
            perplexity=method.perplexity,
            standardize=method.standardize,
            n_jobs=method.n_jobs,
            random_state=seed,
            reuse=True,
        )
        found.append(Control("tsne", "t-SNE", tuple(f"direction {i + 1}" for i in range(alone.shape[1])), alone))
    return tuple(found)


def _principal(rows: Rows, n_dims: int, seed: Any) -> tuple[Float64, Float64]:
    """Return the first principal components of the rows, and their shares of the variance."""
    from sklearn.decomposition import PCA

    n_dims = max(1, min(n_dims, *rows.shape))
    if sparse.issparse(rows) and n_dims >= min(rows.shape):
        rows = rows.toarray()
    pca = PCA(n_dims, svd_solver="arpack" if sparse.issparse(rows) else "auto", random_state=seed)
    with np.errstate(all="ignore"):
        Z = np.nan_to_num(np.asarray(pca.fit_transform(rows.astype(np.float64, copy=False)), dtype=np.float64))
    return Z, np.nan_to_num(pca.explained_variance_ratio_)


def _moved(Z: Float64, other: Float64) -> float:
    """Return the share of the nearest rows in one view that are not among the nearest in the other."""
    from sklearn.neighbors import NearestNeighbors

    k = min(NEAREST, len(Z) - 1)
    chosen = evenly_spaced(len(Z), MOST_COMPARED)
    first, second = (
        NearestNeighbors(n_neighbors=k + 1).fit(each).kneighbors(each[chosen], return_distance=False)
        for each in (Z, other)
    )
    # A row is among its own nearest rows in both.
    shared = [len(np.intersect1d(a, b)) - 1 for a, b in zip(first, second)]
    return 1.0 - max(float(np.mean(shared)), 0.0) / k
