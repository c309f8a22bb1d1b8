"""The league of mixed tables: how good is the view where columns are words, dates and texts as well as numbers?

    python -m benchmarks.league --mixed            # 14 tables, 4 splits, ten minutes on one core
    python -m benchmarks.league --mixed --sets penguins heart --only-print

Fills its part of docs/tables.md. Results are kept as they come, and a run that was stopped goes on where it was.

Protocol. The tables of benchmarks/mixed_sets.py, at most 400 rows of each, in proportion to their classes; classes with
fewer than five rows are left out. 60/40 stratified splits; TableEncoder is fitted to the training rows, and every
method gets what it makes of them. Pairs of training rows are drawn uniformly and named by label. ARI as in the league:
k-means with the true number of classes on the projected test rows. d is 2 and min(k - 1, 10).

The balance of TableEncoder was chosen on half of the tables (CHOSEN_ON), looking at test scores; the other half
confirms. The page tells the halves apart.
"""

from __future__ import annotations

import sys
import time
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split

from benchmarks.league import DOCS, ROOT, Codes, Maker, drawn_rows
from benchmarks.maps_table import filled_page
from benchmarks.measure import compute
from benchmarks.mixed_sets import mixed_sets
from pairlens import WBDR, Constraints, KernelWBDR, LinearPairLens, PairLens, PairMap, TableEncoder
from reproduction.tasks import Store

BEGIN = "<!-- generated: benchmarks.league --mixed -->"
MOST_ROWS = 400
SPLITS = 4
N_PAIRS = (20, 60, 200)
DIMS = ("2", "k-1")
OURS = "PairLens"
RIVALS = ("WBDR", "KernelWBDR", "PCA")
METHODS: dict[str, Maker] = {
    OURS: lambda d, seed: PairLens(d, standardize=False, random_state=seed),
    "PairMap, two dimensions": lambda d, seed: PairMap(standardize=False, random_state=seed),
    "LinearPairLens": lambda d, seed: LinearPairLens(d, standardize=False, random_state=seed),
    "KernelWBDR": lambda d, seed: KernelWBDR(d),
    "WBDR": lambda d, seed: WBDR(d),
    "PCA": lambda d, seed: PCA(d, random_state=seed),
}
CHOSEN_ON = ("customers", "heart", "kddcup99_subset", "labor", "machines", "monks1", "products")


@dataclass(frozen=True)
class Score:
    """One view of one split; `error` is empty if all went well, and the score is zero otherwise."""

    set: str
    split: int
    n_pairs: int
    dim: str
    method: str
    ari: float
    seconds: float
    error: str


@lru_cache(maxsize=2)
def load(name: str) -> tuple[Any, Codes]:
    """Table and classes, the draw of the rows fixed by the name of the set."""
    table, y = mixed_sets()[name]()
    rows, codes = drawn_rows(y, MOST_ROWS, name)
    return table.iloc[rows].reset_index(drop=True), codes


@dataclass(frozen=True)
class MixedJob:
    """One split of one table with one draw of pairs: all methods see the same."""

    set: str
    split: int
    n_pairs: int

    @property
    def key(self) -> str:
        """Where the scores are stored."""
        return f"{self.set}/{self.split}-{self.n_pairs}"

    def compute(self) -> list[dict[str, Any]]:
        """The scores of all methods."""
        warnings.simplefilter("ignore")
        table, y = load(self.set)
        train, test = train_test_split(np.arange(len(y)), test_size=0.4, stratify=y, random_state=1000 + self.split)
        encoder = TableEncoder().fit(table.iloc[train])
        rows, new = encoder.transform(table.iloc[train]), encoder.transform(table.iloc[test])
        everything = Constraints.from_labels(y[train])
        seed = [self.split, self.n_pairs, zlib.crc32(self.set.encode())]
        pairs = everything.sample(min(self.n_pairs, everything.n_pairs), np.random.default_rng(seed))
        k = int(y.max()) + 1
        found: dict[tuple[str, int], tuple[float, float, str]] = {}
        scores = []
        for dim, size in zip(DIMS, (2, min(k - 1, 10))):
            d = min(size, rows.shape[1])
            for method, make in METHODS.items():
                if (method, d) not in found:
                    found[method, d] = measure(make(d, self.split), rows, new, y[test], pairs)
                scores.append(Score(self.set, self.split, self.n_pairs, dim, method, *found[method, d]))
        return [asdict(score) for score in scores]


