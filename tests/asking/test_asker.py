"""Asker: groups from answers, strategies, placement screens, progress."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score

from pairlens import LinearPairLens, PairClusters
from pairlens.asking import Asker, Lens, Question
from pairlens.asking.progress import Audit, audit_curve, hint, share_curve
from tests.asking.people import answer_all, blobs, plain, true_answer, uneven

X, Y = blobs(120, centers=4, seed=1)
LENS = Lens(X)


def purity(asker, y):
    """Whether every group is of one class, and every class one group."""
    classes = [{int(y[row]) for row in rows} for rows in asker.groups_.values()]
    return all(len(found) == 1 for found in classes), len(set.union(*classes)) == len(classes)


@pytest.mark.parametrize("screen", ["pair", "placement"])
def test_clean_answers_find_the_classes(screen):
    asker = Asker(X, screen=screen, random_state=0, lens=LENS)
    answer_all(asker, Y, 60)
    assert purity(asker, Y) == (True, True)
    assert asker.error_rate_ < 0.03
    placed = {row for rows in asker.groups_.values() for row in rows}
    assert placed == set(asker.confidence_)
    assert min(asker.confidence_.values()) > 0.8


def test_right_answers_about_wide_groups_are_believed():
    rows, y = uneven()
    asker = Asker(rows, random_state=0)
    answer_all(asker, y, 100)
    assert purity(asker, y) == (True, True)
    group = {row: number for number, members in asker.groups_.items() for row in members}
    told = [(i, j, same) for i, j, same in plain(asker)["answers"] if i in group and j in group]
    assert all((group[i] == group[j]) == same for i, j, same in told)
    assert asker.error_rate_ < 0.02


def test_one_wide_group_does_not_fall_apart_for_right_answers():
    """A row that is the same as another one founds no group, however unsure it is where the other one belongs."""
    rows, y = uneven((120, 40, 40), (0.3, 2.0, 2.0), columns=20, apart=4, seed=7)
    asker = Asker(rows, random_state=0)
    answer_all(asker, y, 100)
    assert len(asker.groups_) == 3
    assert purity(asker, y) == (True, True)


def test_dense_rows_come_first_and_then_all_but_outliers():
    asker = Asker(X, random_state=0, lens=LENS)
    opened = []
    for _ in range(100):
        question = asker.ask()
        row, placed = question.rows[0], len(asker.confidence_)
        if question.purpose == "place" and row not in asker._state.open:
            opened.append((placed, asker._state.look.density[row]))
        asker.tell(question, true_answer(question, Y))
    few, more = (np.array([share for placed, share in opened if (placed < 30) == early]) for early in (True, False))
    assert few.min() > 0.3
    assert 0.05 < more.min() < 0.3
    assert (more < 0.3).sum() > 3


def test_wrong_answers_are_repaired_and_counted():
    """With one answer in ten wrong, most rows still end where they belong, and the error rate is seen."""
    asker = Asker(X, random_state=0, lens=LENS)
    answer_all(asker, Y, 200, wrong=0.1)
    label = {row: number for number, rows in asker.groups_.items() for row in rows}
    rows = list(label)
    assert adjusted_rand_score(Y[rows], [label[row] for row in rows]) > 0.8
    assert 0.03 < asker.error_rate_ < 0.2


def test_the_weights_count_by_half():
    asker = Asker(X, random_state=0, lens=LENS)
    answer_all(asker, Y, 60)
    pairs = asker.constraints()
    sizes = [len(rows) for rows in asker.groups_.values()]
    inside = sum(size * (size - 1) // 2 for size in sizes)
    assert pairs.n_must_link == inside
    assert pairs.must_link_total == pytest.approx(np.sqrt(inside * sum(size - 1 for size in sizes)))
    assert pairs.n_samples == len(X)


def test_the_view_learns():
    """60 questions show three classes behind a stronger structure that nobody asked for."""
    rng = np.random.default_rng(0)
    y, other = rng.integers(3, size=(2, 150))
    rows = np.hstack([np.eye(3)[y] * 2 + rng.standard_normal((150, 3)), np.eye(3)[other] * 8, other[:, None]])
    rows += rng.standard_normal(rows.shape) / 2
    asker = Asker(rows, random_state=0)
    answer_all(asker, y, 60)
    spread = []
    for Z in (Asker(rows, random_state=0).view_[:, :2], LinearPairLens(2).fit_transform(rows, **_pairs(asker))):
        spread.append(np.var([Z[y == c].mean(axis=0) for c in range(3)], axis=0).sum() / Z.var(axis=0).sum())
    assert spread[1] > spread[0] + 0.2


def _pairs(asker):
    return {"constraints": asker.constraints()}


def test_a_screen_shows_each_group_once_in_its_slot_and_representatives_take_turns():
    asker = Asker(X, screen="placement", random_state=0, lens=LENS)
    place_of: dict[int, set[int]] = {}
    faces: dict[int, list[int]] = {}
    for _ in range(60):
        question = asker.ask()
        if question.kind == "place":
            assert question.answers == (*map(str, range(1, len(question.rows))), "none", "unsure")
            assert len(question.groups) == len(question.rows) - 1 <= 8
            groups = asker.groups_
            if len(question.groups) == len(groups):
                for slot, (number, row) in enumerate(zip(question.groups, question.rows[1:])):
                    assert row in groups[number]
                    place_of.setdefault(number, set()).add(slot)
                    faces.setdefault(number, []).append(row)
        asker.tell(question, true_answer(question, Y))
    assert all(len(slots) == 1 for slots in place_of.values())
    assert max(len(set(rows)) for rows in faces.values()) > 3


def test_a_screen_is_one_answer_of_several_comparisons():
    asker = Asker(X, screen="placement", random_state=0, lens=LENS)
    answer_all(asker, Y, 12)
    question = asker.ask()
    while question.kind != "place" or len(question.rows) < 4:
        asker.tell(question, true_answer(question, Y))
        question = asker.ask()
    before = len(plain(asker)["answers"])
    asker.tell(question, "2")
    new = plain(asker)["answers"][before:]
    row, *shown = question.rows
    assert {(i if j == row else j): same for i, j, same in new} == {other: at == 1 for at, other in enumerate(shown)}
    asker.undo()
    assert len(plain(asker)["answers"]) == before


def test_more_than_eight_groups_fit_on_several_screens():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 12)
    rows = rng.standard_normal((12, 6))[y] * 6 + rng.standard_normal((len(y), 6))
    asker = Asker(rows, screen="placement", random_state=0)
    answer_all(asker, y, 90)
    assert len(asker.groups_) == 12
    assert purity(asker, y) == (True, True)


def test_nothing_left_to_ask():
    rows, y = blobs(9, centers=2)
    for arguments in ({}, {"screen": "placement"}, {"strategy": "random"}, {"strategy": "uncertain"}):
        asker = Asker(rows, random_state=0, **arguments)
        asked = answer_all(asker, y, 200)
        assert len(asked) < 200
        assert asker.ask() is None
        assert asker.undo() is not None
        assert asker.ask() is not None


@pytest.mark.parametrize("n_rows", [2, 3, 4])
def test_a_row_that_only_audits_have_told_of_is_placed_when_nothing_else_is_left(n_rows):
    rows = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    for seed in range(10):
        asker = Asker(rows, audit=0.9, random_state=seed)
        answer_all(asker, np.zeros(n_rows, dtype=int), 20)
        assert asker.ask() is None
        assert sorted(row for members in asker.groups_.values() for row in members) == list(range(n_rows))


def test_an_answer_does_not_look_at_all_rows_again_when_they_are_placed():
    class Counted(dict):
        n_looks = 0

        def __contains__(self, row):
            self.n_looks += 1
            return super().__contains__(row)

    asker = Asker(X, random_state=0, lens=LENS)
    while len(asker.confidence_) < len(X):
        answer_all(asker, Y, 1)
    answer_all(asker, Y, 1)
    asker._state.groups.where = where = Counted(asker._state.groups.where)
    asker.tell(Question.same(0, 1, id="given"), "same")
    assert where.n_looks < len(X)


def test_random_pairs_never_ask_what_follows():
    rows, y = blobs(12, centers=2)
    asker = Asker(rows, strategy="random", random_state=0)
    asked = answer_all(asker, y, 200)
    assert len(asked) < 12 * 11 / 2
    part = list(range(12))
    apart: set[frozenset[int]] = set()
    for question in asked:
        a, b = (part[row] for row in question.rows)
        assert a != b
        assert frozenset((a, b)) not in apart
        if y[question.rows[0]] == y[question.rows[1]]:
            part = [a if p == b else p for p in part]
            apart = {frozenset(a if p == b else p for p in pair) for pair in apart}
        else:
            apart.add(frozenset((a, b)))


def test_not_sure_is_no_evidence_and_three_times_sets_a_row_aside():
    asker = Asker(X, random_state=0, lens=LENS)
    answer_all(asker, Y, 20)
    question = asker.ask()
    while question.purpose != "place":
        asker.tell(question, true_answer(question, Y))
        question = asker.ask()
    row = question.rows[0]
    asker.tell(question, "different")
    before = plain(asker)["answers"]
    for count in (1, 2, 3):
        assert row in plain(asker)["open"]
        question = asker.ask()
        assert question.rows[0] == row
        asker.tell(question, "unsure")
        assert plain(asker)["unsure"][row] == count
    assert plain(asker)["answers"] == before
    assert row in plain(asker)["skipped"]
    assert all(row != question.rows[0] for question in answer_all(asker, Y, 10))


def test_a_skipped_row_is_not_opened_again():
    asker = Asker(X, random_state=0, lens=LENS)
    answer_all(asker, Y, 11)
    question = asker.ask()
    row = question.rows[0]
    asker.skip(row)
    assert asker.pending() == []
    assert all(row != question.rows[0] for question in answer_all(asker, Y, 40))


def test_a_merge_question_joins_groups_at_once():
    """Two groups of one class, made by wrong answers, become one group again."""
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.standard_normal((30, 3)), rng.standard_normal((30, 3)) + 9])
    y = np.repeat([0, 1], 30)
    asker = Asker(rows, random_state=0)
    first = asker.ask()
    while true_answer(first, y) == "different":
        asker.tell(first, "different")
        first = asker.ask()
    asker.tell(first, "different")
    answer_all(asker, y, 60)
    assert purity(asker, y) == (True, True)


@pytest.mark.parametrize(("screen", "wrong"), [("placement", 0.0), ("placement", 0.1), ("pair", 0.0), ("pair", 0.1)])
def test_placed_rows_are_asked_about_again_only_as_counted_audits(screen, wrong):
    """64 questions about digits: a row that was placed is the subject of no other question that is not declared."""
    digits, y = load_digits(return_X_y=True)
    digits, y = digits[:600], y[:600]
    asker = Asker(digits, screen=screen, random_state=0)
    rng, again = np.random.default_rng(1), []
    for _ in range(64):
        placed = {row for rows in asker.groups_.values() for row in rows}
        question = asker.ask()
        assert question.purpose in ("place", "merge")
        if question.rows[0] in placed:
            assert question.asked_again
        again += question.asked_again
        said = true_answer(question, y)
        if rng.random() < wrong:
            said = str(rng.choice([word for word in question.answers if word != said]))
        asker.tell(question, said)
    assert len(set(again)) == len(again)
    assert asker.asked_again_ == len(again) // 2 <= 7


@pytest.mark.parametrize("screen", ["placement", "pair"])
def test_questions_come_back_as_rarely_as_declared_and_each_row_once(screen):
    digits, y = load_digits(return_X_y=True)
    asker = Asker(digits[:600], screen=screen, random_state=0, repeat=0.15)
    answer_all(asker, y[:600], 100)
    questions = [entry.question for entry in asker.log]
    assert 8 <= sum(question.purpose == "repeat" for question in questions) <= 16
    declared = [question for question in questions if question.purpose in ("repeat", "merge")]
    again = [row for question in declared for row in question.rows[: 1 if question.kind == "place" else 2]]
    assert len(set(again)) == len(again)
    assert asker.asked_again_ == len(declared)


def test_a_row_is_not_asked_about_again_once_a_person_has_chosen_its_group():
    """Not even with the first view, that of a studio which was just started again and awaits the others."""
    digits, y = load_digits(return_X_y=True)
    asker = Asker(digits[:300], screen="placement", random_state=0, fits="elsewhere")
    chosen: dict[int, int] = {}
    for _ in range(64):
        question = asker.ask()
        said = true_answer(question, y)
        if question.kind == "place":
            assert question.rows[0] not in chosen
            if said != "none":
                chosen[question.rows[0]] = question.rows[int(said)]
        asker.tell(question, said)
    where = {row: number for number, rows in asker.groups_.items() for row in rows}
    assert len(chosen) > 30
    assert all(where[row] == where[other] for row, other in chosen.items())


def test_a_screen_has_the_likeliest_groups_by_typical_rows():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 20)
    rows = 9 * rng.standard_normal((12, 6))[y] + rng.standard_normal((len(y), 6))
    asker = Asker(rows, screen="placement", random_state=0)
    answer_all(asker, y, 120)
    view, typical = asker.view_, []
    for question in answer_all(asker, y, 40):
        if question.kind == "place" and question.purpose == "place":
            own = [number for number, members in asker.groups_.items() if y[members[0]] == y[question.rows[0]]]
            assert own[0] in question.groups
            for number, row in zip(question.groups, question.rows[1:]):
                members = asker.groups_[number]
                distance = np.linalg.norm(view[members] - view[members].mean(axis=0), axis=1)
                typical.append(distance[members.index(row)] <= np.median(distance) + 1e-9)
    assert np.mean(typical) > 0.8


def test_audited_questions_are_random_and_judged_before_they_are_learned():
    asker = Asker(X, random_state=0, lens=LENS, audit=0.3)
    answer_all(asker, Y, 120)
    audited = [entry for entry in asker.log if entry.question.purpose == "audit"]
    assert 20 < len(audited) < 55
    audits = plain(asker)["audits"]
    assert [audit.same for audit in audits] == [entry.answer == "same" for entry in audited]
    curve = asker.learning_curve()
    assert curve[-1].n == min(40, len(audited))
    assert 0 <= curve[-1].low < curve[-1].auc <= curve[-1].high <= 1
    # A view that is judged by what it had learned would be the same for all answers; an audit is judged by the view
    # before, which does not know it.
    position = next(at for at, entry in enumerate(asker.log) if entry.question.purpose == "audit")
    assert audits[0].answers == position
    turned = {"same": "different", "different": "same"}
    other = Asker(X, random_state=0, lens=LENS, audit=0.3)
    for entry in asker.log[:position]:
        other.tell(*entry)
    other.tell(audited[0].question, turned[audited[0].answer])
    assert plain(other)["audits"][0].view == audits[0].view


def test_both_answers_occur_among_audited_questions_of_many_groups():
    """Of ten groups one random pair in ten is in one of them; the weights make up for the near pairs."""
    rng = np.random.default_rng(0)
    groups = np.arange(300) % 10
    rows = rng.standard_normal((300, 5)) + 4 * rng.standard_normal((10, 5))[groups]
    asker = Asker(rows, random_state=0, audit=0.9)
    answer_all(asker, groups, 120)
    audits = plain(asker)["audits"]
    assert np.mean([audit.same for audit in audits]) > 0.18
    weight = np.array([audit.weight for audit in audits])
    pairs = [(i, j) for i in range(300) for j in range(i)]
    share = np.mean([groups[i] == groups[j] for i, j in pairs])
    assert np.average([audit.same for audit in audits], weights=weight) == pytest.approx(share, abs=0.04)


def test_rows_that_a_person_chooses_are_placed_at_once():
    asker = Asker(X, random_state=0, lens=LENS)
    (first,) = next(iter(asker.groups_.values()))
    own, other = (np.flatnonzero((Y[first] == Y) == same) for same in (True, False))
    i, j, k = (int(row) for row in (other[0], other[1], next(row for row in own if row != first)))
    for number, (a, b, answer) in enumerate([(i, j, "same"), (first, k, "same"), (i, k, "different")]):
        asker.tell(Question(f"c{number}", "same", (a, b), "chosen"), answer)
    assert sorted(map(sorted, asker.groups_.values())) == sorted([sorted((i, j)), sorted((first, k))])
    before = plain(asker)
    answer_all(asker, Y, 12)
    asker.retract(*(entry.question.id for entry in asker.log[3:]))
    assert plain(asker) == before
    replayed = Asker(X, random_state=0, lens=LENS)
    for entry in asker.log:
        replayed.tell(*entry)
    assert plain(replayed) == before


def test_the_screen_becomes_a_placement_when_there_are_three_groups():
    asker = Asker(X, random_state=0, lens=LENS, screen="auto")
    kinds = []
    for _ in range(40):
        question = asker.ask()
        kinds.append((question.kind, len(asker.groups_) >= 3))
        row, *others = question.rows
        if question.kind == "same":
            asker.tell(question, "same" if Y[row] == Y[others[0]] else "different")
        else:
            asker.tell(question, next((str(n) for n, o in enumerate(others, 1) if Y[o] == Y[row]), "none"))
    assert ("place", False) not in kinds
    assert ("place", True) in kinds
    with pytest.raises(ValueError, match="screen='auto' places rows"):
        Asker(X, strategy="random", screen="auto")


def test_the_curve_by_hand():
    audits = [Audit(n, n % 2 == 0, 0.1 if n % 2 == 0 else 0.9, 0.5) for n in range(12)]
    curve = audit_curve(audits)
    assert [point.n for point in curve] == [10, 11, 12]
    assert curve[-1].auc == 1
    assert curve[-1].low < 1
    # Six pairs of each kind, one that tells nothing: Mann and Whitney's deviation.
    assert curve[-1].pca == 0.5
    assert curve[-1].pca_high - 0.5 == pytest.approx(1.96 * np.sqrt(13 / (12 * 36)), abs=1e-4)
    assert audit_curve([Audit(n, True, 0.1, 0.5) for n in range(12)]) == []
    right = share_curve([(n, n % 4 > 0) for n in range(40)])
    assert right[-1].auc == 0.75
    # Wilson's interval of 30 of 40.
    assert right[-1].low == pytest.approx(0.5981, abs=1e-4)
    assert right[-1].high == pytest.approx(0.8581, abs=1e-4)


def test_the_hint_to_stop():
    flat = audit_curve([Audit(n, n % 3 == 0, (n * 7 % 10) / 20 + 0.4 * (n % 3 > 0), 0.5) for n in range(100)])
    stop = hint(flat, [1.0, 0.99, 0.97], since_new=30, unsure=0.1)
    assert stop.stop
    assert len(stop.reasons) == 3
    assert "10\N{NO-BREAK SPACE}%" in stop.cost
    assert not hint(flat, [1.0, 0.9, 0.97], since_new=30, unsure=0.1).stop
    assert not hint(flat, [1.0, 0.99, 0.97], since_new=3, unsure=0.1).stop
    assert not hint([], [1.0, 0.99, 0.97], since_new=30, unsure=0.1).stop
    rising = audit_curve([Audit(n, n % 3 == 0, 0.5 if n < 60 else 0.1 + 0.8 * (n % 3 > 0), 0.5) for n in range(100)])
    assert not hint(rising, [1.0, 0.99, 0.97], since_new=30, unsure=0.1).stop
    # One "same" in twenty makes a wide interval, within which the curve still rises.
    now = replace(flat[-1], auc=0.9, low=0.6, high=1.0)
    for gain, stops in ((0.08, False), (0.02, True)):
        earlier = replace(now, auc=now.auc - gain, answers=now.answers - 50)
        assert hint([earlier, now], [1.0, 0.99, 0.97], since_new=30, unsure=0.1).stop == stops


def test_placed_rows_are_sure():
    rows, y = load_iris(return_X_y=True)
    asker = Asker(rows[::5], random_state=0)
    # The first row founds the first group; 29 others are open.
    assert "about 97\N{NO-BREAK SPACE}%" in asker.stopping_hint().cost
    answer_all(asker, y[::5], 60)
    assert len(asker.confidence_) == len(rows[::5])
    assert "about 0\N{NO-BREAK SPACE}%" in asker.stopping_hint().cost


def test_placing_beats_random_pairs_on_iris():
    rows, y = load_iris(return_X_y=True)
    lens, found = Lens(rows), {}
    for strategy in ("place", "random"):
        asker = Asker(rows, strategy=strategy, random_state=0, lens=lens)
        answer_all(asker, y, 40)
        found[strategy] = asker.constraints()
    assert found["place"].n_must_link > 3 * found["random"].n_must_link
    must = found["place"].must_link
    assert (y[must[:, 0]] == y[must[:, 1]]).all()


@pytest.mark.parametrize(
    "rows",
    [
        np.array([[0.0], [1.0]]),
        np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [5.0, 1.0]]),
        np.zeros((6, 3)),
        np.random.default_rng(0).standard_normal((7, 40)),
    ],
    ids=["two rows", "duplicates", "constant", "wide"],
)
@pytest.mark.parametrize("arguments", [{}, {"screen": "placement"}, {"strategy": "uncertain"}, {"audit": 0.5}])
def test_odd_tables(rows, arguments):
    """Asking works on any table, ends, and never makes NaN."""
    asker = Asker(rows, random_state=0, refit_every=2, **arguments)
    answer_all(asker, np.arange(len(rows)) % 2, 100)
    assert asker.ask() is None
    assert all(0 <= sure <= 1 for sure in asker.confidence_.values())
    assert np.isfinite(asker.view_).all()


def test_sparse_rows_are_as_good_as_dense_ones():
    rows = np.where(np.random.default_rng(0).random((80, 20)) < 0.2, 1.0, 0.0)
    dense, thin = (Asker(table, random_state=0) for table in (rows, sparse.csr_matrix(rows)))
    y = rows[:, 0].astype(int)
    assert [q.rows for q in answer_all(dense, y, 30)] == [q.rows for q in answer_all(thin, y, 30)]
    rows[3, 2] = np.inf
    with pytest.raises(ValueError, match="first in row 3"):
        Asker(sparse.csr_matrix(rows))


def test_every_row_has_a_group():
    """Placed rows keep theirs, other rows are put in the likeliest, and new rows too."""
    X, y = make_blobs(120, centers=4, n_features=5, cluster_std=1.2, random_state=0)
    asker = Asker(X[:100], random_state=0)
    for _ in range(60):
        question = asker.ask()
        i, j = question.rows
        asker.tell(question, "same" if y[i] == y[j] else "different")
    numbers = asker.predict()
    for number, rows in asker.groups_.items():
        assert set(numbers[rows]) == {number}
    assert adjusted_rand_score(y[:100], numbers) > 0.9
    assert adjusted_rand_score(y[100:], asker.predict(X[100:])) > 0.8
    columns = np.array(asker.predicted_groups_)
    assert set(asker.groups_) <= set(columns.tolist())
    for rows in (None, X[100:]):
        q = asker.predict_proba(rows)
        assert (q.sum(axis=1) <= 1 + 1e-12).all()
        np.testing.assert_array_equal(columns[q.argmax(axis=1)], asker.predict(rows))
    assigned = asker.assigned_rows()
    assert [assigned.names[group] for group in assigned.group] == [f"group {number + 1}" for number in numbers]
    placed = {row for rows in asker.groups_.values() for row in rows}
    assert {row for row, how in enumerate(assigned.known) if how == "placed"} == placed
    # Other rows are as sure of their group as PairClusters is.
    model = PairClusters(random_state=asker.seed_).fit(X[:100], constraints=asker.constraints())
    others = np.setdiff1d(np.arange(100), list(placed))
    np.testing.assert_allclose(assigned.probability[others], model.probabilities_[others])
    # A guess at their number goes on to PairClusters.
    guess = Asker(X[:100], about=12, random_state=asker.seed_)
    for entry in asker.log[:8]:
        guess.tell(entry.question, entry.answer)
    assert len(set(guess.predict())) > 4
    with pytest.raises(ValueError, match="about=0 must be"):
        Asker(X, about=0)
    # One answer more is known at once.
    before = asker.predict_proba()
    question = asker.ask()
    i, j = question.rows
    asker.tell(question, "same" if y[i] == y[j] else "different")
    assert asker.predict_proba().shape[0] == len(before)
