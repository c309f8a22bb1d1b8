"""What the simulation of asking found, as tables, a picture and a page."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.figures import repeatable_style

__all__ = ["Results", "write_page"]

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


PAGE = """\
# Which question next

`pairlens.asking.Asker` chooses what to ask: in a notebook, by `pairlens ask` in a terminal, or behind your own page.

```python
from pairlens import PairLens
from pairlens.asking import Asker

asker = Asker(X, random_state=0)
while (question := asker.ask()) is not None:
    print("Rows", *question.rows)
    answer = input("same, different, unsure, or nothing to end? ")
    if not answer:
        break
    asker.tell(question, answer)
view = PairLens(2).fit_transform(X, constraints=asker.constraints())
```

It does not pick pairs, it places rows. A row is compared with a member of each group found so far, the likeliest first,
until it is known where it belongs; a row that differs from every group that may be its own founds a new one. The first
30 rows are from dense places; later ones are any but outliers, so that wide groups are known as well as dense ones. All
pairs that follow from the groups go to the learner. Their weights add up to the geometric mean of two counts: the
independent answers, and all that follows from them. Groups have a posterior, so wrong answers are found and repaired.
Each group has a width of its own. `error_rate_` counts answers that other answers contradict; one that only the
distances speak against does not raise it, and one that no other answer tests counts half.

A row that was placed comes again only to settle whether two groups are one ("merge"), or, when no other row is left, to
be checked ("check"): `Question.asked_again` names such rows, `asked_again_` counts the questions. While other rows
are left they are at most a tenth of all, and no row comes again twice. A placement screen shows a row beside typical
rows of the eight likeliest groups, in an order that stays, and places it when it is sure to 70 %.

## What it gains

{simulated}

The score is the ARI of LinearPairLens with k - 1 directions on rows that were never asked about, after every ten
questions. The area is the mean of that curve. Standard errors of paired differences over sets are in brackets.

{gains}

So placing rows gains {clean:+.3f} of area with clean answers and {noisy:+.3f} with one answer in ten wrong; on screens
{clean_screens:+.3f} and {noisy_screens:+.3f}. Uncertain pairs gain {clean_uncertain:+.3f} and {noisy_uncertain:+.3f}.
Splits differ. What rows placed pair by pair gain in each:

{by_split}

![Mean ARI over the number of questions](pictures/asking.png)

Questions needed to reach what 200 random pairs reach, on the mean curve (0: the view without answers is as good):

{needs}

A screen shows a row beside one representative of up to eight groups. It is one question, and as many comparisons as it
has representatives.

## Beside its peers

![Mean ARI of all rows over the number of questions](pictures/asking_peers.png)

`Asker.predict()` says the group of every row. [A group for every row](clusters.md) compares it with COBRAS, PCKMeans,
COP-KMeans, SKKMeans, label spreading, k-means and HDBSCAN.
"""

MAP = """
## On the map

{simulated}

ARI of rows that were never asked about on the map that PairMap makes of all rows, at most 500, after some numbers of
questions:

{points}

Differences, with standard errors over sets:

{gains}
"""

PREFER = """
## Preferences

`PreferenceAsker` asks which of two rows is better. It takes the pair whose order tells most about a linear ranking,
half of the time among the rows near the top. The score is the share of pairs of rows never asked about, one of them in
the top tenth, that RankSVM orders rightly.

{simulated}

{gains}
"""

TRIED = """
## What was tried

Which row is placed next was decided with clean answers on the first 18 of these sets, two splits that are not among
those above. Area, and score after 200 questions, less those of the default:

| instead | area | after 200 |
|---|--:|--:|
| dense rows only (70 % of all), throughout | -0.006 (0.005) | -0.019 (0.011) |
| the same, and an outlier can found a group after one "different" | -0.009 (0.007) | -0.025 (0.019) |
| dense rows first, after 30 placed rows any | -0.000 (0.004) | -0.012 (0.013) |
| all but 5 % outliers, throughout | -0.009 (0.004) | -0.003 (0.006) |
| any row, throughout, not the informative half of the time | -0.015 (0.008) | -0.015 (0.017) |
| a row is placed without a "same" where all other groups are excluded | -0.001 (0.001) | -0.000 (0.001) |
| weights add up to all that follows | -0.000 (0.005) | +0.000 (0.010) |
| rows in sparse places weigh less | -0.003 (0.003) | -0.003 (0.010) |

The default was then fixed. On twelve sets that had no part in it (climate, digits, hepatitis, isolet1, krvskp, letter,
mfeat_fou, mfeat_kar, mfeat_mor, mnist6000, monks3, sonar; two splits) it is above the second line by +0.001 (0.005) and
+0.023 (0.016). The map had no part in it either.

With dense rows only, on nine sets and one to four splits that are not among those above; area, less that of the default
there:

