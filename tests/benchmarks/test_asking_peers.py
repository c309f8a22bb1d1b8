"""The benches of groups: one answer for two rows, every method labels every row, and what stopped goes on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from benchmarks import asking_peers, clusters

PEERS = {"COBRAS", "NPU + PCKMeans*", "PCKMeans*", "COP-KMeans*"}


@pytest.fixture
def small(monkeypatch):
    X, y = make_blobs(60, centers=3, n_features=4, random_state=0)
    for module in (asking_peers, clusters):
        monkeypatch.setattr(module, "labelled_rows", lambda *_: (X, y))
    monkeypatch.setattr(asking_peers, "POINTS", (10, 20))
    return X, y


def test_an_oracle_says_the_same_of_the_same_rows():
    y = np.repeat([0, 1], 50)
    oracle = asking_peers.Oracle(y, 0.2, 3)
    asked = [(i, j) for i in range(100) for j in range(i)]
    said = [oracle.same(i, j) for i, j in asked]
    assert said == [oracle.same(j, i) for i, j in asked]
    wrong = np.mean([one != (y[i] == y[j]) for one, (i, j) in zip(said, asked)])
    assert 0.18 < wrong < 0.22
    assert asking_peers.Oracle(y, 0.0, 3).random_pairs(40).n_pairs == 40


@pytest.mark.parametrize("method", [name for name in asking_peers.METHODS if name not in PEERS])
def test_every_row_gets_a_group(small, method):
    X, y = small
    found = asking_peers.METHODS[method](X, X[:7], 3, asking_peers.Oracle(y, 0.0, 0))
    assert set(found) == {10, 20}
    assert all((len(labels), len(new)) == (len(X), 7) for labels, new in found.values())
    for protocol in asking_peers.TITLES:
        record = asking_peers.run((method, protocol, "blobs", 0.0, 0))
        assert len(record["ari"]) == 2
    assert method == "HDBSCAN" or record["ari"][-1] > 0.5


def test_a_peer_that_is_not_installed_is_named(small, capsys):
    if asking_peers.run(("COBRAS", "all rows", "blobs", 0.0, 0)) is None:
        assert "COBRAS is left out" in capsys.readouterr().out


def test_tables_are_of_the_sets_that_all_have(small, tmp_path):
    path = tmp_path / "results.jsonl"
    records = [
        {"method": method, "protocol": "all rows", "set": name, "wrong": 0.0, "draw": 0, "ari": [0.1, value]}
        for method, name, value in (("Asker", "a", 0.8), ("Asker", "b", 0.9), ("COBRAS", "a", 0.5))
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    shown = asking_peers.table(records)
    assert "0% wrong, 1 sets: a." in shown
    assert "| COBRAS | 0.100 | 0.500 | +0.300 (nan) | none |" in shown
    assert len(asking_peers.figure(records).axes) == 1
    asking_peers.main(["--only-print", "--results", str(path)])


def test_methods_are_compared_on_the_same_draws():
    records = [
        {"method": method, "protocol": "all rows", "set": "a", "wrong": 0.0, "draw": draw, "ari": [0.1, value]}
        for method, draw, value in (("Asker", 0, 0.5), ("Asker", 1, 0.7), ("Asker", 2, 0.9), ("COBRAS", 0, 0.4))
    ]
    assert "0% wrong, 1 sets: a." in asking_peers.table(records)
    assert "| Asker | 0.100 | 0.500 |" in asking_peers.table(records)
    both = [*records, {**records[-1], "draw": 1, "ari": [0.1, 0.9]}]
    assert "0% wrong, 1 sets: a (2)." in asking_peers.table(both)
    assert "| Asker | 0.100 | 0.600 |" in asking_peers.table(both)
    assert "| COBRAS | 0.100 | 0.650 | -0.050 (nan) | none |" in asking_peers.table(both)


def test_groups_are_measured_beside_k_means(small):
    record = clusters.run(("iris", 20, 0.1, 0))
    assert record["k"] == 3
    assert record["kmeans"] > 0.5
    assert record["ari"] > 0.5
    assert 0 < sum(record["rows"]) < 60
    assert sum(record["right"]) <= sum(record["rows"])
    shown = clusters.tables([record, {**record, "set": "wine"}])
    assert "| development | 20" not in shown
    assert "| development | all | all |" in shown
    # Where all rows are in pairs there is none to judge.
    full = clusters.run(("iris", 400, 0.0, 0))
    assert sum(full["rows"]) == 0
    assert clusters.tables([full]).count("| said |") == 0
