"""Tables with words, numbers, dates and missing cells, in their raw form, each with the classes of its rows.

Real ones come from PAIRLENS_DATA, where codes of nominal columns are turned back into words, and from pairlens itself.
The others are generated with a known answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pairlens.datasets import load_penguins
from reproduction import datasets

__all__ = ["mixed_sets"]

Table = tuple[pd.DataFrame, NDArray[np.int64]]

HEART_WORDS = (1, 2, 5, 6, 8, 12)
"""Nominal columns of the Statlog heart data: sex, chest pain, blood sugar, ECG, angina, thal."""
HEPATITIS_NUMBERS = ("AGE", "BILIRUBIN", "ALK_PHOSPHATE", "SGOT", "ALBUMIN", "PROTIME")


def mixed_sets() -> dict[str, Callable[[], Table]]:
    """Loaders by name."""
    return {
        "heart": lambda: _with_words("heart", lambda j, name: j in HEART_WORDS),
        "hepatitis": lambda: _with_words("hepatitis", lambda j, name: name.upper() not in HEPATITIS_NUMBERS),
        "labor": lambda: _declared("labor"),
        "krvskp": lambda: _declared("krvskp"),
        "kddcup99_subset": _kdd,
        **{f"monks{i}": (lambda i=i: _with_words(f"monks{i}", lambda j, name: True)) for i in (1, 2, 3)},
        "penguins": _penguins,
        "customers": lambda: _customers(0),
        "visits": lambda: _visits(1),
        "products": lambda: _products(2),
        "survey": lambda: _survey(3),
        "machines": lambda: _machines(4),
    }


def _loaded(name: str) -> tuple[NDArray[Any], NDArray[np.int64], list[str], Any]:
    found = datasets.load(name)
    X, y = np.asarray(found.data, dtype=np.float64), np.asarray(found.target, dtype=np.int64)
    return X, y, [str(word) for word in found.feature_names], found


def _words(codes: NDArray[np.float64]) -> list[str | None]:
    return [None if np.isnan(code) else f"code {code:g}" for code in codes]


def _with_words(name: str, is_word: Callable[[int, str], bool]) -> Table:
    X, y, names, _ = _loaded(name)
    return pd.DataFrame({n: _words(X[:, j]) if is_word(j, n) else X[:, j] for j, n in enumerate(names)}), y


def _declared(name: str) -> Table:
    """Columns whose declared values are words, as in the source of the set."""
    X, y, names, found = _loaded(name)
    declared = [str(values) for values in found["category_values"]]
    return pd.DataFrame({n: _words(X[:, j]) if declared[j] else X[:, j] for j, n in enumerate(names)}), y


def _kdd() -> Table:
    X, y, names, found = _loaded("kddcup99_subset")
    table = pd.DataFrame(dict(zip(names, X.T)))
    for column in ("protocol_type", "service", "flag"):
        words = found[f"categories_{column}"]
        table[column] = [str(words[int(code)]) for code in table[column]]
    return table, y


def _penguins() -> Table:
    found = load_penguins(as_frame=True)
    return found.frame.drop(columns="species"), found.target.to_numpy()


# ---------------------------------------------------------------------------------------------------------- generated


def _draw(rng: np.random.Generator, words: list[str], table: list[list[float]], y: NDArray[np.int64]) -> list[str]:
    """Words drawn with the probabilities of each row's class."""
    return [str(rng.choice(words, p=table[group])) for group in y]


def _customers(seed: int) -> Table:
    """Four groups told apart by plan and spending; city and sex say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 500)
    return pd.DataFrame(
        {
            "plan": _draw(
                rng, ["basic", "plus", "pro"], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]], y
            ),
            "spending": np.array([20.0, 60.0, 200.0, 300.0])[y] * rng.lognormal(0, 0.4, 500),
            "visits": rng.poisson(np.array([2.0, 4.0, 4.0, 12.0])[y]),
            "city": rng.choice([f"city {i}" for i in range(15)], 500),
            "sex": rng.choice(["f", "m", None], 500, p=[0.48, 0.48, 0.04]),
            "joined": pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 2000, 500), unit="D"),
            "age": np.where(rng.random(500) < 0.1, np.nan, rng.normal(40, 12, 500)),
        }
    ), y


def _visits(seed: int) -> Table:
    """Three groups told apart by the hour, the weekday and the ward; ids and doctors say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 450)
    hour = np.array([9, 15, 2])[y] + rng.normal(0, 1.5, 450)
    day = rng.integers(0, 52, 450) * 7 + np.array([1, 3, 5])[y] + rng.integers(0, 2, 450)
    when = pd.Timestamp("2021-01-04") + pd.to_timedelta(day * 24 + hour, unit="h")
    return pd.DataFrame(
        {
            "visit_id": np.arange(450),
            "when": when.strftime("%d.%m.%Y %H:%M"),
            "ward": _draw(
                rng, ["A", "B", "C", "D"], [[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]], y
            ),
            "doctor": rng.choice([f"Dr. {i}" for i in range(25)], 450),
            "pulse": rng.normal(np.array([70.0, 80.0, 95.0])[y], 9),
            "insured": rng.choice(["yes", "no"], 450),
        }
    ), y


def _products(seed: int) -> Table:
    """Four groups told apart by words of the description; price helps a little."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 400)
    topics = [
        "steel kitchen knife pan pot",
        "cotton shirt sleeve blue wear",
        "paper novel story page author",
        "cable usb screen battery phone",
    ]
    common = ["new", "fine", "large", "small", "good", "quality", "with", "for", "the", "and"]
    texts = []
    for group in y:
        own = rng.choice(topics[group].split(), 4)
        texts.append(" ".join(rng.permutation([*own, *rng.choice(common, 6)])))
    return pd.DataFrame(
        {
            "description": texts,
            "price": np.array([30.0, 25.0, 15.0, 80.0])[y] * rng.lognormal(0, 0.5, 400),
            "colour": rng.choice(["red", "blue", "black", "white", "green"], 400),
            "stock": rng.poisson(20, 400),
        }
    ), y


def _survey(seed: int) -> Table:
    """Three groups of answers to twelve questions in words, of which six depend on the group."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 450)
    answers = ["never", "seldom", "often", "always"]
    table: dict[str, Any] = {}
    for question in range(6):
        lean = [np.roll([0.55, 0.25, 0.12, 0.08], question + group).tolist() for group in range(3)]
        table[f"asked_{question}"] = _draw(rng, answers, lean, y)
    for question in range(6):
        table[f"other_{question}"] = rng.choice(answers, 450)
    table["age"] = rng.normal(np.array([30.0, 45.0, 60.0])[y], 12)
    table["income"] = np.where(rng.random(450) < 0.3, np.nan, rng.lognormal(10, 0.4, 450))
    return pd.DataFrame(table), y


def _machines(seed: int) -> Table:
    """Five groups in eight numbers, beside ten yes/no columns that say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, 500)
    centres = rng.normal(0, 1.6, (5, 8))
    table: dict[str, Any] = {f"sensor_{j}": centres[y, j] + rng.normal(0, 1, 500) for j in range(8)}
    table |= {f"flag_{j}": rng.choice(["on", "off"], 500, p=[p := rng.uniform(0.1, 0.9), 1 - p]) for j in range(10)}
    table["maker"] = _draw(
        rng,
        ["Alfa", "Beta", "Gamma"],
        [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.34, 0.33, 0.33], [0.5, 0.4, 0.1]],
        y,
    )
    return pd.DataFrame(table), y
