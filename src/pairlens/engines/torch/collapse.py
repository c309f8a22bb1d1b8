"""Groups of rows that count as one point, on torch tensors: :mod:`pairlens.engines.local.collapse` for a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pairlens.engines.local.collapse import RESOLUTION, nearest_inside
from pairlens.engines.torch.neighbors import TorchRows
from pairlens.engines.torch.selection import chunks
from pairlens.engines.types import IntArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch.device import torch

PORTION = 1 << 20


def first_identical(X: Tensor) -> Tensor:
    """For each row the first row that is identical to it, itself if there is none before."""
    n, f = X.shape
    weight = torch.from_numpy(np.random.default_rng(0).standard_normal(f)).to(X.device)
    mark = torch.empty(n, dtype=torch.float64, device=X.device)
    for part in chunks(n, 1 << 17):
        # Adding zero makes one zero of both; a sum, unlike a product with a vector, treats all rows in the same way.
        mark[part] = ((X[part].double() + 0.0) * weight).sum(dim=1)
    value, order = mark.sort(stable=True)
    is_first = torch.ones_like(order, dtype=torch.bool)
    is_first[1:] = value[1:] != value[:-1]
    start = torch.arange(n, device=X.device)[is_first]
    candidate = torch.empty_like(order)
    candidate[order] = order[start[is_first.cumsum(0) - 1]]
    repeated = (candidate != torch.arange(n, device=X.device)).nonzero()[:, 0]
    for part in chunks(len(repeated), 1 << 17):
        rows = repeated[part]
        differs = rows[(X[rows] != X[candidate[rows]]).any(dim=1)]
        candidate[differs] = differs
    return candidate


@dataclass(frozen=True)
class TorchCollapsed:
    """Rows in groups, numbered by their first row; see :class:`pairlens.engines.local.collapse.Collapsed`."""

    group: Tensor
    first: Tensor
    members: Tensor
    start: Tensor
    representative: Tensor

    @classmethod
    def of(cls, X: Tensor, codes: IntArray) -> TorchCollapsed:
        """Put identical rows together, and rows with the same non-negative code."""
        n = X.shape[0]
        every = torch.arange(n, device=X.device)
        representative = first_identical(X)
        linked = np.flatnonzero(codes >= 0)
        if len(linked):
            repeated = (representative != every).nonzero()[:, 0]
            _join(representative, repeated, linked, codes[linked])
        stands = representative == every
        group = (stands.cumsum(0) - 1)[representative]
        size = torch.bincount(group)
        start = torch.cat([size.new_zeros(1), size.cumsum(0)])
        return cls(group, every[stands], group.argsort(stable=True), start, representative)

    @property
    def n_groups(self) -> int:
        return len(self.first)

    @property
    def sizes(self) -> Tensor:
        """Number of rows of each group."""
        return self.start.diff()

    def expand(self, rows: TorchRows, listed: Tensor, key: Tensor, k: int) -> Tensor:
        """The k nearest rows of every row, from the nearest groups of every group, nearest first."""
        n = len(self.group)
        sizes = self.sizes
        others = sizes[self.group] - 1
        nearest = torch.empty((n, k), dtype=torch.int64, device=self.group.device)
        for crowded in (sizes > k).nonzero()[:, 0].tolist():
            inside = self.members[int(self.start[crowded]) : int(self.start[crowded + 1])]
            group_rows = rows.X[inside].cpu().numpy()
            place = torch.from_numpy(nearest_inside(group_rows, k)).to(inside.device)
            nearest[inside] = inside[place]
        plain = others == 0
        if listed.shape[1] >= k:
            plain &= (sizes[listed[:, :k]] == 1).all(dim=1)[self.group]
            nearest[plain] = self.first[listed[self.group[plain], :k]]
        else:
            plain[:] = False
        is_new = torch.ones_like(key, dtype=torch.bool)
        is_new[:, 1:] = key[:, 1:] != key[:, :-1]
        quantum = float(rows.square.mean()) * RESOLUTION
        rest = (~plain & (others < k)).nonzero()[:, 0]
        for part in self._portions(rest, listed, is_new, k):
            nearest[part] = self._expand_rows(rows, part, listed, is_new, k, quantum)
        return nearest

    def _tables(self, rows: Tensor, listed: Tensor, is_new: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """Groups of each row, its own first, whether each is farther than the one before, and its rows to look at."""
        own = self.group[rows]
        groups = torch.cat([own[:, None], listed[own]], dim=1)
        farther = torch.cat([torch.ones_like(own, dtype=torch.bool)[:, None], is_new[own]], dim=1)
        count = self.sizes[groups]
        before = count.cumsum(dim=1) - count - 1
        before[:, 0] = 0
        before = torch.where(farther, before, 0).cummax(dim=1).values
        return groups, farther, torch.where(before < k, count, 0)

    def _portions(self, rows: Tensor, listed: Tensor, is_new: Tensor, k: int) -> Iterator[Tensor]:
        """Parts of the rows with about :data:`PORTION` pairs each."""
        for part in chunks(len(rows), PORTION):
            coarse = rows[part]
            portion = self._tables(coarse, listed, is_new, k)[2].sum(dim=1).cumsum(0) // PORTION
            cuts = portion.diff().nonzero()[:, 0] + 1
            yield from coarse.tensor_split(cuts.cpu())

    def _expand_rows(
        self, rows: TorchRows, chosen: Tensor, listed: Tensor, is_new: Tensor, k: int, quantum: float
    ) -> Tensor:
        groups, farther, count = self._tables(chosen, listed, is_new, k)
        flat = count.flatten()
        slot = torch.arange(len(flat), device=flat.device).repeat_interleave(flat)
        offset = torch.arange(len(slot), device=flat.device) - (flat.cumsum(0) - flat)[slot]
        other = self.members[self.start[groups.flatten()[slot]] + offset]
        line = slot // groups.shape[1]
        keep = other != chosen[line]
        line, other, slot = line[keep], other[keep], slot[keep]
        place = farther.cumsum(dim=1).flatten()[slot]
        squared = rows.squared_distances(chosen[line], other)
        if quantum > 0:
            squared = (squared / quantum).round()
        order = torch.arange(len(line), device=line.device)
        for criterion in (other, squared, place, line):
            order = order[criterion[order].argsort(stable=True)]
        counts = torch.bincount(line, minlength=len(chosen))
        position = torch.arange(len(line), device=line.device) - (counts.cumsum(0) - counts)[line[order]]
        return other[order][position < k].view(len(chosen), k)


def _join(representative: Tensor, repeated: Tensor, linked: IntArray, codes: IntArray) -> None:
    """Let rows with the same code, and rows identical to any of them, have the first of all as representative."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    source = np.concatenate([linked, repeated.cpu().numpy()])
    target = np.concatenate([linked[first[inverse]], representative[repeated].cpu().numpy()])
    involved, local = np.unique(np.concatenate([source, target]), return_inverse=True)
    ends = local.reshape(2, -1)
    graph = sparse.csr_matrix((np.ones(len(source), dtype=np.int8), (ends[0], ends[1])), shape=(len(involved),) * 2)
    _, label = connected_components(graph, directed=False)
    # The rows are in ascending order, so the first of a label is its smallest.
    _, first_of = np.unique(label, return_index=True)
    device = representative.device
    representative[torch.from_numpy(involved).to(device)] = torch.from_numpy(involved[first_of[label]]).to(device)
