"""Which question next: a row to place, two groups that may be one, or a pair."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pairlens.asking.posterior import choice_value, logistic
from pairlens.asking.progress import NEAR, NEAR_AUDITS
from pairlens.asking.questions import Entry, Kind, Purpose, Question, is_machine
from pairlens.asking.state import State
from pairlens.asking.view import Lens

SCREEN = 8
"""Groups on a placement screen."""
TYPICAL = 3
"""Rows of a group, or a quarter of them, that may stand for it on a screen."""
AGAIN_SHARE = 0.1
"""Largest share of questions about rows that were placed before, while others are left: whether two groups are one."""
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
AUDITED_JOINS = 0.75
"""Share of audits of answers that join rows. They are rarer and more often wrong than others, and where a person says
"same" too, a learner gets a must-link."""
REPEAT_AFTER = 10
"""Entries of the log before a question may come back."""
OVERLAP_WITHIN = 200
"""The latest entries from which a question is given to a second person."""
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
    again: set[int]
    n_again: int
    rng: np.random.Generator

    def free(self, i: int, j: int) -> bool:
        """Return whether these two were neither compared nor are being compared."""
        pair = (min(i, j), max(i, j))
        return i != j and pair not in self.state.asked and pair not in self.taken


def next_place(now: Situation, *, screens: bool) -> Draft | None:
    """Return a question of the strategy "place"; None if nothing is left to ask."""
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
    comparable = ((number, [other for other in groups.members[number] if now.free(row, other)]) for number in likeliest)
    free = ((number, members) for number, members in comparable if members)
    if not screens:
        _, members = next(free, (None, []))
        return Draft("same", (row, members[int(now.rng.integers(len(members)))]), purpose) if members else None
    choice = dict(free)
    if not choice:
        return None
    compared = {groups.where[other] for other, *_ in now.state.answers.about(row) if other in groups.where}
    chance = dict(zip(groups.numbers, p.tolist()))
    open_ones = [number for number in choice if number not in compared or chance[number] > UNLIKELY] or list(choice)
    # The likeliest groups, in an order that stays: the place on the screen says nothing about the guess.
    numbers = sorted(open_ones[:SCREEN], key=lambda number: groups.slots[number])
    representatives = [_typical(now, number, choice[number]) for number in numbers]
    return Draft("place", (row, *representatives), purpose, tuple(numbers))


def _typical(now: Situation, number: int, members: list[int]) -> int:
    """Return the row that was shown least among those of a group that are nearest to its mean."""
    groups, times = now.state.groups, now.state.shown
    mean = groups.Z[groups.members[number]].mean(axis=0)
    distance = dict(zip(members, np.round(((groups.Z[members] - mean) ** 2).sum(axis=1), 9).tolist()))
    nearest = sorted(members, key=lambda member: (distance[member], member))[: max(TYPICAL, len(members) // 4)]
    return min(nearest, key=lambda member: times.get(member, 0))


def _merge(now: Situation) -> Draft | None:
    """Ask whether two groups are one, if that may be and placed rows were not asked about too often."""
    state = now.state
    groups = state.groups
    if len(groups) < 2 or now.n_again >= AGAIN_SHARE * (state.n_questions + now.n_open):
        return None
    odds, _ = groups.log_odds(state.answers)
    worth = np.argwhere(np.triu(odds > MAY_BE_ONE, 1))
    for a, b in worth[np.argsort(-np.round(odds[worth[:, 0], worth[:, 1]], 9), kind="stable")]:
        pair = _free_pair(now, groups.members[groups.numbers[a]], groups.members[groups.numbers[b]])
        if pair is not None:
            return Draft("same", pair, "merge")
    return None


def _free_pair(now: Situation, first: list[int], second: list[int]) -> tuple[int, int] | None:
    """Return any pair of two groups that was not compared, of rows that nobody was asked about again."""
    first, second = ([row for row in rows if row not in now.again] for rows in (first, second))
    if not first or not second:
        return None
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
    """Return rows in the order in which to try them."""
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


def audited_pair(now: Situation, closeness: Callable[[int, int], float]) -> Draft | None:
    """Return a pair drawn at random from all whose answer does not follow from the groups.

    Every other one is drawn from near pairs, by their `closeness` in the principal components: of many groups, hardly
    any other pair is in one of them.
    """
    where = now.state.groups.where
    near, spare = now.rng.random() < NEAR_AUDITS, None
    for _ in range(TRIES):
        i, j = (int(row) for row in now.rng.integers(now.lens.n_rows, size=2))
        if now.free(i, j) and not (i in where and j in where):
            spare = Draft("same", (i, j), "audit")
            if (closeness(i, j) < NEAR) == near:
                break
    return spare


def random_pair(now: Situation) -> Draft | None:
    """Return a pair drawn at random from all whose answer does not follow from others."""
    part = {row: number for number, rows in enumerate(now.state.components()[0]) for row in rows}

    def parts(i: int, j: int) -> frozenset[int]:
        return frozenset(part.get(row, -1 - row) for row in (i, j))

    # Chains of "same" join rows to parts, and each "different" holds between all rows of two of them.
    apart = {parts(i, j) for (i, j), vote in now.state.votes.items() if vote < 0}

    def free(i: int, j: int) -> bool:
        return now.free(i, j) and len(parts(i, j)) == 2 and parts(i, j) not in apart

    pair = drawn_pair(now.lens.n_rows, free, now.rng)
    return None if pair is None else Draft("same", pair, "pair")


def drawn_pair(n: int, free: Callable[[int, int], bool], rng: np.random.Generator) -> tuple[int, int] | None:
    """Return two of n rows, drawn from all that are free; None if there are none, or too few to hit one."""
    for _ in range(TRIES):
        i, j = (int(row) for row in rng.integers(n, size=2))
        if free(i, j):
            return i, j
    left = [pair for pair in combinations(range(n), 2) if free(*pair)] if n <= ENUMERATE else []
    return left[int(rng.integers(len(left)))] if left else None


def uncertain_pair(now: Situation) -> Draft | None:
    """Return the pair of dense rows, none of them asked about before, that it is least sure of."""
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
    """Return P(same) of pairs from how close they are, calibrated on the answers: a logistic curve with a prior."""
    look = state.look
    assert look is not None
    told = [(look.closeness(i, j), float(vote > 0)) for (i, j), vote in state.evidence().items() if vote]
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


def _is_plain(entry: Entry) -> bool:
    """Return whether a question was asked for its own sake and answered."""
    return entry.question.purpose not in ("repeat", "overlap", "skip") and entry.answer != "unsure"


def repeated(
    log: Sequence[Entry], annotator: str | None, taken: set[tuple[int, int]], rng: np.random.Generator, share: float
) -> Draft | None:
    """Return a question that this person answered some time ago, with sides swapped.

    None comes back twice, nor does a row that a person was asked about again; no more than this share of all
    questions come back.
    """
    repeats = [entry.question.pairs for entry in log if entry.question.purpose == "repeat"]
    if len(repeats) > share * len(log):
        return None
    again = set() if is_machine(annotator) else {row for entry in log for row in entry.question.asked_again}
    found = [
        entry.question
        for entry in log[:-REPEAT_AFTER]
        if _is_plain(entry)
        and entry.question.annotator == annotator
        and entry.question.pairs not in repeats
        and again.isdisjoint(entry.question.rows[: 1 if entry.question.kind == "place" else 2])
        and taken.isdisjoint(entry.question.pairs)
    ]
    return _once_more(found, "repeat", rng)


def overlapping(
    log: Sequence[Entry], annotator: str | None, taken: set[tuple[int, int]], rng: np.random.Generator
) -> Draft | None:
    """Return a question that another person answered lately and this annotator did not."""
    if annotator is None:
        return None
    unnamed = () if is_machine(annotator) else (None,)
    own = {entry.question.pairs for entry in log if entry.question.annotator == annotator}
    found = [
        entry.question
        for entry in log[-OVERLAP_WITHIN:]
        if _is_plain(entry)
        and entry.question.annotator not in (annotator, *unnamed)
        and not is_machine(entry.question.annotator)
        and entry.question.pairs not in own
        and taken.isdisjoint(entry.question.pairs)
    ]
    return _once_more(found, "overlap", rng)


def due_audits(log: Sequence[Entry], share: float, seed: int) -> list[Question]:
    """Return this share of the questions that machines answered, less those that people answered too.

    Three quarters of them are about answers of the machine that join rows, if there are as many. Of these, and of all
    others, they are drawn by their ids and the seed. They are in random order: any part of them is a random sample of
    both kinds of answers.
    """
    answered: dict[tuple[str | None, bool], list[Question]] = {}
    for entry in log:
        question = entry.question
        if is_machine(question.annotator) and _is_plain(entry):
            joins = question.joins(value for *_, value in question.verdicts(entry.answer))
            answered.setdefault((question.annotator, joins), []).append(question)
    if not answered:
        return []
    known = {entry.question.pairs for entry in log if not is_machine(entry.question.annotator)}
    drawn: dict[tuple[tuple[int, int], ...], tuple[float, Question]] = {}
    for (name, joins), questions in answered.items():
        n, n_others = len(questions), len(answered.get((name, not joins), ()))
        wanted = share * (n + n_others)
        # If there are too few answers of the other kind, more of this one.
        of_others = min(n_others, wanted * (1 - AUDITED_JOINS if joins else AUDITED_JOINS))
        of_these = min(n, wanted - of_others) / n
        for question in questions:
            digest = hashlib.sha256(f"{seed}/{question.id}".encode()).digest()
            chance = int.from_bytes(digest[:7], "big") / 2**56
            if chance < of_these and question.pairs not in known:
                drawn.setdefault(question.pairs, (chance / of_these, question))
    return [question for _, question in sorted(drawn.values(), key=lambda found: (found[0], found[1].id))]


def _once_more(questions: Sequence[Question], purpose: Purpose, rng: np.random.Generator) -> Draft | None:
    if not questions:
        return None
    question = questions[int(rng.integers(len(questions)))]
    # The same person sees the sides swapped; on a screen the groups keep their slots.
    swapped = purpose == "repeat" and question.kind != "place"
    return Draft(question.kind, question.rows[::-1] if swapped else question.rows, purpose, question.groups)
