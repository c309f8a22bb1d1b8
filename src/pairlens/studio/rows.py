"""Rows as they are learned from, as numbers, and as people see them: cells, texts and pictures."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pairlens._text import whole_characters
from pairlens.exceptions import InputError
from pairlens.io.columns import check_column, naming
from pairlens.io.source import NAMED, Source, Table, column_names, kind_of, read_columns
from pairlens.pipeline import Preparation, prepare
from pairlens.tables import Role
from pairlens.tables.islands import TextIndex
from pairlens.tables.pictures import PictureFolder, are_picture_paths
from pairlens.tables.roles import role_of

LONG_TEXT = 80
"""Mean number of characters from which on a column is a text rather than a cell."""
MOST_CHARACTERS = 20_000
"""Characters of one text that are shown."""
MOST_COLUMNS = 200
"""Columns that the page lists as learned from or not."""
MOST_CELLS = 60
MOST_NUMBERS = 12
"""Numeric columns up to which they are cells of the table; more are drawn as a line, or folded beside other columns."""
LONGEST_LINE = 256
LEAST_SIDE, MOST_SIDE = 6, 128
"""Sides of pictures that are drawn from numbers."""
SAMPLE = 500
MOST_COLOURS = 10
"""Words of a column that have a colour of their own on the map."""
TYPICAL_PAIRS = 2000
UNUSUAL = 0.9


@dataclass
class Rows:
    """Rows as people see them, and as they are learned from.

    `X` is what is learned from, made by `prepared`, and `features` are the names of its columns. What is shown of each
    row stands by the name of its column in `cells`, `numbers` (folded, because they are many) and `texts`; as a picture
    in `ink` (the numbers of a row, from 0 to 255) or `pictures` (in files); or as a `line`. `fingerprint` identifies
    the table, which is `named` if it has named columns.
    """

    X: NDArray[np.float64]
    features: tuple[str, ...]
    ids: list[str]
    prepared: Preparation
    fingerprint: dict[str, Any]
    source: str = "the table"
    named: bool = False
    id_column: str | None = None
    cells: dict[str, Sequence[Any]] = field(default_factory=dict)
    numbers: dict[str, Sequence[Any]] = field(default_factory=dict)
    texts: dict[str, Sequence[Any]] = field(default_factory=dict)
    ink: NDArray[np.uint8] | None = None
    line: NDArray[np.float64] | None = None
    line_words: str = ""
    pictures: PictureFolder | None = None

    @cached_property
    def joined_texts(self) -> list[str] | None:
        """The long texts of each row as one; None if there are none."""
        if not self.texts:
            return None
        return [" ".join(said(column[row]) for column in self.texts.values()) for row in range(self.n_rows)]

    @cached_property
    def text_index(self) -> TextIndex | None:
        """The words of the long texts; None if there are none."""
        return None if self.joined_texts is None else TextIndex.of(self.joined_texts)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    def shown(self, row: int) -> dict[str, Any]:
        """Return a row as the page gets it: JSON, with texts as they are."""
        result: dict[str, Any] = {"row": row, "id": self.ids[row]}
        if self.cells:
            result["cells"] = [[name, said(column[row])] for name, column in self.cells.items()]
        if self.numbers:
            result["numbers"] = [[name, said(column[row])] for name, column in self.numbers.items()]
        if self.texts:
            result["texts"] = [[name, *_cut(said(column[row]))] for name, column in self.texts.items()]
        if self.ink is not None:
            result["pixels"] = [*self.ink.shape[1:], base64.b64encode(self.ink[row].tobytes()).decode()]
        if self.pictures is not None:
            result["picture"] = self.pictures.has(row)
        if self.line is not None:
            result["line"] = [round(float(value), 3) for value in self.line[row]]
        return result

    def frame(self) -> Any:
        """Return the numbers that are learned from as a data frame, the rows by their names."""
        import pandas as pd

        return pd.DataFrame(self.X, index=self.ids, columns=list(self.features))

    def find(self, text: str) -> list[int]:
        """Return the rows whose name, cells or texts contain a text, whatever its case."""
        wanted = text.casefold()
        columns = [self.ids, *self.cells.values(), *self.texts.values()]
        return [row for row in range(self.n_rows) if any(wanted in said(column[row]).casefold() for column in columns)]

    def column(self, name: str) -> dict[str, Any] | None:
        """Return the values of a column to colour the map by: numbers, or the places of its commonest words.

        Words are counted from 0; -1 is for any other, and for a cell without a value. None if there is no such column.
        """
        values = {**self.cells, **self.numbers}.get(name)
        if values is None:
            return None
        if _are_numbers(values):
            numbers = [_number(value) for value in values]
            return {"numbers": [None if math.isnan(number) else number for number in numbers]}
        words = [said(value) for value in values]
        names = [word for word, _ in Counter(word for word in words if word).most_common(MOST_COLOURS)]
        place = {word: k for k, word in enumerate(names)}
        return {"names": names, "codes": [place.get(word, -1) for word in words]}

    def describe(self) -> dict[str, Any]:
        """Return what the page needs to know about the table as a whole."""
        result: dict[str, Any] = {"rows": self.n_rows, "features": len(self.features), "source": self.source}
        result["columns"] = self._columns()
        result["typical"] = usual_differences(self.cells, self.n_rows)
        result["colours"] = [*self.cells, *self.numbers]
        result["scale"] = f"{self.prepared.reason[:1].upper()}{self.prepared.reason[1:]}."
        if self.line is not None:
            low, high = (float(value) for value in np.percentile(self.line, [0.5, 99.5]))
            result["line"] = {"low": low, "high": high if high > low else low + 1, "words": self.line_words}
        return result

    def _columns(self) -> list[tuple[str, str, bool]]:
        """Return each column by name, what it was read as, and whether it is learned from; none without names."""
        encoder = self.prepared.encoder
        learned = [
            (each.name, f"{each.role} ({each.note})" if each.note else each.role, bool(each.n_features))
            for each in (() if encoder is None else encoder.columns_)
        ]
        if encoder is None and self.named:
            learned = [(name, "number", True) for name in self.features]
        known = {name for name, _, _ in learned}
        beside = [name for name in (*self.cells, *self.texts, *self.numbers) if name not in known]
        return [*learned, *((name, "shown only", False) for name in beside)][:MOST_COLUMNS]


def said(value: Any) -> str:
    """Return a cell as text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    return whole_characters(str(value))


