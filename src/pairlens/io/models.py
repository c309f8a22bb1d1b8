"""Save and load models as data: arrays and a JSON manifest in a zip file, and nothing that could be executed.

A file names classes from a fixed list and holds their attributes. Loading makes empty objects of these classes and
fills them in; no function, constructor or hook named by a file is ever called. Members are stored without compression,
so what a file unfolds to is never more than its own size; JSON and headers are checked before they are trusted.
"""

from __future__ import annotations

import io
import json
import math
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
from pairlens.exceptions import MissingExtraError
from pairlens.io._arrays import read_header
from pairlens.io._codec import Decoder, Encoder, ModelFileError

FORMAT = "pairlens-model"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
MAX_MANIFEST = 1 << 25
MAX_COPIES = 8
"""How much may be made of the arrays of a file, in multiples of its size: a part may be used in a few places."""
MAX_DEPTH = 200
"""Nesting of brackets in JSON beyond which it is an attempt to exhaust the stack."""
MAX_BRACKETS = 1 << 18
"""Lists and objects in JSON: each takes up to 300 bytes of memory, of which a file writes as few as 3."""
PACKAGES = ("numpy", "scipy", "scikit-learn")


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, or a pipeline of scikit-learn's common transformers that ends in one, to a file.

    Parameters
    ----------
    model : estimator
        Any estimator of pairlens; of scikit-learn Pipeline, ColumnTransformer, FunctionTransformer without a function,
        StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, Normalizer, SimpleImputer, OneHotEncoder, PCA and
        VarianceThreshold.
    path : str or path
        Where to. A file that is there is replaced, in one step at the end; it keeps its permissions.

    Raises
    ------
    TypeError
        If the model holds what the format has no place for, such as a function as kernel.

    See Also
    --------
    load : The way back.

    Notes
    -----
    A RandomState or Generator as `random_state` is saved as an integer seed, drawn from a copy of it.

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
        try:
            bounded_json(text, MAX_MANIFEST)
        except ValueError as error:
            raise TypeError(f"the model has more words and small parts than a model file holds: {error}") from None
        archive.writestr(_member(MANIFEST), text)
        archive.comment = sha256(text).hexdigest().encode()


def _member(name: str) -> zipfile.ZipInfo:
    """Return the entry of a part, without the time of day: the same model makes the same file."""
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


class _HashedFile:
    """Pass on what is written, and keep its digest."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = sha256()

    def write(self, part: bytes) -> None:
        self.digest.update(part)
        self._file.write(part)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote. Nothing in the file is executed.

    What compiled code would trust (sparse matrices, sizes) is checked first, so that a file that was damaged or
    made to do harm cannot end the process, nor take more memory than a multiple of its size.

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
        If the file is not a model, is damaged or has been changed, or comes from a newer version of pairlens.

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
                return _restore(archive, manifest, members, size, source.name)
        except (ModelFileError, MissingExtraError):
            raise
        except Exception as error:
            # Zip files and headers are read by code of others, which raises whatever it likes.
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
        if info.compress_size != info.file_size:
            raise ModelFileError(f"{name} is damaged: its part {info.filename!r} has two sizes")
        if info.filename in members:
            raise ModelFileError(f"{name} has two parts named {info.filename!r}")
        members[info.filename] = info
    # Overlapping members would unfold to more than the file holds.
    if sum(info.file_size for info in members.values()) > size:
        raise ModelFileError(f"{name} is damaged: its parts claim to be larger than the file")
    if MANIFEST not in members:
        raise ModelFileError(f"{name} is a zip file, but not a model written by pairlens.save: it has no manifest")
    if members[MANIFEST].file_size > MAX_MANIFEST:
        raise ModelFileError(f"{name} is not a model written by pairlens.save: its manifest is larger than any")
    text = archive.read(MANIFEST)
    try:
        manifest = bounded_json(text, MAX_MANIFEST)
    except ValueError as error:
        raise ModelFileError(f"{name} is not a model written by pairlens.save: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{name} is a zip file, but not a model written by pairlens.save: malformed manifest")
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


def _restore(
    archive: zipfile.ZipFile, manifest: dict[str, Any], members: dict[str, zipfile.ZipInfo], size: int, name: str
) -> Any:
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

    decoder = Decoder(read, name, MAX_COPIES * size)
    model = decoder.decode(manifest.get("model"))
    if not hasattr(model, "get_params"):
        raise ModelFileError(f"{name} holds {type(model).__name__}, which is not a model")
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
    try:
        shape, _, dtype = read_header(stream, f"its part {member!r}", len(content))
        if math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
            raise ValueError(f"its part {member!r} is longer than its header says")
        stream.seek(0)
        return np.asarray(npy.read_array(stream, allow_pickle=False))
    except ValueError as error:
        raise ModelFileError(f"{name} is refused: {error}") from error


def _minor(text: str) -> list[str]:
    return text.split(".")[:2]


def bounded_json(text: bytes, most: int) -> Any:
    """Return the value of JSON text that takes little more memory than its own size; ValueError for other or longer
    text.
    """
    if len(text) > most:
        raise ValueError(f"its JSON has {len(text):,} bytes, and at most {most:,} are read")
    symbols = np.frombuffer(text, dtype=np.uint8)
    # Square and curly brackets differ in one bit. Those in strings count too, which is on the safe side.
    kinds = symbols & 0xDF
    opened = kinds == ord("[")
    if (count := int(np.count_nonzero(opened))) > MAX_BRACKETS:
        raise ValueError(f"its JSON has {count:,} lists and objects, and at most {MAX_BRACKETS:,} are read")
    brackets = kinds[opened | (kinds == ord("]"))]
    depth = np.cumsum(np.where(brackets == ord("["), 1, -1)).max(initial=0)
    if depth > MAX_DEPTH:
        raise ValueError(f"its JSON is nested {depth} deep, and at most {MAX_DEPTH} is read")
    return json.loads(text)
