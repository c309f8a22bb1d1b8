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

from reproduction.datasets.bundled import decode, encode
from reproduction.datasets.files import NUMERIC, array_digest, read, rows_digest, write

DATASETS = Path(__file__).parent
TARGET = DATASETS / "npz"
CHECKSUMS = DATASETS / "digests.json"


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
