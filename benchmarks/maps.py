"""The league of maps: how good is the picture, with and without answers?

    python -m benchmarks.league --maps             # every labelled set, at most 500 rows: 25 minutes of one core
    python -m benchmarks.league --maps --full      # the same, at most 1000 rows
    python -m benchmarks.league --maps --sets wine seeds --only-print

Writes docs/maps.md and its picture. Results are kept as they come, and a run that was stopped goes on where it was.
Small sets come first, so that a run that was stopped has many whole sets; `--sets` with these makes a page of them.

Protocol. Rows and classes as in the league: at most 300 rows to fit and 200 to test (600 and 400 in the full league),
one stratified split, z-scores by training statistics. The answers are R m: m random pairs of training rows; or G g: g
known rows of each group with all their pairs. f e: e % of the pairs are wrong, or of the known rows in a wrong group.
Maps have two dimensions. Test rows are placed in the finished map: by the method itself, and for t-SNE by rule 7 of
PairMap in the z-scores. ARI is that of k-means with the true number of groups (4 starts) on the placed test rows; 1-NN
and 5-NN are accuracies of test rows among the training rows; AUC is that of distance in the map over fresh pairs of
test rows.
"""

from __future__ import annotations

import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.league import DOCS, ROOT, Job, labelled_sets, load
from benchmarks.maps_table import Cell, MapScores, filled_page, tables
from benchmarks.measure import compute
from benchmarks.placed import SCORES, Array, Codes, Placed, scores, umap, umap_with_labels
from pairlens import Constraints, PairLens, PairMap
from pairlens.methods.pairmap.layout import local_scale, nearest_known, place
from reproduction.tasks import Store

QUICK_ROWS, FULL_ROWS = 500, 1000


@dataclass(frozen=True)
class Setting:
    """What is answered: `count` random pairs, or `count` known rows of each group, a share of it wrong."""

    kind: str
    count: int
    wrong: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}{self.count}" + (f"f{round(100 * self.wrong)}" if self.wrong else "")


NOTHING = Setting("R", 0)
ANSWERED = (("R", 60), ("R", 200), ("G", 3), ("G", 10))
SETTINGS = (NOTHING, *(Setting(kind, count, wrong) for kind, count in ANSWERED for wrong in (0.0, 0.1, 0.2)))


def answers(setting: Setting, y: Codes, name: str) -> Constraints:
    """What people say about the training rows of a set; the draw is fixed by the name of the set."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), setting.count, ord(setting.kind)])
    if setting.kind == "R":
        everything = Constraints.from_labels(y)
        pairs = everything.sample(min(setting.count, everything.n_pairs), rng)
        return pairs.flip(setting.wrong, rng) if setting.wrong else pairs
    known = np.full(len(y), -1)
    for group in range(int(y.max()) + 1):
        rows = np.flatnonzero(y == group)
        known[rng.choice(rows, min(setting.count, len(rows)), replace=False)] = group
    rows = np.flatnonzero(known >= 0)
    mistaken = rng.choice(rows, round(setting.wrong * len(rows)), replace=False)
    groups = int(y.max()) + 1
    known[mistaken] = (known[mistaken] + rng.integers(1, groups, len(mistaken))) % groups
    return Constraints.from_labels(known)


# ------------------------------------------------------------------------------------------------------------- methods


def pair_map(train: Array, test: Array, known: Constraints) -> Placed:
    """PairMap with its defaults."""
    model = PairMap(random_state=0).fit(train, constraints=known)
    return model.embedding_, model.transform(test)


def pair_lens(train: Array, test: Array, known: Constraints) -> Placed:
    """PairLens in two dimensions."""
    model = PairLens(2, random_state=0).fit(train, constraints=known)
    return model.transform(train), model.transform(test)


def tsne(train: Array, test: Array, known: Constraints) -> Placed:  # noqa: ARG001
    """openTSNE with its defaults, test rows by rule 7 in the same metric."""
    import openTSNE

    perplexity = max(1.0, min(30.0, (len(train) - 1) / 3 - 1))
    laid = np.array(openTSNE.TSNE(perplexity=perplexity, random_state=0, n_jobs=1).fit(train), dtype=np.float64)
    return laid, placed_by_rule_7(train, test, laid)


def placed_by_rule_7(train: Array, test: Array, laid: Array) -> Array:
    """Places of new rows in a map that has no way of its own."""
    found, weights = nearest_known(test, train)
    return place(found, weights, laid, local_scale(laid))


METHODS: dict[str, Callable[[Array, Array, Constraints], Placed]] = {
    "PairMap": pair_map,
    "PairLens(2)": pair_lens,
    "t-SNE": tsne,
    "UMAP": umap,
    "UMAP, must-link components as labels": umap_with_labels,
}
WITHOUT_ANSWERS = ("t-SNE", "UMAP")
"""Methods that see no answer: one map serves all settings."""


def measure(
    method: str, setting: Setting, name: str, train: Array, y_train: Codes, test: Array, y_test: Codes
) -> dict[str, float]:
    """The scores of one map."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        laid, placed = METHODS[method](train, test, answers(setting, y_train, name))
        return scores(laid, y_train, placed, y_test)


