"""The group of every row: those that the answers placed stay there, the others are put in the likeliest."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.cluster.assigned import AssignedRows, how_known, renumbered
from pairlens.cluster.pairclusters import PairClusters
from pairlens.engines import Float64, Rows
from pairlens.supervision import Constraints

__all__ = ["Grouping"]


@dataclass(frozen=True)
class Grouping:
    """Groups of all rows, by the numbers of the groups that were placed.

    Attributes
    ----------
    model : PairClusters
    numbers : int array of shape (n_columns,)
        The groups in ascending order: those of the placed rows, and others that the model found.
    column : int array of shape (n_clusters,)
        Position among them of each group of the model.
    where : int array of shape (n_rows,)
        Position of the group that each row was placed in; -1 for the others.
    confidence : array of shape (n_rows,)
        How sure each placed row is.
    """

    model: PairClusters
    numbers: NDArray[np.int64]
    column: NDArray[np.int64]
    where: NDArray[np.int64]
    confidence: Float64

    @classmethod
    def of(
        cls,
        rows: Rows,
        known: Constraints,
        groups: Mapping[int, Sequence[int]],
        confidence: Mapping[int, float],
        *,
        standardize: bool,
        seed: int,
    ) -> Grouping:
        """Group rows by what is known of some of them.

        Parameters
        ----------
        rows : array or CSR matrix of shape (n_rows, n_features)
        known : Constraints
            All that follows from the answers.
        groups : mapping of int to rows
            The rows that were placed, by the number of their group.
        confidence : mapping of row to float
        standardize : bool
        seed : int
        """
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            model = PairClusters(standardize=standardize, random_state=seed).fit(rows, constraints=known)
        placed = sorted(groups)
        where, sure = np.full(rows.shape[0], -1, dtype=np.int64), np.zeros(rows.shape[0])
        for at, number in enumerate(placed):
            where[list(groups[number])] = at
            sure[list(groups[number])] = [confidence.get(row, 1.0) for row in groups[number]]
        column = renumbered(model.labels_, where, len(placed))
        n_new = max(int(column.max(initial=-1)) + 1 - len(placed), 0)
        first = max(placed, default=-1) + 1
        return cls(model, np.array([*placed, *range(first, first + n_new)], dtype=np.int64), column, where, sure)

    def probabilities(self, X: ArrayLike | None = None) -> Float64:
        """Return the probability of each group for rows; by default for those that were grouped."""
        if X is not None:
            return self._in_columns(self.model.predict_proba(X))
        found = self._in_columns(np.eye(self.model.n_clusters_)[self.model.labels_])
        found *= self.model.probabilities_[:, None]
        found += (1 - found.sum(axis=1, keepdims=True)) / len(self.numbers)
        placed = np.flatnonzero(self.where >= 0)
        others = (1 - self.confidence[placed, None]) / max(len(self.numbers) - 1, 1)
        found[placed] = others
        found[placed, self.where[placed]] = 1 - others[:, 0] * (len(self.numbers) - 1)
        return found

    def _in_columns(self, q: Float64) -> Float64:
        found = np.zeros((len(q), len(self.numbers)))
        found[:, self.column] = q
        return found

    def groups(self, X: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return the number of the likeliest group of rows; by default of those that were grouped."""
        if X is not None:
            return np.asarray(self.numbers[self.column[self.model.predict(X)]])
        found = np.where(self.where >= 0, self.where, self.column[self.model.labels_])
        return np.asarray(self.numbers[found])

    def assigned(self, known: Constraints) -> AssignedRows:
        """Return the group of every row with its name, its probability and how it is known.

        Parameters
        ----------
        known : Constraints
            What follows from the answers.
        """
        q = self.probabilities()
        names = [f"group {number + 1}" for number in self.numbers]
        group = np.searchsorted(self.numbers, self.groups())
        chance = q[np.arange(len(q)), group]
        return AssignedRows(names, group, chance, how_known(self.where >= 0, known))
