"""The errors and warnings of pairlens, each a subclass of the built-in one that fits."""

from __future__ import annotations

__all__ = [
    "ApproximationWarning",
    "ConflictError",
    "ConflictWarning",
    "MissingExtraError",
    "SupervisionWarning",
]


class ConflictError(ValueError):
    """Two statements about one pair of rows contradict each other."""


class ConflictWarning(UserWarning):
    """Some answers contradict others, as noisy answers do; the methods go on."""


class SupervisionWarning(UserWarning):
    """The given supervision is too little for what was asked, and something simpler was done."""


class MissingExtraError(ImportError):
    """A part of pairlens was used whose optional dependency is not installed."""


class ApproximationWarning(UserWarning):
    """The problem is too large to be solved exactly, and a documented approximation was made."""
