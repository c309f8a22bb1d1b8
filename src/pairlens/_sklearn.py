"""Collect what pairlens uses of scikit-learn's private modules, and turn its seeds into generators."""

import sys
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import check_is_fitted, validate_data

from pairlens._docs import complete_docstring

__all__ = [
    "AUTO",
    "COUNT",
    "DTYPES",
    "NOT_NEGATIVE",
    "POSITIVE",
    "SEED",
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "Interval",
    "StrOptions",
    "TransformerMixin",
    "as_generator",
    "check_feature_names_in",
    "check_is_fitted",
    "check_routing",
    "estimator",
    "fit_context",
    "parameter",
    "validate_data",
]

fit_context = _fit_context


class Interval(_Interval):
    """Hold an interval of numbers, of which True and False are not members although Python counts them as integers."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value is a number in the interval."""
        return not isinstance(val, (bool, np.bool_)) and bool(super().is_satisfied_by(val))


COUNT = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
AUTO = StrOptions({"auto"})
SEED = ("random_state", np.random.Generator)
"""Values that many parameters allow."""

_Class = TypeVar("_Class", bound=type)


def parameter(*allowed: Any, default: Any, kw_only: bool = True) -> Any:
    """Declare a parameter of an estimator, with the values allowed as in scikit-learn's ``_parameter_constraints``.

    If none are given, those of the base class are allowed.
    """
    return field(default=default, kw_only=kw_only, metadata={"allowed": list(allowed)})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter, field))
def estimator(cls: _Class) -> _Class:
    """Make the constructor and the checks of an estimator from the parameters that it and its base classes declare.

    The constructor only stores, as scikit-learn wants it. The docstring is completed by what base classes say.
    """
    made: Any = dataclass(eq=False, repr=False, match_args=False)(cls)
    inherited = getattr(cls, "_parameter_constraints", {})
    declared = {each.name: each.metadata["allowed"] for each in fields(made) if each.init}
    made._parameter_constraints = {name: allowed or inherited[name] for name, allowed in declared.items()}
    complete_docstring(made)
    return cls


DTYPES = [np.float64, np.float32]
"""The types that rows keep; others become the first."""


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a Generator from anything that scikit-learn accepts as random_state, or from a Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    seeds = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return np.random.default_rng(seeds)


SEARCH = "_fit_and_score"
"""The function of scikit-learn in which every cross-validation slices what it passes to `fit`."""


def check_routing(argument: str) -> None:
    """Raise a TypeError if scikit-learn cross-validates with answers that `score` will not see.

    Without metadata routing they reach `fit` alone. Every `score` would then fail, and scikit-learn would report NaN
    and name a best candidate all the same.
    """
    if sklearn.get_config()["enable_metadata_routing"]:
        return
    frame = sys._getframe(2)
    for _ in range(8):
        if frame.f_code.co_name == SEARCH:
            given = frame.f_locals
            if given.get("y") is None and type(given.get("scorer")).__name__ == "_PassthroughScorer":
                raise TypeError(
                    f"{argument}= reaches fit but not score, so nothing can be compared. Run "
                    "sklearn.set_config(enable_metadata_routing=True) first."
                )
            return
        if frame.f_back is None:
            return
        frame = frame.f_back
