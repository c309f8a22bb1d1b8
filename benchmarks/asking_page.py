"""What the simulation of asking found, as tables, a picture and a page."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.maps_table import filled_page
from reproduction.figures import repeatable_style

__all__ = ["Results", "write_page"]

BEGIN = "<!-- generated: benchmarks.bench_asking -->"

Array = NDArray[np.float64]
NAMES = {
    "place": "rows placed, pair by pair",
    "placement": "rows placed on screens",
    "uncertain": "uncertain pairs",
    "random": "random pairs",
}
COLOURS = {"place": "C0", "placement": "C2", "uncertain": "C1", "random": "0.4"}


@dataclass(frozen=True)
class Results:
    """Curves of all sets, for each share of wrong answers and each strategy.

    Attributes
    ----------
    sets : tuple of str
    splits : float
        Mean number of splits of a set.
    points : array of shape (n_points,)
        Questions after which the view was judged.
    scores : dict from (noise, strategy) to an array of shape (n_sets, n_points)
    comparisons : dict of the same form
        Comparisons made until then: a screen makes several.
    seconds : float
        Processor time of all runs.
    """

    sets: tuple[str, ...]
    splits: float
    points: Array
    scores: Mapping[tuple[float, str], Array]
    comparisons: Mapping[tuple[float, str], Array]
    seconds: float

    @classmethod
    def of(cls, records: Sequence[tuple[str, float, str, Mapping[str, Any]]], points: Sequence[int]) -> Results:
        """Means over splits of records of (set, noise, strategy, result)."""
        sets = tuple(dict.fromkeys(name for name, *_ in records))
        kinds = tuple(dict.fromkeys((noise, strategy) for _, noise, strategy, _ in records))

        def table(what: str) -> dict[tuple[float, str], Array]:
            return {
                kind: np.array(
                    [
                        np.mean([r[what] for name, n, s, r in records if (name, n, s) == (wanted, *kind)], axis=0)
                        for wanted in sets
                    ]
                )
                for kind in kinds
            }

        seconds = sum(record["seconds"] for *_, record in records)
        splits = len(records) / max(len(sets) * len(kinds), 1)
        return cls(sets, splits, np.array(points, dtype=np.float64), table("scores"), table("comparisons"), seconds)

    def described(self, what: str) -> str:
        """A sentence on what was simulated."""
        splits = "one split" if self.splits == 1 else f"{self.splits:.3g} splits"
        text = f"Simulated on {len(self.sets)} {what} ({', '.join(self.sets)}), {splits} each, 200 questions."
        return textwrap.fill(text, 118)

    def area(self, kind: tuple[float, str]) -> Array:
        """Mean of each set's curve after its first point."""
        return np.asarray(self.scores[kind][:, 1:].mean(axis=1))

    def at(self, kind: tuple[float, str], questions: int) -> Array:
        """Score of each set after so many questions."""
        return np.asarray(self.scores[kind][:, int(np.flatnonzero(self.points == questions)[0])])


def _with_error(difference: Array) -> str:
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else float("nan")
    return f"{difference.mean():+.3f} ({error:.3f})"


