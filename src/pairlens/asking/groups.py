"""The groups found so far: which rows are in them, how sure that is, and their repair."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairlens.asking.posterior import (
    GroupSums,
    WeightedPairs,
    answer_log_odds,
    cross_examined,
    log_prior,
    merge_log_odds,
    mixed,
    pair_weights,
    weigh,
)
from pairlens.asking.reliability import Trust
from pairlens.engines import Float64

Ints = NDArray[np.int64]

FIRST_ERROR = 0.05
ERROR_LIMITS = (0.002, 0.3)
ERROR_PRIOR = (1.0, 20.0)
UNTESTED = 0.5
"""What a believed answer that no other one tests counts for: only the view says that it is right."""
REPAIRS = 2
"""Times that every placed row is taken out and placed again after a fit."""
BLOCK = 64
"""Rows that are placed again at once."""


class Comparisons:
    """Comparisons of two rows, in columns, and those of each row.

    Attributes
    ----------
    machines : list of str
        The machines among those who answered. Their number is the position in this list plus 1; that of people is 0.
    """

    def __init__(self) -> None:
        # Plain numbers: a hundred thousand tuples would keep the garbage collector busy.
        self._first, self._second, self._same, self._by = array("q"), array("q"), array("b"), array("h")
        self.machines: list[str] = []
        self._of_row: dict[int, list[int]] = {}

    def copy(self) -> Comparisons:
        """Return a copy that can grow by itself."""
        other = Comparisons()
        other._first, other._second = self._first[:], self._second[:]
        other._same, other._by = self._same[:], self._by[:]
        other.machines = list(self.machines)
        other._of_row = {row: list(found) for row, found in self._of_row.items()}
        return other

    def add(self, i: int, j: int, same: bool, machine: str | None = None) -> None:
        """Add a comparison by a person, or by a machine."""
        if machine is not None and machine not in self.machines:
            self.machines.append(machine)
        for row in (i, j):
            self._of_row.setdefault(row, []).append(len(self._first))
        self._first.append(i)
        self._second.append(j)
        self._same.append(same)
        self._by.append(0 if machine is None else 1 + self.machines.index(machine))

    def about(self, row: int) -> list[tuple[int, bool, int]]:
        """Return the other row, whether it is the same and the number of who said so, of each comparison with a row."""
        return [
            (self._second[at] if self._first[at] == row else self._first[at], bool(self._same[at]), self._by[at])
            for at in self._of_row.get(row, ())
        ]

    def columns(self) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Return the two rows of all comparisons, and whether they are the same."""
        first, second = (np.array(column, dtype=np.int64) for column in (self._first, self._second))
        return first, second, np.array(self._same, dtype=bool)

    def by(self) -> Ints:
        """Return the number of who gave each comparison."""
        return np.array(self._by, dtype=np.int64)


@dataclass(frozen=True)
class _Told:
    """Comparisons of placed rows, by the first of them, each in both directions.

    Rows are numbered in the order of placing; `block` is the part of them to which the first rows belong.
    """

    row: Ints
    other: Ints
    same: NDArray[np.bool_]
    by: Ints
    block: slice

    @classmethod
    def among(cls, rows: Ints, answers: Comparisons, n_rows: int) -> _Told:
        """Return the comparisons of these rows, of all n_rows, with each other."""
        i, j, same = answers.columns()
        number = np.full(n_rows, -1, dtype=np.int64)
        number[rows] = np.arange(len(rows))
        # Both directions of a comparison beside each other, so that those of a row stay in the order of answering.
        row, other = (number[np.column_stack(ends).ravel()] for ends in ((i, j), (j, i)))
        known = (row >= 0) & (other >= 0)
        row, other, same, by = row[known], other[known], np.repeat(same, 2)[known], np.repeat(answers.by(), 2)[known]
        order = np.argsort(row, kind="stable")
        return cls(row[order], other[order], same[order], by[order], slice(0, len(rows)))

    def of(self, block: slice) -> _Told:
        """Return those of a part of the rows."""
        part = slice(*np.searchsorted(self.row, (block.start, block.stop)))
        return _Told(self.row[part], self.other[part], self.same[part], self.by[part], block)


