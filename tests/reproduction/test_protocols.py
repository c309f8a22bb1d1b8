"""Preparation of data, linear maps, and the protocols against slow and obvious computations."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.decomposition import PCA

from pairlens import BWDR, CFLD, DCA, RCA, SSDR, WBDR, Constraints
from reproduction import DataSet, Experiment, Method, Unit, experiments
from reproduction.bwdr import cross_validated, purity
from reproduction.dsp import clustered, generalised, over_dimensions, timed
from reproduction.prepare import prepare
from reproduction.protocols import fold, linear_maps

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")


# ------------------------------------------------------------------------------------------------------------- prepare


def test_fill_and_scaling():
    X = np.array([[1.0, np.nan, 5.0], [3.0, 2.0, 5.0], [5.0, 4.0, 5.0]])
    assert prepare(X, fill="mean")[0, 1] == 3.0
    assert prepare(X, fill="zero")[0, 1] == 0.0
    with pytest.raises(ValueError, match="missing cells: its DataSet must say how to fill"):
        prepare(X)
    filled = prepare(X, fill="zero")
    np.testing.assert_allclose(prepare(filled, scaling="minmax"), [[0, 0, 0], [0.5, 0.5, 0], [1, 1, 0]])
    scaled = prepare(filled, scaling="zscore")
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 0])
    for scaling in ("unit", "minmax-unit"):
        lengths = np.linalg.norm(prepare(filled, scaling=scaling), axis=1)
        np.testing.assert_allclose(lengths, [1 if scaling == "unit" else 0, 1, 1])
    assert np.isnan(X).sum() == 1, "the input is left alone"


def unit_of(protocol, data, methods, settings, part=0) -> Unit:
    return Unit(Experiment("test", "", protocol, (data,), methods, settings), data, 0, part)


def test_label_column_is_not_a_feature(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(8, 2)), np.arange(8) % 2])
    np.savez(tmp_path / "own.npz", X=X, y=np.zeros(8, dtype=np.int64), halves=np.arange(8) // 4)
    monkeypatch.setenv("PAIRLENS_DATA", str(tmp_path))
    unit = unit_of(purity, DataSet("own", target_column=-1), (), {})
    np.testing.assert_array_equal(unit.X, X[:, :2])
    np.testing.assert_array_equal(unit.y, np.arange(8) % 2)
    unit = unit_of(purity, DataSet("other name", source="own", target="halves"), (), {})
    assert unit.X.shape == (8, 3)
    np.testing.assert_array_equal(unit.y, np.arange(8) // 4)
    with pytest.raises(ValueError, match="read-only"):
        unit.X[0, 0] = 1


# --------------------------------------------------------------------------------------------------------- linear maps

METHODS = [
    Method("PCA", PCA, {"svd_solver": "covariance_eigh"}),
    Method("cFLD", CFLD),
    Method("RCA", RCA),
    Method("DCA", DCA),
    Method("SSDR", SSDR),
    Method("WBDR", WBDR, {"shrinkage": 0.0}),
    Method("BWDR", BWDR, {"shrinkage": 0.0, "threshold": 0.7}),
]


def test_linear_maps_are_those_of_the_estimators():
    """For every method and dimension; methods that are fitted once have leading columns that do not depend on d."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 6)) * [5, 3, 2, 1, 1, 0.5], np.arange(60) % 4
    X[:, 0] += 3 * y
    pairs = Constraints.from_labels(y, fraction=0.3, random_state=0)
    for method in METHODS:
        maps = list(linear_maps(method, X, pairs, range(1, 9), each=method.name == "BWDR"))
        assert [d for d, _, _ in maps] == [1, 2, 3, 4, 5, 6]
        for d, mean, directions in maps:
            model = method.build(n_components=d)
            expected = model.fit(X) if method.name == "PCA" else model.fit(X, constraints=pairs)
            np.testing.assert_allclose(mean, expected.mean_)
            found = np.abs((X - mean) @ directions)
            np.testing.assert_allclose(found, np.abs(expected.transform(X)), atol=1e-8, err_msg=f"{method.name} {d}")


def test_folds_share_nothing_and_cover_all():
    y = np.arange(40) % 3
    parts = [fold(unit_of(purity, DataSet("x"), (), {}, part), 5, y) for part in range(5)]
    for train, test in parts:
        assert not set(train) & set(test)
        assert len(train) + len(test) == 40
    assert sorted(np.concatenate([test for _, test in parts])) == list(range(40))


