"""Files of answers of all kinds: one format for the library and the command line, and errors that carry fields."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairlens.exceptions import AnswerError
from pairlens.supervision import Constraints, Preferences, read_answers
from pairlens.supervision.answers import ANSWER_KINDS, AnswerFile, write_answers

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
    assert Constraints.from_frame(both, link="link").n_cannot_link == 2
    preferred = {"a": [0], "b": [1], column: ["prefer"], "weight": [3]}
    assert Preferences.from_frame(preferred).total == 3
    with pytest.raises(TypeError, match="Preferences have no column 'link'; they have better, worse"):
        Preferences.from_frame(preferred, link=column)


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
    assert file.rows(IDS if by_id else None, 4).tolist() == np.column_stack([a, b]).tolist()
    assert file.kind.tolist() == kind.tolist()
    np.testing.assert_array_equal(np.ones(len(a)) if file.weight is None else file.weight, weight)
    assert set(file.names) == set(map(str, names[np.concatenate([a, b])]))
    found = file.answers(IDS if by_id else None, 4, "warn")
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
