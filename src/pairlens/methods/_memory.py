"""Rows of a cluster or a GPU, for methods that need theirs in memory or can search a limited number for neighbours."""

from __future__ import annotations

import numpy as np

from pairlens._warnings import warn_user
from pairlens.engines import EngineRows, IntArray, Placement, Rows, read_ahead, settings
from pairlens.engines.dask import DaskRows
from pairlens.exceptions import ApproximationWarning
from pairlens.supervision import Constraints


def into_memory(
    method: str, rows: Rows, known: Constraints, may_be: Placement
) -> tuple[Rows, Constraints, IntArray | None]:
    """The rows to learn from, and what is known about them: as they are, copied, or landmarks that represent all.

    The numbers of the landmarks come third; None if all rows are there.

    Parameters
    ----------
    method : str
        Name of the method, for the warning.
    rows : array, CSR matrix or EngineRows
    known : Constraints
    may_be : Placement
        Where the method can deal with rows.
    """
    n = rows.shape[0]
    if not isinstance(rows, DaskRows):
        copied = isinstance(rows, EngineRows) and may_be is Placement.MEMORY
        return (np.asarray(rows) if copied else rows), known, None
    if may_be is Placement.ANYWHERE or (may_be is Placement.ANYWHERE_SEARCHED and n <= settings().exact_rows):
        return rows, known, None
    if n <= settings().landmark_rows:
        chosen = np.arange(n)
    else:
        chosen = np.union1d(known.rows, np.linspace(0, n - 1, settings().landmark_rows).astype(np.int64))
        warn_user(
            f"{method} learns from {len(chosen):,} of the {n:,} rows of the dask array: those in pairs and evenly "
            "spaced ones. pairlens.config_context(exact_rows=..., landmark_rows=...) sets the numbers.",
            ApproximationWarning,
        )
    if not rows.fits(chosen):
        raise ValueError(
            f"{method} needs {len(chosen):,} rows of the dask array in memory, more than the "
            f"{settings().gather_bytes / 2**20:,.0f} MiB of gather_bytes. Lower landmark_rows, or raise gather_bytes, "
            "by pairlens.config_context(...)."
        )
    # The same pass finds bad values and the mean of all rows.
    read_ahead(rows, chosen, scatter=False)
    return (rows[chosen], known, None) if len(chosen) == n else (rows[chosen], known[chosen], chosen)
