"""The one module that knows which private names of scikit-learn we use, and where its versions keep them."""

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "Interval",
    "Options",
    "StrOptions",
    "TransformerMixin",
    "check_is_fitted",
    "fit_context",
    "validate_data",
]

fit_context = _fit_context
