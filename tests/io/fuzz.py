"""Model files changed at random where it matters, with their checksums made right again.

    python -m tests.io.fuzz FOLDER FIRST COUNT

opens COUNT changed files, numbered from FIRST on, made of the models in FOLDER. It runs as a process of its own with
bounded memory, and writes the number of each case before it is tried: where the process dies, the last number says why.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from pairlens.io._arrays import read_header
from pairlens.io.models import ModelFileError, load

MEMORY = 1 << 30
"""Bytes that a process may take beyond what it has when the first file is opened."""
SECONDS = 20.0
"""For one file; most take milliseconds, and a busy machine takes longer."""
USES = ("transform", "predict", "decision_function")

NUMBERS: list[Any] = [
    -1,
    0,
    1,
    2,
    7,
    -2000,
    -(10**9),
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**63,
    10**18,
    0.5,
    -1e300,
    1e39,
]
VALUES: list[Any] = [
    *NUMBERS,
    None,
    True,
    "",
    "x",
    "-1",
    "4294967295",
    [],
    {},
    [[]] * 50,
    [0] * 1000,
    {"float": "nan"},
    {"float": "inf"},
    {"tuple": [2**40]},
    {"dtype": "<f8"},
    {"type": "<f8"},
    {"slice": [None, None, 2**40]},
    {"random_state": {"dict": []}},
    {"objects": [[0, 2**50], []]},
]
HEADERS = [
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': ((((((((",
    b"(" * 5000,
    b"-" * 9000 + b"1",
    b"{'descr': '|V0', 'fortran_order': False, 'shape': (1152921504606846976,), }",
    b"{'descr': '<U0', 'fortran_order': False, 'shape': (1099511627776,), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1125899906842624), }",
    b"{'descr': '<f8', 'fortran_order': True, 'shape': (-1, -8), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
]


def changed(content: bytes, rng: np.random.Generator) -> bytes:
    """A model file with one to three changes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts.pop("manifest.json"))
    for _ in range(rng.integers(1, 4)):
        # What one change has broken, another may not be able to read.
        with contextlib.suppress(Exception):
            choose(rng, CHANGES)(parts, manifest, rng)
    manifest["digests"] = {name: sha256(part).hexdigest() for name, part in parts.items()}
    text = json.dumps(manifest).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, part in {**parts, "manifest.json": text}.items():
            archive.writestr(name, part)
        archive.comment = sha256(text).hexdigest().encode()
    result = bytearray(made.getvalue())
    if rng.random() < 0.05:
        for place in rng.integers(0, len(result), 3):
            result[place] ^= 1 << int(rng.integers(8))
    return bytes(result)


