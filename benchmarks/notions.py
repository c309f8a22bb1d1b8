"""The league of notions: does a view follow the answers where they ask for something else than the rows show?

    python -m benchmarks.league --notions                   # everything, and docs/notions.md; hours of one core
    python -m benchmarks.notions --methods PairMap,PairLens --sets minor --jobs 16 --out part.jsonl
    python -m benchmarks.notions --merge part.jsonl         # what was computed elsewhere, the rest, and the page
    python -m benchmarks.notions --page                     # the page of what is stored

One table has several ways to say "same": crabs by species or by sex, glyphs by letter or by weight. The cases are in
benchmarks/notions_cases.py, with the folders that they are read from. Every result is a line of a file as soon as it
is done, so a run that was stopped goes on where it was. Results have the tag of the version of pairlens that computed
them (``--tag``): another tag computes them again.

Protocol. At most 420 rows to fit and 280 to test, stratified by the notion; each draw has a split and pairs of its own.
30, 60 and 200 pairs, half must-links and half cannot-links, each half drawn uniformly among the training rows; and the
same 200 with a tenth of each half moved to the other. PairMap and PairLens get the rows as they are, methods that do
not scale columns get z-scores by training statistics. Maps have two dimensions, other views k - 1 for k groups, unless
a number is in their name. Test rows are only placed. ARI is that of k-means with the true number of groups (4 starts)
on the test rows; 1-NN and 5-NN are accuracies of test rows among the training rows; AUC is that of distance over fresh
pairs of test rows.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import pairlens
from benchmarks.league import DOCS, ROOT
from benchmarks.lines import LineStore
from benchmarks.maps_table import filled_page
from benchmarks.measure import compute
from benchmarks.notions_cases import FOLDER, chosen_cases, load_case
from benchmarks.notions_table import ALONE, BEGIN, Summary, tables
from benchmarks.placed import SCORES, Array, Codes, Placed, scores, umap, umap_with_labels
from pairlens import Constraints
from reproduction import datasets

__all__ = ["METHODS", "SETTINGS", "Result", "main", "run"]


@dataclass(frozen=True)
class Setting:
    """What is answered: a number of pairs, half of them must-links, and the share that is wrong."""

    n_pairs: int
    wrong: float = 0.0

    def __str__(self) -> str:
        return f"{self.n_pairs}" + (f", {self.wrong:.0%} wrong" if self.wrong else "")


NOTHING = Setting(0)
SETTINGS = (Setting(30), Setting(60), Setting(200), Setting(200, 0.1))
DRAWS = 3


@dataclass(frozen=True)
class Result:
    """The scores of one view; `error` is empty if all went well, and the scores are zero otherwise."""

    case: str
    setting: str
    draw: int
    method: str
    tag: str
    ari: float
    nn1: float
    nn5: float
    auc: float
    seconds: float
    error: str


def answers(setting: Setting, y: Codes, case: str, draw: int) -> Constraints:
    """Return the pairs of a draw: with mistakes they are the same pairs, a share of each kind in the wrong list."""
    rng = np.random.default_rng([zlib.crc32(case.encode()), draw, setting.n_pairs])
    first, second = np.triu_indices(len(y), 1)
    pairs, same = np.column_stack([first, second]), y[first] == y[second]
    half = setting.n_pairs // 2
    must, cannot = (pairs[rng.choice(np.flatnonzero(kind), half, replace=False)] for kind in (same, ~same))
    moved = round(setting.wrong * half)
    return Constraints(
        np.concatenate([must[moved:], cannot[:moved]]), np.concatenate([cannot[moved:], must[:moved]]), len(y)
    )


# ------------------------------------------------------------------------------------------------------------- methods

Method = Callable[[Array, Array, Constraints, int], Placed]
"""Places of training and test rows, from these rows, pairs and the number of groups."""


def view(name: str, n_components: int | None = None, *, scaled: bool = False) -> Method:
    """Return a method of the library; k - 1 directions, if there are as many columns, unless a number is given."""

    def placed(train: Array, test: Array, known: Constraints, k: int) -> Placed:
        cls = getattr(pairlens, name)
        seed = {"random_state": 0} if "random_state" in cls().get_params() else {}
        if scaled:
            train, test = z_scores(train, test)
        model = cls(n_components or min(k - 1, train.shape[1]), **seed).fit(train, constraints=known)
        return model.transform(train), model.transform(test)

    return placed


def pair_map(train: Array, test: Array, known: Constraints, k: int) -> Placed:  # noqa: ARG001
    """PairMap with its defaults."""
    model = pairlens.PairMap(random_state=0).fit(train, constraints=known)
    return model.embedding_, model.transform(test)


def tsne(train: Array, test: Array, known: Constraints, k: int) -> Placed:  # noqa: ARG001
    """openTSNE of z-scores with its defaults, test rows by its own transform."""
    import openTSNE

    train, test = z_scores(train, test)
    perplexity = min(30.0, (len(train) - 1) / 3 - 1)
    laid = openTSNE.TSNE(perplexity=perplexity, random_state=0, n_jobs=1).fit(train)
    return np.array(laid, dtype=np.float64), np.array(laid.transform(test), dtype=np.float64)


def of_z_scores(method: Callable[[Array, Array, Constraints], Placed]) -> Method:
    """Return a method of the league of maps, which gets z-scores."""
    return lambda train, test, known, k: method(*z_scores(train, test), known)


def z_scores(train: Array, test: Array) -> tuple[Array, Array]:
    """Return both scaled by the statistics of the training rows."""
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test)


METHODS: dict[str, Method] = {
    "PairMap": pair_map,
    "PairLens": view("PairLens"),
    "PairLens(2)": view("PairLens", 2),
    "LinearPairLens": view("LinearPairLens"),
    "WBDR": view("WBDR", scaled=True),
    "KernelWBDR": view("KernelWBDR", scaled=True),
    "t-SNE": tsne,
    "UMAP": of_z_scores(umap),
    "UMAP-labels": of_z_scores(umap_with_labels),
}
"""UMAP-labels: umap-learn with the components of must-links as labels."""
OF_OTHERS = {"t-SNE": "openTSNE", "UMAP": "umap", "UMAP-labels": "umap"}
"""Methods of other packages: their results have no tag."""


# ---------------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class NotionTask:
    """One view of one draw of a case."""

    case: str
    setting: Setting
    draw: int
    method: str
    tag: str

    @property
    def key(self) -> str:
        """Name of the result."""
        return "/".join([self.case, str(self.setting), str(self.draw), self.method, self.tag])

    def view(self) -> tuple[Array, Codes, Array, Codes, float]:
        """Return the places of training and test rows, each with their groups, and seconds of processor time."""
        X, y = load_case(self.case)
        train, test = train_test_split(np.arange(len(y)), test_size=0.4, stratify=y, random_state=1000 + self.draw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known = answers(self.setting, y[train], self.case, self.draw)
            began = time.process_time()
            laid, placed = METHODS[self.method](X[train], X[test], known, int(y.max()) + 1)
        return laid, y[train], placed, y[test], time.process_time() - began

    def compute(self) -> list[dict[str, Any]]:
        """Return the scores; a method that fails scores zero and says why."""
        try:
            *view, seconds = self.view()
            found, error = scores(*view), ""
        except Exception as failed:
            found, error, seconds = dict.fromkeys(SCORES, 0.0), f"{type(failed).__name__}: {failed}", 0.0
        named = {"case": self.case, "setting": str(self.setting), "draw": self.draw, "method": self.method}
        return [asdict(Result(**named, tag=self.tag, **found, seconds=round(seconds, 3), error=error))]


def all_tasks(cases: Iterable[str], methods: Iterable[str], draws: int, tag: str) -> list[NotionTask]:
    """Return what is measured: methods that see no answer once a draw."""
    return [
        NotionTask(case, setting, draw, method, "" if method in OF_OTHERS else tag)
        for draw in range(draws)
        for case in cases
        for method in methods
        for setting in ((NOTHING,) if method in ALONE else SETTINGS)
    ]


def run(
    cases: Iterable[str],
    methods: Iterable[str],
    store: LineStore,
    *,
    draws: int = DRAWS,
    tag: str = pairlens.__version__,
    jobs: int = 1,
    again: Iterable[str] = (),
) -> list[Result]:
    """Compute what is missing, and return all results."""
    store.clean()
    tasks = all_tasks(cases, methods, draws, tag)
    missing = set(store.unfinished(tasks))
    todo = [task for task in tasks if task in missing or task.method in again]
    for case in dict.fromkeys(task.case for task in todo):
        # A file that is not there ends the run before it begins.
        load_case(case)
    compute(todo, store, jobs)
    return stored(tasks, store)


def stored(tasks: Iterable[NotionTask], store: LineStore) -> list[Result]:
    """Return the results that there are."""
    found = store.lines()
    return [Result(**row) for task in tasks for row in found.get(task.key, [])]


def names(text: str) -> list[str]:
    """Return the names of a list with commas."""
    return [name for name in text.split(",") if name]


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", type=names, default=[], help=f"some of {','.join(METHODS)}")
    parser.add_argument("--sets", type=names, default=[], help="some cases, sets or groups (minor, dominant, rest)")
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"splits with pairs of their own, {DRAWS} by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with one thread")
    parser.add_argument("--tag", default=pairlens.__version__, help="names the version of pairlens")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "notions.jsonl", help="file of the results")
    parser.add_argument("--merge", type=Path, nargs="+", default=[], help="files of results computed elsewhere")
    parser.add_argument("--again", type=names, default=[], help="methods whose results are computed again")
    parser.add_argument("--page", action="store_true", help="write the page from what is stored, and compute nothing")
    parser.add_argument("--data", help=f"in place of {datasets.loader.FOLDER}")
    parser.add_argument("--notions-dir", help=f"in place of {FOLDER}")
    options = parser.parse_args(arguments)
    if unknown := {*options.methods, *options.again} - set(METHODS):
        parser.error(f"unknown methods {sorted(unknown)}; there are {', '.join(METHODS)}")
    options.methods = options.methods or list(METHODS)
    if options.page:
        return options
    lacking = [f"{m} needs {OF_OTHERS[m]}" for m in options.methods if m in OF_OTHERS and not find_spec(OF_OTHERS[m])]
    if lacking:
        parser.error(f"{', '.join(lacking)}, which is not installed; name other methods with --methods")
    return options


def main(arguments: list[str] | None = None) -> None:
    """Run the league, and write the page, the summary that it is made of, and the picture; of a part, only print."""
    options = options_of(arguments)
    for variable, given in ((datasets.loader.FOLDER, options.data), (FOLDER, options.notions_dir)):
        if given:
            os.environ[variable] = given
    store = LineStore(options.out)
    store.merge(options.merge)
    whole = not options.sets and options.methods == list(METHODS)
    cases, draws, tag = chosen_cases(options.sets), options.draws, options.tag
    if options.page:
        results = stored(all_tasks(cases, options.methods, draws, tag), store)
    else:
        results = run(cases, options.methods, store, draws=draws, tag=tag, jobs=options.jobs, again=options.again)
    for result in results:
        if result.error:
            print(f"{result.method} on {result.case}, {result.setting} pairs: {result.error}", file=sys.stderr)
    summary = Summary.of(results, draws, tag)
    print(generated(summary))
    if options.page or whole:
        write_page(summary)
    if whole and not options.page:
        from benchmarks import notions_figure

        notions_figure.save(DOCS / "pictures" / "notions.png")


def generated(summary: Summary) -> str:
    """Return the generated part of the page."""
    draws = "" if summary.draws == DRAWS else f" --draws {summary.draws}"
    return tables(summary, [str(setting) for setting in SETTINGS], f'make league ARGS="--notions{draws}"')


def write_page(summary: Summary) -> None:
    """Keep the summary, and fill the page from it."""
    (DOCS / "notions.json").write_text(summary.written())
    page = DOCS / "notions.md"
    page.write_text(filled_page(page.read_text(), generated(summary), BEGIN))


if __name__ == "__main__":
    # Workers import this module by its name; so does this process, to share its classes.
    importlib.import_module("benchmarks.notions").main()
