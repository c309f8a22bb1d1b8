"""Files and data frames of answers: one format for the library and the command line, and errors with fields."""

from __future__ import annotations

import json
import pickle
import sys
from io import StringIO
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairlens.exceptions import AnswerError, ArgumentError, ConflictError, ConflictWarning, MissingExtraError
from pairlens.supervision import Constraints, Preferences, Quadruplets, Triplets, read_answers
from pairlens.supervision.answers import ANSWER_KINDS, AnswerFile, read_pair_blocks, write_answers
from pairlens.supervision.combined import answers_of
from tests.supervision import oracles

quiet = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")

IDS = ["x", "y", "z", "w"]
WORDS = {
    "must-link": ["must", "must-link", "Must_Link", "same", "TRUE", "1", "+1", "1.0"],
    "cannot-link": ["cannot", "cannot-link", "cannot_link", " Different ", "false", "-1", "-1.0"],
    "prefer": ["prefer", "Preferred", "preference", "better", ">"],
}


def write(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("column", ["kind", "link"])
@pytest.mark.parametrize(
    ("suffix", "delimiter"), [("csv", ","), ("csv", ";"), ("csv", "\t"), ("csv", "|"), ("tsv", "\t")]
)
def test_one_format_for_every_reader(column, suffix, delimiter, tmp_path):
    """Positions or ids, words or signs, any delimiter; what the command line writes, the classes read."""
    for by_id in (False, True):
        names = IDS if by_id else range(4)
        ids = IDS if by_id else None
        for must in WORDS["must-link"]:
            for cannot in WORDS["cannot-link"]:
                lines = [("a", "b", column), (names[0], names[1], must), (names[1], names[2], cannot)]
                text = "".join(delimiter.join(map(str, line)) + "\n" for line in lines)
                path = write(tmp_path, text, f"answers.{suffix}")
                expected = Constraints([(0, 1)], [(1, 2)], 4)
                assert Constraints.from_file(path, ids=ids, n_samples=4) == expected
                assert read_answers(path, ids=ids, n_samples=4).constraints == expected
        for word in WORDS["prefer"]:
            text = delimiter.join(["b", "a", column]) + "\n" + delimiter.join([*map(str, names[2:4]), word])
            path = write(tmp_path, text, f"answers.{suffix}")
            assert Preferences.from_file(path, ids=ids, n_samples=4).pairs.tolist() == [[3, 2]]
            assert read_answers(path, ids=ids, n_samples=4).preferences.pairs.tolist() == [[3, 2]]


@pytest.mark.parametrize("column", ["kind", "link"])
def test_frames_have_the_same_format(column):
    frame = {"a": [0, 1], "b": [1, 2], column: ["must-link", -1], "weight": [2, 1]}
    assert Constraints.from_frame(frame).to_lists() == ([(0, 1)], [(1, 2)])
    both = {**frame, "kind": ["same", "same"], "link": ["different", "different"]}
    assert Constraints.from_frame(both).n_must_link == 2
    preferred = {"a": [0], "b": [1], column: ["prefer"], "weight": [3]}
    assert Preferences.from_frame(preferred).total == 3


def test_weights_with_a_decimal_comma(tmp_path):
    path = write(tmp_path, "a;b;kind;weight\n0;1;same;0,5\n1;2;same;\n", "answers.csv")
    assert Constraints.from_file(path).must_link_weight.tolist() == [0.5, 1.0]
    path = write(tmp_path, 'a,b,kind,weight\n0,1,same,"0,5"\n', "answers.csv")
    with pytest.raises(AnswerError, match=r"line 2 of answers\.csv has '0,5' as weight"):
        Constraints.from_file(path)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(ANSWER_KINDS), st.floats(0.1, 9)).filter(
            lambda answer: answer[0] != answer[1]
        ),
        min_size=1,
    ),
    st.sampled_from(["csv", "tsv", "jsonl", "ndjson"]),
    st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
def test_what_is_written_is_read(tmp_path, answers, suffix, by_id):
    a, b, kind, weight = (np.array(part) for part in zip(*answers))
    names = np.array(IDS) if by_id else np.arange(4)
    path = tmp_path / f"answers.{suffix}"
    write_answers(path, names[a], names[b], kind, weight)
    file = AnswerFile.read(path)
    assert file.rows(IDS if by_id else None, 4)[0].tolist() == np.column_stack([a, b]).tolist()
    assert file.kind.tolist() == kind.tolist()
    np.testing.assert_array_equal(np.ones(len(a)) if file.weight is None else file.weight, weight)
    assert set(file.names) == set(map(str, names[np.concatenate([a, b])]))
    found = answers_of(file, IDS if by_id else None, 4, "warn")
    for kind_name, total in zip(
        ANSWER_KINDS,
        (found.constraints.must_link_total, found.constraints.cannot_link_total, found.preferences.total),
    ):
        assert total == pytest.approx(weight[kind == kind_name].sum())


