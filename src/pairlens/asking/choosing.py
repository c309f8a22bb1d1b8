"""Which question next: a row to place, two groups that may be one, or a pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pairlens.asking.posterior import choice_value, logistic
from pairlens.asking.questions import Kind, Purpose
from pairlens.asking.state import State
from pairlens.asking.view import Lens

__all__ = ["TRIES", "Draft", "Situation", "audited_pair", "drawn_pair", "next_place", "random_pair", "uncertain_pair"]

SCREEN = 8
"""Groups on a placement screen."""
MERGE_SHARE = 0.25
"""Largest share of questions about whether two groups are one."""
MAY_BE_ONE = -2.2
"""Log odds above which it is worth asking whether two groups are one."""
UNLIKELY = 0.02
CROWD = 5
"""Nearest rows of an open row that are not opened beside it."""
CHECK_ANSWERS = 9
"""Questions about a placed row after which it is not asked about again."""
SPARSE_SHARE, OUTLIER_SHARE = 0.3, 0.05
"""Shares of the rows, those in the sparsest places, that are opened last: while few rows are placed, and later."""
FEW_PLACED = 30
"""Placed rows below which only dense places are taken. More of them must represent all rows: where one group is wider
than another, dense rows alone would say little of it."""
CANDIDATES = 500
"""Rows among which the most informative is looked for; which row is taken hardly matters."""
PAIR_CANDIDATES = 2000
TRIES = 200
ENUMERATE = 400
"""Rows up to which all pairs are looked through when random draws find nothing new."""
# Before any answer, half of the pairs that are closer than 90 % of all pairs are taken for "same".
CENTRE, SLOPE, PRIOR_WEIGHT = -2.3, 1.5, 1.0


@dataclass(frozen=True)
class Draft:
    """A question without its number and its person."""

    kind: Kind
    rows: tuple[int, ...]
    purpose: Purpose
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Situation:
    """The state, and what is open at the moment."""

    state: State
    lens: Lens
    taken: set[tuple[int, int]]
    subjects: set[int]
    n_open: int
    n_open_merges: int
    rng: np.random.Generator

    def free(self, i: int, j: int) -> bool:
        """Whether these two were neither compared nor are being compared."""
        pair = (min(i, j), max(i, j))
        return i != j and pair not in self.state.asked and pair not in self.taken

    def free_members(self, row: int, number: int) -> list[int]:
        """The rows of a group with which this one can be compared."""
        return [member for member in self.state.groups.members[number] if self.free(row, member)]


def next_place(now: Situation, *, screens: bool) -> Draft | None:
    """A question of the strategy "place"; None if nothing is left to ask."""
    state = now.state
    for row in state.open:
        if row not in now.subjects:
            draft = _compare(now, row, "place", screens)
            if draft is not None:
                return draft
    return _merge(now) or _open_row(now, screens) or _check(now, screens)


def _compare(now: Situation, row: int, purpose: Purpose, screens: bool) -> Draft | None:
    """Ask a row against its likeliest group, or against one representative of each group."""
    groups = now.state.groups
    p = groups.posterior(row, now.state.answers)[:-1]
    likeliest = [groups.numbers[at] for at in np.argsort(-np.round(p, 12), kind="stable")]
    # One group after the other: for a pair the members of the others are not looked at.
    free = ((number, members) for number in likeliest if (members := now.free_members(row, number)))
    if not screens:
        _, members = next(free, (None, []))
        return Draft("same", (row, members[int(now.rng.integers(len(members)))]), purpose) if members else None
    choice = dict(free)
    if not choice:
        return None
    compared = {groups.where[other] for other, _ in now.state.answers.about(row) if other in groups.where}
    chance = dict(zip(groups.numbers, p.tolist()))
    open_ones = [number for number in choice if number not in compared or chance[number] > UNLIKELY] or list(choice)
    # One group for each slot, the likeliest that has it: so a group keeps its place on the screen, which itself says
    # nothing about the guess.
    shown: dict[int, int] = {}
    for number in open_ones:
        shown.setdefault(groups.slots[number] % SCREEN, number)
    numbers = [shown[slot] for slot in sorted(shown)]
    times = now.state.shown
    representatives = [min(choice[number], key=lambda member: times.get(member, 0)) for number in numbers]
    return Draft("place", (row, *representatives), purpose, tuple(numbers))


def _merge(now: Situation) -> Draft | None:
    """Ask whether two groups are one, if that may be and was not asked too often."""
    state = now.state
    groups = state.groups
    if len(groups) < 2 or state.n_merge + now.n_open_merges >= MERGE_SHARE * (state.n_questions + now.n_open):
        return None
    odds, _ = groups.log_odds(state.answers)
    worth = np.argwhere(np.triu(odds > MAY_BE_ONE, 1))
    for a, b in worth[np.argsort(-np.round(odds[worth[:, 0], worth[:, 1]], 9), kind="stable")]:
        pair = _free_pair(now, groups.members[groups.numbers[a]], groups.members[groups.numbers[b]])
        if pair is not None:
            return Draft("same", pair, "merge")
    return None


def _free_pair(now: Situation, first: list[int], second: list[int]) -> tuple[int, int] | None:
    """Any pair of two groups that was not compared."""
    for _ in range(TRIES):
        i, j = first[int(now.rng.integers(len(first)))], second[int(now.rng.integers(len(second)))]
        if now.free(i, j):
            return i, j
    return next(((i, j) for i in first for j in second if now.free(i, j)), None)


def _open_row(now: Situation, screens: bool) -> Draft | None:
    """Open a new row: half of the time any, else the one whose placing tells most for a question."""
    state = now.state
    look = state.look
    assert look is not None
    closed = np.zeros(now.lens.n_rows, dtype=bool)
    busy = [*state.open, *now.subjects]
    closed[[*state.groups.where, *state.skipped, *busy]] = True
    beside = np.zeros_like(closed)
    beside[now.lens.neighbors[busy, :CROWD].ravel()] = True
    last = SPARSE_SHARE if len(state.groups.where) < FEW_PLACED else OUTLIER_SHARE
    for wanted in ((look.density > last) & ~beside, ~beside, np.ones_like(closed)):
        candidates = now.rng.permutation(np.flatnonzero(~closed & wanted))
        for row in _ordered(now, candidates):
            draft = _compare(now, int(row), "place", screens)
            if draft is not None:
                return draft
    return None


def _ordered(now: Situation, candidates: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows in the order in which to try them."""
    groups = now.state.groups
    if now.rng.random() < 0.5 or len(groups) < 2 or len(candidates) < 2:
        return candidates
    some = candidates[:CANDIDATES]
    value = choice_value(groups.prior(some))
    # Rounded, so that ties are decided by the draw and not by the last bits.
    return np.concatenate([some[np.argsort(-np.round(value, 9), kind="stable")], candidates[CANDIDATES:]])


