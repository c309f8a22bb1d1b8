"""LinearPairLens and PairLens on tensors: 1,048,576 x 50 on a GPU, with the recall of their neighbours.

    PYTHONPATH=src python -m benchmarks.gpu_lens [--rows N] [--repeats R] [--only linear lens recall memory]

Needs torch, NumPy, SciPy and scikit-learn only. Rows are float32: ten groups in eight of 50 directions, noise in all.
Times are those of the first run, which compiles kernels and wakes the device up, and the best of the others. Goals on
an NVIDIA H200: LinearPairLens below 15 s, PairLens(5) below 30 s.

linear   LinearPairLens(2): fit, and AUC of fresh pairs in the view.
lens     PairLens(5): fit, transform of 20,000 rows, and AUC of fresh pairs.
recall   ten nearest rows of 256 sampled rows, beside float64 distances to all rows.
memory   agreement with NumPy on 3,000 rows: the largest angle between the views.

Without a GPU the same runs on the CPU with 8,192 rows, to try the script.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import subspace_angles

from benchmarks.measure import report
from pairlens import Constraints, LinearPairLens, PairLens
from pairlens.engines.torch import torch_neighbors
from pairlens.judging import pair_auc

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
N_FEATURES, N_PAIRS, N_GROUPS, K = 50, 1000, 10, 10
GOALS = {"LinearPairLens(2)": 15.0, "PairLens(5)": 30.0}


def mixture(n: int) -> tuple[torch.Tensor, NDArray[np.int64]]:
    """Ten groups in eight directions, noise in all 50."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_GROUPS, n)
    X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
    X[:, :8] += 2 * rng.standard_normal((N_GROUPS, 8), dtype=np.float32)[y]
    turn = np.linalg.qr(rng.standard_normal((N_FEATURES, N_FEATURES)))[0].astype(np.float32)
    return torch.from_numpy(X @ turn).to(DEVICE), y


def seconds(call: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """Time of the first run, best time of the others, and the last result."""
    times, result = [], None
    for _ in range(1 + repeats):
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        result = call()
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return times[0], min(times[1:] or times), result


def fitted(name: str, lens: Any, X: torch.Tensor, y: NDArray[np.int64], repeats: int) -> list[tuple[str, str]]:
    """Time, memory and quality of one method."""
    pairs = Constraints.from_labels(y, n_pairs=N_PAIRS, random_state=0)
    fresh = Constraints.from_labels(y, n_pairs=5000, random_state=1)
    if DEVICE.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    first, best, model = seconds(lambda: lens.fit(X, constraints=pairs), repeats)
    lines = [(f"{name} fit, s", f"{best:.2f} (first {first:.2f}; goal {GOALS[name]:.0f})")]
    if DEVICE.type == "cuda":
        lines.append((f"{name} peak of the device, GiB", f"{torch.cuda.max_memory_allocated() / 2**30:.1f}"))
    _, new, _ = seconds(lambda: model.transform(X[:20_000]), 1)
    lines.append((f"{name} transform of 20,000 rows, s", f"{new:.3f}"))
    view = model.transform(X).cpu().numpy()
    quality = pair_auc(view, fresh)
    lines.append((f"{name} AUC of fresh pairs; of held-out ones", f"{quality:.4f}; {model.auc_:.4f}"))
    return lines


def recall(X: torch.Tensor) -> list[tuple[str, str]]:
    """Share of the true neighbours of some rows that the search on the device finds."""
    took, again, found = seconds(lambda: torch_neighbors(X, n_nearest=K).nearest, 1)
    exact = X.double()
    squares = exact.square().sum(dim=1)
    shares = []
    for row in np.linspace(0, len(X) - 1, 256).astype(int).tolist():
        squared = squares + squares[row] - 2 * (exact @ exact[row])
        squared[row] = torch.inf
        true = torch.topk(squared, K, largest=False).indices
        shares.append(float(torch.isin(true, found[row]).double().mean()))
    return [
        (f"recall of the {K} nearest, 256 rows", f"{np.mean(shares):.4f}"),
        ("search, s", f"{again:.2f} (first {took:.2f})"),
    ]


def agreement() -> list[tuple[str, str]]:
    """Angles between what a tensor and an array give."""
    X, y = mixture(3000)
    pairs = Constraints.from_labels(y, n_pairs=300, random_state=0)
    lines = []
    for name, lens in (
        ("LinearPairLens(2)", LinearPairLens(2, random_state=0)),
        ("PairLens(5)", PairLens(5, random_state=0)),
    ):
        here = lens.fit(X.cpu().numpy(), constraints=pairs).transform(X.cpu().numpy())
        there = lens.fit(X, constraints=pairs).transform(X).cpu().numpy()
        angle = float(subspace_angles(here - here.mean(axis=0), there - there.mean(axis=0)).max())
        lines.append((f"{name}, 3,000 rows: largest angle to NumPy", f"{angle:.1e}"))
    return lines


def main(
    rows: int | None = None, repeats: int = 2, only: tuple[str, ...] = ("linear", "lens", "recall", "memory")
) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", UserWarning)
    n = rows or (1_048_576 if DEVICE.type == "cuda" else 8192)
    X, y = mixture(n)
    lines: list[tuple[str, str]] = []
    if "memory" in only:
        lines += agreement()
    if "recall" in only:
        lines += recall(X)
    if "linear" in only:
        lines += fitted("LinearPairLens(2)", LinearPairLens(2, random_state=0), X, y, repeats)
    if "lens" in only:
        lines += fitted("PairLens(5)", PairLens(5, random_state=0), X, y, repeats)
    name = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "CPU"
    report(f"{n:,} x {N_FEATURES}, {N_PAIRS:,} pairs, on {name}", lines, ("what", "measured"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=["linear", "lens", "recall", "memory"])
    chosen = parser.parse_args()
    main(chosen.rows, chosen.repeats, tuple(chosen.only))
