r"""The layout: t-SNE of given affinities, from the start or from a former map.

All rows repel each other, by exact sums for few rows and by one convolution on a grid for many. With
:math:`\varphi(z) = \sum_j 1 / (1 + |z - z_j|^2)` the sums of t-SNE are

.. math::
    \sum_{j \ne i} \frac{z_i - z_j}{(1 + |z_i - z_j|^2)^2} = -\tfrac12 \nabla \varphi(z_i), \qquad
    Z = \sum_{i \ne j} \frac{1}{1 + |z_i - z_j|^2} = \sum_i (\varphi(z_i) - 1).

Many rows are spread over the nodes of a regular grid by cubic B-splines, the sum over nodes is a convolution, and its
value and slope at a row are those of a cubic spline. Splines interpolate once the convolution is divided by the
transform of their values at the nodes, squared: then it costs two Fourier transforms and is accurate to about one
per cent of the force where the nodes are 0.3 apart.

Rows find a place among others too, by rule 7 of docs/maps.md: new rows, and in a map of many rows all but the
landmarks. A row between two islands lands on the one that most of its neighbours are on, and not in the water; one that
coincides with a training row takes its place.

A finished map stays as it is. Of many rows, landmarks are laid out, all others placed among them, and the whole
polished (:func:`with_placed`). :func:`plain_map` is the map of the rows alone, to see what answers add to it.

References
----------
G. C. Linderman, M. Rachh, J. G. Hoskins, S. Steinerberger, Y. Kluger, "Fast interpolation-based t-SNE for improved
visualization of single-cell RNA-seq data", Nature Methods 16, 2019 (polynomials on a grid).
U. Essmann, L. Perera, M. L. Berkowitz, T. Darden, H. Lee, L. G. Pedersen, "A smooth particle mesh Ewald method",
Journal of Chemical Physics 103, 1995 (B-splines on a grid, and forces as their slope).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft, sparse

from pairlens._optional import require
from pairlens._sklearn import as_generator
from pairlens.engines import Float64, IntArray, Rows, row_blocks
from pairlens.graphs.nearest import SAME_ROW, nearest_among, prepare_search
from pairlens.learning.spaces import RawSpace, chosen_landmarks
from pairlens.methods.pairmap.attraction import perplexity_weights, tsne_affinities
from pairlens.spectral.rowspace import Standardiser

START = 1e-4
"""Standard deviation of the first column of the start: so small that all rows see each other."""
PARTED = 1e-2
"""Of rows that start in one place, how far they are parted, as a share of the spread of the start."""
EXAGGERATION = 12.0
EARLY_MOMENTUM, MOMENTUM = 0.5, 0.8
EARLY_ITER, MAX_ITER = 250, 500
REPORT_EVERY = 50

Phase = tuple[int, float, float]
"""Number of iterations, exaggeration and momentum."""

Progress = Callable[[int], None]
FEWEST_ON_GRID, MOST_PAIRED = 500, 4000
"""Rows up to which all pairs are summed: always, and where the grid would have more than half as many nodes a side."""
SPACING = {1: 0.05, 2: 0.3}
"""Distance of the nodes in one and two dimensions: the force has a scale of 1."""
FEWEST_NODES, MOST_NODES = 32, {1: 1 << 16, 2: 2048}
"""Nodes along the longer side of the map: a small map has closer ones, a very large one wider ones."""
SIDE_STEP = 16
"""The number of nodes is a multiple of it, so that a map that grows needs a new kernel now and then only."""
RING = 8
"""Nodes that keep the two ends of the grid apart: a spline through the nodes has faded by 1e-4 there."""
FINE = 16.0
"""Size of the map below which single precision would not see the force, which is small there."""
NEIGHBORS = 15
PERPLEXITY = 3.0
STEPS = 20
SCALE_NEIGHBOR = 10
BLOCK_BYTES = 1 << 21
POLISH: Phase = (10, 1.0, 0.5)
"""The phase in which all rows move; more iterations change neither groups nor neighbours."""
MOST_KEPT = 2
_KEPT: dict[Any, Float64] = {}
"""The last maps that :func:`plain_map` drew, by their rows and parameters."""


def principal_start(V: Float64, n_components: int, rng: np.random.Generator) -> Float64:
    """Return leading principal components of the rows, the first with standard deviation 1e-4."""
    centred = V - V.mean(axis=0)
    if centred.shape[1] <= len(V):
        values, vectors = np.linalg.eigh(centred.T @ centred)
        leading = vectors[:, ::-1][:, :n_components]
        scores = centred @ leading
    else:
        values, vectors = np.linalg.eigh(centred @ centred.T)
        scores = vectors[:, ::-1][:, :n_components] * np.sqrt(np.maximum(values[::-1][:n_components], 0.0))
    # Eigenvectors have no sign of their own: the longest entry of each decides.
    longest = np.argmax(np.abs(scores), axis=0)
    scores = scores * np.where(scores[longest, np.arange(scores.shape[1])] < 0, -1.0, 1.0)
    start = np.zeros((len(V), n_components))
    start[:, : scores.shape[1]] = scores
    spread = float(start[:, 0].std())
    return parted(start * (START / spread) if spread > 0 else start, START, rng)


def parted(start: Float64, size: float, rng: np.random.Generator) -> Float64:
    """Return the start with rows that share a place moved a little apart: t-SNE could not part them."""
    _, first, count = np.unique(start, axis=0, return_inverse=True, return_counts=True)
    shared = count[first.ravel()] > 1
    result = start.copy()
    result[shared] += PARTED * size * rng.standard_normal((int(shared.sum()), start.shape[1]))
    return result


def phases_of(early_iter: int, max_iter: int) -> list[Phase]:
    """Return the phases of a map: groups form while attraction is 12 times as strong; then the map unfolds."""
    return [(early_iter, EXAGGERATION, EARLY_MOMENTUM), (max_iter, 1.0, MOMENTUM)]


def threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for."""
    return 1 if n_jobs is None else n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def lay_out(
    affinities: sparse.csr_matrix,
    start: Float64,
    phases: Sequence[Phase],
    *,
    n_jobs: int | None,
    progress: Progress | None = None,
) -> Float64:
    """Move rows from a start to where attraction, by affinities with sum 1, and repulsion are in balance.

    The learning rate is the number of rows over the exaggeration. The result does not depend on `n_jobs`, the threads;
    `progress` is told every 50 iterations how many are done.
    """
    openTSNE = require("openTSNE", extra="map", purpose="PairMap")
    n = len(start)
    matrix = sparse.csr_matrix(affinities, copy=True)
    given = openTSNE.affinity.PrecomputedAffinities(matrix, normalize=False)
    map_ = openTSNE.TSNEEmbedding(start.copy(), given, negative_gradient_method=_forces, n_jobs=threads(n_jobs))
    done = 0
    for n_iter, exaggeration, momentum in phases:
        if n_iter == 0:
            continue
        map_.optimize(
            n_iter,
            inplace=True,
            propagate_exception=True,
            exaggeration=exaggeration,
            momentum=momentum,
            learning_rate=n / exaggeration,
            callbacks=None if progress is None else partial(_report, progress, done),
            callbacks_every_iters=REPORT_EVERY,
        )
        done += n_iter
    return np.array(map_, dtype=np.float64)


