"""Follow chains of must-links and circles of preferences: groups, transitive closure, and contradictions.

All rows of one class are linked. For connectivity a class is therefore one node; for finding a chain it is a star, an
extra node tied to each of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from pairlens._warnings import warn_user
from pairlens.exceptions import ArgumentError, ConflictError, ConflictWarning
from pairlens.supervision import pairs as packed
from pairlens.supervision.pairs import AnswerTable, FloatArray, IntArray

OnConflict = Literal["raise", "warn", "drop"] | None

_POLICIES = get_args(get_args(OnConflict)[0])
_SHOWN_CHAIN = 8


class Conflict(NamedTuple):
    """Hold one contradiction: a pair of rows that is both cannot-linked and joined by must-links.

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
    """Hold the contradictions among constraints; the chain of each is computed on access.

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
        self.direct = packed.freeze(direct)
        self.chained = packed.freeze(chained)
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
        return Conflict((first, second), self._chain(first, second), False)

    def _chain(self, start: int, end: int) -> tuple[int, ...]:
        if self._graph is None:
            self._graph = _chain_graph(self._must, self._codes, self._n_rows)
        # Neighbours in this sequence often start at the same row.
        if self._latest is None or self._latest[0] != start:
            if self._graph.shape[0] == self._n_rows:
                before = csgraph.breadth_first_order(self._graph, start, directed=False)[1]
            else:
                before = csgraph.dijkstra(self._graph, directed=False, indices=start, return_predecessors=True)[1]
            self._latest = (start, before)
        steps = [end]
        while steps[-1] != start:
            steps.append(int(self._latest[1][steps[-1]]))
        return tuple(step for step in reversed(steps) if step < self._n_rows)

    def __repr__(self) -> str:
        return f"Conflicts({len(self.direct)} direct, {len(self.chained)} chained)"


def component_ids(must: IntArray, codes: IntArray | None, n_rows: int) -> IntArray:
    """Return the component of every row under must-links and shared labels, numbered arbitrarily."""
    edges, n_nodes, node = _contracted(must, codes, n_rows)
    found = _components(edges, n_nodes)
    return found[:n_rows] if node is None else found[node]


def _joined(must: IntArray, codes: IntArray | None, queries: IntArray, n_rows: int) -> NDArray[np.bool_]:
    """Return which pairs of `queries` a chain of must-links and shared labels joins."""
    if not len(queries) or (not len(must) and codes is None):
        return np.zeros(len(queries), dtype=bool)
    edges, n_nodes, node = _contracted(must, codes, n_rows)
    ends = queries if node is None else node[queries]
    if 4 * len(edges) > n_nodes:
        found = _components(edges, n_nodes)[ends]
    else:
        # Few links among many rows: look only at the rows that occur.
        nodes, compact = np.unique(edges, return_inverse=True)
        found = -1 - ends
        if len(nodes):
            position = np.minimum(np.searchsorted(nodes, ends), len(nodes) - 1)
            members = _components(compact.reshape(-1, 2), len(nodes))
            found = np.where(nodes[position] == ends, members[position], found)
    return found[:, 0] == found[:, 1]


def _contracted(must: IntArray, codes: IntArray | None, n_rows: int) -> tuple[IntArray, int, IntArray | None]:
    """Return the edges, the number of nodes, and the node of every row (None if it is the row itself)."""
    if codes is None:
        return must, n_rows, None
    n_classes = int(codes.max(initial=-1)) + 1
    node = np.where(codes >= 0, codes, n_classes + np.arange(n_rows))
    return node[must], n_classes + n_rows, node


def _components(edges: IntArray, n_nodes: int) -> IntArray:
    if not len(edges):
        return np.arange(n_nodes)
    graph = _one_way(edges[:, 0], edges[:, 1], np.ones(len(edges)), n_nodes)
    return csgraph.connected_components(graph, directed=False)[1].astype(np.int64)


def _one_way(first: IntArray, second: IntArray, length: FloatArray, n_nodes: int) -> sparse.csr_array:
    """Return edges as a matrix in which each stands once, for algorithms told that they go both ways."""
    # csgraph works on contiguous 32-bit indices.
    source, target = (np.ascontiguousarray(ends, dtype=np.int32) for ends in (first, second))
    if (source[1:] >= source[:-1]).all():
        starts = np.searchsorted(source, np.arange(n_nodes + 1)).astype(np.int32)
        return sparse.csr_array((length, target, starts), shape=(n_nodes, n_nodes))
    return sparse.coo_array((length, (source, target)), shape=(n_nodes, n_nodes)).tocsr()


def _chain_graph(must: IntArray, codes: IntArray | None, n_rows: int) -> sparse.csr_array:
    """Return must-links as a graph, with a star of half-length edges for every class."""
    first, second = must.T
    length = np.ones(len(must))
    n_nodes = n_rows
    if codes is not None:
        rows = np.flatnonzero(codes >= 0)
        first = np.concatenate([first, rows])
        second = np.concatenate([second, n_rows + codes[rows]])
        length = np.concatenate([length, np.full(len(rows), 0.5)])
        n_nodes += int(codes.max(initial=-1)) + 1
    return _one_way(first, second, length, n_nodes)


def close_must(given: AnswerTable, part: IntArray) -> AnswerTable:
    """Return all pairs inside the components `part`; given pairs keep their weight, new ones weigh 1."""
    order, start, size = packed.group_rows(part)
    packed.check_listable(
        int((size * (size - 1) // 2).sum()), "must_link", "Use chunklets(), which holds the same groups"
    )
    return _with_weights_of(given, packed.pairs_within(order, start, size))


def close_cannot(given: AnswerTable, part: IntArray) -> tuple[AnswerTable, int]:
    """Return all pairs between components that a cannot-link joins, and the number of cannot-links inside one."""
    left, right = part[given.members].T
    inside = left == right
    one, other = packed.decode(packed.distinct(packed.canonical(left[~inside], right[~inside]))).T
    order, start, size = packed.group_rows(part)
    packed.check_listable(
        int((size[one] * size[other]).sum()), "cannot_link", "Use chunklets() and the cannot-links given"
    )
    return _with_weights_of(given, packed.pairs_between(order, start, size, one, other)), int(inside.sum())


def _with_weights_of(given: AnswerTable, keys: IntArray) -> AnswerTable:
    if given.weight is None:
        return packed.from_keys(keys)
    weight = given.weight_at(keys)
    return packed.from_keys(keys, np.where(weight > 0, weight, 1.0))


def find_conflicts(must: AnswerTable, cannot: AnswerTable, codes: IntArray | None, n_rows: int) -> Conflicts:
    """Find the pairs that are kept apart and joined, directly or through chains."""
    denied_must, denied_cannot = _direct_conflicts(must, cannot, codes)
    direct = np.union1d(denied_must, denied_cannot) if codes is not None else denied_must
    queries = cannot.members[~packed.contains(denied_cannot, cannot.keys)] if len(denied_cannot) else cannot.members
    chained = queries[_joined(must.members, codes, queries, n_rows)]
    if codes is not None and must.size:
        clashes, _ = _label_clashes(must.members, codes)
        keys = packed.encode(clashes[:, 0], clashes[:, 1])
        chained = packed.decode(
            np.union1d(packed.encode(chained[:, 0], chained[:, 1]), keys[~packed.contains(direct, keys)])
        )
    return Conflicts(packed.decode(direct), chained, must.members, codes, n_rows)


def _direct_conflicts(must: AnswerTable, cannot: AnswerTable, codes: IntArray | None) -> tuple[IntArray, IntArray]:
    """Return the keys of the must-links, and of the cannot-links, that a statement about the same pair denies."""
    must_keys, cannot_keys = must.keys, cannot.keys
    few, many = (must_keys, cannot_keys) if must.size <= cannot.size else (cannot_keys, must_keys)
    both = few[packed.contains(many, few)]
    if codes is None:
        return both, both
    left, right = codes[must.members].T
    must_bad = must_keys[(left >= 0) & (right >= 0) & (left != right)]
    left, right = codes[cannot.members].T
    cannot_bad = cannot_keys[(left >= 0) & (left == right)]
    return np.union1d(both, must_bad), np.union1d(both, cannot_bad)


def _label_clashes(must: IntArray, codes: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Find chains of must-links that join rows of different classes.

    Returns the pairs (first labelled row of the component, row of another class in it), and which of `must`
    belong to such a component.
    """
    part = component_ids(must, None, len(codes))
    rows = packed.distinct(must)
    rows = rows[codes[rows] >= 0]
    parts, first = np.unique(part[rows], return_index=True)
    lead = rows[first[np.searchsorted(parts, part[rows])]]
    differs = codes[lead] != codes[rows]
    pairs = np.column_stack([lead[differs], rows[differs]])
    return pairs, np.isin(part[must[:, 0]], part[pairs[:, 0]])


