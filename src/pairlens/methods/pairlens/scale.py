"""Whether a method z-scores the features or keeps their scale."""

from __future__ import annotations

from typing import Any, ClassVar

from pairlens._sklearn import StrOptions
from pairlens.engines import Rows
from pairlens.methods.base import PairTransformer
from pairlens.tables.scaled import has_scale


class ScaleAware(PairTransformer):
    """A method with the parameter `standardize`.

    "auto" looks at X as it was given to `fit`: rows from a :class:`~pairlens.TableEncoder` keep their scale, all others
    are z-scored. What was done stands in `standardized_`, and new rows are treated alike.
    """

    _scale_constraints: ClassVar[dict[str, list[Any]]] = {"standardize": ["boolean", StrOptions({"auto"})]}
    standardize: bool | str
    standardized_: bool
    _of_encoder: bool
    """Whether the rows come from a TableEncoder."""

    def _read(self, X: Any, *, fitting: bool) -> Rows:
        if fitting:
            self._of_encoder = has_scale(X)
            self.standardized_ = not self._of_encoder if self.standardize == "auto" else bool(self.standardize)
        return super()._read(X, fitting=fitting)