def choose(rng: np.random.Generator, among: Any) -> Any:
    return among[int(rng.integers(len(among)))]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in JSON where a value can be replaced: its list or object, and the index or key."""
    found = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in found:
        yield value, key
        yield from places(part)


def change_json(value: Any, rng: np.random.Generator) -> None:
    """Replace, remove, rename, repeat or move a part of JSON."""
    found = list(places(value))
    if not found:
        return
    where, key = choose(rng, found)
    kind = int(rng.integers(8))
    if kind <= 2:
        where[key] = deepcopy(choose(rng, VALUES))
    elif kind == 3:
        other, name = choose(rng, found)
        where[key] = deepcopy(other[name])
    elif kind == 4:
        del where[key]
    elif kind == 5 and isinstance(where, dict):
        where[choose(rng, ["memory", "__class__", "transform", "x"])] = where.pop(key)
    elif kind == 6 and isinstance(where[key], list):
        where[key] = deepcopy(where[key]) * 40 if len(where[key]) < 100 else where[key][:-1]
    elif type(where[key]) in (int, float):
        where[key] = choose(rng, NUMBERS)
    elif isinstance(where[key], str):
        where[key] = str(choose(rng, NUMBERS))
    elif isinstance(where[key], list) and where[key]:
        where[key][int(rng.integers(len(where[key])))] = choose(rng, NUMBERS)


def change_manifest(parts: dict[str, bytes], manifest: dict[str, Any], rng: np.random.Generator) -> None:
    change_json(manifest["model"], rng)


def array_name(parts: dict[str, bytes], rng: np.random.Generator) -> str | None:
    names = sorted(name for name in parts if parts[name])
    return choose(rng, names) if names else None


def change_header(parts: dict[str, bytes], manifest: dict[str, Any], rng: np.random.Generator) -> None:
    """Another header before the same numbers."""
    if (name := array_name(parts, rng)) is None:
        return
    stream = io.BytesIO(parts[name])
    header = choose(rng, HEADERS)
    with contextlib.suppress(ValueError):
        shape, _, dtype = read_header(stream, name, len(parts[name]))
        if rng.random() < 0.6:
            written = io.BytesIO()
            shape = choose(
                rng, [shape, shape[::-1], (*shape, 1), (-1,), (2**40, 0), (int(np.prod(shape)),), (2**62, 4), ()]
            )
            kinds = [dtype.str, "<i8", "<u8", "<f4", ">f8", "<c16", "|u1", "<M8[ns]", "|S8", "<U2", "|V8"]
            npy.write_array_header_1_0(
                written, {"descr": choose(rng, kinds), "fortran_order": bool(rng.integers(2)), "shape": shape}
            )
            parts[name] = written.getvalue() + stream.read()
            return
    rest = stream.read()
    parts[name] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + rest


def change_numbers(parts: dict[str, bytes], manifest: dict[str, Any], rng: np.random.Generator) -> None:
    """Other numbers behind the same header, or those of another array, or fewer."""
    if (name := array_name(parts, rng)) is None:
        return
    kind = int(rng.integers(5))
    try:
        read_header(io.BytesIO(parts[name]), name, len(parts[name]))
        array = np.load(io.BytesIO(parts[name]))
    except ValueError:
        return
    if kind == 0:
        parts[name] = parts[str(array_name(parts, rng))]
        return
    if kind == 1:
        content = bytearray(parts[name])
        for place in rng.integers(0, len(content), 8):
            content[place] = int(rng.integers(256))
        parts[name] = bytes(content)
        return
    with contextlib.suppress(Exception):
        if kind == 2:
            array = choose(rng, [array[:-1], array[None], array.T, array[..., :0], np.concatenate([array, array])])
        elif array.dtype.names:
            array[choose(rng, array.dtype.names)][int(rng.integers(len(array)))] = choose(
                rng, [-2, -1, 0, 1, 2**31, 2**62]
            )
        elif array.size:
            extremes = (
                [np.nan, np.inf, -1e308, 1e308, 0] if array.dtype.kind == "f" else [-1, 0, 2**31 - 1, -(2**31), 255]
            )
            array.reshape(-1)[rng.integers(0, array.size, 1 + array.size // 10)] = choose(rng, extremes)
    written = io.BytesIO()
    np.save(written, array)
    parts[name] = written.getvalue()


CHANGES: list[Callable[[dict[str, bytes], dict[str, Any], np.random.Generator], None]] = [
    change_manifest,
    change_manifest,
    change_header,
    change_numbers,
    change_numbers,
]


def outcome(path: Path, rows: Any) -> str:
    """What comes of opening a file and using its model: a refusal, an error in use, or numbers."""
    try:
        model = load(path)
    except ModelFileError as error:
        if isinstance(error.__cause__, MemoryError):
            raise
        return "refused"
    result = "works"
    for name in USES:
        try:
            if hasattr(model, name):
                getattr(model, name)(rows)
        except MemoryError:
            raise
        except Exception:
            result = "error in use"
    return result


def rows_for(path: Path) -> Any:
    """A few rows of the width that a model wants."""
    model = load(path)
    if hasattr(model, "feature_names_in_"):
        import pandas

        words = {"colour": ["red", "green", "blue", "red", "x"]}
        return pandas.DataFrame({name: words.get(name, np.arange(5.0)) for name in model.feature_names_in_})
    return np.random.default_rng(1).standard_normal((5, model.n_features_in_))


def main(folder: Path, first: int, count: int) -> None:
    """Try cases; prints their outcomes, and fails by an exception or the death of the process."""
    warnings.simplefilter("ignore")
    files = sorted(folder.glob("*.pairlens"))
    rows = {path: rows_for(path) for path in files}
    for path in files:
        outcome(path, rows[path])  # what is imported at first use is not the fault of a changed file
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    found: Counter[str] = Counter()
    for case in range(first, first + count):
        rng = np.random.default_rng([20, case])
        path = choose(rng, files)
        target = folder / f"{first}.case"
        target.write_bytes(changed(path.read_bytes(), rng))
        (folder / f"{first}.last").write_text(f"case {case}, of {path.name}")
        start = time.process_time()
        found[outcome(target, rows[path])] += 1
        if (taken := time.process_time() - start) > SECONDS:
            raise TimeoutError(f"case {case}, of {path.name}, took {taken:.1f} s")
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