def _forces(
    embedding: Float64, P: sparse.csr_matrix, *, dof: float, n_jobs: int, should_eval_error: bool, **_: Any
) -> tuple[float, Float64]:
    """Return what openTSNE asks of an objective: the KL divergence, if wanted, and a quarter of the gradient."""
    from openTSNE import _tsne

    places = np.asarray(embedding)
    gradient = np.zeros_like(places)

    def attract() -> tuple[float, float]:
        # The one compiled sum over neighbours there is; it has no public name, and adds to the gradient.
        found: tuple[float, float] = _tsne.estimate_positive_gradient_nn(
            P.indices,
            P.indptr,
            P.data,
            places,
            places,
            gradient,
            dof,
            num_threads=max(1, n_jobs // 2),
            should_eval_error=should_eval_error,
        )
        return found

    if n_jobs == 1:
        (away, total), (sum_p, error) = repulsion(places), attract()
    else:
        # Both take about as long, and neither needs the other. What they give does not depend on the threads.
        with ThreadPoolExecutor(1) as other:
            attracting = other.submit(attract)
            away, total = repulsion(places, workers=max(1, n_jobs // 2))
            sum_p, error = attracting.result()
    gradient -= away / total
    return (error + sum_p * np.log(total) if should_eval_error else 0.0), gradient


def _report(progress: Progress, done: int, iteration: int, *_: Any) -> bool:
    """Tell the number of iterations, as a callback of openTSNE that does not stop it."""
    progress(done + iteration)
    return False


def align(moved: Float64, former: Float64) -> Float64:
    """Turn, mirror and shift a map so that it lies on a former one as well as it can (Procrustes)."""
    to, centre = former.mean(axis=0), moved.mean(axis=0)
    U, _, Vt = np.linalg.svd((moved - centre).T @ (former - to))
    return np.asarray((moved - centre) @ (U @ Vt) + to)


def repulsion(places: Float64, *, workers: int = 1) -> tuple[Float64, float]:
    """Return the sum of the forces on each row, not divided by Z yet, and Z.

    The result does not depend on `workers`, the threads of the Fourier transforms.
    """
    n, n_components = places.shape
    size = float(np.ptp(places, axis=0).max())
    paired = n <= most_paired(size, n_components)
    return _of_all_pairs(places) if paired else _on_grid(places, size, workers)


def most_paired(size: float, n_components: int) -> float:
    """Return the number of rows up to which all pairs are summed."""
    # Where rows are few and far between, sums are faster, and a grid would show each row its own shadow.
    return max(FEWEST_ON_GRID, min(MOST_PAIRED, 2 * size / SPACING[2])) if n_components == 2 else FEWEST_ON_GRID


def _of_all_pairs(places: Float64) -> tuple[Float64, float]:
    squared = np.zeros((len(places), len(places)))
    for column in places.T:
        squared += (column[:, None] - column) ** 2
    near = 1 / (1 + squared)
    total = float(near.sum()) - len(places)
    near *= near
    return places * near.sum(axis=1)[:, None] - near @ places, total


def _on_grid(places: Float64, size: float, workers: int) -> tuple[Float64, float]:
    n, n_components = places.shape
    h = grid_spacing(size, n_components)
    side = SIDE_STEP * -(-(int(size / h) + 4) // SIDE_STEP)
    precision = np.float64 if size < FINE else np.float32
    position = (places - places.min(axis=0)) / h
    cell = position.astype(np.int64)
    offset = (position - cell).astype(precision)
    weights, slopes = _splines(offset)
    # A row reaches four nodes along each axis, from the one before its cell on: the grid begins with that of the first.
    reached = cell[:, :, None] + np.arange(4)
    if n_components == 1:
        nodes, spread = reached[:, 0], weights[:, 0]
    else:
        nodes = reached[:, 0, :, None] * side + reached[:, 1, None, :]
        spread = weights[:, 0, :, None] * weights[:, 1, None, :]
    grid = np.bincount(nodes.ravel(), spread.ravel(), side**n_components).astype(precision)
    near = _convolved(grid.reshape((side,) * n_components), h, workers).ravel()[nodes]
    if n_components == 1:
        at_row = np.einsum("ij,ij->i", near, weights[:, 0])
        slope = np.einsum("ij,ij->i", near, slopes[:, 0])[:, None]
    else:
        along = np.einsum("ijk,ik->ij", near, weights[:, 1])
        across = np.einsum("ijk,ik->ij", near, slopes[:, 1])
        at_row = np.einsum("ij,ij->i", along, weights[:, 0])
        slope = np.column_stack(
            [np.einsum("ij,ij->i", along, slopes[:, 0]), np.einsum("ij,ij->i", across, weights[:, 0])]
        )
    # No pair is farther apart than the corners: where wide nodes err, Z stays above what that means.
    total = max(float(at_row.sum(dtype=np.float64)) - n, n * (n - 1) / (1 + n_components * size**2))
    return slope.astype(np.float64) * (-0.5 / h), total


def _convolved(grid: NDArray[Any], h: float, workers: int) -> NDArray[Any]:
    """Return the sum of 1 / (1 + d²) over the nodes of a grid, at its nodes.

    Axis by axis, because the first transform of the padded grid meets only zeros in more than half of its rows, and the
    last one gives that many rows that nobody asks for. Every number is that of `rfftn` and `irfftn`.
    """
    side, flat = len(grid), grid.ndim == 2
    precision: Any = grid.dtype.type
    length = int(fft.next_fast_len(2 * side + RING, real=True))
    transformed = fft.rfft(grid, length, workers=workers)
    if flat:
        transformed = fft.fft(transformed, length, axis=0, workers=workers, overwrite_x=True)
    transformed *= _kernel(length, grid.ndim, h, precision)
    if flat:
        transformed = fft.ifft(transformed, axis=0, norm="forward", workers=workers, overwrite_x=True)[:side]
    values = fft.irfft(transformed, length, norm="forward", workers=workers, overwrite_x=True)[..., :side]
    return np.asarray(values * precision(1 / length**grid.ndim))


def grid_spacing(size: float, n_components: int) -> float:
    """Return the usual distance of nodes, halved or doubled as often as the bounds of their number ask for."""
    usual, most = SPACING[n_components], MOST_NODES[n_components]
    if size <= 0:
        return usual
    closer = max(0.0, np.ceil(np.log2(FEWEST_NODES * usual / size)))
    wider = max(0.0, np.ceil(np.log2(size / (most * usual))))
    return float(usual * 2.0 ** (wider - closer))


def _splines(offset: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return cubic B-spline weights of the four nodes around each coordinate, and their slopes, on a new last axis."""
    t, rest = offset, 1 - offset
    weights = np.stack([rest**3, (3 * t - 6) * t * t + 4, (3 * rest - 6) * rest * rest + 4, t**3], axis=-1)
    weights /= 6
    slopes = np.stack([-rest * rest, (3 * t - 4) * t, (4 - 3 * rest) * rest, t * t], axis=-1)
    slopes /= 2
    return weights, slopes


@lru_cache(maxsize=4)
def _kernel(length: int, n_components: int, h: float, precision: type[np.floating[Any]]) -> NDArray[Any]:
    """Return the transform of 1 / (1 + d²) on a periodic grid, for splines that interpolate at both ends."""
    steps = np.arange(length)
    squared = (np.minimum(steps, length - steps) * h) ** 2
    frequency = fft.fftfreq(length), fft.rfftfreq(length)
    whole, half = ((2 + np.cos(2 * np.pi * f)) / 3 for f in frequency)
    if n_components == 1:
        values, filtered = 1 / (1 + squared), half**2
    else:
        values, filtered = 1 / (1 + squared[:, None] + squared), (whole[:, None] * half) ** 2
    # Real, since the kernel is symmetric.
    result = (fft.rfftn(values).real / filtered).astype(precision)
    result.flags.writeable = False
    return result


def local_scale(embedding: Float64) -> float:
    """Return h, the median distance to the 10th neighbour in the map."""
    from scipy.spatial import cKDTree

    k = min(SCALE_NEIGHBOR, len(embedding) - 1)
    # In one or two dimensions a tree finds neighbours in n log n, and exactly. The row itself comes first.
    return float(np.median(cKDTree(embedding).query(embedding, [k + 1])[0]))


def nearest_known(
    V: Float64, known: Float64, *, search: str = "auto", n_queries: int | None = None
) -> tuple[IntArray, Float64]:
    """Return the 15 nearest training rows of each new row, nearest first, and weights of perplexity 3.

    The weight of a training row that coincides with the new one is 1, and that of all others 0. They are found as by
    :func:`~pairlens.graphs.nearest.nearest_among`.
    """
    k = min(NEIGHBORS, len(known))
    found, distance = nearest_among(known, V, k, search=search, n_queries=n_queries)
    squared = distance**2
    weights = perplexity_weights(squared, PERPLEXITY)
    centred = known - known.mean(axis=0)
    same = squared[:, 0] <= SAME_ROW * np.einsum("ij,ij->", centred, centred) / len(known)
    weights[same] = np.eye(1, k)
    return found, weights


def ready_to_place(known: Float64, *, search: str = "auto") -> None:
    """Make the index that :func:`nearest_known` needs of many training rows, so that the first new rows do not wait."""
    prepare_search(known, min(NEIGHBORS, len(known)), search=search)


def place(found: IntArray, weights: Float64, embedding: Float64, scale: float) -> Float64:
    """Return places of new rows from their nearest training rows on a map, whose :func:`local_scale` is h."""
    result = np.empty((len(found), embedding.shape[1]))
    # The rows come last, so that every operation runs along many of them.
    columns = np.ascontiguousarray(embedding.T)
    steep = 1 / scale**2 if scale > 0 else 1.0
    for block in row_blocks(len(found), 8 * found.shape[1] ** 2, BLOCK_BYTES):
        near, w = columns[:, found[block].T], np.ascontiguousarray(weights[block].T)
        agreed = np.stack([np.einsum("jn,jn->n", w, _closeness(near, place, steep)) for place in near.swapaxes(0, 1)])
        z = np.take_along_axis(near, np.argmax(agreed, axis=0)[None, None, :], axis=1)[:, 0]
        for _ in range(STEPS):
            pull = w * _closeness(near, z, steep)
            z = np.einsum("jn,djn->dn", pull, near) / pull.sum(axis=0)
        result[block] = z.T
    return result


def _closeness(near: Float64, place: Float64, steep: float) -> Float64:
    """Return c = 1 / (1 + steep d²) of places, whose axes are columns, neighbours and rows, to one place a row."""
    squared = np.ones(near.shape[1:])
    for column, centre in zip(near, place):
        offset = column - centre
        offset *= offset
        offset *= steep
        squared += offset
    return np.reciprocal(squared, out=squared)


def with_placed(
    V: Float64,
    landmarks: IntArray,
    drawn: Float64,
    affinities: sparse.csr_matrix,
    *,
    n_jobs: int | None,
    search: str = "auto",
) -> Float64:
    """Return the map of all rows: each takes a place among the landmarks, and then all move a little.

    V are all rows in the local metric, `drawn` the places of the landmarks. In the polish, a placed row attracts its
    nearest landmarks, and these attract each other as before. All rows repel each other.
    """
    n, m = len(V), len(landmarks)
    others = np.setdiff1d(np.arange(n), landmarks, assume_unique=True)
    found, weights = nearest_known(V[others], V[landmarks], search=search, n_queries=len(others))
    start = np.empty((n, drawn.shape[1]))
    start[landmarks] = drawn
    start[others] = place(found, weights, drawn, local_scale(drawn))
    k = found.shape[1]
    toward = sparse.csr_matrix(
        (weights.ravel() / n, (np.repeat(others, k), landmarks[found].ravel())),
        shape=(n, n),
    )
    inner = affinities.tocoo()
    between = sparse.csr_matrix((inner.data * (m / n), (landmarks[inner.row], landmarks[inner.col])), shape=(n, n))
    everyone = (between + (toward + toward.T) / 2).tocsr()
    return lay_out(everyone, start, [POLISH], n_jobs=n_jobs)


def plain_map(
    X: Rows,
    n_components: int = 2,
    *,
    perplexity: float = 30.0,
    standardize: bool = True,
    n_jobs: int | None = 1,
    random_state: Any = 0,
    reuse: bool = False,
) -> Float64:
    """Draw a t-SNE of the rows alone, scaled and laid out as by PairMap; constant columns do not count.

    Parameters are those of :class:`~pairlens.PairMap`. `reuse` returns a map that this process has drawn of the same
    rows, with the same parameters and an integer as seed; the last two are kept.

    >>> from sklearn.datasets import load_iris
    >>> plain_map(load_iris().data).shape
    (150, 2)
    """
    rng = as_generator(random_state)
    rows = X.astype(np.float64)
    V = RawSpace.of(rows, Standardiser.of(rows, standardize=standardize))(rows)
    seed = int(random_state) if isinstance(random_state, Integral) else None
    key = hashlib.blake2b(np.ascontiguousarray(V).data).digest(), V.shape, n_components, float(perplexity), seed
    if reuse and seed is not None and (kept := _KEPT.get(key)) is not None:
        return kept.copy()
    landmarks = chosen_landmarks(len(V), np.empty(0, dtype=np.int64), rng)
    laid = V if landmarks is None else V[landmarks]
    affinities = tsne_affinities(laid, perplexity)
    start = principal_start(laid, n_components, rng)
    drawn = lay_out(affinities, start, phases_of(EARLY_ITER, MAX_ITER), n_jobs=n_jobs)
    if landmarks is not None:
        drawn = with_placed(V, landmarks, drawn, affinities, n_jobs=n_jobs)
    if seed is not None:
        _KEPT[key] = drawn.copy()
        for oldest in list(_KEPT)[:-MOST_KEPT]:
            _KEPT.pop(oldest, None)
    return drawn
