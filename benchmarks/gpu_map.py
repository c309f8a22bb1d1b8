"""PairMap on tensors: every row laid out on the device.

    PYTHONPATH=src python -m benchmarks.gpu_map [--sizes 262144 1048576] [--mnist] [--pairs 200] [--repeats 2]
        [--profile] [--beside] [--torchdr]

Needs torch, NumPy, SciPy and scikit-learn only; `--beside` also fits the same rows in memory, which needs openTSNE.
Rows are those of :mod:`benchmarks.gpu_lens` (ten groups in eight of 50 directions, noise in all), and MNIST from the
folder PAIRLENS_DATA. Times are those of the first run, which compiles kernels and wakes the device up, and the best of
the others. Goals on an NVIDIA H200: 1,048,576 x 50 in 12 s, 262,144 in 4 s, MNIST (70,000 x 784) in 3 s.

1-NN is the share of 5,000 rows whose nearest row in the map is of their group, AUC that of 5,000 fresh pairs by their
distance in the map. `--torchdr` adds the UMAP of TorchDR 0.5 (``pip install --no-deps torchdr``), which uses no pairs,
with its defaults, once with 1,000 rows and then timed. `--profile` prints where the time of one more fit goes, kernel
by kernel waited for.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.gpu_lens import DEVICE, mixture, seconds
from benchmarks.measure import report
from pairlens import Constraints, PairMap
from pairlens.judging import pair_auc

GOALS = {1_048_576: 12.0, 262_144: 4.0, 70_000: 3.0}
JUDGED = 5000


def mnist() -> tuple[torch.Tensor, NDArray[np.int64]]:
    """MNIST on the device."""
    with np.load(Path(os.environ["PAIRLENS_DATA"]) / "mnist.npz", allow_pickle=False) as arrays:
        X, y = arrays["X"], arrays["y"].astype(np.int64)
    return torch.from_numpy(X.astype(np.float32) / 255).to(DEVICE), y


def nearest_agree(Z: torch.Tensor, y: NDArray[np.int64]) -> float:
    """Share of sampled rows whose nearest row in the map is of their group."""
    some = np.random.default_rng(0).choice(len(Z), min(JUDGED, len(Z)), replace=False)
    hits = []
    for row in torch.from_numpy(some).to(Z.device).split(64):
        squared = (Z[row, None, :] - Z).square().sum(dim=2)
        squared.scatter_(1, row[:, None], torch.inf)
        hits.append(squared.argmin(dim=1).cpu().numpy())
    return float(np.mean(y[np.concatenate(hits)] == y[some]))


def quality(Z: torch.Tensor, y: NDArray[np.int64]) -> str:
    """1-NN and AUC of fresh pairs in a map."""
    fresh = Constraints.from_labels(y, n_pairs=5000, random_state=1)
    return f"{nearest_agree(Z, y):.4f}, {pair_auc(Z.double().cpu().numpy(), fresh):.4f}"


def case(
    name: str, X: torch.Tensor, y: NDArray[np.int64], n_pairs: int, repeats: int, profile: bool, beside: bool
) -> list[tuple[str, str]]:
    """Time, memory and quality of one set of rows."""
    pairs = Constraints.from_labels(y, n_pairs=n_pairs, random_state=0)
    if DEVICE.type == "cuda":
        torch.cuda.reset_peak_memory_stats()

    def fit() -> Any:
        return PairMap(random_state=0).fit(X, constraints=pairs)

    first, best, model = seconds(fit, repeats)
    goal = f"; goal {GOALS[len(X)]:.0f}" if len(X) in GOALS else ""
    lines = [(f"{name} fit, s", f"{best:.2f} (first {first:.2f}{goal})")]
    if DEVICE.type == "cuda":
        lines.append((f"{name} peak of the device, GiB", f"{torch.cuda.max_memory_allocated() / 2**30:.1f}"))
    lines.append((f"{name} 1-NN, AUC of fresh pairs in the map", quality(model.embedding_, y)))
    lines.append((f"{name} AUC of held-out pairs; long-range share", f"{model.auc_:.4f}; {model.long_range_:.2f}"))
    again = fit().embedding_
    lines.append((f"{name} the same map again", str(bool(torch.equal(again, model.embedding_)))))
    new, _, _ = seconds(lambda: model.transform(X[:20_000]), 0)
    lines.append((f"{name} transform of 20,000 rows, s", f"{new:.3f}"))
    if profile:
        profiler = cProfile.Profile()
        profiler.runcall(fit)
        pstats.Stats(profiler).sort_stats("cumtime").print_stats(60)
    if beside:
        here = X.cpu().numpy()
        took, _, in_memory = seconds(lambda: PairMap(random_state=0).fit(here, constraints=pairs), 0)
        lines.append(
            (f"{name} in memory, s; 1-NN, AUC", f"{took:.1f}; {quality(torch.from_numpy(in_memory.embedding_), y)}")
        )
    return lines


def torchdr(name: str, X: torch.Tensor, y: NDArray[np.int64]) -> list[tuple[str, str]]:
    """Time and quality of TorchDR's UMAP, or why there is none."""
    # It imports matplotlib for pictures that are not drawn here.
    for module in ("matplotlib", "matplotlib.pylab"):
        sys.modules.setdefault(module, mock.MagicMock())
    try:
        from torchdr import UMAP

        UMAP(device=DEVICE.type, random_state=0).fit_transform(X[:1000])
        took, _, Z = seconds(lambda: UMAP(device=DEVICE.type, random_state=0).fit_transform(X), 0)
    except Exception as error:  # it may lack a package or memory, and the table says so
        return [(f"{name} TorchDR's UMAP", f"{type(error).__name__}: {str(error)[:200]}")]
    return [(f"{name} TorchDR's UMAP, s; 1-NN, AUC", f"{took:.1f}; {quality(Z, y)}")]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[262_144, 1_048_576] if DEVICE.type == "cuda" else [4096]
    )
    parser.add_argument("--mnist", action="store_true")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--torchdr", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    cases = [("MNIST", *mnist())] if chosen.mnist else []
    cases += [(f"{n:,} x 50", *mixture(n)) for n in chosen.sizes]
    name = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "CPU"
    for title, X, y in cases:
        lines = case(title, X, y, chosen.pairs, chosen.repeats, chosen.profile, chosen.beside)
        if chosen.torchdr:
            lines += torchdr(title, X, y)
        report(f"PairMap of {title} with {chosen.pairs:,} pairs on {name}", lines, ("what", "measured"))


if __name__ == "__main__":
    main()
