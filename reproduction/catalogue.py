"""The experiments, read from the files ``PAPER.toml`` beside the modules ``PAPER.py``.

A file holds all that is data: sets, methods, settings, printed numbers, texts. Its module holds the functions that it
names: protocols, checks of claims, drawings. The parts of a file:

- ``[words]``: values used more than once. ``"{name}"`` is replaced by the value, whatever it is; inside a longer text,
  by its text. Words may use those above them.
- ``[sets.NAME]`` and ``[methods.NAME]``: the fields of :class:`DataSet` and :class:`Method`; NAME is their name.
- ``[[experiment]]``: the fields of :class:`Experiment`. Its lists ``sets`` and ``methods`` hold names, or tables that
  change a named one (``use = NAME``; ``params`` are merged).
- ``[[experiment.table]]``: the fields of :class:`Table`. A column is the name of a method, or a table with the fields
  of :class:`Column`; what it leaves open it takes from the table. ``printed`` has for each heading a list in the order
  of the sets of the experiment, with ``nan`` where the paper has no number. ``notes`` are [row, heading, text].
- ``[[experiment.figure]]``: the fields of :class:`Figure`. ``[[picture]]`` before the experiments: those of
  :class:`Picture`.
- ``[[experiment.claim]]``: a statement of the paper that the results of the experiment decide: what it ``says``,
  ``where``, and the ``check`` with its arguments ``with``. ``[[claim]]`` before the experiments: one that needs no
  results, or that cannot be tested, ``because``.

``each`` repeats a method, column or table for rows of words, or for all combinations of lists of words. A printed entry
that is a list has one number for each repetition of its table; without repetition their mean counts.

Classes are named "module:name"; protocols, and makers of the paper's own module, by name alone. Checks are functions of
the paper's module in :mod:`reproduction.checks`, or of another one there ("theory:name"); drawings are functions of
:mod:`reproduction.figures` and :mod:`reproduction.pictures`.
"""

from __future__ import annotations

import importlib
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np

from reproduction import figures, pictures
from reproduction.experiment import Claim, Column, DataSet, Experiment, Figure, Method, Picture, Quick, Table

PAPERS = ("bwdr", "dsp", "sodrpac", "wsdr")


def experiments(names: Iterable[str] | None = None) -> list[Experiment]:
    """All experiments, or those of the names given, in the order of the files."""
    found = {experiment.name: experiment for paper in PAPERS for experiment in _paper(paper).experiments}
    if names is None:
        return list(found.values())
    wanted = list(dict.fromkeys(names))
    if unknown := [name for name in wanted if name not in found]:
        raise ValueError(f"there is no experiment {unknown[0]!r}; there are: {', '.join(found)}")
    return [found[name] for name in wanted]


def papers() -> list[Paper]:
    """All papers."""
    return [_paper(name) for name in PAPERS]


@cache
def _paper(name: str) -> Paper:
    return Paper(name)


