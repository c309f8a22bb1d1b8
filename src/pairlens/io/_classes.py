"""The classes that a model file may name, and how they are looked up."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

import pairlens

__all__ = ["class_of", "name_of"]

HELPERS = (
    "pairlens.kernels.features.KernelFeatures",
    "pairlens.kernels.nullspace.NullSpace",
    "pairlens.methods._held_out.HeldOut",
    "pairlens.methods._stages.Diffusion",
    "pairlens.methods._stages.SecondStage",
    "pairlens.methods._stages.Standardiser",
    "pairlens.preference.trees.SklearnTrees",
    "pairlens.preference.trees.TreeOptions",
    "pairlens.preference.trees.XGBoostTrees",
    "pairlens.supervision._pairs.PairTable",
    "pairlens.supervision.constraints.Constraints",
    "pairlens.supervision.preferences.Preferences",
)
"""What estimators of pairlens keep beside arrays and numbers."""

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
"""Transformers whose attributes are data. A FunctionTransformer can only come without a function: files hold none."""

ROOMS = ("methods.", "preference.", "cluster.")


@lru_cache(maxsize=1)
def _homes() -> dict[str, tuple[str, str]]:
    """The module and the attribute of every name that a file may use."""
    estimators = {f"pairlens.{name}": home for name, home in pairlens._HOMES.items() if home.startswith(ROOMS)}
    homes = {name: (f"pairlens.{home}", name.rpartition(".")[2]) for name, home in estimators.items()}
    for path in (*HELPERS, *SCIKIT_LEARN):
        module, _, attribute = path.rpartition(".")
        homes[path] = (module, attribute)
    return homes


def class_of(name: Any) -> type | None:
    """The class that a name in a file stands for; None if it is not on the list."""
    home = _homes().get(name) if isinstance(name, str) else None
    return None if home is None else getattr(import_module(home[0]), home[1])


def name_of(kind: type) -> str | None:
    """The name of a class in files; None if it is not on the list."""
    for name, (module, attribute) in _homes().items():
        if attribute == kind.__name__ and getattr(import_module(module), attribute) is kind:
            return name
    return None
