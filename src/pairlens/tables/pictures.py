"""Find the pictures of rows safely, decode them, and write them anew in a small size."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pairlens._optional import require
from pairlens._warnings import warn_user
from pairlens.exceptions import InputError

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
"""What is decoded. SVG is a program rather than a picture, and others are rare and their decoders little tested."""
MOST_PIXELS = 40_000_000
MOST_BYTES = 64 << 20
SIDE = 800
"""Longest side of a picture as it is sent, unless a smaller one is asked for."""
SAMPLE = 500
"""Cells by which a column of paths is told."""
MOSTLY = 0.9
THUMB_SIDE = 16
"""Side of the small versions of pictures that are learned from, where there is nothing else."""


class PictureError(ValueError):
    """Report why a row does not have a picture to show."""


def are_picture_paths(column: Sequence[Any]) -> bool:
    """Return whether nearly all cells that are not empty end like files of pictures."""
    sample = [cell.lower() for cell in column[:SAMPLE] if isinstance(cell, str) and cell.strip()]
    return bool(sample) and sum(text.endswith(IMAGE_ENDINGS) for text in sample) > MOSTLY * len(sample)


def picture_names(folder: Path) -> list[str]:
    """Return the names of the pictures in a folder and in the folders in it; InputError if there is none.

    Hidden files and folders are not looked at, and names that are not text are left out with a warning.
    """
    found = (
        path.relative_to(folder) for path in folder.rglob("*") if are_picture_paths([path.name]) and path.is_file()
    )
    names = sorted(str(path) for path in found if not any(part.startswith(".") for part in path.parts))
    texts = [name for name in names if name.isascii() or name == name.encode(errors="replace").decode()]
    if len(texts) < len(names):
        warn_user(f"the names of {len(names) - len(texts):,} pictures are not UTF-8; they are left out", UserWarning)
    names = texts
    if not names:
        raise InputError(
            f"{folder} holds no pictures",
            argument="path",
            value=folder,
            remedy=f"Pictures end in {', '.join(IMAGE_ENDINGS)}",
        )
    return names


class PictureFolder:
    """Give the pictures of the rows, each by the number of its row.

    A cell of `paths` holds a path relative to the folder, and is empty where there is none. It is resolved with all
    symbolic links, and must lie in the folder; what leads outside is refused, however it is spelled. What is sent is
    never the file, but its decoded pixels written anew as PNG, so that nothing hidden in a file reaches the browser.
    """

    def __init__(self, folder: Path, paths: Sequence[str]) -> None:
        if not folder.is_dir():
            raise InputError(
                f"{folder} is not a folder, so it holds no pictures",
                argument="files",
                value=folder,
                remedy="Name the folder of the pictures by files=",
            )
        require("PIL.Image", extra="studio", purpose="showing pictures")
        self.folder = folder.resolve()
        self.paths = list(paths)
        self.encoded = lru_cache(maxsize=256)(self._encoded)

    def has(self, row: int) -> bool:
        """Return whether the row has a cell that names a picture."""
        return bool(self.paths[row].strip())

    def find(self, row: int) -> Path:
        """Return the file of a row, which lies in the folder; PictureError if it may not be shown."""
        if not 0 <= row < len(self.paths):
            raise PictureError("there is no such row")
        cell = self.paths[row].strip()
        if not cell:
            raise PictureError("this row has no picture")
        if "\x00" in cell:
            raise PictureError("the cell is not a path")
        try:
            found = (self.folder / cell).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            raise PictureError("the file is missing") from None
        if not found.is_relative_to(self.folder):
            raise PictureError("the file lies outside the folder of the pictures")
        if not found.is_file():
            raise PictureError("this is not a file")
        return found

    def thumbnails(self) -> Any:
        """Return small versions of all pictures as an array of shape (n_rows, 3 * 16 ** 2) from 0 to 1.

        A file that cannot be read is an average picture, with a warning.
        """
        import numpy as np
        from PIL import Image

        side = (THUMB_SIDE, THUMB_SIDE)
        small = np.full((len(self.paths), 3 * THUMB_SIDE**2), np.nan)
        wrong: dict[str, PictureError] = {}
        for row, name in enumerate(self.paths):
            try:
                with Image.open(io.BytesIO(self._encoded(row, 4 * THUMB_SIDE))) as picture:
                    small[row] = np.asarray(picture.convert("RGB").resize(side), dtype=np.float64).ravel() / 255.0
            except PictureError as error:
                wrong[name] = error
        readable = np.isfinite(small[:, 0])
        name, why = next(iter(wrong.items()), ("", None))
        if not readable.any():
            raise InputError(f"no picture of {self.folder.name} can be read: {why}", argument="path", value=self.folder)
        if wrong:
            share = f"{len(wrong):,} of {len(small):,} pictures"
            warn_user(f"{share} cannot be read and count as average ones; {name}: {why}", UserWarning)
        return np.where(readable[:, None], small, small[readable].mean(axis=0))

    def sizes(self) -> list[tuple[int, int] | None]:
        """Return the width and height of each picture, None where it cannot be read."""
        from PIL import Image

        found: list[tuple[int, int] | None] = []
        for row in range(len(self.paths)):
            try:
                with warnings.catch_warnings(action="ignore"), Image.open(self.find(row), formats=FORMATS) as picture:
                    found.append(picture.size)
            except (PictureError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
                found.append(None)
        return found

    def cropped(self, row: int, size: tuple[int, int]) -> Any:
        """Return the picture of a row as an array of shape (height, width, 3) from 0 to 1, filled and cropped."""
        import numpy as np
        from PIL import Image, ImageOps

        with Image.open(io.BytesIO(self._encoded(row, 4 * max(size)))) as picture:
            fitted = ImageOps.fit(picture.convert("RGB"), size[::-1])
            return np.asarray(fitted, dtype=np.float64) / 255

    def _encoded(self, row: int, side: int = SIDE) -> bytes:
        """Return the picture of a row as PNG, at most `side` pixels wide and high."""
        from PIL import Image, ImageOps, UnidentifiedImageError

        path = self.find(row)
        if path.stat().st_size > MOST_BYTES:
            raise PictureError(f"the file is larger than {MOST_BYTES >> 20} MB")
        try:
            with warnings.catch_warnings(action="ignore"), Image.open(path, formats=FORMATS) as picture:
                width, height = picture.size
                if width * height > MOST_PIXELS:
                    raise PictureError(f"the picture has {width} x {height} pixels, more than can be shown")
                picture.draft("RGB", (side, side))
                upright = ImageOps.exif_transpose(picture)
                upright.thumbnail((side, side))
                plain = upright.convert("RGBA" if "A" in upright.getbands() or upright.mode == "P" else "RGB")
                plain.info.clear()
                result = io.BytesIO()
                plain.save(result, "PNG", compress_level=1)
        except PictureError:
            raise
        except (UnidentifiedImageError, Image.DecompressionBombError):
            raise PictureError("the file is not a picture of a kind that is shown") from None
        except (OSError, ValueError, SyntaxError, EOFError) as error:
            raise PictureError(f"the file is damaged: {str(error)[:100]}") from None
        return result.getvalue()