def _cut(text: str) -> tuple[str, int]:
    """Return a text that is not too long for the page, and how many characters were left out."""
    return text[:MOST_CHARACTERS], max(0, len(text) - MOST_CHARACTERS)


def rows_from_file(
    path: str | Path,
    *,
    ids: str | None = None,
    drop: Sequence[str] = (),
    show: Sequence[str] = (),
    image: str | None = None,
    text: Sequence[str] = (),
    files: str | Path | None = None,
    rows: str | Path | None = None,
    embed: Mapping[str, Any] | None = None,
) -> Rows:
    """Read a table, or a folder of pictures, and find out how its rows are best shown.

    A column of `ids` names the rows; columns to `drop` are neither learned from nor shown. By default all short columns
    are shown, and long ones as texts: `show` and `text` choose others. `image` is a column with paths of pictures,
    which lie in `files`, or a size such as "28x28", if the numbers of a row are a picture. Where `path` holds features
    alone, `rows` is the table that people know the rows by. `embed` has the models that embed columns, as of
    :class:`~pairlens.TableEncoder`; pictures of a folder are its column "file".
    """
    source = Path(path)
    if source.is_dir():
        return _rows_from_folder(source, embed)
    size = None if image is None else _size(image)
    shown_file = source if rows is None else Path(rows)
    columns = column_names(shown_file) if kind_of(shown_file) in NAMED else []
    paths = image if size is None else None
    for name in [*show, *text, *([] if paths is None else [paths])]:
        check_column(name, columns, shown_file.name)
    if rows is None:
        unused = [] if paths in (None, ids) or paths in (embed or ()) else [str(paths)]
        table, beside = _read(source, ids, [*drop, *unused], embed or {})
    else:
        table, beside = Source(source, ids, rows=shown_file).read(), []
    prepared, X, features = _prepared(table, embed)
    words = [*beside, *table.left_out, *(table.features if prepared.mixed else ())]
    if table.beside is not None:
        words = [name for name in table.beside.columns if name not in (ids, *drop)]
    words = [name for name in words if name in columns]
    wanted = list(dict.fromkeys([*words, *show, *text, *([] if paths is None else [paths])]))
    if table.beside is not None:
        values = {name: list(table.beside.columns[name]) for name in wanted}
    else:
        values = {name: list(column) for name, column in read_columns(source, wanted).items()} if wanted else {}
    if paths is None and size is None:
        paths = next((name for name in words if name not in (*show, *text) and are_picture_paths(values[name])), None)
    long = list(text) or [name for name in words if name != paths and name not in show and _is_long(values[name])]
    names = None if table.ids is None else [said(value) for value in table.ids]
    result = _rows(X, features, names, prepared, source.name, named=table.is_frame)
    result.id_column = ids
    if rows is None and not prepared.mixed:
        numbers = table.rows.to_numpy(dtype=np.float64) if table.is_frame else X
        _draw(result, numbers, table.features, size, show)
    elif size is not None:
        raise InputError(f"the columns of {source.name} are not all numbers, so they are not pixels", argument="image")
    shown = [name for name in values if name not in long and name != paths and (not show or name in show)]
    numeric = [] if show else [name for name in shown if _are_numbers(values[name])]
    if len(numeric) > MOST_NUMBERS:
        result.numbers = {name: values[name] for name in numeric[:MOST_CELLS]}
        shown = [name for name in shown if name not in numeric]
    result.cells = {**{name: values[name] for name in shown}, **result.cells}
    result.cells = dict(list(result.cells.items())[:MOST_CELLS])
    result.texts = {name: values[name] for name in long}
    if paths is not None:
        folder = Path(files) if files else shown_file.parent
        result.pictures = PictureFolder(folder, [said(cell) for cell in values[paths]])
    with source.open("rb") as file:
        result.fingerprint["file"] = file_digest(file, "sha256").hexdigest()
    return result


