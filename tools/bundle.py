"""Write the compact files of the data sets that come with the package.

    python tools/bundle.py FOLDER NAME...

FOLDER holds NAME.npz as :func:`pairlens.datasets.load` reads them. Add the source and the terms of a new set to
src/pairlens/datasets/CREDITS.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from pairlens.datasets.bundled import decode, encode
from pairlens.datasets.files import read, write

TARGET = Path(__file__).parents[1] / "src" / "pairlens" / "datasets" / "npz"


def main(folder: Path, names: list[str]) -> None:
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
    main(Path(sys.argv[1]), sys.argv[2:])
