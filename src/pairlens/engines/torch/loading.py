"""torch, imported when it is first used: modules that work with tensors can be read where it is not installed."""

from __future__ import annotations

from typing import Any

from pairlens._optional import require

__all__ = ["torch"]


class _LazyTorch:
    """Stands for the module torch."""

    def __getattr__(self, name: str) -> Any:
        # Tools that look through modules ask any object for such names, and expect to be told there is none.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(require("torch", extra="gpu", purpose="working with tensors"), name)


torch = _LazyTorch()