# ------------------------------------------------------------------------------------------------ against the obvious


def slow_directions(X, pairs, d, which):
    """The printed algorithms, pair by pair."""
    within, between = np.zeros((2, X.shape[1], X.shape[1]))
    for scatter, links in ((within, pairs.must_link), (between, pairs.cannot_link)):
        for i, j in links:
            scatter += np.outer(X[i] - X[j], X[i] - X[j])
    first, second = (within, between) if which == "WBDR" else (between, within)
    values, vectors = eigh(first)
    values, vectors = values[::-1], vectors[:, ::-1]
    if which == "WBDR":
        stretched = vectors / np.sqrt(values)
        return stretched @ eigh(stretched.T @ second @ stretched)[1][:, ::-1][:, :d]
    i = max(d, int((np.cumsum(values) / values.sum() <= 0.95).sum()))
    stretched = vectors[:, :i] / np.sqrt(values[:i])
    return stretched @ eigh(stretched.T @ second @ stretched)[1][:, :d]


def slow_accuracy(train, y_train, test, y_test):
    scale = train.std(axis=0)
    hits = 0
    for row, label in zip(test / scale, y_test):
        hits += y_train[np.argmin(((train / scale - row) ** 2).sum(axis=1))] == label
    return hits / len(test)


@pytest.mark.parametrize("name", ["BWDR", "WBDR"])
def test_table_2_protocol(name):
    """One fold on wine, as the paper says it: raw input, 30 % of the pairs, z-scored output, nearest training row."""
    experiment = next(one for one in experiments() if one.name == "bwdr-table2")
    method = next(one for one in experiment.methods if one.name == name)
    unit = Unit(replace(experiment, methods=(method,)), DataSet("wine"), 0, 2)
    found = {(one.measure, one.at["dim"]): one.value for one in cross_validated(unit)}
    X, y = unit.X, unit.y
    train, test = fold(unit, 5, y)
    pairs = Constraints.from_labels(y[train], fraction=0.3, random_state=unit.seed("pairs", 2, 0.3))
    n = len(train)
    assert pairs.n_pairs == round(0.3 * n * (n - 1) / 2)
    for d in (1, 2, 5, 9):
        W = slow_directions(X[train], pairs, d, name)
        expected = slow_accuracy(X[train] @ W, y[train], X[test] @ W, y[test])
        assert found["accuracy", d] == pytest.approx(expected, abs=1e-12)
        assert 0.4 <= found["balanced rand", d] <= 1.0


def test_one_fit_and_the_printed_rule_differ():
    """On raw wine one feature holds nearly all difference, so K decides how many directions are stretched."""
    experiment = next(one for one in experiments() if one.name == "bwdr-table2")
    methods = tuple(one for one in experiment.methods if one.name.startswith("BWDR"))
    unit = Unit(replace(experiment, methods=methods), DataSet("wine"), 0, 0)
    found = {(one.method, one.at["dim"]): one.value for one in cross_validated(unit) if one.measure == "accuracy"}
    assert found["BWDR", 9] == found["BWDR, one fit", 9]
    assert any(found["BWDR", d] != found["BWDR, one fit", d] for d in range(1, 9))


def test_purity_protocol():
    experiment = next(one for one in experiments() if one.name == "bwdr-figure6")
    data = DataSet("wine", params={"share": 0.3})
    settings = {"dim": 3, "neighbors": [1, 5]}
    unit = unit_of(purity, data, experiment.methods, settings)
    found = {(one.method, one.at["k"]): one.value for one in purity(unit)}
    assert len(found) == 10
    Z = (unit.X - unit.X.mean(axis=0)) @ np.linalg.svd(unit.X - unit.X.mean(axis=0))[2][:3].T
    same = []
    for i in range(len(Z)):
        order = np.argsort(((Z - Z[i]) ** 2).sum(axis=1))
        order = order[order != i][:5]
        same.append((unit.y[order] == unit.y[i]).mean())
    assert found["PCA", 5] == pytest.approx(np.mean(same))


# ------------------------------------------------------------------------------------------------------------- of DSP

WINE = DataSet("wine", scaling="minmax", params={"dims": 4, "delta": 0.6, "variants": {", tol": {"tol": 1e-3}}})


def of_table_4() -> Experiment:
    return next(one for one in experiments() if one.name == "dsp-table4")


