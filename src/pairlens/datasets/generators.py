"""Draw data for which the right answer is known: blobs of subclasses, and pictures of letters."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from pairlens._optional import require
from pairlens._sklearn import as_generator
from pairlens.exceptions import ArgumentError
from pairlens.supervision import Constraints

CLASSES = ((0.0, 4.0), (2.0, 6.0))
"""Where the blobs of each class lie along the first axis."""
KINDS = ("inter", "intra", "mixed")
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


def make_subclass_blobs(
    n_per_blob: int = 50,
    *,
    kind: Literal["inter", "intra", "mixed"] = "inter",
    n_must_link: int = 40,
    n_cannot_link: int = 40,
    std: float = 0.35,
    sy: float = 1.5,
    random_state: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64], Constraints]:
    """Generate two classes of two blobs each, which alternate along a line, and pairs that may mislead.

    The first feature tells the classes apart: blobs of class 0 are at 0 and 4, those of class 1 at 2 and 6. The second
    is noise. A must-link between the two blobs of a class is true, yet says nothing about which rows should be near.

    Parameters
    ----------
    n_per_blob : int, default=50
        Rows in each of the four blobs.
    kind : {"inter", "intra", "mixed"}, default="inter"
        Must-links between the blobs of a class, inside a blob, or of both sorts.
    n_must_link, n_cannot_link : int, default=40
        Pairs to draw.
    std : float, default=0.35
        Standard deviation of a blob along the first feature.
    sy : float, default=1.5
        Standard deviation of the second feature.
    random_state : int, Generator, RandomState or None, default=None
        Makes the draw repeatable. An integer seeds :func:`numpy.random.default_rng`.

    Returns
    -------
    X : array of shape (4 * n_per_blob, 2)
        The rows, blob after blob.
    y : int array of shape (4 * n_per_blob,)
        Their classes, 0 or 1.
    constraints : Constraints
        Pairs drawn among them.

    References
    ----------
    .. [1] B. Tong, E. Suzuki, "Subclass-oriented dimension reduction with constraint transformation and manifold
       regularization", PAKDD 2010, Fig. 1.

    Examples
    --------
    >>> from pairlens.datasets import make_subclass_blobs
    >>> X, y, pairs = make_subclass_blobs(random_state=0)
    >>> X.shape, pairs
    ((200, 2), Constraints(40 must-links, 40 cannot-links over 200 rows))
    """
    if kind not in KINDS:
        raise ArgumentError("kind", kind, f"must be one of {', '.join(map(repr, KINDS))}")
    if n_per_blob < 1:
        raise ArgumentError("n_per_blob", n_per_blob, "must be at least 1")
    rng = _generator(random_state)
    blobs = [
        np.column_stack([rng.normal(centre, std, n_per_blob), rng.normal(0.0, sy, n_per_blob)])
        for centres in CLASSES
        for centre in centres
    ]
    blob = np.repeat(np.arange(len(blobs)), n_per_blob)
    y = blob // len(CLASSES[0])
    first, second = np.triu_indices(len(y), 1)
    same_class, same_blob = y[first] == y[second], blob[first] == blob[second]
    allowed = {"inter": same_class & ~same_blob, "intra": same_blob, "mixed": same_class}[kind]
    must = _draw(rng, allowed, n_must_link, name="n_must_link", what=f"must-links of kind {kind!r}")
    cannot = _draw(rng, ~same_class, n_cannot_link, name="n_cannot_link", what="cannot-links")
    pairs = np.column_stack([first, second])
    return np.concatenate(blobs), y, Constraints(pairs[must], pairs[cannot], len(y))


def _draw(
    rng: np.random.Generator, allowed: NDArray[np.bool_], count: int, *, name: str, what: str
) -> NDArray[np.int64]:
    """Draw the positions of a number of allowed pairs."""
    candidates = np.flatnonzero(allowed)
    if not 0 <= count <= len(candidates):
        raise ArgumentError(name, count, f"must lie between 0 and {len(candidates)}, the number of possible {what}")
    return rng.choice(candidates, count, replace=False)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


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
        raise ArgumentError("letters", letters, "must be distinct letters of A to Z, a to z and 0 to 9, at least one")
    if n_per_glyph < 1:
        raise ArgumentError("n_per_glyph", n_per_glyph, "must be at least 1")
    if side < 8:
        raise ArgumentError("side", side, "must be at least 8")
    if not jitter >= 0:
        raise ArgumentError("jitter", jitter, "must not be negative")
    rng = as_generator(random_state)
    letter, font = (part.ravel() for part in np.indices((len(letters), len(FONTS) * n_per_glyph)))
    font %= len(FONTS)
    order = rng.permutation(len(letter))
    letter, font = letter[order], font[order]
    images = _drawn(letters, letter, font, side, jitter * rng.standard_normal((len(order), 4)))
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


def _drawn(
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
