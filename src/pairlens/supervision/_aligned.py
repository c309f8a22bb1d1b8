"""What Constraints and Preferences have in common: immutable, and aligned with the rows of X."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from pairlens.supervision._pairs import IntArray, as_n_samples, as_rows, freeze

__all__ = ["RowAligned", "common_n_samples"]


class RowAligned:
    """An immutable object that scikit-learn slices like an array with one entry per row of X."""

    __slots__ = ("_n_samples",)
    _n_samples: int | None

    # Without this, Python would iterate by asking for [0], [1], ...
    __iter__: ClassVar[None] = None

    def _fill(self, **values: Any) -> None:
        if hasattr(self, "_n_samples"):
            raise AttributeError(
                f"{type(self).__name__} are immutable: __init__ cannot be called again; build new ones"
            )
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _derived(cls, **values: Any) -> Self:
        """An object of parts that are checked already."""
        new = object.__new__(cls)
        new._fill(**values)
        return new

    def _take(self, rows: IntArray) -> Self:
        raise NotImplementedError

    @property
    def n_samples(self) -> int | None:
        """Number of rows of the X that the row numbers refer to, None if it is unknown."""
        return self._n_samples

    def _require_n_samples(self) -> int:
        if self._n_samples is None:
            raise TypeError(
                f"these {type(self).__name__} do not know how many rows X has, so they cannot be cut along with it; "
                f"give n_samples=len(X) when building them, or call .with_n_samples(len(X))"
            )
        return self._n_samples

    def __len__(self) -> int:
        return self._require_n_samples()

    @property
    def shape(self) -> tuple[int]:
        """``(n_samples,)``, by which scikit-learn sees that it must cut this along with X."""
        return (self._require_n_samples(),)

    def __getitem__(self, rows: Any) -> Self:
        """The pairs among some rows, renumbered.

        Parameters
        ----------
        rows : array of int, boolean mask, slice, or the tuple ``(rows, ...)``
            The rows to keep, in their new order. Where a row comes more than once (a bootstrap sample), every
            copy of it inherits its pairs; the copies are linked with each other only where labels say so.
        """
        return self._take(as_rows(rows, self._require_n_samples()))

    def __bool__(self) -> bool:
        # Python would ask for the length, which may be unknown.
        return True

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} are immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} are immutable: {name} cannot be deleted")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays come out of a pickle writeable.
        for value in state.values():
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, np.ndarray):
                    freeze(part)
        self._fill(**state)

    def _described_rows(self) -> str:
        return "an unknown number of rows" if self._n_samples is None else f"{self._n_samples} rows"


def common_n_samples(*sizes: int | None) -> int | None:
    """The number of rows on which all agree; None where nobody knows it."""
    known = sorted({size for size in sizes if size is not None})
    if len(known) > 1:
        raise ValueError(f"n_samples must agree: one side is about {known[0]} rows and another about {known[-1]}")
    return as_n_samples(known[0]) if known else None
