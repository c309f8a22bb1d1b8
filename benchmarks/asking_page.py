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

`pairlens.asking.Asker` chooses the next question. Use it in Python, in a terminal with `pairlens ask`, or in an
application of your own.

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

Instead of choosing pairs, it places rows in groups. A row is compared with a member of each group found so far, the
most probable group first, until its group is known. A row that differs from every plausible group starts a new one. The
first 30 rows come from dense regions; after that, any row except an outlier may be chosen, so that wide groups are
found as well as dense ones. The learner gets all pairs that follow from the groups. Their weights add up to the
geometric mean of two counts: the independent answers, and all pairs that follow from them. Each group has its own
width, and its rows have a posterior probability, so wrong answers can be found and corrected. `error_rate_` estimates
the share of wrong answers from contradictions between answers. An answer that only the distances contradict does not
raise it, and an answer that no other answer tests counts half.

A row that was placed is asked about again for two reasons only: to find out whether two groups are one ("merge"), or,
when no other row is left, to check it ("check"). `Question.asked_again` names such rows, and `asked_again_` counts the
questions. While other rows are left, at most a tenth of all questions are of this kind, and no row is repeated more
than once. A placement screen shows a row beside typical rows of the eight most probable groups. The groups keep their
order, and the row is placed when the probability of its group reaches 70 %.
"""

MACHINES = """
## Answers by machine

Questions can be answered by a person, a Python function, a command, or a language model behind an OpenAI-compatible
endpoint.

    pairlens ask data.csv --by http://127.0.0.1:8000/v1 --model NAME --instruction "same kind of complaint?" --questions 400
    pairlens ask data.csv --by "python judge.py" --questions 400
    pairlens studio data.csv

A command reads a line of JSON for each question (`kind`, `instruction`, `rows`, `answers`; a screen has `row` and
`groups`) and writes `{"answer": "same"}`. An endpoint gets one prompt for a pair, and one for a screen
(`--question place`). The cells are sent as JSON in the user message; the system message says that they are data and
that instructions in them must be ignored. Only `{"answer": ...}` with one of the possible answers is accepted. If the
third attempt gives no valid reply either, the answer is "unsure", and five of these in a row end the run. `--show`
chooses the columns that are sent.

Nothing leaves this machine unless `--by` names an address. The key is read from the environment (`PAIRLENS_API_KEY`, or
the variable that `--key-variable` names) and is not stored. `--questions` and `--budget` limit a run; the budget needs
`--price-in` and `--price-out` per 1,000 tokens. Tokens are counted as the endpoint reports them, or estimated at four
characters each. If the endpoint fails, all answers so far are kept, and the same command continues the run.

The answers are written to the store of `pairlens studio`, or to the file that `--out` names. Every answer is stored
with the name of whoever gave it; names of machines begin with `machine:`. A person is asked a random tenth of the
machine's questions (`--audit`), before any other question and without seeing the machine's answers, by the studio or by
`pairlens ask` without `--by`. The machine gets one question in twenty (`--repeat`) a second time, with the two sides
swapped.

```python
from pairlens.asking import annotate

asker = Asker(X, strategy="random", random_state=0)


def similar(question, rows):
    one, other = rows
    return "same" if abs(one[0] - other[0]) < 1 else "different"


annotate(asker, similar, X, questions=100)
while asker.audits_due():
    question = asker.ask("ann")
    i, j = question.rows
    asker.tell(question, "same" if y[i] == y[j] else "different")
rate = asker.error_rates()["machine:similar"]
print(f"wrong in {rate.rate:.0%} of its answers, between {rate.low:.0%} and {rate.high:.0%}")
```

Audits and repeats give the error rate with a 95 % interval. The person's answer in an audit is taken as the truth, with
an error rate of about 2 %. If a repeat gives another answer, one of the two is wrong. Repeats that agree prove nothing,
because a machine may make the same mistake each time. The audits also show how often a "same" and a "different" are
wrong. These rates, as log odds, determine how much an answer counts in the posterior of the groups. A pair that is
passed to a learner has the squared share of such answers that are right as its weight, and less if the answer hardly
depends on the truth; an answer of a person has weight 1. The docstring of `pairlens.asking.reliability` has the model.

This was simulated on three sets (letter_abcd, vehicle, segmentation_test; 400 rows, two draws each). The machine
answers 400 random pairs by similarity in a view of its own, 12 to 25 % of them wrongly, and 40 of them are audited. The
true error rate was inside the interval in 6 of 6 runs. The table has the ARI of PairClusters and the AUC of
LinearPairLens. The last two columns are the advantage of 400 answers with 40 audits in ARI and AUC, with standard
errors over the runs.

