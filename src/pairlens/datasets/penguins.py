"""Load the Palmer penguins: one table with numbers, words and missing cells, and more than one way to say "same"."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from pairlens._optional import require

MEASUREMENTS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
MISSING = "NA"
DESCRIPTION = """\
The Palmer penguins: 344 penguins of three species, observed on three islands of the Palmer Archipelago, Antarctica, \
from 2007 to 2009.

Rows can be told apart by species (Adelie, Chinstrap, Gentoo), which is what the four measurements show most clearly, \
by sex, or by island. Two rows have no measurements, and eleven no sex.

Source: Gorman, Williams and Fraser (2014); the table is that of the package palmerpenguins (Horst, Hill and Gorman, \
2020), CC0. Nothing is scaled or filled in; a missing number is NaN, a missing word None."""


def load_penguins(*, as_frame: bool = False, return_X_y: bool = False) -> Any:
    """Load the Palmer penguins, a table with several notions of which rows are the same.

    The four measurements show the species (three groups). Within a species they show the sex. Islands, years and the
    sex are words and numbers beside them, which makes the whole table one of mixed columns.

    Parameters
    ----------
    as_frame : bool, default=False
        Return DataFrames and Series instead of arrays, and the whole table as ``frame``. Needs pandas.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    penguins : Bunch
        ``data`` of shape (344, 4), the measurements, with NaN where a penguin was not measured; ``target``, the species
        as 0, 1 and 2; ``target_names``; ``feature_names``; the other columns by their names (``species``, ``island``,
        ``sex``, ``year``), words being objects with None where the sex is not known; ``frame``, the whole table if
        ``as_frame`` is true and None otherwise; ``DESCR``; and ``filename``, the CSV file.

    See Also
    --------
    make_glyphs : Pictures of letters with four notions.

    References
    ----------
    .. [1] K. B. Gorman, T. D. Williams, W. R. Fraser, "Ecological sexual dimorphism and environmental variability
       within a community of Antarctic penguins (genus Pygoscelis)", PLoS ONE 9(3), 2014.

    Examples
    --------
    >>> from pairlens import Constraints
    >>> from pairlens.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> penguins.data.shape, penguins.target_names
    ((344, 4), ['Adelie', 'Chinstrap', 'Gentoo'])
    >>> Constraints.from_labels(penguins.sex, n_pairs=60, random_state=0).n_pairs
    60
    """
    path = files("pairlens.datasets").joinpath("csv", "penguins.csv")
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    words = {
        name: np.array([None if row[name] == MISSING else row[name] for row in rows], dtype=object)
        for name in ("species", "island", "sex")
    }
    year = np.array([int(row["year"]) for row in rows])
    data: Any = np.array(
        [[np.nan if row[name] == MISSING else float(row[name]) for name in MEASUREMENTS] for row in rows]
    )
    names, codes = np.unique(words["species"].astype(str), return_inverse=True)
    target: Any = codes.astype(np.int64)
    frame = None
    if as_frame:
        pandas = require("pandas", extra="io", purpose="loading a data set as a DataFrame")
        columns = {**words, **dict(zip(MEASUREMENTS, data.T)), "year": year}
        frame = pandas.DataFrame({name: columns[name] for name in rows[0]})
        data, target = frame[list(MEASUREMENTS)], pandas.Series(target, name="target")
        words, year = {name: frame[name] for name in words}, frame["year"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        target_names=names.tolist(),
        feature_names=list(MEASUREMENTS),
        **words,
        year=year,
        DESCR=DESCRIPTION,
        filename=str(path),
    )
