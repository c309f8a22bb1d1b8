"""Contradictions among pairs, and preferences that go round in a circle: finding, showing and resolving them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args, overload

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from pairlens._warnings import warn_user
from pairlens.exceptions import ConflictError, ConflictWarning
from pairlens.supervision._chains import chain, chain_graph, chains_from, direct_conflicts, joined, label_clashes
from pairlens.supervision._pairs import IntArray, PairTable, contains, decode, encode, freeze

OnConflict = Literal["raise", "warn", "drop"] | None

_POLICIES = get_args(get_args(OnConflict)[0])
_SHOWN_CHAIN = 8


class Conflict(NamedTuple):
    """One contradiction: a pair of rows that is kept apart and joined.

    Attributes
    ----------
    pair : tuple of int
        The two rows.
    chain : tuple of int
        The shortest chain of must-links (or shared labels) from the one row to the other.
    direct : bool
        Whether the two statements are about the same pair, so that the chain is the pair itself.
    """

    pair: tuple[int, int]
    chain: tuple[int, ...]
    direct: bool


class Conflicts(Sequence[Conflict]):
    """The contradictions among constraints, each with its chain, which is looked for when it is asked for.

    Attributes
    ----------
    direct : ndarray of shape (n_direct, 2)
        Pairs that are must-linked and cannot-linked.
    chained : ndarray of shape (n_chained, 2)
        Pairs that are cannot-linked and joined by a chain of must-links.

    Examples
    --------
    >>> from pairlens.supervision import Constraints
    >>> noisy = Constraints([(0, 1), (1, 2), (0, 2)], n_samples=3).flip(0.3, random_state=0)
    >>> noisy.conflicts()
    Conflicts(0 direct, 1 chained)
    >>> noisy.conflicts()[0]
    Conflict(pair=(1, 2), chain=(1, 0, 2), direct=False)
    """

    __slots__ = ("_codes", "_graph", "_latest", "_must", "_n_rows", "chained", "direct")

    def __init__(
        self, direct: IntArray, chained: IntArray, must: IntArray, codes: IntArray | None, n_rows: int
    ) -> None:
        self.direct = freeze(direct)
        self.chained = freeze(chained)
        self._must = must
        self._codes = codes
        self._n_rows = n_rows
        self._graph: sparse.csr_array | None = None
        self._latest: tuple[int, IntArray] | None = None

    def __len__(self) -> int:
        return len(self.direct) + len(self.chained)

    @overload
    def __getitem__(self, index: int) -> Conflict: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Conflict, ...]: ...
    def __getitem__(self, index: int | slice) -> Conflict | tuple[Conflict, ...]:
        if isinstance(index, slice):
            return tuple(self[position] for position in range(*index.indices(len(self))))
        position = range(len(self))[index]
        if position < len(self.direct):
            first, second = self.direct[position].tolist()
            return Conflict((first, second), (first, second), True)
        first, second = self.chained[position - len(self.direct)].tolist()
        return Conflict((first, second), chain(self._chains_from(first), first, second, self._n_rows), False)

    def _chains_from(self, start: int) -> IntArray:
        # Neighbours in this sequence often start at the same row.
        if self._latest is None or self._latest[0] != start:
            if self._graph is None:
                self._graph = chain_graph(self._must, self._codes, self._n_rows)
            self._latest = (start, chains_from(self._graph, start, self._n_rows))
        return self._latest[1]

    def __repr__(self) -> str:
        return f"Conflicts({len(self.direct)} direct, {len(self.chained)} chained)"


def find_conflicts(must: PairTable, cannot: PairTable, codes: IntArray | None, n_rows: int) -> Conflicts:
    denied_must, denied_cannot = direct_conflicts(must, cannot, codes)
    direct = np.union1d(denied_must, denied_cannot) if codes is not None else denied_must
    queries = cannot.pairs[~contains(denied_cannot, cannot.keys)] if len(denied_cannot) else cannot.pairs
    chained = queries[joined(must.pairs, codes, queries, n_rows)]
    if codes is not None and must.size:
        clashes, _ = label_clashes(must.pairs, codes)
        keys = encode(clashes[:, 0], clashes[:, 1])
        chained_keys = np.union1d(encode(chained[:, 0], chained[:, 1]), keys[~contains(direct, keys)])
        chained = decode(chained_keys)
    return Conflicts(decode(direct), chained, must.pairs, codes, n_rows)


def settle(
    must: PairTable, cannot: PairTable, codes: IntArray | None, n_rows: int, policy: OnConflict
) -> tuple[PairTable, PairTable]:
    """Raise, warn or drop, as `policy` says; returns the pairs to keep."""
    check_policy(policy)
    nothing_to_deny = not must.size or not cannot.size if codes is None else not must.size and not cannot.size
    if nothing_to_deny:
        return must, cannot
    if policy == "drop":
        return _without_conflicts(must, cannot, codes, n_rows)
    found = find_conflicts(must, cannot, codes, n_rows)
    if len(found.direct):
        first, second = found.direct[0].tolist()
        about = "a pair and the labels disagree" if codes is not None else "both sets name it"
        raise_or_warn(
            f"{counted(len(found.direct), 'pair')} must-linked and cannot-linked at once ({about}), "
            f"for example ({first}, {second})",
            error=policy != "warn",
        )
    if len(found.chained):
        example = found[len(found.direct)]
        raise_or_warn(
            f"{counted(len(found.chained), 'cannot-link')} contradicted by a chain of must-links, "
            f"for example {example.pair} by {_shown(example.chain)}",
            error=policy == "raise",
        )
    return must, cannot


def _without_conflicts(
    must: PairTable, cannot: PairTable, codes: IntArray | None, n_rows: int
) -> tuple[PairTable, PairTable]:
    denied_must, denied_cannot = direct_conflicts(must, cannot, codes)
    if len(denied_must):
        must = must.select(~contains(denied_must, must.keys))
    if len(denied_cannot):
        cannot = cannot.select(~contains(denied_cannot, cannot.keys))
    if codes is not None and must.size:
        _, clashing = label_clashes(must.pairs, codes)
        must = must.select(~clashing)
    return must, cannot.select(~joined(must.pairs, codes, cannot.pairs, n_rows))


def raise_or_warn(message: str, *, error: bool) -> None:
    if error:
        raise ConflictError(
            message, "Take back one of the statements, or choose on_conflict='warn' or on_conflict='drop'."
        )
    warn_user(f"{message}. on_conflict='drop' leaves them out, on_conflict='raise' stops at them.", ConflictWarning)


def check_policy(policy: Any) -> None:
    if policy is not None and policy not in _POLICIES:
        raise ValueError(f"on_conflict must be one of {', '.join(map(repr, _POLICIES))} or None, got {policy!r}")


def counted(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count:,} {what}s are"


def _shown(rows: tuple[int, ...]) -> str:
    if len(rows) > _SHOWN_CHAIN:
        half = _SHOWN_CHAIN // 2
        start, end = (" - ".join(map(str, part)) for part in (rows[:half], rows[-half:]))
        return f"{start} - ... ({len(rows) - 2 * half} more) ... - {end}"
    return " - ".join(map(str, rows))


def find_cycles(pairs: IntArray) -> list[tuple[int, ...]]:
    """Preferences that go round in a circle: of rows that reach one another, the shortest through the first of them.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2)
        Each the better row and the worse one.
    """
    rows, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(-1, 2)
    graph = _one_way_graph(ends, len(rows))
    component = csgraph.connected_components(graph, connection="strong")[1]
    inside = ends[component[ends[:, 0]] == component[ends[:, 1]]]
    # The pairs of one component after another.
    order = np.argsort(component[inside[:, 0]], kind="stable")
    inside = inside[order]
    borders = np.flatnonzero(np.diff(component[inside[:, 0]])) + 1
    found = [rows[_shortest(part)] for part in np.split(inside, borders)] if len(inside) else []
    return sorted(tuple(cycle.tolist()) for cycle in found)


def _shortest(pairs: IntArray) -> IntArray:
    """The shortest circle through the first row of pairs of which each lies on some circle."""
    rows, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(-1, 2)
    reached, before = csgraph.breadth_first_order(_one_way_graph(ends, len(rows)), 0)
    back = np.zeros(len(rows), dtype=bool)
    back[ends[ends[:, 1] == 0, 0]] = True
    # Rows are reached in the order of their distance, so the first that leads back closes the shortest circle.
    row = int(reached[back[reached].argmax()])
    cycle = [row]
    while row != 0:
        row = int(before[row])
        cycle.append(row)
    return np.asarray(rows[cycle[::-1]])


def _one_way_graph(ends: IntArray, n: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))
