"""The numbers that people see on groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["GroupNumbers"]


class GroupNumbers:
    """Numbers from 1 for groups, which follow the rows.

    The asker counts every group that it ever founded, and many of them live for a moment only, or go on under another
    of its numbers when their rows are placed again. Here a number is spent when a group is first shown, and stays with
    the rows: the group that has them next keeps it. A number that people saw never means other rows, so there is a
    gap where a group was joined with another. It is given again only if none of its rows has a group any more, as
    after an undo.

    Parameters
    ----------
    known : mapping of int to rows, optional
        Numbers of an earlier run, with the rows that each stood for.

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
        """Every number that is taken, with the rows of its group when that was last there; those there now are last."""
        return {number: sorted(rows) for number, rows in self._rows.items()}

    def look(self, groups: Mapping[int, Iterable[int]]) -> dict[int, int]:
        """The number of each group.

        Parameters
        ----------
        groups : mapping of int to rows
            The groups there are, by the numbers of the asker.
        """
        now = {key: frozenset(rows) for key, rows in groups.items()}
        placed = frozenset().union(*now.values())
        self._rows = {number: rows for number, rows in self._rows.items() if rows & placed}
        found = {
            key: number
            for key, rows in now.items()
            if (number := self._number_of.get(key, 0)) in self._rows and self._rows[number] & rows
        }
        for key in sorted(now.keys() - found.keys()):
            found[key] = self._heir(now[key], set(found.values())) or self._lowest()
            self._rows[found[key]] = now[key]
        there = {found[key]: rows for key, rows in now.items()}
        gone = {number: rows for number, rows in self._rows.items() if number not in there}
        self._rows, self._number_of = gone | dict(sorted(there.items())), found
        return {key: found[key] for key in now}

    def _heir(self, rows: frozenset[int], taken: set[int]) -> int:
        """The number that most of these rows had last, if no other group has it; 0 if they were few."""
        free = [number for number in reversed(self._rows) if number not in taken]
        number = max(free, key=lambda number: len(rows & self._rows[number]), default=0)
        old = self._rows.get(number, rows)
        return number if 2 * len(rows & old) >= min(len(rows), len(old)) else 0

    def _lowest(self) -> int:
        return next(number for number in range(1, len(self._rows) + 2) if number not in self._rows)