def settle(
    must: AnswerTable, cannot: AnswerTable, codes: IntArray | None, n_rows: int, policy: OnConflict
) -> tuple[AnswerTable, AnswerTable]:
    """Raise, warn or drop contradictions, as `policy` says; return the pairs to keep."""
    check_policy(policy)
    nothing_to_deny = not must.size or not cannot.size if codes is None else not must.size and not cannot.size
    if nothing_to_deny:
        return must, cannot
    if policy == "drop":
        return _without_conflicts(must, cannot, codes, n_rows)
    found = find_conflicts(must, cannot, codes, n_rows)
    if len(found.direct):
        pair = found[0].pair
        between = "both are given" if codes is None else "a pair and the labels disagree"
        reason = f"{counted(len(found.direct), 'pair')} must-linked and cannot-linked ({between}), for example {pair}"
        raise_or_warn("cannot_link", pair, reason, error=policy != "warn")
    if len(found.chained):
        example = found[len(found.direct)]
        reason = (
            f"{counted(len(found.chained), 'cannot-link')} contradicted by a chain of must-links, "
            f"for example {example.pair} by {_shown(example.chain)}"
        )
        raise_or_warn("cannot_link", example.pair, reason, error=policy == "raise")
    return must, cannot


def _without_conflicts(
    must: AnswerTable, cannot: AnswerTable, codes: IntArray | None, n_rows: int
) -> tuple[AnswerTable, AnswerTable]:
    denied_must, denied_cannot = _direct_conflicts(must, cannot, codes)
    if len(denied_must):
        must = must.select(~packed.contains(denied_must, must.keys))
    if len(denied_cannot):
        cannot = cannot.select(~packed.contains(denied_cannot, cannot.keys))
    if codes is not None and must.size:
        _, clashing = _label_clashes(must.members, codes)
        must = must.select(~clashing)
    return must, cannot.select(~_joined(must.members, codes, cannot.members, n_rows))


