"""Asking: how much more do chosen questions teach than random pairs, and how many does one need?

    python -m benchmarks.bench_asking --splits 6            # 34 sets, six splits: 70 minutes; writes docs/asking.md
    python -m benchmarks.bench_asking --quick               # 8 sets, one split; prints the tables
    python -m benchmarks.bench_asking --views lens map      # the picture of PairMap too
    python -m benchmarks.bench_asking --only-print          # from the results that are there

Data come from the folder in the environment variable ``PAIRLENS_DATA``. Every run goes to a file (``--results``) as
soon as it is there, so what was stopped goes on where it was. ``--sets``, ``--splits`` and ``--strategies`` run less.

Protocol. Of sets with more than 1000 rows (500 for the map) so many are drawn, in proportion to their classes. 60 % of
the rows can be asked about; the others are judged and never asked about. 200 questions are answered by the labels, a
share of them wrongly, the same way each time. After every ten the view is fitted with ``asker.constraints()``, and
k-means with the true number of classes on the judged rows gives the adjusted Rand index (ARI). The lens is
LinearPairLens with k - 1 directions, fitted to the rows that can be asked about; the map is PairMap of all rows, after
0, 30, 60, 120 and 200 questions, for placed rows and random pairs, clean and with 10 % wrong answers. The area under a
curve is the mean of its points after the first. Preferences are answered by a score; the share of pairs of judged rows,
one of them in the top tenth, that RankSVM orders rightly is measured.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.asking_page import Results, write_page
from benchmarks.measure import read_lines, run_lines
from pairlens import LinearPairLens, RankSVM
from pairlens.asking import Asker, PreferenceAsker, Question
from reproduction.datasets import load

ROOT = Path(__file__).parent
SETS = (
    *("balance", "breast", "glass", "heart", "ionosphere", "iris", "letter_abcd", "mfeat_zer", "pendigits", "seeds"),
    *("segmentation_test", "vehicle", "wdbc", "wine", "coil20", "mfeat_fac", "usps", "semeion"),
    *("climate", "digits", "hepatitis", "hill_valley_noise", "hill_valley_noise_test", "kddcup99_subset", "krvskp"),
    *("labor", "letter", "mfeat_fou", "mfeat_kar", "mfeat_mor", "monks1", "monks2", "monks3", "sonar"),
)
"""18 labelled sets, and every other one with at most 100 features. Of `kddcup99_10pct` some classes have one row."""
QUICK_SETS = ("breast", "glass", "letter_abcd", "mfeat_zer", "pendigits", "segmentation_test", "vehicle", "wine")
SCORED_SETS = ("diabetes", "pyrimidines", "triazines", "linear")
STRATEGIES = {
    "lens": ("place", "random", "uncertain", "placement"),
    "map": ("place", "random"),
    "prefer": ("uncertain", "random"),
}
NOISE = {"lens": (0.0, 0.1, 0.2), "map": (0.0, 0.1), "prefer": (0.0, 0.1, 0.2)}
ALL = list(STRATEGIES["lens"])
RESULTS = ROOT / "results" / "asking.jsonl"
MOST_ROWS = {"lens": 1000, "map": 500}
N_QUESTIONS = 200
WITHOUT_ANSWERS: dict[int, float] = {}
"""Scores of maps that know no answer, which is the same one for all strategies and shares of mistakes."""
POINTS = {
    "lens": tuple(range(0, N_QUESTIONS + 1, 10)),
    "map": (0, 30, 60, 120, 200),
    "prefer": tuple(range(0, N_QUESTIONS + 1, 10)),
}
Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """One run."""

    view: str
    name: str
    split: int
    noise: float
    strategy: str

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        return "/".join(map(str, (self.view, self.name, self.split, self.noise, self.strategy)))

    @property
    def seed(self) -> int:
        """The same for all strategies."""
        return zlib.crc32(f"{self.name}/{self.split}".encode())


def labelled_rows(name: str, split: int, most: int) -> tuple[Array, Codes, Array, Codes]:
    """Rows that can be asked about and rows that are judged, with their classes."""
    X, y = load(name, return_X_y=True)
    y = np.unique(y, return_inverse=True)[1]
    keep = np.bincount(y)[y] >= 5
    X, y = np.asarray(X, dtype=np.float64)[keep], np.unique(y[keep], return_inverse=True)[1]
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    if len(X) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=zlib.crc32(name.encode()))
    asked, judged, y_asked, y_judged = train_test_split(X, y, test_size=0.4, stratify=y, random_state=split)
    return asked, y_asked, judged, y_judged


def scored_rows(name: str, split: int) -> tuple[Array, Array, Array, Array]:
    """The same with scores in place of classes."""
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
    elif name == "linear":
        rng = np.random.default_rng(0)
        X = rng.standard_normal((500, 30))
        y = X @ rng.standard_normal(30) + 2 * rng.standard_normal(500)
    else:
        X, y = load(name, return_X_y=True)
    scaled = StandardScaler().fit_transform(X)
    asked, judged, y_asked, y_judged = train_test_split(scaled, y, test_size=0.4, random_state=split)
    return asked, y_asked, judged, y_judged


def answer(question: Question, y: NDArray[Any], noise: float, seed: int) -> str:
    """The true answer, or with some probability a wrong one: always the same for the same rows."""
    if question.kind == "prefer":
        first, second = (y[row] for row in question.rows)
        true = "equal" if first == second else "left" if first > second else "right"
    else:
        same = [i for i, row in enumerate(question.rows[1:], start=1) if y[row] == y[question.rows[0]]]
        yes, no = (str(same[0]) if same else "", "none") if question.kind == "place" else ("same", "different")
        true = yes if same else no
    rng = np.random.default_rng([seed, 5, *sorted(question.rows)])
    if rng.random() >= noise:
        return true
    others = [word for word in question.answers if word not in (true, "unsure", "equal")]
    return others[int(rng.integers(len(others)))]


def judged_by_lens(asker: Any, X: Array, judged: Array, y: Codes, seed: int) -> float:
    """ARI of the judged rows, projected by LinearPairLens."""
    k = int(y.max()) + 1
    model = LinearPairLens(min(k - 1, X.shape[1]), random_state=seed).fit(X, constraints=asker.constraints())
    return float(adjusted_rand_score(y, KMeans(k, n_init=4, random_state=seed).fit_predict(model.transform(judged))))


def judged_by_map(asker: Any, X: Array, judged: Array, y: Codes, seed: int) -> float:
    """ARI of the judged rows on the map of all rows."""
    from pairlens import PairMap

    k = int(y.max()) + 1
    rows = np.vstack([X, judged])
    known = asker.constraints().with_n_samples(len(rows))
    if not known.n_pairs and seed in WITHOUT_ANSWERS:
        return WITHOUT_ANSWERS[seed]
    place = PairMap(random_state=seed).fit_transform(rows, constraints=known)[len(X) :]
    score = float(adjusted_rand_score(y, KMeans(k, n_init=4, random_state=seed).fit_predict(place)))
    if not known.n_pairs:
        WITHOUT_ANSWERS[seed] = score
    return score


def judged_by_order(asker: Any, X: Array, judged: Array, y: Array, seed: int) -> float:
    """Share of pairs of judged rows with one of the top tenth that RankSVM orders rightly."""
    known = asker.preferences()
    if known.n_pairs == 0:
        return 0.5
    score = RankSVM(random_state=seed).fit(X, preferences=known).predict(judged)
    top = y >= np.quantile(y, 0.9)
    i, j = np.nonzero(top[:, None] & (y[:, None] > y))
    right = (score[i] > score[j]) + 0.5 * (score[i] == score[j])
    return float(right.mean())


JUDGES: dict[str, Callable[..., float]] = {
    "lens": judged_by_lens,
    "map": judged_by_map,
    "prefer": judged_by_order,
}


def run(task: Task) -> dict[str, Any]:
    """The curve of one run."""
    start = time.process_time()
    asker: Any
    X: Any
    y: Any
    y_judged: Any
    if task.view == "prefer":
        X, y, judged, y_judged = scored_rows(task.name, task.split)
    else:
        X, y, judged, y_judged = labelled_rows(task.name, task.split, MOST_ROWS[task.view])
    strategy: Any = "place" if task.strategy == "placement" else task.strategy
    scores, comparisons, told = [], [], 0
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if task.view == "prefer":
            asker = PreferenceAsker(X, strategy=strategy, random_state=task.seed)
        else:
            screen: Any = "placement" if task.strategy == "placement" else "pair"
            asker = Asker(X, strategy=strategy, screen=screen, random_state=task.seed)
        for number in range(N_QUESTIONS + 1):
            if number in POINTS[task.view]:
                scores.append(JUDGES[task.view](asker, X, judged, y_judged, task.seed))
                comparisons.append(told)
            question = asker.ask()
            if question is not None:
                asker.tell(question, answer(question, y, task.noise, task.seed))
                told += len(question.pairs)
    result = {"key": task.key, "scores": scores, "comparisons": comparisons, "seconds": time.process_time() - start}
    if task.view != "prefer":
        result |= {"groups": len(asker.groups_), "classes": int(y.max()) + 1, "error_rate": asker.error_rate_}
    return result


def run_all(tasks: list[Task], path: Path, jobs: int) -> dict[str, dict[str, Any]]:
    """Do what is missing, and return all that is there."""
    done = {record["key"] for record in read_lines(path)}
    records = run_lines(run, [task for task in tasks if task.key not in done], path, jobs)
    return {record["key"]: record for record in records}


def tasks_of(views: list[str], sets: tuple[str, ...], splits: int, strategies: list[str]) -> list[Task]:
    """All runs."""
    return [
        Task(view, name, split, noise, strategy)
        for view in views
        for split in range(splits)
        for name in (SCORED_SETS if view == "prefer" else sets)
        for noise in NOISE[view]
        for strategy in STRATEGIES[view]
        if strategy in strategies
    ]


def simulate(tasks: list[Task], path: Path, *, only_print: bool = False, jobs: int = 1, docs: Path | None) -> None:
    """Run what is missing, and show all."""
    done = run_all([] if only_print else tasks, path, jobs)
    # A split of a set counts when all of its runs are there.
    unfinished = {(task.view, task.name, task.split) for task in tasks if task.key not in done}
    results, parts = {}, {}
    for view in dict.fromkeys(task.view for task in tasks):
        finished = [task for task in tasks if task.view == view and (view, task.name, task.split) not in unfinished]
        if finished:
            results[view] = _results(finished, done)
        if view == "lens":
            parts = _parts(finished, done)
    write_page(results, parts, docs)


def _parts(tasks: list[Task], done: dict[str, dict[str, Any]]) -> dict[str, Results]:
    """The results of each split, and those of the sets that have all splits."""
    splits = sorted({task.split for task in tasks})
    parts = {str(split): _results([task for task in tasks if task.split == split], done) for split in splits}
    of_set = {name: {task.split for task in tasks if task.name == name} for name in {task.name for task in tasks}}
    whole = [task for task in tasks if len(of_set[task.name]) == len(splits)]
    if 0 < len(whole) < len(tasks):
        parts["all, of sets with every split"] = _results(whole, done)
    return parts


def _results(tasks: list[Task], done: dict[str, dict[str, Any]]) -> Results:
    """The results of finished runs of one view."""
    records = [(task.name, task.noise, task.strategy, done[task.key]) for task in tasks]
    return Results.of(records, POINTS[tasks[0].view])


def main(quick: bool = False) -> None:  # noqa: ARG001
    """What `make bench` runs: the quick simulation, whose tables are printed."""
    simulate(tasks_of(["lens", "prefer"], QUICK_SETS, 1, ALL), RESULTS, docs=None)


def command() -> None:
    """What ``python -m benchmarks.bench_asking`` runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--views", nargs="+", choices=list(JUDGES), default=["lens", "prefer"])
    parser.add_argument("--sets", type=int, default=len(SETS), help="how many, the quick ones first")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--strategies", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only-print", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    whole = not chosen.quick and set(chosen.strategies) == set(ALL)
    simulate(
        tasks_of(
            chosen.views,
            *((QUICK_SETS, 1) if chosen.quick else (SETS[: chosen.sets], chosen.splits)),
            chosen.strategies,
        ),
        chosen.results,
        only_print=chosen.only_print,
        jobs=chosen.jobs,
        docs=ROOT.parent / "docs" if whole else None,
    )


if __name__ == "__main__":
    command()
