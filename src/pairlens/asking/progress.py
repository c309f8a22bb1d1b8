"""How well it goes, honestly: the curve of audited questions, agreement, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairlens.asking.questions import Entry, is_machine
from pairlens.judging import auc_standard_error

WINDOW = 40
"""Audited questions that a point of the curve looks back on."""
FEWEST = 10
"""Audited questions before the first point."""
ENOUGH = 20
"""Audited questions before a curve can be called flat."""
NEAR, NEAR_AUDITS = 0.2, 0.5
"""Share of all pairs of rows that are near in the principal components, and of the audited ones: both answers occur."""
Z95 = 1.959964
STABLE_FITS = 3
STABLE_SHARE = 0.95
LATELY = 40
"""Answers over which a curve has to be flat."""
FLAT = 0.05
"""Gain below which a curve is flat, however wide its interval: it is, where one kind of answer is rare."""
RARE_AFTER = 20
"""Rows placed in a row without a new group, from which on new groups are rare."""


@dataclass(frozen=True)
class Audit:
    """An audited question, judged before it was learned from; see :func:`pairlens.asking.choosing.audited_pair`.

    It was asked after so many `answers`; `view` and `pca` are the shares of random pairs that lie closer together, in
    the view of that moment and in the principal components.
    """

    answers: int
    same: bool
    view: float
    pca: float

    @property
    def weight(self) -> float:
        """Return how many pairs of rows it stands for, of all as many as were drawn: near ones are drawn more often."""
        return NEAR / NEAR_AUDITS if self.pca < NEAR else (1 - NEAR) / (1 - NEAR_AUDITS)


@dataclass(frozen=True)
class CurvePoint:
    """A point of the learning curve, over the last 40 audited questions.

    Attributes
    ----------
    answers : int
        Entries of the log at this point.
    auc : float
        Probability that a pair answered "same" lay closer together than one answered "different", each in the view of
        its moment; for preferences the share of orders that were foreseen.
    low, high : float
        Interval of 95 %.
    pca, pca_low, pca_high : float
        The same of the principal components, which know no answer; NaN for preferences.
    n : int
        Number of audited questions it looks back on.
    """

    answers: int
    auc: float
    low: float
    high: float
    pca: float
    pca_low: float
    pca_high: float
    n: int


@dataclass(frozen=True)
class Agreement:
    """The share of questions of which two answers agree.

    Attributes
    ----------
    n : int
        Number of comparisons that were answered twice.
    share : float
        Share of them that agree, NaN if there are none.
    kappa : float
        Agreement beyond chance, 1 at best; NaN where chance alone would agree always.
    """

    n: int
    share: float
    kappa: float


@dataclass(frozen=True)
class StoppingHint:
    """A hint whether more answers would still change much; nothing stops by itself.

    Attributes
    ----------
    stop : bool
        Whether all the signs say so.
    reasons : tuple of str
        One sentence for each sign.
    cost : str
        What stopping now costs, as far as can be told.
    """

    stop: bool
    reasons: tuple[str, ...]
    cost: str


def _auc(same: NDArray[np.bool_], closeness: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float]:
    """Return the AUC over weighted audits and its standard error, by the effective numbers of audits."""
    must, cannot = closeness[same], closeness[~same]
    both = np.outer(weight[same], weight[~same])
    closer = (must[:, None] < cannot) + 0.5 * (must[:, None] == cannot)
    found = float((both * closer).sum() / both.sum())
    counts = (max(1, round(float(each.sum() ** 2 / (each**2).sum()))) for each in (weight[same], weight[~same]))
    return found, auc_standard_error(found, *counts)


def audit_curve(audits: Sequence[Audit]) -> list[CurvePoint]:
    """Return the learning curve over audited questions; empty until both answers occurred and ten were audited."""
    points = []
    for end in range(FEWEST, len(audits) + 1):
        window = audits[max(0, end - WINDOW) : end]
        same = np.array([audit.same for audit in window])
        if same.all() or not same.any():
            continue
        weight = np.array([audit.weight for audit in window])
        view, error = _auc(same, np.array([audit.view for audit in window]), weight)
        pca, pca_error = _auc(same, np.array([audit.pca for audit in window]), weight)
        intervals = (view, *_interval(view, error), pca, *_interval(pca, pca_error))
        points.append(CurvePoint(window[-1].answers + 1, *intervals, len(window)))
    return points


def share_curve(audits: Sequence[tuple[int, bool]]) -> list[CurvePoint]:
    """Return the learning curve of right and wrong predictions, with Wilson's interval."""
    points = []
    for end in range(FEWEST, len(audits) + 1):
        window = audits[max(0, end - WINDOW) : end]
        n, share = len(window), sum(right for _, right in window) / len(window)
        centre = (share + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
        half = Z95 * math.sqrt(share * (1 - share) / n + Z95**2 / (4 * n**2)) / (1 + Z95**2 / n)
        nothing = float("nan")
        points.append(CurvePoint(window[-1][0] + 1, share, centre - half, centre + half, nothing, nothing, nothing, n))
    return points


def _interval(value: float, error: float) -> tuple[float, float]:
    return max(0.0, value - Z95 * error), min(1.0, value + Z95 * error)


def agreement_of(pairs: Sequence[tuple[int, int]]) -> Agreement:
    """Return the agreement of pairs of verdicts, whose order does not matter.

    Kappa is Cohen's with one distribution of verdicts for both sides (Scott's form), because the two sides are not the
    same two people throughout.
    """
    if not pairs:
        return Agreement(0, float("nan"), float("nan"))
    verdicts = [verdict for pair in pairs for verdict in pair]
    chance = sum((verdicts.count(kind) / len(verdicts)) ** 2 for kind in set(verdicts))
    share = sum(a == b for a, b in pairs) / len(pairs)
    return Agreement(len(pairs), share, float("nan") if chance >= 1 else (share - chance) / (1 - chance))


def hint(curve: Sequence[CurvePoint], kept: Sequence[float], since_new: int | None, unsure: float) -> StoppingHint:
    """Return whether to stop.

    `kept` is the share of the probes that kept their group (or their order), at each fit, `since_new` the rows placed
    since the last new group (None where there are no groups), and `unsure` the share of the probes that are not sure.
    """
    what, probes = ("group", "rows") if since_new is not None else ("order", "pairs")
    flat, gain, doubt, words = _flatness(curve)
    reasons = [words]
    least = min(kept[-STABLE_FITS:]) if len(kept) >= STABLE_FITS else float("nan")
    if math.isnan(least):
        reasons.append(f"Too few fits to say whether {probes} keep their {what}.")
    else:
        share = _percent(least)
        reasons.append(f"In each of the last {STABLE_FITS} fits {share} or more of the {probes} kept their {what}.")
    if since_new is not None:
        reasons.append(f"{since_new} rows were placed since the last new group.")
    cost = f"For about {_percent(unsure)} of the {probes} the {what} is still a guess"
    cost += (
        "." if math.isnan(gain) else f"; the last answers moved the curve by {gain:+.3f} (give or take {doubt:.3f})."
    )
    rare = since_new is None or since_new >= RARE_AFTER
    return StoppingHint(flat and least >= STABLE_SHARE and rare, tuple(reasons), cost)


def _percent(share: float) -> str:
    """Return a share in percent, with the sign on the line of its number."""
    return f"{100 * share:.0f}\u00a0%"


def _flatness(curve: Sequence[CurvePoint]) -> tuple[bool, float, float, str]:
    """Return whether the curve is flat, what it gained lately, half its interval, and a sentence on it."""
    earlier = [point for point in curve if point.answers <= curve[-1].answers - LATELY]
    if not earlier or curve[-1].n < ENOUGH:
        return False, float("nan"), float("nan"), "The learning curve is too short to say whether it is flat."
    gain = curve[-1].auc - earlier[-1].auc
    doubt = (curve[-1].high - curve[-1].low) / 2
    flat = gain < min(doubt, FLAT)
    words = "is flat" if flat else "still rises"
    sentence = f"The learning curve {words}: {gain:+.3f} over the last {LATELY} answers, to {curve[-1].auc:.3f}."
    return flat, gain, doubt, sentence


def agreement_between(log: Sequence[Entry]) -> Agreement:
    """Return how often two people agree on pairs that both were asked about."""
    said: dict[tuple[int, int], list[tuple[str, int]]] = {}
    twice: list[tuple[int, int]] = []
    for question, answer in log:
        if question.annotator is None or is_machine(question.annotator) or question.purpose == "repeat":
            continue
        for i, j, verdict in question.verdicts(answer):
            before = said.setdefault((i, j), [])
            twice.extend((earlier, verdict) for person, earlier in before if person != question.annotator)
            before.append((question.annotator, verdict))
    return agreement_of(twice)


def agreement_with_oneself(log: Sequence[Entry]) -> Agreement:
    """Return how often people agree with what they answered before."""
    said: dict[tuple[str | None, int, int], int] = {}
    twice: list[tuple[int, int]] = []
    for question, answer in log:
        for i, j, verdict in () if is_machine(question.annotator) else question.verdicts(answer):
            key = (question.annotator, i, j)
            if question.purpose == "repeat" and key in said:
                twice.append((said[key], verdict))
            elif question.purpose != "repeat":
                said[key] = verdict
    return agreement_of(twice)
