"""All figures of pairlens on a GPU in one table: DSP at three sizes, neighbours, and WSDR against two CPU cores.

    PYTHONPATH=src python -m benchmarks.gpu [--cases mnist 262k 1m neighbors search wsdr] [--quick] [--tilings]

Times are the best of three runs after one that compiles the kernels and wakes the device up; the first run is reported
beside them. Agreement is the share of the true k nearest and k farthest rows, by float64 distances to all rows, that
was found for 256 sampled rows. MNIST is read from the folder PAIRLENS_DATA; without it, random images of its shape take
its place, and the table says so. Without a GPU everything runs on the CPU with fewer rows, to try the script.

mnist      DSP, 70,000 x 784, 200 must-links and 200 cannot-links.
262k       DSP, 262,144 x 128, a mixture of 30 Gaussians, 100 must-links and 100 cannot-links.
1m         DSP, 1,048,576 x 128, the same.
neighbors  5 nearest rows in input distance, 262,144 x 128.
search     15 nearest rows in input distance, 1,048,576 x 128, beside float64 distances of 256 rows to all.
wsdr       WSDR, 100,000 x 100, 1,000,000 preferences, 10 components, 40 iterations: GPU against NumPy on two cores.

--tilings times the kernel of the neighbour pass alone for several shapes of its tiles.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.measure import report
from pairlens import DSP, WSDR, Constraints, Preferences
from pairlens.engines import (
    ProjectedNeighbors,
    ProjectedRows,
    config_context,
    graph_scatter,
    projected_rows,
    symmetric_eigen,
)
from pairlens.engines.torch import TensorRows, torch_neighbors, triton_kernels
from pairlens.engines.torch import rows as torch_device
from pairlens.engines.torch import search as torch_search
from pairlens.kernels import delta_to_gamma, median_distance, must_link_null_space
from pairlens.methods.dsp import dual_diagonalisation, far_edges, near_edges

K = 5
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Lines = list[tuple[str, str]]


def synchronize() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def seconds(call: Callable[[], Any], repeats: int = 3) -> tuple[float, float, Any]:
    """Time of the first run, best time of the others, and the last result."""
    times, result = [], None
    for _ in range(1 + repeats):
        synchronize()
        began = time.perf_counter()
        result = call()
        synchronize()
        times.append(time.perf_counter() - began)
    return times[0], min(times[1:]), result


def mixture(n: int, f: int = 128) -> tuple[torch.Tensor, NDArray[np.int64]]:
    """30 Gaussians."""
    rng = np.random.default_rng(0)
    y = rng.integers(30, size=n)
    centres = 0.5 * rng.standard_normal((30, f), dtype=np.float32)
    return torch.from_numpy(rng.standard_normal((n, f), dtype=np.float32) + centres[y]).to(DEVICE), y


def some_pairs(y: NDArray[np.int64], count: int) -> Constraints:
    """As many must-links as cannot-links, between random rows."""
    rng = np.random.default_rng(1)
    pairs = rng.permutation(len(y))[: len(y) // 2 * 2].reshape(-1, 2)
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Constraints(pairs[same][:count], pairs[~same][:count], n_samples=len(y))


def mnist_rows(quick: bool) -> tuple[torch.Tensor, Constraints, str]:
    file = Path(os.environ.get("PAIRLENS_DATA", "")) / "mnist.npz"
    n = 1000 if quick else 70_000
    if file.is_file():
        with np.load(file, allow_pickle=False) as arrays:
            X, y = arrays["X"][:n], arrays["y"][:n]
        name = f"MNIST {n:,} x 784"
    else:
        rng = np.random.default_rng(0)
        y = rng.integers(10, size=n)
        base = rng.random((10, 784)) < 0.2
        X = (255 * (base[y] ^ (rng.random((n, 784)) < 0.1)) * rng.random((n, 784))).astype(np.uint8)
        name = f"random images {n:,} x 784 in place of MNIST"
    pairs = Constraints.from_labels(y, per_class=20, random_state=0)
    return torch.from_numpy(X).to(DEVICE).float() / 255, pairs, name


def agreement(rows: ProjectedRows, found: ProjectedNeighbors, size: int = 256) -> tuple[float, float]:
    """Share of the true nearest and farthest of some rows that was found; ties in projected distance by input."""
    X, F = rows.X.tensor.double() - rows.X.tensor.double().mean(dim=0), rows.F
    X_square, F_square = X.square().sum(dim=1), F.square().sum(dim=1)
    stands, nearest, farthest = (
        torch.from_numpy(part).to(X.device) for part in (rows.groups.representative, found.nearest, found.farthest)
    )
    near, far = [], []
    for row in np.random.default_rng(1).choice(rows.n, min(size, rows.n), replace=False).tolist():
        point = int(stands[row])
        in_input, from_point = (X_square + X_square[i] - 2 * (X @ X[i]) for i in (row, point))
        squared = 2 - 2 * torch.exp(-rows.gamma * from_point) - (F_square + F_square[point] - 2 * (F @ F[point]))
        squared = (squared[stands] / 1e-9).round()
        squared[stands == point] = -1
        squared[row] = torch.inf
        by_input = in_input.argsort(stable=True)
        true = by_input[squared[by_input].argsort(stable=True)][:K]
        near.append(float(torch.isin(true, nearest[row]).double().mean()))
        true = (-in_input).argsort(stable=True)[:K]
        far.append(float(torch.isin(true, farthest[row]).double().mean()))
    return float(np.mean(near)), float(np.mean(far))


@contextmanager
def counting_open_rows() -> Iterator[dict[str, int]]:
    """Count the rows that were compared with all others in float64, by side."""
    counts: dict[str, int] = {}
    original = torch_search._compare_all

    def counted(screen: Any, name: str, side: Any, rows: torch.Tensor, found: Any) -> None:
        counts[name] = counts.get(name, 0) + len(rows)
        original(screen, name, side, rows, found)

    torch_search._compare_all = counted
    try:
        yield counts
    finally:
        torch_search._compare_all = original


def dsp(name: str, X: torch.Tensor, pairs: Constraints, n_components: int, goal: float) -> Lines:
    first, best, _ = seconds(lambda: DSP(n_components, neighbors="exact").fit(X, constraints=pairs))
    gamma, chunklets = delta_to_gamma(median_distance(X[:: max(1, len(X) // 1000)].cpu().numpy())), pairs.chunklets()
    tensor = TensorRows.of(X)
    _, prepare, rows = seconds(
        lambda: projected_rows(
            tensor, must_link_null_space(tensor, chunklets, gamma=gamma).coordinates(tensor), gamma, chunklets
        ),
        1,
    )
    _, search, found = seconds(lambda: rows.neighbors(K), 1)
    cannot = pairs.cannot_link
    graphs = (
        lambda: near_edges(rows, found),
        lambda: far_edges(rows, found, cannot, np.ones(len(cannot))),
    )
    _, scatter, (A, B) = seconds(lambda: [graph_scatter(tensor, graph()) for graph in graphs], 1)
    _, solve, _ = seconds(lambda: dual_diagonalisation(A, B, n_components, eigh=partial(symmetric_eigen, tensor)), 1)
    with counting_open_rows() as in_float64:
        rows.neighbors(K)
    near, far = agreement(rows, found)
    lines = [
        (f"DSP fit, {name}", f"{best:.3f} s (goal {goal} s), first run {first:.2f} s"),
        (
            "  of which prepare / search / scatters / solve",
            f"{prepare:.3f} / {search:.3f} / {scatter:.3f} / {solve:.3f} s",
        ),
        ("  agreement of nearest / farthest with float64", f"{near:.6f} / {far:.6f}"),
        ("  rows compared in float64, near / far", f"{in_float64.get('near', 0)} / {in_float64.get('far', 0)}"),
    ]
    if DEVICE.type == "cuda":
        with config_context(tf32=True):
            _, fast, loose = seconds(lambda: rows.neighbors(K), 1)
        with counting_open_rows() as in_float64, config_context(tf32=True):
            rows.neighbors(K)
        near, far = agreement(rows, loose)
        counts = f"{in_float64.get('near', 0)} / {in_float64.get('far', 0)} rows in float64"
        lines.append(("  search with tf32=True, agreement", f"{fast:.3f} s, {near:.6f} / {far:.6f}, {counts}"))
        lines.append(("  peak memory of the GPU", f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB"))
        torch.cuda.reset_peak_memory_stats()
    return lines


def mnist(quick: bool) -> Lines:
    X, pairs, name = mnist_rows(quick)
    return dsp(name, X, pairs, 20, 0.8)


def gaussians(n: int, goal: float) -> Callable[[bool], Lines]:
    def case(quick: bool) -> Lines:
        X, y = mixture(n // 64 if quick else n)
        return dsp(f"{len(X):,} x 128", X, some_pairs(y, 100), 20, goal)

    return case


def plain_neighbors(quick: bool) -> Lines:
    X, _ = mixture(4096 if quick else 262_144)
    first, best, _ = seconds(lambda: torch_neighbors(X, n_nearest=K))
    lines = [(f"5 nearest in the input, {len(X):,} x 128", f"{best:.3f} s, first run {first:.2f} s")]
    if triton_kernels(X) is not None:
        with mock.patch.object(torch_device, "_kernels", return_value=None):
            _, plain, _ = seconds(lambda: torch_neighbors(X, n_nearest=K), 1)
        lines.append(("  the same without Triton", f"{plain:.3f} s"))
    return lines


def whole_search(quick: bool) -> Lines:
    X, _ = mixture(16_384 if quick else 1_048_576)
    first, best, found = seconds(lambda: torch_neighbors(X, n_nearest=15))
    wide, hits = X.double(), []
    for row in np.random.default_rng(1).choice(len(X), 256, replace=False).tolist():
        squared = (wide - wide[row]).square_().sum(dim=1)
        squared[row] = torch.inf
        true = squared.topk(15, largest=False).indices
        hits.append(float(torch.isin(true, found.nearest[row]).double().mean()))
    return [
        (f"15 nearest in the input, {len(X):,} x 128", f"{best:.3f} s (goal 4 s), first run {first:.2f} s"),
        ("  agreement with float64", f"{np.mean(hits):.6f}"),
    ]


def wsdr(quick: bool) -> Lines:
    n, D, count = (2000, 20, 20_000) if quick else (100_000, 100, 1_000_000)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    better = X @ rng.standard_normal(D)
    ends = np.unique(np.sort(rng.integers(n, size=(int(1.1 * count), 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    ends = rng.permutation(ends)[:count]
    flip = better[ends[:, 0]] + rng.standard_normal(len(ends)) < better[ends[:, 1]]
    ends[flip] = ends[flip][:, ::-1]
    known = Preferences(ends, n_samples=n)
    T = torch.from_numpy(X).to(DEVICE)

    def model() -> WSDR:
        return WSDR(10, C=0.1, tol=0.0)

    first, on_device, there = seconds(lambda: model().fit(T, preferences=known))
    two_cores = len(os.sched_getaffinity(0)) > 2
    cores = os.sched_getaffinity(0)
    if two_cores:
        os.sched_setaffinity(0, set(sorted(cores)[:2]))
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        with threadpool_limits(2):
            _, on_cpu, here = seconds(lambda: model().fit(X, preferences=known), 1)
    finally:
        os.sched_setaffinity(0, cores)
    apart = np.abs(np.asarray(there.components_) - here.components_).max() / np.abs(here.components_).max()
    return [
        (f"WSDR fit, {n:,} x {D}, {len(ends):,} preferences", f"{on_device:.3f} s, first run {first:.2f} s"),
        ("  NumPy on two cores", f"{on_cpu:.2f} s, {on_cpu / on_device:.1f} times as long (goal 10)"),
        ("  iterations there and here", f"{there.n_iter_} / {here.n_iter_}"),
        ("  largest difference of components, relative", f"{apart:.1e}"),
    ]


def tilings(quick: bool) -> Lines:
    """Time of the kernel for a part of the rows, and what it would be for all."""
    lines = []
    sizes = [("mnist", mnist_rows(quick)[0], 200), ("262,144 x 128", mixture(4096 if quick else 262_144)[0], 100)]
    for name, X, rank in sizes:
        kernels = triton_kernels(X)
        if kernels is None:
            return [("tilings", "no Triton here")]
        F = torch.randn((len(X), rank), device=DEVICE, dtype=torch.float64) / (2 * rank**0.5)
        scale = float(X.double().var(dim=0, correction=0).sum()) ** 0.5
        projected = projected_rows(TensorRows(X), TensorRows(F), 0.5 / scale**2, np.full(len(X), -1))
        part = slice(0, min(16_384, len(X) // 256 * 256))
        flop = 2.0 * len(X) ** 2 * (X.shape[1] + rank)
        for shape in (
            (128, 256, 32, 8, 8, 3),
            (128, 256, 32, 8, 8, 4),
            (128, 256, 32, 32, 8, 3),
            (256, 128, 32, 16, 8, 3),
            (128, 128, 64, 16, 8, 3),
            (128, 128, 32, 16, 4, 3),
        ):
            try:
                screen = kernels.TritonProjectedScreen(projected, kernels.Tiling(*shape))
                first, best, _ = seconds(lambda: screen.kernels.bounds(part))  # noqa: B023
                whole = best * len(X) / (part.stop - part.start)
                text = f"{whole:.3f} s for all, {flop / whole / 1e12:.0f} TFLOP/s, first run {first:.1f} s"
            except Exception as error:  # a tile may need more shared memory than there is
                text = f"{type(error).__name__}: {str(error)[:80]}"
            lines.append((f"{name}, tile {shape}", text))
    return lines


CASES: dict[str, Callable[[bool], Lines]] = {
    "mnist": mnist,
    "262k": gaussians(262_144, 2.0),
    "1m": gaussians(1_048_576, 28.0),
    "neighbors": plain_neighbors,
    "search": whole_search,
    "wsdr": wsdr,
}


def main(quick: bool = False, cases: list[str] | None = None, with_tilings: bool = False) -> Lines:
    """Print one table, and return its lines."""
    warnings.simplefilter("ignore")
    where = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "CPU"
    fused = "Triton kernels" if triton_kernels(torch.empty(0, device=DEVICE)) else "no Triton"
    lines: Lines = [("device", f"{where}, torch {torch.__version__}, {fused}")]
    for name in cases or CASES:
        lines += CASES[name](quick or DEVICE.type == "cpu")
        print(*lines[-5:], sep="\n", flush=True)
    if with_tilings:
        lines += tilings(quick)
    report("GPU", lines, ("what", "figure"))
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    parser.add_argument("--cases", nargs="*", choices=list(CASES), help="all by default")
    parser.add_argument("--tilings", action="store_true", help="time shapes of tiles as well")
    given = parser.parse_args()
    main(given.quick, given.cases, given.tilings)
