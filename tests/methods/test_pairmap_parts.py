"""The parts of PairMap against the dense oracle: affinities, evidence, neighbours, places and landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logit
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from pairlens import Constraints, PairMap
from pairlens._sklearn import as_generator
from pairlens.engines import neighbors
from pairlens.graphs.nearest import near_graph
from pairlens.judging import PairFolds
from pairlens.learning.spaces import PreparedRows
from pairlens.methods.pairmap import layout
from pairlens.methods.pairmap.attraction import (
    HeldOutPairs,
    evidence_of,
    long_range,
    neighbor_affinities,
    perplexity_weights,
    random_partners,
)
from pairlens.methods.pairmap.layout import lay_out, local_scale, nearest_known, place
from pairlens.spectral.rowspace import Standardiser
from tests.methods.cases import FAST, lists
from tests.oracles import learning
from tests.oracles import pairmap as oracle

pytest.importorskip("openTSNE", reason="pip install 'pairlens[map]'")


def spaces_of(X, known, priors):
    """The rows as they are and the taught spaces, with priors that are given."""
    Z = learning.scaled(X)
    plain = learning.unit_variance(Z)[0]
    given = [(prior.shape, prior.spread, prior.strength) for prior in priors]
    return [plain, *learning.taught_spaces(Z, *lists(known), given)]


@pytest.mark.parametrize("pairs_of", ["random pairs", "groups"])
def test_affinities_are_those_of_the_oracle(pairs_of, monkeypatch):
    """Rules 1 to 5 from the rows to the matrix that the layout gets."""
    X, y = load_wine(return_X_y=True)
    X, y = X[::2] + 0.01 * np.random.default_rng(0).standard_normal((89, 13)), y[::2]
    if pairs_of == "random pairs":
        known = Constraints.from_labels(y, n_pairs=50, random_state=1)
    else:
        known = Constraints.from_labels(np.where(np.arange(len(y)) % 8 == 0, y, -1))
    seen = {}
    monkeypatch.setattr(
        layout, "lay_out", lambda A, start, phases, **_: seen.setdefault("affinities", A) is None or start
    )
    model = PairMap(random_state=0).fit(X, constraints=known)

    rng = as_generator(0)
    rng.integers(2**31)
    whitened = learning.whitened(learning.scaled(X)).rows
    shares = np.array([model.space_weights_[name]["weight"] for name in ("rows", "linear", "kernel", "diffusion")])
    held_out, answers = [], []
    effective = min(known.n_pairs, 2 * len(known.rows))
    prepared = PreparedRows.of(X, Standardiser.of(X), anchors=known.rows)
    seed = int(as_generator(0).integers(2**31))
    for train, rest in PairFolds.draw_independent(known, 5, rng, keys=(whitened**2).sum(axis=1)):
        spaces = spaces_of(X, train, prepared.teach(train, seed)[0].priors)
        s = oracle.evidence(learning.side_by_side(spaces, shares), *lists(train))
        for pairs, same in zip(lists(rest), (True, False)):
            held_out += oracle.distances(spaces, s, pairs).tolist()
            answers += [same] * len(pairs)
    weight = min(1.0, effective / len(answers))
    D = np.array(held_out)
    slopes = oracle.logistic(D[:, :4], answers, weight)[1]
    np.testing.assert_allclose(shares, learning.shares(slopes, D[:, :4].std(axis=0), effective), atol=1e-5)
    a, b = oracle.logistic(D, answers, weight)
    drawn = random_partners(len(X), rng).tolist()
    spaces = spaces_of(X, known, model._spaces.taught.priors)
    V = learning.side_by_side(spaces, shares)
    s = oracle.evidence(V, *lists(known))

    share = sum(answers) / len(answers)
    pi = oracle.base_rate(a - oracle.distances(spaces, s, drawn) @ b, share, effective)
    shift = np.log(pi / (1 - pi)) - np.log(share / (1 - share))

    D = oracle.distances(spaces, s, drawn)
    odds = a + shift - D @ b - oracle.log_odds_errors(np.array(held_out), weight, a, b, D)
    lowered = dict(zip(map(tuple, drawn), 1 / (1 + np.exp(-odds))))
    expected, strength = oracle.affinities(oracle.neighbour_affinities(V), lambda i, j: lowered[i, j], drawn, pi)
    assert model.long_range_ == pytest.approx(strength / (1 + strength), abs=1e-4)
    assert strength > 0.1
    # Kernel components are eigenvectors with eigenvalues down to 1e-7 of the first, which takes digits.
    np.testing.assert_allclose(seen["affinities"].toarray(), expected, rtol=0, atol=1e-6)
    assert seen["affinities"].sum() == pytest.approx(1)
    left, right = np.array([0, 3, 5]), np.array([1, 50, 70])
    # Probabilities do without the diffusion space, where new rows are nearer to each other.
    kept = [0, 1, 2, 4]
    a, b = oracle.moderated(np.array(held_out)[:, kept], answers, weight)
    odds = a - oracle.distances(spaces, s, list(zip(left, right)))[:, kept] @ b
    probability = model.pair_proba(X[left], X[right])
    np.testing.assert_allclose(logit(probability), odds, atol=1e-2)
    np.testing.assert_allclose(logit(model.pair_proba(X[left], X[right], base_rate=pi)), odds + shift, atol=1e-2)


def test_evidence_is_that_of_the_oracle():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    V = rng.standard_normal((60, 5)) + 2 * np.eye(3, 5)[y]
    known = Constraints.from_labels(y, n_pairs=40, random_state=0)
    found = evidence_of(near_graph(V, 10), known)
    pairs = np.column_stack([np.repeat(np.arange(60), 60), np.tile(np.arange(60), 60)])
    expected = oracle.evidence(V, *lists(known))
    np.testing.assert_allclose(found.of_pairs(pairs).reshape(60, 60), expected, rtol=0, atol=1e-4)


def test_evidence_of_pairs_does_not_depend_on_their_order_or_on_the_form_they_are_asked_for_in():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 4
    graph = near_graph(rng.standard_normal((80, 5)) + np.eye(4, 5)[y], 10)
    found = evidence_of(graph, Constraints.from_labels(y, n_pairs=40, random_state=0))
    pairs = np.unique(rng.integers(0, 80, (300, 2)), axis=0)
    each = found(found.reach[pairs[:, 0]], found.reach[pairs[:, 1]])
    order = rng.permutation(len(pairs))
    np.testing.assert_allclose(found.of_pairs(pairs), each, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.of_pairs(pairs[order]), each[order], rtol=0, atol=1e-4)
    assert found.of_pairs(pairs[:0]).shape == (0,)


def test_labels_are_evidence_like_their_pairs():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) < 20, np.arange(60) % 3, -1)
    graph = near_graph(rng.standard_normal((60, 5)), 10)
    more = Constraints([(0, 30), (31, 32)], [(1, 33), (2, 34)], n_samples=60)
    implied = Constraints.from_labels(y).merge(more)
    listed = Constraints(implied.must_link, implied.cannot_link, n_samples=60)
    pairs = np.random.default_rng(1).integers(0, 60, (200, 2))
    np.testing.assert_allclose(
        evidence_of(graph, implied).of_pairs(pairs), evidence_of(graph, listed).of_pairs(pairs), atol=1e-4
    )


@pytest.mark.parametrize("labelled", [False, True])
def test_evidence_of_few_rows_is_that_of_all(labelled):
    """Held-out rows are fewer than those in pairs: their evidence comes from their own columns."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 3
    graph = near_graph(rng.standard_normal((200, 5)) + np.eye(3, 5)[y], 10)
    known = Constraints.from_labels(y, n_pairs=60, random_state=0)
    if labelled:
        known = known.merge(Constraints.from_labels(np.where(np.arange(200) < 20, y, -1)), on_conflict="warn")
    rows = np.array([3, 50, 51, 120, 199])
    pairs = np.array([(0, 1), (2, 4), (3, 3), (1, 0)])
    whole = evidence_of(graph, known)
    few = evidence_of(graph, known, rows)
    np.testing.assert_allclose(few.reach, whole.reach[rows], rtol=0, atol=1e-5)
    np.testing.assert_allclose(few.of_pairs(pairs), whole.of_pairs(rows[pairs]), rtol=0, atol=1e-3)
    assert few.level == pytest.approx(whole.level, rel=1e-3)