| instead | area |
|---|--:|
| the answers alone, without what follows | -0.036 (0.015) |
| weights add up to the independent answers | -0.016 (0.004) |
| must-links of all groups weigh the same | -0.010 (0.004) |
| true labels of the placed rows, which weigh the same | -0.011 (0.003) |
| the power 1/2 of the densities in place of 1/4 | -0.008 (0.007) |
| every second question an uncertain pair | -0.013 (0.012) |

On most of these sets the groups that clean answers find are the classes, and hardly a question is spent on checking. So
neither better groups nor fewer checks can gain much.

Nor do other rows, or another use of them. Clean answers, the splits of the first table; area over nine and seven points
of the curve, less that of the default:

| instead | area |
|---|--:|
| the most informative row always | -0.007 (0.004) |
| the most informative row never | -0.003 (0.005) |
| rows of small groups, half of the time | -0.002 (0.005) |
| rows far from all placed ones, half of the time | +0.001 (0.004) |
| LinearPairLens whose pairs do not spread to their neighbours | -0.005 (0.007) |
| a third of its local prior | +0.002 (0.007) |
| three times its local prior | -0.015 (0.009) |
| cannot-links that weigh three times as much | +0.003 (0.005) |
| rows nobody was asked about, where the view is sure of their group, count too | +0.002 (0.006) |
| linear discriminant analysis of the groups, with shrinkage | -0.046 (0.015) |
| must-links that count 1, 3 or 9 times, whichever tells held-out rows apart best (all 34 sets) | +0.001 (0.003) |

Rows that differ from several groups cost most questions, and are worth them. On the 14 sets with six or more classes,
the same splits:

| instead | area |
|---|--:|
| no more than two questions about a row | -0.032 (0.008) |
| a third one only while at most 30 % of all questions are such | -0.013 (0.006) |
| a fourth one only while at most 30 % of all questions are such | -0.001 (0.004) |
| a new group without having asked about groups of less than 5 % probability (2 %) | -0.004 (0.004) |
"""

LIMITS = """

Screens, repeats and the choice of rows were tried once more with `PairClusters` as the judge: ARI of all rows after 100
looks, less that of the default then (sure to 90 %); 16 sets of at most 400 rows, half of them of eight groups and more,
one draw, with the learner before the present one.

| instead | screens, clean | 10 % wrong | pairs, clean | 10 % wrong |
|---|--:|--:|--:|--:|
| sure to 70 % (now the default on screens) | +0.029 (0.010) | +0.048 (0.025) | -0.001 (0.017) | -0.013 (0.029) |
| sure to 50 % | +0.017 (0.012) | +0.040 (0.030) | +0.007 (0.016) | +0.007 (0.021) |
| a quarter may be about placed rows | +0.000 (0.000) | +0.002 (0.002) | +0.000 (0.000) | +0.019 (0.014) |
| none may be | +0.002 (0.002) | -0.006 (0.015) | +0.010 (0.008) | +0.000 (0.018) |
| the first 30 rows are medoids of k-means | +0.015 (0.014) | -0.002 (0.032) | -0.034 (0.034) | -0.032 (0.039) |
| rows whose neighbours are in most groups (ACDM) | -0.011 (0.019) | +0.012 (0.017) | -0.015 (0.016) | +0.010 (0.033) |

## Limits

- With many classes the first questions are spent on finding them: k classes take about k (k - 1) / 2 comparisons.
  Placement screens answer up to eight of these at once.
- Simulated mistakes are spread evenly. Those of people gather where groups meet.
- With several people, begin with one or two for some thirty questions, until the first groups are there.

`python -m benchmarks.bench_asking --splits 6`, then `--views map --sets 15 --splits 2`, run all this in {minutes:.0f}
minutes of processor time, and `--views lens map prefer --splits 6 --only-print` makes this page.
"""


def page(results: Mapping[str, Results], parts: Mapping[str, Results]) -> str:
    """The page in Markdown; `parts` are the results of the lens, by split."""
    lens = results["lens"]
    gain = {kind: (lens.area(kind) - lens.area((kind[0], "random"))).mean() for kind in lens.scores}
    text = PAGE.format(
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
    return text + TRIED + LIMITS.format(minutes=sum(found.seconds for found in results.values()) / 60)


def write_page(results: Mapping[str, Results], parts: Mapping[str, Results], docs: Path | None) -> None:
    """Print the tables, and write the page and its picture if a folder is given. Parameters as :func:`page`."""
    for view, found in results.items():
        print(f"\n{view}: {len(found.sets)} sets, {found.seconds / 60:.0f} minutes of processor time\n")
        tables = [gain_table, needs_table] if view != "map" else [point_table, map_table]
        if "random" not in {strategy for _, strategy in found.scores}:
            tables = [point_table]
        print("\n\n".join(table(found) for table in tables))
    if docs is not None and "lens" in results:
        (docs / "asking.md").write_text(page(results, parts), encoding="utf-8")
        with repeatable_style():
            draw(results["lens"]).savefig(docs / "pictures" / "asking.png", metadata={"Software": None})
