"""What follows from must-links: who belongs together through chains, and what contradicts that.

Rows of one class are all linked. For connectivity a class is therefore one node; for finding a chain it is a
star, an extra node tied to each of its rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from pairlens.supervision._pairs import FloatArray, IntArray, PairTable, contains, distinct


def component_ids(must: IntArray, codes: IntArray | None, n_rows: int) -> IntArray:
    """The component of every row under must-links and shared labels, numbered arbitrarily."""
    edges, n_nodes, node = _contracted(must, codes, n_rows)
    found = _components(edges, n_nodes)
    return found[:n_rows] if node is None else found[node]


def joined(must: IntArray, codes: IntArray | None, queries: IntArray, n_rows: int) -> NDArray[np.bool_]:
    """Which pairs of `queries` a chain of must-links and shared labels joins."""
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
    """Edges as a matrix in which each stands once, for algorithms told that they go both ways."""
    # csgraph works on contiguous 32-bit indices.
    source, target = (np.ascontiguousarray(ends, dtype=np.int32) for ends in (first, second))
    if (source[1:] >= source[:-1]).all():
        starts = np.searchsorted(source, np.arange(n_nodes + 1)).astype(np.int32)
        return sparse.csr_array((length, target, starts), shape=(n_nodes, n_nodes))
    return sparse.coo_array((length, (source, target)), shape=(n_nodes, n_nodes)).tocsr()


def direct_conflicts(must: PairTable, cannot: PairTable, codes: IntArray | None) -> tuple[IntArray, IntArray]:
    """Keys of the must-links, and of the cannot-links, that a statement about the same pair denies."""
    must_keys, cannot_keys = must.keys, cannot.keys
    few, many = (must_keys, cannot_keys) if must.size <= cannot.size else (cannot_keys, must_keys)
    both = few[contains(many, few)]
    if codes is None:
        return both, both
    left, right = codes[must.pairs].T
    must_bad = must_keys[(left >= 0) & (right >= 0) & (left != right)]
    left, right = codes[cannot.pairs].T
    cannot_bad = cannot_keys[(left >= 0) & (left == right)]
    return np.union1d(both, must_bad), np.union1d(both, cannot_bad)


def label_clashes(must: IntArray, codes: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Chains of must-links that join rows of different classes.

    Returns the pairs (first labelled row of the component, row of another class in it), and which of `must`
    belong to such a component.
    """
    part = component_ids(must, None, len(codes))
    rows = distinct(must)
    rows = rows[codes[rows] >= 0]
    parts, first = np.unique(part[rows], return_index=True)
    lead = rows[first[np.searchsorted(parts, part[rows])]]
    differs = codes[lead] != codes[rows]
    pairs = np.column_stack([lead[differs], rows[differs]])
    return pairs, np.isin(part[must[:, 0]], part[pairs[:, 0]])


def chain_graph(must: IntArray, codes: IntArray | None, n_rows: int) -> sparse.csr_array:
    """Must-links as a graph, with a star of half-length edges for every class."""
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


def chains_from(graph: sparse.csr_array, start: int, n_rows: int) -> IntArray:
    """For every node the one before it on a shortest chain from `start`."""
    if graph.shape[0] == n_rows:
        return csgraph.breadth_first_order(graph, start, directed=False)[1]
    return csgraph.dijkstra(graph, directed=False, indices=start, return_predecessors=True)[1]


def chain(before: IntArray, start: int, end: int, n_rows: int) -> tuple[int, ...]:
    """The rows of a chain; class nodes on the way are skipped."""
    steps = [end]
    while steps[-1] != start:
        steps.append(int(before[steps[-1]]))
    return tuple(step for step in reversed(steps) if step < n_rows)