def weighted(known, factors):
    """The pairs with the same weights for all must-links, and others for all cannot-links."""
    must, cannot = factors
    return Constraints(
        known.must_link,
        known.cannot_link,
        len(known),
        must_link_weight=np.full(known.n_must_link, must),
        cannot_link_weight=np.full(known.n_cannot_link, cannot),
    )


def test_evidence_counts_weights_by_their_ratio(wine):
    X, _, pairs = wine
    graph = near_graph(StandardScaler().fit_transform(X), 10)
    some = np.random.default_rng(0).integers(0, len(X), (200, 2))
    plain, scaled = (evidence_of(graph, known).of_pairs(some) for known in (pairs, weighted(pairs, (0.1, 0.02))))
    np.testing.assert_allclose(scaled, plain, rtol=0, atol=1e-12)


def test_closure_that_counts_by_half_pulls_as_complete_groups_do():
    """Pairs of known groups, each with a small weight, are worth two answers a row, like those without weights."""
    y = load_wine().target
    X = load_wine().data
    groups = Constraints.from_labels(np.where(np.arange(len(y)) % 6 == 0, y, -1))
    assert groups.n_pairs > 10 * len(groups.rows)
    models = [PairMap(**FAST).fit(X, constraints=known) for known in (groups, weighted(groups, (0.3, 0.3)))]
    assert models[0].long_range_ > 0.3
    assert models[1].long_range_ == pytest.approx(models[0].long_range_, abs=0.1)


