"""Finds the estimators of the package by itself, so that no list needs care."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.fixes import parse_version

import pairlens
from pairlens.methods.base import LinearPairTransformer

pipelines_route_scores = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="scikit-learn hands metadata to the score of a Pipeline in cross-validation from 1.8 on",
)


def all_estimators() -> list[type[BaseEstimator]]:
    """Every public, concrete estimator class defined in any module of pairlens."""
    return list(_all_estimators())


@cache
def _all_estimators() -> tuple[type[BaseEstimator], ...]:
    found = set()
    for module_info in pkgutil.walk_packages(pairlens.__path__, "pairlens."):
        module = importlib.import_module(module_info.name)
        for name, member in vars(module).items():
            if (
                inspect.isclass(member)
                and issubclass(member, BaseEstimator)
                and not inspect.isabstract(member)
                and hasattr(member, "fit")
                and not name.startswith("_")
                and member.__module__ == module.__name__
            ):
                found.add(member)
    return tuple(sorted(found, key=lambda cls: cls.__name__))


def linear_methods() -> list[type[LinearPairTransformer]]:
    """Those that learn a matrix."""
    return [cls for cls in all_estimators() if issubclass(cls, LinearPairTransformer)]
