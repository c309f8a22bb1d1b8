"""The league: how good is the view of each method, from few pairs and from noisy ones?

    python -m benchmarks.league            # 27 sets of the repository, about 15 minutes on two cores
    python -m benchmarks.league --full     # every labelled set, 80 minutes
    python -m benchmarks.league --maps     # pictures in two dimensions: benchmarks/maps.py
    python -m benchmarks.league --mixed    # tables with words, dates and texts: benchmarks/mixed.py
    python -m benchmarks.league --notions  # several ways to say "same", with options of its own: benchmarks/notions.py
    python -m benchmarks.league --sets wine seeds --methods PCA PairLens --only-print

They write docs/league.md and its picture. The data are those in the repository, and those in the folder that the
environment variable ``PAIRLENS_DATA`` names. Every split with one draw of pairs has a file in ``benchmarks/results`` as
soon as it is done, so a run that was stopped goes on where it was. Results of a method that has changed are computed
again after ``--again METHOD``.

Protocol. Of sets with more rows than the profile takes, only that many are drawn, in proportion to their classes;
classes with fewer than five rows are left out, and missing cells take the mean of the column in the training rows.
60/40 stratified splits; z-scores by training statistics; pairs of training rows drawn uniformly and named by label, of
which a share is moved to the wrong list. Test rows are only projected. k-means with the true number of classes k and 4
starts on the projected test rows gives the adjusted Rand index (ARI) and the pairwise F-score, 1-NN with the training
rows the accuracy. d is 2, 5 and min(k - 1, 10), never more than there are features. All methods have their default
parameters.

To enter a method, put three lines into a module and run with ``--entries MODULE``:

    @entry("My method")
    def my_method(n_components, random_state):
        return MyEstimator(n_components)

It is any scikit-learn transformer; if its ``fit`` takes ``constraints``, it gets the pairs.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import inspect
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array

import pairlens
from benchmarks.league_table import Record, page, scores_by_dim
from benchmarks.measure import peak_memory
from pairlens import Constraints, Quadruplets
from reproduction import datasets
from reproduction.scores import pairwise_f_score
from reproduction.tasks import Store, progress, work

ROOT = Path(__file__).parent
DOCS = ROOT.parent / "docs"
FEWEST_ROWS_OF_A_CLASS = 5
MOST_FEATURES = 10_000
DIMS = ("2", "5", "k-1")
NOTIONS = "--notions"
Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Maker = Callable[[int, int], Any]


@dataclass(frozen=True)
class Profile:
    """What is run: which sets (all if none are named), how many rows of each, splits, numbers of pairs, noise."""

    name: str
    max_rows: int
    n_splits: int
    n_pairs: tuple[int, ...]
    noise: tuple[float, ...]
    sets: tuple[str, ...] = ()


QUICK = Profile(
    "quick",
    max_rows=400,
    n_splits=1,
    n_pairs=(60, 200, 1000),
    noise=(0.0, 0.2),
    sets=(
        *("balance", "breast", "climate", "cnae9", "digits", "glass", "heart", "hepatitis", "hill_valley_noise"),
        *("ionosphere", "iris", "kddcup99_subset", "krvskp", "labor", "letter_abcd", "mfeat_kar", "mfeat_zer"),
        *("monks1", "monks3", "pendigits", "seeds", "segmentation_test", "semeion", "sonar", "vehicle", "wdbc", "wine"),
    ),
)
FULL = Profile("full", max_rows=1000, n_splits=3, n_pairs=(20, 60, 200, 1000), noise=(0.0, 0.1, 0.2))

ENTRIES: dict[str, Maker] = {}


def entry(name: str) -> Callable[[Maker], Maker]:
    """Enter a method: decorates ``make(n_components, random_state)``."""

    def register(make: Maker) -> Maker:
        ENTRIES[name] = make
        return make

    return register


# ------------------------------------------------------------------------------------------------------------ entries


@entry("raw features")
def _raw(n_components: int, random_state: int) -> Any:  # noqa: ARG001
    return FunctionTransformer()


@entry("PCA")
def _pca(n_components: int, random_state: int) -> Any:
    return PCA(n_components, random_state=random_state)


def _with_seed(cls: type[Any]) -> Maker:
    seeded = "random_state" in cls().get_params()
    return lambda n_components, random_state: cls(n_components, **({"random_state": random_state} if seeded else {}))


def library_methods() -> dict[str, Maker]:
    """Every public method of the library that makes a view of some dimensions and takes pairs."""
    classes = {name: value for name in pairlens.__all__ if inspect.isclass(value := getattr(pairlens, name))}
    return {
        name: _with_seed(cls)
        for name, cls in classes.items()
        # Maps have a league of their own: they have two dimensions only.
        if name != "PairMap"
        and "n_components" in inspect.signature(cls).parameters
        and "constraints" in inspect.signature(cls.fit).parameters
    }


ENTRIES.update(library_methods())


MOST_COMPARISONS = 1000


class Compared(TransformerMixin, BaseEstimator):
    """A learner of comparisons: the rows of a must-link are more alike than those of a cannot-link."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, X: Array, y: object = None, *, constraints: Constraints) -> Compared:
        """Read a must-link beside a cannot-link as a quadruplet; of all, as many as fit into a second are drawn."""
        must, cannot = constraints.must_link, constraints.cannot_link
        rng = np.random.default_rng(0)
        drawn = [part[rng.integers(0, len(part), MOST_COMPARISONS)] for part in (must, cannot)]
        self.learner.fit(X, quadruplets=Quadruplets(np.hstack(drawn), len(X)))
        return self

    def transform(self, X: Array) -> Array:
        """The learner's view."""
        return np.asarray(self.learner.transform(X))


