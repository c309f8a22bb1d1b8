"""Find the islands of a view, and the words that tell the texts of one from those of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

WORD = r"(?u)\b[^\W\d_][\w'-]{2,}"
"""Words begin with a letter and have at least three characters, none of which is markup."""
MOST_TEXTS = 3_000
"""Texts, evenly spaced, from which words are counted and islands are found."""
MOST_WORDS = 5_000
FEW_TEXTS, RARE = 20, 300
"""A word is known if it is in two texts and in one of 300; of fewer than 20 texts, all words are."""
FEWEST_ROWS, SHARE_OF_ROWS, LARGEST = 5, 60, 0.4
"""The smallest island: five rows, and one of 60. The largest share of the rows; a larger one is taken apart."""
MOST_ISLANDS = 12
STEM = 4
"""Letters at the beginning of two words that make them forms of one."""


@dataclass(frozen=True)
class Island:
    """Hold an island of a view: where its middle is, and the words that tell it from the rest."""

    x: float
    y: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class TextIndex:
    """Hold which words the texts of a table have: for each of the counted `rows` and of the words, 1 if it has it.

    Examples
    --------
    >>> index = TextIndex.of(["a red rose", "a red tulip", "an old car", "a new car"])
    >>> index.telling(np.array([0, 0, 1, 1]))
    {0: ('red', 'rose'), 1: ('car', 'new')}
    """

    rows: NDArray[np.int64]
    words: tuple[str, ...]
    has: Any

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """Count the words of one text for each row, leaving out common English ones such as "with"."""
        from sklearn.feature_extraction.text import CountVectorizer

        rows = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), MOST_TEXTS)).round().astype(np.int64))
        least = 1 if len(rows) < FEW_TEXTS else max(2, len(rows) // RARE)
        counter = CountVectorizer(
            binary=True, token_pattern=WORD, min_df=least, max_features=MOST_WORDS, stop_words="english"
        )
        try:
            has = counter.fit_transform([texts[row] for row in rows])
        except ValueError:  # no text has a word that others have
            return cls(rows, (), sparse.csr_matrix((len(rows), 0)))
        return cls(rows, tuple(counter.get_feature_names_out().tolist()), has)

    def telling(self, groups: NDArray[Any], most: int = 2) -> dict[int, tuple[str, ...]]:
        """Return the words that tell each group of the counted texts from the others, -1 being texts of no group.

        A word counts p log(p / q), where p is the share of the texts of a group that have it, and q that of the others.
        """
        everywhere = np.asarray(self.has.sum(axis=0)).ravel()
        result = {}
        for group in np.unique(groups[groups >= 0]).tolist():
            chosen = groups == group
            inside = np.asarray(self.has[chosen].sum(axis=0)).ravel()
            p = (inside + 0.5) / (chosen.sum() + 1)
            q = (everywhere - inside + 0.5) / ((~chosen).sum() + 1)
            value = np.round(p * np.log(p / q), 9)
            order = np.argsort(-value, kind="stable")
            result[group] = tuple(_distinct((self.words[at] for at in order if value[at] > 0), most))
        return result

    def islands(self, Z: NDArray[np.float64], most: int = 2) -> list[Island]:
        """Return the largest islands of a view in two directions, by density, with their words; none if all is one."""
        from sklearn.cluster import HDBSCAN

        places = np.asarray(Z, dtype=np.float64)[self.rows, :2]
        smallest = max(FEWEST_ROWS, len(places) // SHARE_OF_ROWS)
        if len(places) < 2 * smallest or not self.words:
            return []
        found = (
            HDBSCAN(min_cluster_size=smallest, max_cluster_size=int(LARGEST * len(places)), copy=True)
            .fit(places)
            .labels_
        )
        words = self.telling(found, most)
        largest = sorted(words, key=lambda island: (-int((found == island).sum()), island))[:MOST_ISLANDS]
        middles = {island: np.median(places[found == island], axis=0) for island in largest}
        return [Island(float(x), float(y), words[island]) for island, (x, y) in middles.items() if words[island]]


def _distinct(words: Iterable[str], most: int) -> list[str]:
    """Return the first few of these words, and of several forms of a word one."""
    found: list[str] = []
    for word in words:
        if all(word[: max(STEM, len(other) - 3)] != other[: max(STEM, len(other) - 3)] for other in found):
            found.append(word)
        if len(found) == most:
            break
    return found
