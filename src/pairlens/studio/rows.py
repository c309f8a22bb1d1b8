"""What the rows are, to the learner and to the person: numbers on one side; cells, texts and pictures on the other."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.io.pictures import PictureFolder, are_picture_paths
from pairlens.io.tables import Table, check_column, column_names, kind_of, read_columns, read_table
from pairlens.spectral.rowspace import looks_principal
from pairlens.tables import Role, TableEncoder
from pairlens.tables.roles import role_of

__all__ = ["Rows", "rows_from_array", "rows_from_file"]

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


@dataclass
class Rows:
    """All rows of a table.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        What is learned from.
    features : tuple of str
        Names of its columns.
    ids : list of str
        What each row is called; its number where nothing else is known.
    id_column : str or None
    cells : dict of sequences
        Columns that are shown as a table, by name.
    numbers : dict of sequences
        Columns of numbers that are folded, because they are many.
    texts : dict of sequences
        Columns of long texts.
    pixels : tuple of int or None
        Height and width, if the numbers of a row are a picture.
    line : array or None
        What is drawn as a line, one row each.
    pictures : PictureFolder or None
        Pictures in files.
    source : str
        Name of the table.
    named : bool
        Whether the table has named columns.
    encoder : TableEncoder or None
        What made X of a table of mixed columns.
    standardize : bool
        Whether columns are divided by their deviations: not those of an encoder, nor principal components.
    fingerprint : dict
        What identifies the table.
    """

    X: NDArray[np.float64]
    features: tuple[str, ...]
    ids: list[str]
    id_column: str | None = None
    cells: dict[str, Sequence[Any]] = field(default_factory=dict)
    numbers: dict[str, Sequence[Any]] = field(default_factory=dict)
    texts: dict[str, Sequence[Any]] = field(default_factory=dict)
    pixels: tuple[int, int] | None = None
    line: NDArray[np.float64] | None = None
    line_words: str = ""
    pictures: PictureFolder | None = None
    source: str = "the table"
    named: bool = False
    encoder: Any = None
    standardize: bool = field(init=False)
    fingerprint: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.standardize = self.encoder is None and not looks_principal(self.X)
        self._ink = (0.0, 1.0) if self.pixels is None else (float(self.X.min()), float(self.X.max()))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    def shown(self, row: int) -> dict[str, Any]:
        """A row as the page gets it: JSON, with texts as they are."""
        result: dict[str, Any] = {"row": row, "id": self.ids[row]}
        if self.cells:
            result["cells"] = [[name, said(column[row])] for name, column in self.cells.items()]
        if self.numbers:
            result["numbers"] = [[name, said(column[row])] for name, column in self.numbers.items()]
        if self.texts:
            result["texts"] = [[name, *_cut(said(column[row]))] for name, column in self.texts.items()]
        if self.pixels is not None:
            low, high = self._ink
            ink = np.round((self.X[row] - low) * (255 / ((high - low) or 1))).astype(np.uint8)
            result["pixels"] = [*self.pixels, base64.b64encode(ink.tobytes()).decode()]
        if self.pictures is not None:
            result["picture"] = self.pictures.has(row)
        if self.line is not None:
            result["line"] = [round(float(value), 3) for value in self.line[row]]
        return result

    def describe(self) -> dict[str, Any]:
        """What the page needs to know about the table as a whole."""
        result: dict[str, Any] = {"rows": self.n_rows, "features": len(self.features), "source": self.source}
        result["columns"] = self._columns()
        result["scale"] = self._scale()
        if self.line is not None:
            low, high = (float(value) for value in np.percentile(self.line, [0.5, 99.5]))
            result["line"] = {"low": low, "high": high if high > low else low + 1, "words": self.line_words}
        return result

    def _scale(self) -> str:
        """Say how much each column counts."""
        if self.encoder is not None:
            return "Every column of the table counts the same to begin with."
        if not self.standardize:
            return "The columns look like principal components, so their scale is kept."
        return "Every column is divided by its deviation."

    def _columns(self) -> list[tuple[str, str, bool]]:
        """Each column by name, what it was read as, and whether it is learned from; none where they have no names."""
        if self.encoder is not None:
            learned = [
                (each.name, f"{each.role} ({each.note})" if each.note else each.role, bool(each.n_features))
                for each in self.encoder.columns_
            ]
        else:
            learned = [(name, "number", True) for name in self.features] if self.named else []
        known = {name for name, _, _ in learned}
        beside = [name for name in (*self.cells, *self.texts, *self.numbers) if name not in known]
        return [*learned, *((name, "shown only", False) for name in beside)][:MOST_COLUMNS]


def said(value: Any) -> str:
    """A cell as text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    return str(value)


