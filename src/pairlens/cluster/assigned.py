"""A group for every row of a table, with its name, its probability, and how it is known."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._atomic import atomic_path
from pairlens._text import TableWriter
from pairlens.cluster.pairclusters import PairClusters
from pairlens.engines import Float64, IntArray
from pairlens.supervision import Constraints

__all__ = ["COLUMNS", "AssignedRows", "assign_rows", "how_known", "label_names", "renumbered"]

COLUMNS = ("id", "group", "probability", "known")
"""The columns of ``groups.csv``."""
PLACED, ANSWERED, INFERRED = "placed", "answered", "inferred"


@dataclass(frozen=True)
class AssignedRows:
    """The group of each row.

    Attributes
    ----------
    names : list of str
        The groups.
    group : int array of shape (n_rows,)
        Position of each row's group among them.
    probability : array of shape (n_rows,)
    known : list of str
        "placed" where people put the row in its group, "answered" where it is in an answer, else "inferred".
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
        """Return the content of ``groups.csv``: the columns :data:`COLUMNS`, a line for each row.

        Parameters
        ----------
        ids : iterable, optional
            Names of the rows; their numbers by default.
        """
        file = io.StringIO(newline="")
        writer = TableWriter(file)
        writer.row(COLUMNS)
        writer.rows(
            (name, self.names[group], f"{chance:.3f}", known)
            for name, group, chance, known in zip(
                count() if ids is None else ids, self.group, self.probability, self.known
            )
        )
        return file.getvalue()


def assign_rows(
    X: ArrayLike,
    known: Constraints,
    placed: Sequence[str | None] | None = None,
    *,
    standardize: bool = True,
    random_state: Any = 0,
) -> AssignedRows:
    """Find a group for every row.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_rows, n_features)
    known : Constraints
        The answers.
    placed : sequence of str or None, optional
        Names of the groups that people put rows in; None for other rows. Such rows stay there, and the other rows of a
        group get its name. Groups without a name are called "group 1", "group 2", ..., by the first number that is
        free.
    standardize : bool
    random_state : int, RandomState, Generator or None
    """
    model = PairClusters(standardize=standardize, random_state=random_state).fit(X, constraints=known)
    given = [None] * len(model.labels_) if placed is None else list(placed)
    names = list(dict.fromkeys(name for name in given if name is not None))
    codes = np.array([-1 if name is None else names.index(name) for name in given], dtype=np.int64)
    numbers = renumbered(model.labels_, codes, len(names))
    group = np.where(codes >= 0, codes, numbers[model.labels_])
    free = (f"group {number}" for number in range(1, len(names) + len(numbers) + 1))
    taken = set(names)
    fresh = (name for name in free if name not in taken)
    for _ in range(int(numbers.max(initial=-1)) + 1 - len(names)):
        names.append(next(fresh))
    return AssignedRows(names, group, model.probabilities_, how_known(codes >= 0, known))


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

    The pair of groups with most rows in common is matched first.

    Parameters
    ----------
    labels : int array of shape (n_rows,)
        Groups that were found, from 0.
    placed : int array of shape (n_rows,)
        Groups that people put rows in, from 0; -1 for other rows.
    n_placed : int
        Number of these.

    Returns
    -------
    numbers : int array of shape (n_groups,)

    Examples
    --------
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