def test_clustering_protocol():
    experiment = of_table_4()
    unit = unit_of(clustered, WINE, experiment.methods, experiment.settings)
    found = {(one.method, one.measure, one.at.get("pairs")): one.value for one in clustered(unit)}
    for method in ("PCA", "LPP"):
        assert (method, "F", None) in found
        assert (method, "F", 20) not in found
    assert found["DSP", "F", 20] > 0.9
    # Of 178 wines the classes have 59, 71 and 48.
    together = sum(n * (n - 1) / 2 for n in (59, 71, 48))
    share = together / (178 * 177 / 2)
    assert found["one cluster", "F", None] == pytest.approx(2 * share / (1 + share))
    again = {(one.method, one.measure, one.at.get("pairs")): one.value for one in clustered(unit)}
    assert again == found


def test_generalisation_protocol():
    experiment = next(one for one in experiments() if one.name == "dsp-table5")
    unit = unit_of(generalised, WINE, experiment.methods, {"folds": 5, "pairs": 5, "n_init": 3}, part=1)
    found = {(one.method, one.measure): one.value for one in generalised(unit)}
    assert {method for method, _ in found} == {"full feature", "DSP", "DSP, tol"}
    assert found["DSP", "delta"] == 0.6
    assert found["DSP", "F"] > 0.7


def test_curve_protocol():
    experiment = next(one for one in experiments() if one.name == "dsp-figure4")
    settings = {**experiment.settings, "dims": [1, 2, 100], "n_init": 2}
    for part in (0, 1):
        unit = unit_of(over_dimensions, WINE, experiment.methods, settings, part)
        found = {(one.method, one.at["dim"], one.at.get("pairs")) for one in over_dimensions(unit)}
        assert ("DSP", 2, [5, 10][part]) in found
        assert (("PCA", 2, None) in found) == (part == 0), "unsupervised curves are computed once"
        assert {d for _, d, _ in found} == {1, 2}


def test_timing_protocol():
    experiment = next(one for one in experiments() if one.name == "dsp-table6")
    unit = unit_of(timed, replace(WINE, params={"dims": 2, "delta": 0.6}), experiment.methods, experiment.settings)
    found = {(one.method, one.measure): one.value for one in timed(unit)}
    columns = {(column.method, column.measure) for column in experiment.tables[0].columns}
    assert set(found) == columns
    assert min(found.values()) >= 0


# ------------------------------------------------------------------------------------------------- the definitions


@pytest.mark.parametrize("experiment", experiments(), ids=lambda experiment: experiment.name)
def test_definitions_are_consistent(experiment):
    names = [data.name for data in experiment.sets]
    assert len(names) == len(set(names))
    quick = experiment.with_profile("quick")
    assert quick.units()
    assert len(quick.units()) <= len(experiment.units())
    assert set(experiment.quick.sets or ()) <= set(names)
    assert set(experiment.quick.methods or ()) <= {method.name for method in experiment.methods}
    copy = pickle.loads(pickle.dumps(experiment.units()[0]))
    assert copy.experiment.fingerprint(copy.data) == experiment.fingerprint(experiment.sets[0])
    for table in experiment.tables:
        headings = [column.heading for column in table.columns]
        assert len(headings) == len(set(headings))
        assert set(table.limits) <= {column.method for column in table.columns}
        assert set(table.sets) <= set(names)
        assert {heading for _, heading in table.notes} <= {"", *headings}
        if table.row == "set":
            assert {row for row, _ in table.notes} <= {"", *names}
            assert {row for column in table.columns for row in column.printed} <= set(names)


def test_printed_numbers_are_those_of_the_papers():
    """Sums of the columns, added up from the text of the papers."""
    by_name = {one.name: one for one in experiments()}
    sums = {
        "bwdr-table2": {"PCA": 13.58, "cFLD": 8.25, "SSDR": 11.72, "BWDR": 14.11, "WBDR": 13.68},
        "bwdr-table3": {"PCA": 10.2, "cFLD": 10.96, "SSDR": 10.07, "BWDR": 11.89, "WBDR": 12.38},
        "dsp-table4": {
            "PCA": 4.9991,
            "LPP": 5.0077,
            "SLPP 20": 5.5709,
            "LPPSI 20": 5.0031,
            "DSP 20": 5.7315,
            "SLPP 5": 4.6398,
            "LPPSI 5": 4.659,
            "DSP 5": 5.4081,
        },
    }
    for name, totals in sums.items():
        columns = by_name[name].tables[0].columns
        found = {column.heading: sum(column.printed.values()) for column in columns if column.printed}
        assert found == pytest.approx(totals, abs=1e-9), name
