"""Asking: how much more do chosen questions teach than random pairs, and how many does one need?

    python -m benchmarks.bench_asking                  # 20 sets, writes docs/asking.md and its picture
    python -m benchmarks.bench_asking --quick          # 8 sets, one split, prints only
    python -m benchmarks.bench_asking --only-print     # from the results that are there

Every run goes to a file in ``benchmarks/results`` as soon as it is there, so what was stopped goes on where it was.

Protocol. Of sets with more than 1000 rows so many are drawn, in proportion to their classes. 60 % of the rows can be
asked about; the others are only projected and judged. 200 questions, answered by the labels, of which a share is
answered wrongly, the same way each time. After every 10 answers LinearPairLens with k - 1 directions is fitted with
``asker.constraints()`` to the rows that can be asked about; k-means with the true number of classes on the projected
other rows gives the adjusted Rand index. The area under its curve is the mean over the 20 points. Standard errors are
those of paired differences over sets.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from pairlens import LinearPairLens
from pairlens.asking import Asker, Lens, Question
from pairlens.datasets import load

ROOT = Path(__file__).parent
RESULTS = ROOT / "results"
SETS = (
    *("balance", "breast", "coil20", "glass", "heart", "ionosphere", "iris", "isolet5", "letter_abcd", "mfeat_fac"),
    *("mfeat_zer", "pendigits", "seeds", "segmentation_test", "semeion", "umist", "usps", "vehicle", "wdbc", "wine"),
)
QUICK_SETS = ("breast", "glass", "letter_abcd", "mfeat_zer", "pendigits", "segmentation_test", "vehicle", "wine")
STRATEGIES = ("place", "random", "uncertain", "placement")
NOISE = (0.0, 0.1, 0.2)
MOST_ROWS = 1000
N_QUESTIONS = 200
EVERY = 10
Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """One run."""

    name: str
    split: int
    noise: float
    strategy: str

    @property
    def key(self) -> str:
        return f"{self.name}/{self.split}/{self.noise}/{self.strategy}"


def rows_of(name: str, split: int) -> tuple[Array, Codes, Array, Codes]:
    """Rows that can be asked about and rows that are judged, with their classes."""
    X, y = load(name, return_X_y=True)
    y = np.unique(y, return_inverse=True)[1]
    X = np.asarray(X, dtype=np.float64)
    keep = np.bincount(y)[y] >= 5
    X, y = X[keep], np.unique(y[keep], return_inverse=True)[1]
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    if len(X) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=zlib.crc32(name.encode()))
    asked, judged, y_asked, y_judged = train_test_split(X, y, test_size=0.4, stratify=y, random_state=split)
    return asked, y_asked, judged, y_judged


def answer(question: Question, y: Codes, noise: float, seed: int) -> str:
    """The true answer, or with some probability a wrong one: always the same for the same rows."""
    same = [i for i, row in enumerate(question.rows[1:], start=1) if y[row] == y[question.rows[0]]]
    yes, no = (str(same[0]) if same else "", "none") if question.kind == "place" else ("same", "different")
    true = yes if same else no
    rng = np.random.default_rng([seed, 5, *sorted(question.rows)])
    if rng.random() >= noise:
        return true
    others = [word for word in question.answers if word not in (true, "unsure")]
    return others[int(rng.integers(len(others)))]


def judged_by_lens(X: Array, asker: Asker, judged: Array, y: Codes, seed: int) -> float:
    """ARI of judged rows in the view that LinearPairLens learns from what was answered."""
    k = int(y.max()) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearPairLens(min(k - 1, X.shape[1]), random_state=seed).fit(X, constraints=asker.constraints())
        Z = model.transform(judged)
        found = KMeans(k, n_init=4, random_state=seed).fit_predict(Z)
    return float(adjusted_rand_score(y, found))


Judge = Callable[[Array, Asker, Array, Codes, int], float]


def run(task: Task, judge: Judge = judged_by_lens) -> dict[str, Any]:
    """The curve of one run."""
    X, y, judged, y_judged = rows_of(task.name, task.split)
    seed = zlib.crc32(f"{task.name}/{task.split}".encode())
    screen = "placement" if task.strategy == "placement" else "pair"
    strategy: Any = "place" if task.strategy == "placement" else task.strategy
    start = time.process_time()
    with threadpool_limits(1):
        asker = Asker(X, strategy=strategy, screen=screen, random_state=seed, lens=Lens(X))  # type: ignore[arg-type]
        scores, comparisons, told = [judge(X, asker, judged, y_judged, seed)], [0], 0
        for number in range(1, N_QUESTIONS + 1):
            question = asker.ask()
            if question is not None:
                asker.tell(question, answer(question, y, task.noise, seed))
                told += len(question.pairs)
            if number % EVERY == 0:
                scores.append(judge(X, asker, judged, y_judged, seed))
                comparisons.append(told)
    return {
        "key": task.key,
        "scores": scores,
        "comparisons": comparisons,
        "groups": len(asker.groups_),
        "classes": int(y.max()) + 1,
        "error_rate": asker.error_rate_,
        "seconds": time.process_time() - start,
    }


def stored(path: Path) -> dict[str, dict[str, Any]]:
    """The runs that are there."""
    if not path.exists():
        return {}
    records = (json.loads(line) for line in path.read_text().splitlines() if line.endswith("}"))
    return {record["key"]: record for record in records}


def run_all(tasks: list[Task], path: Path, jobs: int) -> dict[str, dict[str, Any]]:
    """Do what is missing."""
    path.parent.mkdir(exist_ok=True)
    done = stored(path)
    missing = [task for task in tasks if task.key not in done]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool, path.open("a") as file:
        for number, future in enumerate(as_completed([pool.submit(run, task) for task in missing]), start=1):
            record = future.result()
            done[record["key"]] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(f"{number}/{len(missing)} {record['key']} {np.mean(record['scores'][1:]):.3f}", flush=True)
    return {task.key: done[task.key] for task in tasks}


def tasks_of(sets: tuple[str, ...], splits: int, noise: tuple[float, ...] = NOISE) -> Iterator[Task]:
    for name in sets:
        for split in range(splits):
            for share in noise:
                for strategy in STRATEGIES:
                    yield Task(name, split, share, strategy)


def curves(records: dict[str, dict[str, Any]], tasks: list[Task]) -> dict[tuple[float, str], Array]:
    """Mean curve of each set: (noise, strategy) to an array of shape (sets, points)."""
    found: dict[tuple[float, str], dict[str, list[list[float]]]] = {}
    for task in tasks:
        by_set = found.setdefault((task.noise, task.strategy), {})
        by_set.setdefault(task.name, []).append(records[task.key]["scores"])
    return {key: np.array([np.mean(runs, axis=0) for runs in by_set.values()]) for key, by_set in found.items()}


def area(curve: Array) -> Array:
    return np.asarray(curve[:, 1:].mean(axis=1))


def table(found: dict[tuple[float, str], Array]) -> str:
    """Area over random pairs, and at the end."""
    lines = [
        "| wrong | strategy | area | over random pairs | at 200 | over random pairs |",
        "|--:|---|--:|--:|--:|--:|",
    ]
    for (noise, strategy), curve in sorted(found.items()):
        base = found[noise, "random"]
        gain, last = area(curve) - area(base), curve[:, -1] - base[:, -1]
        error = [d.std(ddof=1) / np.sqrt(len(d)) if len(d) > 1 else float("nan") for d in (gain, last)]
        lines.append(
            f"| {noise:.0%} | {strategy} | {area(curve).mean():.3f} | {gain.mean():+.3f} ({error[0]:.3f}) | "
            f"{curve[:, -1].mean():.3f} | {last.mean():+.3f} ({error[1]:.3f}) |"
        )
    return "\n".join(lines)


def main(quick: bool = False) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", default=quick)
    parser.add_argument("--only-print", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args([] if quick else None)
    tasks = list(tasks_of(QUICK_SETS, 1) if arguments.quick else tasks_of(SETS, 2))
    path = RESULTS / "asking.jsonl"
    if arguments.only_print:
        done = stored(path)
        complete = {task.name for task in tasks} - {task.name for task in tasks if task.key not in done}
        tasks = [task for task in tasks if task.name in complete]
        records = done
    else:
        records = run_all(tasks, path, arguments.jobs)
    print(table(curves(records, tasks)))


if __name__ == "__main__":
    main()
