"""What an experiment of a paper is, as data.

An :class:`Experiment` names its data sets with their scaling, its methods, its settings (constraint protocol,
dimensions, evaluators), the numbers that the paper prints, and one *protocol*: a function that does one unit of work
and returns what it measured. The runner does the rest for every paper: it runs the units in parallel, stores their
results as they come, and writes tables and figures from what is stored.

Experiments are read from files; see :mod:`reproduction.catalogue` for their format. A protocol looks like this::

    def half_size(unit: Unit) -> Iterator[Result]:
        pairs = Constraints.from_labels(unit.y, per_class=unit.settings["pairs"], random_state=unit.seed("pairs"))
        for method in unit.methods:
            Z = method.build(n_components=unit.data.params["dims"]).fit_transform(unit.X, constraints=pairs)
            yield Result(method.name, score(Z, unit.y), measure="F", at={"pairs": unit.settings["pairs"]})

Rules for protocols. A unit is one part of one run on one data set; it must not depend on any other unit, and it takes
every random choice from :meth:`Unit.seed`, so that results do not depend on order or on the number of processes. All
that decides the numbers and may change belongs into ``settings``, ``methods`` and ``DataSet``, because results are
stored under a fingerprint of these; raise ``version`` when the code of a protocol changes what it measures. Experiments
with equal definitions share their results, whatever their names. Protocols, makers and checks are functions or classes
at the top of a module, because units run in other processes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from reproduction.results import Results

Value = str | int | float
Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Fill = Literal["none", "mean", "zero"]
Profile = Literal["quick", "full"]
Scaling = Literal["none", "minmax", "zscore", "unit", "minmax-unit"]

SCALINGS = {
    "none": "raw",
    "minmax": "each feature to [0, 1]",
    "zscore": "each feature to mean 0 and variance 1",
    "unit": "each row to length 1",
    "minmax-unit": "each feature to [0, 1], then each row to length 1",
}
FILLS = {"none": "", "mean": "missing cells are the mean of their column", "zero": "missing cells are 0"}


@dataclass(frozen=True)
class Result:
    """One number that a unit of work measured.

    Parameters
    ----------
    method : str
        Name of the :class:`Method`, or of what else was measured ("one cluster").
    value : float
        The number; NaN where the method gives none.
    measure : str
        What was measured ("accuracy", "F", "x").
    at : mapping of str to str, int or float
        The condition: number of pairs, dimension, fold, row of a picture.
    """

    method: str
    value: float
    measure: str
    at: Mapping[str, Value] = field(default_factory=dict)

    def to_json(self) -> list[Any]:
        """As it is stored."""
        return [self.method, self.measure, dict(self.at), None if math.isnan(self.value) else float(self.value)]

    @classmethod
    def from_json(cls, row: Sequence[Any]) -> Result:
        """As it was stored."""
        method, measure, at, value = row
        return cls(str(method), math.nan if value is None else float(value), str(measure), dict(at))


@dataclass(frozen=True)
class DataSet:
    """A data set as an experiment uses it.

    Parameters
    ----------
    name : str
        Name in the experiment, and by default also for :func:`reproduction.datasets.load`.
    source : str, optional
        Name for :func:`reproduction.datasets.load`, where it differs.
    target : str
        Entry of the loaded Bunch that holds the labels or scores.
    target_column : int, optional
        Column of the data that is the label instead; it is taken out of the features.
    fill : {"none", "mean", "zero"}
        What missing cells become.
    scaling : {"none", "minmax", "zscore", "unit", "minmax-unit"}
        How features are scaled, after the fill.
    make : callable, optional
        For toys: ``make(seed) -> (X, y)`` instead of loading, new for every run.
    params : mapping
        What the protocol needs to know about this set (kernel width, dimensions).
    title : str
        How the set is called in tables; `name` by default.
    note : str
        What a reader must know, printed below the table.
    """

    name: str
    source: str | None = None
    target: str = "target"
    target_column: int | None = None
    fill: Fill = "none"
    scaling: Scaling = "none"
    make: Callable[[int], tuple[Array, NDArray[Any]]] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    note: str = ""

    @property
    def heading(self) -> str:
        """How the set is called in tables."""
        return self.title or self.name

    @property
    def loaded_name(self) -> str | None:
        """Name for :func:`reproduction.datasets.load`; None if the set is made."""
        return None if self.make is not None else self.source or self.name

    def definition(self) -> dict[str, Any]:
        """All that decides the numbers."""
        return {
            "source": self.loaded_name,
            "target": self.target,
            "target_column": self.target_column,
            "fill": self.fill,
            "scaling": self.scaling,
            "make": _reference(self.make),
            "params": _plain(self.params),
        }


@dataclass(frozen=True)
class Method:
    """A method as an experiment uses it: a class (or another maker) and its parameters."""

    name: str
    make: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def build(self, **more: Any) -> Any:
        """The estimator; `more` completes or replaces the parameters."""
        return self.make(**{**self.params, **more})

    def definition(self) -> dict[str, Any]:
        """All that decides the numbers."""
        return {"name": self.name, "make": _reference(self.make), "params": _plain(self.params)}


@dataclass(frozen=True)
class Column:
    """One column of a table: which results it averages, and what the paper prints.

    Parameters
    ----------
    heading : str
        Heading, unique in the table.
    method, measure : str
        Of the results.
    at : mapping
        Conditions that the results must have; all others are averaged over.
    printed : mapping of str to float
        The paper's numbers by row: by name of the data set, or by ``str`` of the value of ``Table.row``.
    best_over : str
        A condition, such as the dimension, of which the value with the largest mean counts.
    compared : bool
        Whether the column counts among the mean absolute differences below the table.
    """

    heading: str
    method: str
    measure: str
    at: Mapping[str, Value] = field(default_factory=dict)
    printed: Mapping[str, float] = field(default_factory=dict)
    best_over: str = ""
    compared: bool = True


@dataclass(frozen=True)
class Table:
    """A table: one row for each data set, or for each value of a condition.

    Parameters
    ----------
    title : str
    columns : tuple of Column
    row : str
        "set", or a condition whose values make the rows (of each data set that has it).
    notes : mapping of (row, heading) to str
        Notes to single numbers, such as why one does not reproduce. ``(row, "")`` is for a whole row, ``("", heading)``
        for a whole column.
    decimals : int
    text : str
        A paragraph below the title.
    sets : tuple of str
        Only these data sets; all by default.
    limits : mapping of str to float
        By method, the mean absolute difference from the paper up to which the table counts as reproduced.
    """

    title: str
    columns: tuple[Column, ...]
    row: str = "set"
    notes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    decimals: int = 3
    text: str = ""
    sets: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """Curves over a condition, one panel for each data set or each value of another condition.

    Parameters
    ----------
    name : str
        Ends the file name; empty for the only figure of an experiment.
    title : str
    measure : str
        On the vertical axis.
    x : str
        Condition on the horizontal axis.
    methods : tuple of str
        Curves; all methods that have such results by default.
    panel : str
        "set", or a condition whose values make the panels (of each data set).
    at : mapping
        Conditions that the results must have.
    best_over : str
        As in :class:`Column`.
    x_label, y_label : str
    log_x, log_y : bool
    draw : callable, optional
        ``draw(figure, results)`` draws on an empty Matplotlib figure instead, for what is not a curve.
    """

    title: str
    measure: str = ""
    x: str = ""
    name: str = ""
    methods: tuple[str, ...] = ()
    panel: str = "set"
    at: Mapping[str, Value] = field(default_factory=dict)
    best_over: str = ""
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    draw: Callable[[Any, Results], None] | None = None


@dataclass(frozen=True)
class Picture:
    """A figure of a paper that explains and needs no results: ``draw(figure)`` draws it on an empty Matplotlib figure.

    `text` says what the paper shows and what this one does; `sets` are the data sets that it needs.
    """

    name: str
    title: str
    text: str
    draw: Callable[[Any], None]
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and a check of the results: ``check(results) -> (holds, the numbers in words)``.

    The check may raise ``LookupError`` when a result that it needs is not there; the claim is then left open.

    Parameters
    ----------
    text : str
        The statement, in our words.
    check : callable, optional
        None for what cannot be tested.
    where : str
        Where it stands in the paper; "ours" for a question that the paper does not ask.
    because : str
        Why it cannot be tested.
    """

    text: str
    check: Callable[[Results], tuple[bool | str, str]] | None = None
    where: str = ""
    because: str = ""


