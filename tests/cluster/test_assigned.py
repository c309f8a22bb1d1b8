"""A group for every row: names, probabilities, and how each is known."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from pairlens import Constraints
from pairlens.cluster.assigned import COLUMNS, AssignedRows, assign_rows, label_names, renumbered


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(90, centers=3, n_features=4, random_state=1)
    return X, y, Constraints.from_labels(y, n_pairs=60, random_state=0)


def test_groups_are_called_as_people_call_them(blobs):
    X, y, pairs = blobs
    placed: list[str | None] = [None] * 90
    for group, name in ((0, "red"), (1, "group 1")):
        for row in np.flatnonzero(y == group)[:4]:
            placed[row] = name
    found = assign_rows(X, pairs, placed)
    assert len(found.names) == 3
    assert set(found.names) == {"red", "group 1", "group 2"}
    named = np.array(found.names)[found.group]
    for row, name in enumerate(placed):
        assert name is None or (named[row] == name and found.known[row] == "placed")
    assert (named[y == 0] == "red").mean() > 0.9
    assert (named[y == 2] == "group 2").mean() > 0.9
    answered = [row for row in pairs.rows if placed[row] is None]
    assert {found.known[row] for row in answered} == {"answered"}
    untold = np.setdiff1d(np.flatnonzero([name is None for name in placed]), pairs.rows)
    assert {found.known[row] for row in untold} <= {"inferred"}


def test_a_row_that_people_put_elsewhere_is_not_as_sure_as_the_model_is(blobs):
    X, y, pairs = blobs
    placed: list[str | None] = ["red" if group == 0 else "blue" if group == 1 else None for group in y]
    row = int(np.setdiff1d(np.flatnonzero(y == 0), pairs.rows)[0])
    sure = assign_rows(X, pairs, placed).probability[row]
    placed[row] = "blue"
    found = assign_rows(X, pairs, placed)
    assert found.names[found.group[row]] == "blue"
    assert found.known[row] == "placed"
    assert sure > 0.7
    assert found.probability[row] == pytest.approx(1 - sure)


def test_the_file_has_a_line_for_every_row(blobs, tmp_path):
    X, _, pairs = blobs
    found = assign_rows(X, pairs)
    path = found.write(tmp_path / "groups.csv", [f"row {i}" for i in range(90)])
    lines = list(csv.DictReader(io.StringIO(path.read_text())))
    assert tuple(lines[0]) == COLUMNS
    assert [line["id"] for line in lines] == [f"row {i}" for i in range(90)]
    assert all(0 < float(line["probability"]) <= 1 for line in lines)
    assert AssignedRows(["one"], np.array([0]), np.array([0.5]), ["inferred"]).to_csv().splitlines() == [
        "id,group,probability,known",
        "0,one,0.500,inferred",
    ]


def test_most_rows_in_common_decide_a_name():
    labels = np.array([0, 0, 0, 1, 1, 2, 2])
    placed = np.array([0, 0, 1, 1, -1, -1, -1])
    assert renumbered(labels, placed, 2).tolist() == [0, 1, 2]
    # A name is given once.
    assert renumbered(np.array([0, 0, 1]), np.array([0, 0, 0]), 1).tolist() == [0, 1]
    assert renumbered(np.array([0, 1]), np.array([-1, -1]), 0).tolist() == [0, 1]
    assert label_names(np.array([1.0, np.nan])) == ["1.0", None]