def gain_table(results: Results) -> str:
    """Areas and scores at the end, and how far above those of random pairs."""
    lines = [
        "| wrong | questions | area | over random pairs | after 200 | over random pairs |",
        "|--:|---|--:|--:|--:|--:|",
    ]
    for noise, strategy in sorted(results.scores, key=lambda kind: (kind[0], list(NAMES).index(kind[1]))):
        kind, base = (noise, strategy), (noise, "random")
        cells = [f"{noise:.0%}", NAMES[strategy], f"{results.area(kind).mean():.3f}"]
        cells.append("" if strategy == "random" else _with_error(results.area(kind) - results.area(base)))
        cells.append(f"{results.at(kind, 200).mean():.3f}")
        cells.append("" if strategy == "random" else _with_error(results.at(kind, 200) - results.at(base, 200)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def split_table(parts: Mapping[str, Results]) -> str:
    """What placing rows gains in area in each split by itself, and in others parts of the simulation."""
    lines = ["| split | sets | 0% wrong | 10% | 20% |", "|---|--:|--:|--:|--:|"]
    for split, part in parts.items():
        noises = sorted({noise for noise, _ in part.scores})
        gains = [_with_error(part.area((noise, "place")) - part.area((noise, "random"))) for noise in noises]
        lines.append(f"| {split} | {len(part.sets)} | {' | '.join(gains)} |")
    return "\n".join(lines)


def point_table(results: Results) -> str:
    """Mean scores after some numbers of questions."""
    lines = [
        f"| wrong | questions | {' | '.join(f'{point:.0f}' for point in results.points)} |",
        f"|--:|---|{'--:|' * len(results.points)}",
    ]
    for noise, strategy in sorted(results.scores, key=lambda kind: (kind[0], list(NAMES).index(kind[1]))):
        cells = [f"{value:.3f}" for value in results.scores[noise, strategy].mean(axis=0)]
        lines.append(f"| {noise:.0%} | {NAMES[strategy]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def map_table(results: Results) -> str:
    """How far the map is above that of random pairs, and above the one without answers."""
    lines = [
        "| wrong | questions | over random pairs, 120 | 200 | over no answers, 60 | 120 | 200 |",
        "|--:|---|--:|--:|--:|--:|--:|",
    ]
    for noise, strategy in sorted(results.scores, key=lambda kind: (kind[0], list(NAMES).index(kind[1]))):
        kind = (noise, strategy)
        over = [_with_error(results.at(kind, at) - results.at((noise, "random"), at)) for at in (120, 200)]
        over = ["", ""] if strategy == "random" else over
        gained = [_with_error(results.at(kind, at) - results.at(kind, 0)) for at in (60, 120, 200)]
        lines.append(f"| {noise:.0%} | {NAMES[strategy]} | {' | '.join([*over, *gained])} |")
    return "\n".join(lines)


def needs(results: Results, noise: float, strategy: str) -> tuple[float, float] | None:
    """Questions, and comparisons, after which the mean curve stays at what 200 random pairs reach; None if never."""
    goal = results.at((noise, "random"), 200).mean()
    curve = results.scores[noise, strategy].mean(axis=0)
    told = results.comparisons[noise, strategy].mean(axis=0)
    reached = np.flatnonzero(curve >= goal)
    if not len(reached):
        return None
    at = int(reached[0])
    if at == 0:
        return 0.0, 0.0
    share = (goal - curve[at - 1]) / (curve[at] - curve[at - 1])
    return tuple(  # type: ignore[return-value]
        float(values[at - 1] + share * (values[at] - values[at - 1])) for values in (results.points, told)
    )


def needs_table(results: Results) -> str:
    """What it takes to reach the score of 200 random pairs."""
    lines = ["| wrong | questions | needed | comparisons in them |", "|--:|---|--:|--:|"]
    for noise, strategy in sorted(results.scores, key=lambda kind: (kind[0], list(NAMES).index(kind[1]))):
        if strategy == "random":
            continue
        found = needs(results, noise, strategy)
        cells = ("more than 200", "") if found is None else (f"{found[0]:.0f}", f"{found[1]:.0f}")
        lines.append(f"| {noise:.0%} | {NAMES[strategy]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(results: Results) -> Any:
    """A Matplotlib figure: a panel for each share of wrong answers, and one with comparisons counted."""
    from matplotlib.figure import Figure

    noises = sorted({noise for noise, _ in results.scores})
    figure = Figure(figsize=(3.6 * (len(noises) + 1), 3.4), layout="constrained")
    panels = figure.subplots(1, len(noises) + 1, sharey=True)
    for panel, noise in zip(panels, noises):
        for strategy in NAMES:
            panel.plot(
                results.points, results.scores[noise, strategy].mean(axis=0), color=COLOURS[strategy],
                label=NAMES[strategy],
            )  # fmt: skip
        panel.set_title(f"{noise:.0%} wrong")
        panel.set_xlabel("questions")
        panel.grid(alpha=0.3)
    for strategy in NAMES:
        kind = (noises[0], strategy)
        panels[-1].plot(
            results.comparisons[kind].mean(axis=0), results.scores[kind].mean(axis=0), color=COLOURS[strategy]
        )
    panels[-1].set_title(f"{noises[0]:.0%} wrong, comparisons counted")
    panels[-1].set_xlabel("comparisons")
    panels[-1].set_xlim(0, 400)
    panels[-1].grid(alpha=0.3)
    panels[0].set_ylabel("mean ARI of rows never asked about")
    panels[0].legend(loc="lower right", fontsize=8)
    return figure


GAINS = """\
## What it gains

{simulated}

The score is the ARI of LinearPairLens with k - 1 directions on rows that were never asked about, after every ten
questions. The area is the mean of that curve. Standard errors of paired differences over sets are in brackets.

{gains}

So placing rows gains {clean:+.3f} of area with clean answers and {noisy:+.3f} with one answer in ten wrong; on screens
{clean_screens:+.3f} and {noisy_screens:+.3f}. Uncertain pairs gain {clean_uncertain:+.3f} and {noisy_uncertain:+.3f}.
The gain of rows placed pair by pair differs between splits:

{by_split}

![Mean ARI over the number of questions](pictures/asking.png)

The number of questions needed to reach the score of 200 random pairs, on the mean curve (0: the view without answers is
as good):

{needs}

A screen shows a row beside one representative of up to eight groups. It counts as one question, and as one comparison
for each representative.

## Compared with other methods

![Mean ARI of all rows over the number of questions](pictures/asking_peers.png)

`Asker.predict()` returns the group of every row. [A group for every row](clusters.md) compares it with COBRAS,
PCKMeans, COP-KMeans, SKKMeans, label spreading, k-means and HDBSCAN. """

MAP = """
## On the map

{simulated}

The table has the ARI of rows that were never asked about, on the map that PairMap makes of all rows (at most 500), by
number of questions:

{points}

Differences, with standard errors over sets:

{gains}
"""

PREFER = """
## Preferences

`PreferenceAsker` asks which of two rows is better. It chooses the pair whose order is most informative about a linear
ranking, half of the time among the rows near the top. The score is the share of pairs that RankSVM orders correctly,
among rows that were never asked about and with one row of each pair in the top tenth.

{simulated}

{gains}
"""

RUN = """
`python -m benchmarks.bench_asking{options}` runs this in {minutes:.0f} minutes of processor time.
"""


def page(results: Mapping[str, Results], parts: Mapping[str, Results]) -> str:
    """Return the measured part of the page in Markdown; `parts` are the results of the lens, by split."""
    lens = results["lens"]
    gain = {kind: (lens.area(kind) - lens.area((kind[0], "random"))).mean() for kind in lens.scores}
    text = GAINS.format(
        simulated=lens.described("labelled sets"),
        gains=gain_table(lens),
        clean=gain[0.0, "place"],
        noisy=gain[0.1, "place"],
        by_split=split_table(parts),
        clean_screens=gain[0.0, "placement"],
        noisy_screens=gain[0.1, "placement"],
        clean_uncertain=gain[0.0, "uncertain"],
        noisy_uncertain=gain[0.1, "uncertain"],
        needs=needs_table(lens),
    )
    if "map" in results:
        seen = results["map"]
        text += MAP.format(simulated=seen.described("of these sets"), points=point_table(seen), gains=map_table(seen))
    if "prefer" in results:
        ranked = results["prefer"]
        gains = gain_table(ranked).replace(NAMES["uncertain"], "least sure order")
        text += PREFER.format(simulated=ranked.described("sets with scores"), gains=gains)
    options = f" --views {' '.join(results)} --splits {max(found.splits for found in results.values()):.0f}"
    return text + RUN.format(options=options, minutes=sum(found.seconds for found in results.values()) / 60)


def write_page(results: Mapping[str, Results], parts: Mapping[str, Results], docs: Path | None) -> None:
    """Print the tables, and write the page and its picture if a folder is given. Parameters as :func:`page`."""
    for view, found in results.items():
        print(f"\n{view}: {len(found.sets)} sets, {found.seconds / 60:.0f} minutes of processor time\n")
        tables = [gain_table, needs_table] if view != "map" else [point_table, map_table]
        if "random" not in {strategy for _, strategy in found.scores}:
            tables = [point_table]
        print("\n\n".join(table(found) for table in tables))
    if docs is not None and "lens" in results:
        path = docs / "asking.md"
        path.write_text(filled_page(path.read_text(encoding="utf-8"), page(results, parts), BEGIN), encoding="utf-8")
        with repeatable_style():
            draw(results["lens"]).savefig(docs / "pictures" / "asking.png", metadata={"Software": None})
