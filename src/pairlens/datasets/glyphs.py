"""Pictures of letters, which are alike by letter, weight, slant or serifs."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from pairlens._optional import require
from pairlens._sklearn import as_generator

FONTS = {
    # File in Matplotlib's folder of fonts: bold, italic, serif. The styles of these four families are balanced.
    "DejaVuSans": (0, 0, 0),
    "DejaVuSans-Oblique": (0, 1, 0),
    "DejaVuSans-Bold": (1, 0, 0),
    "DejaVuSans-BoldOblique": (1, 1, 0),
    "DejaVuSansMono": (0, 0, 0),
    "DejaVuSansMono-Oblique": (0, 1, 0),
    "DejaVuSansMono-Bold": (1, 0, 0),
    "DejaVuSansMono-BoldOblique": (1, 1, 0),
    "DejaVuSerif": (0, 0, 1),
    "DejaVuSerif-Italic": (0, 1, 1),
    "DejaVuSerif-Bold": (1, 0, 1),
    "DejaVuSerif-BoldItalic": (1, 1, 1),
    "STIXGeneral": (0, 0, 1),
    "STIXGeneralItalic": (0, 1, 1),
    "STIXGeneralBol": (1, 0, 1),
    "STIXGeneralBolIta": (1, 1, 1),
}
HEIGHT = 0.56
"""Height of a capital letter in parts of the picture; at that size the widest one, M in bold italics, fits."""
SHIFT, ANGLE, SIZE = 0.02, 2.0, 0.03
"""Standard deviations at jitter 1: shifts in parts of the picture, rotations in degrees, relative sizes."""
DESCRIPTION = """\
Pictures of the letters {letters}, {copies} of each in each of {fonts} fonts, drawn {side} x {side} in grey from 0 \
(paper) to 1 (ink).

Rows are alike by letter, which is what the pixels show most clearly, by weight (bold), by slant (italic) or by serifs \
(serif). Each notion is balanced within each other one. The fonts are those that Matplotlib ships: {names}."""


def make_glyphs(
    n_per_glyph: int = 2,
    *,
    letters: str = string.ascii_uppercase,
    side: int = 24,
    jitter: float = 1.0,
    random_state: Any = None,
    return_X_y: bool = False,
) -> Any:
    """Draw letters in 16 fonts: one table with four notions of which rows are the same.

    Two pictures may show the same letter, or be both bold, both italic, or both with serifs. The letter is the
    dominant structure of the pixels. A view that follows answers should be able to show the other three.

    Parameters
    ----------
    n_per_glyph : int, default=2
        Pictures of each letter in each font, which differ by the jitter.
    letters : str, default="ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        The letters to draw, distinct ones of A to Z, a to z and 0 to 9.
    side : int, default=24
        Pixels of a row and of a column, at least 8.
    jitter : float, default=1.0
        How much the pictures of a letter in a font differ: at 1, by shifts with a standard deviation of 2 % of the
        picture, rotations of 2 degrees and sizes of 3 %. 0 gives equal pictures.
    random_state : int, RandomState, Generator or None, default=None
        Makes the jitter and the order of the rows repeatable.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    glyphs : Bunch
        ``data`` of shape (n_per_glyph * 16 * len(letters), side * side), grey from 0 to 1; ``images``, the same as
        pictures; ``target`` (also ``letter``), the letter by its place in ``target_names``; ``bold``, ``italic`` and
        ``serif``, each 0 or 1; ``font``, the place in ``font_names``; ``target_names``; ``font_names``;
        ``feature_names``; and ``DESCR``.

    See Also
    --------
    load_penguins : A table of measurements with several notions.

    Notes
    -----
    The fonts are those that Matplotlib ships, so this needs Matplotlib. The same seed gives the same pictures; those of
    another release of Matplotlib may differ a little.

    Examples
    --------
    >>> from pairlens.datasets import make_glyphs
    >>> glyphs = make_glyphs(letters="ABC", random_state=0)
    >>> glyphs.data.shape, glyphs.bold[:6].tolist()
    ((96, 576), [0, 0, 0, 0, 0, 1])
    """
    known = set(string.ascii_letters + string.digits)
    if not letters or len(set(letters)) < len(letters) or not known.issuperset(letters):
        raise ValueError(
            f"letters={letters!r} must be distinct letters of A to Z, a to z and 0 to 9, and at least one."
        )
    if n_per_glyph < 1:
        raise ValueError(f"n_per_glyph={n_per_glyph} must be at least 1.")
    if side < 8:
        raise ValueError(f"side={side} must be at least 8.")
    if not jitter >= 0:
        raise ValueError(f"jitter={jitter} must not be negative.")
    rng = as_generator(random_state)
    letter, font = (part.ravel() for part in np.indices((len(letters), len(FONTS) * n_per_glyph)))
    font %= len(FONTS)
    order = rng.permutation(len(letter))
    letter, font = letter[order], font[order]
    images = _draw(letters, letter, font, side, jitter * rng.standard_normal((len(order), 4)))
    data = images.reshape(len(images), -1)
    if return_X_y:
        return data, letter
    styles = np.array(list(FONTS.values()))[font]
    names = list(FONTS)
    return Bunch(
        data=data,
        images=images,
        target=letter,
        letter=letter,
        **dict(zip(("bold", "italic", "serif"), styles.T.copy())),
        font=font,
        target_names=list(letters),
        font_names=names,
        feature_names=[f"pixel_{row}_{column}" for row in range(side) for column in range(side)],
        DESCR=DESCRIPTION.format(
            letters=letters, copies=n_per_glyph, fonts=len(FONTS), side=side, names=", ".join(names)
        ),
    )


def _draw(
    letters: str, letter: NDArray[np.int64], font: NDArray[np.int64], side: int, moves: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Draw one picture for each letter and font; the moves are shifts (two), a rotation and a size."""
    matplotlib = require("matplotlib", extra="report", purpose="drawing letters")
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    properties = [FontProperties(fname=str(folder / f"{name}.ttf")) for name in FONTS]
    # Fonts of one nominal size differ in the height of their capitals, which would tell them apart.
    capital = [TextPath((0, 0), "H", size=100, prop=one).get_extents().height for one in properties]
    outline = {(i, j): TextPath((0, 0), letters[i], size=100, prop=properties[j]) for i, j in set(zip(letter, font))}
    renderer = RendererAgg(side, side, 72)
    pen = renderer.new_gc()
    pen.set_linewidth(0)
    images = np.empty((len(letter), side, side))
    for image, i, j, (right, up, turn, growth) in zip(images, letter, font, moves):
        path = outline[i, j]
        box = path.get_extents()
        place = (
            Affine2D()
            .translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2)
            .scale(HEIGHT * side / capital[j] * np.exp(SIZE * growth))
            .rotate_deg(ANGLE * turn)
            .translate(side * (0.5 + SHIFT * right), side * (0.5 + SHIFT * up))
        )
        renderer.clear()
        renderer.draw_path(pen, path, place, (0.0, 0.0, 0.0, 1.0))
        image[:] = np.asarray(renderer.buffer_rgba())[..., 3] / 255
    return images