def test_neighbour_affinities_are_those_of_the_oracle():
    V = np.random.default_rng(0).standard_normal((120, 4))
    found = neighbors(V, n_nearest=90)
    Q = neighbor_affinities(found.nearest, found.nearest_distance, 30.0)
    np.testing.assert_allclose(Q.toarray(), oracle.neighbour_affinities(V), rtol=0, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_weights_have_the_perplexity_at_any_scale(scale):
    squared = np.random.default_rng(0).exponential(size=(50, 20)) * scale
    weights = perplexity_weights(squared, 5.0)
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(axis=1)
    np.testing.assert_allclose(entropy, np.log(5), atol=1e-12)


def test_weights_of_equal_neighbours():
    squared = np.array([[0.0, 0, 0, 0, 1], [2, 2, 2, 2, 2], [0, 0, 0, 0, 0]])
    expected = [[0.25, 0.25, 0.25, 0.25, 0], [0.2] * 5, [0.2] * 5]
    np.testing.assert_allclose(perplexity_weights(squared, 3.0), expected)


def test_places_are_those_of_the_oracle():
    rng = np.random.default_rng(0)
    V, new = rng.standard_normal((80, 6)), rng.standard_normal((20, 6))
    Z = rng.standard_normal((80, 2)) * 10
    found, weights = nearest_known(new, V)
    placed = place(found, weights, Z, local_scale(Z))
    np.testing.assert_allclose(placed, [oracle.place(v, V, Z) for v in new], rtol=0, atol=1e-10)


def test_a_pair_held_out_twice_counts_once_by_its_mean_and_contradictions_stay():
    pairs = np.array([[0, 1], [2, 3], [0, 1], [2, 3]])
    same = np.array([True, True, True, False])
    held_out = HeldOutPairs(pairs, same, np.ones(4), np.zeros((4, 5)), np.array([0, 0, 1, 1]))
    found, answer, values = held_out.once(np.array([0.2, 0.5, 0.6, 0.9]))
    assert [(*pair, bool(said)) for pair, said in zip(found.tolist(), answer)] == [
        (0, 1, True),
        (2, 3, False),
        (2, 3, True),
    ]
    np.testing.assert_allclose(values, [0.4, 0.9, 0.5])


def test_landmarks_hold_the_rows_in_pairs_and_place_all_others():
    X, y = load_digits(return_X_y=True)
    X, y = X[:900], y[:900]
    pairs = Constraints.from_labels(y, n_pairs=80, random_state=0)
    model = PairMap(random_state=0, max_iter=250, n_landmarks=400).fit(X, constraints=pairs)
    assert len(model._landmarks) == 400
    assert np.isin(pairs.rows, model._landmarks).all()
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_allclose(model.transform(X), model.embedding_, rtol=0, atol=1e-9 * np.abs(model.embedding_).max())
    others = np.setdiff1d(np.arange(900), model._landmarks)
    gap = ((model.embedding_[others][:, None] - model.embedding_[model._landmarks][None]) ** 2).sum(axis=2)
    assert np.mean(y[model._landmarks][np.argmin(gap, axis=1)] == y[others]) > 0.85
    suspects = model.suspicious_pairs()
    assert {tuple(pair) for pair in suspects.pairs} == {tuple(pair) for pair in np.vstack(pairs.to_lists())}
    assert ((model.pair_proba(X[:50], X[50:100]) > 0.5) == (y[:50] == y[50:100])).mean() > 0.8
    again = PairMap(random_state=0, max_iter=250, n_landmarks=400, init=model).fit(X, constraints=pairs)
    moved = np.linalg.norm(again.embedding_ - model.embedding_, axis=1)
    assert np.median(moved) < 0.1 * np.ptp(model.embedding_, axis=0).max()


def test_a_map_of_the_same_rows_lends_what_depends_on_them_alone(monkeypatch):
    X, y = load_wine(return_X_y=True)
    pairs = Constraints.from_labels(y, n_pairs=40, random_state=0)
    former = PairMap(random_state=0, max_iter=50).fit(X, constraints=pairs)
    by_places = PairMap(random_state=0, max_iter=50, init=former._map).fit(X, constraints=pairs)
    elsewhere = PairMap(random_state=0, max_iter=50, init=former)
    assert not elsewhere.fit(X[1:], constraints=pairs[1:])._same_rows(X[1:])

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("kernel features are known from the former map")

    monkeypatch.setattr("pairlens.learning.spaces.kernel_features", refuse)
    by_model = PairMap(random_state=0, max_iter=50, init=former).fit(X, constraints=pairs)
    np.testing.assert_array_equal(by_model.embedding_, by_places.embedding_)


def test_a_map_of_the_same_rows_alone_is_drawn_once_where_it_may_be_reused(monkeypatch):
    drawn = []

    def counted(*given: Any, **options: Any) -> np.ndarray:
        drawn.append(given)
        return lay_out(*given, **options)

    monkeypatch.setattr(layout, "_KEPT", {})
    monkeypatch.setattr(layout, "lay_out", counted)
    X = load_wine().data[::3]
    first = layout.plain_map(X, reuse=True)
    again = layout.plain_map(X.copy(), reuse=True, n_jobs=2)
    np.testing.assert_array_equal(again, first)
    assert len(drawn) == 1
    # Who changes a map does not change that of others.
    again += 1
    np.testing.assert_array_equal(layout.plain_map(X, reuse=True), first)
    layout.plain_map(X)
    assert len(drawn) == 2
    for changed in ({"random_state": 1}, {"perplexity": 5}, {"n_components": 1}, {"standardize": False}):
        before = len(drawn)
        layout.plain_map(X, reuse=True, **changed)
        assert len(drawn) == before + 1
    for unrepeatable in (None, np.random.default_rng(0)):
        before = len(drawn)
        for _ in range(2):
            layout.plain_map(X, reuse=True, random_state=unrepeatable)
        assert len(drawn) == before + 2
    assert len(layout._KEPT) == layout.MOST_KEPT


def test_partners_are_about_forty_and_all_of_few_rows():
    pairs = random_partners(2000, np.random.default_rng(0))
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert np.bincount(pairs.ravel(), minlength=2000).mean() == pytest.approx(40, abs=1)
    assert len(random_partners(20, np.random.default_rng(0))) == 190


def test_long_range_vanishes_where_nothing_is_probable():
    pairs = np.array([[0, 1], [1, 2]])
    assert long_range(pairs, np.array([0.5, 0.2]), 0.3, 3) is None
    found = long_range(pairs, np.array([1.0, 0.2]), 0.3, 3)
    assert found.strength == 3.0
    assert found.share == 0.75
    assert found.weights.sum() == pytest.approx(1)
