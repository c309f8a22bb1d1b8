"""Triplets and Quadruplets, against sets and dictionaries."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections import Counter

import numpy as np
import pytest
import sklearn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairlens.exceptions import AnswerError, ConflictError, ConflictWarning
from pairlens.supervision import Quadruplets, Triplets

N = 6
quiet = pytest.mark.filterwarnings("ignore::pairlens.exceptions.ConflictWarning")
KINDS = [Triplets, Quadruplets]

rows = st.integers(0, N - 1)
triplet = st.tuples(rows, rows, rows).filter(lambda t: len(set(t)) == 3)
quadruplet = st.tuples(rows, rows, rows, rows).filter(
    lambda q: q[0] != q[1] and q[2] != q[3] and set(q[:2]) != set(q[2:])
)
weights = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0])


def plain(t):
    """The one form of a tuple: a quadruplet sorts its pairs."""
    return tuple(t) if len(t) == 3 else (*sorted(t[:2]), *sorted(t[2:]))


def opposite(t):
    return (t[0], t[2], t[1]) if len(t) == 3 else (*t[2:], *t[:2])


def table(made) -> dict:
    members = made.triplets if isinstance(made, Triplets) else made.quadruplets
    return dict(zip(map(tuple, members.tolist()), made.weight.tolist()))


def total(given) -> dict:
    found: Counter = Counter()
    for t, w in given:
        found[plain(t)] += w
    return dict(found)


@st.composite
def answers(draw, **options):
    kind = draw(st.sampled_from(KINDS))
    given = draw(st.lists(st.tuples(triplet if kind is Triplets else quadruplet, weights), **options))
    return kind, given


def build(kind, given, n=N, **more):
    return kind([t for t, _ in given], n, weight=[w for _, w in given], **more)


@quiet
@given(answers())
def test_stores_each_once_and_adds_weights(case):
    kind, given_ = case
    made = build(kind, given_)
    assert table(made) == pytest.approx(total(given_))
    assert list(table(made)) == sorted(table(made))
    assert build(kind, given_[::-1]) == made
    assert len(made) == N
    assert made.shape == (N,)
    assert made.rows.tolist() == sorted({row for t in table(made) for row in t})
    for k, t in enumerate(table(made)):
        far = (t[0], t[2]) if len(t) == 3 else t[2:]
        assert made.closer[k].tolist() == sorted(t[:2])
        assert made.farther[k].tolist() == sorted(far)


@quiet
@given(answers(), st.lists(rows, max_size=8))
def test_slices_renumber_and_copies_inherit(case, chosen):
    kind, given_ = case
    found = table(build(kind, given_)[np.array(chosen, dtype=int)])
    expected: Counter = Counter()
    for t, w in total(given_).items():
        for places in itertools.product(*([k for k, row in enumerate(chosen) if row == member] for member in t)):
            expected[plain(places)] += w
    assert found == pytest.approx(dict(expected))


@quiet
@given(answers(min_size=2), st.integers(0, 99))
def test_folds_samples_and_flips(case, seed):
    kind, given_ = case
    made = build(kind, given_)
    count = len(table(made))
    if count >= 2:
        folds = list(made.split(2, random_state=seed))
        assert sum(len(table(held_out)) for _, held_out in folds) == count
        for train, held_out in folds:
            assert table(train) | table(held_out) == table(made)
    assert table(made.flip(0)) == table(made)
    assert table(made.flip(1)) == pytest.approx(total([(opposite(t), w) for t, w in table(made).items()]))
    assert set(table(made.sample(count // 2, random_state=seed)).items()) <= set(table(made).items())
    assert len(table(made.sample(count // 2, random_state=seed))) == count // 2
    with pytest.raises(ValueError, match="exceeds"):
        made.sample(count + 1)


@quiet
@given(answers(), st.data())
def test_sets(case, data):
    kind, given_ = case
    other = data.draw(st.lists(st.tuples(triplet if kind is Triplets else quadruplet, weights)))
    left, right = table(build(kind, given_)), table(build(kind, other))
    one, two = build(kind, given_), build(kind, other)
    assert table(one.merge(two)) == pytest.approx(total([*left.items(), *right.items()]))
    assert table(one | two) == {t: max(left.get(t, 0), right.get(t, 0)) for t in left | right}
    assert table(one & two) == {t: min(left[t], right[t]) for t in left if t in right}
    assert table(one - two) == {t: w for t, w in left.items() if t not in right}


@quiet
@given(answers(min_size=1), st.sampled_from(["csv", "tsv", "jsonl"]), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_files_and_frames(tmp_path, case, suffix, by_id):
    kind, given_ = case
    made = build(kind, given_)
    ids = [f"row {k}" for k in range(N)] if by_id else None
    path = tmp_path / f"answers.{suffix}"
    made.to_file(path, ids)
    assert kind.from_file(path, ids=ids, n_samples=N) == made
    assert kind.from_frame(made.to_frame(ids), ids=ids, n_samples=N) == made


def test_columns_of_other_names():
    frame = {"who": [0], "like": [1], "unlike": [2]}
    assert Triplets.from_frame(frame, a="who", near="like", far="unlike").triplets.tolist() == [[0, 1, 2]]
    with pytest.raises(AnswerError, match="row 0 of the frame has 1 as near and far") as caught:
        Triplets.from_frame({"a": [0], "near": [1], "far": [1]})
    assert caught.value.problem == "same-row"
    with pytest.raises(TypeError, match="Triplets have no column 'b'; they have a, near, far"):
        Triplets.from_frame(frame, b="x")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Triplets([(0, 1)]), r"triplets must have the shape \(n_triplets, 3\)"),
        (lambda: Triplets([(0, 1, 1)]), r"triplets\[0\] is \(0, 1, 1\): near and far are the same row"),
        (lambda: Triplets([(0, 1, 2), (1, 1, 2)]), r"triplets\[1\] is \(1, 1, 2\): a and near are the same"),
        (
            lambda: Triplets([(0, 1, 5)], 5),
            r"\[0\] is \(0, 1, 5\): with n_samples=5 row numbers go from 0 to 4",
        ),
        (lambda: Triplets([(0, 1, -1)]), "cannot be negative"),
        (lambda: Triplets([(0, 1, 2)], weight=[1, 2]), "one weight per triplet of triplets: expected 1"),
        (lambda: Triplets([(0, 1, 2)], weight=-1), r"for the triplet \(0, 1, 2\): a weight must be finite"),
        (lambda: Triplets([(0, 1, 2)] * 2, weight=1e308), "the triplet .* add up to more than"),
        (lambda: Quadruplets([(0, 1, 1, 0)]), "both pairs are the same"),
        (lambda: Quadruplets([(0, 0, 1, 2)]), "a and b are the same row"),
        (lambda: Triplets([(0, 1, 2)], 3).merge(Triplets([(0, 1, 2)], 4)), "n_samples must agree"),
        (lambda: Triplets([(0, 1, 2)]).with_n_samples(2), "row numbers go from 0 to 1"),
        (lambda: Triplets.from_labels([0, 0, 1], n_triplets=3), "exceeds the 2 distinct triplets"),
        (lambda: Triplets.from_distances(np.eye(3), 4), "exceeds the 3 distinct triplets of 3 rows"),
        (lambda: Quadruplets.from_labels([0, 0, 0], 1), "two rows of one label and two rows of different"),
        (lambda: Triplets.from_distances(np.eye(3)[:2], 1, metric="precomputed"), "square matrix"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_other_kinds_do_not_mix():
    with pytest.raises(TypeError, match="merge takes Triplets, got Quadruplets"):
        Triplets(n_samples=3).merge(Quadruplets(n_samples=3))
    with pytest.raises(TypeError):
        Triplets() | Quadruplets()
    assert Triplets(n_samples=3) != Quadruplets(n_samples=3)


@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_round(kind):
    one = (0, 1, 2) if kind is Triplets else (1, 0, 3, 2)
    with pytest.warns(ConflictWarning, match="is given both ways round"):
        assert len(table(kind([one, opposite(one)]))) == 2
    with pytest.raises(ConflictError):
        kind([one, opposite(one)], on_conflict="raise")
    assert len(table(kind([one, opposite(one)], on_conflict="drop"))) == 0


@quiet
@given(answers())
def test_circles_are_circles_and_all_are_found(case):
    kind, given_ = case
    made = build(kind, given_)
    edges = set(zip(map(tuple, made.closer.tolist()), map(tuple, made.farther.tolist())))
    for cycle in made.cycles():
        for pair, following in zip(cycle, [*cycle[1:], cycle[0]]):
            assert (pair, following) in edges
    # The slow way: a relation has a circle if removing pairs that are closer than none never ends.
    left = set(edges)
    while any(far for _, far in left):
        ends = {far for _, far in left} - {near for near, _ in left}
        if not ends:
            break
        left = {edge for edge in left if edge[1] not in ends}
    assert bool(made.cycles()) == bool(left)


def test_immutable_picklable_and_routable():
    made = Triplets([(0, 1, 2)], 4, weight=2)
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) is made
    assert not pickle.loads(pickle.dumps(made)).triplets.flags.writeable
    with pytest.raises(AttributeError, match="immutable"):
        made.weight = 3
    with pytest.raises(TypeError, match="do not know how many rows"):
        len(Triplets([(0, 1, 2)]))
    from sklearn.utils import _safe_indexing

    assert _safe_indexing(made, [0, 1, 2]) == made[[0, 1, 2]]
    assert sklearn.utils.validation._num_samples(made) == 4
    assert made.to_quadruplets().weight.tolist() == [2.0]


labels = st.lists(st.sampled_from([0, 1, 2, -1]), min_size=1, max_size=8)


@given(labels)
def test_all_triplets_of_labels(y):
    expected = {
        (a, b, c)
        for a, b, c in itertools.permutations(range(len(y)), 3)
        if y[a] == y[b] != y[c] and -1 not in (y[a], y[c])
    }
    found = Triplets.from_labels(y)
    assert set(table(found)) == expected
    assert set(found.weight) <= {1.0}
    assert len(found) == len(y)
    half = Triplets.from_labels(y, n_triplets=len(expected) // 2, random_state=0)
    assert set(table(half)) <= expected
    assert len(table(half)) == len(expected) // 2


def test_triplets_of_labels_are_drawn_evenly():
    y = [0, 0, 0, 1, 1]
    count = Counter(t for seed in range(600) for t in table(Triplets.from_labels(y, n_triplets=6, random_state=seed)))
    assert len(count) == 18
    assert min(count.values()) > 150
    assert max(count.values()) < 250


def test_quadruplets_of_labels():
    y = np.array([0, 0, 0, 1, 1, 2])
    made = Quadruplets.from_labels(y, 44, random_state=0)
    assert made.n_quadruplets == 4 * 11
    assert (y[made.closer[:, 0]] == y[made.closer[:, 1]]).all()
    assert (y[made.farther[:, 0]] != y[made.farther[:, 1]]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", lambda a, b: abs(a - b).max(), "precomputed"])
def test_answers_of_a_metric(kind, metric):
    X = np.random.default_rng(0).standard_normal((9, 3))
    order = {"euclidean": 2, "manhattan": 1}.get(metric, np.inf) if isinstance(metric, str) else np.inf
    distances = np.linalg.norm(X[:, None] - X, ord=order, axis=2)
    made = kind.from_distances(distances if metric == "precomputed" else X, 40, metric=metric, random_state=0)
    assert len(made.weight) == 40
    assert len(made) == 9
    assert (distances[tuple(made.closer.T)] < distances[tuple(made.farther.T)]).all()
    assert not made.cycles()
    assert len(kind.from_distances(np.zeros((5, 2)), 3, random_state=0).weight) == 0


@quiet
@given(answers())
def test_comparisons_as_pairs(case):
    kind, given_ = case
    made = build(kind, given_)
    net: Counter = Counter()
    for near, far, weight in zip(made.closer.tolist(), made.farther.tolist(), made.weight):
        net[tuple(near)] += weight
        net[tuple(far)] -= weight
    found = made.to_constraints()
    pairs = dict(zip(map(tuple, found.must_link.tolist()), found.must_link_weight))
    pairs |= dict(zip(map(tuple, found.cannot_link.tolist()), -found.cannot_link_weight))
    assert pairs == pytest.approx({pair: weight for pair, weight in net.items() if weight})
    assert len(found) == N