@entry("LSML")
def _lsml(n_components: int, random_state: int) -> Any:
    return Compared(pairlens.LSML(n_components, random_state=random_state))


@entry("SCML")
def _scml(n_components: int, random_state: int) -> Any:
    return Compared(pairlens.SCML(n_components, random_state=random_state))


if find_spec("umap") is not None:

    class ChunkletUMAP(TransformerMixin, BaseEstimator):
        """umap-learn, semi-supervised: rows that must-links join have a common label, all others none."""

        def __init__(self, n_components: int, random_state: int) -> None:
            self.n_components, self.random_state = n_components, random_state

        def fit(self, X: Array, y: object = None, *, constraints: Constraints) -> ChunkletUMAP:
            import umap

            self.model_ = umap.UMAP(n_components=self.n_components, random_state=self.random_state)
            self.model_.fit(X, constraints.chunklets())
            return self

        def transform(self, X: Array) -> Array:
            return np.asarray(self.model_.transform(X))

    ENTRIES["umap-learn, semi-supervised"] = ChunkletUMAP

# Its release calls scikit-learn with a keyword that 1.8 removed.
if find_spec("metric_learn") is not None and "force_all_finite" in inspect.signature(check_array).parameters:

    class ReducedITML(TransformerMixin, BaseEstimator):
        """metric-learn's ITML, whose metric has full rank, and PCA of the rows it transforms."""

        def __init__(self, n_components: int, random_state: int) -> None:
            self.n_components, self.random_state = n_components, random_state

        def fit(self, X: Array, y: object = None, *, constraints: Constraints) -> ReducedITML:
            from metric_learn import ITML

            pairs = np.concatenate([constraints.must_link, constraints.cannot_link])
            kind = np.repeat([1, -1], [constraints.n_must_link, constraints.n_cannot_link])
            self.metric_ = ITML(random_state=self.random_state).fit(X[pairs], kind)
            self.pca_ = PCA(self.n_components).fit(self.metric_.transform(X))
            return self

        def transform(self, X: Array) -> Array:
            return np.asarray(self.pca_.transform(self.metric_.transform(X)))

    ENTRIES["metric-learn, ITML"] = ReducedITML


# --------------------------------------------------------------------------------------------------------------- data


def labelled_sets(names: Iterable[str] = ()) -> list[str]:
    """The sets on this machine with rows X, whole numbers y, and not more features than are taken; or those named."""
    found = []
    for name in names or datasets.names(available=True):
        try:
            X, y = datasets.load(name, download=False, return_X_y=True)
        except (OSError, ValueError):
            continue
        if y.dtype.kind in "iu" and X.shape[1] <= MOST_FEATURES:
            found.append(name)
    if missing := set(names) - set(found):
        raise SystemExit(
            f"no labelled sets of at most {MOST_FEATURES} features on this machine: {sorted(missing)}. PAIRLENS_DATA "
            "names the folder of those that are not in the repository."
        )
    return sorted(found)


@lru_cache(maxsize=2)
def load(name: str, max_rows: int) -> tuple[Array, Codes]:
    """Rows and classes, the draw of the rows fixed by the name of the set."""
    X, y = datasets.load(name, download=False, return_X_y=True)
    rows, codes = drawn_rows(y, max_rows, name)
    return X[rows].astype(np.float64), codes


