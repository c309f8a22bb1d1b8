"""A table that does not fit: 20,000,000 x 100 float32 on two workers of 2 GiB each, and neighbours on a cluster.

The table, 8 GB, is written as NPY to a temporary folder (``--folder`` says where) and removed afterwards.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from scipy.linalg import subspace_angles

from benchmarks.measure import report
from pairlens import BWDR, DSP, LPP, SDA, SSDR, Constraints
from pairlens.engines import config_context

MIB = 1 << 20
N_ROWS, N_FEATURES, N_PAIRS = 20_000_000, 100, 100_000
N_CLASSES, N_HIDDEN = 10, 8
CHUNK = 250_000


def write_table(path: Path, n: int) -> np.ndarray:
    """Ten classes in eight hidden dimensions, seen through 100 features with noise; returns the labels."""
    rng = np.random.default_rng(0)
    centres = 3 * rng.standard_normal((N_CLASSES, N_HIDDEN)).astype(np.float32)
    loadings = rng.standard_normal((N_HIDDEN, N_FEATURES)).astype(np.float32)
    loadings *= np.linspace(1, 0.4, N_HIDDEN, dtype=np.float32)[:, None]
    labels = rng.integers(0, N_CLASSES, n).astype(np.int8)
    table = open_memmap(path, mode="w+", dtype=np.float32, shape=(n, N_FEATURES))
    for start in range(0, n, CHUNK):
        part = slice(start, min(start + CHUNK, n))
        hidden = centres[labels[part]]
        hidden += rng.standard_normal(hidden.shape, dtype=np.float32)
        rows = rng.standard_normal((len(hidden), N_FEATURES), dtype=np.float32)
        rows += hidden @ loadings
        table[part] = rows
    table.flush()
    return labels


def read_rows(path: str, start: int, stop: int) -> np.ndarray:
    """Rows of an NPY table, without a map of the file that would count as memory of the process."""
    with open(path, "rb") as file:
        np.lib.format.read_magic(file)
        (_, n_features), _, dtype = np.lib.format.read_array_header_1_0(file)
        file.seek(start * n_features * dtype.itemsize, os.SEEK_CUR)
        return np.fromfile(file, dtype, (stop - start) * n_features).reshape(-1, n_features)


def as_dask(path: Path, n: int, chunk: int = CHUNK) -> Any:
    """The table as a dask array whose chunks are read where they are needed."""
    import dask
    import dask.array as da

    read = dask.delayed(read_rows, pure=True)
    parts = [(start, min(start + chunk, n)) for start in range(0, n, chunk)]
    return da.concatenate(
        [
            da.from_delayed(read(str(path), start, stop), (stop - start, N_FEATURES), dtype=np.float32)
            for start, stop in parts
        ]
    )


def draw_pairs(labels: np.ndarray, n_pairs: int) -> Constraints:
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, len(labels), (2 * n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    half = n_pairs // 10
    return Constraints(pairs[same][:half], pairs[~same][: n_pairs - half], n_samples=len(labels), on_conflict="drop")


@contextmanager
def cluster(memory_limit: str = "2GiB") -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, memory_limit=memory_limit, dashboard_address=None
        ) as workers,
        Client(workers) as client,
    ):
        yield client


def highest_memory(pid: int | str = "self") -> int:
    """Highest resident memory of a process since it began or since :func:`forget_memory`, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    raise RuntimeError("no VmHWM in /proc")


def forget_memory() -> None:
    """Let the highest memory of this process start anew."""
    Path("/proc/self/clear_refs").write_text("5")