@pytest.mark.parametrize(
    ("content", "problem", "fields"),
    [
        ("a,b,kind\n0,9,same\n", "out-of-range", (2, "b", 9)),
        ("a,b,kind\n0,1,same\n\n0,-1,same\n", "not-a-row", (4, "b", "-1")),
        ("a,b,kind\nx,1,same\n", "not-a-row", (2, "a", "x")),
        ("a,b,kind\n0,0,same\n", "same-row", (2, "a and b", "0")),
        ("a,b,kind\n0,1,perhaps\n", "unknown-kind", (2, "kind", "perhaps")),
        ("a,b,link,weight\n0,1,1,-1\n", "weight", (2, "weight", "-1")),
        ("a,b\n0,1\n", "no-column", (None, "link", None)),
        ("a,b,kind\n0,1\n", "not-a-table", (2, None, None)),
    ],
)
def test_errors_carry_fields(content, problem, fields, tmp_path):
    path = write(tmp_path, content, "answers.csv")
    with pytest.raises(AnswerError) as caught:
        Constraints.from_file(path, n_samples=5)
    error = caught.value
    assert (error.problem, error.file) == (problem, "answers.csv")
    assert (error.line, error.column, error.value) == fields
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("line", ["[" * 100_000, "9" * 5000, '{"a":'], ids=["nested", "digits", "cut"])
def test_a_line_that_is_not_json_is_named(line, tmp_path):
    path = write(tmp_path, f'{{"a": 0, "b": 1, "kind": "same"}}\n{line}\n', "answers.jsonl")
    with pytest.raises(AnswerError, match=r"line 2 of answers\.jsonl is not JSON"):
        Constraints.from_file(path, n_samples=5)


def test_errors_in_frames_and_of_ids():
    with pytest.raises(AnswerError) as caught:
        Constraints.from_frame({"a": ["x", "q"], "b": ["y", "z"], "kind": [1, 1]}, ids=IDS)
    error = caught.value
    assert (error.problem, error.file, error.line, error.column, error.value) == ("unknown-id", None, 1, "a", "q")
    assert error.phrased(reason="the data has no such id") == "row 1 of the frame has 'q' as a: the data has no such id"


def test_a_file_of_preferences_with_other_kinds(tmp_path):
    path = write(tmp_path, "a,b,kind\n0,1,prefer\n1,2,same\n", "answers.csv")
    with pytest.raises(AnswerError, match=r"has 'prefer' as kind: expected must or cannot"):
        Constraints.from_file(path)
    with pytest.raises(AnswerError, match="has 1 lines of other kinds than prefer: read_answers reads all kinds"):
        Preferences.from_file(path)
    answers = read_answers(path)
    assert (answers.constraints.n_pairs, answers.preferences.n_pairs) == (1, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("0,1,must-link\n", "must start with the header a,b,kind"),
        ("0,1,1\n", "must start with the header a,b,kind"),
        ("a,b\n0,1\n", "must start with the header a,b,kind"),
        ("a,b,kind\n0,1,maybe\n", "line 2 of pairs.csv has 'maybe' as kind: expected must-link, cannot-link or prefer"),
        ("a,b,kind\nmust-link,0,1\n", "has '1' as kind|has 'must-link' as a"),
        ("a,b,kind\n0,0,must-link\n", "a row cannot be paired with itself$"),
        ("a,b,kind\n0,1\n", "2 fields, but the header has 3"),
        ("a,b,kind,weight\n0,1,must-link,-1\n", "a weight must be a finite number of at least 0"),
        ("a,b,kind\nx,1,must-link\n", "expected a row number from 0 on; to name rows otherwise, give ids"),
        (b"a,b,kind\n0,1,\xe9\n", "not UTF-8"),
    ],
)
def test_pairs_that_are_none(content, message, tmp_path):
    path = write(tmp_path, content, "pairs.csv")
    with pytest.raises(ValueError, match=message):
        read_answers(path, n_samples=5)