def drawn_rows(y: NDArray[Any], max_rows: int, name: str) -> tuple[Codes, Codes]:
    """Return the numbers of at most `max_rows` rows, in proportion to their classes, and their classes as 0, 1, ...

    Classes with fewer than five rows are left out. The draw is fixed by the name of the set.
    """
    y = np.unique(y, return_inverse=True)[1]
    rows = np.arange(len(y))
    if len(y) > max_rows:
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        # One class after another, in random order inside each: evenly spaced rows hold the classes in proportion.
        order = np.lexsort((rng.permutation(len(y)), y))
        rows = order[np.linspace(0, len(y) - 1, max_rows).astype(np.int64)]
    rows = np.sort(rows[np.bincount(y[rows])[y[rows]] >= FEWEST_ROWS_OF_A_CLASS])
    return rows, np.unique(y[rows], return_inverse=True)[1]


@dataclass(frozen=True)
class Job:
    """One split of one set with one draw of pairs: all methods see the same."""

    set: str
    split: int
    n_pairs: int
    noise: float
    max_rows: int
    wanted: tuple[tuple[str, str], ...] = ()
    """Names of methods and of dimensions that are still missing."""
    known: tuple[Record, ...] = ()
    """What is stored already, and stays."""

    @property
    def key(self) -> str:
        """Where the records are stored."""
        return f"{self.set}/{self.split}-{self.n_pairs}-{self.noise:g}"

    def compute(self) -> list[dict[str, Any]]:
        """All records, as they are stored."""
        return [vars(record) for record in (*self.known, *run_job(self))]

    def prepare(self) -> tuple[Array, Codes, Array, Codes, Constraints]:
        """z-scored training and test rows with their classes, and the pairs."""
        X, y = load(self.set, self.max_rows)
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.4, stratify=y, random_state=1000 + self.split
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            mean, spread = np.nanmean(X_train, axis=0), np.nanstd(X_train, axis=0)
        mean = np.nan_to_num(mean)
        spread = np.where(np.nan_to_num(spread) > 0, spread, 1.0)
        # A missing cell is at the mean, which is zero afterwards.
        train, test = (np.nan_to_num((part - mean) / spread) for part in (X_train, X_test))
        everything = Constraints.from_labels(y_train)
        seed = [self.split, self.n_pairs, zlib.crc32(self.set.encode())]
        pairs = everything.sample(min(self.n_pairs, everything.n_pairs), np.random.default_rng(seed))
        return train, y_train, test, y_test, pairs.flip(self.noise, np.random.default_rng(seed))


def run_job(job: Job) -> list[Record]:
    """Score the methods on one split with one draw of pairs."""
    warnings.simplefilter("ignore")
    # Memory is measured after a collection. What is there by now, such as the modules of numba, stays, so no collection
    # need look at it: that would take longer than most fits.
    gc.collect()
    gc.freeze()
    train, y_train, test, y_test, pairs = job.prepare()
    k = int(y_test.max()) + 1
    sizes = {"2": 2, "5": 5, "k-1": min(k - 1, 10)}
    known: dict[tuple[str, int], dict[str, float | str]] = {}
    records = []
    for method, dim in job.wanted:
        d = min(sizes[dim], train.shape[1])
        if (method, d) not in known:
            known[method, d] = measure(ENTRIES[method](d, job.split), train, y_train, test, y_test, pairs, k)
        records.append(Record(job.set, job.split, job.n_pairs, job.noise, dim, method, **known[method, d]))  # type: ignore[arg-type]
    return records


def measure(
    model: Any, train: Array, y_train: Codes, test: Array, y_test: Codes, pairs: Constraints, k: int
) -> dict[str, float | str]:
    """Fit one method and score its view of the test rows; a method that fails scores zero and says why."""
    keywords = {"constraints": pairs} if "constraints" in inspect.signature(model.fit).parameters else {}
    seconds = [0.0]

    def fit() -> None:
        began = time.perf_counter()
        model.fit(train, **keywords)
        seconds[0] = time.perf_counter() - began

    try:
        memory = peak_memory(fit)
        Z, Z_test = (np.asarray(model.transform(rows), dtype=np.float64) for rows in (train, test))
        clusters = KMeans(k, n_init=4, random_state=0).fit_predict(Z_test)
        nearest = KNeighborsClassifier(1).fit(Z, y_train).score(Z_test, y_test)
    except Exception as error:
        return {
            **dict.fromkeys(("ari", "f_score", "nearest", "seconds", "memory"), 0.0),
            "error": f"{type(error).__name__}: {error}",
        }
    return {
        "ari": float(adjusted_rand_score(y_test, clusters)),
        "f_score": float(pairwise_f_score(y_test, clusters)),
        "nearest": float(nearest),
        "seconds": seconds[0],
        "memory": memory / 2**20,
        "error": "",
    }


