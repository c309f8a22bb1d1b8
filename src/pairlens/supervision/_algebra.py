"""Operations on whole tables of pairs: graphs, closure, sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.supervision._inputs import regular_array
from pairlens.supervision._pairs import (
    FloatArray,
    IntArray,
    PairTable,
    canonical,
    check_not_too_many,
    decode,
    distinct,
    from_keys,
    group_rows,
    pairs_between,
    pairs_within,
)


def symmetric(table: PairTable, n_rows: int) -> sparse.csr_array:
    first, second = table.pairs.T
    graph = sparse.coo_array(
        (np.tile(table.weights, 2), (np.concatenate([first, second]), np.concatenate([second, first]))),
        shape=(n_rows, n_rows),
    )
    return graph.tocsr()


def table_of(matrix: Any) -> tuple[PairTable, PairTable, int]:
    """Positive and negative entries of a symmetric matrix, or of one triangle of it, and its size."""
    given = matrix if sparse.issparse(matrix) else regular_array(matrix, name="matrix")
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ValueError(f"matrix must be square, one row and one column per row of X; got {given.shape}")
    if given.dtype.kind not in "biuf":
        raise ValueError(f"matrix must hold real numbers, got {given.dtype}")
    entries = sparse.coo_array(given)
    with np.errstate(over="ignore"):
        entries.sum_duplicates()
    first, second = entries.row.astype(np.int64), entries.col.astype(np.int64)
    values = entries.data.astype(np.float64)
    if not np.isfinite(values).all():
        k = int((~np.isfinite(values)).argmax())
        raise ValueError(f"matrix[{first[k]}, {second[k]}] is {values[k]}: entries must be finite")
    kept = values != 0
    first, second, values = first[kept], second[kept], values[kept]
    if (first == second).any():
        row = first[(first == second).argmax()]
        raise ValueError(f"matrix[{row}, {row}] must be 0: a row cannot be paired with itself")
    upper = first < second
    keys = canonical(first, second)
    if upper.any() and not upper.all():
        _check_symmetric(keys, values, upper)
        keys, values = keys[upper], values[upper]
    must = values > 0
    return from_keys(keys[must], values[must]), from_keys(keys[~must], -values[~must]), int(entries.shape[0])


def _check_symmetric(keys: IntArray, values: FloatArray, upper: NDArray[np.bool_]) -> None:
    def ordered(part: NDArray[np.bool_]) -> tuple[IntArray, FloatArray]:
        order = np.argsort(keys[part])
        return keys[part][order], values[part][order]

    (above, above_values), (below, below_values) = ordered(upper), ordered(~upper)
    if np.array_equal(above, below) and np.array_equal(above_values, below_values):
        return
    alone = np.setxor1d(above, below)
    key = int(alone[0]) if len(alone) else int(above[(above_values != below_values).argmax()])
    i, j = divmod(key, 2**32)
    raise ValueError(f"matrix must be symmetric or hold one triangle only: [{i}, {j}] and [{j}, {i}] are not the same")


def close_must(given: PairTable, part: IntArray) -> PairTable:
    """All pairs inside the components `part`; given pairs keep their weight, new ones weigh 1."""
    order, start, size = group_rows(part)
    check_not_too_many(
        int((size * (size - 1) // 2).sum()),
        what="the closure of the must-links",
        remedy="use chunklets(), which holds the same knowledge",
    )
    return _with_weights_of(given, pairs_within(order, start, size))


def close_cannot(given: PairTable, part: IntArray) -> tuple[PairTable, int]:
    """All pairs between components that a cannot-link joins, and the number of cannot-links inside one."""
    left, right = part[given.pairs].T
    inside = left == right
    blocks = distinct(canonical(left[~inside], right[~inside]))
    one, other = decode(blocks).T
    order, start, size = group_rows(part)
    check_not_too_many(
        int((size[one] * size[other]).sum()),
        what="the closure of the cannot-links",
        remedy="use chunklets() and the cannot-links themselves, which hold the same knowledge",
    )
    return _with_weights_of(given, pairs_between(order, start, size, one, other)), int(inside.sum())


def _with_weights_of(given: PairTable, keys: IntArray) -> PairTable:
    if given.weight is None:
        return from_keys(keys)
    weight = given.weight_at(keys)
    return from_keys(keys, np.where(weight > 0, weight, 1.0))