class Paper:
    """The file of a paper: its title, its experiments, and the claims that belong to none of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        text = files("reproduction").joinpath(f"{name}.toml").read_text(encoding="utf-8")
        content = tomllib.loads(text)
        words: dict[str, Any] = {}
        for key, value in content.pop("words").items():
            words[key] = _filled(value, words)
        content = _filled(content, words)
        self._sets = {key: {"name": key, **fields} for key, fields in content["sets"].items()}
        self._methods = {key: {"name": key, **fields} for key, fields in content["methods"].items()}
        self.title = str(content["title"])
        self.claims = tuple(self._claim(**fields) for fields in content.get("claim", ()))
        self.pictures = tuple(_picture(fields) for fields in content.get("picture", ()))
        self.experiments = [self._experiment(fields) for fields in content["experiment"]]

    def _experiment(self, fields: Mapping[str, Any]) -> Experiment:
        fields = dict(fields)
        sets = tuple(DataSet(**self._resolved(one)) for one in _entries(fields.pop("sets"), self._sets))
        methods = _entries(fields.pop("methods", ()), self._methods)
        tables = [one for table in fields.pop("table", ()) for one in _tables(table, [data.name for data in sets])]
        return Experiment(
            protocol=self._named(fields.pop("protocol")),
            sets=sets,
            methods=tuple(Method(**self._resolved(one)) for one in methods),
            quick=Quick(**_frozen(fields.pop("quick", {}))),
            tables=tuple(tables),
            figures=tuple(map(_figure, fields.pop("figure", ()))),
            claims=tuple(self._claim(**one) for one in fields.pop("claim", ())),
            **_frozen(fields),
        )

    def _claim(self, says: str, where: str, check: str = "", because: str = "", **fields: Mapping[str, Any]) -> Claim:
        if because:
            return Claim(says, None, where, because)
        module, _, name = check.rpartition(":")
        function = getattr(importlib.import_module(f"reproduction.checks.{module or self.name}"), name)
        return Claim(says, partial(function, **fields.get("with", {})), where)

    def _resolved(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self._named(value) if key == "make" else value for key, value in fields.items()}

    def _named(self, reference: str) -> Any:
        module, _, name = reference.rpartition(":")
        return getattr(importlib.import_module(module or f"reproduction.{self.name}"), name)


def _filled(value: Any, words: Mapping[str, Any]) -> Any:
    """The value with words in place of their names; names that are not among the words stay."""
    if isinstance(value, dict):
        return {key: _filled(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, words) for item in value]
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\{(\w+)\}", value)
    if whole and whole[1] in words:
        return words[whole[1]]
    return re.sub(r"\{(\w+)\}", lambda found: str(words.get(found[1], found[0])), value)


def _each(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The repetitions of an entry."""
    each = entry.get("each", [{}])
    rows = each if isinstance(each, list) else [dict(zip(each, values)) for values in product(*each.values())]
    fields = {key: value for key, value in entry.items() if key != "each"}
    for row in rows:
        yield _filled(fields, row)


def _entries(entries: Iterable[Any], known: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Named sets or methods, with their changes."""
    for entry in entries:
        for change in _each({"use": entry} if isinstance(entry, str) else entry):
            base = known[change.pop("use")]
            yield {**base, **change, "params": {**base.get("params", {}), **change.get("params", {})}}


def _tables(entry: Mapping[str, Any], sets: list[str]) -> Iterator[Table]:
    for place, fields in enumerate(_each(entry)):
        printed = {
            heading: _by_set(numbers, sets, place if "each" in entry else None)
            for heading, numbers in fields.pop("printed", {}).items()
        }
        common: dict[str, Any] = {
            key: fields.pop(key) for key in ("measure", "at", "best_over", "compared") if key in fields
        }
        columns = [
            _column({**common, **one, "at": {**common.get("at", {}), **one.get("at", {})}}, printed)
            for column in fields.pop("columns")
            for one in _each({"method": column} if isinstance(column, str) else column)
        ]
        notes = {(row, heading): text for row, heading, text in fields.pop("notes", ())}
        yield Table(columns=tuple(columns), notes=notes, **_frozen(fields))


def _by_set(numbers: Iterable[Any], sets: list[str], place: int | None) -> dict[str, float]:
    found = {}
    for name, number in zip(sets, numbers, strict=True):
        if isinstance(number, list):
            number = float(np.mean(number)) if place is None else number[place]
        if not math.isnan(number):
            found[name] = number
    return found


def _column(fields: dict[str, Any], printed: Mapping[str, Mapping[str, float]]) -> Column:
    heading = fields.pop("heading", fields["method"])
    return Column(heading, printed=printed.get(heading, {}), **fields)


def _figure(fields: Mapping[str, Any]) -> Figure:
    draw = getattr(figures, fields["draw"]) if "draw" in fields else None
    return Figure(**{**_frozen(fields), "draw": draw})


def _picture(fields: Mapping[str, Any]) -> Picture:
    return Picture(**{**_frozen(fields), "draw": getattr(pictures, fields["draw"])})


def _frozen(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Lists as tuples, which dataclasses hold."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
