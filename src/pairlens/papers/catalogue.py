"""Which experiments there are: those that a module of this package lists in ``EXPERIMENTS``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from pairlens.papers.experiment import Experiment

__all__ = ["experiments"]


def experiments(names: Iterable[str] | None = None) -> list[Experiment]:
    """All experiments, or those of the names given, in the order of the papers' modules."""
    import pairlens.papers

    found: dict[str, Experiment] = {}
    for info in pkgutil.iter_modules(pairlens.papers.__path__, "pairlens.papers."):
        if info.name.rpartition(".")[2].startswith("_"):
            continue
        for experiment in getattr(importlib.import_module(info.name), "EXPERIMENTS", ()):
            if experiment.name in found:
                raise ValueError(f"two experiments are named {experiment.name!r}")
            found[experiment.name] = experiment
    if names is None:
        return list(found.values())
    wanted = list(dict.fromkeys(names))
    if unknown := [name for name in wanted if name not in found]:
        raise ValueError(f"there is no experiment {unknown[0]!r}; there are: {', '.join(found)}")
    return [found[name] for name in wanted]
