"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_user"]

OURS = ("pairlens", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the first frame outside pairlens and scikit-learn, whose decorators and pipelines call us."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
