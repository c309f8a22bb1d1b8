"""Data sets by name: from a folder, from the repository, from scikit-learn, made from other sets, or downloaded."""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from reproduction.datasets import downloads
from reproduction.datasets.derived import DERIVED, FROM_SKLEARN
from reproduction.datasets.files import (
    NUMERIC,
    Arrays,
    DamagedDatasetError,
    advice,
    array_digest,
    check_structure,
    load_bundled,
    names_bundled,
    read,
    rows_digest,
    write,
)
from reproduction.datasets.registry import REGISTRY, DataSet, digests

FOLDER = "PAIRLENS_DATA"
"""The environment variable that names the folder of data sets."""


class MissingDatasetError(FileNotFoundError):
    """A data set is not on this machine; the message says how to get it."""


def names(*, available: bool = False, data_home: str | os.PathLike[str] | None = None) -> list[str]:
    """Names that :func:`load` knows.

    Parameters
    ----------
    available : bool, default=False
        Only those that load here without a network: files that are there, sets that are in the repository or come
        with scikit-learn, and sets made from those. The files are not read.
    data_home : path or None, default=None
        The folder of the files. None takes the environment variable ``PAIRLENS_DATA``.

    Returns
    -------
    names : list of str
        Sorted. Files of your own in the folder are among them.

    Examples
    --------
    >>> from reproduction.datasets import names
    >>> "wine" in names(available=True)
    True
    """
    own = {path.stem for folder in _folders(data_home) if folder.is_dir() for path in folder.glob("[!.]*.npz")}
    if not available:
        return sorted({*REGISTRY, *own})
    present = {*own, *names_bundled(), *FROM_SKLEARN}
    derivable = {
        name for name, derivation in DERIVED.items() if derivation.possible and present.issuperset(derivation.parents)
    }
    return sorted(present | derivable)


