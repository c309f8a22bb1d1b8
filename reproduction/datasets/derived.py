"""Data sets made from others: scikit-learn's own, blocks of features, seeded draws, smaller pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from reproduction.datasets.files import Arrays

MFEAT_VIEWS = {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}
"""The blocks of mfeat and their widths, in the order of its columns."""


@dataclass(frozen=True)
class Derivation:
    """The sets that a set is made from, and how.

    Parameters
    ----------
    parents : tuple of str
        Names of other sets.
    make : callable
        Takes their arrays in that order, and gives the arrays of this one.
    needs : str
        A module that it takes, if any beyond the required ones.
    """

    parents: tuple[str, ...]
    make: Callable[..., Arrays]
    needs: str = ""

    @property
    def possible(self) -> bool:
        """Whether what it needs is installed."""
        return not self.needs or find_spec(self.needs) is not None


def _wine() -> Arrays:
    from sklearn.datasets import load_wine

    bunch = load_wine()
    return _table(bunch.data, bunch.target, bunch.feature_names, ["1", "2", "3"])


def _wdbc() -> Arrays:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    return _table(bunch.data, bunch.target, bunch.feature_names, bunch.target_names)


def _iris() -> Arrays:
    from sklearn.datasets import load_iris

    bunch = load_iris()
    X = bunch.data.copy()
    # scikit-learn has Fisher's published values. The UCI file, which the papers took, has these three cells wrong.
    X[34, 3], X[37, 1], X[37, 2] = 0.1, 3.1, 1.5
    return _table(X, bunch.target, bunch.feature_names, [f"Iris-{name}" for name in bunch.target_names])


def _digits() -> Arrays:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return _table(bunch.data, bunch.target, bunch.feature_names, bunch.target_names)


def _table(X: NDArray, y: NDArray, feature_names: Sequence[str], class_names: Sequence[object]) -> Arrays:
    return {
        "X": X,
        "y": y.astype(np.int64),
        "feature_names": np.asarray(feature_names, dtype=np.str_),
        "class_names": np.asarray(class_names).astype(np.str_),
    }


def _mfeat_block(view: str) -> Derivation:
    start = 0
    for name, width in MFEAT_VIEWS.items():
        if name == view:
            break
        start += width

    def make(whole: Arrays) -> Arrays:
        return {**_keep(whole, "y", "class_names"), "X": whole["X"][:, start : start + MFEAT_VIEWS[view]]}

    return Derivation(("mfeat",), make)


def _mfeat(*blocks: Arrays) -> Arrays:
    widths = list(MFEAT_VIEWS.values())
    return {
        **_keep(blocks[0], "y", "class_names"),
        "X": np.hstack([block["X"] for block in blocks]),
        "feature_names": np.array([f"{view}{i}" for view, width in MFEAT_VIEWS.items() for i in range(width)]),
        "view_names": np.array(list(MFEAT_VIEWS)),
        "view_start": np.cumsum([0, *widths]).astype(np.int64),
    }


def _isolet_part(part: int, *, halves: bool) -> Derivation:
    def make(whole: Arrays) -> Arrays:
        if "part" not in whole:
            raise ValueError("this copy of isolet does not say which speakers a row is of (no array 'part')")
        rows = whole["part"] == part
        arrays: Arrays = {**_keep(whole, "class_names"), "X": whole["X"][rows], "y": whole["y"][rows]}
        if halves:
            arrays["y_halves"] = (arrays["y"] >= 13).astype(np.int64)
        return arrays

    return Derivation(("isolet",), make)


def _letter_abcd(letter: Arrays) -> Arrays:
    """A hundred rows of each of A to D from the 16000 rows for training, and as many from the rest."""
    rng = np.random.default_rng(0)
    train = np.arange(len(letter["y"])) < 16000
    rows = _draw(rng, [part & (letter["y"] == code) for part in (train, ~train) for code in range(4)], 100)
    return {
        **_keep(letter, "feature_names"),
        "X": letter["X"][rows],
        "y": letter["y"][rows],
        "class_names": np.array(list("ABCD")),
        "row_index": rows,
    }


def _mnist6000(mnist: Arrays) -> Arrays:
    """Six hundred training rows of each digit."""
    rng = np.random.default_rng(0)
    train = np.arange(len(mnist["y"])) < 60000
    rows = _draw(rng, [train & (mnist["y"] == digit) for digit in range(10)], 600)
    return {
        **_keep(mnist, "class_names"),
        "X": mnist["X"][rows].astype(np.float32),
        "y": mnist["y"][rows],
        "row_index": rows,
    }


def _kddcup99_subset(whole: Arrays) -> Arrays:
    """The attack types with more than 200 rows, at most 300 rows of each."""
    rng = np.random.default_rng(0)
    counts = np.bincount(whole["y"])
    types = np.flatnonzero(counts > 200)
    rows = _draw(rng, [whole["y"] == code for code in types], 300)
    categories = _keep(whole, "feature_names", *(f"categories_{name}" for name in ("protocol_type", "service", "flag")))
    arrays: Arrays = {
        **categories,
        # The file has two decimals; 32 bits hold them well enough to give back the 64-bit value of the decimal.
        "X": whole["X"][rows].astype(np.float64).round(2),
        "y": np.searchsorted(types, whole["y"][rows]).astype(np.int64),
        "row_index": rows,
    }
    if "class_names" in whole:
        arrays["class_names"] = whole["class_names"][types]
    return arrays


def _draw(rng: np.random.Generator, groups: Sequence[NDArray[np.bool_]], count: int) -> NDArray[np.int64]:
    """`count` rows of each group, in order inside it; all rows of a group that has no more."""
    chosen = []
    for group in groups:
        rows = np.flatnonzero(group)
        chosen.append(np.sort(rng.choice(rows, count, replace=False)) if len(rows) > count else rows)
    return np.concatenate(chosen)


def _coil20(pictures: Arrays) -> Arrays:
    """The 128 x 128 pictures at 16 x 16, by Pillow's bicubic filter on 8 bits."""
    from pairlens._optional import require

    image = require("PIL.Image", extra="report", purpose="making coil20 from the 128 x 128 pictures")
    small = [
        np.asarray(image.fromarray(row.reshape(128, 128)).resize((16, 16), image.Resampling.BICUBIC)).ravel()
        for row in pictures["X"]
    ]
    return {**_keep(pictures, "y", "class_names", "pose"), "X": np.array(small, dtype=np.float32) / np.float32(255)}


def _keep(arrays: Arrays, *names: str) -> Arrays:
    return {name: arrays[name] for name in names if name in arrays}


FROM_SKLEARN: dict[str, Callable[[], Arrays]] = {"wine": _wine, "wdbc": _wdbc, "iris": _iris, "digits": _digits}
"""Sets that come with scikit-learn."""

DERIVED: dict[str, Derivation] = {
    **{f"mfeat_{view}": _mfeat_block(view) for view in MFEAT_VIEWS},
    "mfeat": Derivation(tuple(f"mfeat_{view}" for view in MFEAT_VIEWS), _mfeat),
    "isolet1": _isolet_part(1, halves=True),
    "isolet5": _isolet_part(5, halves=False),
    "letter_abcd": Derivation(("letter",), _letter_abcd),
    "kddcup99_subset": Derivation(("kddcup99_10pct",), _kddcup99_subset),
    "mnist6000": Derivation(("mnist",), _mnist6000),
    "coil20": Derivation(("coil20_128x128",), _coil20, needs="PIL"),
}
"""Sets made from others; each is bit by bit what our files hold."""