def test_lines_of_json(tmp_path):
    path = write(
        tmp_path, '{"a": 0, "b": 1, "kind": "same"}\n\n{"b": 2, "a": 3, "kind": "prefer", "weight": 2}\n', "p.jsonl"
    )
    answers = read_answers(path, n_samples=5)
    assert answers.constraints.to_lists() == ([(0, 1)], [])
    assert answers.preferences.pairs.tolist() == [[3, 2]]
    assert answers.preferences.weight.tolist() == [2.0]
    for text in ("hello\n", "[1, 2]\n", '{"a": 0}\n', ""):
        with pytest.raises(ValueError, match=r"p\.jsonl"):
            read_answers(write(tmp_path, text, "p.jsonl"), n_samples=5)


def test_preferences_of_their_own(tmp_path):
    ids = np.array(["a", "b", "c"], dtype=object)
    two = write(tmp_path, "worse,better\na,b\nb,c\n", "p.csv")
    assert Preferences.from_file(two, ids=ids).pairs.tolist() == [[1, 0], [2, 1]]
    mixed = write(tmp_path, "a,b,kind\na,b,prefer\na,b,must\n", "q.csv")
    with pytest.raises(ValueError, match="1 lines of other kinds than prefer"):
        Preferences.from_file(mixed, ids=ids)


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
            ({}, {"ids": []}, "row 0 of the frame has 0 as a: ids has no such id"),
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
        ],
    )
    def test_errors(self, change, arguments, message):
        with pytest.raises(ValueError, match=message):
            Constraints.from_frame(self.good.assign(**change), **arguments)

    def test_without_pandas(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'pairlens\[io\]'"):
            some.to_frame()

    @pytest.mark.parametrize(
        ("frame", "arguments", "expected"),
        [
            (good, {"ids": [0, 1, 2, 1]}, ("ids", 1)),
            (good, {"ids": [[0, 1]]}, ("ids", (1, 2))),
            (good, {"ids": ["x", ["y"]]}, ("ids", ["y"])),
            (good, {"ids": [0, 1, 2], "n_samples": 4}, ("n_samples", 4)),
            ([(0, 1)], {}, ("frame", [(0, 1)])),
            ({"a": [[0, 1]], "b": [1], "link": [1]}, {}, ("column 'a'", (1, 2))),
            ({"a": [0, [1, 2]], "b": [1, 2], "link": [1, 1]}, {}, ("column 'a'", [1, 2])),
            ({"a": [0, 1], "b": [2], "link": [1, 1]}, {}, ("column 'b'", 1)),
        ],
    )
    def test_not_a_table(self, frame, arguments, expected):
        assert oracles.refused(lambda: Constraints.from_frame(frame, **arguments)) == expected

    def test_lengths(self):
        frame = {"better": [0], "worse": [2], "weight": [1, 1]}
        assert oracles.refused(lambda: Preferences.from_frame(frame)) == ("column 'weight'", 2)
        assert oracles.refused(lambda: some.to_frame(["x", "y"])) == ("ids", 2)


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
        ],
    )
    def test_errors(self, tmp_path, name, text, arguments, message):
        with pytest.raises(ValueError, match=message):
            Constraints.from_file(self.write(tmp_path, name, text), **arguments)

    def test_writing_another_kind(self, tmp_path):
        assert oracles.refused(lambda: some.to_file(tmp_path / "answers.xlsx")) == ("path", "answers.xlsx")
        assert oracles.refused(lambda: Constraints.from_file(tmp_path / "x.txt")) == ("path", "x.txt")

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


class TestFramesOfPreferences:
    @pytest.mark.parametrize("ids", [None, list("abcdefghi"), 10 * np.arange(9)])
    def test_round_trip(self, ids):
        made = Preferences([(3, 1), (0, 8)], 9, weight=[0.5, 1])
        frame = made.to_frame(ids)
        assert frame.columns.tolist() == ["better", "worse", "weight"]
        assert Preferences.from_frame(frame, ids=ids, n_samples=9) == made

    def test_errors(self):
        with pytest.raises(ValueError, match="row 0 of the frame has 'x' as worse"):
            Preferences.from_frame({"better": ["y"], "worse": ["x"]}, ids=["y"])
        with pytest.raises(ValueError, match="no column 'worse'"):
            Preferences.from_frame({"better": ["y"]})