def measure(model: Any, rows: Any, new: Any, y: Codes, pairs: Constraints) -> tuple[float, float, str]:
    """ARI of the test rows, processor time of the fit, and what went wrong."""
    keywords = {} if isinstance(model, PCA) else {"constraints": pairs}
    began = time.process_time()
    try:
        model.fit(rows, **keywords)
        seconds = time.process_time() - began
        clusters = KMeans(int(y.max()) + 1, n_init=4, random_state=0).fit_predict(np.asarray(model.transform(new)))
    except Exception as error:
        return 0.0, 0.0, f"{type(error).__name__}: {error}"
    return float(adjusted_rand_score(y, clusters)), seconds, ""


def run(sets: Iterable[str], splits: int, jobs: int, again: bool) -> list[Score]:
    """Compute what is missing, and give all scores."""
    store = Store(ROOT / "results" / "mixed")
    store.clean()
    tasks = [MixedJob(name, split, n) for split in range(splits) for name in sets for n in N_PAIRS]
    todo = tasks if again else list(store.unfinished(tasks))
    compute(todo, store, jobs)
    return [score for task in tasks for score in store.read(task, lambda row: Score(**row)) or []]


def means(scores: Iterable[Score]) -> dict[tuple[str, str, int], float]:
    """Mean ARI by method, dimensions and number of pairs: over the splits of a set first, then over sets."""
    by_set: dict[tuple[str, str, int], dict[str, list[float]]] = {}
    for score in scores:
        by_set.setdefault((score.method, score.dim, score.n_pairs), {}).setdefault(score.set, []).append(score.ari)
    return {key: float(np.mean([np.mean(values) for values in found.values()])) for key, found in by_set.items()}


def as_table(scores: list[Score]) -> list[str]:
    """Mean ARI by setting as Markdown, and the distance to the best rival."""
    found = means(scores)
    settings = [(dim, n) for dim in DIMS for n in N_PAIRS]
    best = {s: max(found[m, *s] for m in METHODS) for s in settings}
    lines = [
        "| ARI | " + " | ".join(f"d = {dim}, {n} pairs" for dim, n in settings) + " | all |",
        "|---|" + "--:|" * (len(settings) + 1),
    ]
    for method in METHODS:
        values = [found[method, *setting] for setting in settings]
        cells = [f"**{v:.3f}**" if v == best[s] else f"{v:.3f}" for v, s in zip(values, settings)]
        lines.append(f"| {method} | " + " | ".join([*cells, f"{np.mean(values):.3f}"]) + " |")
    gaps = [found[OURS, *s] - max(found[rival, *s] for rival in RIVALS) for s in settings]
    lines.append(f"| {OURS} less the best of {', '.join(RIVALS)} | " + " | ".join(f"{g:+.3f}" for g in gaps) + " | |")
    return lines


def page(scores: list[Score], command: str) -> str:
    """The generated part of the page."""
    sets = sorted({score.set for score in scores})
    halves = {
        "All tables": sets,
        "Those that the balance was chosen on": [name for name in sets if name in CHOSEN_ON],
        "The others, run after that": [name for name in sets if name not in CHOSEN_ON],
    }
    lines = [f"`{command}`: {len({score.split for score in scores})} splits, at most {MOST_ROWS} rows of each table."]
    for title, names in halves.items():
        if names:
            chosen = [score for score in scores if score.set in names]
            lines += ["", f"{title} ({', '.join(names)}):", "", *as_table(chosen)]
    return "\n".join(lines) + "\n"


def main(options: Any) -> None:
    """Run the league and fill the page."""
    known = list(mixed_sets())
    if unknown := set(options.sets) - set(known):
        raise SystemExit(f"unknown tables {sorted(unknown)}; there are {', '.join(known)}")
    splits = SPLITS if options.splits is None else options.splits
    scores = run(options.sets or known, splits, options.jobs, bool(options.again))
    for score in scores:
        if score.error:
            print(f"{score.method} on {score.set}, {score.n_pairs} pairs: {score.error}", file=sys.stderr)
    given = "--mixed" if options.splits is None else f"--mixed --splits {options.splits}"
    text = page(scores, f'make league ARGS="{given}"')
    print(text)
    if not options.only_print and not options.sets:
        path = DOCS / "tables.md"
        path.write_text(filled_page(path.read_text(), text, BEGIN))
