"""Chains of must-links: chunklets, contradictions, closure."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlens.exceptions import ConflictError, ConflictWarning
from pairlens.supervision import Conflict, Constraints
from tests.supervision import oracles

quiet = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")


class TestChunklets:
    @given(made=oracles.constraints())
    @quiet
    def test_equals_union_find(self, made):
        must, _ = oracles.weights_of(made)
        group = oracles.groups_of(oracles.N_ROWS, must)
        linked = {row for pair in must for row in pair}
        numbers: dict[int, int] = {}
        expected = [numbers.setdefault(group[r], len(numbers)) if r in linked else -1 for r in range(oracles.N_ROWS)]
        assert made.chunklets().tolist() == expected

    def test_a_chain_of_a_million_rows(self):
        rows = np.arange(10**6)
        made = Constraints(np.column_stack([rows[:-1], rows[1:]]), n_samples=10**6)
        assert (made.chunklets() == 0).all()

    @pytest.mark.parametrize("size", [255, 256, 257, 512])
    def test_many_links_between_a_class_and_a_row(self, size):
        labels = Constraints.from_labels([0] * size + [-1, -1])
        links = Constraints(np.column_stack([np.arange(size), np.full(size, size)]), n_samples=size + 2)
        made = labels.merge(links)
        assert made.chunklets().tolist() == [0] * (size + 1) + [-1]
        fewer = Constraints(links.must_link[1:])
        with pytest.warns(ConflictWarning, match=rf"\(0, {size}\) by 0 - \d+ - {size}"):
            labels.merge(fewer, Constraints([], [(0, size)]))

    def test_unknown_number_of_rows(self):
        assert Constraints([(1, 3)], [(4, 5)]).chunklets().tolist() == [-1, 0, -1, 0, -1, -1]


class TestDetection:
    @given(must=oracles.pairs, cannot=oracles.pairs, known=st.booleans())
    @quiet
    def test_finds_all_of_them_without_labels(self, must, cannot, known):
        made = Constraints(must, cannot, oracles.N_ROWS if known else None, on_conflict="warn")
        links, apart = oracles.weights_of(made)
        found = made.conflicts()
        assert set(map(tuple, found.direct.tolist())) == links.keys() & apart.keys()
        expected = {pair for pair in apart.keys() - links.keys() if oracles.distance(links, *pair) is not None}
        assert set(map(tuple, found.chained.tolist())) == expected
        assert bool(found) == bool(expected or links.keys() & apart.keys())
        self.check_chains(found, links)

    @given(made=oracles.constraints(labelled=True))
    @quiet
    @settings(max_examples=200)
    def test_finds_all_of_them_with_labels(self, made):
        links, _ = oracles.weights_of(made)
        explicit_links, explicit_apart = oracles.weights_of(made.explicit)
        by_label = oracles.implied(made.labels.tolist())
        found = made.conflicts()
        direct = (explicit_links.keys() | by_label[0].keys()) & (explicit_apart.keys() | by_label[1].keys())
        assert set(map(tuple, found.direct.tolist())) == direct
        chained = set(map(tuple, found.chained.tolist()))
        denied = {p for p in explicit_apart.keys() - direct if oracles.distance(links, *p) is not None}
        # Label against label: the first labelled row of a component of explicit must-links, and each of another class.
        group = oracles.groups_of(oracles.N_ROWS, explicit_links)
        first: dict[int, int] = {}
        for row, label in enumerate(made.labels.tolist()):
            if label >= 0 and row in {r for pair in explicit_links for r in pair}:
                lead = first.setdefault(group[row], row)
                if made.labels[lead] != label and (lead, row) not in direct:
                    denied.add((lead, row))
        assert chained == denied
        self.check_chains(found, links)

    def check_chains(self, found, links):
        assert len(found) == len(found.direct) + len(found.chained)
        for position, (pair, chain, direct) in enumerate(found):
            assert found[position].pair == pair
            assert (chain[0], chain[-1]) == pair
            if direct:
                assert chain == pair
            else:
                assert all(oracles.ordered(step) in links for step in pairwise(chain))
                assert len(chain) - 1 == oracles.distance(links, *pair)

    def test_sequence(self):
        made = Constraints([(0, 1), (1, 2)], [(0, 1), (0, 2)], n_samples=3, on_conflict="drop")
        assert not made.conflicts()
        with pytest.warns(ConflictWarning):
            made = Constraints([(0, 1), (1, 2)], [(0, 1), (0, 2)], n_samples=3, on_conflict="warn")
        found = made.conflicts()
        assert list(found) == [Conflict((0, 1), (0, 1), True), Conflict((0, 2), (0, 1, 2), False)]
        assert found[-1] == found[1]
        assert found[:1] == (found[0],)
        assert repr(found) == "Conflicts(1 direct, 1 chained)"
        assert found.chained.tolist() == [[0, 2]]
        with pytest.raises(IndexError):
            found[2]
        with pytest.raises(ValueError, match="read-only"):
            found.direct[0, 0] = 1

    def test_few_pairs_among_many_rows(self):
        with pytest.warns(ConflictWarning, match=r"\(5, 900000\) by 5 - 70 - 900000"):
            Constraints([(5, 70), (70, 900_000)], [(5, 900_000), (1, 2), (5, 1)], n_samples=10**6)


class TestPolicies:
    direct: ClassVar[dict[str, Any]] = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(1, 0)], "n_samples": 6}
    chained: ClassVar[dict[str, Any]] = {"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 2), (3, 4)], "n_samples": 6}

    def test_default(self):
        with pytest.raises(ConflictError, match="1 pair is must-linked and cannot-linked") as caught:
            Constraints(**self.direct)
        assert (caught.value.argument, caught.value.value) == ("cannot_link", (0, 1))
        with pytest.warns(ConflictWarning, match=r"1 cannot-link is contradicted.*\(0, 2\) by 0 - 1 - 2"):
            made = Constraints(**self.chained)
        assert made.n_pairs == 4

    def test_a_conflict_error_is_a_value_error(self):
        with pytest.raises(ValueError, match="on_conflict='drop'"):
            Constraints(**self.direct)

    def test_raise(self):
        with pytest.raises(ConflictError):
            Constraints(**self.direct, on_conflict="raise")
        with pytest.raises(ConflictError, match="0 - 1 - 2"):
            Constraints(**self.chained, on_conflict="raise")

    def test_warn_keeps_the_pairs(self):
        with pytest.warns(ConflictWarning):
            assert Constraints(**self.direct, on_conflict="warn").n_pairs == 3
        with pytest.warns(ConflictWarning):
            assert Constraints(**self.chained, on_conflict="warn").n_pairs == 4

    def test_drop_is_silent(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert Constraints(**self.direct, on_conflict="drop").to_lists() == ([(2, 3)], [])
            assert Constraints(**self.chained, on_conflict="drop").to_lists() == ([(0, 1), (1, 2)], [(3, 4)])

    def test_a_long_chain_is_abbreviated(self):
        with pytest.warns(ConflictWarning, match=r"0 - 1 - 2 - 3 - \.\.\. \(12 more\) \.\.\. - 16 - 17 - 18 - 19"):
            Constraints([(k, k + 1) for k in range(19)], [(0, 19)])

    @given(must=oracles.pairs, cannot=oracles.pairs)
    @quiet
    def test_dropping_equals_the_oracle(self, must, cannot):
        left = {oracles.ordered(pair) for pair in must} - {oracles.ordered(pair) for pair in cannot}
        right = {oracles.ordered(pair) for pair in cannot} - {oracles.ordered(pair) for pair in must}
        group = oracles.groups_of(oracles.N_ROWS, left)
        right = {(i, j) for i, j in right if group[i] != group[j]}
        made = Constraints(must, cannot, oracles.N_ROWS, on_conflict="drop")
        assert made.to_lists() == (sorted(left), sorted(right))

    @given(labels=oracles.labels, made=oracles.constraints(labelled=False))
    @quiet
    def test_dropping_against_labels_leaves_nothing_contradictory(self, labels, made):
        settled = Constraints.from_labels(labels).merge(made, on_conflict="drop")
        assert not settled.conflicts()
        assert settled.labels.tolist() == Constraints.from_labels(labels).labels.tolist()
        for kept, answered in zip(oracles.weights_of(settled.explicit), oracles.weights_of(made)):
            assert kept.items() <= answered.items()
        if not Constraints.from_labels(labels).merge(made, on_conflict="warn").conflicts():
            assert settled.explicit == made

    def test_labels_outweigh_a_single_answer(self):
        labels = Constraints.from_labels([0, 0, 1, 1, -1])
        answers = Constraints([(0, 2), (0, 4)], [(2, 3)], n_samples=5)
        with pytest.raises(ConflictError, match=r"2 pairs are.*a pair and the labels disagree.*\(0, 2\)"):
            labels.merge(answers)
        assert labels.merge(answers, on_conflict="drop").explicit.to_lists() == ([(0, 4)], [])

    def test_a_chain_between_two_classes(self):
        labels = Constraints.from_labels([0, 1, -1, -1])
        with pytest.warns(ConflictWarning, match=r"\(0, 1\) by 0 - 2 - 1"):
            labels.merge(Constraints([(0, 2), (2, 1)], n_samples=4))
        settled = labels.merge(Constraints([(0, 2), (2, 1)], n_samples=4), on_conflict="drop")
        assert settled.explicit.n_pairs == 0

    def test_a_chain_through_a_class_skips_it(self):
        labels = Constraints.from_labels([0, 0, -1, -1])
        with pytest.warns(ConflictWarning, match=r"\(2, 3\) by 2 - 0 - 1 - 3"):
            made = labels.merge(Constraints([(0, 2), (1, 3)], [(2, 3)], n_samples=4))
        assert made.conflicts()[0].chain == (2, 0, 1, 3)

    def test_derived_objects_do_not_check_again(self):
        with pytest.warns(ConflictWarning):
            made = Constraints(**self.chained)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made[[0, 1, 2]]
            made.flip(0.5, random_state=0)
            list(made.split(2, random_state=0))
            made.sample(2, random_state=0)
            made.with_n_samples(9)


class TestClosure:
    @given(made=oracles.constraints())
    @quiet
    @settings(max_examples=200)
    def test_equals_the_oracle(self, made):
        expected = oracles.closed(*oracles.weights_of(made), oracles.N_ROWS)
        assert oracles.weights_of(made.closure()) == expected
        assert made.closure().n_samples == made.n_samples

    @given(made=oracles.constraints(labelled=False, known=False))
    @quiet
    def test_is_closed(self, made):
        assert made.closure().closure() == made.closure()

    def test_contradicted_cannot_links_are_left_out(self):
        with pytest.warns(ConflictWarning, match="0 - 1 - 2"):
            made = Constraints([(0, 1), (1, 2)], [(0, 2), (0, 3)])
        with pytest.warns(ConflictWarning, match="1 cannot-link is left out of the closure"):
            closed = made.closure()
        assert closed.to_lists() == ([(0, 1), (0, 2), (1, 2)], [(0, 3), (1, 3), (2, 3)])

    def test_labels_alone_are_closed_and_stay_implicit(self):
        made = Constraints.from_labels(np.arange(10**6) % 10)
        assert made.closure() is made

    def test_too_large(self):
        rows = np.arange(20_000)
        made = Constraints(np.column_stack([rows[:-1], rows[1:]]), n_samples=len(rows))
        assert oracles.refused(made.closure) == ("must_link", 199_990_000)
        thirds = Constraints(
            made.must_link[made.must_link[:, 1] % 6_000 != 0], [(0, 6_000), (0, 12_000), (6_000, 12_000)]
        )
        assert oracles.refused(thirds.with_n_samples(20_000)[:18_000].closure) == ("cannot_link", 108_000_000)
