"""The one module that knows which private names of scikit-learn we use, and where its versions keep them."""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Hidden, Interval, Options, StrOptions
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
    "check_feature_names_in",
    "check_is_fitted",
    "fit_context",
    "validate_data",
]

fit_context = _fit_context

DTYPES = [np.float64, np.float32]
"""The types that rows keep; others become the first."""
