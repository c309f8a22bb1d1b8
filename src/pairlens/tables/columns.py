r"""Encode one column: fitted to a pandas Series, an encoding turns others like it into a block of features.

A block is centred and has a total variance among the rows of fit that its weight and the number of its equally strong
features decide. Encodings hold numbers, words and arrays only, so that model files can store them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import evenly_spaced
from pairlens.exceptions import InputError
from pairlens.tables.cells import has_decimal_comma, read_dates, read_numbers, read_words
from pairlens.tables.roles import MAX_CATEGORIES, Role

Block = NDArray[np.float64]

MANY_MISSING = 0.05
"""Share of missing numbers from which an indicator says where they are."""
LARGEST = 1e150
"""Values whose squares, summed over a table, stay within the range of float64."""
OTHER = "(other)"
ABSENT = "(missing)"
TEXT_ROWS = 20_000
"""Rows, evenly spaced, from which the vocabulary and the directions of a text are learned."""
TEXT_DIRECTIONS = 100
"""Most directions of a text unless told otherwise."""
FEWEST_TEXT_DIRECTIONS, ROWS_OF_A_DIRECTION = 20, 10
"""With few rows, a text has one direction for every ten rows, but at least 20."""
TEXT_VOCABULARY = 5_000
ANALYZERS: dict[Role, dict[str, Any]] = {
    Role.short_text: {"analyzer": "char_wb", "ngram_range": (2, 4), "sublinear_tf": True},
    Role.long_text: {"analyzer": "word", "ngram_range": (1, 1), "sublinear_tf": True},
}
DAY = 86_400.0
CYCLES = {"year": 365.2425 * DAY, "week": 7 * DAY, "day": DAY}
"""Lengths of what repeats, in seconds."""


@dataclass(frozen=True)
class ColumnBlock:
    """Hold a column with its encoding, centred and scaled to its weight: the block is (raw - mean) * scale."""

    name: str
    encoding: Encoding
    mean: Block
    scale: float

    @classmethod
    def fit(
        cls,
        column: Any,
        name: str,
        role: Role,
        weight: float,
        max_categories: int,
        balance: float = 0.0,
        text_components: int = TEXT_DIRECTIONS,
        standardize: bool = True,
        model: str | None = None,
    ) -> Self | None:
        """Learn the encoding of a column; None if all its cells are encoded alike.

        Where a `model` has embedded the column, `column` is the array of its vectors.

        The total variance of the block becomes ``weight * r**balance`` for r features of equal strength. Numbers that
        are not to be standardised keep their values, multiplied by the root of the weight.
        """
        learned_from = column
        encoding: Encoding
        if model is not None:
            encoding = EmbeddedColumn.fit(column, model)
        elif role in ANALYZERS:
            if len(column) > TEXT_ROWS:
                learned_from = column.iloc[evenly_spaced(len(column), TEXT_ROWS)]
            encoding = TextColumn.fit(learned_from, role, text_components)
        elif role is Role.date:
            encoding = DateColumn.fit(column)
        elif role is Role.number or (role is Role.boolean and np.isfinite(read_numbers(column)).any()):
            encoding = NumberColumn.fit(column, standardize)
        else:
            encoding = CategoryColumn.fit(column, max_categories)
        raw = encoding.raw(learned_from)
        if isinstance(encoding, NumberColumn) and not standardize:
            return (
                cls(name, encoding, np.zeros(raw.shape[1]), float(np.sqrt(weight))) if (raw != raw[0]).any() else None
            )
        mean = raw.mean(axis=0)
        # A second pass: far from zero the first mean carries an error that would show in the variance.
        mean += (raw - mean).mean(axis=0)
        centred = raw - mean
        scatter = centred.T @ centred / len(centred)
        total = float(np.trace(scatter))
        if not total > 0:
            return None
        strength = (total / float(np.linalg.norm(scatter))) ** 2
        return cls(name, encoding, mean, float(np.sqrt(weight * strength**balance / total)))

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return self.encoding.names(self.name)

    def encode(self, column: Any, *, centred: bool = True) -> Block:
        """Return the block of a column, of shape (n_rows, n_features)."""
        raw = self.encoding.raw(column)
        return (raw - self.mean if centred else raw) * self.scale


@dataclass(frozen=True)
class NumberColumn:
    """Encode a number in units of its standard deviation; missing cells get the median, and an indicator if common."""

    median: float
    mean: float
    deviation: float
    indicator: bool
    decimal_comma: bool

    @classmethod
    def fit(cls, column: Any, standardize: bool = True) -> Self:
        """Learn from the cells of a column; mean 0 and deviation 1 if it is not to be standardised."""
        decimal_comma = has_decimal_comma(column)
        values = _checked(read_numbers(column, decimal_comma), column)
        missing = np.isnan(values)
        median = float(np.median(values[~missing])) if not missing.all() else 0.0
        values[missing] = median
        mean = float(values.mean()) if standardize else 0.0
        deviation = float(np.sqrt(np.mean((values - mean) ** 2))) if standardize else 1.0
        return cls(median, mean, deviation or 1.0, bool(missing.mean() >= MANY_MISSING), decimal_comma)

    def names(self, name: str) -> list[str]:
        """Return the column's own name, and one for the indicator."""
        return [name, f"{name}={ABSENT}"] if self.indicator else [name]

    def raw(self, column: Any) -> Block:
        """Return the standardised number, and the indicator."""
        values = _checked(read_numbers(column, self.decimal_comma), column)
        missing = np.isnan(values)
        values[missing] = self.median
        number = (values - self.mean) / self.deviation
        return np.column_stack([number, missing]) if self.indicator else number[:, None]