def _rows_from_folder(folder: Path, embed: Mapping[str, Any] | None) -> Rows:
    """Take the pictures of a folder and of the folders in it, and learn from vectors or small versions of them."""
    table = Source(folder, embed=bool(embed)).read()
    assert table.ids is not None
    assert table.beside is not None
    prepared, X, features = _prepared(table, embed)
    result = _rows(X, features, table.ids.tolist(), prepared, folder.name, named=False)
    result.id_column, result.pictures = table.id_column, PictureFolder(folder, table.ids.tolist())
    result.cells = {name: list(column) for name, column in table.beside.columns.items() if name != table.id_column}
    return result


def _read(
    source: Path, ids: str | None, drop: Sequence[str], embed: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Table, list[str]]:
    """Read the table without columns that only name the rows or their pictures, and return these columns."""
    table = Source(source, ids, drop=drop, text=list(embed)).read()
    if not table.is_frame:
        return table, []
    beside = [
        name
        for name in table.features
        if name not in embed
        and (role_of(table.rows[name], name)[0] is Role.identifier or are_picture_paths(table.rows[name].tolist()))
    ]
    if not beside or len(beside) == len(table.features):
        return table, []
    kept = [name for name in table.features if name not in beside]
    return replace(table, rows=table.rows[kept], features=tuple(kept)), beside