# ---------------------------------------------------------------------------------------------------------------- runs


def _enter(modules: list[str]) -> None:
    """Take the entries of other modules."""
    for module in modules:
        importlib.import_module(module)


def read(store: Store, profile: Profile, sets: Iterable[str]) -> dict[Job, list[Record]]:
    """All jobs, with the records that are stored of each."""
    jobs = (
        Job(name, split, n_pairs, noise, profile.max_rows)
        for split in range(profile.n_splits)
        for name in sets
        for n_pairs in profile.n_pairs
        for noise in profile.noise
    )
    return {job: store.read(job, lambda row: Record(**row)) or [] for job in jobs}


def run(
    profile: Profile, sets: list[str], methods: list[str], jobs: int, modules: list[str], again: list[str]
) -> list[Record]:
    """Compute what is missing, and give all records of the methods."""
    store = Store(ROOT / "results" / f"league-{profile.name}-{profile.max_rows}")
    store.clean()
    todo = []
    for job, records in read(store, profile, sets).items():
        known = tuple(record for record in records if record.method not in again)
        done = {(record.method, record.dim) for record in known}
        if wanted := tuple((method, dim) for method in methods for dim in DIMS if (method, dim) not in done):
            todo.append(replace(job, wanted=wanted, known=known))
    with progress(len(todo)) as shown:
        for job, error in work(todo, store, jobs=jobs, prepare=partial(_enter, modules)):
            if error is not None:
                raise RuntimeError(f"{job.key} failed:\n{error}")
            shown.done(job.key)
    found = read(store, profile, sets)
    return [record for records in found.values() for record in records if record.method in methods]


def main(arguments: list[str] | None = None) -> None:
    """Run a profile, and write the page."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if NOTIONS in arguments:
        from benchmarks import notions

        notions.main([argument for argument in arguments if argument != NOTIONS])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="every labelled set, 3 splits, 12 settings")
    parser.add_argument("--maps", action="store_true", help="the league of maps, benchmarks/maps.py, and docs/maps.md")
    parser.add_argument("--mixed", action="store_true", help="mixed tables, benchmarks/mixed.py, and docs/tables.md")
    parser.add_argument(NOTIONS, action="store_true", help="benchmarks/notions.py, and docs/notions.md")
    parser.add_argument("--sets", nargs="+", default=[], help="only these data sets")
    parser.add_argument("--methods", nargs="+", default=[], help="only these methods")
    parser.add_argument("--again", nargs="+", default=[], help="methods whose results are computed again")
    parser.add_argument("--entries", nargs="+", default=[], metavar="MODULE", help="modules with further entries")
    parser.add_argument("--splits", type=int, help="fewer splits than the profile has")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only-print", action="store_true", help="leave docs/league.md alone")
    options = parser.parse_args(arguments)
    if options.maps:
        from benchmarks import maps

        maps.main(options)
        return
    if options.mixed:
        from benchmarks import mixed

        mixed.main(options)
        return
    _enter(options.entries)
    if unknown := (set(options.methods) | set(options.again)) - set(ENTRIES):
        parser.error(f"unknown methods {sorted(unknown)}; there are {', '.join(ENTRIES)}")
    profile = FULL if options.full else QUICK
    command = "make league-full" if options.full else "make league"
    if options.splits is not None:
        profile = replace(profile, n_splits=options.splits)
        command += f' ARGS="--splits {options.splits}"'
    sets = labelled_sets(options.sets or profile.sets)
    methods = options.methods or list(ENTRIES)
    wanted = run(profile, sets, methods, options.jobs, options.entries, options.again)
    picture = None if options.only_print or find_spec("matplotlib") is None else "pictures/league.png"
    text = page(wanted, command, profile.max_rows, picture)
    print(text)
    if options.only_print:
        return
    (DOCS / "league.md").write_text(text)
    if picture is not None:
        from benchmarks import league_figure

        league_figure.save(scores_by_dim(wanted), DOCS / picture)


if __name__ == "__main__":
    # Workers import this module by its name; so does this process, to share one table of entries.
    importlib.import_module("benchmarks.league").main()
