"""TableEncoder on a large mixed table: time and memory, and transform of a stream of chunks.

    python -m benchmarks.bench_tables [--quick]

1,000,000 rows of 20 columns: eight numbers (one of them with missing cells), five categories (3 to 5,000 words), two
yes/no, two dates (one written as text), a long and a short text, an identifier. The goal is under 60 s and 4 GiB on two
cores, for fit and transform together. Times are wall and processor time of this process; memory is the largest resident
size of the process so far, the table included. The stream transforms the same rows 50,000 at a time and keeps none.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measure import report
from pairlens import TableEncoder

ROWS = 1_000_000
CHUNK = 50_000
GIB = 1 << 20
"""Kilobytes of a gibibyte: the unit in which Linux tells the resident size."""


def table(n: int) -> pd.DataFrame:
    """A table of 20 mixed columns."""
    rng = np.random.default_rng(0)

    def words(count: int, prefix: str) -> Any:
        return np.array([f"{prefix} {i}" for i in range(count)], dtype=object)[rng.integers(0, count, n)]

    columns: dict[str, Any] = {f"number_{j}": rng.normal(j, 1 + j, n) for j in range(7)}
    columns["gaps"] = np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(0, 1, n))
    columns |= {f"category_{k}": words(k, "word") for k in (3, 8, 20, 100, 5000)}
    columns |= {"flag": rng.random(n) < 0.3, "answer": words(2, "answer")}
    days = rng.integers(0, 3000, n)
    columns["when"] = np.datetime64("2015-01-01", "s") + days * np.timedelta64(86_400, "s")
    columns["written"] = np.array([f"{d:%d.%m.%Y}" for d in pd.date_range("2015-01-01", periods=3000)], dtype=object)[
        days
    ]
    terms = np.array([f"term{i}" for i in range(400)], dtype=object)
    drawn = rng.integers(0, 400, (20_000, 8))
    texts = np.array([" ".join(row) for row in terms[drawn]], dtype=object)
    columns["text"] = texts[rng.integers(0, len(texts), n)]
    columns["title"] = np.array([f"{a} {b}" for a, b in terms[drawn[:, :2]]], dtype=object)[rng.integers(0, 20_000, n)]
    columns["row_id"] = np.arange(n)
    return pd.DataFrame(columns)


def measured(call: Callable[[], Any]) -> tuple[Any, tuple[str, str, str]]:
    """The result, and wall time, processor time and largest resident size so far."""
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return result, (f"{wall:.1f} s", f"{processor:.1f} s", f"{_resident():.2f} GiB")


def _resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB


def main(quick: bool = False) -> None:
    """Measure fit, transform, and transform of a stream."""
    n = ROWS // 10 if quick else ROWS
    data = table(n)
    began = _resident()
    encoder = TableEncoder()
    rows: list[tuple[str, ...]] = []
    _, found = measured(lambda: encoder.fit(data))
    rows.append(("fit", *found))

    def stream() -> float:
        return sum(float(encoder.transform(data.iloc[k : k + CHUNK]).sum()) for k in range(0, n, CHUNK))

    streamed, found = measured(stream)
    rows.append(("transform, a stream", *found))
    Z, found = measured(lambda: encoder.transform(data))
    rows.append(("transform, at once", *found))
    if not np.isclose(streamed, float(Z.sum()), atol=1e-6 * n):
        raise SystemExit("the stream and the whole table differ")
    title = f"TableEncoder, {n:,} x {data.shape[1]} to {Z.shape[1]} features; {began:.2f} GiB with the table alone"
    report(title, rows, ("", "wall", "processor", "resident at most"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    main(parser.parse_args().quick)