def wanted(settings: Iterable[Setting], methods: Iterable[str]) -> list[tuple[str, Setting]]:
    """What is measured on each set: methods that see no answer once."""
    return [(m, s) for m in methods for s in settings if m not in WITHOUT_ANSWERS or s == NOTHING]


# ---------------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class MapTask:
    """One map of one set."""

    set: str
    method: str
    setting: Setting
    rows: int

    @property
    def key(self) -> str:
        """Where the result is stored."""
        name = "".join(letter if letter.isalnum() else "-" for letter in self.method.lower())
        return f"{self.set}/{name}-{self.setting}"

    def compute(self) -> list[dict[str, Any]]:
        """The scores; a method that fails scores zero and says why."""
        rows = Job(self.set, split=0, n_pairs=0, noise=0.0, max_rows=self.rows).prepare()
        train, y_train, test, y_test = rows[:4]
        began = time.process_time()
        try:
            found, error = measure(self.method, self.setting, self.set, train, y_train, test, y_test), ""
        except Exception as failed:
            found, error = dict.fromkeys(SCORES, 0.0), f"{type(failed).__name__}: {failed}"
        seconds = time.process_time() - began
        return [vars(Cell(self.set, self.method, str(self.setting), **found, seconds=seconds, error=error))]


def run(
    sets: list[str],
    methods: list[str],
    *,
    rows: int,
    settings: tuple[Setting, ...] = SETTINGS,
    jobs: int = 1,
    again: Iterable[str] = (),
) -> list[Cell]:
    """Compute what is missing, and give all cells."""
    store = Store(ROOT / "results" / f"maps-{rows}")
    store.clean()
    sets = sorted(sets, key=lambda name: load(name, rows)[0].size)
    tasks = [MapTask(name, method, setting, rows) for name in sets for method, setting in wanted(settings, methods)]
    missing = store.unfinished(tasks)
    todo = [task for task in tasks if task in missing or task.method in again]
    compute(todo, store, jobs)
    return [cell for task in tasks for cell in store.read(task, lambda row: Cell(**row)) or []]


def main(options: Any) -> None:
    """Run a profile, and write the page and its picture."""
    sets = labelled_sets(options.sets)
    methods = options.methods or list(METHODS)
    rows = FULL_ROWS if options.full else QUICK_ROWS
    cells = run(sets, methods, rows=rows, jobs=options.jobs, again=options.again)
    for cell in cells:
        if cell.error:
            print(f"{cell.method} on {cell.set}, {cell.setting}: {cell.error}", file=sys.stderr)
    chosen = (" --full" if options.full else "") + (" --sets ..." if options.sets else "")
    command = f'make league ARGS="--maps{chosen}"'
    text = tables(MapScores.of(cells, methods, [str(setting) for setting in SETTINGS]), command)
    print(text)
    if options.only_print:
        return
    page = DOCS / "maps.md"
    page.write_text(filled_page(page.read_text(), text))
    from benchmarks import maps_figure

    maps_figure.save(DOCS / "pictures" / "maps.png")