def _prepared(table: Table, embed: Mapping[str, Any] | None) -> tuple[Preparation, NDArray[np.float64], list[str]]:
    """Return what comes before a method, the rows to learn from, and the names of their columns."""
    with naming(table.source):
        prepared = prepare(table.rows, scale="none" if table.own_scale else "auto", embed=embed)
        X, names = prepared.encoded(table.rows)
    X = X.toarray() if sparse.issparse(X) else X
    return prepared, np.ascontiguousarray(X, dtype=np.float64), list(table.features) if names is None else names


def rows_from_array(
    X: ArrayLike,
    *,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    cells: dict[str, Sequence[Any]] | None = None,
    texts: dict[str, Sequence[Any]] | None = None,
    images: Sequence[str] | None = None,
    files: str | Path = ".",
    image_shape: tuple[int, int] | None = None,
    feature_names: Sequence[str] | None = None,
    source: str = "the rows",
) -> Rows:
    """Take the rows of an array, with what is shown of each beside it."""
    values = np.ascontiguousarray(X, dtype=np.float64)
    if values.ndim != 2 or len(values) < 2:
        raise InputError(
            f"X must have at least two rows and two dimensions, got the shape {values.shape}", argument="X"
        )
    if not np.isfinite(values).all():
        raise InputError("X holds NaN or infinity", argument="X", remedy="Fill in or leave out such values first")
    for name, column in {**(cells or {}), **(texts or {}), "ids": ids, "images": images}.items():
        if column is not None and len(column) != len(values):
            raise InputError(
                f"{name} must have one entry for each of the {len(values)} rows, got {len(column)}", argument=name
            )
    features = [f"x{j}" for j in range(values.shape[1])] if feature_names is None else [str(n) for n in feature_names]
    names = None if ids is None else [said(value) for value in ids]
    result = _rows(values, features, names, prepare(values), source, named=feature_names is not None)
    _draw(result, values, features, image_shape, ())
    result.cells = {**{str(name): list(column) for name, column in (cells or {}).items()}, **result.cells}
    result.texts = {str(name): list(column) for name, column in (texts or {}).items()}
    if images is not None:
        result.pictures = PictureFolder(Path(files), [said(cell) for cell in images])
    return result


def _rows(
    X: NDArray[np.float64],
    features: Sequence[str],
    ids: list[str] | None,
    prepared: Preparation,
    source: str,
    *,
    named: bool,
) -> Rows:
    """Return rows of which nothing is shown yet."""
    if ids is not None and len(set(ids)) < len(ids):
        ((twice, _),) = Counter(ids).most_common(1)
        raise InputError(
            f"the ids of {source} must differ, but {twice!r} is there more than once", argument="ids", value=twice
        )
    digest = sha256(X.tobytes() + repr((X.shape, tuple(features), ids)).encode()).hexdigest()
    fingerprint = {"content": digest, "rows": len(X), "columns": list(features)[:50]}
    names = [str(i) for i in range(len(X))] if ids is None else ids
    return Rows(X, tuple(features), names, prepared, fingerprint, source, named)


def _draw(
    rows: Rows, X: NDArray[np.float64], features: Sequence[str], size: tuple[int, int] | None, show: Sequence[str]
) -> None:
    """Show the numbers of a table as a picture, a line or cells, whichever they are."""
    if size is not None and size[0] * size[1] != X.shape[1]:
        raise InputError(
            f"a picture of {size[0]} x {size[1]} has {size[0] * size[1]} pixels, not {X.shape[1]}",
            argument="image",
            value=size,
        )
    may_be_pixels = not rows.named or all("pix" in name.lower() for name in features)
    if size is None and may_be_pixels and not show:
        size = _pixel_shape(X)
    if size is not None:
        rows.ink = _inked(X).reshape(len(X), *size)
    elif show or X.shape[1] <= MOST_NUMBERS:
        rows.cells = {name: X[:, j].tolist() for j, name in enumerate(features) if not show or name in show}
    else:
        rows.line, rows.line_words = _line(X)
        if rows.named and X.shape[1] <= MOST_CELLS:
            rows.numbers = {name: X[:, j].tolist() for j, name in enumerate(features)}