def raise_or_warn(argument: str, example: tuple[int, ...], reason: str, *, error: bool) -> None:
    """Report contradictory answers."""
    if error:
        remedy = "Remove one of the answers, or pass on_conflict='warn' or on_conflict='drop'"
        raise ConflictError(argument, example, reason, remedy)
    warn_user(f"{reason}. on_conflict='drop' leaves them out, on_conflict='raise' stops at them.", ConflictWarning)


def check_policy(policy: Any) -> None:
    """Raise ArgumentError if `policy` is not a value of ``on_conflict``."""
    if policy is not None and policy not in _POLICIES:
        raise ArgumentError("on_conflict", policy, f"must be one of {', '.join(map(repr, _POLICIES))} or None")


def counted(count: int, what: str) -> str:
    """Return "1 pair is" or "2 pairs are"."""
    return f"1 {what} is" if count == 1 else f"{count:,} {what}s are"


def _shown(rows: tuple[int, ...]) -> str:
    if len(rows) > _SHOWN_CHAIN:
        half = _SHOWN_CHAIN // 2
        start, end = (" - ".join(map(str, part)) for part in (rows[:half], rows[-half:]))
        return f"{start} - ... ({len(rows) - 2 * half} more) ... - {end}"
    return " - ".join(map(str, rows))


def find_cycles(pairs: IntArray) -> list[tuple[int, ...]]:
    """Find preferences (better, worse) that go round in a circle.

    Return, for each set of rows that reach one another, the shortest circle through the first of them.
    """
    rows, ends, graph = _preference_graph(pairs)
    component = csgraph.connected_components(graph, connection="strong")[1]
    inside = ends[component[ends[:, 0]] == component[ends[:, 1]]]
    # The pairs of one component after another.
    inside = inside[np.argsort(component[inside[:, 0]], kind="stable")]
    borders = np.flatnonzero(np.diff(component[inside[:, 0]])) + 1
    found = [rows[_shortest_cycle(part)] for part in np.split(inside, borders)] if len(inside) else []
    return sorted(tuple(cycle.tolist()) for cycle in found)


def _shortest_cycle(pairs: IntArray) -> IntArray:
    """Return the shortest circle through the first row of pairs of which each lies on some circle."""
    rows, ends, graph = _preference_graph(pairs)
    reached, before = csgraph.breadth_first_order(graph, 0)
    back = np.zeros(len(rows), dtype=bool)
    back[ends[ends[:, 1] == 0, 0]] = True
    # Rows are reached in the order of their distance, so the first that leads back closes the shortest circle.
    row = int(reached[back[reached].argmax()])
    cycle = [row]
    while row != 0:
        row = int(before[row])
        cycle.append(row)
    return np.asarray(rows[cycle[::-1]])


def _preference_graph(pairs: IntArray) -> tuple[IntArray, IntArray, sparse.csr_array]:
    """Return the rows that occur, the pairs as positions among them, and the graph with an edge for each pair."""
    rows, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(-1, 2)
    shape = (len(rows), len(rows))
    return rows, ends, sparse.csr_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=shape)
