"""Collect what pairlens uses of scikit-learn's private modules; make estimators and complete their docstrings."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

import numpy as np
import sklearn
from sklearn.base import _fit_context
from sklearn.utils import check_random_state, validation
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils._param_validation import StrOptions as _StrOptions
from sklearn.utils.validation import _check_feature_names_in

fit_context = _fit_context
StrOptions = _StrOptions
check_feature_names_in = _check_feature_names_in
validate_data = validation.validate_data


class Interval(_Interval):
    """Hold an interval of numbers, of which True and False are not members although Python counts them as integers.

    Nor are integers that compiled code has no room for.
    """

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value is a number in the interval."""
        too_large = isinstance(val, int) and abs(val) > np.iinfo(np.int64).max
        return not isinstance(val, (bool, np.bool_)) and not too_large and bool(super().is_satisfied_by(val))


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


SHARED = {
    "Parameters": """\
n_neighbors : int, default=5
    Neighbours of each row; all rows if there are fewer.
neighbors : {"auto", "exact", "approx"}, default="auto"
    How neighbours are found. "exact" compares all rows with all; "approx" finds at least 95 % of them in an index,
    in time that grows little faster than n, and needs ``pairlens[ann]``. "auto" takes the index for more than
    25,000 dense rows in memory (docs/scaling.md).
shrinkage : float in [0, 1] or "auto", default="auto"
    How far :math:`S_W` moves towards the identity and :math:`S_B` towards the total scatter of all rows; see
    :class:`BWDR`. 0.0 is the method of the paper, for which only the rows in pairs count.
shrinkage_factor : float, default=1.0
    Factor c of the number p of coordinates in "auto". 1 to 3 suits clean pairs, 10 and more noisy ones.
random_state : int, RandomState, Generator or None, default=None
    Makes what is drawn at random repeatable: folds, seeds, and pairs or rows where there are very many.
standardize : bool, default=True
    Whether to divide each feature by its deviation; those in which few rows differ, such as pixels at the border of
    pictures, count less than that. Choose False for features on one scale of their own: principal components,
    embeddings, pixels, and the rows of a :class:`TableEncoder`.""",
    "Attributes": """\
n_features_in_ : int
    Number of features seen in :meth:`fit`.
feature_names_in_ : array of str
    Names of the features, if X had any.""",
}
"""What parameters and attributes mean that classes without a common base have."""

EXAMPLE = """\
>>> from sklearn.datasets import load_iris
>>> from pairlens import Constraints, {name}
>>> X, y = load_iris(return_X_y=True)
>>> {name}().fit_transform(X, constraints=Constraints.from_labels(y, n_pairs=60, random_state=0)).shape
(150, 2)"""
"""How any method of pairs is used, unless its docstring says more."""

HEADER = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def complete_docstring(cls: type) -> None:
    """Add the parameters and attributes that the docstring of a class leaves to its base classes, or to `SHARED`.

    So a class describes what is its own, or other than in its base class, and `help` and the pages show everything:
    parameters in the order of ``__init__``, attributes those of the class first. A method with references but without
    an example gets :data:`EXAMPLE`.
    """
    if not vars(cls).get("__doc__"):
        return
    own = _sections(cls)
    bases = [_sections(base) for base in cls.__mro__[1:] if base.__module__.startswith("pairlens.") and base.__doc__]
    parameters, attributes = (_described(name, own, [*bases, SHARED]) for name in ("Parameters", "Attributes"))
    accepted = [name for name in inspect.signature(cls).parameters if name in parameters]
    parameters = {name: parameters[name] for name in accepted} | _entries(own.get("Parameters", ""))
    complete = {"": own[""], "Parameters": _joined(parameters), "Attributes": _joined(attributes)}
    complete |= {name: body for name, body in own.items() if name not in complete}
    if "References" in own:
        complete.setdefault("Examples", EXAMPLE.format(name=cls.__name__))
    cls.__doc__ = "\n\n".join(
        f"{name}\n{'-' * len(name)}\n{body}" if name else body for name, body in complete.items() if body
    )


def _sections(cls: type) -> dict[str, str]:
    """Return the sections of a docstring by name; what stands before the first has none."""
    summary, *rest = HEADER.split(inspect.cleandoc(cls.__doc__ or ""))
    return {"": summary.strip("\n")} | {name: body.strip("\n") for name, body in zip(rest[::2], rest[1::2])}


def _entries(body: str) -> dict[str, str]:
    """Return what a section says of each name; "a, b : float" stands under both."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", body) if body else ():
        names = entry.partition("\n")[0].partition(" :")[0]
        found |= {name.strip().lstrip("*"): entry for name in names.split(",")}
    return found


def _described(section: str, own: dict[str, str], bases: list[dict[str, str]]) -> dict[str, str]:
    """Return what the class or else the nearest of its bases says of each name."""
    found: dict[str, str] = {}
    for sections in (own, *bases):
        for name, entry in _entries(sections.get(section, "")).items():
            found.setdefault(name, entry)
    return found


def _joined(entries: dict[str, str]) -> str:
    return "\n".join(dict.fromkeys(entries.values()))


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
