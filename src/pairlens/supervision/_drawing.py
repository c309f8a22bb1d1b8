"""Drawing comparisons at random: from labels, or of any rows to be answered by a distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.supervision._inputs import regular_array
from pairlens.supervision._pairs import IntArray, canonical, decode, group_rows
from pairlens.supervision._sampling import all_or_drawn, draw_distinct, triangle

Draw = Callable[[int], tuple[IntArray, IntArray]]


def triplets_of_labels(codes: IntArray, n_triplets: int | None, rng: np.random.Generator) -> IntArray:
    """All triplets (a, near, far) with near in the class of a and far in another, or some of them."""
    order, start, size = group_rows(codes)
    others = len(order) - size
    ends = np.cumsum(size * (size - 1) * others)
    total = int(ends[-1]) if len(ends) else 0
    drawn = all_or_drawn(total, n_triplets, rng, name="n_triplets", what="triplet", source="labels")
    group = np.searchsorted(ends, drawn, side="right")
    local = drawn - (ends - size * (size - 1) * others)[group]
    a, rest = np.divmod(local, ((size - 1) * others)[group])
    near, far = np.divmod(rest, others[group])
    near += near >= a
    far += np.where(far >= start[group], size[group], 0)
    return np.column_stack([order[start[group] + a], order[start[group] + near], order[far]])


def quadruplets_of_labels(codes: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """Distinct quadruplets of a pair inside a class and a pair between two."""
    order, start, size = group_rows(codes)
    others = len(order) - size
    inside, across = np.cumsum(size * (size - 1) // 2), np.cumsum(size * others)
    if not len(size) or inside[-1] == 0 or across[-1] == 0:
        raise ValueError("y must have two rows of one label and two rows of different labels")

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

    return _distinct_pairs(draw, count, int(inside[-1]) * (int(across[-1]) // 2), rng)


def draw_triplets(n_samples: int, count: int, rng: np.random.Generator) -> IntArray:
    """Distinct triplets of three different rows; which of the last two is nearer is left open."""
    pairs = (n_samples - 1) * (n_samples - 2) // 2
    if count > n_samples * pairs:
        raise ValueError(f"n_triplets={count} exceeds the {n_samples * pairs} distinct triplets of {n_samples} rows")
    a, rest = np.divmod(draw_distinct(n_samples * pairs, count, rng), max(pairs, 1))
    i, j = triangle(rest)
    return np.column_stack([a, i + (i >= a), j + (j >= a)])


def draw_quadruplets(n_samples: int, count: int, rng: np.random.Generator) -> IntArray:
    """Distinct quadruplets of two different pairs; which of the pairs is closer is left open."""
    pairs = n_samples * (n_samples - 1) // 2

    def draw(n: int) -> tuple[IntArray, IntArray]:
        one, other = rng.integers(max(pairs, 1), size=(2, n))
        # Each set of two pairs once.
        different = one < other
        first, second = triangle(one[different]), triangle(other[different])
        return canonical(*first), canonical(*second)

    return _distinct_pairs(draw, count, pairs * (pairs - 1) // 2, rng)


def _distinct_pairs(draw: Draw, count: int, population: int, rng: np.random.Generator) -> IntArray:
    """As many distinct combinations of two pairs as asked for, as rows of four."""
    if count > population:
        raise ValueError(f"n_quadruplets={count} exceeds the {population} distinct quadruplets there are")
    found = np.empty((0, 2), dtype=np.int64)
    while len(found) < count:
        found = np.unique(np.concatenate([found, np.column_stack(draw(2 * (count - len(found)) + 16))]), axis=0)
    if len(found) > count:
        # They are sorted, so the first of them would not be a fair choice.
        found = found[rng.choice(len(found), count, replace=False)]
    return np.column_stack([decode(found[:, 0]), decode(found[:, 1])])


def answered(
    X: ArrayLike,
    metric: str | Callable[..., float],
    draw: Callable[[int], IntArray],
    pairs_of: Callable[[IntArray], tuple[IntArray, IntArray]],
    opposite: Callable[[IntArray], IntArray],
) -> tuple[IntArray, int]:
    """Comparisons that `draw` makes for the number of rows, turned as distances say; and the number of rows."""
    rows = regular_array(X, name="X")
    if rows.ndim != 2:
        raise ValueError(f"X must have two dimensions, got the shape {rows.shape}")
    if metric == "precomputed" and rows.shape[0] != rows.shape[1]:
        raise ValueError(f"X must be a square matrix of distances for metric='precomputed', got {rows.shape}")
    drawn = draw(len(rows))
    near, far = (_distances(rows, metric, pairs) for pairs in pairs_of(drawn))
    turned = np.where((far < near)[:, None], opposite(drawn), drawn)
    return turned[near != far], len(rows)


def _distances(rows: NDArray[Any], metric: str | Callable[..., float], pairs: IntArray) -> NDArray[np.float64]:
    first, second = decode(pairs).T
    if metric == "precomputed":
        return np.asarray(rows[first, second], dtype=np.float64)
    from sklearn.metrics.pairwise import paired_distances

    return np.asarray(paired_distances(rows[first], rows[second], metric=metric)) if len(first) else np.empty(0)