def _streamed(folder: Path, n: int) -> dict[str, float]:
    path = folder / "table.npy"
    started = time.perf_counter()
    labels = write_table(path, n)
    print(f"wrote {path.stat().st_size / 1e9:.1f} GB in {time.perf_counter() - started:.0f} s")
    known = draw_pairs(labels, N_PAIRS)
    rows, figures = [], {}
    for cls in (BWDR, SSDR):
        with cluster() as client:
            before = {pid: highest_memory(pid) for pid in client.run(os.getpid).values()}
            forget_memory()
            here = highest_memory()
            started = time.perf_counter()
            model = cls(2).fit(as_dask(path, n), constraints=known)
            seconds = time.perf_counter() - started
            started = time.perf_counter()
            view = model.transform(as_dask(path, n))
            spread = view.std(axis=0).compute()
            projected = time.perf_counter() - started
            # A worker that was restarted for its memory would have another number.
            assert set(before) == set(client.run(os.getpid).values())
            worker = max(highest_memory(pid) for pid in before)
        assert np.isfinite(spread).all()
        auc = model.score(read_rows(str(path), 0, CHUNK), labels[:CHUNK])
        figures |= {f"{cls.__name__} fit": seconds, f"{cls.__name__} worker": worker / MIB}
        rows.append(
            (
                cls.__name__,
                f"{seconds:.1f} s",
                f"{projected:.1f} s",
                f"{worker / MIB:.0f} MiB",
                f"{(highest_memory() - here) / MIB:.0f} MiB",
                f"{auc:.3f}",
            )
        )
    report(
        f"{n:,} x {N_FEATURES} float32 from an NPY file, {known.n_pairs:,} pairs, two workers of 2 GiB",
        rows,
        ("", "fit", "transform and deviation", "worker at most", "client adds", "AUC of the first chunk"),
    )
    path.unlink()
    return figures


def _neighbours(folder: Path, n: int, landmarks: tuple[int, ...]) -> dict[str, float]:
    """Methods with neighbours from all rows of a dask array, and from landmarks."""
    path = folder / "part.npy"
    labels = write_table(path, n)
    known = draw_pairs(labels, 1000)
    rows, figures = [], {}
    X = read_rows(str(path), 0, n)
    with cluster() as client:
        for cls in (LPP, SDA, DSP):
            started = time.perf_counter()
            memory = cls(2).fit(X, constraints=known)
            in_memory = time.perf_counter() - started
            for exact, count in ((True, n), *((False, count) for count in landmarks)):
                with config_context(landmark_rows=count):
                    started = time.perf_counter()
                    model = cls(2).fit(as_dask(path, n, n // 10), constraints=known)
                    seconds = time.perf_counter() - started
                angle = float(np.degrees(subspace_angles(model.components_.T, memory.components_.T).max()))
                name = "exact" if exact else f"{count:,} landmarks"
                figures[f"{cls.__name__} {name}"] = seconds
                rows.append(
                    (
                        cls.__name__,
                        name,
                        f"{seconds:.1f} s",
                        f"{in_memory:.1f} s",
                        f"{angle:.2f}°",
                        f"{model.score(X, labels):.3f} / {memory.score(X, labels):.3f}",
                    )
                )
        assert client is not None
    report(
        f"Neighbours of {n:,} x {N_FEATURES} float32, two workers",
        rows,
        ("", "", "dask", "NumPy, exact", "largest angle to NumPy", "AUC dask / NumPy"),
    )
    path.unlink()
    return figures


def main(
    quick: bool = False, *, full: bool = False, folder: str | None = None, only: str | None = None
) -> dict[str, float]:
    """Measure; only with `full` on the whole table, which `make bench` had better not write."""
    warnings.simplefilter("ignore", UserWarning)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=folder, prefix="pairlens-bench-") as name:
        if only != "neighbours":
            figures |= _streamed(Path(name), N_ROWS if full else N_ROWS // 20)
        if only != "table":
            figures |= _neighbours(Path(name), 10_000 if quick else 40_000, (2_500,) if quick else (5_000, 20_000))
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--folder", help="where the table is written; 8 GB must be free")
    parser.add_argument("--only", choices=["table", "neighbours"], help="one of the two parts")
    arguments = parser.parse_args()
    main(arguments.quick, full=not arguments.quick, folder=arguments.folder, only=arguments.only)
