"""Preferences that go round in a circle: a over b, b over c, c over a."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from pairlens.supervision._pairs import IntArray


def find_cycles(pairs: IntArray) -> list[tuple[int, ...]]:
    """For each set of rows that reach one another, the shortest circle through the first of them.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2)
        Each the better row and the worse one.
    """
    rows, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(-1, 2)
    graph = _graph(ends, len(rows))
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
    reached, before = csgraph.breadth_first_order(_graph(ends, len(rows)), 0)
    back = np.zeros(len(rows), dtype=bool)
    back[ends[ends[:, 1] == 0, 0]] = True
    # Rows are reached in the order of their distance, so the first that leads back closes the shortest circle.
    row = int(reached[back[reached].argmax()])
    cycle = [row]
    while row != 0:
        row = int(before[row])
        cycle.append(row)
    return np.asarray(rows[cycle[::-1]])


def _graph(ends: IntArray, n: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))
