"""The classes that a model file may name: stable tags, and where each class lives.

A class that moves gets a new home in `HOMES`, a class that is new a tag.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pairlens

PUBLIC = "pairlens."
"""Public classes are named as users import them: ``pairlens.BWDR``."""

HOMES = {
    "broken-pairs": "pairlens.cluster.pairclusters.BrokenPairs",
    "category-column": "pairlens.tables.columns.CategoryColumn",
    "cluster-mixture": "pairlens.cluster.mixture.Mixture",
    "cluster-view": "pairlens.cluster.learned.ClusterView",
    "column-block": "pairlens.tables.columns.ColumnBlock",
    "column-summary": "pairlens.tables.roles.ColumnSummary",
    "date-column": "pairlens.tables.columns.DateColumn",
    "diffusion": "pairlens.graphs.nearest.Diffusion",
    "held-out-pairs": "pairlens.judging.held_out.HeldOutDistances",
    "kernel-features": "pairlens.kernels.features.KernelFeatures",
    "map-evidence": "pairlens.methods.pairmap.attraction.Evidence",
    "map-held-out-pairs": "pairlens.methods.pairmap.attraction.HeldOutPairs",
    "map-judgement": "pairlens.methods.pairmap.attraction.Judgement",
    "map-spaces": "pairlens.methods.pairmap.estimator.MapSpaces",
    "null-space": "pairlens.kernels.nullspace.NullSpace",
    "number-column": "pairlens.tables.columns.NumberColumn",
    "pair-model": "pairlens.judging.probability.PairModel",
    "pair-probability": "pairlens.judging.probability.PairProbability",
    "pair-table": "pairlens.supervision.pairs.AnswerTable",
    "prior": "pairlens.learning.learner.Prior",
    "raw-space": "pairlens.learning.spaces.RawSpace",
    "standardiser": "pairlens.spectral.rowspace.Standardiser",
    "taught-spaces": "pairlens.learning.spaces.TaughtSpaces",
    "text-column": "pairlens.tables.columns.TextColumn",
    "tree-options": "pairlens.preference.trees.TreeOptions",
    "trees-of-sklearn": "pairlens.preference.trees.SklearnTrees",
    "trees-of-xgboost": "pairlens.preference.trees.XGBoostTrees",
    "unit": "pairlens.learning.spaces.Unit",
}
"""What estimators of pairlens keep beside arrays and numbers: the tag and the class it stands for."""

SCIKIT_LEARN = (
    "sklearn.compose.ColumnTransformer",
    "sklearn.decomposition.PCA",
    "sklearn.feature_selection.VarianceThreshold",
    "sklearn.impute.SimpleImputer",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing.FunctionTransformer",
    "sklearn.preprocessing.MaxAbsScaler",
    "sklearn.preprocessing.MinMaxScaler",
    "sklearn.preprocessing.Normalizer",
    "sklearn.preprocessing.OneHotEncoder",
    "sklearn.preprocessing.RobustScaler",
    "sklearn.preprocessing.StandardScaler",
    "sklearn.tree.DecisionTreeRegressor",
)
"""Transformers whose attributes are data, as users import them. A FunctionTransformer can only come without a function:
files hold none."""


def class_of(tag: Any) -> tuple[str, type] | None:
    """Return the tag and the class that it stands for; None if it is not on the list."""
    if not isinstance(tag, str):
        return None
    if tag in HOMES or tag in SCIKIT_LEARN:
        return tag, _found(HOMES.get(tag, tag))
    public = tag.removeprefix(PUBLIC)
    if tag.startswith(PUBLIC) and public in pairlens.__all__ and isinstance(kind := getattr(pairlens, public), type):
        return tag, kind
    return None


def tag_of(kind: type) -> str | None:
    """What files call a class; None if it is not on the list."""
    name = kind.__name__
    if name in pairlens.__all__ and getattr(pairlens, name) is kind:
        return PUBLIC + name
    homes = {**HOMES, **{path: path for path in SCIKIT_LEARN}}
    of_this_name = (tag for tag, home in homes.items() if home.rpartition(".")[2] == name)
    return next((tag for tag in of_this_name if _found(homes[tag]) is kind), None)


def _found(path: str) -> type:
    module, _, attribute = path.rpartition(".")
    return getattr(import_module(module), attribute)
