r"""How often each annotator is wrong, from audits and repeats, and how much its answers weigh.

A machine is *audited* where a person answers a question that it answered too, and *repeated* where it answers a
question a second time, with sides swapped. Let :math:`\varphi` be the share of answers that it flips at random,
:math:`e_0` the share that would be wrong without flips, and :math:`\epsilon` the share of wrong answers of people. Then

.. math::
    e = e_0 (1 - \varphi) + (1 - e_0) \varphi

of its answers are wrong, an audit disagrees with probability :math:`e (1 - \epsilon) + (1 - e) \epsilon`, and a repeat
with :math:`2 \varphi (1 - \varphi)`. Repeats alone bound the error from below, because a machine that is always wrong
in the same way never disagrees with itself; audits say the rest. The priors are Beta(0.5, 1.5) for :math:`e_0`,
Beta(0.5, 4.5) for :math:`\varphi` and Beta(1, 49) for :math:`\epsilon`, which repeats by people inform as well. The
posterior is computed on a grid. Answers that join rows ("same", or a group on a screen) and all others are judged as if
two machines had given them, because more of the first are audited. The error rate is the mean of both, each weighted by
how often it was given, and the interval that of this mean of two independent posteriors. Each of the two begins at 0
where no audit and no repeat disagrees, and ends at 1 where all audits do.

What an answer says depends on what was answered: a machine that calls most pairs the same is seldom wrong with its
"different". So the audits estimate how often each of the two words is wrong, shrunk towards the common error by four
audits. With how often it is said, this gives the shares :math:`a` of same pairs and :math:`b` of different pairs that
the machine calls the same. A "same" is wrong with the probability :math:`b / (a + b)`, and a "different" with
:math:`(1 - a) / (2 - a - b)`, if as many pairs are the same as are different. Its logarithmic odds are the evidence of
the answer in the posterior of the groups.

As a pair for a learner an answer weighs the square of the share of such answers that are right, times its logarithmic
odds where these are below 1: what depends little on the truth tells little. Of must-links of which a share c is wrong,
the mean scatter is :math:`(1 - c) W + c T`: what they tell beyond the scatter T of all rows falls with :math:`1 - c`,
and the number of pairs that tells as much grows with its inverse square. An answer of a person weighs 1.

A machine that goes by the distances between the rows tells a learner nothing that it does not see, and confirms what
answers should correct. Let A be the AUC with which the distance in the principal components predicts what the machine
says. Then :math:`2 (1 - A)` measures what it says beyond the distances: 0 if they decide every answer, 1 if it does not
depend on them. Its mistakes are taken to be among this, so that of what it says beyond the distances the share
:math:`1 - e / (2 - 2 A)` is right, where e is the error rate in the audits, shrunk towards 0 by four audits. The weight
is multiplied by this share. If it is below a quarter, the answers are no pairs for a learner.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from pairlens.asking.questions import Entry, Question, is_machine

LEVEL = 0.95
LEAST_ERROR, NO_USE = 0.002, 0.5
SHRINKAGE = 4.0
"""Audits that the common error counts for, where the errors of "same" and "different" are estimated."""
LEAST_RIGHT = 0.25
"""Share of what a machine says beyond the distances that must be right."""
BINS = 50
"""Bins of distances, by the share of random pairs that are closer."""
QUANTILES = 200
"""Quantiles of each of two posteriors whose mean is taken."""
Counts = tuple[int, int, int, int]
"""Audits and those of them that differ, repeats and those of them that differ."""
FIXED, FLIPS, PEOPLE = (0.5, 1.5), (0.5, 4.5), (1.0, 49.0)
"""Parameters of the Beta priors of the fixed errors, the flips, and the errors of people."""
CELLS = (400, 30, 12)
"""Cells of the grid for each of the three; they are narrow near 0, and near 1 if there are shares above a half."""
TOPS = (1.0, 0.5, 0.25)


@dataclass(frozen=True)
class ErrorRate:
    """Share of the answers of an annotator that are wrong.

    Attributes
    ----------
    answers : int
        Number of its answers.
    audits, wrong : int
        Number of them that a person answered too, and of these the number of different answers.
    repeats, inconsistent : int
        Number of questions that it answered twice, and of these the number of different answers.
    rate, low, high : float
        Mean and interval of 95 % of the posterior.
    """

    answers: int
    audits: int
    wrong: int
    repeats: int
    inconsistent: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Trust:
    """Trust in the answers of a machine, in those that say "different" first and "same" second.

    `error` is how probable it is that they are wrong, if as many pairs are the same as are different, and `weight` is
    what they weigh as pairs.
    """

    error: tuple[float, float]
    weight: tuple[float, float]


def worth_of(error: float, wrong: float) -> float:
    """Return the weight of an answer as a pair; 1 at most, which is that of a person's answer.

    `error` is how probable it is that such an answer is wrong at even odds, and `wrong` the share of them that are.

    Examples
    --------
    >>> [round(worth_of(error, 0.2), 2) for error in (0.05, 0.2, 0.5)]
    [0.64, 0.64, 0.0]
    """
    return min(max(math.log((1 - error) / error), 0.0), 1.0) * (1 - wrong) ** 2


def error_rate(*strata: tuple[int, Counts], people: tuple[int, int] = (0, 0)) -> tuple[float, float, float]:
    """Return the share of wrong answers of a machine, and its interval of 95 %.

    Each stratum has the number of answers and their counts; `people` are repeats by people and those of them that
    differ.

    Examples
    --------
    >>> [round(value, 2) for value in error_rate((400, (40, 8, 0, 0)))]
    [0.19, 0.08, 0.33]
    >>> [round(value, 2) for value in error_rate((80, (30, 20, 0, 0)), (320, (10, 1, 0, 0)))]
    [0.24, 0.13, 0.43]
    """
    total = sum(n for n, _ in strata)
    mean, lows, highs = 0.0, np.zeros(1), np.zeros(1)
    for n, counts in strata:
        share = n / total if total else 1 / len(strata)
        own, quantiles = _posterior(counts, people)
        mean += share * own
        # With no mistake found, or nothing else, the interval of a share goes to its end.
        audits, wrong, _, inconsistent = counts
        lows = np.add.outer(lows, share * quantiles * bool(wrong or inconsistent)).ravel()
        highs = np.add.outer(highs, share * (quantiles if wrong < audits or not audits else 1)).ravel()
    return mean, float(np.quantile(lows, (1 - LEVEL) / 2)), float(np.quantile(highs, (1 + LEVEL) / 2))


@lru_cache(maxsize=1024)
def _posterior(counts: Counts, people_counts: tuple[int, int]) -> tuple[float, NDArray[np.float64]]:
    """Return the mean and quantiles of the share of wrong answers."""
    audits, wrong, repeats, inconsistent = counts
    people_repeats, people_inconsistent = people_counts
    (fixed, flips, people), log_prior = _grid()
    error = fixed * (1 - flips) + (1 - fixed) * flips
    log_p = log_prior.copy()
    for share, n, k in (
        (error * (1 - people) + (1 - error) * people, audits, wrong),
        (2 * flips * (1 - flips), repeats, inconsistent),
        (2 * people * (1 - people), people_repeats, people_inconsistent),
    ):
        log_p += k * np.log(share) + (n - k) * np.log1p(-share)
    p = np.exp(log_p - log_p.max()).sum(axis=2).ravel()
    error = error[..., 0].ravel()
    order = np.argsort(error, kind="stable")
    below = np.cumsum(p[order]) / p.sum()
    at = np.searchsorted(below, (np.arange(QUANTILES) + 0.5) / QUANTILES)
    return float(error @ p / p.sum()), error[order][at]


@cache
def _grid() -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.float64]]:
    """Return the three shares in the middle of each cell, and the logarithm of its prior probability."""
    shares, log_prior = [], np.zeros(CELLS)
    for axis, (n, top, prior) in enumerate(zip(CELLS, TOPS, (FIXED, FLIPS, PEOPLE))):
        t = np.linspace(0, 1, n + 1)
        edges = (1 - np.cos(np.pi * t)) / 2 if top == 1 else top * t**2
        shape = [n if other == axis else 1 for other in range(len(CELLS))]
        shares.append(((edges[1:] + edges[:-1]) / 2).reshape(shape))
        log_prior += np.log(np.diff(betainc(*prior, edges))).reshape(shape)
    return tuple(shares), log_prior


@dataclass
class Record:
    """Answers of several annotators to the same questions, counted as they come in."""

    _said: dict[tuple[tuple[int, int], ...], tuple[tuple[str | None, tuple[int, ...]], ...]] = field(
        default_factory=dict
    )
    # Of each machine: its answers, by whether they join rows; its pairs, by what it says; how near the rows are.
    _tallies: dict[str, Counter[tuple[object, ...]]] = field(default_factory=dict)
    _people: tuple[int, int] = (0, 0)

    def copy(self) -> Record:
        """Return a copy that can grow by itself."""
        return Record(dict(self._said), {name: tally.copy() for name, tally in self._tallies.items()}, self._people)

    def take(self, entry: Entry, closeness: Sequence[float] = ()) -> None:
        """Take one more answer in; of a machine, with the shares of random pairs that are closer than its pairs."""
        question, answer = entry
        who, said = question.annotator, tuple(value for *_, value in question.verdicts(answer))
        if is_machine(who):
            self._count(str(who), ("answers",))
        if not said:
            return
        before = self._said.get(question.pairs, ())
        if question.purpose == "repeat":
            own = [earlier for name, earlier in before if name == who]
            if own and is_machine(who):
                joins = question.joins(own[0])
                self._count(str(who), ("repeats", joins), *[("inconsistent", joins)] * (own[0] != said))
            elif own:
                self._people = self._people[0] + 1, self._people[1] + int(own[0] != said)
            return
        if is_machine(who):
            pairs = [("pairs", value > 0) for value in said]
            near = [("near", value > 0, min(int(at * BINS), BINS - 1)) for value, at in zip(said, closeness)]
            self._count(str(who), ("said", question.joins(said)), *pairs, *near)
        if question.purpose == "overlap":
            for name, earlier in before:
                if is_machine(name) and not is_machine(who):
                    self._count_audit(str(name), question, said, earlier)
                elif is_machine(who) and not is_machine(name):
                    self._count_audit(str(who), question, earlier, said)
        self._said[question.pairs] = (*before, (who, said))

    def _count(self, machine: str, *what: tuple[object, ...]) -> None:
        self._tallies.setdefault(machine, Counter()).update(what)

    def _count_audit(self, machine: str, question: Question, truth: tuple[int, ...], said: tuple[int, ...]) -> None:
        joins = question.joins(said)
        pairs = [("wrong pairs" if t != s else "right pairs", s > 0) for t, s in zip(truth, said)]
        self._count(machine, ("audits", joins), *[("wrong", joins)] * (truth != said), *pairs)

    def rates(self) -> dict[str, ErrorRate]:
        """Return the error rate of each machine."""
        return {name: self._rate(tally) for name, tally in self._tallies.items()}

    def _rate(self, tally: Counter[tuple[object, ...]]) -> ErrorRate:
        strata = [(tally["said", joins], _counts(tally, joins)) for joins in (False, True)]
        strata = [stratum for stratum in strata if stratum[0]] or strata[:1]
        audits, wrong, repeats, inconsistent = (sum(column) for column in zip(*(counts for _, counts in strata)))
        rate = error_rate(*strata, people=self._people)
        return ErrorRate(tally[("answers",)], audits, wrong, repeats, inconsistent, *rate)

    def trust(self) -> dict[str, Trust]:
        """Return how far the answers of each machine are to be believed."""
        return {name: self._trust(tally) for name, tally in self._tallies.items()}

    def _trust(self, tally: Counter[tuple[object, ...]]) -> Trust:
        # Of "different" first, and "same" second.
        right, wrong, said = (
            np.array([tally[what, same] for same in (False, True)]) for what in ("right pairs", "wrong pairs", "pairs")
        )
        share = (said + 1) / (said.sum() + 2)
        error = sum(
            part * _posterior((int(r + w), int(w), *_counts(tally, same)[2:]), self._people)[0]
            for part, r, w, same in zip(share, right, wrong, (False, True))
        )
        among = (wrong + SHRINKAGE * error) / (right + wrong + SHRINKAGE)
        # Shares of all pairs: said "different" and "same" of the same ones, and of the different ones.
        same, different = share * (among[0], 1 - among[1]), share * (1 - among[0], among[1])
        a, b = same[1] / same.sum(), different[1] / different.sum()
        at_even_odds = (1 - a) / (2 - a - b), b / (a + b)
        errors = [float(min(max(each, LEAST_ERROR), NO_USE)) for each in at_even_odds]
        n = (right + wrong).sum()
        beyond = _beyond_distances(tally, float(share @ (wrong / np.maximum(right + wrong, 1))) * n / (n + SHRINKAGE))
        weights = [beyond * worth_of(each, float(c)) for each, c in zip(errors, among)]
        return Trust((errors[0], errors[1]), (weights[0], weights[1]))


def _counts(tally: Counter[tuple[object, ...]], joins: bool) -> Counts:
    audits, wrong, repeats, inconsistent = (
        tally[what, joins] for what in ("audits", "wrong", "repeats", "inconsistent")
    )
    return audits, wrong, repeats, inconsistent


def _beyond_distances(tally: Counter[tuple[object, ...]], error: float) -> float:
    """Return the share that is right of what a machine says beyond the distances; 0 if it is below a quarter."""
    different, same = (np.array([tally["near", word, at] for at in range(BINS)]) for word in (False, True))
    comparisons = different.sum() * same.sum()
    if not comparisons or not error:
        return 1.0
    auc = different @ (np.cumsum(same) - same / 2) / comparisons
    beyond = 1 - abs(2 * auc - 1)
    return float(1 - error / beyond) if error <= (1 - LEAST_RIGHT) * beyond else 0.0


def error_rates(log: Iterable[Entry]) -> dict[str, ErrorRate]:
    """Return the error rate of each machine in a log of answers, by its name; people are not listed."""
    record = Record()
    for entry in log:
        record.take(entry)
    return record.rates()
