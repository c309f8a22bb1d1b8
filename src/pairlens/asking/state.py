"""All that follows from the answers so far: a function of the rows, the seed and the answers in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from pairlens.asking.groups import FIRST_ERROR, Comparisons, Groups
from pairlens.asking.posterior import joined_by
from pairlens.asking.progress import Audit
from pairlens.asking.questions import Entry, Question, is_machine
from pairlens.asking.reliability import Record
from pairlens.asking.view import Lens, View
from pairlens.engines import Float64
from pairlens.supervision import Constraints

StateT = TypeVar("StateT")

SURE, UNLIKELY = 0.9, 0.02
SURE_ON_SCREENS = 0.7
"""How sure a row must be of its group to be placed by a screen, which has compared it with the likeliest groups."""
MOST_ANSWERS = 10
"""Questions about an open row after which it is placed in any case."""
UNSURE_LIMIT = 3
"""Times that nobody could tell about a row before it is set aside."""
N_REFERENCE = 2000
"""Random pairs whose distances a distance is compared with."""
N_PROBE = 200
"""Rows whose groups are watched from fit to fit."""


@dataclass(frozen=True)
class Look:
    """All rows in a view, and what is needed of them again and again.

    `density` is the share of the rows whose neighbours are as far away or farther: 1 in the densest place. `reference`
    has squared distances of random pairs, sorted.
    """

    key: str
    Z: Float64
    density: Float64
    reference: Float64

    @classmethod
    def at(cls, lens: Lens, view: View, seed: int) -> Look:
        """Look at all rows through a view."""
        Z = lens.look(view)
        crowding = lens.crowding(Z) if view.crowding is None else view.crowding
        return cls(view.key, Z, crowding / len(Z), np.sort(reference_distances(Z, seed)))

    def closeness(self, i: int, j: int) -> float:
        """Return the share of random pairs that lie closer together than these two rows."""
        return closeness(self.Z, self.reference, i, j)


def reference_distances(Z: Float64, seed: int) -> Float64:
    """Return squared distances of random pairs of rows."""
    rng = np.random.default_rng([seed, 11])
    i, j = rng.integers(len(Z), size=(2, N_REFERENCE))
    difference = Z[i] - Z[j]
    return np.asarray(np.einsum("ij,ij->i", difference, difference)[i != j])


def closeness(Z: Float64, reference: Float64, i: int, j: int) -> float:
    """Return the share of the reference distances that are smaller; ties count half."""
    squared = float(((Z[i] - Z[j]) ** 2).sum())
    left, right = np.searchsorted(reference, squared, "left"), np.searchsorted(reference, squared, "right")
    return float((left + right) / 2 / max(len(reference), 1))


def copied(state: StateT) -> StateT:
    """Return a copy of a state that can be changed by itself; the view is shared."""
    own = {name: value.copy() for name, value in vars(state).items() if hasattr(value, "copy")}
    return replace(state, **own)  # type: ignore[type-var]


@dataclass
class State:
    """The state that the answers lead to; :meth:`apply` takes one more, :meth:`refit` a new view."""

    placing: bool
    look: Look | None
    view_key: str
    groups: Groups
    probe: tuple[int, ...]
    answers: Comparisons = field(default_factory=Comparisons)
    votes: dict[tuple[int, int], int] = field(default_factory=dict)
    machine_votes: dict[tuple[int, int], tuple[tuple[str, int], ...]] = field(default_factory=dict)
    record: Record = field(default_factory=Record)
    open: dict[int, int] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)
    asked: set[tuple[int, int]] = field(default_factory=set)
    unsure: dict[int, int] = field(default_factory=dict)
    questions_of: dict[int, int] = field(default_factory=dict)
    shown: dict[int, int] = field(default_factory=dict)
    n_entries: int = 0
    n_questions: int = 0
    again: set[int] = field(default_factory=set)
    n_again: int = 0
    first_left: int = 0
    since_new: int = 0
    refit_at: int = 0
    audits: list[Audit] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)
    probed: list[int] = field(default_factory=list)
    known: Constraints | None = None

    # One more answer

    def apply(self, entry: Entry, closeness: Sequence[float] = ()) -> None:
        """Take an answer in; of an audited question, and of a machine, with how close its pairs are in the principal
        components.
        """
        self._take(entry, closeness)
        if self.placing:
            self._place_last()

    def _take(self, entry: Entry, closeness: Sequence[float]) -> None:
        question, answer = entry
        self.known = None
        before = self.n_entries
        self.n_entries += 1
        if question.kind == "skip":
            self.set_aside(question.rows[0])
            return
        self.record.take(entry, closeness)
        self.groups.trust = self.record.trust()
        if question.asked_again:
            self.n_again += 1
            self.again.update(question.asked_again)
        if question.purpose == "repeat":
            return
        self.n_questions += 1
        self.asked.update(question.pairs)
        for row in question.rows[1:] if question.kind == "place" else ():
            self.shown[row] = self.shown.get(row, 0) + 1
        row = question.rows[0]
        if answer == "unsure":
            self._count_unsure(question)
            return
        verdicts = question.verdicts(answer)
        machine = question.annotator if is_machine(question.annotator) else None
        if closeness and self.look is not None and question.kind == "same" and machine is None:
            i, j, value = verdicts[0]
            self.audits.append(Audit(before, value > 0, self.look.closeness(i, j), closeness[0]))
        for i, j, value in verdicts:
            self.answers.add(i, j, value > 0, machine)
            if machine is None:
                self.votes[i, j] = self.votes.get((i, j), 0) + value
            else:
                self.machine_votes[i, j] = (*self.machine_votes.get((i, j), ()), (machine, value))
        if self.placing:
            self._take_evidence(question, row)

    def _count_unsure(self, question: Question) -> None:
        row = question.rows[0]
        self.unsure[row] = self.unsure.get(row, 0) + 1
        if self.unsure[row] >= UNSURE_LIMIT:
            self.set_aside(row)
        elif row in self.open and not self.has_unasked(row):
            self._close(row)

    def _take_evidence(self, question: Question, row: int) -> None:
        groups, answers = self.groups, self.answers
        if question.purpose == "chosen":
            self._place_chosen(*question.rows)
        if question.purpose in ("merge", "chosen"):
            groups.merge(answers)
        if question.purpose not in ("place", "check"):
            return
        self.questions_of[row] = self.questions_of.get(row, 0) + 1
        if row in groups.where:
            groups.place_again(row, answers)
        elif row not in self.skipped:
            self.open.setdefault(row, self.n_entries)
            p = groups.posterior(row, answers)
            if self._place_named(question, row, p):
                return
            enough = self.questions_of[row] >= MOST_ANSWERS or not self.has_unasked(row)
            sure = SURE_ON_SCREENS if question.kind == "place" else SURE
            if enough or groups.settled(row, p, answers, sure, UNLIKELY):
                self._close(row, p)

    def _place_named(self, question: Question, row: int, p: Float64) -> bool:
        """Place a row in the group that a person has chosen on a screen, however unlikely; return whether one was.

        The row is not asked about again. After the next fit it is placed by its posterior, as all rows are.
        """
        if question.kind != "place" or is_machine(question.annotator):
            return False
        groups = self.groups
        told = self.answers.about(row)
        named = [groups.where[j] for j, same, *_ in told if same and j in question.rows and j in groups.where]
        if named:
            self.open.pop(row, None)
            at = groups.numbers.index(named[-1])
            groups.put(row, at, float(p[at]))
            self.since_new += 1
        return bool(named)

    def _place_chosen(self, i: int, j: int) -> None:
        """Place two rows that a person has chosen, as the answer about them says.

        Two that belong together are in one group at once, a new one if neither was placed. A row that differs from
        another is placed if it differs from all groups that may be its own, and a placed one is placed again.
        """
        groups, answers = self.groups, self.answers
        together = answers.about(i)[-1][1]
        if together and i not in groups.where and j not in groups.where:
            groups.put(i, len(groups), SURE)
        for row, other in ((i, j), (j, i)):
            p = groups.posterior(row, answers)
            if row in groups.where:
                groups.place_again(row, answers)
            elif together:
                at = groups.numbers.index(groups.where[other])
                groups.put(row, at, float(p[at]))
            elif groups.settled(row, p, answers, SURE, UNLIKELY):
                groups.place(row, p)
            if row in groups.where:
                self.open.pop(row, None)

    def _close(self, row: int, p: Float64 | None = None) -> None:
        """Place an open row, by its posterior, if any answer tells where; else it may be opened again later."""
        self.open.pop(row, None)
        if not any(other in self.groups.where for other, *_ in self.answers.about(row)):
            return
        founded = self.groups.n_founded
        self.groups.place(row, self.groups.posterior(row, self.answers) if p is None else p)
        self.since_new = self.since_new + 1 if self.groups.n_founded == founded else 0

    def _place_last(self) -> None:
        """Place the rows that are left if no question is, which audited questions alone have told of."""
        while not any(self.has_unasked(row) for row in self._left()):
            placed = len(self.groups.where)
            for row in self._left():
                self._close(row)
                if len(self.groups.where) > placed:
                    break
            else:
                return

    def _left(self) -> Iterator[int]:
        """Return rows that are neither placed nor set aside; those before them are passed once."""
        n_rows, where, skipped = len(self.groups.Z), self.groups.where, self.skipped
        while self.first_left < n_rows and (self.first_left in where or self.first_left in skipped):
            self.first_left += 1
        return (row for row in range(self.first_left, n_rows) if row not in where and row not in skipped)

    def has_unasked(self, row: int) -> bool:
        """Return whether there is a placed row with which this one was not compared."""
        return any(other != row and (min(row, other), max(row, other)) not in self.asked for other in self.groups.where)

    def set_aside(self, row: int) -> None:
        """Set a row aside: it is not opened again, and its answers stay."""
        self.skipped.add(row)
        self.open.pop(row, None)

    # A new view

    def refit(self, look: Look) -> None:
        """Change to a new view."""
        self.look, self.view_key, self.refit_at, self.known = look, look.key, self.n_entries, None
        if not self.placing:
            self.groups.Z = look.Z
            return
        self.groups.look_again(look.Z, self.answers)
        probed = self.groups.likeliest_of(self.probe, self.answers)
        if self.probed:
            self.kept.append(sum(a == b for a, b in zip(probed, self.probed)) / len(probed))
        self.probed = probed

    # What follows

    def constraints(self, n_rows: int) -> Constraints:
        """Return the pairs that follow from the answers; kept until the next one, as view and map both ask for them."""
        if self.known is None:
            self.known = self._constraints(n_rows)
        return self.known

    def evidence(self) -> dict[tuple[int, int], float]:
        """Return what the answers to each pair add up to: positive for same, 1 for one answer of a person."""
        evidence: dict[tuple[int, int], float] = dict(self.votes)
        trust = self.groups.trust
        for pair, said in self.machine_votes.items():
            own = sum(value * trust[machine].weight[value > 0] for machine, value in said)
            evidence[pair] = evidence.get(pair, 0) + own
        return evidence

    def _constraints(self, n_rows: int) -> Constraints:
        if not self.placing:
            return self.bare(n_rows, self.evidence())
        pairs = self.groups.pairs(self.answers)
        where = self.groups.where
        bare = {
            (i, j): vote
            for (i, j), vote in self.evidence().items()
            if not (i in where and j in where) and i not in self.open and j not in self.open
        }
        closure = Constraints(
            pairs.must,
            pairs.cannot,
            n_samples=n_rows,
            must_link_weight=pairs.must_weight,
            cannot_link_weight=pairs.cannot_weight,
            on_conflict="warn",
        )
        return closure.merge(self.bare(n_rows, bare)) if bare else closure

    @staticmethod
    def bare(n_rows: int, votes: dict[tuple[int, int], float]) -> Constraints:
        """Return the answers themselves, those of several people to one question outvoting each other."""
        must = [pair for pair, vote in votes.items() if vote > 0]
        cannot = [pair for pair, vote in votes.items() if vote < 0]
        return Constraints(
            must,
            cannot,
            n_samples=n_rows,
            must_link_weight=[float(votes[pair]) for pair in must] or None,
            cannot_link_weight=[float(-votes[pair]) for pair in cannot] or None,
            on_conflict="warn",
        )

    def components(self) -> tuple[list[list[int]], float]:
        """Return rows that chains of "same" join, largest first, and the share of answers that contradict them.

        Only people's: a chain is as good as its weakest answer.
        """
        votes = self.votes
        rows = sorted({row for pair in votes for row in pair})
        at = {row: number for number, row in enumerate(rows)}
        joined = [(at[i], at[j]) for (i, j), vote in votes.items() if vote > 0]
        label = joined_by(len(rows), *np.array(joined, dtype=np.int64).reshape(-1, 2).T)
        found: dict[int, list[int]] = {}
        for row, part in zip(rows, label.tolist()):
            found.setdefault(part, []).append(row)
        wrong = sum(vote < 0 and label[at[i]] == label[at[j]] for (i, j), vote in votes.items())
        error = (1 + wrong) / (20 + len(votes)) if votes else FIRST_ERROR
        parts = sorted((part for part in found.values() if len(part) > 1), key=lambda part: (-len(part), part[0]))
        return parts, float(min(max(error, 0.002), 0.3))
