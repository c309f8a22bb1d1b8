"""Constraints and Preferences in other forms, there and back."""

from __future__ import annotations

import json
import sys
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from pairlens.exceptions import ConflictError, ConflictWarning, MissingExtraError
from pairlens.supervision import Constraints, Preferences
from tests.supervision import oracles

quiet = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
NAMES = [f"wine {k}" for k in range(oracles.N_ROWS)]
NUMBERS = 1000 - 7 * np.arange(oracles.N_ROWS)
DAYS = np.datetime64("2020-01-01") + np.arange(oracles.N_ROWS)
all_ids = pytest.mark.parametrize(
    "ids",
    [
        None,
        NAMES,
        NUMBERS,
        NUMBERS.astype(np.uint64) + 2**63,
        NUMBERS / 4,
        NUMBERS.astype(np.float32),
        DAYS,
        pd.Index(NAMES),
        pd.Series(NUMBERS),
        np.array([*NAMES[:4], *range(5)], dtype=object),
    ],
    ids=["none", "str", "int", "uint64", "fractions", "float", "dates", "Index", "Series", "mixed"],
)
some = Constraints([(0, 1), (2, 3)], [(1, 2), (0, 8)], 9, must_link_weight=[0.1, 2], cannot_link_weight=[1e-9, 1])


class TestSparse:
    @given(made=oracles.constraints())
    @quiet
    def test_is_the_difference_of_the_graphs(self, made):
        matrix, must, cannot = made.to_sparse(), made.must_link_graph(), made.cannot_link_graph()
        for graph, weights in zip((must, cannot), oracles.weights_of(made)):
            dense = np.zeros((oracles.N_ROWS, oracles.N_ROWS))
            for (i, j), weight in weights.items():
                dense[i, j] = dense[j, i] = weight
            assert np.array_equal(graph.toarray(), dense)
            assert isinstance(graph, sparse.csr_array)
        assert np.array_equal(matrix.toarray(), must.toarray() - cannot.toarray())

    @pytest.mark.parametrize(
        "form", [lambda m: m, sparse.triu, sparse.tril, sparse.coo_matrix, lambda m: m.toarray(), lambda m: m.tocsc()]
    )
    def test_round_trip(self, form):
        assert Constraints.from_sparse(form(some.to_sparse())) == some

    def test_explicit_zeros_mean_nothing(self):
        matrix = sparse.csr_array(([0.0, 0.0, 1.0], ([0, 1, 0], [0, 2, 1])), shape=(3, 3))
        assert Constraints.from_sparse(matrix).to_lists() == ([(0, 1)], [])

    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            (np.ones((2, 3)), r"matrix must be square.*\(2, 3\)"),
            (np.eye(3), r"matrix\[0, 0\] must be 0: a row cannot be paired with itself"),
            ([[0, 1, 0], [-1, 0, 0], [0, 0, 0]], r"must be symmetric.*\[0, 1\] and \[1, 0\]"),
            ([[0, 1, 0], [0, 0, 0], [1, 0, 0]], r"must be symmetric.*\[0, 1\] and \[1, 0\]"),
            ([[0, np.nan], [0, 0]], r"matrix\[0, 1\] is nan"),
            ([[0, 1], [0]], "matrix must be a regular array: entry 0"),
            ([["0", "1"], ["0", "0"]], "matrix must hold real numbers, got <U1"),
            (5, r"matrix must be square.*got \(\)"),
            (sparse.coo_array(([1e308, 1e308], ([0, 0], [1, 1])), shape=(2, 2)), r"matrix\[0, 1\] is inf"),
        ],
    )
    def test_errors(self, matrix, message):
        with pytest.raises(ValueError, match=message):
            Constraints.from_sparse(matrix)


