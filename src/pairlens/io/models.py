"""Saving and loading models as data: arrays and a JSON manifest in a zip file, and nothing that could be executed.

A file names classes from a fixed list and holds their attributes. Loading makes empty objects of these classes and
fills them in; no function, constructor or hook named by a file is ever called. Members are stored without compression,
so what a file unfolds to is never more than its own size.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pairlens._atomic import atomic_path
from pairlens._optional import installed_version
from pairlens._version import __version__
from pairlens._warnings import warn_user
from pairlens.io._codec import Decoder, Encoder, ModelFileError

FORMAT = "pairlens-model"
FORMAT_VERSION = 2
"""Format 1 named classes by the modules they were in; 2 names them by tags."""
MANIFEST = "manifest.json"
MAX_MANIFEST = 1 << 28
MAX_DEPTH = 200
"""Nesting of brackets in a manifest beyond which it is not a model, but an attempt to exhaust the stack."""
PACKAGES = ("numpy", "scipy", "scikit-learn", "xgboost")


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, or a pipeline of scikit-learn's common transformers that ends in one, to a file.

    Parameters
    ----------
    model : estimator
        Any estimator of pairlens; of scikit-learn Pipeline, ColumnTransformer, FunctionTransformer without a function,
        StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, Normalizer, SimpleImputer, OneHotEncoder, PCA and
        VarianceThreshold.
    path : str or path
        Where to. A file that is there is replaced, in one step at the end.

    Raises
    ------
    TypeError
        If the model holds what the format has no place for, such as a function as kernel.

    See Also
    --------
    load : The way back.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import BWDR, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BWDR(2).fit(X, constraints=Constraints.from_labels(y))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.pairlens")
    ...     save(model, path)
    ...     bool((load(path).transform(X) == model.transform(X)).all())
    True
    """
    encoder = Encoder()
    content = encoder.encode(model)
    with atomic_path(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
        digests = {}
        for name, array in encoder.arrays.items():
            with archive.open(_member(name), "w", force_zip64=True) as member:
                hashed = _HashedFile(member)
                npy.write_array(hashed, array, allow_pickle=False)
            digests[name] = hashed.digest.hexdigest()
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "pairlens": __version__,
            "packages": {name: found for name in PACKAGES if (found := installed_version(name)) is not None},
            "digests": digests,
            "model": content,
        }
        text = json.dumps(manifest, allow_nan=False).encode()
        archive.writestr(_member(MANIFEST), text)
        archive.comment = sha256(text).hexdigest().encode()


def _member(name: str) -> zipfile.ZipInfo:
    """A part of the file, without the time of day: the same model makes the same file."""
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


class _HashedFile:
    """Passes on what is written, and keeps its digest."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = sha256()

    def write(self, part: bytes) -> None:
        self.digest.update(part)
        self._file.write(part)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    model : estimator
        Fitted as it was: :meth:`transform` gives the same numbers.

    Raises
    ------
    ModelFileError
        If the file is no model, is damaged or has been changed, or comes from a newer version of pairlens.

    Examples
    --------
    See :func:`save`.
    """
    source = Path(path)
    size = source.stat().st_size
    with source.open("rb") as file:
        _refuse_foreign(file.read(8), source.name)
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as archive:
                manifest, members = _open(archive, size, source.name)
                return _restore(archive, manifest, members, source.name)
        except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError) as error:
            raise ModelFileError(f"{source.name} is damaged or cut short: {error}") from error


def _refuse_foreign(start: bytes, name: str) -> None:
    if start[:4] == b"PK\x03\x04":
        return
    if not start:
        what = "it is empty"
    elif start[:1] == b"\x80" or start[:2] in (b"(d", b"(l", b"c_", b"cp"):
        what = "it looks like a pickle, which could execute code when loaded"
    elif start[:6] == b"\x93NUMPY":
        what = "it is a NumPy array"
    elif start[:4] == b"PAR1":
        what = "it is a Parquet table"
    else:
        what = "it does not start like one"
    raise ModelFileError(f"{name} is not a model written by pairlens.save: {what}")