def _cut(text: str) -> tuple[str, int]:
    """A text that is not too long for the page, and how many characters were left out."""
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
) -> Rows:
    """Read a table and find out how its rows are best shown.

    Parameters
    ----------
    path : str or path
        CSV, TSV, Parquet, NPY or NPZ.
    ids : str, optional
        Column that names the rows.
    drop : sequence of str
        Columns that are neither learned from nor shown.
    show : sequence of str
        Columns to show; by default all short ones.
    image : str, optional
        Column with paths of pictures; or a size such as "28x28", if the numbers of a row are a picture.
    text : sequence of str
        Columns with long texts; by default those that are long.
    files : path, optional
        Folder of the pictures; by default that of the table.
    """
    source = Path(path)
    size = None if image is None else _size(image)
    columns = column_names(source) if kind_of(source) in ("csv", "tsv", "parquet") else []
    paths = image if size is None else None
    for name in [*show, *text, *([] if paths is None else [paths])]:
        check_column(name, columns, source.name)
    table, beside = _read(source, ids, [*drop, *([] if paths in (None, ids) else [str(paths)])])
    X, features, encoder = _numbers(table)
    words = [*beside, *table.left_out, *(() if encoder is None else table.numbers)]
    words = [name for name in words if name in columns]
    wanted = list(dict.fromkeys([*words, *show, *text, *([] if paths is None else [paths])]))
    values = {name: list(column) for name, column in read_columns(source, wanted).items()} if wanted else {}
    if paths is None and size is None:
        paths = next((name for name in words if name not in (*show, *text) and are_picture_paths(values[name])), None)
    long = list(text) or [name for name in words if name != paths and name not in show and _is_long(values[name])]
    names = None if ids is None else [said(value) for value in table.asked[ids]]
    plain = encoder is None
    result = _arranged(X, features, names, size, source.name, bare=not table.is_frame, show=show, drawn=plain)
    result.id_column, result.encoder = ids, encoder
    result.standardize = result.standardize and encoder is None
    shown = [name for name in values if name not in long and name != paths and (not show or name in show)]
    numeric = [] if show else [name for name in shown if _are_numbers(values[name])]
    if len(numeric) > MOST_NUMBERS:
        result.numbers = {name: values[name] for name in numeric[:MOST_CELLS]}
        shown = [name for name in shown if name not in numeric]
    result.cells = {**{name: values[name] for name in shown}, **(result.cells if plain else {})}
    result.cells = dict(list(result.cells.items())[:MOST_CELLS])
    result.texts = {name: values[name] for name in long}
    if paths is not None:
        result.pictures = PictureFolder(Path(files) if files else source.parent, [said(cell) for cell in values[paths]])
    with source.open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    result.fingerprint["file"] = digest.hexdigest()
    return result


def _read(source: Path, ids: str | None, drop: Sequence[str]) -> tuple[Table, list[str]]:
    """The table without columns that only name the rows or their pictures, and these columns."""
    table = read_table(source, ids=ids, drop=drop, raw=True)
    if not table.is_raw:
        return table, []
    beside = [
        name
        for name in table.numbers
        if role_of(table.rows[name], name)[0] is Role.identifier or are_picture_paths(table.rows[name].tolist())
    ]
    if not beside or len(beside) == len(table.numbers):
        return table, []
    return read_table(source, ids=ids, drop=[*drop, *beside], raw=True), beside


def _numbers(table: Table) -> tuple[NDArray[np.float64], tuple[str, ...], Any]:
    """What is learned from, the names of its columns, and the encoder that made it of a table of mixed columns."""
    if not table.is_raw:
        values = table.rows.to_numpy() if table.is_frame else table.rows
        return np.ascontiguousarray(values, dtype=np.float64), table.numbers, None
    encoder = TableEncoder()
    try:
        values = encoder.fit_transform(table.rows)
    except ValueError as error:
        raise ValueError(f"{table.source}: {error}") from None
    return values, tuple(str(name) for name in encoder.get_feature_names_out()), encoder


