r"""The map of rows in a tensor, on its device: all rows are laid out.

Spaces, evidence and probabilities are learned from landmarks, as of rows in memory. Everything that has one entry for
each row stays on the device: the metric, the exact neighbours, the affinities, the layout and the places of new rows.

Results are meant to repeat on one device: rows are spread over the grid in integers, whose sum does not depend on the
order of the threads, and all other sums have an order of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import fft

from pairlens.engines import along, evenly_spaced
from pairlens.engines.torch import TensorRows, chunks, torch, torch_neighbors
from pairlens.engines.torch.rows import product_precision, triton_kernels
from pairlens.graphs.nearest import NEW_ROW_NEIGHBORS, SAME_ROW, Diffusion
from pairlens.judging.probability import PairModel
from pairlens.methods.pairmap import layout
from pairlens.methods.pairmap.attraction import PARTNERS, STRENGTH, Evidence, attracted
from pairlens.methods.pairmap.layout import Phase, Progress

Tensor = Any

SAME_SINGLE = 1e-12
"""Share of the total variance up to which the squared distance of two rows in float32 is rounding."""
SPARE = 8
"""Candidates beyond the k nearest that products find and differences measure."""
PERPLEXITY_STEPS = 30
TABLE_BYTES = {"cpu": 1 << 25, "cuda": 1 << 31}
FIXED = 2.0**40
"""Unit of the integers on the grid: 2^23 rows on one node do not leave their range."""
MIN_GAIN, LONGEST_STEP = 0.01, 5.0
"""The optimiser is openTSNE's: the least gain of a coordinate, and the farthest that a row moves in one iteration."""
SPLINE = (
    np.array(
        [
            [1, 4, 1, 0, -3, 0, 3, 0],
            [-3, 0, 3, 0, 6, -12, 6, 0],
            [3, -6, 3, 0, -3, 9, -9, 3],
            [-1, 3, -3, 1, 0, 0, 0, 0],
        ]
    )
    / 6
)
"""Coefficients of the four weights of a cubic B-spline and of their slopes, by power of the offset from 0 to 3."""
SCALE_SAMPLE = 2000
RATE_SAMPLE = 200_000
"""Random pairs from which the base rate is estimated."""


