"""Slow and obvious versions of what pairlens.supervision does, on Python sets and dictionaries."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import strategies as st

from pairlens.exceptions import ArgumentError
from pairlens.supervision import Constraints, Preferences

Pair = tuple[int, int]
Weights = dict[Pair, float]


def refused(call: Callable[[], Any]) -> tuple[str, Any]:
    """The argument and the value that an ArgumentError names."""
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.reason
    assert str(caught.value)
    return caught.value.argument, caught.value.value


def weights_of(constraints: Constraints) -> tuple[Weights, Weights]:
    """Every pair with its weight, read from the public attributes."""
    return (
        dict(zip(map(tuple, constraints.must_link.tolist()), constraints.must_link_weight.tolist())),
        dict(zip(map(tuple, constraints.cannot_link.tolist()), constraints.cannot_link_weight.tolist())),
    )


def preference_weights(preferences: Preferences) -> Weights:
    return dict(zip(map(tuple, preferences.pairs.tolist()), preferences.weight.tolist()))


def ordered(pair: Sequence[int]) -> Pair:
    return (min(pair), max(pair))


def added_up(pairs: Iterable[Sequence[int]], weights: Iterable[float] | None = None) -> Weights:
    pairs = list(pairs)
    total: Weights = defaultdict(float)
    for pair, weight in zip(pairs, [1.0] * len(pairs) if weights is None else weights):
        total[ordered(pair)] += weight
    return {pair: weight for pair, weight in total.items() if weight > 0}


def implied(labels: Sequence[Any]) -> tuple[Weights, Weights]:
    """The pairs that labels imply; -1 is unlabelled."""
    must, cannot = {}, {}
    for i, j in combinations(range(len(labels)), 2):
        if labels[i] != -1 and labels[j] != -1:
            (must if labels[i] == labels[j] else cannot)[i, j] = 1.0
    return must, cannot


def sum_of(left: Weights, right: Weights) -> Weights:
    return {pair: left.get(pair, 0.0) + right.get(pair, 0.0) for pair in left.keys() | right.keys()}


def sliced(weights: Weights, rows: Sequence[int], *, directed: bool = False) -> Weights:
    """The pairs among `rows` by looking at every two positions."""
    found = {}
    for i in range(len(rows)):
        for j in range(len(rows)):
            pair = (rows[i], rows[j])
            if i != j and pair in weights:
                found[(i, j) if directed else ordered((i, j))] = weights[pair]
    return found


def groups_of(n_rows: int, links: Iterable[Pair]) -> list[int]:
    """Component of every row by union-find."""
    parent = list(range(n_rows))

    def root(row: int) -> int:
        while parent[row] != row:
            row = parent[row]
        return row

    for i, j in links:
        parent[max(root(i), root(j))] = min(root(i), root(j))
    return [root(row) for row in range(n_rows)]


def distance(links: Iterable[Pair], start: int, end: int) -> int | None:
    """Number of links on the shortest way."""
    neighbours = defaultdict(set)
    for i, j in links:
        neighbours[i].add(j)
        neighbours[j].add(i)
    steps = {start: 0}
    queue = deque([start])
    while queue:
        row = queue.popleft()
        for other in neighbours[row] - steps.keys():
            steps[other] = steps[row] + 1
            queue.append(other)
    return steps.get(end)


def closed(must: Weights, cannot: Weights, n_rows: int) -> tuple[Weights, Weights]:
    group = groups_of(n_rows, must)
    apart = {ordered((group[i], group[j])) for i, j in cannot if group[i] != group[j]}
    new_must, new_cannot = {}, {}
    for i, j in combinations(range(n_rows), 2):
        if group[i] == group[j]:
            new_must[i, j] = must.get((i, j), 1.0)
        elif ordered((group[i], group[j])) in apart:
            new_cannot[i, j] = cannot.get((i, j), 1.0)
    return new_must, new_cannot


N_ROWS = 9

pairs = st.lists(
    st.tuples(st.integers(0, N_ROWS - 1), st.integers(0, N_ROWS - 1)).filter(lambda pair: pair[0] != pair[1]),
    max_size=14,
)
# Eighths add up exactly in any order.
weights = st.integers(0, 24).map(lambda eighths: eighths / 8)
labels = st.lists(st.integers(-1, 2), min_size=N_ROWS, max_size=N_ROWS)


@st.composite
def constraints(draw: st.DrawFn, *, labelled: bool | None = None, known: bool = True) -> Constraints:
    """Constraints over N_ROWS rows, contradictory or not, with or without labels."""
    must, cannot = draw(pairs), draw(pairs)
    cannot = [pair for pair in cannot if ordered(pair) not in {ordered(other) for other in must}]
    made = Constraints(
        must,
        cannot,
        N_ROWS if known else None,
        must_link_weight=draw(st.none() | st.lists(weights, min_size=len(must), max_size=len(must))),
        cannot_link_weight=draw(st.none() | st.lists(weights, min_size=len(cannot), max_size=len(cannot))),
        on_conflict="warn",
    )
    if labelled or (labelled is None and draw(st.booleans())):
        return Constraints.from_labels(draw(labels)).merge(made, on_conflict="warn")
    return made