def rows_from_array(
    X: ArrayLike,
    *,
    ids: Sequence[Any] | None = None,
    cells: dict[str, Sequence[Any]] | None = None,
    texts: dict[str, Sequence[Any]] | None = None,
    images: Sequence[str] | None = None,
    files: str | Path = ".",
    image_shape: tuple[int, int] | None = None,
    feature_names: Sequence[str] | None = None,
    source: str = "the rows",
) -> Rows:
    """The rows of an array, with what is shown of each beside it."""
    values = np.ascontiguousarray(X, dtype=np.float64)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"X must have at least two rows and two dimensions, got the shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("X holds NaN or infinity: fill in or leave out such values first")
    for name, column in {**(cells or {}), **(texts or {}), "ids": ids, "images": images}.items():
        if column is not None and len(column) != len(values):
            raise ValueError(f"{name} must have one entry for each of the {len(values)} rows, got {len(column)}")
    features = [f"x{j}" for j in range(values.shape[1])] if feature_names is None else [str(n) for n in feature_names]
    names = None if ids is None else [said(value) for value in ids]
    result = _arranged(values, features, names, image_shape, source, bare=feature_names is None, show=())
    result.cells = {**{str(name): list(column) for name, column in (cells or {}).items()}, **result.cells}
    result.texts = {str(name): list(column) for name, column in (texts or {}).items()}
    if images is not None:
        result.pictures = PictureFolder(Path(files), [said(cell) for cell in images])
    return result


def _arranged(
    X: NDArray[np.float64],
    features: Sequence[str],
    ids: list[str] | None,
    size: tuple[int, int] | None,
    source: str,
    *,
    bare: bool,
    show: Sequence[str],
    drawn: bool = True,
) -> Rows:
    """Numbers as a picture, a line or cells, whichever they are; those that encode something else are not `drawn`."""
    if ids is not None and len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise ValueError(f"the ids of {source} must differ, but {twice!r} is there more than once")
    if size is not None and size[0] * size[1] != X.shape[1]:
        raise ValueError(f"a picture of {size[0]} x {size[1]} has {size[0] * size[1]} pixels, not {X.shape[1]}")
    named = bare or all("pix" in name.lower() for name in features)
    if size is None and named and drawn and not show:
        size = _pixel_shape(X)
    digest = sha256(X.tobytes() + repr((X.shape, tuple(features), ids)).encode())
    result = Rows(
        X,
        tuple(features),
        ids if ids is not None else [str(i) for i in range(len(X))],
        pixels=size,
        source=source,
        named=not bare,
        fingerprint={"content": digest.hexdigest(), "rows": len(X), "columns": list(features)[:50]},
    )
    if size is not None or not drawn:
        return result
    if show or X.shape[1] <= MOST_NUMBERS:
        result.cells = {name: X[:, j].tolist() for j, name in enumerate(features) if not show or name in show}
    else:
        result.line, result.line_words = _line(X)
        if not bare and X.shape[1] <= MOST_CELLS:
            result.numbers = {name: X[:, j].tolist() for j, name in enumerate(features)}
    return result


def _size(text: str) -> tuple[int, int] | None:
    """Height and width from "28x28"; None if it is the name of a column."""
    height, cross, width = text.partition("x")
    return (int(height), int(width)) if cross and height.isdecimal() and width.isdecimal() else None


def _pixel_shape(X: NDArray[np.float64]) -> tuple[int, int] | None:
    """The shape of a square picture, if the columns may well be its pixels: none negative, one scale."""
    side = math.isqrt(X.shape[1])
    if side * side != X.shape[1] or not LEAST_SIDE <= side <= MOST_SIDE:
        return None
    if X.min() < 0 or X.max() > 255 or X.max() <= 0:
        return None
    return side, side


def _line(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
    """Many numbers as one line: in their own unit if they share one, else each column standardised."""
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


def _are_numbers(column: Sequence[Any]) -> bool:
    """Whether all cells that say anything are numbers, by the first of them."""
    try:
        return bool([float(cell) for cell in map(said, column[:SAMPLE]) if cell])
    except ValueError:
        return False


def _is_long(column: Sequence[Any]) -> bool:
    sample = [said(value) for value in column[:SAMPLE]]
    return bool(sample) and sum(map(len, sample)) > LONG_TEXT * len(sample)
