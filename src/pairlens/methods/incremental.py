"""``partial_fit`` for the methods whose scatters are sums over pairs."""

from __future__ import annotations

from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from pairlens._sklearn import fit_context
from pairlens._warnings import warn_user
from pairlens.engines import Moments, Rows
from pairlens.methods.base import LinearPairTransformer
from pairlens.spectral.batches import BatchSums, PairCounts
from pairlens.spectral.rowspace import RowSpace
from pairlens.spectral.scatters import SUMS
from pairlens.supervision import Constraints
from pairlens.supervision.combined import combine


class IncrementalPairTransformer(LinearPairTransformer):
    """Base of the methods that can learn from batches of rows which are gone afterwards.

    Attributes
    ----------
    n_samples_seen_ : int
        Number of rows seen by :meth:`fit`, or by :meth:`partial_fit` in all batches.
    """

    __metadata_request__partial_fit: ClassVar = {"constraints": True}

    _sums: ClassVar[tuple[str, ...]] = ("must_link", "cannot_link")
    """Names of the scatters, in :data:`pairlens.spectral.scatters.SUMS`, that the method is made of."""

    def _learn(self, rows: Rows, known: Constraints) -> None:
        super()._learn(rows, known)
        self.n_samples_seen_ = int(rows.shape[0])
        self.__dict__.pop("_batches", None)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Learn from one more batch of rows, with the pairs among them.

        After the last batch the directions are those that :meth:`fit` finds for all rows and pairs at once, in
        whatever order the batches came. Kept are the mean and a few matrices of n_features x n_features. It goes on
        from other batches, not from :meth:`fit`, which keeps no sums.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The rows of this batch. The first one needs two different rows.
        y : array-like of shape (n_samples,), optional
            Labels, -1 or missing where unknown. All pairs of labelled rows of this batch become constraints; rows of
            different batches are in no pair, whatever their labels.
        constraints : Constraints, optional
            Pairs of rows of this batch, numbered from 0 in it. Adds to what `y` says.

        Returns
        -------
        self : object
        """
        before: BatchSums | None = self.__dict__.get("_batches")
        if before is None and hasattr(self, "components_"):
            warn_user(
                f"this {type(self).__name__} was fitted by fit, which keeps no sums to go on from: partial_fit begins "
                "anew with this batch.",
                UserWarning,
            )
        rows = self._read(X, fitting=before is None)
        self._check_n_components(rows)
        batches = self._sum_up(rows, combine(y, constraints, rows.shape[0]))
        if before is not None:
            batches = before.merge(batches)
        self._learn(batches, cast(Constraints, batches.pairs))
        self._batches = batches
        return self

    def _sum_up(self, rows: Rows, known: Constraints) -> BatchSums:
        with np.errstate(over="ignore", invalid="ignore"):
            moments = Moments.of(rows)
            # Squares that overflow float32 could not be recovered in later batches.
            if rows.dtype != np.float64 and not np.isfinite(moments.about(moments.mean)).all():
                return self._sum_up(rows.astype(np.float64), known)
            space = RowSpace(rows, moments.mean)
            sums = {name: SUMS[name](space, known) for name in self._sums}
        return BatchSums(moments, PairCounts.of(known), sums, rows.dtype)

    def _fit_coordinates(self, X: Rows, known: Constraints) -> tuple[RowSpace, Constraints]:
        if not isinstance(X, BatchSums):
            return super()._fit_coordinates(X, known)
        self.mean_ = X.moments.mean.astype(X.dtype)
        return X.space(), known
