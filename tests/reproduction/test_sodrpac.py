"""The experiments of SODRPaC: views and scores against slow ones, small protocols, claims on made-up numbers."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from pairlens import SSDR, SODRPaC
from pairlens.datasets import make_subclass_blobs
from pairlens.exceptions import SupervisionWarning
from reproduction import experiments, figures
from reproduction.checks import sodrpac as claims
from reproduction.datasets import load
from reproduction.datasets.registry import REGISTRY
from reproduction.experiment import DataSet, Result, Unit
from reproduction.protocols import fold
from reproduction.results import Results, Row
from reproduction.sodrpac import Training, cross_validated, draw, nearest, surface, toy, training

EXPERIMENTS = [one for one in experiments() if one.name.startswith("sodrpac-")]
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}


def _unit(name: str, data: str, *, run: int = 0, part: int = 0, **settings) -> Unit:
    experiment = BY_NAME[name]
    experiment = replace(experiment, settings={**experiment.settings, **settings})
    return Unit(experiment, next(one for one in experiment.sets if one.name == data), run, part)


@pytest.fixture
def wine(monkeypatch) -> Training:
    X, y = load("wine", return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))
    train, test = rows[:140], rows[140:]
    scaler = StandardScaler().fit(X[train])
    return Training(scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test], (2, 4))


def _same_span(A: np.ndarray, B: np.ndarray) -> bool:
    P, Q = (np.linalg.qr(W)[0] for W in (A, B))
    return bool(np.linalg.svd(P.T @ Q)[1].min() > 1 - 1e-8)


# --- views and scores ------------------------------------------------------------------------------------------------


def test_nearest_is_scikit_learns():
    rng = np.random.default_rng(0)
    Z, y, Z_test, y_test = (
        rng.normal(size=(60, 3)),
        rng.integers(0, 3, 60),
        rng.normal(size=(20, 3)),
        rng.integers(0, 3, 20),
    )
    assert nearest(Z, y, Z_test, y_test) == KNeighborsClassifier(1).fit(Z, y).score(Z_test, y_test)
    assert nearest(Z, y) == pytest.approx(cross_val_score(KNeighborsClassifier(1), Z, y, cv=LeaveOneOut()).mean())


def test_draw_gives_the_pairs_asked_for():
    y = np.repeat([0, 1, 2], 20)
    pairs = draw(y, 30, 12, seed=1)
    assert (pairs.n_must_link, pairs.n_cannot_link, len(pairs)) == (30, 12, 60)
    assert all(y[i] == y[j] for i, j in pairs.must_link)
    assert all(y[i] != y[j] for i, j in pairs.cannot_link)
    assert draw(y, 30, 12, seed=1) == pairs
    assert draw(y, 30, 12, seed=2) != pairs
    assert draw(y, 0, 3, seed=0).n_must_link == 0


@pytest.mark.parametrize(("lam", "width"), [(0.0, 4.0), (8.0, 4.0), (128.0, 0.25)])
def test_grid_views_are_the_estimators(wine, lam, width):
    pairs = draw(wine.y, 40, 40, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupervisionWarning)
        model = SODRPaC(4, lam=lam, gamma=1 / (width * wine.width)).fit(wine.X, constraints=pairs)
    for d in (1, 4):
        view = wine.sodrpac(pairs, [lam], [width])[lam, width]
        assert _same_span(view[:, :d], model.components_[:d].T)


def test_searched_views_are_the_estimators(wine):
    pairs = draw(wine.y, 40, 40, seed=0)
    for d, view in zip(wine.dims, wine.searched(pairs, seed=3)):
        model = SODRPaC(d, lam="auto", gamma="search", random_state=3).fit(wine.X, constraints=pairs)
        assert _same_span(view[:, :d], model.components_.T)


def test_chosen_takes_the_best_on_the_training_rows(wine):
    views = wine.random(0)
    scores = [nearest(wine.X @ W[:, :2], wine.y) for W in views]
    assert wine.chosen(views, 2) == wine.accuracy(views[int(np.argmax(scores))], 2)


def test_training_rows_decide_the_scaling():
    unit = _unit("sodrpac-constraints", "wine", part=3)
    data = training(unit)
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.X.std(axis=0), 1)
    train, test = fold(unit, 5, unit.y)
    spread, mean = unit.X[train].std(axis=0), unit.X[train].mean(axis=0)
    np.testing.assert_allclose(data.X_test, (unit.X[test] - mean) / spread)
    np.testing.assert_array_equal(data.y_test, unit.y[test])


def test_merged_and_coded_sets():
    data = training(_unit("sodrpac-constraints", "wine2"))
    assert set(np.unique(data.y)) == {0, 1}
    assert np.concatenate([data.y, data.y_test]).sum() == (load("wine").y == 1).sum()
    experiment = replace(
        BY_NAME["sodrpac-sets"], sets=(DataSet("codes", make=_codes, params={"dims": (1,), "codes": "one-hot"}),)
    )
    coded = training(experiment.units()[0])
    assert coded.X.shape[1] == 5
    assert set(np.unique(coded.X)) == {0.0, 1.0}


def _codes(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return np.column_stack([np.arange(60) % 3, np.arange(60) % 2]).astype(float), rng.permutation(np.arange(60) % 2)


# --- protocols -------------------------------------------------------------------------------------------------------


def test_toy_is_the_golden_draw():
    unit = _unit("sodrpac-toy", "toy_1.5_inter")
    results = {(one.method, one.measure): one.value for one in toy(unit)}
    assert results["lam 32", "angle"] == pytest.approx(np.degrees(np.arctan2(0.032499, 0.999472)), abs=1e-4)
    X, y, pairs = make_subclass_blobs(kind="inter", sy=1.5, random_state=0)
    Z = SSDR(1).fit(X, constraints=pairs).transform(X)
    loo = cross_val_score(KNeighborsClassifier(1), Z, y, cv=LeaveOneOut()).mean()
    assert results["SSDR", "accuracy"] == pytest.approx(loo)
    assert results["SSDR", "accuracy"] < 0.6 < 0.95 < results["lam 8", "accuracy"]


def test_cross_validated_on_wine():
    unit = _unit("sodrpac-constraints", "wine", part=1, pairs=[[10, 10], [40, 40]])
    results = list(cross_validated(unit))
    found = {(one.method, one.at["constraints"], one.at["l"], one.at.get("point", "")): one.value for one in results}
    assert len(found) == len(results)
    for d in (2, 4):
        assert found["PCA", 20, d, ""] == found["PCA", 80, d, ""]
        for count in (20, 80):
            grid = [value for (m, c, k, _), value in found.items() if (m, c, k) == ("SOD*", count, d)]
            assert len(grid) == 14
            assert found["SODfix", count, d, ""] == found["SOD*", count, d, "8, 4"]
            assert found["SOD_loo", count, d, ""] in grid
    data = training(unit)
    pairs = draw(data.y, 40, 40, unit.seed("pairs", 1, 40, 40))
    model = SSDR(4).fit(data.X, constraints=pairs)
    W = model.components_[:2].T
    expected = KNeighborsClassifier(1).fit(data.X @ W, data.y).score(data.X_test @ W, data.y_test)
    assert found["SSDR", 80, 2, ""] == pytest.approx(expected)
    assert list(cross_validated(unit)) == results


def test_surface_holds_the_whole_grid():
    unit = _unit("sodrpac-surface", "wine")
    results = list(surface(unit))
    points = {(one.at["l"], one.at["log2 lambda"], one.at["log2 theta"]) for one in results if one.method == "SODRPaC"}
    assert points == {(d, float(a), float(b)) for d in (2, 4) for a in range(-5, 11) for b in range(-4, 5)}


def test_definitions_are_complete():
    for experiment in EXPERIMENTS:
        names = {data.name for data in experiment.sets}
        assert set(experiment.quick.sets or names) <= names
        assert all(data.make is not None or data.loaded_name in REGISTRY for data in experiment.sets)
        assert experiment.with_profile("quick").units()
        assert experiment.tables or experiment.figures


# --- claims ----------------------------------------------------------------------------------------------------------


def _results(*rows: tuple[str, str, float, dict]) -> Results:
    return Results(Row(name, 0, 0, Result(method, value, "accuracy", at)) for name, method, value, at in rows)


def _constraints(ours: float, rival: float, *, few_ours: float | None = None) -> Results:
    rows = []
    for name in ("heart", "wine2"):
        for d in (2, 4):
            for count in (10, 150):
                at = {"constraints": count, "l": d}
                mine = few_ours if count == 10 and few_ours is not None else ours
                rows += [(name, method, rival, at) for method in claims.OTHERS]
                rows += [(name, "SODfix", mine, at), (name, "SOD_loo", mine, at), (name, "SSDR_loo", rival, at)]
                rows.append((name, "SOD*", mine, {**at, "point": "8, 4"}))
                rows.append((name, "SOD*", mine - 0.3, {**at, "point": "0, 4"}))
    return _results(*rows)


def test_claims_about_the_number_of_constraints():
    good, bad = _constraints(0.9, 0.8, few_ours=0.85), _constraints(0.7, 0.8)
    for check in (claims.always_best, claims.good_on_subclasses, claims.choice_of_parameters):
        assert check(good)[0], check
        assert not check(bad)[0], check
    assert claims.grows(good)[0]
    assert not claims.grows(bad)[0]
    assert not claims.ssdr_gets_worse(good)[0]
    assert not claims.clpp_below_pca(good)[0]


def test_claims_about_ssdr_and_clpp():
    rows = []
    for name in ("a", "b", "c"):
        for count, ssdr in ((10, 0.8), (150, 0.7)):
            at = {"constraints": count, "l": 2}
            rows += [(name, "SSDR", ssdr, at), (name, "CLPP", 0.6, at), (name, "PCA", 0.7, at)]
    assert claims.ssdr_gets_worse(_results(*rows))[0]
    assert claims.clpp_below_pca(_results(*rows))[0]


def test_claims_about_the_share():
    def results(ripple: float, last: float) -> Results:
        rows = []
        for share, offset in ((0.0, 0.0), (0.5, ripple), (0.95, 0.0)):
            rows.append(("heart", "SODfix", 0.8 + offset, {"share": share, "l": 2}))
            rows += [("heart", name, 0.8 + 0.1 * share, {"share": share, "l": 2}) for name in claims.OTHERS]
        rows.append(("heart", "SODfix", last, {"share": 1.0, "l": 2}))
        rows += [("heart", name, 0.75, {"share": 1.0, "l": 2}) for name in claims.OTHERS]
        return _results(*rows)

    assert claims.smoother(results(0.01, 0.6))[0]
    assert not claims.smoother(results(0.3, 0.6))[0]
    assert claims.degrades(results(0.01, 0.6))[0]
    assert not claims.degrades(results(0.01, 0.8))[0]


def test_claims_about_the_surface():
    def results(best: tuple[int, int]) -> Results:
        return _results(
            *(
                (
                    "heart",
                    "SODRPaC",
                    0.9 if (a, b) == best else 0.8,
                    {"l": 2, "log2 lambda": float(a), "log2 theta": float(b)},
                )
                for a in range(-5, 11)
                for b in range(-4, 5)
            )
        )

    assert claims.best_regions(results((-5, 0)))[0]
    assert claims.best_regions(results((6, 3)))[0]
    assert not claims.best_regions(results((6, -3)))[0]
    assert not claims.small_lambda(results((6, 3)))[0]
    flat = _results(
        *(
            ("heart", "SODRPaC", 0.8 - 0.01 * max(a, 0), {"l": 2, "log2 lambda": float(a), "log2 theta": float(b)})
            for a in range(-5, 11)
            for b in range(-4, 5)
        )
    )
    assert claims.small_lambda(flat)[0]
    assert claims.theta_hardly_matters(flat)[0]
    rippled = _results(
        *(
            ("heart", "SODRPaC", 0.8 + 0.02 * b, {"l": 2, "log2 lambda": float(a), "log2 theta": float(b)})
            for a in range(-5, 11)
            for b in range(-4, 5)
        )
    )
    assert not claims.theta_hardly_matters(rippled)[0]


def test_claims_about_the_toy():
    def results(sodrpac: float, other: float, alone: float) -> Results:
        rows = []
        for sy in (1.5, 2.0):
            name = f"toy_{sy}_inter"
            rows += [(name, method, other, {}) for method in claims.OTHERS]
            rows += [(name, "lam 0", 0.92, {}), (name, "lam 8", sodrpac, {}), (name, "lam 32", sodrpac, {})]
            rows.append((name, claims.CANNOT_ONLY, alone, {}))
        return _results(*rows)

    good, bad = results(0.97, 0.5, 0.8), results(0.91, 0.95, 0.95)
    for check in (claims.misled, claims.manifold_helps, claims.gain_from_transformation):
        assert check(good)[0], check
        assert not check(bad)[0], check


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_claims_are_open_without_results(experiment):
    for claim in experiment.claims:
        with pytest.raises(LookupError):
            claim.check(Results([]))


def test_figures_are_drawn():
    canvas = pytest.importorskip("matplotlib.figure").Figure
    unit = _unit("sodrpac-surface", "wine")
    drawn = canvas()
    figures.draw_surfaces(drawn, Results(Row("wine", 0, 0, one) for one in surface(unit)))
    assert next(axes.get_title() for axes in drawn.axes if axes.get_title()).startswith("wine, l = 2")
    unit, drawn = _unit("sodrpac-toy", "toy_2.0_mixed"), canvas()
    figures.draw_toy(drawn, Results(Row("toy_2.0_mixed", 0, 0, one) for one in toy(unit)))
    assert [axes.get_title() for axes in drawn.axes] == ["sy 2.0, mixed"]
