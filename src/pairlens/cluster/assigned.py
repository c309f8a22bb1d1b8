"""A group for every row of a table, with its name, its probability, and how it is known."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._atomic import atomic_path
from pairlens._text import csv_text
from pairlens.cluster.pairclusters import PairClusters
from pairlens.engines import Float64, IntArray, Rows
from pairlens.supervision import Constraints

COLUMNS = ("id", "group", "probability", "known")
"""The columns of ``groups.csv``."""
PLACED, ANSWERED, INFERRED = "placed", "answered", "inferred"


@dataclass(frozen=True)
class AssignedRows:
    """Names of groups, and for each row the position of its group among them, its probability, and how it is known.

    A row is "placed" where people put it in its group, "answered" where it is in an answer, else "inferred".
    """

    names: list[str]
    group: IntArray
    probability: Float64
    known: list[str]

    def write(self, path: Path, ids: Iterable[Any] | None = None) -> Path:
        """Write ``groups.csv`` and return where; see :meth:`to_csv`."""
        with atomic_path(path) as partial:
            partial.write_text(self.to_csv(ids), encoding="utf-8", newline="")
        return path

    def to_csv(self, ids: Iterable[Any] | None = None) -> str:
        """Return ``groups.csv``: the columns :data:`COLUMNS`, a line for each row with its id or else its number."""
        rows = zip(count() if ids is None else ids, self.group, self.probability, self.known)
        lines = ((name, self.names[group], f"{chance:.3f}", known) for name, group, chance, known in rows)
        return csv_text(COLUMNS, lines)


def assign_rows(
    X: ArrayLike,
    known: Constraints,
    placed: Sequence[str | None] | None = None,
    *,
    about: int | None = None,
    standardize: bool = True,
    random_state: Any = 0,
) -> AssignedRows:
    """Find a group for every row; `about` is a guess at their number.

    `placed` names the groups that people put rows in, None for other rows. Such rows stay there, and the other rows of
    a group get its name. Groups without a name are called "group 1", "group 2", ..., by the first number that is free.
    Where people put a row in another group than the model does, the probability is the largest that the model leaves.
    """
    model = PairClusters(about=about, standardize=standardize, random_state=random_state).fit(X, constraints=known)
    given = [None] * len(model.labels_) if placed is None else list(placed)
    names = list(dict.fromkeys(name for name in given if name is not None))
    codes = np.array([-1 if name is None else names.index(name) for name in given], dtype=np.int64)
    numbers = renumbered(model.labels_, codes, len(names))
    found = numbers[model.labels_]
    group = np.where(codes >= 0, codes, found)
    # Another group is neither likelier than the likeliest one nor than the remainder.
    likely = model.probabilities_
    chance = np.where(group == found, likely, np.minimum(likely, 1 - likely))
    free = (f"group {number}" for number in range(1, len(names) + len(numbers) + 1))
    taken = set(names)
    fresh = (name for name in free if name not in taken)
    for _ in range(int(numbers.max(initial=-1)) + 1 - len(names)):
        names.append(next(fresh))
    return AssignedRows(names, group, chance, how_known(codes >= 0, known))


def how_known(placed: NDArray[np.bool_], known: Constraints) -> list[str]:
    """Return how the group of each row is known: "placed", "answered" or "inferred"."""
    answered = np.zeros(len(placed), dtype=bool)
    answered[known.rows] = True
    how: list[str] = np.where(placed, PLACED, np.where(answered, ANSWERED, INFERRED)).tolist()
    return how


def label_names(labels: Iterable[Any]) -> list[str | None]:
    """Return the names of groups of labelled rows; None where the label is missing or -1.

    Examples
    --------
    >>> label_names(["cat", None, float("nan"), 3, -1])
    ['cat', None, None, '3', None]
    """
    return [None if label is None or label != label or label == -1 else str(label) for label in labels]


def renumbered(labels: IntArray, placed: NDArray[np.int64], n_placed: int) -> NDArray[np.int64]:
    """Return the number of the people's group for each group that was found, and new numbers where there is none.

    `placed` are the groups that people put rows in, from 0 and -1 for other rows. The pair of groups with most rows in
    common is matched first.

    >>> import numpy as np
    >>> renumbered(np.array([0, 0, 1, 1, 2]), np.array([-1, 1, 0, 0, -1]), 2)
    array([1, 0, 2])
    """
    n_found = int(labels.max(initial=-1)) + 1
    common = np.zeros((n_found, n_placed), dtype=np.int64)
    np.add.at(common, (labels[placed >= 0], placed[placed >= 0]), 1)
    numbers = np.full(n_found, -1, dtype=np.int64)
    for flat in np.argsort(-common, axis=None, kind="stable"):
        found, own = divmod(int(flat), n_placed)
        if common[found, own] and numbers[found] < 0 and own not in numbers:
            numbers[found] = own
    rest = np.flatnonzero(numbers < 0)
    numbers[rest] = n_placed + np.arange(len(rest))
    return numbers


@dataclass(frozen=True)
class Grouping:
    """Groups of all rows, by the numbers of the groups that were placed.

    `numbers` are the groups in ascending order, those of the placed rows and then others that the model found, and
    `column` the position among them of each group of the model. `where` is the position of the group that each row was
    placed in, -1 for the others, and `confidence` how sure that is.
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
        about: int | None,
        standardize: bool,
        seed: int,
    ) -> Grouping:
        """Group rows by all that follows from the answers, and by the rows placed in each group."""
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            model = PairClusters(about=about, standardize=standardize, random_state=seed)
            model.fit(rows, constraints=known)
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
        """Return the group of every row with its name, its probability and how it is known."""
        q = self.probabilities()
        names = [f"group {number + 1}" for number in self.numbers]
        group = np.searchsorted(self.numbers, self.groups())
        chance = q[np.arange(len(q)), group]
        return AssignedRows(names, group, chance, how_known(self.where >= 0, known))
