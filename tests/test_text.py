"""The writer of CSV: every cell comes back, and none is taken for a formula."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlens._text import FORMULA, TableWriter, as_it_was, harmless

CELLS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
    st.text("='+-@\t\r\n ,;\"1e.", max_size=6),
)


def written(rows, delimiter=","):
    file = io.StringIO(newline="")
    TableWriter(file, delimiter).rows(rows)
    return file.getvalue()


def test_formulas_are_neutralised():
    bad = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", '=HYPERLINK("http://x")', "-inf", "-5\r"]
    for cell in bad:
        assert harmless(cell) == f"'{cell}"
    for cell in ["plain", "-5", "+3.5", "-1e9", "a=b", "", "5", "'quoted'"]:
        assert harmless(cell) == cell


@pytest.mark.parametrize("cell", ["a\r=1+1", "a\rb", "a\nb", "a\r\n=1+1"])
def test_a_line_break_in_a_cell_does_not_end_the_row(cell):
    """Python up to 3.12 leaves a carriage return without quotes."""
    assert written([[cell, 1.5]]) == f'"{cell}",1.5\n'


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5), st.sampled_from(",\t"))
def test_every_cell_comes_back_and_none_is_a_formula(rows, delimiter):
    text = written(rows, delimiter)
    found = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    assert [[as_it_was(cell) for cell in row] for row in found] == [list(row) for row in rows]
    for cell in (cell for row in found for cell in row if cell.lstrip(" ").startswith(FORMULA)):
        float(cell)