| answers | ARI | AUC | advantage of audited, ARI | AUC |
|---|--:|--:|--:|--:|
| 400 by the machine, 40 audited | 0.481 | 0.838 | | |
| 400 by the machine, not audited | 0.447 | 0.839 | +0.034 (0.030) | -0.001 (0.005) |
| 40 by a person, random pairs | 0.361 | 0.792 | +0.120 (0.066) | +0.046 (0.020) |
| 40 by a person, rows placed | 0.535 | 0.824 | -0.054 (0.035) | +0.014 (0.012) |

The runs are too few to distinguish audited answers from answers that are not audited. They are not independent of the
method either: the weights of pairs were chosen among about ten formulas on two or three draws of vehicle and
segmentation_test. Audited answers of a machine are worth more than the audits alone, but 40 answers of a person to the
best questions find groups at least as well. `python -m benchmarks.annotators --draws 2` runs this.
"""  # noqa: E501

GAINS = """
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

TRIED = """
## What was tried

The choice of the next row was developed with clean answers on the first 18 of these sets, with two splits that are not
among those above. The table has the differences from the default in the area and in the score after 200 questions:

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

The default was then fixed. On twelve sets that were not used for this choice (climate, digits, hepatitis, isolet1,
krvskp, letter, mfeat_fou, mfeat_kar, mfeat_mor, mnist6000, monks3, sonar; two splits) it is above the second line of
the table by +0.001 (0.005) and +0.023 (0.016). The map was not used for it either.

With dense rows only, on nine sets and one to four splits that are not among those above, the difference in area from
the default was:

| instead | area |
|---|--:|
| the answers alone, without what follows | -0.036 (0.015) |
| weights add up to the independent answers | -0.016 (0.004) |
| must-links of all groups weigh the same | -0.010 (0.004) |
| true labels of the placed rows, which weigh the same | -0.011 (0.003) |
| the power 1/2 of the densities in place of 1/4 | -0.008 (0.007) |
| every second question an uncertain pair | -0.013 (0.012) |

On most of these sets clean answers find exactly the classes, and hardly any question is spent on checks. Neither better
groups nor fewer checks can therefore gain much.

Choosing other rows, or using them in another way, does not help either. The table has the difference in area from the
default, over nine and seven points of the curve, with clean answers and the splits of the first table:

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

Rows that differ from several groups need the most questions, and these questions are worth asking. On the 14 sets with
six or more classes and the same splits:

| instead | area |
|---|--:|
| no more than two questions about a row | -0.032 (0.008) |
| a third one only while at most 30 % of all questions are such | -0.013 (0.006) |
| a fourth one only while at most 30 % of all questions are such | -0.001 (0.004) |
| a new group without having asked about groups of less than 5 % probability (2 %) | -0.004 (0.004) |
"""

LIMITS = """

Screens, repeats and the choice of rows were tried once more, judged by the groups of `PairClusters`. The table has the
difference in the ARI of all rows after 100 questions from the default of that time (placed at 90 %). There
were 16 sets of at most 400 rows, half of them with eight groups or more, and one draw, with the learner before the
present one.

| instead | screens, clean | 10 % wrong | pairs, clean | 10 % wrong |
|---|--:|--:|--:|--:|
| placed at 70 % (now the default on screens) | +0.029 (0.010) | +0.048 (0.025) | -0.001 (0.017) | -0.013 (0.029) |
| placed at 50 % | +0.017 (0.012) | +0.040 (0.030) | +0.007 (0.016) | +0.007 (0.021) |
| up to a quarter about rows that were placed | +0.000 (0.000) | +0.002 (0.002) | +0.000 (0.000) | +0.019 (0.014) |
| none about rows that were placed | +0.002 (0.002) | -0.006 (0.015) | +0.010 (0.008) | +0.000 (0.018) |
| the first 30 rows are medoids of k-means | +0.015 (0.014) | -0.002 (0.032) | -0.034 (0.034) | -0.032 (0.039) |
| rows whose neighbours are in most groups (ACDM) | -0.011 (0.019) | +0.012 (0.017) | -0.015 (0.016) | +0.010 (0.033) |

## Limits

- The mistakes of a machine are not independent: if it misunderstands a row, it does so every time. Placing rows treats
  every answer as independent evidence, so `--strategy random` is better for machines that are often wrong.
- With many classes the first questions are spent on finding them: k classes take about k (k - 1) / 2 comparisons.
  Placement screens answer up to eight of these at once.
- Simulated mistakes are spread evenly. People make most of theirs where groups meet.
- With several people, let one or two of them answer the first thirty questions or so, until the first groups are found.

`python -m benchmarks.bench_asking --splits 6`, then `--views map --sets 15 --splits 2`, run all of this in
{minutes:.0f} minutes of processor time, and `--views lens map prefer --splits 6 --only-print` makes this page. """


def page(results: Mapping[str, Results], parts: Mapping[str, Results]) -> str:
    """The page in Markdown; `parts` are the results of the lens, by split."""
    lens = results["lens"]
    gain = {kind: (lens.area(kind) - lens.area((kind[0], "random"))).mean() for kind in lens.scores}
    text = PAGE + MACHINES
    text += GAINS.format(
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
