"""Must-links to cannot-links: the vectors of the specification, the loops of the oracle, and the promises."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pairlens.exceptions import ConflictWarning
from pairlens.graphs import transformation
from pairlens.graphs.transformation import transform_constraints
from pairlens.supervision import Constraints
from tests.oracles.sodrpac import must_link_component, reliabilities

NAMES = "abefcd"
POINTS = np.array([(0, 0), (0.1, 0), (5, 5), (5, -5), (10, 0), (12, 3)], dtype=float)
KAPPA = float(np.exp(-0.01))


def _named(pairs: str) -> list[tuple[int, int]]:
    return [(NAMES.index(one), NAMES.index(other)) for one, other in pairs.split()]


# scenario of the paper's Fig. 2 -> must-links, cannot-links, result
VECTORS = {
    "2a": ("ae", "ac", {"ac": 1, "ec": 1}),
    "2b": ("ae cd", "ac", {"ac": 1, "ec": 1, "ad": 1, "ed": 1}),
    "2c": ("ae", "bc", {"bc": 1, "ac": KAPPA, "ec": KAPPA}),
    "2d": ("ae cd", "bc", {"bc": 1, "bd": 1, "ac": KAPPA, "ec": KAPPA, "ad": KAPPA, "ed": KAPPA}),
    "none": ("ae", "", {}),
    "clash": ("ae", "be", {"be": 1, "ab": 1}),
}


def as_matrix(pairs: Constraints) -> np.ndarray:
    matrix = np.zeros((len(pairs), len(pairs)))
    for (i, j), weight in zip(pairs.cannot_link, pairs.cannot_link_weight):
        matrix[i, j] = matrix[j, i] = weight
    return matrix


@pytest.mark.parametrize("scenario", VECTORS)
def test_vectors_of_the_specification(scenario):
    must, cannot, expected = VECTORS[scenario]
    known = Constraints(_named(must), _named(cannot), len(POINTS))
    made = transform_constraints(POINTS, known, n_neighbors=1, gamma=1.0)
    assert made.n_must_link == 0
    found = {tuple(pair): weight for pair, weight in zip(made.cannot_link.tolist(), made.cannot_link_weight)}
    assert found == pytest.approx({tuple(sorted(_named(pair)[0])): value for pair, value in expected.items()})


@st.composite
def situations(draw):
    """Rows, must-links and cannot-links without a direct contradiction; chained ones stay in."""
    n = draw(st.integers(4, 24))
    seed = draw(st.integers(0, 2**32 - 1))
    X = np.random.default_rng(seed).standard_normal((n, 2))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    must = draw(st.sets(pair.map(lambda p: tuple(sorted(p))), max_size=n))
    cannot = draw(st.sets(pair.map(lambda p: tuple(sorted(p))), max_size=n)) - must
    return X, sorted(must), sorted(cannot)


def quiet_constraints(must, cannot, n, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)
        return Constraints(must, cannot, n, **more)


@settings(max_examples=150, deadline=None)
@given(situation=situations(), n_neighbors=st.integers(1, 4), theta=st.sampled_from([None, 0.1, 5.0]))
def test_agrees_with_the_loops(situation, n_neighbors, theta):
    X, must, cannot = situation
    known = quiet_constraints(must, cannot, len(X))
    made = transform_constraints(X, known, n_neighbors=n_neighbors, gamma="auto" if theta is None else 1 / theta)
    expected = reliabilities(X, must, cannot, n_neighbors=n_neighbors, theta=theta)
    np.testing.assert_allclose(as_matrix(made), expected, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(situation=situations(), seed=st.integers(0, 2**32 - 1))
def test_promises(situation, seed):
    X, must, cannot = situation
    n = len(X)
    made = transform_constraints(X, quiet_constraints(must, cannot, n))
    L = as_matrix(made)
    assert made.n_must_link == 0
    assert ((made.cannot_link_weight > 0) & (made.cannot_link_weight <= 1)).all()
    assert all(L[i, j] == 1 for i, j in cannot)
    for i, j in made.cannot_link.tolist():
        assert (i, j) in cannot or j not in must_link_component(must, i)
    rng = np.random.default_rng(seed)
    shuffled = [
        [tuple(rng.permutation(pair)) for pair in rng.permutation(np.array(pairs).reshape(-1, 2))]
        for pairs in (must, cannot)
    ]
    assert transform_constraints(X, quiet_constraints(*shuffled, n)) == made
    order = rng.permutation(n)
    place = np.argsort(order)
    moved = [place[np.array(pairs, dtype=int).reshape(-1, 2)] for pairs in (must, cannot)]
    again = as_matrix(transform_constraints(X[order], quiet_constraints(*moved, n)))
    np.testing.assert_allclose(again, L[np.ix_(order, order)], atol=1e-12)


def test_without_must_links_nothing_changes_and_without_cannot_links_nothing_comes():
    X = np.random.default_rng(0).standard_normal((20, 3))
    only_cannot = Constraints(cannot_link=[(0, 1), (2, 3)], n_samples=20)
    assert transform_constraints(X, only_cannot) == only_cannot
    assert transform_constraints(X, Constraints([(0, 1), (2, 3)], n_samples=20)).n_pairs == 0


def test_certain_pairs_are_true_when_the_given_ones_are():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 4)), rng.integers(0, 3, 300)
    made = transform_constraints(X, Constraints.from_labels(y, n_pairs=400, random_state=0))
    certain = made.cannot_link[made.cannot_link_weight == 1]
    assert len(certain) > 500
    assert (y[certain[:, 0]] != y[certain[:, 1]]).all()
    assert (made.cannot_link_weight < 1).any()


def test_contradicted_cannot_links_are_kept():
    with pytest.warns(ConflictWarning):
        known = Constraints([(0, 1), (1, 2)], [(0, 2)], 6)
    made = transform_constraints(np.arange(12.0).reshape(6, 2), known)
    assert made.to_lists()[1] == [(0, 2)]


@settings(max_examples=100, deadline=None)
@given(situation=situations(), n_classes=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_labels_say_what_their_pairs_say(situation, n_classes, seed):
    X, must, cannot = situation
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(len(X)) < 0.5, rng.integers(0, n_classes, len(X)), -1)
    y[0] = 0  # labels of which all are missing are not kept
    labelled = Constraints.from_labels(y).merge(quiet_constraints(must, cannot, len(X)), on_conflict="drop")
    written_out = quiet_constraints(
        labelled.must_link, labelled.cannot_link, len(X), cannot_link_weight=labelled.cannot_link_weight
    )
    assert labelled.labels is not None
    assert written_out.labels is None
    made, expected = (transform_constraints(X, known) for known in (labelled, written_out))
    np.testing.assert_array_equal(made.cannot_link, expected.cannot_link)
    np.testing.assert_allclose(made.cannot_link_weight, expected.cannot_link_weight)


def test_many_labels_and_a_few_pairs_stay_small():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    y = np.where(np.arange(3000) < 1500, rng.integers(0, 3, 3000), -1)
    labelled = Constraints.from_labels(y)
    known = labelled.merge(Constraints([(0, 2000), (1, 2001)], [(2, 2002)], 3000))
    made = transform_constraints(X, known)
    different = y[:1500] != y[0]
    partners = made.cannot_link[(made.cannot_link == 2000).any(axis=1)].min(axis=1)
    assert set(np.flatnonzero(different)) <= set(partners)


def test_weights_are_inherited_up_to_one():
    known = Constraints(_named("ae"), _named("ac bd"), len(POINTS), must_link_weight=7.0, cannot_link_weight=[3.0, 0.5])
    made = transform_constraints(POINTS, known, n_neighbors=1, gamma=1.0)
    assert made.to_lists()[1] == sorted(tuple(sorted(p)) for p in _named("ac bd ec"))
    assert dict(zip(map(tuple, made.cannot_link.tolist()), made.cannot_link_weight)) == {
        tuple(sorted(_named("ac")[0])): 3.0,
        tuple(sorted(_named("bd")[0])): 0.5,
        tuple(sorted(_named("ec")[0])): 1.0,
    }
    faint = Constraints(_named("ae"), _named("ac"), len(POINTS), cannot_link_weight=0.25)
    assert transform_constraints(POINTS, faint).cannot_link_weight.tolist() == [0.25, 0.25]


def test_portions_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((200, 3)), rng.integers(0, 3, 200)
    known = Constraints.from_labels(y, n_pairs=300, random_state=1)
    whole = transform_constraints(X, known)
    monkeypatch.setattr(transformation, "PORTION", 50)
    assert transform_constraints(X, known) == whole


def test_sparse_rows_and_equal_rows():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 4)) * (rng.random((60, 4)) < 0.5)
    known = Constraints.from_labels(rng.integers(0, 2, 60), n_pairs=40, random_state=0)
    dense, thin = transform_constraints(X, known), transform_constraints(sparse.csr_matrix(X), known)
    np.testing.assert_array_equal(dense.cannot_link, thin.cannot_link)
    np.testing.assert_allclose(dense.cannot_link_weight, thin.cannot_link_weight)
    assert (transform_constraints(np.ones((60, 4)), known).cannot_link_weight == 1).all()


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"constraints": [(0, 1)]}, TypeError, "must be a pairlens.Constraints, got list"),
        (
            {"constraints": Constraints([(0, 1)], n_samples=7)},
            ValueError,
            "must be for 6 rows, as many as X has; got 7",
        ),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1; got 0"),
        ({"gamma": 0.0}, ValueError, 'gamma must be a positive number or "auto"; got 0.0'),
        ({"gamma": "cv"}, ValueError, "gamma must be a positive number .*; got 'cv'"),
        ({"X": np.full((6, 2), np.nan)}, ValueError, "NaN"),
    ],
)
def test_errors_say_what_would_be_right(wrong, error, message):
    arguments = {"X": POINTS, "constraints": Constraints([(0, 1)], n_samples=6), **wrong}
    with pytest.raises(error, match=message):
        transform_constraints(arguments.pop("X"), arguments.pop("constraints"), **arguments)


def test_unknown_number_of_rows_is_filled_in():
    assert len(transform_constraints(POINTS, Constraints([(0, 1)], [(1, 2)]))) == 6