@quiet
@given(
    made=st.lists(st.permutations(range(6)).map(lambda rows: rows[:3]), min_size=1).map(lambda t: Triplets(t, 6))
    | st.lists(st.permutations(range(6)).map(lambda rows: rows[:4]), min_size=1).map(lambda q: Quadruplets(q, 6)),
    suffix=st.sampled_from(["csv", "tsv", "jsonl"]),
    by_id=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_files_and_frames_of_comparisons(tmp_path, made, suffix, by_id):
    kind = type(made)
    ids = [f"row {k}" for k in range(6)] if by_id else None
    path = tmp_path / f"answers.{suffix}"
    made.to_file(path, ids)
    assert kind.from_file(path, ids=ids, n_samples=6) == made
    assert kind.from_frame(made.to_frame(ids), ids=ids, n_samples=6) == made


def test_wrong_columns_of_comparisons():
    with pytest.raises(AnswerError) as caught:
        Triplets.from_frame({"a": [0], "near": [1], "far": [1]})
    assert (caught.value.problem, caught.value.column) == ("same-row", "near and far")
    with pytest.raises(AnswerError) as caught:
        Quadruplets.from_frame({"a": [0], "b": [1], "c": [1]})
    assert (caught.value.problem, caught.value.column) == ("no-column", "d")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("size", [1, 3, 6, 100])
def test_pairs_without_answers_in_blocks(tmp_path, suffix, size):
    lines = [("x", "y"), ("y", "z"), ("z", "w"), ("w", "x"), ("x", "z"), ("y", "w")]
    if suffix == "csv":
        text = "a,b\n" + "".join(f"{a},{b}\n" for a, b in lines)
    else:
        text = "".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in lines)
    path = write(tmp_path, text, f"pairs.{suffix}")
    ends, rows = zip(*read_pair_blocks(path, ids=IDS, n_samples=4, size=size))
    assert [len(block) for block in rows] == [min(size, 6 - start) for start in range(0, 6, size)]
    assert np.concatenate(rows).tolist() == [[IDS.index(a), IDS.index(b)] for a, b in lines]
    assert [tuple(end) for block in ends for end in zip(*(each.tolist() for each in block))] == lines


SPLINK = "unique_id_l,unique_id_r,clerical_match_score\nx,y,1\ny,z,0.2\nz,w,0.75\nx,w,0\n"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_label_table_of_splink(suffix, tmp_path):
    labels = pd.read_csv(StringIO(SPLINK))
    path = tmp_path / f"labels{suffix}"
    path.write_text(SPLINK if suffix == ".csv" else labels.to_json(orient="records", lines=True))
    ids = ["w", "x", "y", "z"]
    for read in (
        read_answers(path, ids=ids).constraints,
        Constraints.from_file(path, ids=ids),
        Constraints.from_frame(labels.assign(source_dataset_l="a", source_dataset_r="b"), ids=ids),
    ):
        assert read.to_lists() == ([(0, 3), (1, 2)], [(0, 1), (2, 3)])
        np.testing.assert_allclose(read.must_link_weight, [0.5, 1])
        np.testing.assert_allclose(read.cannot_link_weight, [1, 0.6])
    file = AnswerFile.read(path)
    written = tmp_path / f"written{suffix}"
    write_answers(written, *file.ends, file.kind, file.weight, splink=True)
    again = pd.read_csv(written) if suffix == ".csv" else pd.read_json(written, lines=True)
    pd.testing.assert_frame_equal(again, labels, check_dtype=False)
    ((_, rows),) = read_pair_blocks(path, ids=ids, n_samples=4)
    assert rows.tolist() == [[1, 2], [2, 3], [3, 0], [1, 0]]


@pytest.mark.parametrize("score", ["1.5", "-0.1", "nan", "match"])
def test_scores_of_splink_are_probabilities(score, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(f"unique_id_l,unique_id_r,clerical_match_score\n0,1,1\n0,2,{score}\n")
    with pytest.raises(AnswerError, match=f"line 3 of labels.csv has '{score}' as clerical_match_score") as caught:
        read_answers(path)
    assert (caught.value.problem, caught.value.column) == ("score", "clerical_match_score")


def test_what_a_label_table_of_splink_cannot_hold(tmp_path):
    rows = np.array([0]), np.array([1])
    with pytest.raises(ArgumentError, match="kind must be must-link or cannot-link in a label table of Splink"):
        write_answers(tmp_path / "labels.csv", *rows, np.array(["prefer"]), splink=True)
    with pytest.raises(ArgumentError, match="weight must be at most 1"):
        write_answers(tmp_path / "labels.csv", *rows, np.array(["must-link"]), np.array([2.0]), splink=True)
    assert not list(tmp_path.iterdir())
    with pytest.raises(AnswerError, match="1 lines of other kinds than prefer"):
        Preferences.from_frame({"unique_id_l": [0], "unique_id_r": [1], "clerical_match_score": [1.0]})
