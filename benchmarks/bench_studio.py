"""Eight people who answer every 200 ms: what an answer and the next question take, and that nothing is lost.

``python -m benchmarks.bench_studio [--people 8] [--seconds 60] [--rows 1797]``

``--fits`` measures instead what the studio computes for 20,000 and 100,000 rows of 50 numbers: the first view, the
views after more answers, and the map.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from pairlens.studio.rows import Rows, rows_from_array
from pairlens.studio.run import Studio, open_store

PAUSE = 0.2
HEADERS = {"content-type": "application/json", "x-pairlens": "1"}


class Person(threading.Thread):
    """Answers by the true groups, one question every 200 ms, and notes what each took."""

    def __init__(self, name: str, url: str, groups: np.ndarray, until: float) -> None:
        super().__init__(name=name)
        base = url.partition("/?")[0]
        self.client = httpx.Client(base_url=base, headers={"origin": base}, timeout=60)
        self.client.get(url)
        self.groups = groups
        self.until = until
        self.seconds: list[float] = []
        self.waits = 0
        self.acknowledged: list[str] = []
        self.leased: list[tuple[str, tuple[int, int], float, float]] = []

    def post(self, route: str, body: dict[str, Any]) -> dict[str, Any]:
        reply = self.client.post(f"/api/{route}", json=body, headers=HEADERS)
        reply.raise_for_status()
        return dict(reply.json())

    def run(self) -> None:
        questions = self.post("next", {})["questions"]
        number = 0
        while time.monotonic() < self.until:
            began = time.monotonic()
            if not questions:
                self.waits += 1
                time.sleep(PAUSE)
                questions = self.post("next", {})["questions"]
                continue
            question = questions[0]
            i, j = (row["row"] for row in question["rows"][:2])
            number += 1
            event = f"{self.name}-{number}"
            answer = "same" if self.groups[i] == self.groups[j] else "different"
            start = time.perf_counter()
            questions = self.post("answer", {"id": event, "question": question["raw"], "answer": answer})["questions"]
            self.seconds.append(time.perf_counter() - start)
            self.acknowledged.append(event)
            self.leased.append((self.name, (min(i, j), max(i, j)), began, time.monotonic()))
            time.sleep(max(0.0, PAUSE - (time.monotonic() - began)))


def table(n_rows: int) -> tuple[Rows, np.ndarray]:
    """scikit-learn's digits, or a mixture of ten groups where more rows are asked for."""
    from sklearn.datasets import load_digits

    if n_rows == 1797:
        digits = load_digits()
        return rows_from_array(digits.data), digits.target
    rng = np.random.default_rng(0)
    groups = rng.integers(10, size=n_rows)
    return rows_from_array(rng.standard_normal((n_rows, 50)) + 2 * rng.standard_normal((10, 50))[groups]), groups


def measure(n_people: int, seconds: float, n_rows: int) -> dict[str, float]:
    """Run the studio and the people; check the store afterwards."""
    rows, groups = table(n_rows)
    names = [f"person{k}" for k in range(n_people)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "load.answers.db")
        studio = Studio.prepare(rows, open_store(path, rows), question="same", annotators=names, port=0).start()
        while not studio.call(lambda session: session.ready):
            time.sleep(0.1)
        until = time.monotonic() + seconds
        people = [Person(name, studio.urls[name], groups, until) for name in names]
        for person in people:
            person.start()
        for person in people:
            person.join()
        history = studio.call(lambda session: dict(session.history.answers))
        studio.stop()
        with open_store(path, rows) as store:
            stored = {event.id for event in store.events() if event.kind == "answer"}
    acknowledged = {event for person in people for event in person.acknowledged}
    taken = np.concatenate([person.seconds for person in people])
    pairs = Counter(
        tuple(sorted(answer.question["rows"]))
        for answer in history.values()
        if answer.question["purpose"] not in ("overlap", "repeat")
    )
    return {
        "answers": len(taken),
        "lost": len(acknowledged - stored),
        "pairs asked twice": sum(count > 1 for count in pairs.values()),
        "waits for a question": sum(person.waits for person in people),
        "median ms": 1000 * float(np.median(taken)),
        "p95 ms": 1000 * float(np.percentile(taken, 95)),
        "largest ms": 1000 * float(taken.max()),
    }


def fits(n_rows: int) -> dict[str, float]:
    """Seconds of the first view, of later ones, and of maps: the first, and one that starts from it."""
    from pairlens import Constraints
    from pairlens.asking import Lens
    from pairlens.asking.view import FitJob
    from pairlens.studio.maps import LensMapper, MapJob, by_lens, make_mapper

    rows, groups = table(n_rows)
    found: dict[str, float] = {}

    def timed(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        start = time.perf_counter()
        result = function(*arguments)
        found[name] = time.perf_counter() - start
        return result

    lens = timed("rows prepared", Lens, rows.X)
    some = np.random.default_rng(0).choice(n_rows, 80, replace=False)
    for number, n_pairs in enumerate((0, 200, 220)):
        drawn = Constraints.from_labels(groups[some], n_pairs=n_pairs, random_state=0) if n_pairs else None
        known = Constraints(
            *((some[pairs] for pairs in (drawn.must_link, drawn.cannot_link)) if drawn is not None else ()),
            n_samples=n_rows,
        )
        job = FitJob(str(number), known, n_pairs, 0)
        view = timed(f"view of {n_pairs} pairs", lens.fit, job)
        timed(f"rows in the view of {n_pairs} pairs", lens.look, view)
        if number == 0:
            mapper = LensMapper(lens) if by_lens(n_rows, False) else make_mapper(rows.X)
        if number:
            timed(f"map of {n_pairs} pairs", mapper.fit, MapJob(n_pairs, known))
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rows", type=int, default=1797)
    parser.add_argument("--fits", action="store_true")
    chosen = parser.parse_args()
    if chosen.fits:
        for n_rows in (20_000, 100_000):
            for name, seconds in fits(n_rows).items():
                print(f"{n_rows:>9,} rows {name:>30}  {seconds:6.2f} s")
        return
    for name, value in measure(chosen.people, chosen.seconds, chosen.rows).items():
        print(f"{name:>22}  {value:,.1f}")


if __name__ == "__main__":
    main()
