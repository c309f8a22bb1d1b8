r"""Nearest rows in the projected kernel distance, and farthest rows in the input, in time that grows nearly as n.

Nearest: rows are put into cells by k-means (faiss) on Nystroem features of the kernel, out of which the differences of
must-linked rows are projected, so that the cells are compact in the projected distance. Each row is compared with all
rows of the few cells nearest to it, they with it, and all with all must-linked groups, the hubs of that space. The
comparison itself is exact; only cells that were not looked at can hide a neighbour. How many cells are looked at is
found from a sample of rows whose true neighbours are computed: as many as it takes to find :data:`WANTED_RECALL` of
them.

Farthest: few rows are far from many. Each row looks first at those that are among the farthest of a sample, then at
all others in descending order of distance from the centre c of the data. A row y that is not reached yet has
:math:`d(x, y) \le d(x, c) + d(c, y)`, so the search ends as soon as this is below the k-th distance found: an exact
result. It also ends after :data:`FAR_CANDIDATES` rows, which is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens._sklearn import as_generator
from pairlens.engines import (
    Index,
    LocalProjectedRows,
    ProjectedNeighbors,
    ProjectedScreen,
    Rows,
    blas_threads,
    column_means,
    evenly_spaced,
    one_blas_thread,
    pair_squared_distances,
    row_blocks,
    take_rows,
)
from pairlens.graphs.index import WANTED_RECALL, Float32
from pairlens.kernels.features import KernelFeatures, kernel_features
from pairlens.kernels.nullspace import feature_null_space, linked_sample

Found = tuple[Index, Index, Float32]

CELL_ROWS = 1024
"""Rows of a cell, on average."""
RECALL_SAMPLE = 256
"""Points of the sample in which recall is measured."""
MOST_PROBED = 64
"""Cells a row looks into at most."""
RANK = 256
"""Kernel features in which the cells are formed, besides one for each direction that is projected out."""
LANDMARKS = 1000
"""Rows that span the kernel features, at least."""
TRAINING_ROWS = 128
"""Rows that k-means sees for each cell."""
FAR_CANDIDATES = 4096
"""Rows, farthest from the centre of the data, that a row is compared with at most, besides the hubs."""
HUB_SAMPLE = 1000
HUB_LISTS = 4
"""Sampled rows, and the multiple of k farthest rows of each that all rows look at first, the hubs."""
SPARE = 4
"""Places beyond k that are kept until distances are computed precisely."""
RESOLUTION = 2.0**-36
"""Squared projected distances that agree to this are equal."""
TILE_ROWS = 4096
SAMPLED_PAIRS = 200_000
"""Pairs that estimate the largest projected distance, besides as many of the farthest ones."""


def approximate_neighbors(
    rows: LocalProjectedRows,
    k: int,
    *,
    random_state: Any = None,
    n_probe: int | None = None,
) -> ProjectedNeighbors:
    """What :meth:`LocalProjectedRows.neighbors` finds, nearly.

    Parameters
    ----------
    rows : LocalProjectedRows
    k : int
        Between 1 and n - 1.
    random_state : int, RandomState, Generator or None
        Seed of the cells.
    n_probe : int, optional
        Cells each row looks into: more find more of the true neighbours, in proportionally more time. By default as
        many as :data:`WANTED_RECALL` takes on a sample of rows, at most :data:`MOST_PROBED`.

    Notes
    -----
    Memory beyond X and F: about ``8 n (n_probe + 4 k + 30)`` bytes and some 200 MiB. The largest projected distance, by
    which weights are scaled, is that of 200,000 random pairs and as many pairs of far rows.
    """
    rng = as_generator(random_state)
    n_listed = min(k, rows.groups.n_groups - 1)
    listed, squared_projected = _nearest_points(rows, n_listed, n_probe, rng)
    farthest, squared = _farthest(rows.X, k)
    return ProjectedNeighbors(
        nearest=rows.groups.expand(rows.X, listed, np.rint(squared_projected / RESOLUTION), k),
        farthest=farthest,
        largest_projected=_largest_projected(rows, farthest, rng),
        largest_input=float(np.sqrt(squared.max())),
    )


@dataclass(frozen=True)
class _Cells:
    """Points (rows that represent a group) in cells.

    Attributes
    ----------
    probed : int32 array of shape (n_points, n_probe)
        Cells of each point, nearest first.
    free : bool array of shape (n_points,)
        Which points are in cells to be found there; the others are must-linked groups, which everybody looks at.
    """

    n_cells: int
    probed: NDArray[np.int32]
    free: NDArray[np.bool_]

    @classmethod
    def of(cls, screen: ProjectedScreen, k: int, n_probe: int | None, rng: np.random.Generator) -> _Cells:
        rows = screen.rows
        faiss = require("faiss", extra="ann", purpose='neighbors="approx" (neighbors="exact" does without)')
        points = rows.groups.first
        n_cells = max(1, points.size // CELL_ROWS)
        embed = _Embedding.of(rows)
        training = points[evenly_spaced(points.size, TRAINING_ROWS * n_cells)]
        kmeans = faiss.Kmeans(
            embed.width,
            n_cells,
            niter=8,
            seed=int(rng.integers(2**31)),
            min_points_per_centroid=1,
            max_points_per_centroid=2 * TRAINING_ROWS,
        )
        kmeans.train(embed(training))
        free = np.ones(points.size, dtype=bool)
        free[rows.groups.group[np.flatnonzero(rows.chunklets >= 0)]] = False

        def nearest_cells(those: Index, n: int) -> NDArray[np.int32]:
            found = np.empty((those.size, n), dtype=np.int32)
            for block in row_blocks(those.size, 4 * embed.width, 1 << 25):
                found[block] = kmeans.index.search(embed(points[those[block]]), n)[1]
            return found

        if n_probe is None:
            n_probe = _enough_cells(screen, np.flatnonzero(free), k, nearest_cells, min(MOST_PROBED, n_cells))
        return cls(n_cells, nearest_cells(np.arange(points.size), min(n_probe, n_cells)), free)

    def members(self) -> list[Index]:
        """The free points of each cell."""
        return [own[self.free[own]] for own in _by_value(self.probed[:, 0], self.n_cells)]

    def visitors(self) -> list[Index]:
        """The points that look into each cell, those that live there left out."""
        n_other = self.probed.shape[1] - 1
        if n_other == 0:
            return [np.empty(0, dtype=np.int64)] * self.n_cells
        return [place // n_other for place in _by_value(self.probed[:, 1:].ravel(), self.n_cells)]


def _enough_cells(
    screen: ProjectedScreen, free: Index, k: int, nearest_cells: Callable[[Index, int], NDArray[np.int32]], at_most: int
) -> int:
    """How many cells a point must look into, and be looked at from, to find most of its true neighbours."""
    if free.size <= k:
        return at_most
    points = screen.rows.groups.first
    sample = free[evenly_spaced(free.size, RECALL_SAMPLE)]
    strip = screen.strip(points[sample])
    lists = _Lists(sample.size, k)
    for part in row_blocks(free.size, 1, 16 * CELL_ROWS):
        others = free[part]
        keys, _ = strip(points[others])
        keys[sample[:, None] == others] = np.inf
        lists.merge(*lists.hits(np.arange(sample.size), others, keys))
    true = lists.index
    own, theirs = nearest_cells(sample, at_most), nearest_cells(true.ravel(), at_most).reshape(*true.shape, at_most)
    home, their_home = own[:, 0], theirs[:, :, 0]
    # Whether one of the two finds the other, by the number of cells that are looked into.
    seen = (own[:, None, :] == their_home[:, :, None]) | (theirs == home[:, None, None])
    recall = np.maximum.accumulate(seen, axis=2).mean(axis=(0, 1))
    return min(int(np.searchsorted(recall, WANTED_RECALL)) + 1, at_most)


def _by_value(values: NDArray[np.int32], n_values: int) -> list[Index]:
    """The places of each value."""
    order = np.argsort(values, kind="stable")
    return np.split(order, np.searchsorted(values[order], np.arange(1, n_values)))


@dataclass(frozen=True)
class _Embedding:
    """Nystroem features of the kernel without what must-linked rows differ in, in float32."""

    X: Rows
    features: KernelFeatures
    basis: NDArray[np.float64]

    @classmethod
    def of(cls, rows: LocalProjectedRows) -> _Embedding:
        # With no more features than directions to project out, nothing would be left to form cells by.
        rank = RANK + rows.F.shape[1]
        landmarks = rows.X[evenly_spaced(rows.n, max(LANDMARKS, 2 * rank))]
        features = kernel_features(landmarks, kernel="rbf", gamma=rows.gamma, rank=rank)
        linked = linked_sample(rows.chunklets)
        basis, _ = feature_null_space(features(rows.X[linked]), rows.chunklets[linked])
        return cls(rows.X, features, basis)

    @property
    def width(self) -> int:
        return int(self.features.combination.shape[1])

    def __call__(self, chosen: Index) -> Float32:
        result = np.empty((chosen.size, self.width), dtype=np.float32)
        for block in row_blocks(chosen.size, 8 * self.width):
            part = self.features(self.X[chosen[block]])
            result[block] = part - (part @ self.basis) @ self.basis.T
        return result


class _Lists:
    """The k best others of each point so far, by a key that is better when smaller."""

    def __init__(self, n: int, k: int) -> None:
        self.k = k
        self.index = np.full((n, k), -1, dtype=np.int64)
        self.key = np.full((n, k), np.inf, dtype=np.float32)
        self.worst = np.full(n, np.inf, dtype=np.float32)

    def hits(self, own: Index, others: Index, keys: NDArray[np.floating]) -> Found:
        """What is worth merging of a tile: the best of each row that beats what it has."""
        worst = self.worst[own]
        better = keys < np.where(np.isfinite(worst), worst, -np.inf)[:, None]
        lines, places = _nonzero(better)
        count = np.bincount(lines, minlength=own.size)
        count[np.isinf(worst)] = keys.shape[1]
        width = min(int(count.max(initial=0)), self.k)
        some = np.flatnonzero(count)
        index = np.full((some.size, width), -1, dtype=np.int64)
        key = np.full((some.size, width), np.inf, dtype=np.float32)
        line_of = np.cumsum(count > 0) - 1
        crowded = np.flatnonzero(count >= max(width, 1))
        if crowded.size:
            lots = keys[crowded]
            best = np.argpartition(lots, width - 1, axis=1)[:, :width]
            index[line_of[crowded]], key[line_of[crowded]] = others[best], np.take_along_axis(lots, best, axis=1)
        few = count[lines] < width
        lines, places = lines[few], places[few]
        within = np.arange(lines.size) - np.searchsorted(lines, lines)
        index[line_of[lines], within] = others[places]
        key[line_of[lines], within] = keys[lines, places]
        return own[some], index, key

    def merge(self, own: Index, others: Index, keys: Float32) -> None:
        """Take the best of what the lists of `own`, each once, hold and are offered; no row is listed twice."""
        mine = self.index[own]
        known = (others[:, :, None] == mine[:, None, :]).any(axis=2)
        index = np.concatenate([mine, others], axis=1)
        key = np.concatenate([self.key[own], np.where(known, np.float32(np.inf), keys)], axis=1)
        best = np.argpartition(key, self.k - 1, axis=1)[:, : self.k]
        key = np.take_along_axis(key, best, axis=1)
        self.index[own] = np.where(np.isfinite(key), np.take_along_axis(index, best, axis=1), -1)
        self.key[own] = key
        self.worst[own] = key.max(axis=1)


def _nonzero(true: NDArray[np.bool_]) -> tuple[Index, Index]:
    """Where a matrix is true, by rows; fast for transposed ones as well."""
    if true.flags.c_contiguous:
        rows, columns = np.nonzero(true)
        return rows, columns
    columns, rows = np.nonzero(true.T)
    order = np.argsort(rows, kind="stable")
    return rows[order], columns[order]


def _work(tasks: Iterable[Callable[[], list[Found]]], merge: Callable[[Index, Index, Float32], None]) -> None:
    """Run tasks on as many threads as BLAS may use, BLAS itself held to one, and merge what they find in order."""
    n_threads = blas_threads()
    running: deque[Future[list[Found]]] = deque()

    def absorb() -> None:
        for found in running.popleft().result():
            merge(*found)

    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        for task in tasks:
            running.append(pool.submit(task))
            if len(running) > n_threads:
                absorb()
        while running:
            absorb()


def _nearest_points(
    rows: LocalProjectedRows, k: int, n_probe: int | None, rng: np.random.Generator
) -> tuple[Index, NDArray[np.float64]]:
    """The groups nearest to each group, of those it looks at, and their squared projected distances."""
    points = rows.groups.first
    if k == 0:
        return np.empty((points.size, 0), dtype=np.int64), np.empty((points.size, 0))
    screen = ProjectedScreen(rows, np.float32, watch=False)
    cells = _Cells.of(screen, k, n_probe, rng)
    lists = _Lists(points.size, k + SPARE)

    def look(own: Index, others: Index, *, away: bool) -> Callable[[], list[Found]]:
        def task() -> list[Found]:
            keys, _ = screen.strip(points[own])(points[others])
            if not away:
                keys[own[:, None] == others] = np.inf
                return [lists.hits(own, others, keys)]
            found = lists.hits(own, others, keys)
            free = cells.free[own]
            back = (own, keys) if free.all() else (own[free], keys[free])
            return [found, lists.hits(others, back[0], back[1].T)]

        return task

    def tasks() -> Iterator[Callable[[], list[Found]]]:
        members, linked = cells.members(), np.flatnonzero(~cells.free)
        inhabitants = _by_value(cells.probed[:, 0], cells.n_cells)
        # Home cells first: they set bounds that most other cells fail.
        home = [*zip(inhabitants, members), (np.arange(points.size), linked)]
        for those, away in ((home, False), (zip(cells.visitors(), members), True)):
            for own, others in those:
                if others.size:
                    for part in row_blocks(own.size, 1, TILE_ROWS):
                        yield look(own[part], others, away=away)

    _work(tasks(), lists.merge)
    _fill(screen, points, lists)
    listed, distance = np.empty((points.size, k), dtype=np.int64), np.empty((points.size, k))
    for block in row_blocks(points.size, 8 * lists.k, 1 << 22):
        index = lists.index[block]
        own = np.repeat(np.arange(block.start, block.stop), lists.k)
        squared = rows.squared_distances(points[own], points[np.maximum(index, 0).ravel()]).reshape(index.shape)
        squared[index < 0] = np.inf
        best = np.lexsort((index, np.rint(squared / RESOLUTION)), axis=1)[:, :k]
        listed[block] = np.take_along_axis(index, best, axis=1)
        distance[block] = np.take_along_axis(squared, best, axis=1)
    return listed, distance


def _fill(screen: ProjectedScreen, points: Index, lists: _Lists) -> None:
    """Compare points that met too few others with an even choice of all."""
    short = np.flatnonzero(~np.isfinite(lists.worst))
    some = evenly_spaced(points.size, max(CELL_ROWS, 4 * lists.k))
    for part in row_blocks(short.size, 1, CELL_ROWS):
        own = short[part]
        keys, _ = screen.strip(points[own])(points[some])
        known = (lists.index[own][:, :, None] == some).any(axis=1)
        keys[known | (own[:, None] == some)] = np.inf
        lists.merge(*lists.hits(own, some, keys))


def _farthest(X: Rows, k: int) -> tuple[Index, NDArray[np.float64]]:
    """Rows farthest from each row, farthest first, and the squared distances."""
    n = X.shape[0]
    index = np.empty((n, k), dtype=np.int64)
    squared = np.empty((n, k))
    search = _FarSearch.of(X, k)

    def look(own: Index) -> Callable[[], list[Found]]:
        def task() -> list[Found]:
            index[own], squared[own] = search(own)
            return []

        return task

    # Rows that are about as far from the centre stop about as early.
    by_reach = np.argsort(search.from_centre, kind="stable")
    _work((look(by_reach[part]) for part in row_blocks(n, 1, TILE_ROWS)), lambda *_: None)
    return index, squared


@dataclass(frozen=True)
class _FarSearch:
    """Candidates in the order in which every row looks at them: the hubs first, then outer rows before inner ones."""

    X: Rows
    k: int
    centre: NDArray[np.float64]
    from_centre: NDArray[np.float64]
    candidates: Index
    n_hubs: int

    @classmethod
    def of(cls, X: Rows, k: int) -> _FarSearch:
        centre = column_means(X)
        from_centre = np.empty(X.shape[0])
        for block in row_blocks(X.shape[0], 8 * X.shape[1]):
            from_centre[block] = np.linalg.norm(take_rows(X, block) - centre, axis=1)
        outer = np.argsort(-from_centre, kind="stable")
        sample = evenly_spaced(X.shape[0], HUB_SAMPLE)
        everybody = cls(X, HUB_LISTS * k, centre, from_centre, np.arange(X.shape[0]), X.shape[0])
        hubs = np.unique(np.concatenate([everybody.lists(part).index for part in np.array_split(sample, 4)]))
        hubs = hubs[hubs >= 0]
        others = outer[~np.isin(outer, hubs)][:FAR_CANDIDATES]
        return cls(X, k + SPARE, centre, from_centre, np.concatenate([hubs, others]), hubs.size)

    def lists(self, own: Index) -> _Lists:
        """The farthest of the candidates, until the rest cannot be farther."""
        mine, reach = self._seen(own), self.from_centre[own]
        own_square = np.einsum("ij,ij->i", mine, mine)
        lists = _Lists(own.size, min(self.k, self.candidates.size))
        for part in row_blocks(self.candidates.size, 1, 1024):
            others = self.candidates[part]
            if part.start >= self.n_hubs:
                bound = (reach + self.from_centre[others[0]]) ** 2
                if (-lists.worst >= (1 + 1e-5) * bound).all():
                    break
            theirs = self._seen(others)
            keys = 2 * mine @ theirs.T
            keys -= own_square[:, None]
            keys -= np.einsum("ij,ij->i", theirs, theirs)
            keys[own[:, None] == others] = np.inf
            lists.merge(*lists.hits(np.arange(own.size), others, keys))
        return lists

    def __call__(self, own: Index) -> tuple[Index, NDArray[np.float64]]:
        k = self.k - SPARE
        lists = self.lists(own)
        found = np.where(lists.index < 0, own[:, None], lists.index)
        pairs = np.column_stack([np.repeat(own, lists.k), found.ravel()])
        precise = pair_squared_distances(self.X, pairs).reshape(found.shape)
        precise[found == own[:, None]] = -1.0
        best = np.lexsort((found, -precise), axis=1)[:, :k]
        return np.take_along_axis(found, best, axis=1), np.take_along_axis(precise, best, axis=1)

    def _seen(self, rows: Index) -> Float32:
        return (take_rows(self.X, rows) - self.centre).astype(np.float32)


def _largest_projected(rows: LocalProjectedRows, farthest: Index, rng: np.random.Generator) -> float:
    some = evenly_spaced(rows.n, SAMPLED_PAIRS)
    pairs = np.concatenate([np.column_stack([some, farthest[some, 0]]), rng.integers(rows.n, size=(SAMPLED_PAIRS, 2))])
    return float(np.sqrt(rows.squared_distances(pairs[:, 0], pairs[:, 1]).max()))
