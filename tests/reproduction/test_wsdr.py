"""The experiments of WSDR: scores against slow ones, protocols on small data, claims on made-up results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from pairlens import WSDR, RankSVM
from pairlens.supervision import Preferences
from reproduction import experiments, figures, wsdr
from reproduction.checks import paired
from reproduction.checks import wsdr as checks
from reproduction.datasets.registry import REGISTRY
from reproduction.experiment import DataSet, Experiment, Method, Result, Unit
from reproduction.results import Results, Row

EXPERIMENTS = [one for one in experiments() if one.name.startswith("wsdr-")]
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
METHODS = BY_NAME["wsdr-table2"].methods
OURS, TREES = "WSDR, C by cv", "GBWSDR, trees by cv"
CONTROL, PCA_CONTROL = "RankSVM, all features, C by cv", "PCA, ranking's C by cv"
QUICK_METHODS = tuple(method for method in METHODS if method.name in ("PCA", CONTROL, "WSDR, C = 1"))


RANKED = ("pyrimidines", "triazines", "wpbc")


def _check(experiment: str, place: int):
    return BY_NAME[experiment].claims[place].check


def _line(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose target is a direction plus some noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6))
    return X, X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.normal(size=60)


def _on_line(name: str, **changes) -> Experiment:
    line = DataSet("line", make=_line, params={"levels": 3, "readers": False})
    return replace(BY_NAME[name], sets=(line,), **changes)


def _accuracy(scores: np.ndarray, levels: np.ndarray) -> float:
    """Slow: over all pairs of different levels."""
    pairs = [(i, j) for i in range(len(levels)) for j in range(len(levels)) if levels[i] > levels[j]]
    return 100 * float(np.mean([scores[i] > scores[j] for i, j in pairs]))


# --- parts -----------------------------------------------------------------------------------------------------------


def test_levels_have_equal_frequency():
    y = np.random.default_rng(0).normal(size=90)
    levels = wsdr.binned(y, 3)
    assert np.bincount(levels).tolist() == [30, 30, 30]
    order = np.argsort(y)
    assert (np.diff(levels[order]) >= 0).all()


def test_table_2_is_as_printed():
    tables = BY_NAME["wsdr-table2"].tables
    for table in tables:
        printed = {column.heading for column in table.columns if column.printed}
        assert printed == {"LPP", "LFDA", "LMCA", OURS, TREES}
        assert all(len(column.printed) == 3 for column in table.columns if column.printed)
    table = BY_NAME["wsdr-table2"].tables[0]
    by_heading = {column.heading: column.printed for column in table.columns}
    assert by_heading[OURS] == {"pyrimidines": 90.8, "triazines": 72.7, "wpbc": 69.4}
    assert by_heading["LFDA"]["triazines"] == 56.2
    assert BY_NAME["wsdr-table2"].tables[3].columns[-2].printed["triazines"] == 76.5
    assert len(tables) == 5
    assert tables[4].columns[2].printed["wpbc"] == pytest.approx((63.3 + 64.8 + 64.4 + 64.2) / 4)
    assert [data.name for data in BY_NAME["wsdr-table2"].sets] == ["pyrimidines", "triazines", "wpbc"]


def test_rank_accuracy_counts_pairs_in_the_right_order():
    X, y = _line(0)
    levels = wsdr.binned(y, 3)
    train, test = np.arange(40), np.arange(40, 60)
    held_out = Preferences.from_scores(levels[test])
    model = RankSVM(C=1.0).fit(X[train], levels[train])
    found = wsdr.rank_accuracy(RankSVM(C=1.0), X[train], levels[train], X[test], held_out)
    assert found == pytest.approx(_accuracy(model.decision_function(X[test]), levels[test]))
    # A view that keeps everything can be ranked as well as the rows themselves, up to C.
    assert wsdr.rank_accuracy(PCA(6), X[train], levels[train], X[test], held_out) > 90


def test_ranking_protocol_on_a_line():
    experiment = _on_line("wsdr-table2", methods=QUICK_METHODS, settings={"dims": [2, 4]})
    unit = Unit(experiment, experiment.sets[0], 0, 2)
    results = list(wsdr.ranking(unit))
    found = {(one.method, one.at["d"]): one.value for one in results}
    assert len(results) == len(found) == 6
    assert found[CONTROL, 2] == found[CONTROL, 4]
    assert found["WSDR, C = 1", 2] > 85
    assert results == list(wsdr.ranking(unit))
    levels = wsdr.binned(unit.y, 3)
    train, test = wsdr._fold(unit, 60)
    mean, spread = unit.X[train].mean(axis=0), unit.X[train].std(axis=0)
    A, B = (unit.X[train] - mean) / spread, (unit.X[test] - mean) / spread
    scores = WSDR(4).fit(A, levels[train]).decision_function(B)
    assert found["WSDR, C = 1", 4] == pytest.approx(_accuracy(scores, levels[test]))
    assert sorted(np.concatenate([train, test])) == list(range(60))


@pytest.fixture
def ratings(monkeypatch):
    """A small MovieLens: 12 people, 40 films, person 0 has seen all of them."""
    rng = np.random.default_rng(0)
    user, item = np.meshgrid(np.arange(1, 13), np.arange(1, 41), indexing="ij")
    seen = (rng.random(user.shape) < 0.7) | (user == 1)
    user, item = user[seen], item[seen]
    bunch = {"user": user, "item": item, "rating": 1 + (item + user) % 5}
    monkeypatch.setattr("reproduction.wsdr.loaded", lambda name: bunch)
    wsdr.numbered.cache_clear()
    wsdr.film_features.cache_clear()
    yield bunch
    wsdr.numbered.cache_clear()
    wsdr.film_features.cache_clear()


def test_film_features_are_ratings_or_the_median_of_the_person(ratings):
    features = wsdr.film_features("any", 3)
    counts = {person: int(np.sum(ratings["user"] == person)) for person in range(1, 13)}
    reference = sorted(counts, key=lambda person: (-counts[person], person))[:3]
    assert features.shape == (40, 3)
    for column, person in enumerate(reference):
        own = {i: r for u, i, r in zip(ratings["user"], ratings["item"], ratings["rating"]) if u == person}
        median = np.median(list(own.values()))
        assert features[:, column].tolist() == [own.get(film, median) for film in range(1, 41)]


def test_films_protocol_learns_for_one_person(ratings):
    settings = {"reference": [3, 5], "dims": [2], "ratings": [20, 40]}
    experiment = replace(BY_NAME["wsdr-movielens"], methods=QUICK_METHODS, settings=settings)
    results = [list(wsdr.films(Unit(experiment, experiment.sets[0], 0, part))) for part in (0, 1)]
    assert {(one.at["D"], one.at["d"]) for one in results[0]} == {(3, 2), (5, 2)}
    assert [one.value for one in results[0]] != [one.value for one in results[1]]
    assert all(0 <= one.value <= 100 for part in results for one in part)


def test_reader_is_not_among_the_features():
    R = np.array([[1.0, 5.0, np.nan], [np.nan, 4.0, np.nan], [3.0, np.nan, np.nan], [2.0, 1.0, np.nan]])
    features, rated, own = wsdr.reader({"R": R}, 0)
    np.testing.assert_array_equal(features, [[5], [4], [4], [1]])
    assert rated.tolist() == [0, 2, 3]
    assert own.tolist() == [1, 3, 2]


def test_books_protocol_leaves_out_readers_with_few_books(monkeypatch):
    rng = np.random.default_rng(0)
    R = rng.integers(1, 11, (30, 8)).astype(float)
    R[5:, 1] = np.nan
    R[:, 2] = 7
    experiment = replace(BY_NAME["wsdr-bookcrossing"], methods=QUICK_METHODS, settings={"dims": [2], "fewest": 10})
    monkeypatch.setattr("reproduction.prepare.loaded", lambda name: {"R": R})
    found = [list(wsdr.books(Unit(experiment, experiment.sets[0], 0, reader))) for reader in range(3)]
    assert [len(results) for results in found] == [len(QUICK_METHODS), 0, 0]


def _digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(4), 15)
    return rng.normal(size=(60, 5)) + 4 * np.eye(4, 5)[y], y


def test_toys_measure_the_view():
    data = DataSet("digits", make=_digits, params={"worst_to_best": [2, 0, 1], "of_each": 6})
    methods = (Method("PCA", PCA), Method("WSDR", WSDR))
    experiment = replace(BY_NAME["wsdr-toys"], sets=(data,), methods=methods)
    results = Results(Row("digits", 0, 0, one) for one in wsdr.toys(Unit(experiment, data, 0)))
    x, y = (results.select(method="WSDR", measure=axis) for axis in "xy")
    Z = np.column_stack([x.numbers(), y.numbers()])
    levels = np.array([row.result.at["level"] for row in x.rows])
    assert np.bincount(levels).tolist() == [6, 6, 6]
    steps = np.array([Z[i] - Z[j] for i in range(18) for j in range(18) if levels[i] > levels[j]])
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    assert results.mean("WSDR", "mean cosine") == pytest.approx((steps @ steps.T).mean())
    assert results.mean("WSDR", "ranking") == 100
    assert not [one for one in wsdr.toys(Unit(experiment, data, 1)) if one.measure == "x"]


def test_convergence_curves_fall_and_stay():
    methods = tuple(
        replace(method, params={**method.params, "max_iter": 20}) for method in BY_NAME["wsdr-convergence"].methods[:2]
    )
    experiment = _on_line(
        "wsdr-convergence", methods=methods, settings={"d": 2, "C": [0.1], "iterations": [0, 5, 20, 100]}
    )
    results = Results(Row("line", 0, 0, one) for one in wsdr.convergence(Unit(experiment, experiment.sets[0], 0)))
    for method in methods:
        curve = [results.mean(method.name, "objective", at={"iteration": i}) for i in (0, 5, 20, 100)]
        assert curve[0] > curve[1] > curve[2] - 1e-12
        assert curve[2] == curve[3]


def test_definitions_are_complete():
    for experiment in EXPERIMENTS:
        assert all(data.loaded_name in REGISTRY for data in experiment.sets)
        assert experiment.with_profile("quick").units()
        assert experiment.tables
    assert {OURS, TREES, CONTROL, PCA_CONTROL} <= {method.name for method in BY_NAME["wsdr-movielens"].methods}


# --- claims ----------------------------------------------------------------------------------------------------------


def _ranked(ours: float, trees: float, rivals: float, controls: float, sets=tuple(RANKED)) -> Results:
    values = {
        OURS: ours,
        TREES: trees,
        **dict.fromkeys(("LPP", "LFDA", "LMCA"), rivals),
        **dict.fromkeys((CONTROL, PCA_CONTROL), controls),
    }
    return Results(
        Row(name, 0, part, Result(method, value + part, "accuracy", {"d": d}))
        for name in sets
        for part in range(3)
        for d in (5, 10)
        for method, value in values.items()
    )


def test_claims_compare_methods_fold_by_fold():
    good, bad = _ranked(72, 73, 65, 70), _ranked(72, 71, 75, 73)
    for check in (_check("wsdr-table2", place) for place in (0, 1, 4)):
        assert check(good)[0], check
        assert not check(bad)[0], check
    assert "Pyrimidines +7.0 ± 0.0" in _check("wsdr-table2", 0)(good)[1]
    good, bad = (_ranked(*values, sets=("movielens1m",)) for values in ((72, 73, 65, 70), (60, 60, 65, 70)))
    for check in (_check("wsdr-movielens", place) for place in (1, 2)):
        assert check(good)[0]
        assert not check(bad)[0]
    assert _check("wsdr-bookcrossing", 0)(_ranked(72, 73, 65, 70, sets=("bookcrossing",)))[0]


def test_a_lead_within_noise_does_not_count():
    rows = [
        Row(name, 0, part, Result(method, value, "accuracy", {"d": 5}))
        for name in RANKED
        for part, gap in enumerate((-4.0, 1.0, 6.0))
        for method, value in ((TREES, 70 + gap), (OURS, 70.0))
    ]
    holds, words = _check("wsdr-table2", 1)(Results(rows))
    assert not holds
    assert "Triazines +1.0 ± 2.9" in words


def test_paired_difference_is_of_the_same_folds():
    rows = [Row("wpbc", 0, part, Result("a", 10.0 * part, "accuracy", {"d": 5})) for part in range(4)]
    rows += [Row("wpbc", 0, part, Result("b", 10.0 * part - 1 - part, "accuracy", {"d": 5})) for part in range(3)]
    gap, error = paired(Results(rows), "a", "b", "wpbc")
    assert gap == pytest.approx(2.0)
    assert error == pytest.approx(np.std([1, 2, 3], ddof=1) / np.sqrt(3))


def test_claims_about_toys_and_convergence():
    def toy(wsdr_cosine: float, lmca_ranking: float) -> Results:
        rows = []
        for name in ("umist", "usps"):
            for method in ("PCA", "LMCA", "WSDR", "GBWSDR, 100 trees"):
                ranking = lmca_ranking if method == "LMCA" else 100.0
                cosine = wsdr_cosine if method == "WSDR" else 0.4
                rows += [
                    Row(name, 0, 0, Result(method, ranking, "ranking")),
                    Row(name, 0, 0, Result(method, 99.0, "1-NN")),
                ]
                rows.append(Row(name, 0, 0, Result(method, cosine, "mean cosine")))
        return Results(rows)

    assert checks.angles_close(toy(0.9, 60))[0]
    assert not checks.angles_close(toy(0.3, 60))[0]
    assert checks.digits_in_order(toy(0.9, 60))[0]
    assert not checks.digits_in_order(toy(0.9, 100))[0]

    def curves(at_ten: float) -> Results:
        return Results(
            Row("bookcrossing", 0, 0, Result(method, value, "objective", {"C": 1.0, "iteration": i}))
            for method in ("WSDR, alternating directions", "GBWSDR")
            for i, value in ((0, 1.0), (10, at_ten), (100, 0.0))
        )

    assert checks.fast(curves(0.05))[0]
    assert not checks.fast(curves(0.5))[0]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_claims_are_open_without_results(experiment):
    for claim in experiment.claims:
        with pytest.raises(LookupError):
            claim.check(Results([]))


def test_figures_are_drawn():
    canvas = pytest.importorskip("matplotlib.figure").Figure
    rows = [
        Row("usps", 0, 0, Result(method, float(i), axis, {"row": i, "level": i % 2}))
        for method in ("PCA", "WSDR")
        for axis in "xy"
        for i in range(4)
    ]
    drawn = canvas()
    figures.draw_views(drawn, Results(rows))
    assert [axes.get_title() for axes in drawn.axes] == ["USPS, PCA", "USPS, WSDR"]
    drawn = canvas()
    grid = [Result("PCA", 50.0 + D + d, "accuracy", {"D": D, "d": d}) for D in (1, 2, 3) for d in (4, 5)]
    figures.draw_grids(drawn, Results(Row("movielens1m", 0, 0, one) for one in grid))
    assert [text.get_text() for text in drawn.axes[0].texts] == ["55.0", "56.0", "57.0", "56.0", "57.0", "58.0"]
