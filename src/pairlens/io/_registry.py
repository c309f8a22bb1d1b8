"""The classes that a model file may name: stable tags, where each class lives today, and what earlier files say.

A class that moves gets a new home in `HOMES`, a class that is new a tag; tags never change. An attribute that gets
another name goes into `RENAMED`, a new parameter of an estimator into `ADDED`, and a new field of another class has a
default: files written before then still load.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pairlens

PUBLIC = "pairlens."
"""Public classes are named as users import them: ``pairlens.BWDR``."""

HOMES = {
    "category-column": "pairlens.tables.columns.CategoryColumn",
    "column-block": "pairlens.tables.columns.ColumnBlock",
    "column-summary": "pairlens.tables.roles.ColumnSummary",
    "date-column": "pairlens.tables.columns.DateColumn",
    "diffusion": "pairlens.methods.pairlens.second_stage.Diffusion",
    "held-out-pairs": "pairlens.judging.held_out.HeldOutDistances",
    "kernel-features": "pairlens.kernels.features.KernelFeatures",
    "map-evidence": "pairlens.methods.pairmap.evidence.Evidence",
    "map-held-out-pairs": "pairlens.methods.pairmap.probability.HeldOutPairs",
    "map-judgement": "pairlens.methods.pairmap.probability.Judgement",
    "map-lens-spaces": "pairlens.methods.pairmap.spaces.LensSpaces",
    "map-raw-space": "pairlens.methods.pairmap.spaces.RawSpace",
    "map-spaces": "pairlens.methods.pairmap.spaces.Spaces",
    "map-unit": "pairlens.methods.pairmap.spaces.Unit",
    "null-space": "pairlens.kernels.nullspace.NullSpace",
    "number-column": "pairlens.tables.columns.NumberColumn",
    "pair-model": "pairlens.judging.calibration.PairModel",
    "pair-probability": "pairlens.judging.probability.PairProbability",
    "pair-table": "pairlens.supervision._pairs.PairTable",
    "second-stage": "pairlens.methods.pairlens.second_stage.SecondView",
    "standardiser": "pairlens.spectral.rowspace.Standardiser",
    "text-column": "pairlens.tables.columns.TextColumn",
    "tree-options": "pairlens.preference.trees.TreeOptions",
    "trees-of-sklearn": "pairlens.preference.trees.SklearnTrees",
    "trees-of-xgboost": "pairlens.preference.trees.XGBoostTrees",
}
"""What estimators of pairlens keep beside arrays and numbers: the tag and the class it stands for."""

EARLIER = {
    "pairlens.kernels.features.KernelFeatures": "kernel-features",
    "pairlens.kernels.nullspace.NullSpace": "null-space",
    "pairlens.methods._held_out.HeldOut": "held-out-pairs",
    "pairlens.methods._stages.Diffusion": "diffusion",
    "pairlens.methods._stages.SecondStage": "second-stage",
    "pairlens.methods._stages.Standardiser": "standardiser",
    "pairlens.preference.trees.SklearnTrees": "trees-of-sklearn",
    "pairlens.preference.trees.TreeOptions": "tree-options",
    "pairlens.preference.trees.XGBoostTrees": "trees-of-xgboost",
    "pairlens.supervision._pairs.PairTable": "pair-table",
    "pairlens.supervision.constraints.Constraints": "pairlens.Constraints",
    "pairlens.supervision.preferences.Preferences": "pairlens.Preferences",
}
"""What files of format 1 call a class, and its tag. These are names, not places: they stay when classes move."""

RENAMED: dict[str, dict[str, str]] = {"pair-table": {"pairs": "members"}}
"""By tag, what an attribute was called in earlier files, and its name now."""

ADDED: dict[str, tuple[str, ...]] = {
    "pairlens.CLPP": ("gamma", "neighbors"),
    "pairlens.DSP": ("gamma",),
    "pairlens.KernelLPPSI": ("heat_gamma",),
    "pairlens.KernelNullSpace": ("gamma",),
    "pairlens.LPP": ("gamma", "neighbors"),
    "pairlens.LPPSI": ("gamma", "neighbors"),
    "pairlens.LinearPairLens": ("neighbors", "standardize"),
    "pairlens.NPSSDR": ("alpha", "neighbors"),
    "pairlens.PairLens": ("neighbors", "standardize"),
    "pairlens.PairMap": ("neighbors", "standardize"),
    "pairlens.SDA": ("neighbors",),
    "pairlens.SKKMeans": ("gamma",),
    "pairlens.SODRPaC": ("gamma", "neighbors"),
    "pairlens.TableEncoder": ("balance",),
}
"""By tag, parameters that earlier files do not have; they take their defaults."""

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


def class_of(name: Any) -> tuple[str, type] | None:
    """The tag and the class that a name in a file stands for; None if it is not on the list."""
    if not isinstance(name, str):
        return None
    tag = EARLIER.get(name, name)
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


def current_attribute(tag: str, attribute: str) -> str:
    """The name that an attribute in a file has today."""
    return RENAMED.get(tag, {}).get(attribute, attribute)


def added_parameters(tag: str) -> tuple[str, ...]:
    """Parameters that files from before they existed may lack."""
    return ADDED.get(tag, ())


def _found(path: str) -> type:
    module, _, attribute = path.rpartition(".")
    return getattr(import_module(module), attribute)
