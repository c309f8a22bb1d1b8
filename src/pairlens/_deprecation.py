"""Parameters and attributes that have another name now, and still work under the former one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pairlens._sklearn import Hidden, StrOptions
from pairlens._warnings import warn_user

DEPRECATED = "deprecated"
"""The default of a parameter under its former name, as scikit-learn does it."""

NOT_GIVEN = Hidden(StrOptions({DEPRECATED}))
"""The same as a constraint of the parameter, which error messages do not name."""


def former_parameter(estimator: Any, former: str, name: str, relation: str) -> Any:
    """What was given under the former name of a parameter, with a FutureWarning; None if nothing was.

    Parameters
    ----------
    estimator : estimator
    former, name : str
        The name that the parameter had, and the one that it has.
    relation : str
        How the values are related, for the warning: "gamma = 1 / theta".
    """
    value = getattr(estimator, former)
    if value is None or (isinstance(value, str) and value == DEPRECATED):
        return None
    warn_user(
        f"{type(estimator).__name__}: the parameter {former} is called {name} now, {relation}; {former}={value!r} is "
        f"used. Give {name} instead.",
        FutureWarning,
    )
    return value


class RenamedAttribute:
    """A fitted attribute that follows from another one: under its former name, or of a model of an earlier file.

    An attribute of the same name in the instance itself goes before.

    Parameters
    ----------
    source : str
        The attribute that it follows from.
    convert : callable
        From the value of the source to this one.
    deprecated : bool
        Whether it is the former name, at which a FutureWarning names the source.
    """

    def __init__(self, source: str, convert: Callable[[Any], Any], *, deprecated: bool) -> None:
        self.source = source
        self.convert = convert
        self.deprecated = deprecated

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if self.source not in vars(instance):
            raise AttributeError(f"{type(instance).__name__!r} object has no attribute {self.name!r}")
        if self.deprecated:
            warn_user(f"the attribute {self.name} is called {self.source} now.", FutureWarning)
        return self.convert(vars(instance)[self.source])
