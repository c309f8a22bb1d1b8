"""JSON of files that nobody vouches for."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

MAX_DEPTH = 200
"""Nesting of brackets in JSON beyond which it is an attempt to exhaust the stack."""
MAX_BRACKETS = 1 << 18
"""Lists and objects in JSON: each takes up to 300 bytes of memory, of which a file writes as few as 3."""


def bounded_json(text: bytes, most: int) -> Any:
    """Return the value of JSON text that takes little more memory than its own size; ValueError for other text.

    Parameters
    ----------
    text : bytes
    most : int
        Most bytes.
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