def load(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    verify: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load a data set by name.

    It is looked for, in this order: as ``NAME.npz`` in the folder, in the cache of earlier downloads, among the sets
    of the repository and of scikit-learn, as something that can be made from a set found so, and on OpenML. Most of the
    papers' smaller sets are in the repository (CREDITS.md names their authors, sources and terms), so that they load
    without a network. A download is checked and kept as one .npz file in the cache (``$XDG_CACHE_HOME/pairlens`` or
    ``~/.cache/pairlens``). If ``data_home`` is given, it is the folder and the cache in one.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    data_home : path or None, default=None
        The folder of the .npz files. None takes the environment variable ``PAIRLENS_DATA``.
    download : bool, default=True
        Whether the network may be used.
    verify : bool, default=True
        Compare the arrays with the checksums of the known sets. A file of your own has none; its layout is checked.
    return_X_y : bool, default=False
        Return ``(X, y)`` instead of a Bunch.

    Returns
    -------
    data : Bunch
        ``X`` (also ``data``), ``y`` (also ``target``), ``feature_names``, ``target_names``, ``DESCR``, ``source``,
        ``origin`` ("file", "repository", "scikit-learn", "made from ..." or "download"), ``filename`` (or None), and
        the other arrays of the set by their names, such as ``is_train``. Sets of ratings have ``user``, ``item`` and
        ``rating`` instead of ``X`` and ``y``. Values are raw: nothing is scaled, a missing cell is NaN.

    Raises
    ------
    ValueError
        There is no set of that name.
    MissingDatasetError
        The set is not here and was not downloaded; the message says how to get it.
    DamagedDatasetError
        A file or a download is truncated, altered, or another set.

    Examples
    --------
    >>> from reproduction.datasets import load
    >>> wine = load("wine")
    >>> wine.X.shape, len(wine.target_names)
    ((178, 13), 3)
    """
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w-]*", name):
        raise ValueError(f"name={name!r} must be made of letters, digits, '_' and '-'; names() lists the known sets.")
    arrays, origin, path = _find(name, data_home, download=download, verify=verify)
    if return_X_y:
        if "X" not in arrays or "y" not in arrays:
            raise ValueError(f"{name} has no X and y: use the Bunch, which holds {', '.join(arrays)}.")
        return arrays["X"], arrays["y"]
    return _bunch(name, arrays, origin, path)


def _find(
    name: str, data_home: str | os.PathLike[str] | None, *, download: bool, verify: bool
) -> tuple[Arrays, str, Path | None]:
    found = _local(name, data_home, verify=verify, making=())
    if found is not None:
        return found
    entry = REGISTRY.get(name)
    if entry is None:
        known = names(data_home=data_home)
        close = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"known are {', '.join(known)}."
        raise ValueError(f"There is no data set {name!r}: {hint}")
    if download:
        for source, arrays in _downloads(entry, data_home):
            path = _cache(data_home) / f"{name}.npz"
            _check_known(entry, arrays, source)
            try:
                write(path, arrays)
            except OSError as error:
                warnings.warn(f"{name} was downloaded but could not be kept in {path}: {error}.", stacklevel=3)
                return arrays, "download", None
            return arrays, "download", path
    folders = " or ".join(map(str, _folders(data_home)))
    raise MissingDatasetError(f"The data set {name!r} is not in {folders}. To get it: {entry.how_to_get()}.")


def _local(
    name: str, data_home: str | os.PathLike[str] | None, *, verify: bool, making: tuple[str, ...]
) -> tuple[Arrays, str, Path | None] | None:
    """A set that needs no network; ``making`` are the sets on whose account it is asked for."""
    entry = REGISTRY.get(name)
    for folder in _folders(data_home):
        path = folder / f"{name}.npz"
        if path.is_file():
            arrays = read(path)
            check_structure(arrays, str(path))
            if entry is not None and verify:
                _check_known(entry, arrays, str(path), advice(path))
            return arrays, "file", path
    for origin, found_in, make in (
        ("repository", names_bundled(), lambda: load_bundled(name)),
        ("scikit-learn", FROM_SKLEARN, lambda: FROM_SKLEARN[name]()),
    ):
        if name in found_in:
            arrays = make()
            _check_known(REGISTRY[name], arrays, f"the {name} of {origin}")
            return arrays, origin, None
    if name not in DERIVED:
        return None
    parents: list[Arrays] = []
    for parent in DERIVED[name].parents:
        # mfeat is made from its blocks and its blocks from mfeat: never in a circle.
        found = None if parent in making else _local(parent, data_home, verify=verify, making=(*making, name))
        if found is None:
            return None
        parents.append(found[0])
    return _derive(REGISTRY[name], parents), f"made from {', '.join(DERIVED[name].parents)}", None


def _derive(entry: DataSet, parents: list[Arrays]) -> Arrays:
    where = f"{entry.name} as made from {', '.join(DERIVED[entry.name].parents)}"
    try:
        arrays = DERIVED[entry.name].make(*parents)
    except ValueError as error:
        raise MissingDatasetError(f"{where}: {error}. To get it: {entry.how_to_get()}.") from error
    _check_known(entry, arrays, where)
    return arrays


def _downloads(entry: DataSet, data_home: str | os.PathLike[str] | None) -> Iterator[tuple[str, Arrays]]:
    """At most one download: of the set itself, or of what it is made from."""
    try:
        if entry.openml is not None:
            yield f"OpenML's {entry.openml.name}, version {entry.openml.version}", downloads.fetch(entry.openml)
        elif entry.download is not None:
            yield f"scikit-learn's download of {entry.name}", entry.download()
        elif entry.name in DERIVED and all(_obtainable(parent, data_home) for parent in DERIVED[entry.name].parents):
            parents = [
                _find(parent, data_home, download=True, verify=True)[0] for parent in DERIVED[entry.name].parents
            ]
            yield f"{entry.name} as made from {', '.join(DERIVED[entry.name].parents)}", _derive(entry, parents)
    except (MissingDatasetError, DamagedDatasetError):
        raise
    except (OSError, HTTPException, ValueError) as error:  # scikit-learn's own checks raise ValueError
        raise MissingDatasetError(
            f"The data set {entry.name!r} is not on this machine and its download failed ({error}). "
            f"To get it: {entry.how_to_get()}."
        ) from error


def _obtainable(name: str, data_home: str | os.PathLike[str] | None) -> bool:
    return REGISTRY[name].downloadable or name in names(available=True, data_home=data_home)


def _check_known(entry: DataSet, arrays: Arrays, where: str, remedy: str = "") -> None:
    """Refuse arrays that are not those of a known set."""
    check_structure(arrays, where)
    table = arrays.get("X", arrays.get("rating"))
    if table is None or table.shape != entry.shape or ("X" in arrays and "y" not in arrays):
        shape = "no table" if table is None else f"{' x '.join(map(str, table.shape))}"
        raise DamagedDatasetError(
            f"{where} holds {shape}{'' if 'y' in arrays or 'X' not in arrays else ' and no y'}, but {entry.name} is "
            f"{' x '.join(map(str, entry.shape))}. {remedy}".rstrip()
        )
    expected = digests()[entry.name]
    wrong = [
        name
        for name, array in arrays.items()
        if name in expected and array.dtype.kind in NUMERIC and array_digest(array) != expected[name]
    ]
    if not wrong:
        return
    if "X" in wrong and rows_digest(arrays["X"], arrays["y"]) == expected["rows"]:
        warnings.warn(
            f"{where} has the rows of {entry.name} in another order than our copy of it: what is drawn from it at "
            "random differs from what is published.",
            stacklevel=2,
        )
        return
    raise DamagedDatasetError(
        f"{where} is not {entry.name}: the checksum of {', '.join(wrong)} is not the expected one. {remedy}".rstrip()
    )


def _folders(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Where files are looked for."""
    given = data_home if data_home is not None else os.environ.get(FOLDER)
    folders = [] if not given else [Path(given).expanduser()]
    if data_home is None:
        folders.append(_cache(None))
    return folders


def _cache(data_home: str | os.PathLike[str] | None) -> Path:
    """Where downloads are kept."""
    if data_home is not None:
        return Path(data_home).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pairlens"


def _bunch(name: str, arrays: Arrays, origin: str, path: Path | None) -> Bunch:
    entry = REGISTRY.get(name)
    source = entry.source if entry is not None else f"a file of your own, {path}"
    content: dict[str, Any] = {
        key: value for key, value in arrays.items() if key not in ("feature_names", "class_names")
    }
    if "X" in arrays:
        content["data"] = arrays["X"]
        stored = arrays.get("feature_names")
        content["feature_names"] = (
            [f"x{i}" for i in range(arrays["X"].shape[1])] if stored is None else [str(text) for text in stored]
        )
    if "y" in arrays:
        content["target"] = arrays["y"]
        content["target_names"] = _target_names(arrays)
    return Bunch(
        **content,
        DESCR=entry.describe() if entry is not None else f"{name}: {source}.",
        source=source,
        origin=origin,
        filename=None if path is None else str(path),
    )


def _target_names(arrays: Arrays) -> list[str]:
    if "class_names" in arrays:
        return [str(text) for text in arrays["class_names"]]
    if arrays["y"].dtype.kind == "f":
        return []
    return [str(code) for code in np.unique(arrays["y"])]
