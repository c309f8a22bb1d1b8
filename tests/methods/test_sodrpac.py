"""SODRPaC: golden values, the dense oracle, the search against plain refits, and what the paper claims of it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from pairlens import CLPP, CMM, SSDR, Constraints
from pairlens.datasets import make_subclass_blobs
from pairlens.exceptions import SupervisionWarning
from pairlens.graphs.edges import default_gamma
from pairlens.graphs.transformation import transform_constraints
from pairlens.methods import sodrpac as module
from pairlens.methods.sodrpac import LAM_GRID, THETA_GRID, SODRPaC
from pairlens.metrics import cumulative_purity
from tests.oracles.base import relative_difference, rows_with_tied_neighbours, subspace_angle
from tests.oracles.sodrpac import mutual_pairs, sodrpac

pytestmark = pytest.mark.filterwarnings("ignore:SODRPaC. with lam:pairlens.exceptions.SupervisionWarning")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def pairs_of(y, n_must, n_cannot, seed):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(len(y), 1)
    same = y[first] == y[second]
    must, cannot = (
        rng.choice(np.flatnonzero(kind), count, replace=False) for kind, count in ((same, n_must), (~same, n_cannot))
    )
    pairs = np.column_stack([first, second])
    return Constraints(pairs[must], pairs[cannot], len(y))


def nearest_accuracy(Z, y, Z_test, y_test):
    return KNeighborsClassifier(1).fit(Z, y).score(Z_test, y_test)


def test_golden_values():
    X, _, pairs = make_subclass_blobs(kind="inter", random_state=0)
    made = transform_constraints(X - X.mean(axis=0), pairs, gamma=default_gamma(X))
    assert made.n_cannot_link == 171
    assert np.count_nonzero(made.cannot_link_weight < 1) == 96
    assert made.cannot_link_total == pytest.approx(169.847496, abs=5e-7)
    model = SODRPaC(n_components=1, lam=32.0).fit(X, constraints=pairs)
    np.testing.assert_allclose(model.components_, [[0.999472, 0.032499]], atol=5e-7)
    assert (model.lam_, model.n_components_) == (32.0, 1)
    assert model.gamma_ == pytest.approx(default_gamma(X))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lam": 0.0},
        {"lam": 32.0, "gamma": 1 / 7.0},
        {"n_neighbors": 6, "n_graph_neighbors": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("table", ["wine", "toy", "sonar"])
def test_agrees_with_the_oracle(table, options, wine, request):
    if table == "toy":
        X, _, pairs = make_subclass_blobs(kind="mixed", random_state=5)
    else:
        X, y = wine if table == "wine" else request.getfixturevalue("real_data")("sonar")
        X, pairs = StandardScaler().fit_transform(X), pairs_of(y, 60, 60, 1)
    assert not rows_with_tied_neighbours(X, options.get("n_neighbors", 3))
    k = min(3, X.shape[1] - 1)
    model = SODRPaC(n_components=k, **options).fit(X, constraints=pairs)
    attract, repel = model._scatters(*model._coordinates(X, pairs))
    of_paper = {name: value for name, value in options.items() if name != "gamma"}
    if "gamma" in options:
        of_paper["theta"] = 1 / options["gamma"]
    expected = sodrpac(X, pairs.must_link.tolist(), pairs.cannot_link.tolist(), k, **of_paper)
    assert relative_difference(attract, expected.attract) < 1e-10
    assert relative_difference(repel, expected.repel) < 1e-10
    assert subspace_angle(model.components_, expected.components) < 1e-6
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(k), atol=1e-10)


def test_directions_without_any_term_rank_above_negative_ones():
    """The eigenvalue 0 of directions that no pair says anything about is larger than a negative one."""
    rng = np.random.default_rng(0)
    corners = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    X = 100.0 * np.repeat(corners, 10, axis=0)
    X[:, 0] = rng.standard_normal(40)
    pairs = Constraints(cannot_link=[(0, 10)], n_samples=40)
    model = SODRPaC(n_components=3, lam=0.0).fit(X, constraints=pairs)
    expected = sodrpac(X, [], [(0, 10)], 3, lam=0.0)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues, atol=1e-8 * expected.eigenvalues[0])
    assert model.eigenvalues_[1] == pytest.approx(0, abs=1e-8 * model.eigenvalues_[0])


def test_few_rows_of_many_features_give_the_solution_of_the_features():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 70)) * np.linspace(1, 3, 70), np.arange(40) % 2
    pairs = pairs_of(y, 30, 60, 0)
    model = SODRPaC(n_components=2, lam=1.0).fit(X, constraints=pairs)
    expected = sodrpac(X, pairs.must_link.tolist(), pairs.cannot_link.tolist(), 2, lam=1.0)
    assert (expected.eigenvalues > 0).all()
    assert subspace_angle(model.components_, expected.components) < 1e-6


def test_scaling_all_weights_changes_nothing_and_must_link_weights_do_not_matter(wine):
    X, y = wine
    pairs = pairs_of(y, 40, 40, 0)
    weight = np.random.default_rng(0).random(40) + 0.1
    models = [
        SODRPaC().fit(
            X,
            constraints=Constraints(
                pairs.must_link,
                pairs.cannot_link,
                len(X),
                must_link_weight=1 / weight,
                cannot_link_weight=scale * weight,
            ),
        )
        for scale in (1.0, 17.0)
    ]
    np.testing.assert_allclose(models[0].components_, models[1].components_, atol=1e-10)
    plain = SODRPaC().fit(X, constraints=pairs)
    assert np.abs(plain.components_ - models[0].components_).max() > 1e-3


def test_labels_with_pairs_are_those_pairs_together(wine):
    X, y = wine
    partial = np.where(np.arange(len(y)) % 5 == 0, y, -1)
    more = pairs_of(y, 30, 30, 2)
    both = SODRPaC().fit(X, partial, constraints=more)
    merged = Constraints.from_labels(partial).merge(more)
    L = transform_constraints(X, merged)
    written_out = Constraints(
        merged.must_link, merged.cannot_link, len(X), cannot_link_weight=merged.cannot_link_weight
    )
    assert transform_constraints(X, written_out) == L
    space, known = both._coordinates(X, merged)
    repel = both._scatters(space, known)[1]
    difference = X[L.cannot_link[:, 0]] - X[L.cannot_link[:, 1]]
    expected = (difference.T * L.cannot_link_weight) @ difference / L.n_cannot_link
    np.testing.assert_allclose(repel, expected, rtol=1e-9, atol=1e-12)


def test_sparse_rows_give_the_same_view():
    rng = np.random.default_rng(0)
    X = np.maximum(rng.standard_normal((90, 12)), 0)
    pairs = pairs_of(np.arange(90) % 3, 30, 40, 0)
    options = {"n_components": "auto", "lam": "auto", "random_state": 0}
    dense = SODRPaC(**options).fit(X, constraints=pairs)
    thin = SODRPaC(**options).fit(sparse.csr_matrix(X), constraints=pairs)
    assert (dense.lam_, dense.n_components_) == (thin.lam_, thin.n_components_)
    np.testing.assert_allclose(thin.components_, dense.components_, atol=1e-8)


class TestSearch:
    def test_scores_are_those_of_plain_refits(self, wine):
        """Every shared intermediate result against a fit from scratch and a count over all comparisons."""
        X, y = wine
        pairs = pairs_of(y, 40, 40, 3)
        model = SODRPaC("auto", lam="auto", gamma="search", cv=3, random_state=1).fit(X, constraints=pairs)
        found = model.cv_results_
        assert len(found["mean_test_score"]) == 16 * 9 * 13
        width = 1 / default_gamma(X)
        np.testing.assert_allclose(np.unique(found["param_lam"]), LAM_GRID)
        np.testing.assert_allclose(np.unique(1 / found["param_gamma"]), width * THETA_GRID)
        short = np.array(sorted(mutual_pairs(X, 3)))
        everything = {tuple(pair) for pair in transform_constraints(X, pairs).cannot_link.tolist()}
        for point in np.random.default_rng(0).choice(len(found["param_lam"]), 12, replace=False):
            lam, gamma, k = (found[f"param_{name}"][point] for name in ("lam", "gamma", "n_components"))
            for fold, (train, _) in enumerate(pairs.split(3, random_state=1)):
                seen = {tuple(pair) for pair in transform_constraints(X, train).cannot_link.tolist()}
                held_out = np.array(sorted(everything - seen))
                Z = SODRPaC(int(k), lam=lam, gamma=gamma).fit(X, constraints=train).transform(X)
                near = np.linalg.norm(Z[short[:, 0]] - Z[short[:, 1]], axis=1)
                far = np.linalg.norm(Z[held_out[:, 0]] - Z[held_out[:, 1]], axis=1)
                assert found[f"split{fold}_test_score"][point] == pytest.approx((far[:, None] > near).mean(), abs=1e-3)

    def test_choice_is_the_best_or_the_fewest_within_one_standard_error(self, wine):
        X, y = wine
        pairs = pairs_of(y, 40, 40, 3)
        fixed = SODRPaC(3, lam="auto", gamma="search", random_state=0).fit(X, constraints=pairs)
        best = np.argmax(fixed.cv_results_["mean_test_score"])
        assert fixed.cv_results_["rank_test_score"][best] == 1
        assert (fixed.lam_, fixed.gamma_) == tuple(fixed.cv_results_[f"param_{p}"][best] for p in ("lam", "gamma"))
        assert fixed.n_components_ == 3
        auto = SODRPaC("auto", lam=2.0, random_state=0).fit(X, constraints=pairs)
        results = auto.cv_results_
        assert results["param_n_components"].tolist() == list(range(1, 14))
        assert auto.lam_ == 2.0
        splits = np.array([results[f"split{i}_test_score"] for i in range(5)])
        best = np.argmax(results["mean_test_score"])
        error = max(splits[:, best].std(ddof=1) / np.sqrt(5), 0.001)
        close = results["mean_test_score"] >= splits.mean(axis=0)[best] - error
        assert auto.n_components_ == results["param_n_components"][close].min() == len(auto.components_)

    def test_it_finds_the_one_direction_of_the_toy(self):
        for seed in range(3):
            X, _, pairs = make_subclass_blobs(random_state=seed)
            model = SODRPaC("auto", lam="auto", gamma="search", random_state=0).fit(X, constraints=pairs)
            assert model.n_components_ == 1
            assert abs(model.components_[0, 0]) > 0.98

    def test_random_state_repeats_and_a_fixed_fit_forgets_the_search(self, wine):
        X, y = wine
        pairs = pairs_of(y, 20, 20, 3)
        one, other = (SODRPaC(lam="auto", random_state=4).fit(X, constraints=pairs).cv_results_ for _ in range(2))
        np.testing.assert_array_equal(one["mean_test_score"], other["mean_test_score"])
        model = SODRPaC(lam="auto").fit(X, constraints=pairs)
        assert not hasattr(model.set_params(lam=1.0).fit(X, constraints=pairs), "cv_results_")

    def test_too_few_pairs_use_the_defaults(self, wine):
        X, _ = wine
        one_pair = Constraints([(0, 1)], [(0, 150)], len(X))
        with pytest.warns(SupervisionWarning, match="lam='auto' and n_components='auto' cannot be found from 1 cannot"):
            model = SODRPaC("auto", lam="auto").fit(X, constraints=one_pair)
        assert (model.lam_, model.n_components_) == (8.0, 2)
        two = Constraints(cannot_link=[(0, 150), (1, 151)], n_samples=len(X))
        assert "split1_test_score" in SODRPaC(lam="auto").fit(X, constraints=two).cv_results_

    def test_many_pairs_are_sampled(self, wine, monkeypatch):
        X, y = wine
        monkeypatch.setattr(module, "MAX_SEARCH_PAIRS", 300)
        monkeypatch.setattr(module, "MAX_SCORED", 50)
        model = SODRPaC("auto", lam="auto", gamma="search", random_state=0).fit(X, y)
        Z = model.transform(X)
        assert nearest_accuracy(Z[::2], y[::2], Z[1::2], y[1::2]) > 0.9


class TestClaims:
    def test_inter_subclass_must_links_mislead_the_others_only(self):
        """The paper's Fig. 1b by leave-one-out 1-NN, mean over seeds; `python -m reproduction sodrpac-toy` takes 50."""
        accuracy: dict[str, list[float]] = {}
        for seed in range(10):
            X, y, pairs = make_subclass_blobs(kind="inter", random_state=seed)
            for method in (SODRPaC(1), SODRPaC(1, lam=32.0), SSDR(1), CMM(1), CLPP(1)):
                Z = method.fit(X, constraints=pairs).transform(X)
                accuracy.setdefault(str(method), []).append(cumulative_purity(Z, y, 1)[0])
        means = {name: np.mean(scores) for name, scores in accuracy.items()}
        for name, mean in means.items():
            if name.startswith("SODRPaC"):
                assert mean >= 0.95, means
            else:
                assert mean < 0.65, means

    def test_must_links_alone_are_not_enough(self, wine):
        X, y = wine
        accuracy: dict[float, list[float]] = {0.5: [], 1.0: []}
        for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
            for share, scores in accuracy.items():
                n_must = round(150 * share)
                pairs = pairs_of(y[train], n_must, 150 - n_must, fold)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", SupervisionWarning)
                    model = SODRPaC().fit(X[train], constraints=pairs)
                scores.append(nearest_accuracy(model.transform(X[train]), y[train], model.transform(X[test]), y[test]))
        assert np.mean(accuracy[0.5]) > 0.9
        assert np.mean(accuracy[1.0]) < 0.8

    def test_even_and_odd_digits(self, real_data):
        """SODRPaC > CMM > SSDR, and it depends less than SSDR on the share of must-links."""
        X, digit = real_data("pendigits")
        rows = np.random.default_rng(0).permutation(len(X))[:600]
        X, y = StandardScaler().fit_transform(X[rows]), digit[rows] % 2
        mean: dict[tuple[str, float], float] = {}
        for cls in (SODRPaC, CMM, SSDR):
            for share in (0.0, 0.2, 0.5, 0.8, 0.95):
                n_must = round(150 * share)
                scores = []
                for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
                    pairs = pairs_of(y[train], n_must, 150 - n_must, fold)
                    model = cls(4).fit(X[train], constraints=pairs)
                    Z, Z_test = model.transform(X[train]), model.transform(X[test])
                    scores.append(nearest_accuracy(Z, y[train], Z_test, y[test]))
                mean[cls.__name__, share] = float(np.mean(scores))
        assert mean["SODRPaC", 0.5] > mean["CMM", 0.5] > mean["SSDR", 0.5]
        ranges = {
            name: np.ptp([value for (method, _), value in mean.items() if method == name])
            for name in ("SODRPaC", "SSDR")
        }
        assert ranges["SODRPaC"] < ranges["SSDR"]


