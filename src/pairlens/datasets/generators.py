"""Data drawn at random, for which the right answer is known."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairlens.supervision import Constraints

CLASSES = ((0.0, 4.0), (2.0, 6.0))
"""Where the blobs of each class lie along the first axis."""
KINDS = ("inter", "intra", "mixed")


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
    """Two classes of two blobs each, which lie in turns along a line, and pairs that may mislead.

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
        raise ValueError(f"kind={kind!r} must be one of {', '.join(map(repr, KINDS))}.")
    if n_per_blob < 1:
        raise ValueError(f"n_per_blob={n_per_blob} must be at least 1.")
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
    """Positions of a number of allowed pairs."""
    candidates = np.flatnonzero(allowed)
    if not 0 <= count <= len(candidates):
        raise ValueError(f"{name}={count} must lie between 0 and {len(candidates)}, the number of possible {what}.")
    return rng.choice(candidates, count, replace=False)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)
