"""Independent oracles: every linear method once more, from the specification alone, slow and obvious.

Python loops over pairs, dense n x n matrices, plain eigensolvers, and nothing from the library under test.
"""

from __future__ import annotations

from tests.oracles.base import Solution, relative_difference, rows_with_tied_neighbours, subspace_angle
from tests.oracles.chunklets import cfld, dca, rca
from tests.oracles.labels import lfda, sda
from tests.oracles.linear import bwdr, cmm, npssdr, ssdr, wbdr
from tests.oracles.locality import clpp, kernel_lppsi, lpp, lppsi, slpp
from tests.oracles.sodrpac import sodrpac

__all__ = [
    "Solution",
    "bwdr",
    "cfld",
    "clpp",
    "cmm",
    "dca",
    "kernel_lppsi",
    "lfda",
    "lpp",
    "lppsi",
    "npssdr",
    "rca",
    "relative_difference",
    "rows_with_tied_neighbours",
    "sda",
    "slpp",
    "sodrpac",
    "ssdr",
    "subspace_angle",
    "wbdr",
]
