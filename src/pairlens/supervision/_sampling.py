"""Drawing distinct pairs at random, in memory of the order of what is drawn."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from pairlens._sklearn import as_generator
from pairlens.supervision._pairs import (
    IntArray,
    canonical,
    check_count,
    check_not_too_many,
    contains,
    distinct,
    group_rows,
)


def check_fraction(fraction: Any, *, zero: bool = False) -> float:
    low = "[0" if zero else "(0"
    if not isinstance(fraction, numbers.Real):
        raise ValueError(f"fraction must be a number in {low}, 1], got {fraction!r}")
    value = float(fraction)
    if not (0 <= value <= 1) or (value == 0 and not zero):
        raise ValueError(f"fraction must lie in {low}, 1], got {fraction!r}")
    return value


def all_or_drawn(total: int, count: Any, random_state: Any, *, name: str, what: str, source: str) -> IntArray:
    """The numbers of all `total` answers that a source implies, or of `count` of them; `name` is the parameter."""
    if count is None:
        check_not_too_many(total, what=f"what these {source} imply", remedy=f"draw some of them with {name}")
        return np.arange(total)
    wanted = check_count(count, name=name, least=0)
    if wanted > total:
        raise ValueError(f"{name}={wanted} exceeds the {total} distinct {what}s that the {source} imply")
    return draw_distinct(total, wanted, as_generator(random_state))


def draw_distinct(population: int, count: int, rng: np.random.Generator) -> IntArray:
    """A uniformly random set of `count` numbers below `population`, sorted."""
    if count <= population // 2:
        return _draw_by_rejection(population, count, rng)
    # Rejection would have to wait for the last few: draw what is left out instead.
    kept = np.ones(population, dtype=bool)
    kept[_draw_by_rejection(population, population - count, rng)] = False
    return np.flatnonzero(kept)


def _draw_by_rejection(population: int, count: int, rng: np.random.Generator) -> IntArray:
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        missing = count - len(drawn)
        more = rng.integers(population, size=missing + missing // 4 + 16, dtype=np.int64)
        drawn = distinct(np.concatenate([drawn, more]))
    if len(drawn) > count:
        drawn = np.sort(rng.permutation(drawn)[:count])
    return drawn


def triangle(index: IntArray) -> tuple[IntArray, IntArray]:
    """Number the pairs i < j as (0, 1), (0, 2), (1, 2), (0, 3), ... and give i and j for numbers in it."""
    j = (np.sqrt(2.0 * index + 0.25) + 0.5).astype(np.int64)
    # The square root of numbers near 2**53 and above is off by one now and then.
    j -= j * (j - 1) // 2 > index
    j += (j + 1) * j // 2 <= index
    return index - j * (j - 1) // 2, j


def draw_per_class(codes: IntArray, per_class: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Keys of `per_class` must-links inside each class and of as many cannot-links with one end in it."""
    order, start, size = group_rows(codes)
    must: list[IntArray] = []
    cannot: list[IntArray] = []
    partner: list[IntArray] = []
    # The classes with the fewest cannot-links to choose from choose first.
    for label in np.argsort(size * (len(order) - size), kind="stable"):
        own, first = int(size[label]), int(start[label])
        possible = own * (own - 1) // 2
        i, j = triangle(draw_distinct(possible, min(per_class, possible), rng))
        must.append(canonical(order[first + i], order[first + j]))

        others = len(order) - own
        # Pairs that another class drew are taken: draw as many more, and leave out those.
        taken = np.sort(
            np.concatenate([np.empty(0, dtype=np.int64), *(k[p == label] for k, p in zip(cannot, partner))])
        )
        possible = own * others
        inside, outside = np.divmod(draw_distinct(possible, min(per_class + len(taken), possible), rng), max(others, 1))
        outside += np.where(outside >= first, own, 0)
        keys = canonical(order[first + inside], order[outside])
        free = np.flatnonzero(~contains(taken, keys))
        free = free[draw_distinct(len(free), min(per_class, len(free)), rng)]
        cannot.append(keys[free])
        partner.append(codes[order[outside[free]]])
    none = np.empty(0, dtype=np.int64)
    across = np.concatenate([none, *cannot])
    possible = (len(order) ** 2 - int((size**2).sum())) // 2
    if len(across) < min(per_class * len(size), possible):
        across = _draw_by_allotment(order, start, size, per_class, rng)
    return np.concatenate([none, *must]), across


def _draw_by_allotment(
    order: IntArray, start: IntArray, size: IntArray, per_class: int, rng: np.random.Generator
) -> IntArray:
    """Keys of cannot-links where pairs are scarce and one class may draw what only another could use.

    A maximum flow from the classes, each asking for `per_class`, to the pairs of classes, each with the capacity of its
    pairs of rows, says how many to draw of each.
    """
    left, right = np.triu_indices(len(size), 1)
    classes = 1 + np.arange(len(size))
    blocks = 1 + len(size) + np.arange(len(left))
    sink = 1 + len(size) + len(left)
    most = int(np.iinfo(np.int32).max)
    capacity = np.minimum(size[left] * size[right], most)
    graph = sparse.csr_array(
        (
            np.concatenate([np.full(len(classes), min(per_class, most)), capacity, capacity, capacity]).astype(
                np.int32
            ),
            (
                np.concatenate([np.zeros(len(classes)), classes[left], classes[right], blocks]).astype(np.int32),
                np.concatenate([classes, blocks, blocks, np.full(len(blocks), sink)]).astype(np.int32),
            ),
        ),
        shape=(sink + 1, sink + 1),
    )
    amount = csgraph.maximum_flow(graph, 0, sink).flow.tocsc()[:, [sink]].toarray()[blocks, 0]
    drawn = []
    for block in np.flatnonzero(amount):
        one, other = left[block], right[block]
        index = draw_distinct(int(size[one] * size[other]), int(amount[block]), rng)
        i, j = np.divmod(index, size[other])
        drawn.append(canonical(order[start[one] + i], order[start[other] + j]))
    return np.concatenate(drawn)
