"""What we use of scikit-learn that is private there, from where its versions keep it, and its seeds as generators."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, Options, StrOptions
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = [
    "DTYPES",
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "Hidden",
    "Interval",
    "Options",
    "StrOptions",
    "TransformerMixin",
    "as_generator",
    "check_feature_names_in",
    "check_is_fitted",
    "fit_context",
    "validate_data",
]

fit_context = _fit_context


class Interval(_Interval):
    """An interval of numbers. True and False are not among them, although Python counts them as integers."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether a value is a number of the interval."""
        return not isinstance(val, (bool, np.bool_)) and bool(super().is_satisfied_by(val))


DTYPES = [np.float64, np.float32]
"""The types that rows keep; others become the first."""


def as_generator(random_state: Any) -> np.random.Generator:
    """A Generator from all that scikit-learn takes as random_state, or a Generator itself."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    seeds = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return np.random.default_rng(seeds)