def _check(now: Situation, screens: bool) -> Draft | None:
    """Ask about the least sure placed row again."""
    state = now.state
    rows = [
        row
        for row in state.groups.where
        if row not in now.subjects and row not in state.skipped and state.questions_of.get(row, 0) < CHECK_ANSWERS
    ]
    for row in sorted(rows, key=lambda row: (round(state.groups.confidence[row], 9), row)):
        draft = _compare(now, row, "check", screens)
        if draft is not None:
            return draft
    return None


def audited_pair(now: Situation) -> Draft | None:
    """A pair drawn at random from all whose answer does not follow from the groups."""
    where = now.state.groups.where
    for _ in range(TRIES):
        i, j = (int(row) for row in now.rng.integers(now.lens.n_rows, size=2))
        if now.free(i, j) and not (i in where and j in where):
            return Draft("same", (i, j), "audit")
    return None


def random_pair(now: Situation) -> Draft | None:
    """A pair drawn at random from all whose answer does not follow from others."""
    known = _Known(now.state)
    pair = drawn_pair(now.lens.n_rows, lambda i, j: now.free(i, j) and not known.follows(i, j), now.rng)
    return None if pair is None else Draft("same", pair, "pair")


def drawn_pair(n: int, free: Callable[[int, int], bool], rng: np.random.Generator) -> tuple[int, int] | None:
    """Two of n rows, drawn from all that are free; None if there are none, or too few among many rows to hit one."""
    for _ in range(TRIES):
        i, j = (int(row) for row in rng.integers(n, size=2))
        if free(i, j):
            return i, j
    left = [pair for pair in combinations(range(n), 2) if free(*pair)] if n <= ENUMERATE else []
    return left[int(rng.integers(len(left)))] if left else None


def uncertain_pair(now: Situation) -> Draft | None:
    """The pair of dense rows, none of them asked about before, of which it is least sure whether they are the same."""
    state, look = now.state, now.state.look
    assert look is not None
    used = {row for pair in state.asked | now.taken for row in pair} | state.skipped
    fresh = look.density > SPARSE_SHARE
    fresh[list(used)] = False
    rows = np.flatnonzero(fresh)
    if len(rows) < 2:
        return random_pair(now)
    i, j = rows[now.rng.integers(len(rows), size=(2, PAIR_CANDIDATES))]
    i, j = i[i != j], j[i != j]
    difference = look.Z[i] - look.Z[j]
    closer = np.searchsorted(look.reference, np.einsum("ij,ij->i", difference, difference)) / len(look.reference)
    p = _chance_of_same(state, closer)
    entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p))
    value = np.round(entropy * look.density[i] * look.density[j], 9)
    for at in np.argsort(-value, kind="stable")[:TRIES]:
        if now.free(int(i[at]), int(j[at])):
            return Draft("same", (int(i[at]), int(j[at])), "pair")
    return random_pair(now)


def _chance_of_same(state: State, closer: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(same) of pairs from how close they are, calibrated on the answers: a logistic curve with a prior."""
    look = state.look
    assert look is not None
    told = [(look.closeness(i, j), float(vote > 0)) for (i, j), vote in state.votes.items() if vote]
    prior = np.array([SLOPE * CENTRE, -SLOPE])
    theta = prior.copy()
    if told:
        x, y = np.array(told).T
        design = np.column_stack([np.ones(len(x)), _place(x)])
        for _ in range(8):
            p = logistic(design @ theta)
            slope = design.T @ (y - p) - PRIOR_WEIGHT * (theta - prior)
            curvature = (design * (p * (1 - p))[:, None]).T @ design + PRIOR_WEIGHT * np.eye(2)
            theta = theta + np.linalg.solve(curvature, slope)
    p = logistic(theta[0] + theta[1] * _place(closer))
    return np.asarray(np.clip(p, 1e-9, 1 - 1e-9))


def _place(closer: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.log(closer + 0.002))


class _Known:
    """What follows from bare answers: chains of "same", and what is different between them."""

    def __init__(self, state: State) -> None:
        self._part = {row: number for number, rows in enumerate(state.components()[0]) for row in rows}
        self._apart = {frozenset((self._of(i), self._of(j))) for (i, j), vote in state.votes.items() if vote < 0}

    def _of(self, row: int) -> int:
        return self._part.get(row, -1 - row)

    def follows(self, i: int, j: int) -> bool:
        """Whether the answer is known."""
        a, b = self._of(i), self._of(j)
        return a == b or frozenset((a, b)) in self._apart