def _part(rows: Tensor, row_bytes: int) -> int:
    return max(1, TABLE_BYTES["cuda" if rows.is_cuda else "cpu"] // max(1, row_bytes))


def nearest_among(known: Tensor, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k nearest known rows of each query, nearest first, and their distances in float64."""
    centre = known.mean(dim=0)
    wide, k = (known - centre).float(), min(k, len(known))
    square = wide.square().sum(dim=1)
    found = torch.empty((len(queries), k), dtype=torch.int64, device=known.device)
    distance = torch.empty((len(queries), k), dtype=torch.float64, device=known.device)
    for part in chunks(len(queries), _part(known, 8 * len(known))):
        some = (queries[part] - centre).float()
        if known.shape[1] <= 2:
            # Products have no digits left for neighbours in a wide map.
            table = sum((a[:, None] - b).square_() for a, b in zip(some.T, wide.T))
        else:
            with product_precision(known.device):
                table = torch.addmm(square, some, wide.T, alpha=-2)
        near = table.topk(min(k + SPARE, len(known)), dim=1, largest=False).indices.sort(dim=1).values
        squared = (queries[part, None, :].double() - known[near]).square_().sum(dim=2)
        squared, order = squared.sort(dim=1, stable=True)
        found[part], distance[part] = near.gather(1, order)[:, :k], squared[:, :k].sqrt()
    return found, distance


def diffused(walk: Diffusion, rows: Tensor) -> Tensor:
    """Return diffusion coordinates of rows: see :class:`~pairlens.graphs.nearest.Diffusion`."""
    known, values = (torch.from_numpy(part).to(rows.device) for part in (walk.rows, walk.values))
    found, distance = nearest_among(known, rows, NEW_ROW_NEIGHBORS)
    squared = distance.square()
    k = squared.shape[1]
    middle = (squared[:, (k - 1) // 2] + squared[:, k // 2])[:, None] / 2
    weight = torch.exp(-squared / torch.where(middle > 0, middle, 1.0))
    same = squared <= SAME_ROW * float(known.square().sum()) / len(known)
    weight = torch.where(same.any(dim=1, keepdim=True), same.double(), weight)
    weight = weight / weight.sum(dim=1, keepdim=True)
    result = torch.empty((len(rows), values.shape[1]), dtype=torch.float64, device=rows.device)
    for part in chunks(len(rows), _part(rows, 8 * k * values.shape[1])):
        result[part] = torch.einsum("ij,ijk->ik", weight[part], values[found[part]])
    return result


def seen_in(spaces: Any, X: Any) -> tuple[Tensor, ...]:
    """Return rows in each of the spaces of a map (:class:`~pairlens.methods.pairmap.estimator.MapSpaces`)."""
    taught, found = spaces.taught, [spaces.raw(X)]
    if taught is not None:
        linear = taught.units[0](along(X, taught.components.T, origin=taught.standardiser.mean))
        kernel = taught.units[1](taught.kernel.along(taught.turned)(taught.standardiser(X)))
        walk = diffused(taught.walk, linear.tensor) @ torch.from_numpy(taught.carried).to(linear.tensor.device)
        found += [linear, kernel, taught.units[2](TensorRows(walk))]
    return tuple(rows.tensor for rows in found)


def side_by_side(seen: Sequence[Tensor], shares: Any) -> Tensor:
    """Return the metric in float32: spaces beside each other with these total variances; those of 0 are left out."""
    return torch.cat([float(np.sqrt(share)) * space for space, share in zip(seen, shares) if share > 0], dim=1).float()


def perplexity_weights(squared: Tensor, perplexity: float) -> Tensor:
    """Return weights with sum 1 whose entropy is the logarithm of the perplexity: see `attraction`."""
    k, wanted = squared.shape[1], float(np.log(perplexity))
    shifted = squared - squared.amin(dim=1, keepdim=True)
    size = shifted.mean(dim=1, keepdim=True)
    if wanted >= np.log(k):
        return torch.full_like(squared, 1.0 / k)
    shifted = shifted / torch.where(size > 0, size, 1.0)
    low, high = torch.full_like(size, -60.0), torch.full_like(size, 60.0)
    beta = torch.zeros_like(size)
    for _ in range(PERPLEXITY_STEPS):
        width = beta.exp()
        p = torch.exp(-width * shifted)
        total = p.sum(dim=1, keepdim=True)
        mean = (p * shifted).sum(dim=1, keepdim=True) / total
        error = width * mean + total.log() - wanted
        slope = -(width**2) * ((p * shifted.square()).sum(dim=1, keepdim=True) / total - mean**2)
        low, high = torch.where(error > 0, beta, low), torch.where(error > 0, high, beta)
        step = beta - error / torch.where(slope < -1e-6, slope, -1.0)
        inside = (slope < -1e-6) & (step > low) & (step < high)
        beta = torch.where(inside, step, (low + high) / 2)
    p = torch.exp(-beta.exp() * shifted)
    return p / p.sum(dim=1, keepdim=True)


@dataclass(frozen=True)
class Attraction:
    """Symmetric affinities with sum 1 in compressed rows, on a device."""

    start: Tensor
    column: Tensor
    weight: Tensor

    def pull(self, places: Tensor) -> Tensor:
        """Return the sums of the attracting forces on each row."""
        if fused(places):
            pulled: Tensor = triton_kernels(places).attraction(self.start, self.column, self.weight, places)
            return pulled
        n = len(places)
        result = torch.empty_like(places)
        per_row = max(1, len(self.column) // n) * 8 * (places.shape[1] + 3)
        for part in chunks(n, _part(places, per_row)):
            first, last = int(self.start[part.start]), int(self.start[part.stop])
            lengths = self.start[part.start + 1 : part.stop + 1] - self.start[part]
            column = self.column[first:last].long()
            apart = places[part].repeat_interleave(lengths, dim=0) - places[column]
            # Column by column: a sum over so short an axis takes half of the time of all.
            force = self.weight[first:last] / (1 + sum(difference.square() for difference in apart.unbind(1)))
            result[part] = torch.segment_reduce(force[:, None] * apart, "sum", lengths=lengths, axis=0, initial=0.0)
        return result


def symmetric(row: Tensor, column: Tensor, weight: Tensor, n: int) -> Attraction:
    """Return entries and their transposes as compressed rows; equal places are added."""
    keys, order = torch.cat([row * n + column, column * n + row]).sort(stable=True)
    weight = weight.repeat(2)[order]
    # Two rows list each other, and may be partners too: a place occurs up to four times.
    for _ in range(3):
        again = keys[1:] == keys[:-1]
        if not bool(again.any()):
            break
        first = torch.cat([again.new_ones(1), ~again])
        # Of each run only its second entry is added to the first: in a fixed order, whatever the threads do.
        second = torch.cat([again.new_zeros(1), again & first[:-1]])
        weight[:-1] += torch.where(second[1:], weight[1:], 0.0)
        keys, weight = keys[~second], weight[~second]
    start = torch.zeros(n + 1, dtype=torch.int64, device=keys.device)
    start[1:] = torch.cumsum(torch.bincount(keys // n, minlength=n), dim=0)
    return Attraction(start, (keys % n).int(), weight)


def random_partners(n: int, seed: int, device: Any) -> tuple[Tensor, Tensor]:
    """Return distinct pairs of rows, in which each row occurs about 40 times; all pairs if there are fewer."""
    count = n * PARTNERS // 2
    if n * (n - 1) // 2 <= count:
        left, right = torch.triu_indices(n, n, 1, device=device)
        return left, right
    generator = torch.Generator(device=device).manual_seed(seed)
    left = torch.randint(0, n, (count,), generator=generator, device=device)
    right = (left + torch.randint(1, n, (count,), generator=generator, device=device)) % n
    key = torch.unique(torch.minimum(left, right) * n + torch.maximum(left, right))
    return key // n, key % n


@dataclass(frozen=True)
class Told:
    """Answers about rows: their rows of A, and the matrices of :class:`Evidence`, on a device."""

    reach: Tensor
    must: Tensor
    cannot: Tensor
    level: float

    @classmethod
    def of(cls, evidence: Evidence, known: Tensor, rows: Tensor) -> Told:
        """Carry evidence about known rows to others, by their nearest known rows in the metric."""
        device = rows.device
        must, cannot, reach = (
            torch.from_numpy(part).to(device)
            for part in (evidence.must.toarray(), evidence.cannot.toarray(), evidence.reach)
        )
        found, weights = nearest_known(known, rows)
        result = torch.empty((len(rows), reach.shape[1]), dtype=reach.dtype, device=device)
        for part in chunks(len(rows), _part(rows, 4 * found.shape[1] * max(1, reach.shape[1]))):
            result[part] = torch.einsum("ij,ijk->ik", weights[part].float(), reach[found[part]])
        return cls(result, must, cannot, evidence.level)

    def __call__(self, left: Tensor, right: Tensor, far: Told | None = None) -> Tensor:
        """Return s of pairs of rows, given by their numbers; the right ones are those of `far` where it is given."""
        if self.level == 0:
            return torch.zeros(len(left), device=left.device)
        # Pairs are listed by their left rows, which occur about twenty times: one product serves all of them.
        rows, place = torch.unique_consecutive(left, return_inverse=True)
        near, away = self.reach[rows], (far or self).reach[right]
        with product_precision(left.device):
            for_it = ((near @ self.must)[place] * away).sum(dim=1)
            against = ((near @ self.cannot)[place] * away).sum(dim=1)
        return (for_it - against) / (for_it + against + self.level)


def pair_distances(
    near: Sequence[Tensor],
    told: Told,
    left: Tensor,
    right: Tensor,
    far: Sequence[Tensor] = (),
    other: Told | None = None,
) -> Tensor:
    """Return lengths of pairs in the spaces, with one minus the evidence beside them."""
    columns = [((a[left] - b[right]).square().sum(dim=1) / 2).sqrt().double() for a, b in zip(near, far or near)]
    return torch.stack([*columns, 1 - told(left, right, other).double()], dim=1)


def log_odds(model: PairModel, distances: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logarithmic odds of pairs, and their standard error."""
    assert model.centre is not None
    assert model.covariance is not None
    slopes, centre, covariance = (
        torch.from_numpy(part).to(distances.device) for part in (model.slopes, model.centre, model.covariance)
    )
    design = torch.cat([torch.ones_like(distances[:, :1]), centre - distances], dim=1)
    variance = ((design @ covariance) * design).sum(dim=1).clamp_(min=0)
    return model.intercept - distances @ slopes, variance.sqrt()


def affinities(V: Tensor, perplexity: float, far: tuple[Tensor, Tensor, Tensor] | None, strength: float) -> Attraction:
    """Return the affinities of t-SNE in the metric V together with a long-range term: pairs, and weights of sum 1."""
    n = len(V)
    k, perplexity = attracted(n, perplexity)
    found = torch_neighbors(V, n_nearest=k)
    weight = torch.empty((n, k), dtype=torch.float32, device=V.device)
    for part in chunks(n, _part(V, 64 * k)):
        squared = found.nearest_distance[part].square()
        weight[part] = perplexity_weights(squared.to(weight.dtype), perplexity)
    row = torch.arange(n, device=V.device).repeat_interleave(k)
    column, weight = found.nearest.reshape(-1), weight.reshape(-1) / (2 * n * (1 + strength))
    del found
    if far is not None:
        left, right, pull = far
        row, column = torch.cat([row, left]), torch.cat([column, right])
        weight = torch.cat([weight, pull.to(weight.dtype) * (strength / (2 * (1 + strength)))])
    return symmetric(row, column, weight, n)


def long_range(
    seen: Sequence[Tensor], told: Told, pairs: tuple[Tensor, Tensor], model: PairModel, rate: float
) -> tuple[tuple[Tensor, Tensor, Tensor] | None, float]:
    """Return the long-range term of random pairs of rows, and its strength: see `attraction`."""
    left, right = pairs
    kept = []
    # Sums in float64 in the order of the parts.
    total = torch.zeros((), dtype=torch.float64, device=left.device)
    width = sum(space.shape[1] for space in seen) * 8 + told.reach.shape[1] * 16
    for part in chunks(len(left), _part(left, width)):
        odds, error = log_odds(model, pair_distances(seen, told, left[part], right[part]))
        pull = (2 * torch.sigmoid(odds - error) - 1).clamp_(min=0)
        total += pull.sum()
        some = pull > 0
        kept.append((left[part][some], right[part][some], pull[some]))
    whole = float(total)
    if whole == 0:
        return None, 0.0
    a, b, pull = (torch.cat(column) for column in zip(*kept))
    return (a, b, pull / whole), STRENGTH * min(1.0, whole / len(left) / rate)


def principal_start(V: Tensor, n_components: int, seed: int) -> Tensor:
    """Return leading principal components of the rows, the first with standard deviation 1e-4."""
    centred = (V - V.mean(dim=0)).double()
    _, vectors = torch.linalg.eigh(centred.T @ centred)
    scores = centred @ vectors.flip(1)[:, :n_components]
    scores = torch.cat([scores, scores.new_zeros(len(V), n_components - scores.shape[1])], dim=1)
    longest = scores.gather(0, scores.abs().argmax(dim=0, keepdim=True))
    scores = scores * torch.where(longest < 0, -1.0, 1.0)
    spread = float(scores[:, 0].std(correction=0))
    return parted(scores * (layout.START / spread) if spread > 0 else scores, layout.START, seed)


def parted(start: Tensor, size: float, seed: int) -> Tensor:
    """Return the start with rows that share a place moved a little apart."""
    shared = torch.arange(len(start), device=start.device)
    # Few share one coordinate, so the places as a whole are compared for few.
    for places, dim in ((start[:, 0], None), (start, 0)):
        _, first, count = torch.unique(places[shared], dim=dim, return_inverse=True, return_counts=True)
        shared = shared[count[first] > 1]
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn((len(shared), start.shape[1]), generator=generator, dtype=start.dtype)
    return start.index_copy(0, shared, start[shared] + layout.PARTED * size * noise.to(start.device))


def lay_out(
    attraction: Attraction, start: Tensor, phases: Sequence[Phase], *, progress: Progress | None = None
) -> Tensor:
    """Move rows from a start to where attraction and repulsion are in balance, as `layout` does in memory."""
    n, places = len(start), start.clone()
    update, gains = torch.zeros_like(places), torch.ones_like(places)
    repulsion, run, done = Repulsion(), Replay() if fused(start) else _run, 0

    def move(grid: Grid | None, exaggeration: float, momentum: float) -> None:
        away, total = repulsion(places, grid)
        gradient = exaggeration * attraction.pull(places) - away / total
        turned = torch.sign(update) != torch.sign(gradient)
        gains.copy_(torch.where(turned, gains + 0.2, gains * 0.8 + MIN_GAIN))
        update.copy_(momentum * update - n / exaggeration * gains * gradient)
        length = torch.linalg.vector_norm(update, dim=1, keepdim=True)
        update.mul_(LONGEST_STEP / length.clamp(min=LONGEST_STEP))
        places.add_(update)
        places.sub_(places.mean(dim=0))

    for n_iter, exaggeration, momentum in phases:
        for _ in range(n_iter):
            run(move, Grid.of(places), exaggeration, momentum)
            done += 1
            if progress is not None and done % layout.REPORT_EVERY == 0:
                progress(done)
    return places


def fused(places: Tensor) -> bool:
    """Return whether the forces on rows are found without waiting for the device."""
    return places.shape[1] == 2 and triton_kernels(places) is not None


def _run(call: Callable[..., None], *arguments: Any) -> None:
    call(*arguments)


class Replay:
    """Repeat calls that change tensors of a GPU in place: from the second with the same arguments on, as one launch.

    An iteration has some fifty small kernels, and to launch them one by one takes longer than to run them.
    """

    def __init__(self) -> None:
        self._arguments: Any = None
        self._graph: Any = None
        self._current = False

    def __call__(self, call: Callable[..., None], *arguments: Any) -> None:
        if arguments != self._arguments:
            # What is made once for these arguments, as a plan of a transform, cannot be made during the recording.
            self._arguments, self._current = arguments, False
            call(*arguments)
            return
        if not self._current:
            self._graph, self._current = self._recorded(call, arguments), True
        self._graph.replay()

    def _recorded(self, call: Callable[..., None], arguments: Any) -> Any:
        if self._graph is None:
            # Later on, memory that is kept for other uses cannot be taken.
            torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        stream = _recording_stream(torch.cuda.current_device())
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            # The memory of the former graph is used again; so that graph lives until now.
            pool = None if self._graph is None else self._graph.pool()
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            call(*arguments)
            graph.capture_end()
        return graph


@cache
def _recording_stream(device: int) -> Any:
    """Return one stream for each device: products keep a workspace for every stream that they ever ran on."""
    return torch.cuda.Stream(device)


@dataclass(frozen=True)
class Grid:
    """Nodes to a side and their distance, the length of the transforms, and their precision."""

    side: int
    spacing: float
    length: int
    precision: Any

    @classmethod
    def of(cls, places: Tensor) -> Grid | None:
        """Return the grid for a map; None where all pairs of rows are summed."""
        n, d = places.shape
        size = float((places.amax(dim=0) - places.amin(dim=0)).max())
        if n <= layout.most_paired(size, d):
            return None
        h = layout.grid_spacing(size, d)
        side = layout.SIDE_STEP * -(-(int(size / h) + 4) // layout.SIDE_STEP)
        length = int(fft.next_fast_len(2 * side + layout.RING, real=True))
        return cls(side, h, length, torch.float64 if size < layout.FINE else torch.float32)


class Repulsion:
    """Sums of the repelling forces on each row, on a grid whose transformed kernel is kept."""

    def __init__(self) -> None:
        self._kernels: dict[tuple[Grid, int], Tensor] = {}

    def __call__(self, places: Tensor, grid: Grid | None) -> tuple[Tensor, Tensor]:
        """Return the forces, not divided by Z yet, and Z."""
        if grid is not None:
            return self._on_grid(places, grid)
        squared = sum((column[:, None] - column).square() for column in places.T)
        near = 1 / (1 + squared)
        total = near.sum() - len(places)
        near = near.square()
        return places * near.sum(dim=1, keepdim=True) - near @ places, total

    def _on_grid(self, places: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
        n, d = places.shape
        side, h, length, precision = grid.side, grid.spacing, grid.length, grid.precision
        low = places.amin(dim=0)
        size = (places.amax(dim=0) - low).max()
        position = (places - low) / h
        cell = position.long()
        weights, slopes = splines((position - cell).to(precision))
        reached = cell[:, :, None] + torch.arange(4, device=places.device)
        if d == 1:
            nodes, spread = reached[:, 0], weights[:, 0]
        else:
            nodes = (reached[:, 0, :, None] * side + reached[:, 1, None, :]).flatten(1)
            spread = (weights[:, 0, :, None] * weights[:, 1, None, :]).flatten(1)
        grid_sums = torch.zeros(side**d, dtype=torch.int64, device=places.device)
        grid_sums.index_add_(0, nodes.reshape(-1), (spread.reshape(-1) * FIXED).long())
        shape, axes = (length,) * d, tuple(range(d))
        transformed = torch.fft.rfftn((grid_sums.double() / FIXED).to(precision).view((side,) * d), s=shape, dim=axes)
        transformed *= self._kernel(grid, d, places.device)
        values = torch.fft.irfftn(transformed, s=shape, dim=axes)[(slice(side),) * d]
        near = values.reshape(-1)[nodes]
        if d == 1:
            at_row, slope = (near * weights[:, 0]).sum(dim=1), (near * slopes[:, 0]).sum(dim=1, keepdim=True)
        else:
            near = near.view(n, 4, 4)
            along = (near * weights[:, 1, None, :]).sum(dim=2)
            across = (near * slopes[:, 1, None, :]).sum(dim=2)
            at_row = (along * weights[:, 0]).sum(dim=1)
            slope = torch.stack([(along * slopes[:, 0]).sum(dim=1), (across * weights[:, 0]).sum(dim=1)], dim=1)
        # No pair is farther apart than the corners: where wide nodes err, Z stays above what that means.
        total = (at_row.sum(dtype=torch.float64) - n).maximum(n * (n - 1) / (1 + d * size**2))
        return slope.double() * (-0.5 / h), total

    def _kernel(self, grid: Grid, d: int, device: Any) -> Tensor:
        if (grid, d) not in self._kernels:
            steps = torch.arange(grid.length, device=device, dtype=torch.float64)
            squared = (torch.minimum(steps, grid.length - steps) * grid.spacing) ** 2
            whole, half = (
                (2 + torch.cos(2 * torch.pi * part(grid.length, device=device, dtype=torch.float64))) / 3
                for part in (torch.fft.fftfreq, torch.fft.rfftfreq)
            )
            if d == 1:
                values, filtered = 1 / (1 + squared), half**2
            else:
                values, filtered = 1 / (1 + squared[:, None] + squared), (whole[:, None] * half) ** 2
            # Only the last is kept: a map that grows does not come back.
            self._kernels = {(grid, d): (torch.fft.rfftn(values).real / filtered).to(grid.precision)}
        return self._kernels[grid, d]


def splines(offset: Tensor) -> tuple[Tensor, Tensor]:
    """Return cubic B-spline weights of the four nodes around each coordinate, and their slopes, on a new last axis."""
    square = offset * offset
    powers = torch.stack([torch.ones_like(offset), offset, square, square * offset], dim=-1)
    with product_precision(offset.device):
        both = powers @ _spline(offset.dtype, offset.device)
    return both[..., :4], both[..., 4:]


@cache
def _spline(dtype: Any, device: Any) -> Tensor:
    return torch.tensor(SPLINE, dtype=dtype, device=device)


def nearest_known(known: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the 15 nearest known rows of each row and their weights: see `layout`."""
    found, distance = nearest_among(known, rows, layout.NEIGHBORS)
    squared = distance.square()
    weights = perplexity_weights(squared, layout.PERPLEXITY)
    same = squared[:, 0] <= SAME_SINGLE * float((known - known.mean(dim=0)).double().square().sum()) / len(known)
    first = torch.zeros_like(weights)
    first[:, 0] = 1.0
    return found, torch.where(same[:, None], first, weights)


def local_scale(embedding: Tensor) -> float:
    """Return h, the median distance to the 10th neighbour in the map, of up to 2,000 rows."""
    k = min(layout.SCALE_NEIGHBOR, len(embedding) - 1)
    some = embedding[torch.from_numpy(evenly_spaced(len(embedding), SCALE_SAMPLE)).to(embedding.device)]
    return float(np.median(nearest_among(embedding, some, k + 1)[1][:, k].cpu().numpy()))


def place(found: Tensor, weights: Tensor, embedding: Tensor, scale: float) -> Tensor:
    """Return places of new rows from their nearest known rows: see `layout`."""
    result = torch.empty((len(found), embedding.shape[1]), dtype=torch.float64, device=embedding.device)
    steep = 1 / scale**2 if scale > 0 else 1.0
    for part in chunks(len(found), _part(embedding, 32 * found.shape[1] ** 2)):
        near, w = embedding[found[part]].double(), weights[part].double()
        apart = (near[:, :, None, :] - near[:, None, :, :]).square().sum(dim=3)
        agreed = (w[:, None, :] / (1 + steep * apart)).sum(dim=2)
        z = near.gather(1, agreed.argmax(dim=1)[:, None, None].expand(-1, 1, near.shape[2]))[:, 0]
        for _ in range(layout.STEPS):
            pull = w / (1 + steep * (near - z[:, None, :]).square().sum(dim=2))
            z = (pull[:, :, None] * near).sum(dim=1) / pull.sum(dim=1, keepdim=True)
        result[part] = z
    return result