@dataclass(frozen=True)
class Quick:
    """What the quick profile changes: fewer runs, parts, sets, methods, or other settings (these replace single ones).

    ``None`` keeps what the full profile has.
    """

    runs: int | None = 1
    parts: int | None = None
    sets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    Parameters
    ----------
    name : str
        As typed on the command line: "dsp-table4".
    title : str
        Heading of the output.
    protocol : callable
        ``protocol(unit) -> iterable of Result``.
    sets : tuple of DataSet
    methods : tuple of Method
    settings : mapping
        Constraint protocol, dimensions, evaluators: JSON values that the protocol reads.
    runs : int
        Repetitions of the full profile.
    parts : int
        Independent parts of a run that can be done apart, such as the folds of a cross-validation.
    seed : int
        Of all random choices.
    version : int
        Raised when the code of the protocol changes what it measures.
    quick : Quick
        The quick profile.
    text : tuple of str
        How the protocol goes, in a few sentences.
    tables, figures, claims : tuples
        What is written from the results.
    notes : tuple of str
        Cautions and what does not reproduce.
    timed : bool
        Results are times: units run one after the other, and the output says that equal runs do not give equal files.
    requires : tuple of (module, extra)
        Optional dependencies without which no unit can run.
    features : str
        What the protocol does to the features of sets that are not scaled when they are loaded.
    """

    name: str
    title: str
    protocol: Callable[[Unit], Iterable[Result]]
    sets: tuple[DataSet, ...]
    methods: tuple[Method, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    runs: int = 1
    parts: int = 1
    seed: int = 0
    version: int = 1
    quick: Quick = Quick()
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    timed: bool = False
    requires: tuple[tuple[str, str], ...] = ()
    features: str = "raw"

    def with_profile(self, profile: Profile) -> Experiment:
        """The experiment as the profile runs it."""
        if profile == "full":
            return self
        quick = self.quick
        kept = self.only(sets=quick.sets, runs=quick.runs)
        return replace(
            kept,
            parts=self.parts if quick.parts is None else quick.parts,
            methods=tuple(one for one in self.methods if quick.methods is None or one.name in quick.methods),
            settings={**self.settings, **quick.settings},
            tables=_without_limits(self.tables),
        )

    def only(self, *, sets: Iterable[str] | None = None, runs: int | None = None) -> Experiment:
        """The experiment on some of its data sets, with another number of runs."""
        wanted = {data.name for data in self.sets} if sets is None else set(sets)
        part = replace(
            self,
            sets=tuple(data for data in self.sets if data.name in wanted),
            runs=self.runs if runs is None else runs,
        )
        less = len(part.sets) < len(self.sets) or part.runs < self.runs
        return replace(part, tables=_without_limits(self.tables)) if less else part

    def fingerprint(self, data: DataSet) -> str:
        """Short hash of all that decides the numbers on one data set."""
        definition = {
            "protocol": _reference(self.protocol),
            "version": self.version,
            "seed": self.seed,
            "settings": _plain(self.settings),
            "methods": [method.definition() for method in self.methods],
            "data": data.definition(),
        }
        text = json.dumps(definition, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def units(self) -> list[Unit]:
        """All units of work, those of one run together."""
        return [
            Unit(self, data, run, part) for run in range(self.runs) for data in self.sets for part in range(self.parts)
        ]


@dataclass(frozen=True)
class Unit:
    """One part of one run on one data set: what a protocol is given."""

    experiment: Experiment
    data: DataSet
    run: int
    part: int = 0

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the experiment."""
        return self.experiment.settings

    @property
    def methods(self) -> tuple[Method, ...]:
        """Methods of the experiment."""
        return self.experiment.methods

    @property
    def key(self) -> str:
        """Where results are stored: by data set and fingerprint, so that changed settings never meet old results."""
        name = re.sub(r"[^\w.-]", "_", self.data.name)
        return f"{name}-{self.experiment.fingerprint(self.data)}/{self.run:03d}-{self.part:02d}"

    def compute(self) -> list[list[Any]]:
        """The results of the protocol as they are stored."""
        with warnings.catch_warnings():
            # Methods warn of weak supervision and degenerate input, which is what some experiments are about.
            warnings.simplefilter("ignore")
            return [one.to_json() for one in self.experiment.protocol(self)]

    def seed(self, *words: Value) -> int:
        """A seed for one purpose, from the data set, the run and the words; equal in all parts of the run."""
        text = json.dumps([self.experiment.seed, self.data.name, self.run, *words])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    @cached_property
    def bunch(self) -> Mapping[str, Any]:
        """The data set as loaded, for protocols that need more than X and y."""
        from reproduction.prepare import loaded

        name = self.data.loaded_name
        if name is None:
            raise ValueError(f"the set {self.data.name} is made, not loaded: it has only X and y")
        return loaded(name)

    @cached_property
    def _prepared(self) -> tuple[Array, NDArray[Any]]:
        from reproduction.prepare import prepared

        return prepared(self.data, self.seed("data") if self.data.make is not None else 0)

    @property
    def X(self) -> Array:
        """Rows, filled and scaled, float64; not to be changed."""
        return self._prepared[0]

    @property
    def y(self) -> NDArray[Any]:
        """Classes as whole numbers from 0, or scores as floats."""
        return self._prepared[1]


def _without_limits(tables: tuple[Table, ...]) -> tuple[Table, ...]:
    """Limits are for the whole experiment: parts of it are nearer or farther by chance."""
    return tuple(replace(table, limits={}) for table in tables)


def _reference(function: Callable[..., Any] | None) -> str | None:
    """Package and name, with the module for what is ours: where a library keeps its classes decides no number."""
    if function is None:
        return None
    package, _, module = function.__module__.partition(".")
    return (
        f"{package}.{module}:{function.__qualname__}"
        if package == "reproduction"
        else f"{package}:{function.__qualname__}"
    )


def _plain(value: Any) -> Any:
    """The value as JSON knows it; classes and functions by name."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if callable(value):
        return _reference(value)
    return value