class TestPairsAndLists:
    @given(made=oracles.constraints(labelled=False))
    @quiet
    def test_round_trips(self, made):
        pairs, y = made.to_pairs()
        again = Constraints.from_pairs(pairs, y, n_samples=made.n_samples)
        assert again.to_lists() == made.to_lists() == Constraints(*made.to_lists()).to_lists()

    def test_rows_of_the_data(self):
        X = np.arange(18.0).reshape(9, 2)
        pairs, y = some.to_pairs(X)
        assert pairs.shape == (4, 2, 2)
        assert np.array_equal(pairs[0], X[[0, 1]])
        assert y.tolist() == [1, 1, -1, -1]
        assert np.array_equal(some.to_pairs(pd.DataFrame(X))[0], pairs)

    def test_lists_hold_python_numbers(self):
        assert type(some.to_lists()[0][0][0]) is int
        assert Constraints().to_lists() == ([], [])

    def test_any_iterable(self):
        made = Constraints.from_pairs(zip([0, 1], [1, 2]), iter([1, -1]))
        assert made.to_lists() == ([(0, 1)], [(1, 2)])

    def test_nothing(self):
        assert Constraints.from_pairs([], [], n_samples=2) == Constraints(n_samples=2)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: some.to_pairs(np.zeros((5, 2))), r"X must have 9 rows.*\(5, 2\)"),
            (lambda: Constraints.from_pairs(np.zeros((3, 2, 4)), [1, 1, 1]), "row numbers.*not the rows of X"),
            (lambda: Constraints.from_pairs([(0, 1)], [1, -1]), "y must hold one sign per pair: expected 1"),
            (lambda: Constraints.from_pairs([(0, 1)], [0]), r"y\[0\] is 0: expected \+1"),
            (lambda: Constraints.from_pairs([0, 1], [1, 1]), "shape"),
            (lambda: Constraints.from_pairs([(0, 1), (2,)], [1, 1]), "pairs must be a regular array: entry 0"),
            (lambda: Constraints.from_pairs([(0, 1)], [[1], [1, 1]]), "y must be a regular array: entry 0"),
            (lambda: Constraints.from_pairs({(0, 1)}, [1]), "pairs is a set, which has no order that y could follow"),
            (lambda: some.to_pairs([[0], [1, 2]]), "X must be a regular array"),
        ],
    )
    def test_errors(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()


class TestFrames:
    @all_ids
    def test_round_trip(self, ids):
        frame = some.to_frame(ids)
        assert Constraints.from_frame(frame, ids=ids, n_samples=9) == some
        assert Constraints.from_frame(frame.to_dict("list"), ids=ids, n_samples=9) == some
        if ids is not None:
            assert Constraints.from_frame(frame, ids=ids).n_samples == 9

    @all_ids
    def test_polars(self, ids):
        polars = pytest.importorskip("polars")
        columns = some.to_frame(ids).to_dict("list")
        if ids is not None and np.asarray(ids).dtype == np.uint64:  # polars 1.0 reads such lists as signed numbers
            columns |= {name: np.array(columns[name], dtype=np.uint64) for name in ("a", "b")}
        frame = polars.DataFrame(columns, strict=False)
        assert Constraints.from_frame(frame, ids=ids, n_samples=9) == some
        assert Constraints.from_frame(some.to_frame(NAMES), ids=polars.Series(NAMES)) == some

    def test_columns(self):
        frame = some.to_frame(NAMES)
        assert frame.columns.tolist() == ["a", "b", "link", "weight"]
        assert frame.iloc[0].tolist() == ["wine 0", "wine 1", "must", 0.1]
        assert frame.link.tolist() == ["must", "must", "cannot", "cannot"]

    @pytest.mark.parametrize(
        ("must", "cannot"),
        [
            ("must", "cannot"),
            ("must-link", "cannot-link"),
            ("Same", " different "),
            (1, -1),
            (1.0, -1.0),
            (True, False),
            ("+1", "-1"),
            ("true", "false"),
        ],
    )
    def test_words_for_links(self, must, cannot):
        frame = pd.DataFrame({"a": [0, 1, 2], "b": [1, 2, 3], "link": [must, must, cannot]})
        assert Constraints.from_frame(frame, n_samples=4).to_lists() == ([(0, 1), (1, 2)], [(2, 3)])
        mixed = pd.DataFrame({"a": [0, 1], "b": [1, 2], "link": np.array([must, "cannot"], dtype=object)})
        assert Constraints.from_frame(mixed).to_lists() == ([(0, 1)], [(1, 2)])

    def test_other_names_and_no_weight(self):
        frame = {"left": [0], "right": [1], "answer": ["same"], "weight": [3]}
        made = Constraints.from_frame(frame, a="left", b="right", link="answer")
        assert made.must_link_total == 3
        assert Constraints.from_frame(frame, a="left", b="right", link="answer", weight=None).must_link_total == 1
        assert Constraints.from_frame(frame, a="left", b="right", link="answer", weight="w").must_link_total == 1

    def test_ids_of_another_kind_are_compared_as_text(self):
        frame = {"a": ["1000", "986"], "b": ["993", "1000"], "link": ["same", "different"]}
        assert Constraints.from_frame(frame, ids=NUMBERS).to_lists() == ([(0, 1)], [(0, 2)])
        frame = {"a": [1000.0], "b": [993.0], "link": ["same"]}
        assert Constraints.from_frame(frame, ids=NUMBERS).to_lists() == ([(0, 1)], [])
        frame = {"a": [1000], "b": [993], "link": ["same"]}
        assert Constraints.from_frame(frame, ids=NUMBERS.astype(str)).to_lists() == ([(0, 1)], [])

    def test_large_ids_do_not_blur(self):
        ids = np.array([2**63 + 1, 2**63 + 2, 5], dtype=np.uint64)
        frame = {"a": np.array([2**63 + 2], dtype=np.uint64), "b": np.array([5]), "link": [1]}
        assert Constraints.from_frame(frame, ids=ids).to_lists() == ([(1, 2)], [])

    def test_conflicts(self):
        frame = {"a": [0, 1], "b": [1, 0], "link": [1, -1]}
        with pytest.raises(ConflictError):
            Constraints.from_frame(frame)
        assert Constraints.from_frame(frame, on_conflict="drop").n_pairs == 0

    good = pd.DataFrame({"a": [0, 1], "b": [1, 2], "link": [1, -1], "weight": [1.0, 2.0]})

    @pytest.mark.parametrize(
        ("change", "arguments", "message"),
        [
            ({}, {"ids": [0, 1, 9]}, "row 1 of the frame has 2 as b: ids has no such id"),
            ({"a": ["x", "y"]}, {"ids": ["x", "z"]}, "row 1 of the frame has 'y' as a: ids has no such id"),
            ({"a": [0, None]}, {"ids": [0, 1, 2]}, "row 1 of the frame has .* as a"),
            ({}, {"ids": [0, 1, 2, 1]}, r"ids must be distinct, but .*1.* comes 2 times"),
            ({}, {"ids": []}, "row 0 of the frame has 0 as a: ids has no such id"),
            ({}, {"ids": [[0, 1]]}, "ids must be one-dimensional"),
            ({}, {"ids": [0, 1, 2], "n_samples": 4}, "n_samples=4, but ids names 3 rows"),
            ({}, {"n_samples": 2}, "row 1 of the frame has 2 as b: row numbers go from 0 to 1"),
            ({"a": [0, -1]}, {}, "row 1 of the frame has -1 as a: expected a row number"),
            ({"a": [0, 0.5]}, {}, "row 1 of the frame has 0.5 as a: expected a row number"),
            ({"a": ["0", "one"]}, {}, "row 1 of the frame has 'one' as a: expected a row number.*ids"),
            ({"b": [1, 1]}, {}, "row 1 of the frame has 1 as a and b: a row cannot be paired with itself"),
            ({"link": [1, 0]}, {}, "row 1 of the frame has 0 as link: expected must or cannot"),
            ({"link": ["must", None]}, {}, "row 1 of the frame has .* as link"),
            ({"weight": [1, np.nan]}, {}, "row 1 of the frame has nan as weight"),
            ({"weight": [1, -3]}, {}, "row 1 of the frame has -3 as weight"),
            ({"weight": ["1", "much"]}, {}, "row 1 of the frame has 'much' as weight"),
            ({}, {"link": "answer"}, "the frame has no column 'answer'; it has 'a', 'b', 'link', 'weight'"),
        ],
    )
    def test_errors(self, change, arguments, message):
        with pytest.raises(ValueError, match=message):
            Constraints.from_frame(self.good.assign(**change), **arguments)

    def test_not_a_table(self):
        with pytest.raises(ValueError, match="frame must be a table with named columns, got list"):
            Constraints.from_frame([(0, 1)])
        with pytest.raises(ValueError, match="the column 'a' must hold one plain value per row"):
            Constraints.from_frame({"a": [[0, 1]], "b": [1], "link": [1]})
        with pytest.raises(ValueError, match="the column 'a' must be a regular array: entry 0 is 0"):
            Constraints.from_frame({"a": [0, [1, 2]], "b": [1, 2], "link": [1, 1]})
        with pytest.raises(ValueError, match="equally long, but 'a' has 2 entries and 'b' has 1"):
            Constraints.from_frame({"a": [0, 1], "b": [2], "link": [1, 1]})
        with pytest.raises(ValueError, match="equally long, but 'better' has 1 entries and 'weight' has 2"):
            Preferences.from_frame({"better": [0], "worse": [2], "weight": [1, 1]})
        with pytest.raises(ValueError, match="ids must be a regular array"):
            Constraints.from_frame({"a": [0], "b": [1], "link": [1]}, ids=["x", ["y"]])
        with pytest.raises(ValueError, match="ids must name every row of X: expected 9, got 2"):
            some.to_frame(["x", "y"])

    def test_without_pandas(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'pairlens\[io\]'"):
            some.to_frame()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".ndjson", ".CSV"])
