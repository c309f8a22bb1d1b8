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
posterior is computed on a grid. Its interval begins at 0 where no audit and no repeat disagrees, and ends at 1 where
all audits do.

What an answer says depends on what was answered: a machine that calls most pairs the same is seldom wrong with its
"different". So the audits also estimate the two shares :math:`a` of same pairs and :math:`b` of different pairs that it
calls the same, each shrunk towards the common error by four audits. A "same" of the machine is wrong with the
probability :math:`b / (a + b)`, and a "different" with :math:`(1 - a) / (2 - a - b)`, if as many pairs are the same as
are different. Its logarithmic odds are the evidence of the answer in the posterior of the groups.

As a pair for a learner an answer weighs the square of the share of such answers that are right, times its logarithmic
odds where these are below 1: what depends little on the truth tells little. Of must-links of which a share c is wrong,
the mean scatter is :math:`(1 - c) W + c T`: what they tell beyond the scatter T of all rows falls with :math:`1 - c`,
and the number of pairs that tells as much grows with its inverse square. An answer of a person weighs 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from pairlens.asking.questions import Entry, is_machine

LEVEL = 0.95
LEAST_ERROR, NO_USE = 0.002, 0.5
SHRINKAGE = 4.0
"""Audits that the common error counts for, where the errors of "same" and "different" are estimated."""
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


@lru_cache(maxsize=1024)
def error_rate(
    audits: int = 0,
    wrong: int = 0,
    repeats: int = 0,
    inconsistent: int = 0,
    people_repeats: int = 0,
    people_inconsistent: int = 0,
) -> tuple[float, float, float]:
    """Return the share of wrong answers of a machine, and its interval of 95 %.

    A person gave `audits` of its answers too, of which `wrong` differ; it gave `repeats` twice, of which `inconsistent`
    differ. The last two are the same of people.

    Examples
    --------
    >>> [round(value, 2) for value in error_rate(audits=40, wrong=8)]
    [0.19, 0.08, 0.33]
    """
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
    low, high = (float(error[order][np.searchsorted(below, at)]) for at in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    # With no mistake found, or nothing else, the interval of a share goes to its end.
    low = low if wrong or inconsistent else 0.0
    high = high if wrong < audits or not audits else 1.0
    return float(error @ p / p.sum()), low, high


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
    # Of each machine: its answers, and comparisons of audits by what the person and the machine said.
    _tallies: dict[str, Counter[str]] = field(default_factory=dict)
    _people: tuple[int, int] = (0, 0)

    def copy(self) -> Record:
        """Return a copy that can grow by itself."""
        return Record(dict(self._said), {name: tally.copy() for name, tally in self._tallies.items()}, self._people)

    def take(self, entry: Entry) -> None:
        """Take one more answer in."""
        question, answer = entry
        who, said = question.annotator, tuple(value for *_, value in question.verdicts(answer))
        if is_machine(who):
            assert who is not None
            self._count(who, answers=1)
        if not said:
            return
        before = self._said.get(question.pairs, ())
        if question.purpose == "repeat":
            own = [earlier for name, earlier in before if name == who]
            if own:
                self._count_repeat(who, own[0] != said)
            return
        if question.purpose == "overlap":
            for name, earlier in before:
                if is_machine(name) and not is_machine(who):
                    self._count_audit(str(name), said, earlier)
                elif is_machine(who) and not is_machine(name):
                    self._count_audit(str(who), earlier, said)
        self._said[question.pairs] = (*before, (who, said))

    def _count(self, machine: str, **more: int) -> None:
        self._tallies.setdefault(machine, Counter()).update(more)

    def _count_repeat(self, who: str | None, differs: bool) -> None:
        if is_machine(who):
            self._count(str(who), repeats=1, inconsistent=int(differs))
        else:
            self._people = self._people[0] + 1, self._people[1] + int(differs)

    def _count_audit(self, machine: str, truth: tuple[int, ...], said: tuple[int, ...]) -> None:
        pairs = [(t > 0, s > 0) for t, s in zip(truth, said)]
        self._count(
            machine,
            audits=1,
            wrong=int(truth != said),
            both_same=pairs.count((True, True)),
            only_person=pairs.count((True, False)),
            only_machine=pairs.count((False, True)),
            both_different=pairs.count((False, False)),
        )

    def rates(self) -> dict[str, ErrorRate]:
        """Return the error rate of each machine."""
        return {name: self._rate(tally) for name, tally in self._tallies.items()}

    def _rate(self, tally: Counter[str]) -> ErrorRate:
        counts = tally["audits"], tally["wrong"], tally["repeats"], tally["inconsistent"]
        return ErrorRate(tally["answers"], *counts, *error_rate(*counts, *self._people))

    def trust(self) -> dict[str, Trust]:
        """Return how far the answers of each machine are to be believed."""
        return {name: self._trust(tally) for name, tally in self._tallies.items()}

    def _trust(self, tally: Counter[str]) -> Trust:
        both_same, only_person = tally["both_same"], tally["only_person"]
        only_machine, both_different = tally["only_machine"], tally["both_different"]
        n, wrong = both_same + only_person + only_machine + both_different, only_person + only_machine
        error = error_rate(n, wrong, tally["repeats"], tally["inconsistent"], *self._people)[0]

        def share(count: int, others: int, prior: float) -> float:
            return (count + SHRINKAGE * prior) / (count + others + SHRINKAGE)

        same = share(both_same, only_person, 1 - error)
        other = share(only_machine, both_different, error)
        at_even_odds = (1 - same) / (2 - same - other), other / (same + other)
        errors = [min(max(each, LEAST_ERROR), NO_USE) for each in at_even_odds]
        among = share(only_person, both_different, error), share(only_machine, both_same, error)
        weights = [worth_of(*each) for each in zip(errors, among)]
        return Trust((errors[0], errors[1]), (weights[0], weights[1]))


def error_rates(log: Iterable[Entry]) -> dict[str, ErrorRate]:
    """Return the error rate of each machine in a log of answers, by its name; people are not listed."""
    record = Record()
    for entry in log:
        record.take(entry)
    return record.rates()
