"""Draw distinct pairs and comparisons at random, in memory of the order of what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from pairlens._sklearn import as_generator
from pairlens.exceptions import ArgumentError
from pairlens.supervision.inputs import check_count
from pairlens.supervision.pairs import (
    IntArray,
    canonical,
    check_listable,
    contains,
    decode,
    distinct,
    group_rows,
)


def all_or_drawn(total: int, count: Any, random_state: Any, *, name: str, what: str) -> IntArray:
    """Return the numbers of all `total` answers that y implies, or of `count` of them; `name` is the parameter."""
    if count is None:
        check_listable(total, "y", f"Draw fewer {what} with {name}")
        return np.arange(total)
    wanted = check_count(count, name, least=0, most=total, of=f"distinct {what} that y implies")
    return draw_distinct(total, wanted, as_generator(random_state))


def draw_distinct(population: int, count: int, rng: np.random.Generator) -> IntArray:
    """Draw a uniformly random set of `count` numbers below `population`, sorted."""
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
    """Return the pairs i < j of these numbers, where (0, 1), (0, 2), (1, 2), (0, 3), ... are numbered from 0 on."""
    j = (np.sqrt(2.0 * index + 0.25) + 0.5).astype(np.int64)
    # The square root of numbers near 2**53 and above is off by one now and then.
    j -= j * (j - 1) // 2 > index
    j += (j + 1) * j // 2 <= index
    return index - j * (j - 1) // 2, j


def draw_per_class(codes: IntArray, per_class: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw the keys of `per_class` must-links inside each class and of as many cannot-links with one end in it."""
    order, start, size = group_rows(codes)
    must: list[IntArray] = []
    cannot: list[IntArray] = []
    partner: list[IntArray] = []
    none = np.empty(0, dtype=np.int64)
    # The classes with the fewest cannot-links to choose from choose first.
    for label in np.argsort(size * (len(order) - size), kind="stable"):
        own, first = int(size[label]), int(start[label])
        possible = own * (own - 1) // 2
        i, j = triangle(draw_distinct(possible, min(per_class, possible), rng))
        must.append(canonical(order[first + i], order[first + j]))

        others = len(order) - own
        # Pairs that another class drew are taken: draw as many more, and leave out those.
        taken = np.sort(np.concatenate([none, *(k[p == label] for k, p in zip(cannot, partner))]))
        possible = own * others
        inside, outside = np.divmod(draw_distinct(possible, min(per_class + len(taken), possible), rng), max(others, 1))
        outside += np.where(outside >= first, own, 0)
        keys = canonical(order[first + inside], order[outside])
        free = np.flatnonzero(~contains(taken, keys))
        free = free[draw_distinct(len(free), min(per_class, len(free)), rng)]
        cannot.append(keys[free])
        partner.append(codes[order[outside[free]]])
    across = np.concatenate([none, *cannot])
    possible = (len(order) ** 2 - int((size**2).sum())) // 2
    if len(across) < min(per_class * len(size), possible):
        across = _draw_by_allotment(order, start, size, per_class, rng)
    return np.concatenate([none, *must]), across


def _draw_by_allotment(
    order: IntArray, start: IntArray, size: IntArray, per_class: int, rng: np.random.Generator
) -> IntArray:
    """Draw the keys of cannot-links where pairs are scarce and one class may draw what only another could use.

    A maximum flow from the classes, each asking for `per_class`, to the pairs of classes, each with the capacity of its
    pairs of rows, gives the number to draw of each.
    """
    left, right = np.triu_indices(len(size), 1)
    classes = 1 + np.arange(len(size))
    blocks = 1 + len(size) + np.arange(len(left))
    sink = 1 + len(size) + len(left)
    most = int(np.iinfo(np.int32).max)
    capacity = np.minimum(size[left] * size[right], most)
    wanted = np.full(len(classes), min(per_class, most))
    source = np.concatenate([np.zeros(len(classes)), classes[left], classes[right], blocks])
    target = np.concatenate([classes, blocks, blocks, np.full(len(blocks), sink)])
    flow = np.concatenate([wanted, capacity, capacity, capacity])
    graph = sparse.csr_array(
        (flow.astype(np.int32), (source.astype(np.int32), target.astype(np.int32))), shape=(sink + 1, sink + 1)
    )
    amount = csgraph.maximum_flow(graph, 0, sink).flow.tocsc()[:, [sink]].toarray()[blocks, 0]
    drawn = []
    for block in np.flatnonzero(amount):
        one, other = left[block], right[block]
        index = draw_distinct(int(size[one] * size[other]), int(amount[block]), rng)
        i, j = np.divmod(index, size[other])
        drawn.append(canonical(order[start[one] + i], order[start[other] + j]))
    return np.concatenate(drawn)


def triplets_of_labels(codes: IntArray, n_triplets: int | None, rng: np.random.Generator) -> IntArray:
    """List or draw triplets (a, near, far) with near in the class of a and far in another."""
    order, start, size = group_rows(codes)
    others = len(order) - size
    ends = np.cumsum(size * (size - 1) * others)
    total = int(ends[-1]) if len(ends) else 0
    drawn = all_or_drawn(total, n_triplets, rng, name="n_triplets", what="triplets")
    group = np.searchsorted(ends, drawn, side="right")
    local = drawn - (ends - size * (size - 1) * others)[group]
    a, rest = np.divmod(local, ((size - 1) * others)[group])
    near, far = np.divmod(rest, others[group])
    near += near >= a
    far += np.where(far >= start[group], size[group], 0)
    return np.column_stack([order[start[group] + a], order[start[group] + near], order[far]])


def quadruplets_of_labels(codes: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """Draw distinct quadruplets of a pair inside a class and a pair between two."""
    order, start, size = group_rows(codes)
    others = len(order) - size
    inside, across = np.cumsum(size * (size - 1) // 2), np.cumsum(size * others)
    if not len(size) or inside[-1] == 0 or across[-1] == 0:
        raise ArgumentError("y", size.tolist(), "must have two rows of one label and two rows of different labels")

    def draw(n: int) -> tuple[IntArray, IntArray]:
        drawn = rng.integers(inside[-1], size=n)
        group = np.searchsorted(inside, drawn, side="right")
        i, j = triangle(drawn - (inside - size * (size - 1) // 2)[group])
        near = canonical(order[start[group] + i], order[start[group] + j])
        drawn = rng.integers(across[-1], size=n)
        group = np.searchsorted(across, drawn, side="right")
        one, other = np.divmod(drawn - (across - size * others)[group], others[group])
        other += np.where(other >= start[group], size[group], 0)
        return near, canonical(order[start[group] + one], order[other])

    most = int(inside[-1]) * (int(across[-1]) // 2)
    count = check_count(count, "n_quadruplets", least=0, most=most, of="distinct quadruplets that y implies")
    found = np.empty((0, 2), dtype=np.int64)
    while len(found) < count:
        found = np.unique(np.concatenate([found, np.column_stack(draw(2 * (count - len(found)) + 16))]), axis=0)
    if len(found) > count:
        # They are sorted, so the first of them would not be a fair choice.
        found = found[rng.choice(len(found), count, replace=False)]
    return np.column_stack([decode(found[:, 0]), decode(found[:, 1])])