def _inked(X: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return numbers scaled to 0 to 255, some rows at a time."""
    low, high = float(X.min()), float(X.max())
    ink = np.empty(X.shape, dtype=np.uint8)
    for first in range(0, len(X), SAMPLE):
        part = slice(first, first + SAMPLE)
        ink[part] = np.round((X[part] - low) * (255 / ((high - low) or 1)))
    return ink


def _size(text: str) -> tuple[int, int] | None:
    """Return height and width from "28x28"; None if it is the name of a column."""
    height, cross, width = text.partition("x")
    return (int(height), int(width)) if cross and height.isdecimal() and width.isdecimal() else None


def _pixel_shape(X: NDArray[np.float64]) -> tuple[int, int] | None:
    """Return the shape of a square picture, if the columns may well be its pixels: none negative, one scale."""
    side = math.isqrt(X.shape[1])
    if side * side != X.shape[1] or not LEAST_SIDE <= side <= MOST_SIDE:
        return None
    if X.min() < 0 or X.max() > 255 or X.max() <= 0:
        return None
    return side, side


def _line(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
    """Draw many numbers as one line: in their own unit if they share one, else each column standardised."""
    deviation = X.std(axis=0)
    varying = deviation[deviation > 0]
    words = "values"
    if len(varying) and varying.max() > 20 * varying.min():
        X = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
        words = "values, each column standardised"
    if X.shape[1] > LONGEST_LINE:
        edges = np.linspace(0, X.shape[1], LONGEST_LINE + 1).astype(int)[:-1]
        X = np.add.reduceat(X, edges, axis=1) / np.diff(np.append(edges, X.shape[1]))
        words += f", means of {LONGEST_LINE} stretches"
    return X, words


def usual_differences(columns: Mapping[str, Any], n_rows: int) -> dict[str, float | bool]:
    """Return what is usual in each column, so that what is not can be marked.

    Of numbers, the difference that nine of ten pairs of rows do not exceed. Of words, whether most pairs of rows have
    the same.
    """
    i, j = np.random.default_rng(0).integers(n_rows, size=(2, TYPICAL_PAIRS))
    i, j = i[i != j], j[i != j]
    result: dict[str, float | bool] = {}
    for name, column in columns.items():
        if _are_numbers(column):
            left, right = (np.array([_number(column[row]) for row in rows]) for rows in (i, j))
            gaps = np.abs(left - right)
            gaps = gaps[np.isfinite(gaps)]
            result[name] = float(np.quantile(gaps, UNUSUAL)) if len(gaps) else 0.0
        else:
            equal = [said(column[a]) == said(column[b]) for a, b in zip(i, j)]
            result[name] = bool(equal) and float(np.mean(equal)) > 0.5
    return result


def differ_unusually(cells: Sequence[Any], usual: float | bool) -> bool:
    """Return whether some cells of a column differ more than is usual in it, as the page decides for what it shows."""
    if isinstance(usual, bool):
        return usual and len({said(cell) for cell in cells}) > 1
    numbers = [_number(cell) for cell in cells]
    return max(numbers) - min(numbers) > usual


def _are_numbers(column: Sequence[Any]) -> bool:
    """Return whether all cells that say anything are numbers, by the first of them."""
    try:
        return bool([float(cell) for cell in map(said, column[:SAMPLE]) if cell])
    except ValueError:
        return False


def _number(value: Any) -> float:
    """Return a cell as a number, NaN if it is not one."""
    try:
        return float(said(value))
    except ValueError:
        return float("nan")


def _is_long(column: Sequence[Any]) -> bool:
    sample = [said(value) for value in column[:SAMPLE]]
    return bool(sample) and sum(map(len, sample)) > LONG_TEXT * len(sample)
