"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings

from pairlens.exceptions import SupervisionWarning

OURS = ("pairlens", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the first frame outside pairlens and scikit-learn, whose decorators and pipelines call us."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


def warn_fewer(method: object, found: int, wanted: int, why: str) -> None:
    """Say that a view has fewer directions than were asked for."""
    warn_user(
        f"{type(method).__name__} found {found} usable directions of the n_components={wanted} asked for: {why}.",
        SupervisionWarning,
    )


def warn_fallback(method: object, why: str) -> None:
    """Say that a method had too little supervision and did PCA instead."""
    warn_user(
        f"{type(method).__name__}: {why}, so the result is that of PCA. Give must-links and cannot-links by "
        "constraints=, or labels by y.",
        SupervisionWarning,
    )