class TestWarnings:
    def test_must_links_alone(self, wine):
        X, _ = wine
        with pytest.warns(SupervisionWarning, match="no cannot-links were given, so the directions are merely"):
            model = SODRPaC().fit(X, constraints=Constraints([(0, 1), (5, 9)], n_samples=len(X)))
        expected = sodrpac(X, [(0, 1), (5, 9)], [], 2)
        assert not expected.repel.any()
        assert subspace_angle(model.components_, expected.components) < 1e-6

    @pytest.mark.filterwarnings("default::pairlens.exceptions.SupervisionWarning")
    def test_negative_in_every_direction(self, wine):
        X, y = wine
        with pytest.warns(SupervisionWarning, match="lam=1e[+]03 the criterion is negative in every direction"):
            SODRPaC(lam=1000.0).fit(X, constraints=pairs_of(y, 20, 20, 0))

    def test_rows_that_vary_in_fewer_directions(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 5))
        with pytest.warns(SupervisionWarning, match="found 2 usable directions of the n_components=4 asked for"):
            model = SODRPaC(4, lam=0.1).fit(X, constraints=Constraints([(0, 1)], [(2, 3)], 30))
        assert model.n_components_ == len(model.components_) == 2

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_components", "best"),
            ("n_components", 0),
            ("n_neighbors", 0),
            ("n_graph_neighbors", 1.5),
            ("lam", -1.0),
            ("lam", "cv"),
            ("gamma", 0.0),
            ("gamma", None),
            ("cv", 1),
        ],
    )
    def test_bad_parameters_are_named(self, name, value, wine):
        X, _ = wine
        with pytest.raises(ValueError, match=f"'{name}' parameter of SODRPaC"):
            SODRPaC(**{name: value}).fit(X)
