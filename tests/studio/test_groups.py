"""The numbers that people see on groups."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pairlens.studio.groups import GroupNumbers
from tests.studio.conftest import Person, link, truth, until


def test_numbers_have_no_gaps_when_groups_are_first_seen():
    assert GroupNumbers().look({2: [1], 5: [3, 4], 11: [9]}) == {2: 1, 5: 2, 11: 3}


def test_a_group_that_goes_on_under_another_number_of_the_asker_keeps_the_one_people_saw():
    numbers = GroupNumbers()
    numbers.look({0: [1, 2], 1: [3], 2: [4]})
    assert numbers.look({1: [3], 2: [4], 7: [2, 1, 5]}) == {1: 2, 2: 3, 7: 1}


def test_of_two_groups_that_become_one_the_number_of_the_other_is_not_given_again():
    numbers = GroupNumbers()
    numbers.look({0: [1], 1: [2], 2: [3]})
    assert numbers.look({0: [1, 2], 2: [3]}) == {0: 1, 2: 3}
    assert numbers.look({0: [1, 2], 2: [3], 5: [8]}) == {0: 1, 2: 3, 5: 4}
    # Taken apart again, by an undo or a changed answer, they are what they were.
    assert numbers.look({0: [1], 2: [3], 5: [8], 6: [2]}) == {0: 1, 2: 3, 5: 4, 6: 2}


def test_a_number_of_which_nothing_is_left_is_given_again():
    numbers = GroupNumbers()
    numbers.look({0: [1], 1: [2]})
    assert numbers.look({0: [1]}) == {0: 1}
    # The asker counts on from where it was before the undo: the same number of its own, another group.
    assert numbers.look({0: [1], 1: [6]}) == {0: 1, 1: 2}


@given(st.lists(st.lists(st.integers(0, 4), min_size=8, max_size=8), min_size=1, max_size=6))
def test_any_course_of_groups(course):
    """Numbers differ, and groups whose rows stay keep theirs, also over a restart."""
    numbers = GroupNumbers()
    for labels in course:
        groups = {key: [int(row) for row in np.flatnonzero(np.array(labels) == key)] for key in range(1, 5)}
        groups = {key: rows for key, rows in groups.items() if rows}
        shown = numbers.look(groups)
        assert list(shown) == list(groups)
        assert len(set(shown.values())) == len(shown)
        assert min(shown.values(), default=1) >= 1
        assert numbers.look(groups) == shown
        assert GroupNumbers(numbers.known).look(groups) == shown


def test_numbers_are_those_of_the_files_and_outlive_the_studio(studio, table):
    running = studio(table)
    person = Person.enter(link(running))
    for _ in range(12):
        assert person.answer(truth).status_code == 200
    groups = person.get("groups")
    assert sorted(group["shown"] for group in groups) == [1, 2, 3]
    named = {group["shown"]: group["rows"] for group in groups}
    lines = [line.split(",") for line in person.client.get("/api/export/groups.csv").text.splitlines()[1:]]
    assert {(name, group) for name, group, _, known in lines if known == "placed"} == {
        (f"row-{row}", f"group {number}") for number, rows in named.items() for row in rows
    }
    # The numbers of an earlier run count, not those that the asker gives when it hears the answers again.
    kept = running.call(lambda session: session.store.meta()["groups"])
    swapped = {"1": kept["2"], "2": kept["1"], "3": kept["3"]}
    running.call(lambda session: session.store.set_meta({"groups": swapped}))
    running.stop()
    again = Person.enter(link(studio(table)))
    # There are none while the answers are taken in, though questions come before.
    found = {group["shown"]: group["rows"] for group in until(lambda: again.get("groups"))}
    assert found == {1: named[2], 2: named[1], 3: named[3]}
