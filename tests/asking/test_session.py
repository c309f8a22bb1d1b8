"""The log decides everything: replay, undo, change, leases, several people, fits elsewhere."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pairlens.asking import (
    AlreadyAnsweredError,
    Asker,
    Entry,
    Lens,
    PreferenceAsker,
    Question,
    UnknownQuestionError,
)
from tests.asking.people import answer_all, blobs, plain, true_answer

X, Y = blobs(40)
LENS = Lens(X)
RANK_LENS = PreferenceAsker(X, random_state=0)._lens
KINDS = {
    "place": {},
    "placement": {"screen": "placement"},
    "audited": {"audit": 0.3, "repeat": 0.2},
    "random": {"strategy": "random"},
    "uncertain": {"strategy": "uncertain"},
    "prefer": {"audit": 0.2},
}


def make(kind, **more):
    if kind == "prefer":
        return PreferenceAsker(X, random_state=3, refit_every=4, lens=RANK_LENS, **KINDS[kind], **more)
    return Asker(X, random_state=3, refit_every=4, lens=LENS, **KINDS[kind], **more)


def replayed(asker, kind, log=None):
    fresh = make(kind)
    # Fitted views are shared to save time; that they repeat is tested below.
    fresh.views.update(asker.views)
    for question, answer in asker.log if log is None else log:
        fresh.tell(question, answer)
    return fresh


# Steps of a session: an answer with some luck, or one of the ways to take something back.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), st.sampled_from(["ann", "ben", None]), st.integers(0, 9)),
        st.tuples(st.just("ask"), st.sampled_from(["ann", "ben"]), st.just(0)),
        st.tuples(st.just("undo"), st.sampled_from(["ann", None]), st.just(0)),
        st.tuples(st.sampled_from(["change", "retract"]), st.none(), st.integers(0, 50)),
        st.tuples(st.just("skip"), st.none(), st.integers(0, 39)),
    ),
    min_size=4,
    max_size=30,
)


def act(asker, step):
    what, who, number = step
    if what == "ask":
        asker.ask(who)
    elif what == "undo":
        asker.undo(who)
    elif what == "skip":
        asker.skip(number)
    elif what == "tell":
        question = asker.ask(who)
        if question is not None:
            words = [true_answer(question, Y)] * 7 + list(question.answers)
            asker.tell(question, words[number % len(words)])
    else:
        told = [entry for entry in asker.log if entry.question.kind != "skip"]
        if told:
            entry = told[number % len(told)]
            if what == "retract":
                asker.retract(entry.question.id)
            else:
                asker.change(entry.question.id, entry.question.answers[number % len(entry.question.answers)])


@pytest.mark.parametrize("kind", list(KINDS))
@settings(max_examples=12, deadline=None)
@given(steps=steps)
def test_the_log_gives_the_state(kind, steps):
    """Whatever was asked, undone, changed, retracted or skipped, telling the log to a fresh asker gives the same."""
    asker = make(kind)
    for step in steps:
        act(asker, step)
        if kind != "prefer":
            asker.constraints()  # pairs that were asked for before do not stay
    fresh = replayed(asker, kind)
    assert plain(fresh) == plain(asker)
    assert fresh.log == asker.log
    if kind != "prefer":
        assert fresh.constraints() == asker.constraints()


@pytest.mark.parametrize("kind", list(KINDS))
@settings(max_examples=8, deadline=None)
@given(steps=steps)
@example(steps=[("tell", "ann", 0), ("ask", "ben", 0), ("undo", "ann", 0), ("tell", "ben", 0)])
def test_undo_is_never_told(kind, steps):
    asker = make(kind)
    for step in steps:
        act(asker, step)
    before, log = plain(asker), asker.log
    question = asker.ask("ann")
    if question is None:
        return
    asker.tell(question, true_answer(question, Y))
    assert plain(asker) != before
    assert asker.undo() == Entry(question, true_answer(question, Y))
    assert plain(asker) == before
    assert asker.log == log
    assert asker.ask("ann") == question


@pytest.mark.parametrize("kind", ["place", "placement", "random", "uncertain", "prefer"])
@settings(max_examples=4, deadline=None)
@given(wrong=st.sampled_from([0.0, 0.2]), seed=st.integers(0, 99))
def test_no_pair_is_asked_twice(kind, wrong, seed):
    asker = make(kind)
    asked = answer_all(asker, Y, 60, wrong=wrong, seed=seed)
    pairs = [pair for question in asked for pair in question.pairs]
    assert len(pairs) == len(set(pairs))
    assert len({question.id for question in asked}) == len(asked)


@pytest.mark.parametrize("kind", ["place", "placement", "random", "uncertain", "prefer"])
@settings(max_examples=8, deadline=None)
@given(moves=st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.floats(0, 20)), max_size=25))
def test_leases_never_overlap(kind, moves):
    """No two people have the same pair open, and no two place the same row, whenever leases end."""
    asker = make(kind, lease=30.0)
    clock = 0.0
    for person, answers, wait in moves:
        clock += wait
        question = asker.ask(person, now=clock)
        assert question is not None
        pending = asker.pending()
        pairs = [pair for open_question in pending for pair in open_question.pairs]
        assert len(pairs) == len(set(pairs))
        placing = [q.rows[0] for q in pending if q.purpose in ("place", "check")]
        assert len(placing) == len(set(placing))
        if answers:
            asker.tell(question, true_answer(question, Y))
    assert plain(replayed(asker, kind)) == plain(asker)


def test_an_expired_lease_goes_to_somebody_else():
    asker = make("place", lease=10.0)
    first = asker.ask("ann", now=0.0)
    assert asker.ask("ben", now=5.0).pairs != first.pairs
    assert asker.pending("ann") == [first]
    late = asker.ask("cem", now=10.0)
    assert first not in asker.pending()
    assert asker.pending("ann") == []
    # The late answer counts all the same.
    asker.tell(first, "same")
    asker.tell(late, "different")
    assert [entry.question for entry in asker.log] == [first, late]


def test_release_gives_a_question_back():
    asker = make("place")
    question = asker.ask("ann")
    asker.release(question)
    assert asker.pending() == []
    assert asker.ask("ben").rows == question.rows


def test_several_at_once():
    asker = make("place")
    answer_all(asker, Y, 30)
    batch = [asker.ask() for _ in range(5)]
    assert len({question.rows[0] for question in batch}) == 5
    for question in reversed(batch):
        asker.tell(question, true_answer(question, Y))
    assert plain(replayed(asker, "place")) == plain(asker)


def test_undo_brings_a_question_back_that_somebody_else_was_asked_because_of_it():
    asker = Asker(X, random_state=0, lens=LENS, overlap=0.99)
    first = asker.ask("ann")
    asker.tell(first, "different")
    also = next(question for _ in range(20) if (question := asker.ask("ben")).purpose == "overlap")
    assert set(also.pairs) == set(first.pairs)
    asker.undo("ann")
    assert asker.ask("ann") == first
    assert [question.rows for question in asker.pending() if set(question.pairs) == set(first.pairs)] == [first.rows]


def test_a_tenth_overlaps_and_agreement_is_measured():
    asker = Asker(X, random_state=0, refit_every=50, lens=LENS, overlap=0.3)
    rng = np.random.default_rng(0)
    for turn in range(160):
        question = asker.ask("ab"[turn % 2])
        said = true_answer(question, Y)
        asker.tell(question, said if question.annotator == "a" or rng.random() < 0.8 else "different")
    overlapping = [entry for entry in asker.log if entry.question.purpose == "overlap"]
    assert 0.15 * 160 < len(overlapping) < 0.45 * 160
    own = [entry.question.pairs for entry in asker.log if entry.question.annotator == "a"]
    assert len(own) == len(set(own))
    found = asker.agreement()
    assert found.n >= len(overlapping)
    assert 0.7 < found.share < 1
    assert 0 < found.kappa < 1
    alone = Asker(X, random_state=0, refit_every=50, lens=LENS, overlap=0.3)
    answer_all(alone, Y, 30, "a")
    assert alone.agreement().n == 0


def test_questions_come_back_with_sides_swapped():
    asker = Asker(X, random_state=0, refit_every=50, lens=LENS, repeat=0.3)
    answer_all(asker, Y, 80)
    repeated = [entry for entry in asker.log if entry.question.purpose == "repeat"]
    assert repeated
    earlier = {entry.question.rows: entry.answer for entry in asker.log if entry.question.purpose != "repeat"}
    for question, answer in repeated:
        assert earlier[question.rows[::-1]] == answer
    assert asker.consistency().share == 1
    asker.change(repeated[0].question.id, "same" if repeated[0].answer == "different" else "different")
    assert asker.consistency().share == pytest.approx(1 - 1 / len(repeated))


@pytest.mark.parametrize("kind", ["place", "audited", "prefer"])
def test_fits_elsewhere_give_the_same_state(kind):
    """However late a view comes, the state is that of fits in place."""
    asker, other = make(kind), make(kind, fits="elsewhere")
    rng = np.random.default_rng(0)
    for _ in range(40):
        question = asker.ask()
        answer = true_answer(question, Y)
        asker.tell(question, answer)
        other.tell(question, answer)
        if rng.random() < 0.2:
            other.ask()
        if rng.random() < 0.15 and (job := other.fit_job()) is not None:
            view = pickle.loads(pickle.dumps(other._lens)).fit(pickle.loads(pickle.dumps(job)))
            assert other.adopt(view)
    assert other.answers_behind_ >= asker.answers_behind_
    while (job := other.fit_job()) is not None:
        assert other.adopt(other._lens.fit(job))
    assert plain(other) == plain(asker)
    assert other.answers_behind_ == asker.answers_behind_ < 4
    # Of all views that were fitted, none keeps a number for each row.
    assert all(getattr(view, "crowding", None) is None for view in other.views.values())


@pytest.mark.parametrize("kind", ["place", "random"])
def test_a_long_log_is_taken_in_a_few_times_not_with_every_view(kind, monkeypatch):
    """Many views are adopted one after the other; the state is that of fits in place, on the way too."""
    pairs = np.random.default_rng(0).permutation([(i, j) for i in range(40) for j in range(i)])[:600]
    log = [Question.same(i, j, id=str(at)) for at, (i, j) in enumerate(pairs)]
    inline, other, taken, n_views = make(kind), make(kind, fits="elsewhere"), [], 0
    apply = type(other)._apply
    monkeypatch.setattr(other, "_apply", lambda state, entry: (taken.append(entry), apply(other, state, entry)))
    for question in log:
        inline.tell(question, true_answer(question, Y))
        other.tell(question, true_answer(question, Y))
    behind = [other.answers_behind_]
    while (job := other.fit_job()) is not None:
        assert other.adopt(inline.views[job.key])
        behind.append(other.answers_behind_)
        n_views += 1
    assert n_views > 50
    assert plain(other) == plain(inline)
    assert len(taken) < 5 * len(log)
    # Newer views come into use on the way.
    assert behind == sorted(behind, reverse=True)
    assert len(set(behind)) > 4


def test_a_view_of_answers_that_changed_is_not_adopted():
    asker = make("place", fits="elsewhere")
    answer_all(asker, Y, 6)
    job = asker.fit_job()
    first = asker.log[0]
    asker.change(first.question.id, "same" if first.answer == "different" else "different")
    assert not asker.adopt(LENS.fit(job))
    assert asker.fit_job().key != job.key
    # Once it is as it was, the view that is known already is taken.
    asker.change(first.question.id, first.answer)
    assert asker.fit_job() is None


def test_fits_slow_down_but_never_stop():
    asker = Asker(X, strategy="random", random_state=0, refit_every=1, lens=LENS)
    answer_all(asker, Y, 60)
    assert asker.answers_behind_ <= 3


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_replayed_asker_goes_on_with_the_same_questions(kind):
    asker = make(kind)
    answer_all(asker, Y, 25)
    fresh = replayed(asker, kind)
    for _ in range(5):
        question = asker.ask()
        assert fresh.ask() == question
        for one in (asker, fresh):
            one.tell(question, true_answer(question, Y))


def test_old_answers_change_too():
    """However few of the former states are kept."""
    asker = PreferenceAsker(X, random_state=3, refit_every=1, lens=RANK_LENS)
    answer_all(asker, Y + X[:, 0], 60)
    assert len(asker._checkpoints) <= 17
    for at in (40, 3, 0):
        asker.change(asker.log[at].question.id, "right")
        asker.retract(asker.log[at + 1].question.id)
        fresh = PreferenceAsker(X, random_state=3, refit_every=1, lens=RANK_LENS)
        for entry in asker.log:
            fresh.tell(*entry)
        assert plain(fresh) == plain(asker)


def test_a_question_survives_json():
    question = make("placement").ask("ann")
    assert Question.from_dict(json.loads(json.dumps(question.to_dict()))) == question


def test_answers_that_were_never_asked_for():
    asker = make("random")
    asker.tell(Question.same(4, 2, id="mine"), "same")
    assert asker.constraints().to_lists() == ([(2, 4)], [])
    ranker = make("prefer")
    ranker.tell(Question.prefer(4, 2, id="mine"), "left")
    assert ranker.preferences().pairs.tolist() == [[4, 2]]


def test_errors_say_what_is_wrong():
    asker = make("place")
    question = asker.ask()
    with pytest.raises(ValueError, match=r"answer='maybe' to question .* must be one of same, different, unsure"):
        asker.tell(question, "maybe")
    asker.tell(question, "same")
    with pytest.raises(AlreadyAnsweredError, match="was answered before"):
        asker.tell(question, "same")
    with pytest.raises(UnknownQuestionError, match="no answer to a question 'no'"):
        asker.change("no", "same")
    with pytest.raises(UnknownQuestionError, match="no answer to a question 'no'"):
        asker.retract("no")
    with pytest.raises(ValueError, match="names row 40; rows go from 0 to 39"):
        asker.skip(40)
    with pytest.raises(ValueError, match="is of kind 'prefer'"):
        asker.tell(Question.prefer(0, 1, id="x"), "left")
    with pytest.raises(ValueError, match="must be distinct"):
        Question.same(1, 1, id="x")
    for arguments, text in (
        ({"strategy": "best"}, "strategy='best'"),
        ({"screen": "wide"}, "screen='wide'"),
        ({"screen": "placement", "strategy": "random"}, "must be 'place'"),
        ({"refit_every": 0}, "refit_every=0"),
        ({"audit": 1.0}, "audit=1.0"),
        ({"lease": -1}, "lease=-1"),
        ({"fits": "never"}, "fits='never'"),
        ({"random_state": -1}, "random_state=-1"),
    ):
        with pytest.raises(ValueError, match=text):
            Asker(X, lens=LENS, **arguments)
    with pytest.raises(ValueError, match="NaN or infinity, first in row 1"):
        Asker([[0.0], [np.nan]])
    with pytest.raises(ValueError, match="at least two rows"):
        Asker([[0.0]])
    assert make("place").undo() is None


def test_what_is_no_row_no_question_and_no_number_is_named():
    asker = Asker(np.eye(4))
    for wrong in (None, "1-same-0-1"):
        with pytest.raises(TypeError, match=r"question must be a Question that ask\(\) gave"):
            asker.tell(wrong, "same")
    with pytest.raises(TypeError, match=r"skip takes the number of a row, such as question\.rows\[0\], got Question"):
        asker.skip(asker.ask())
    with pytest.raises(ValueError, match=r"X must hold numbers, but could not convert.*TableEncoder"):
        Asker([["a", "b"]] * 3)


class Broken(Asker):
    """Fails in the middle of taking an answer in."""

    def _apply(self, state, entry):
        super()._apply(state, entry)
        if entry.question.id == "bad":
            raise RuntimeError("in the middle")


def test_an_answer_that_cannot_be_taken_in_leaves_everything_as_it_was():
    X = np.random.default_rng(0).standard_normal((30, 3))
    asker, other = Broken(X, random_state=0), Asker(X, random_state=0)
    for number in range(13):
        for each in (asker, other):
            each.tell(Question.same(number, number + 1, id=f"q{number}"), "same")
        with pytest.raises(RuntimeError, match="in the middle"):
            asker.tell(Question.same(20, 21 + number % 5, id="bad"), "different")
    assert plain(asker) == plain(other)
    assert asker.log == other.log
    assert asker.ask().rows == other.ask().rows


@pytest.mark.parametrize("taken", ["1", "7", "9" * 15, "9" * 16, "9" * 5000])
def test_no_id_of_a_log_is_given_again(taken):
    """Ids of a log may be any text, also those of the questions that come next."""
    X = np.random.default_rng(0).standard_normal((30, 3))
    first = Asker(X, random_state=0).ask()
    name = first.id.replace("1", taken, 1)
    asker = Asker(X, random_state=0)
    asker.tell(Question.same(20, 21, id=name), "different")
    ids = {name}
    for _ in range(5):
        question = asker.ask()
        assert question.id not in ids
        ids.add(question.id)
        asker.tell(question, "different")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("rows", rows) for rows in ([1, 2.0], [1, "2"], [1, True], [1, math.nan], "12", None, [1], [1, 1])),
        *(("groups", groups) for groups in ([3], [-1], [2**60], [0.5], "1")),
        *(("id", name) for name in ("", None, 5)),
        *(("kind", kind) for kind in ("else", None, ["same"])),
        *(("purpose", purpose) for purpose in ("else", None, 3)),
        ("annotator", 5),
    ],
)
def test_a_question_from_json_is_one_that_could_be_asked(key, value):
    good = Question.same(1, 2, id="q").to_dict()
    with pytest.raises(ValueError, match=f"{key}=|rows"):
        Question.from_dict({**good, key: value})
    # What may be answered follows from the kind and the rows.
    assert Question.from_dict({**good, "answers": ["foo"]}).answers == ("same", "different", "unsure")
