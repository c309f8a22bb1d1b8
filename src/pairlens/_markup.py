"""Write HTML that data cannot break: every text is escaped unless it is markup already."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

LONGEST_TEXT = 200
"""Characters of a text from the data that are shown."""
SKETCH = (220, 150)
"""Width and height of a small picture."""
MOST_SKETCHED = 600

# What HTML forbids, lone surrogates (which no file can hold) and signs that turn the direction of what follows.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)
_MINUS = "\N{MINUS SIGN}"
_VOID = {"br", "col", "hr", "img", "input", "link", "meta"}


class Markup(str):
    """Mark a text that is HTML already."""

    __slots__ = ()


def plain(value: Any) -> str:
    """Return any value as text that can be shown: of bounded length, without control characters."""
    text = _UNSHOWABLE.sub("\ufffd", str(value))
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """Return an HTML element; children that are markup stay as they are, None is left out, and all else is escaped.

    ``class_="x"`` and ``data_row=3`` become ``class="x"`` and ``data-row="3"``. True gives the bare name of an
    attribute; None and False leave it out.
    """
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        opening += f" {key}" if value is True else f' {key}="{html.escape(str(value))}"'
    if name in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{joined(*children)}</{name}>")


def joined(*children: Any) -> Markup:
    """Return the children as one piece of markup; escape those that are not markup."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else html.escape(_UNSHOWABLE.sub("\ufffd", str(child)))
            for child in children
            if child is not None
        )
    )


def script_data(value: Any) -> Markup:
    """Return JSON for a script element: nothing in it can close the element or open a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def policy_hash(source: str) -> str:
    """Return the hash by which a Content-Security-Policy allows a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def packed(values: ArrayLike, kind: str) -> str:
    """Encode numbers as base64 of little-endian `kind`, about a third of the size of decimals."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<")).tobytes()).decode()


def number(value: Any, digits: int = 3) -> str:
    """Format a number with `digits` significant digits; only very large and very small ones as powers of ten."""
    value = float(value)
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else f"{_MINUS}∞"
    if value == 0:
        return "0"
    # The power of ten after rounding: 0.09996 with two digits is 0.10.
    size = int(f"{value:.{digits - 1}e}".partition("e")[2])
    plainly = -4 <= size < 7
    text = f"{value:,.{max(0, digits - 1 - size)}f}" if plainly else f"{value:.{digits - 1}e}"
    return text.replace("-", _MINUS)


def sketch(groups: Sequence[tuple[str, ArrayLike]], caption: str) -> Markup:
    """Return a small picture of points in the colour of the text around it, with its caption.

    Each group is a label and points, of shape (n, 2) with all points of the picture or (n,) with those of one line of
    it.
    """
    chosen = [(label, np.asarray(points, dtype=float)) for label, points in groups]
    chosen = [(label, points[:: 1 + len(points) // MOST_SKETCHED]) for label, points in chosen if len(points)]
    across = np.concatenate([points if points.ndim == 1 else points[:, 0] for _, points in chosen])
    left, width = float(across.min()), float(np.ptp(across)) or 1.0
    parts = []
    for k, (label, points) in enumerate(chosen):
        low = SKETCH[1] * (k + 0.5) / len(chosen)
        down = np.full(len(points), low)
        if points.ndim == 2:
            height = float(np.ptp(points[:, 1])) or 1.0
            down = 4 + (SKETCH[1] - 8) * (points[:, 1].max() - points[:, 1]) / height
        x = 4 + (SKETCH[0] - 8) * ((points if points.ndim == 1 else points[:, 0]) - left) / width
        parts += [tag("circle", cx=f"{a:.1f}", cy=f"{b:.1f}", r=1.6, opacity=0.45) for a, b in zip(x, down)]
        parts.append(tag("text", label, x=4, y=f"{low - 7:.0f}", font_size=10) if label else Markup(""))
    size = dict(zip(("width", "height"), SKETCH))
    box = f"0 0 {SKETCH[0]} {SKETCH[1]}"
    picture = tag("svg", *parts, viewBox=box, fill="currentColor", role="img", aria_label=caption, **size)
    return tag("figure", picture, tag("figcaption", caption), style="margin:0.5em 0;font-size:0.9em")
