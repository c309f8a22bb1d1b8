"""Groups as people see and change them: their numbers, and the answers that say what was done to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pairlens.exceptions import ArgumentError

MOST_PAIRS = 1000
"""Answers that follow from one action."""
OUTWEIGH = 3
"""Answers that are given where others, or the places of the rows, say otherwise, so that they are believed."""
ACTIONS = ("together", "group", "apart", "split", "merge")

Pair = tuple[int, int, int]
"""Two rows, and +1 if they belong together or -1 if they do not."""


class GroupNumbers:
    """Give groups numbers from 1 that follow their rows.

    The asker counts every group that it ever founded, and many of them live for a moment only, or go on under another
    of its numbers when their rows are placed again. Here a number is spent when a group is first shown, and stays with
    the rows: the group that has them next keeps it. A number that people saw never means other rows, so there is a gap
    where a group was joined with another. It is given again only if none of its rows has a group any more, as after an
    undo.

    `known` are numbers of an earlier run, with the rows that each stood for.

    Examples
    --------
    >>> numbers = GroupNumbers()
    >>> numbers.look({0: [5], 3: [7, 8]})
    {0: 1, 3: 2}
    >>> numbers.look({0: [5], 9: [8, 7, 2]})
    {0: 1, 9: 2}
    """

    def __init__(self, known: Mapping[int, Iterable[int]] | None = None) -> None:
        self._rows = {number: frozenset(rows) for number, rows in (known or {}).items()}
        self._number_of: dict[int, int] = {}

    @property
    def known(self) -> dict[int, list[int]]:
        """Return every taken number with the rows that its group had last; the groups that are there now come last."""
        return {number: sorted(rows) for number, rows in self._rows.items()}

    def look(self, groups: Mapping[int, Iterable[int]]) -> dict[int, int]:
        """Return the number of each group that there is now, by the numbers of the asker."""
        now = {key: frozenset(rows) for key, rows in groups.items()}
        placed = frozenset().union(*now.values())
        self._rows = {number: rows for number, rows in self._rows.items() if rows & placed}
        found = {
            key: number
            for key, rows in now.items()
            if (number := self._number_of.get(key, 0)) in self._rows and self._rows[number] & rows
        }
        for key in sorted(now.keys() - found.keys()):
            free = next(number for number in range(1, len(self._rows) + 2) if number not in self._rows)
            found[key] = self._heir(now[key], set(found.values())) or free
            self._rows[found[key]] = now[key]
        there = {found[key]: rows for key, rows in now.items()}
        gone = {number: rows for number, rows in self._rows.items() if number not in there}
        self._rows, self._number_of = gone | dict(sorted(there.items())), found
        return {key: found[key] for key in now}

    def _heir(self, rows: frozenset[int], taken: set[int]) -> int:
        """Return the number that most of these rows had last, if no other group has it; 0 if they were few."""
        free = [number for number in reversed(self._rows) if number not in taken]
        number = max(free, key=lambda number: len(rows & self._rows[number]), default=0)
        old = self._rows.get(number, rows)
        return number if 2 * len(rows & old) >= min(len(rows), len(old)) else 0


def chosen_pairs(
    action: str,
    rows: Sequence[int],
    groups: Mapping[int, Sequence[int]],
    said: Mapping[tuple[int, int], int],
    *,
    group: int | None = None,
    other: int | None = None,
) -> list[Pair]:
    """Return the answers that say what a person did with rows on the map, with all pairs of which the opposite was
    said.

    "together": the rows belong together. "group": they belong to `group`, or are one of their own. "apart": they do not
    belong to `group`. "split": likewise, and they belong together. "merge": `group` and `other` are one. `said` has
    what was answered before, the smaller row first.

    Examples
    --------
    >>> chosen_pairs("together", [5, 7, 9], {0: [7, 8]}, {})
    [(7, 5, 1), (7, 9, 1)]
    >>> chosen_pairs("split", [7], {0: [7, 8, 9, 10]}, {(7, 9): 1}, group=0)
    [(7, 9, -1), (7, 8, -1), (7, 10, -1), (8, 9, 1)]
    """
    if action not in ACTIONS:
        raise ArgumentError("action", action, f"must be one of {', '.join(ACTIONS)}")
    if not rows and action != "merge":
        raise ArgumentError("rows", rows, "must name a row")
    for name, number in (("group", group), ("other", other)):
        needed = number is not None or action == "merge" or (name == "group" and action in ("apart", "split"))
        if needed and number not in groups:
            raise ArgumentError(name, number, "must be a group that is there")
    pairs = list(dict.fromkeys(_pairs(action, list(dict.fromkeys(rows)), groups, said, group, other)))
    if not pairs:
        raise ArgumentError("rows", rows, "must say something new", "Choose at least two rows, and not a whole group")
    if len(pairs) > MOST_PAIRS:
        raise ArgumentError("rows", len(rows), f"must be fewer: at most {MOST_PAIRS} answers are given at once")
    return pairs


def _pairs(
    action: str,
    rows: list[int],
    groups: Mapping[int, Sequence[int]],
    said: Mapping[tuple[int, int], int],
    group: int | None,
    other: int | None,
) -> Iterator[Pair]:
    where = {row: number for number, members in groups.items() for row in members}
    if action == "merge":
        first, second = sorted((groups[number] for number in (group, other) if number is not None), key=len)
        for row in first:
            yield from _outweighed(row, second, 1, said)
    elif action in ("apart", "split"):
        yield from _parted(rows, groups[group or 0], said)
        if action == "split" and not set(rows) >= set(groups[group or 0]):
            yield from ((rows[0], row, 1) for row in rows[1:])
    elif group is not None:
        for row in rows:
            if where.get(row) != group:
                yield from _outweighed(row, groups[group], 1, said)
                yield from _parted([row], groups.get(where.get(row, -1), ()), said)
    else:
        # All are compared with one row, of the group that most of them are in.
        most, count = next(iter(Counter(where.get(row, -1) for row in rows if row in where).most_common(1)), (None, 0))
        hub = next(row for row in rows if where.get(row) == most)
        for number, members in groups.items() if action == "group" else ():
            if number != most or 2 * count <= len(members):
                yield from _parted([hub], members, said, OUTWEIGH)
        yield from ((hub, row, 1) for row in rows if row != hub)


def _parted(
    rows: Sequence[int], members: Sequence[int], said: Mapping[tuple[int, int], int], fresh: int = 1
) -> Iterator[Pair]:
    """Say that rows are not with others of a group, which stay together also where one of these rows held them so."""
    rest = [row for row in members if row not in rows]
    for row in rows:
        yield from _outweighed(row, rest, -1, said, fresh)
    held = {row for row in rest for other in rows if said.get((min(row, other), max(row, other)), 0) > 0}
    yield from ((rest[0], row, 1) for row in rest[1:] if held & {rest[0], row})


def _outweighed(
    row: int, members: Sequence[int], verdict: int, said: Mapping[tuple[int, int], int], fresh: int = 1
) -> Iterator[Pair]:
    """Say it of a row and all of a group of which the opposite was said, and of some more."""
    known = {other: said.get((min(row, other), max(row, other)), 0) for other in members if other != row}
    wrong = [other for other in known if known[other] == -verdict]
    others = [other for other in known if known[other] == 0][: max(fresh, OUTWEIGH if wrong else 0)]
    yield from ((row, other, verdict) for other in (*wrong, *others))