def _checked(values: NDArray[np.float64], column: Any) -> NDArray[np.float64]:
    """Return a copy of the numbers; InputError if some are infinite or their squares would be."""
    wrong = np.abs(values) > LARGEST
    if wrong.any():
        row = int(wrong.argmax())
        what = "infinity" if np.isinf(values[row]) else f"{values[row]:.3g}, whose square leaves the range of numbers,"
        raise InputError(
            f"the column {column.name!r} holds {what} in row {column.index[row]}",
            value=float(values[row]),
            remedy="Replace it, for example by a missing cell, or leave the column out",
        )
    return values.copy()


@dataclass(frozen=True)
class CategoryColumn:
    r"""Encode words: feature k is :math:`1[\text{word } k] / \sqrt{p_k}` for the share :math:`p_k` of the rows.

    These are the weights of factor analysis of mixed data: rows with different words are far apart if the words are
    rare. A word that was not seen in fit, and is not pooled, lies at the mean. Two words make one feature, at the same
    distances.

    Attributes
    ----------
    words : tuple of str
        The words that have a feature of their own, most frequent first.
    pooled, missing : bool
        Whether all other words, and missing cells, have a feature each, after those of the words.
    share : array of shape (n_categories,)
    """

    words: tuple[str, ...]
    pooled: bool
    missing: bool
    share: Block

    @classmethod
    def fit(cls, column: Any, max_categories: int = MAX_CATEGORIES) -> Self:
        """Count the words of a column; beyond `max_categories` the rarest are pooled."""
        import pandas

        cells = pandas.Series(read_words(column), dtype=object)
        counts = cells.value_counts(sort=False)
        # By frequency, then by the alphabet, so that the order of the rows does not matter.
        order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        n_missing = int(cells.isna().sum())
        room = max_categories - (n_missing > 0)
        pooled = len(order) > room
        kept, rest = (order[: room - 1], order[room - 1 :]) if pooled else (order, [])
        numbers = (
            [count for _, count in kept] + [sum(count for _, count in rest)] * pooled + [n_missing] * (n_missing > 0)
        )
        share = np.array(numbers, dtype=np.float64) / len(cells)
        return cls(tuple(word for word, _ in kept), pooled, n_missing > 0, share)

    def names(self, name: str) -> list[str]:
        """Return ``column=word``; for two words only that of the second."""
        levels = [*self.words, *[OTHER] * self.pooled, *[ABSENT] * self.missing]
        return [f"{name}={level}" for level in (levels[1:] if len(levels) == 2 else levels)]

    def raw(self, column: Any) -> Block:
        """Return the weighted indicators."""
        import pandas

        cells = read_words(column)
        codes = pandas.Index(list(self.words), dtype=object).get_indexer(cells)
        absent = np.array(pandas.isna(cells), dtype=bool)
        n_words = len(self.words)
        if self.pooled:
            codes[(codes < 0) & ~absent] = n_words
        if self.missing:
            codes[absent] = n_words + self.pooled
        size = len(self.share)
        root = np.sqrt(self.share)
        block = np.zeros((len(cells), size))
        known = codes >= 0
        block[known.nonzero()[0], codes[known]] = 1 / root[codes[known]]
        block[~known] = root
        # Of two indicators, one says all; divided by the other's root share it keeps their distances.
        return block[:, 1:] / root[0] if size == 2 else block