def _open(archive: zipfile.ZipFile, size: int, name: str) -> tuple[dict[str, Any], dict[str, zipfile.ZipInfo]]:
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
            raise ModelFileError(f"{name} has a compressed or encrypted part ({info.filename!r}), which no model has")
        if info.filename in members:
            raise ModelFileError(f"{name} has two parts named {info.filename!r}")
        members[info.filename] = info
    # Overlapping members would unfold to more than the file holds.
    if sum(info.file_size for info in members.values()) > size:
        raise ModelFileError(f"{name} is damaged: its parts claim to be larger than the file")
    if MANIFEST not in members or members[MANIFEST].file_size > MAX_MANIFEST:
        raise ModelFileError(f"{name} is a zip file, but not a model written by pairlens.save: it has no manifest")
    text = archive.read(MANIFEST)
    try:
        manifest = json.loads(text) if _depth(text) <= MAX_DEPTH else None
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{name} is a zip file, but not a model written by pairlens.save: its manifest is odd")
    written = manifest.get("format_version")
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise ModelFileError(f"{name} is damaged: its format version is {written!r}")
    if written > FORMAT_VERSION:
        raise ModelFileError(
            f"{name} was written by pairlens {manifest.get('pairlens')} in format {written}, and pairlens "
            f"{__version__} reads formats up to {FORMAT_VERSION}: upgrade pairlens to load it"
        )
    # A checksum without a signature: it detects damaged files, not deliberate changes.
    if archive.comment.decode("ascii", "replace") != sha256(text).hexdigest():
        raise ModelFileError(f"{name} has been changed since pairlens.save wrote it: its manifest does not match")
    return manifest, members


def _depth(text: bytes) -> int:
    """The deepest nesting of brackets; brackets in strings count, which is on the safe side."""
    symbols = np.frombuffer(text, dtype=np.uint8)
    opened = np.isin(symbols, np.frombuffer(b"[{", np.uint8)).astype(np.int64)
    closed = np.isin(symbols, np.frombuffer(b"]}", np.uint8)).astype(np.int64)
    return int(np.cumsum(opened - closed).max(initial=0))


def _restore(archive: zipfile.ZipFile, manifest: dict[str, Any], members: dict[str, zipfile.ZipInfo], name: str) -> Any:
    digests = manifest.get("digests")
    if not isinstance(digests, dict):
        raise ModelFileError(f"{name} is damaged: its manifest has no digests")

    def read(member: str) -> NDArray[Any]:
        if member not in members or member == MANIFEST:
            raise ModelFileError(f"{name} is damaged: its part {member!r} is missing")
        content = archive.read(member)
        if digests.get(member) != sha256(content).hexdigest():
            raise ModelFileError(f"{name} has been changed since pairlens.save wrote it: {member!r} does not match")
        return _read_array(content, member, name)

    decoder = Decoder(read, name)
    model = decoder.decode(manifest.get("model"))
    if not hasattr(model, "get_params"):
        raise ModelFileError(f"{name} holds no model, but {type(model).__name__}")
    packages = manifest.get("packages")
    written = packages.get("scikit-learn") if isinstance(packages, dict) else None
    present = installed_version("scikit-learn")
    if decoder.has_foreign and isinstance(written, str) and present and _minor(written) != _minor(present):
        warn_user(
            f"{name} was written with scikit-learn {written}, and {present} is installed: compare a few results, or "
            "save the model again.",
            UserWarning,
        )
    return model


def _read_array(content: bytes, member: str, name: str) -> NDArray[Any]:
    stream = io.BytesIO(content)
    damaged = ModelFileError(f"{name} is damaged: its part {member!r} is not an array")
    try:
        header = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = header(stream, max_header_size=10_000)
    except (ValueError, TypeError, SyntaxError) as error:
        raise damaged from error
    if dtype.hasobject:
        raise ModelFileError(f"{name} is refused: its part {member!r} holds pickled objects, which could execute code")
    count = 1
    for length in shape:
        count *= int(length)
    if any(length < 0 for length in shape) or count * dtype.itemsize != len(content) - stream.tell():
        raise damaged
    stream.seek(0)
    try:
        return np.asarray(npy.read_array(stream, allow_pickle=False))
    except (ValueError, MemoryError) as error:
        raise damaged from error


def _minor(text: str) -> list[str]:
    return text.split(".")[:2]
