"""Warn at the line of the user."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import Any

from pairlens.exceptions import SupervisionWarning

BETWEEN = ("pairlens", "sklearn", "numpy", "contextlib")
"""Packages whose frames may stand between the line of the user and the warning."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the first frame outside pairlens and the libraries whose decorators and pipelines call it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


def warn_fewer(method: object, found: int, wanted: int, why: str) -> None:
    """Warn that a view has fewer directions than were asked for."""
    warn_user(
        f"{type(method).__name__} found {found} usable directions of the n_components={wanted} asked for: {why}.",
        SupervisionWarning,
    )


REMEDIES = (
    (
        {"constraints", "triplets"},
        "must-links and cannot-links by constraints=, comparisons by triplets=, or labels by y=",
    ),
    ({"constraints"}, "must-links and cannot-links by constraints=, or labels by y="),
    ({"quadruplets"}, "comparisons by triplets= or quadruplets=, or classes by y="),
    ({"preferences"}, "pairs by preferences=, or ordinal scores by y="),
    ({"y"}, "numbers by y="),
)
"""What to give, by the parameters that the `fit` of a method has; the first that fits counts."""


def warn_fallback(method: Any, why: str, result: str = "the result is that of PCA") -> None:
    """Warn that a method had too little supervision, and say what it did instead."""
    taken = set(inspect.signature(method.fit).parameters)
    given = next(text for names, text in REMEDIES if names <= taken)
    warn_user(f"{type(method).__name__}: {why}, so {result}. Give {given}.", SupervisionWarning)
