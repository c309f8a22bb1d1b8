"""Cells read as numbers, dates and words."""

from __future__ import annotations

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")

from pairlens.tables.cells import is_missing, read_dates, read_numbers, read_words  # noqa: E402


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1,234.5", "2,000", "-3"], [1234.5, 2000, -3]),
        (["1.234,5", "2", "0,5"], [1234.5, 2, 0.5]),
        (["1 234", "5", "1\u00a0234\u00a0567"], [1234, 5, 1234567]),
        (["1'234.5", " 7 "], [1234.5, 7]),
        (["12 %", "$3", "(4)", "\u22125"], [12, 3, -4, -5]),
        (["1e-3", "2E5", "+4"], [1e-3, 2e5, 4]),
        (["3,5", "2,25", "1e-3"], [3.5, 2.25, 1e-3]),
        (["1,234", "5,678"], [1234, 5678]),
        (["a", "2", "1_000", "", "NA", "1,2,3", "."], [np.nan, 2] + [np.nan] * 5),
        ([True, False], [1, 0]),
        ([1, None, 3], [1, np.nan, 3]),
    ],
)
def test_numbers(cells, numbers):
    np.testing.assert_array_equal(read_numbers(pandas.Series(cells)), numbers)


def test_a_remembered_decimal_comma_decides_for_new_cells():
    new = pandas.Series(["1,234"])
    assert read_numbers(new, decimal_comma=False)[0] == 1234
    assert read_numbers(new, decimal_comma=True)[0] == 1.234


@pytest.mark.parametrize(
    "cell",
    [
        "2020-01-31",
        "2020/1/31",
        "31.1.2020",
        "31/1/2020",
        "31-01-2020",
        "Jan 31, 2020",
        "January 31st, 2020",
        "31 January 2020",
        "31-Jan-2020",
        "31.01.20",
    ],
)
def test_dates(cell):
    found = read_dates(pandas.Series([cell, None]))
    assert found.values[0] == np.datetime64("2020-01-31")
    assert np.isnat(found.values[1])
    assert not found.has_time


@pytest.mark.parametrize(
    ("cell", "time"),
    [
        ("2020-01-31 15:05", "15:05:00"),
        ("2020-01-31T15:05:07.25Z", "15:05:07"),
        ("1/31/2020 3:05 PM", "15:05:00"),
        ("1/31/2020 12:05 am", "00:05:00"),
        ("31 Jan 2020, 15:05:07", "15:05:07"),
    ],
)
def test_times(cell, time):
    found = read_dates(pandas.Series([cell]))
    assert found.values[0] == np.datetime64(f"2020-01-31T{time}")
    assert found.has_time


def test_the_column_decides_which_number_is_the_day():
    assert str(read_dates(pandas.Series(["3/4/2020", "13/4/2020"])).values[0]) == "2020-04-03T00:00:00"
    assert str(read_dates(pandas.Series(["3/4/2020", "4/13/2020"])).values[0]) == "2020-03-04T00:00:00"
    assert str(read_dates(pandas.Series(["3.4.2020"])).values[0]) == "2020-04-03T00:00:00"
    assert str(read_dates(pandas.Series(["3/4/2020"]), day_first=True).values[0]) == "2020-04-03T00:00:00"


def test_no_such_day_is_missing():
    assert np.isnat(read_dates(pandas.Series(["2020-02-30", "2020-13-01", "soon", "1234", "Abc 3, 2020"])).values).all()


def test_time_zones_are_dropped():
    column = pandas.Series(pandas.to_datetime(["2020-01-31 15:05"])).dt.tz_localize("Asia/Tokyo")
    assert read_dates(column).values[0] == np.datetime64("2020-01-31T15:05")


def test_words_and_missing_cells():
    column = pandas.Series(["  a ", "?", None, "NaN", "b"])
    assert read_words(column).tolist() == ["a", None, None, None, "b"]
    assert is_missing(column).tolist() == [False, True, True, True, False]
    assert read_words(pandas.Series([2.0, np.nan, 3.5])).tolist() == ["2", None, "3.5"]
    assert read_words(pandas.Series(["x", None], dtype="category")).tolist() == ["x", None]
