"""Write the compact files of the data sets that are in the repository, or the checksums of any known set.

    python -m reproduction.datasets.bundle FOLDER NAME...
    python -m reproduction.datasets.bundle --checksums FOLDER NAME...

FOLDER holds NAME.npz as :func:`reproduction.datasets.load` reads them. Add the source and the terms of a new set to
CREDITS.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reproduction.datasets.files import NUMERIC, Arrays, array_digest, decode, read, rows_digest, write

DATASETS = Path(__file__).parent
TARGET = DATASETS / "npz"
CHECKSUMS = DATASETS / "digests.json"
MOST_DECIMALS = 10


def encode(arrays: Arrays) -> Arrays:
    """The compact form of a set with X and y."""
    stored = {name: array for name, array in arrays.items() if name != "X"}
    if stored["y"].dtype == np.int64:
        stored["y"] = _smallest(stored["y"])
    X = arrays["X"]
    decimals = [_decimals(column) for column in X.T]
    if any(count is None for count in decimals):
        return {**stored, "X": X}
    powers = 10.0 ** np.array(decimals, dtype=np.float64)
    return {
        **stored,
        "digits": np.asfortranarray(_smallest(np.rint(X.astype(np.float64) * powers))),
        "decimals": np.array(decimals, dtype=np.uint8),
        "dtype": np.array(X.dtype.str),
    }


def _decimals(column: NDArray[np.floating]) -> int | None:
    """How many decimals give back the column exactly; None if none do, or cells are missing."""
    if np.isnan(column).any():
        return None
    exact = column.astype(np.float64)
    for count in range(MOST_DECIMALS + 1):
        digits = np.rint(exact * 10.0**count)
        if np.abs(digits).max() < 2**53 and np.array_equal((digits / 10.0**count).astype(column.dtype), column):
            return count
    return None


def _smallest(numbers: NDArray[np.generic]) -> NDArray[np.integer]:
    """Whole numbers in the smallest type that holds them."""
    low, high = int(numbers.min()), int(numbers.max())
    kinds = ("u1", "u2", "u4", "u8") if low >= 0 else ("i1", "i2", "i4", "i8")
    kind = next(kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return numbers.astype(kind)


def write_checksums(folder: Path, names: list[str]) -> None:
    """Those of all numeric arrays, and of the rows in any order."""
    stored = json.loads(CHECKSUMS.read_text())
    for name in names:
        arrays = read(folder / f"{name}.npz")
        numeric = sorted(key for key, array in arrays.items() if array.dtype.kind in NUMERIC)
        stored[name] = {key: array_digest(arrays[key]) for key in numeric}
        if "X" in arrays:
            stored[name]["rows"] = rows_digest(arrays["X"], arrays["y"])
    CHECKSUMS.write_text(json.dumps(dict(sorted(stored.items())), indent=1) + "\n")


def bundle(folder: Path, names: list[str]) -> None:
    """Encode each set, and make sure that it comes back bit by bit."""
    for name in names:
        arrays = read(folder / f"{name}.npz")
        stored = encode(arrays)
        for key, array in decode(stored).items():
            assert array.dtype == arrays[key].dtype, f"{name}: {key}"
            np.testing.assert_array_equal(array, arrays[key], err_msg=f"{name}: {key}")
        write(TARGET / f"{name}.npz", stored)
        print(f"{name}: {(TARGET / f'{name}.npz').stat().st_size:,} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--checksums", action="store_true", help="write digests.json instead")
    chosen = parser.parse_args()
    (write_checksums if chosen.checksums else bundle)(chosen.folder, chosen.names)