@dataclass(frozen=True)
class DateColumn:
    """Encode a date: time as a number, and the parts that repeat (year, week, day) as points on circles.

    A circle is used where the dates of fit cover it: the year if they span at least one, the week if they fall on
    several weekdays and span at least one week, the day if they have times. Missing dates lie at the `centre`, the mean
    of the features.
    """

    day_first: bool
    mean: float
    deviation: float
    cycles: tuple[str, ...]
    centre: Block

    @classmethod
    def fit(cls, column: Any) -> Self:
        """Learn from the dates of a column."""
        dates = read_dates(column)
        seconds = dates.values[~np.isnat(dates.values)].astype(np.float64)
        if len(seconds) == 0:
            return cls(dates.day_first, 0.0, 1.0, (), np.zeros(1))
        mean, deviation = float(seconds.mean()), float(seconds.std())
        span = float(np.ptp(seconds))
        uses = {
            "year": span >= CYCLES["year"],
            "week": span >= CYCLES["week"] and len(np.unique(seconds // DAY % 7)) > 1,
            "day": dates.has_time,
        }
        cycles = tuple(cycle for cycle in CYCLES if uses[cycle])
        bare = cls(dates.day_first, mean, deviation or 1.0, cycles, np.zeros(1 + 2 * len(cycles)))
        return cls(dates.day_first, mean, deviation or 1.0, cycles, bare._features(seconds).mean(axis=0))

    def names(self, name: str) -> list[str]:
        """Return the column's own name for time, and sine and cosine of each circle."""
        return [name, *(f"{name}:{part} of {cycle}" for cycle in self.cycles for part in ("sine", "cosine"))]

    def raw(self, column: Any) -> Block:
        """Return time and the circles."""
        values = read_dates(column, self.day_first).values
        missing = np.isnat(values)
        block = self._features(np.where(missing, 0, values.astype(np.int64)).astype(np.float64))
        block[missing] = self.centre
        return block

    def _features(self, seconds: NDArray[np.float64]) -> Block:
        parts = [(seconds - self.mean) / self.deviation]
        for cycle in self.cycles:
            angle = 2 * np.pi * (seconds % CYCLES[cycle]) / CYCLES[cycle]
            parts += [np.sin(angle), np.cos(angle)]
        return np.column_stack(parts)


@dataclass(frozen=True)
class TextColumn:
    """Encode a text by its leading directions in TF-IDF space: of characters if it is short, else of words.

    Counts are damped to 1 + log(count), and the coordinates of every text have length 1, so that distances do not
    depend on how long a text is.
    """

    role: str
    vocabulary: tuple[str, ...]
    idf: Block
    directions: Block

    @classmethod
    def fit(cls, column: Any, role: Role, most: int = TEXT_DIRECTIONS) -> Self:
        """Learn vocabulary and at most so many directions from the texts of a column."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = _texts(column)
        vectorizer = TfidfVectorizer(
            **ANALYZERS[role], max_features=TEXT_VOCABULARY, min_df=2 if len(texts) > 50 else 1
        )
        try:
            weights = vectorizer.fit_transform(texts)
        except ValueError:
            # No term at all, such as words of one letter only: nothing can be learned from the text.
            return cls(role.value, (), np.zeros(0), np.zeros((1, 0)))
        borne = max(FEWEST_TEXT_DIRECTIONS, len(texts) // ROWS_OF_A_DIRECTION)
        count = min(most, borne, min(weights.shape) - 1)
        if count < 1:
            directions = np.ones((1, weights.shape[1]))
        else:
            directions = TruncatedSVD(count, random_state=0).fit(weights).components_
        return cls(role.value, tuple(vectorizer.get_feature_names_out().tolist()), vectorizer.idf_, directions)

    def names(self, name: str) -> list[str]:
        """Return ``column~0``, ``column~1``, ..."""
        return [f"{name}~{j}" for j in range(len(self.directions))]

    def raw(self, column: Any) -> Block:
        """Return the coordinates of the texts, of length 1; a text without any known term is at the origin."""
        import pandas
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.preprocessing import normalize

        if not self.vocabulary:
            return np.zeros((len(column), 1))
        # Equal texts are encoded once.
        codes, distinct = pandas.factorize(np.array(_texts(column), dtype=object))
        vectorizer = TfidfVectorizer(**ANALYZERS[Role(self.role)], vocabulary=list(self.vocabulary))
        vectorizer.idf_ = self.idf
        return np.asarray(normalize(vectorizer.transform(distinct) @ self.directions.T))[codes]


@dataclass(frozen=True)
class EmbeddedColumn:
    """Take the vectors that a model has made of texts or pictures; missing cells lie at their mean."""

    model: str
    centre: Block

    @classmethod
    def fit(cls, vectors: Block, model: str) -> Self:
        """Learn the mean of the vectors; those of missing cells are NaN."""
        return cls(model, np.nanmean(vectors, axis=0))

    def names(self, name: str) -> list[str]:
        """Return ``column~0``, ``column~1``, ..."""
        return [f"{name}~{j}" for j in range(len(self.centre))]

    def raw(self, column: Any) -> Block:
        """Return the vectors, with the mean for missing cells."""
        if column.shape[1] != len(self.centre):
            raise InputError(
                f"the vectors have {column.shape[1]} numbers, and those of fit had {len(self.centre)}", argument="embed"
            )
        return np.where(np.isnan(column), self.centre, column)


Encoding = NumberColumn | CategoryColumn | DateColumn | TextColumn | EmbeddedColumn
"""What turns a column into features (`raw`) that have `names`, not yet centred and weighted."""


def _texts(column: Any) -> list[str]:
    return ["" if word is None else word for word in read_words(column).tolist()]