class TestFiles:
    @all_ids
    def test_round_trip(self, tmp_path, suffix, ids):
        path = tmp_path / f"answers{suffix}"
        some.to_file(path, ids)
        assert Constraints.from_file(path, ids=ids, n_samples=9) == some
        assert Constraints.from_file(str(path), ids=ids, n_samples=9) == some

    @given(made=oracles.constraints())
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
    @quiet
    def test_any_constraints(self, tmp_path, suffix, made):
        path = tmp_path / f"answers{suffix}"
        made.to_file(path)
        assert Constraints.from_file(path, n_samples=made.n_samples, on_conflict="warn") == made

    def test_awkward_names(self, tmp_path, suffix):
        names = ["a,b", 'quote "', "line\nbreak", "ü€", " space ", "", "#", "null", "1e3"]
        path = tmp_path / f"answers{suffix}"
        some.to_file(path, names)
        assert Constraints.from_file(path, ids=names) == some

    def test_nothing(self, tmp_path, suffix):
        path = tmp_path / f"answers{suffix}"
        Constraints(n_samples=3).to_file(path)
        assert Constraints.from_file(path, n_samples=3) == Constraints(n_samples=3)
        assert Constraints.from_file(path, ids=["x", "y"]) == Constraints(n_samples=2)
        Preferences(n_samples=3).to_file(path)
        assert Preferences.from_file(path, n_samples=3) == Preferences(n_samples=3)

    def test_without_pandas(self, tmp_path, suffix, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        path = tmp_path / f"answers{suffix}"
        some.to_file(path)
        assert Constraints.from_file(path, n_samples=9) == some

    @quiet
    def test_preferences(self, tmp_path, suffix):
        answers = Preferences([(3, 1), (1, 3), (0, 8)], 9, weight=[0.5, 1, 2])
        path = tmp_path / f"answers{suffix}"
        answers.to_file(path, ids=NAMES)
        assert Preferences.from_file(path, ids=NAMES) == answers


class TestForeignFiles:
    def write(self, tmp_path, name, text, encoding="utf-8"):
        path = tmp_path / name
        path.write_text(text, encoding=encoding)
        return path

    def test_csv_from_a_spreadsheet(self, tmp_path):
        text = "who, a ,b,link\r\nann,0,1,Same\r\n\r\nbob,1,2,different\r\n"
        path = self.write(tmp_path, "answers.csv", text, "utf-8-sig")
        assert Constraints.from_file(path).to_lists() == ([(0, 1)], [(1, 2)])

    def test_json_lines(self, tmp_path):
        lines = [{"a": 0, "b": 1, "link": True}, {"b": 2, "a": 1, "link": False, "note": "unsure"}]
        path = self.write(tmp_path, "answers.jsonl", "\n\n".join(map(json.dumps, lines)))
        assert Constraints.from_file(path).to_lists() == ([(0, 1)], [(1, 2)])

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
    @pytest.mark.parametrize(
        ("name", "text"), [("x.csv", "a,b,link\n0,1,must\n"), ("x.jsonl", '{"a": 0, "b": 1, "link": 1}\n')]
    )
    def test_byte_order_mark(self, tmp_path, name, text, encoding):
        assert Constraints.from_file(self.write(tmp_path, name, text, encoding)).to_lists() == ([(0, 1)], [])

    @pytest.mark.parametrize("blank", ["\n", "   \n", "\t\n", " \r\n"])
    @pytest.mark.parametrize(
        ("name", "first", "second"),
        [
            ("x.csv", "a,b,link\n", "0,1,must\n"),
            ("x.jsonl", '{"a": 1, "b": 2, "link": 1}\n', '{"a": 0, "b": 1, "link": 1}\n'),
        ],
    )
    def test_lines_of_white_space(self, tmp_path, name, first, second, blank):
        path = self.write(tmp_path, name, "".join([blank, first, blank, second, blank]))
        assert (0, 1) in Constraints.from_file(path).to_lists()[0]
        wrong = self.write(tmp_path, name, "".join([blank, first, blank, second.replace("0", "9", 1)]))
        with pytest.raises(ValueError, match=f"line 4 of {name} has '?9'? as a"):
            Constraints.from_file(wrong, n_samples=5)

    @pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
    @pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
    def test_another_encoding(self, tmp_path, name, encoding):
        path = self.write(tmp_path, name, "a,b,link\nMüller,Meier,same\n", encoding)
        line = 2 if encoding == "latin-1" else 1
        with pytest.raises(ValueError, match=f"{name} is not UTF-8 text: line {line} has the byte 0xf") as caught:
            Constraints.from_file(path, ids=["Müller", "Meier"])
        assert not isinstance(caught.value, UnicodeDecodeError)

    @pytest.mark.parametrize("order", list(permutations(range(3))))
    @pytest.mark.parametrize("kind", ["csv", "json"])
    def test_a_weight_on_some_lines_only(self, tmp_path, kind, order):
        answers = [{"a": 0, "b": 1, "link": "must"}, {"a": 1, "b": 2, "link": "must", "weight": 5}]
        answers.append({"a": 2, "b": 3, "link": "cannot", "weight": None})
        if kind == "csv":
            cells = (f"{a['a']},{a['b']},{a['link']},{a.get('weight') or ' '}" for a in (answers[k] for k in order))
            path = self.write(tmp_path, "x.csv", "\n".join(["a,b,link,weight", *cells]))
        else:
            path = self.write(tmp_path, "x.jsonl", "\n".join(json.dumps(answers[k]) for k in order))
        assert oracles.weights_of(Constraints.from_file(path)) == ({(0, 1): 1, (1, 2): 5}, {(2, 3): 1})
        better = Preferences.from_file(path, better="b", worse="a")
        assert oracles.preference_weights(better) == {(1, 0): 1, (2, 1): 5, (3, 2): 1}

    @pytest.mark.parametrize(
        ("name", "text", "arguments", "message"),
        [
            ("x.csv", "a,b,link\n0,1,must\n\n0,7,must\n", {"n_samples": 3}, "line 4 of x.csv has 7 as b"),
            ("x.csv", "a,b,link\nu,v,must\nu,w,must\n", {"ids": ["u", "v"]}, "line 3 of x.csv has 'w' as b"),
            ("x.csv", "a,b,link\n0,1\n", {}, "line 2 of x.csv has 2 fields, but the header has 3"),
            ("x.csv", "a,b\n0,1\n", {}, "x.csv has no column 'link'; it has 'a', 'b'"),
            ("x.csv", "", {}, "x.csv has no column 'a'; it has none"),
            (
                "x.csv",
                "a,b,link\n0,99999999999999999999,must\n",
                {},
                "line 2 of x.csv has '99999999999999999999' as b: .*2",
            ),
            ("x.csv", "a,b,link,weight\n0,1,must,-\n", {}, "line 2 of x.csv has '-' as weight"),
            ("x.csv", "a,b,link,weight\n0,1,must,nan\n", {}, "line 2 of x.csv has 'nan' as weight"),
            ("x.csv", f'a,b,link\n0,1,"{"m" * 200_000}"\n', {}, "line 2 of x.csv is not CSV"),
            ("x.csv", "a,b,link\n0,,must\n", {}, "line 2 of x.csv has '' as b"),
            ("x.jsonl", '{"a": 0, "b": 1, "link": 1}\n{"a": 0}\n', {}, "line 2 of x.jsonl has no column 'b'"),
            (
                "x.jsonl",
                '{"a": 0, "b": 18446744073709551615, "link": 1}',
                {},
                "line 1 of x.jsonl has 18446744073709551615 as b",
            ),
            ("x.jsonl", '{"a": 0, "b": 1e30, "link": 1}', {}, r"line 1 of x.jsonl has 1e\+30 as b: .* below 2\*\*31"),
            ("x.jsonl", '{"a": 0, "b": 1, "link": 1, "weight": ""}', {}, "line 1 of x.jsonl has '' as weight"),
            ("x.jsonl", '{"a": 0, "b": 1, "link": 1, "weight": NaN}', {}, "line 1 of x.jsonl has nan as weight"),
            (
                "x.jsonl",
                '{"a": 0, "b": 1, "link": 1}\n{"a": [0, 1], "b": 1, "link": 1}\n',
                {},
                r"line 2 of x.jsonl has \[0, 1\] as a: the column 'a' must hold one plain value",
            ),
            ("x.jsonl", '{"a": 0, "b": 1}\n', {}, "line 1 of x.jsonl has no column 'link'"),
            ("x.jsonl", "\nnonsense\n", {}, "line 2 of x.jsonl is not JSON"),
            ("x.jsonl", "[1, 2]\n", {}, "line 1 of x.jsonl must be a JSON object"),
            ("x.jsonl", '{"a": [0], "b": [1], "link": [1]}\n', {}, "the column 'a' must hold one plain value"),
            ("x.txt", "a,b,link\n", {}, r"must end in .csv, .jsonl, .ndjson or .tsv, got 'x.txt'"),
        ],
    )
    def test_errors(self, tmp_path, name, text, arguments, message):
        with pytest.raises(ValueError, match=message):
            Constraints.from_file(self.write(tmp_path, name, text), **arguments)

    def test_writing_another_kind(self, tmp_path):
        with pytest.raises(ValueError, match="must end in"):
            some.to_file(tmp_path / "answers.xlsx")

    def test_warning(self, tmp_path):
        path = self.write(tmp_path, "x.csv", "a,b,link\n0,1,1\n1,2,1\n0,2,-1\n")
        with pytest.warns(ConflictWarning, match="0 - 1 - 2") as caught:
            Constraints.from_file(path)
        assert caught[0].filename == __file__


@given(
    seconds=st.lists(
        st.datetimes(pd.Timestamp(1700, 1, 1), pd.Timestamp(2200, 1, 1)), min_size=2, max_size=5, unique=True
    )
)
def test_pandas_timestamps_as_ids(seconds):
    ids = pd.Series(pd.to_datetime(pd.Series(seconds)))
    made = Constraints([(0, 1)], n_samples=len(seconds))
    assert Constraints.from_frame(made.to_frame(ids), ids=ids) == made