class Groups:
    """Rows in groups, in a view.

    Groups have numbers that stay: those of a group that vanished are not given again, and of two groups that become one
    the older number remains. `error` is the share of wrong answers of people, and `trust` how far each machine is to be
    believed.
    """

    def __init__(self, Z: Float64) -> None:
        self.numbers: list[int] = []
        self.members: dict[int, list[int]] = {}
        self.where: dict[int, int] = {}
        self.confidence: dict[int, float] = {}
        self.slots: dict[int, int] = {}
        self.error = FIRST_ERROR
        self.trust: dict[str, Trust] = {}
        self.n_founded = 0
        self._look(Z)

    def _look(self, Z: Float64) -> None:
        self.Z = Z
        self.mean, self.var = Z.mean(axis=0), np.maximum(Z.var(axis=0), np.finfo(float).tiny)
        self.sums = GroupSums.of(Z, [self.members[number] for number in self.numbers])

    def copy(self) -> Groups:
        """Return a copy that can be changed by itself; the view is shared."""
        other = Groups.__new__(Groups)
        other.__dict__.update(self.__dict__)
        other.numbers = list(self.numbers)
        other.members = {number: list(rows) for number, rows in self.members.items()}
        other.where, other.confidence, other.slots = dict(self.where), dict(self.confidence), dict(self.slots)
        other.sums = self.sums.copy()
        return other

    def __len__(self) -> int:
        return len(self.numbers)

    # One row

    def prior(self, rows: NDArray[np.int64]) -> Float64:
        """Return probabilities of rows that are not placed, before any answer: the groups, and last "new"."""
        return mixed(log_prior(self.Z[rows], self.sums, self.mean, self.var))

    def posterior(self, row: int, answers: Comparisons) -> Float64:
        """Return probabilities of a row over the groups and "new", the row itself left out."""
        z, sums = self.Z[[row]], self.sums
        if row in self.where:
            sums = sums.without(z, np.array([self.numbers.index(self.where[row])]))
        told = [
            (self.numbers.index(self.where[j]), same, self.confidence[j], by)
            for j, same, by in answers.about(row)
            if j in self.where
        ]
        p = mixed(log_prior(z, sums, self.mean, self.var))
        if told:
            group, same, sure, by = (np.array(column) for column in zip(*told))
            p = weigh(p, np.zeros(len(told), dtype=np.int64), group, same, sure, self.errors(answers, by, same))
        return np.asarray(p[0])

    def put(self, row: int, group: int, confidence: float) -> None:
        """Put a row in the group at this position; the position after the last founds one."""
        if group == len(self.numbers):
            self.numbers.append(self.n_founded)
            self.members[self.n_founded] = []
            # On a screen a group keeps its slot for life; a new one takes the first that is free.
            taken = set(self.slots.values())
            self.slots[self.n_founded] = next(slot for slot in range(len(taken) + 1) if slot not in taken)
            self.n_founded += 1
            self.sums.found()
        number = self.numbers[group]
        self.members[number].append(row)
        self.where[row], self.confidence[row] = number, confidence
        self.sums.add(group, self.Z[row])

    def place(self, row: int, p: Float64) -> None:
        """Put a row with this posterior where it most likely belongs."""
        best = int(np.argmax(p))
        self.put(row, best, float(p[best]))

    def place_again(self, row: int, answers: Comparisons) -> None:
        """Take a placed row out and put it where it most likely belongs."""
        number = self.where[row]
        p = self.posterior(row, answers)
        best = int(np.argmax(p))
        alone = self.members[number] == [row]
        if (best == len(self.numbers) and alone) or (best < len(self.numbers) and self.numbers[best] == number):
            self.confidence[row] = float(p[best])
            return
        self.put_elsewhere(row, best, float(p[best]))

    def put_elsewhere(self, row: int, group: int, confidence: float) -> None:
        """Move a placed row; the group that it leaves vanishes if it was alone there."""
        number = self.where[row]
        self.put(row, group, confidence)
        old = self.numbers.index(number)
        self.members[number].remove(row)
        self.sums.add(old, self.Z[row], -1.0)
        if not self.members[number]:
            self._forget(number)

    def _forget(self, number: int) -> None:
        position = self.numbers.index(number)
        del self.numbers[position], self.members[number], self.slots[number]
        self.sums.drop(position)

    # All of them

    def errors(self, answers: Comparisons, by: Ints, same: NDArray[np.bool_]) -> Float64:
        """Return how probable it is that comparisons are wrong, by who made them and what they say."""
        table = np.array([(self.error, self.error), *(self.trust[name].error for name in answers.machines)])
        return np.asarray(table[by, same.astype(np.int64)])

    def log_odds(self, answers: Comparisons) -> tuple[Float64, Ints]:
        """Return the log odds that two groups are one, and the number of "same" between them, for all of them."""
        i, j, same = answers.columns()
        group, sure = self._by_row()
        apart = (group[i] >= 0) & (group[j] >= 0) & (group[i] != group[j])
        i, j, same = i[apart], j[apart], same[apart]
        error = self.errors(answers, answers.by()[apart], same)
        evidence, n_same = answer_log_odds(len(self), group[i], group[j], same, sure[i] * sure[j], error)
        return merge_log_odds(self.sums, self.var, evidence), n_same

    def _by_row(self, rows: Ints | slice = slice(None)) -> tuple[Ints, Float64]:
        """Return the position of the group of each row, -1 where there is none, and how sure it is."""
        group, sure = np.full(len(self.Z), -1, dtype=np.int64), np.zeros(len(self.Z))
        placed = list(self.where)
        position = {number: at for at, number in enumerate(self.numbers)}
        group[placed] = [position[number] for number in self.where.values()]
        sure[placed] = [self.confidence[row] for row in placed]
        return group[rows], sure[rows]

    def merge(self, answers: Comparisons) -> None:
        """Join groups that are more likely one than two and have a "same" between them, best first."""
        while len(self) > 1:
            odds, n_same = self.log_odds(answers)
            odds = np.where(n_same > 0, odds, -np.inf)
            best = int(np.argmax(odds))
            a, b = sorted(divmod(best, len(self)))
            if not odds[a, b] > 0:
                return
            # Numbers are in the order of founding, so the first is the older.
            kept, joined = self.numbers[a], self.numbers[b]
            for row in self.members[joined]:
                self.members[kept].append(row)
                self.where[row] = kept
                self.sums.add(a, self.Z[row])
            self._forget(joined)

    def look_again(self, Z: Float64, answers: Comparisons) -> None:
        """Change to a new view: place every row again, twice, join groups, and estimate the error rate."""
        self._look(Z)
        for _ in range(REPAIRS):
            self.place_all_again(answers)
        self.merge(answers)
        self.error = self._error_rate(answers)

    def place_all_again(self, answers: Comparisons) -> None:
        """Apply :meth:`place_again` to one placed row after the other, in the order of placing."""
        rows = np.array(list(self.where), dtype=np.int64)
        told = _Told.among(rows, answers, len(self.Z))
        group, sure = self._by_row(rows)
        start = 0
        while start < len(rows):
            block = slice(start, min(start + BLOCK, len(rows)))
            best, chance = self._places(rows[block], told.of(block), group, sure, answers)
            own = group[block]
            stays = (best == own) | ((best == len(self)) & (self.sums.count[own] == 1))
            n_stay = len(stays) if stays.all() else int(np.argmin(stays))
            sure[start : start + n_stay] = chance[:n_stay]
            start += n_stay
            self.confidence.update(zip(rows[block].tolist()[:n_stay], chance.tolist()))
            if n_stay < len(stays):
                # The rows after one that moves see other groups, so they begin again.
                self.put_elsewhere(int(rows[start]), int(best[n_stay]), float(chance[n_stay]))
                group, sure = self._by_row(rows)
                start += 1

    def _places(
        self, rows: Ints, told: _Told, group: Ints, sure: Float64, answers: Comparisons
    ) -> tuple[Ints, Float64]:
        """Return the likeliest groups of a block of rows, and how likely they are, if no row before moves.

        A row sees the new confidences of those before it. They are found by repetition: what the first t rows get no
        longer changes after t rounds, and in a block few rows were compared with each other.
        """
        Z = self.Z[rows]
        prior = mixed(log_prior(Z, self.sums.without(Z, group[told.block]), self.mean, self.var))
        start = told.block.start
        before = (told.other >= start) & (told.other < told.row)
        of_other, of_group = sure[told.other], group[told.other]
        chance = sure[told.block]
        error = self.errors(answers, told.by, told.same)
        for _ in rows:
            of_other[before] = chance[told.other[before] - start]
            p = weigh(prior, told.row - start, of_group, told.same, of_other, error)
            best, last = np.argmax(p, axis=1), chance
            chance = p[np.arange(len(p)), best]
            if np.array_equal(chance, last) or not before.any():
                break
        return best, chance

    def _error_rate(self, answers: Comparisons) -> float:
        """Return the share of wrong answers of people: those that others contradict, of these and the believed ones.

        An answer that only the places of the rows speak against counts neither way. If it counted as wrong, a view
        that misleads would raise the error rate, and a higher error rate lets the view overrule more answers.
        """
        i, j, same = answers.columns()
        group, _ = self._by_row()
        judged = (group[i] >= 0) & (group[j] >= 0) & (answers.by() == 0)
        i, j, same = i[judged], j[judged], same[judged]
        believed = (group[i] == group[j]) == same
        contradicted, n_untested = cross_examined(len(self.Z), i, j, same, believed)
        n_right = int(believed.sum()) - (1 - UNTESTED) * n_untested
        wrong, total = ERROR_PRIOR
        rate = (wrong + len(contradicted)) / (total + len(contradicted) + n_right)
        return min(max(rate, ERROR_LIMITS[0]), ERROR_LIMITS[1])

    def pairs(self, answers: Comparisons) -> WeightedPairs:
        """Return the must-links and cannot-links that follow from the groups, with weights."""
        i, j, same = answers.columns()
        group, sure = self._by_row()
        placed = (group[i] >= 0) & (group[j] >= 0)
        apart, joined = placed & (group[i] != group[j]), placed & (group[i] == group[j]) & same
        worth = self.worth(answers)
        pairs = np.sort(np.column_stack([i[apart], j[apart]]), axis=1) @ np.array([len(self.Z), 1])
        distinct, which = np.unique(pairs, return_inverse=True)
        asked = np.zeros(len(distinct))
        np.maximum.at(asked, which, worth[apart])
        members = [np.array(self.members[number], dtype=np.int64) for number in self.numbers]
        return pair_weights(
            members,
            [sure[rows] for rows in members],
            self.log_odds(answers)[0],
            float(asked.sum()),
            worth=float(worth[joined].mean()) if joined.any() else 1.0,
        )

    def worth(self, answers: Comparisons) -> Float64:
        """Return what each comparison is worth, that of a person being worth 1."""
        table = np.array([(1.0, 1.0), *(self.trust[name].weight for name in answers.machines)])
        return np.asarray(table[answers.by(), answers.columns()[2].astype(np.int64)])

    def settled(self, row: int, p: Float64, answers: Comparisons, sure: float, unlikely: float) -> bool:
        """Return whether it is known where an open row with this posterior belongs, and an answer says so.

        A row founds a group only if it differs from every group that is likely by the answers or by its place among
        the groups. Its place among all rows is not enough: an outlier lies far from its own group too.
        """
        best = int(np.argmax(p))
        if p[best] < sure:
            return False
        told = [(self.where[j], same) for j, same, _ in answers.about(row) if j in self.where]
        if best < len(self):
            return (self.numbers[best], True) in told
        apart = {number for number, same in told if not same}
        nearest = self.prior(np.array([row]))[0, :-1]
        likely = (p[:-1] > unlikely) | (nearest > unlikely * nearest.sum())
        return all(self.numbers[at] in apart for at in np.flatnonzero(likely))

    def likeliest_of(self, rows: Sequence[int], answers: Comparisons) -> list[int]:
        """Return the number of the likeliest group of each row, -1 where there are no groups."""
        found = [self.where.get(row, -1) for row in rows]
        free = [row for row, number in zip(rows, found) if number < 0]
        if not self.numbers or not free:
            return found
        likeliest = iter(np.argmax(self._chances(free, answers)[:, :-1], axis=1).tolist())
        return [number if number >= 0 else self.numbers[next(likeliest)] for number in found]

    def share_sure(self, rows: Sequence[int], answers: Comparisons, sure: float) -> float:
        """Return the share of the rows that are placed with this confidence, in a group or a new one, or would be."""
        placed = [self.confidence[row] for row in rows if row in self.where]
        free = [row for row in rows if row not in self.where]
        chances = self._chances(free, answers).max(axis=1) if free else np.empty(0)
        return float((np.concatenate([placed, chances]) >= sure).mean())

    def _chances(self, free: Sequence[int], answers: Comparisons) -> Float64:
        """Return probabilities of rows that are not placed, by their place and the answers about them."""
        p = self.prior(np.array(free))
        told = [(at, *each) for at, row in enumerate(free) for each in answers.about(row) if each[0] in self.where]
        if told:
            of, other, same, by = (np.array(column) for column in zip(*told))
            group, sure = self._by_row()
            p = weigh(p, of, group[other], same, sure[other], self.errors(answers, by, same))
        return p
