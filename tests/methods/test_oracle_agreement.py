"""Every linear method against a slow implementation written from the specification alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import StandardScaler

import pairlens
from pairlens import Constraints
from pairlens.engines import column_means
from pairlens.spectral.rowspace import RowSpace, generalized
from tests import oracles
from tests.estimators import linear_methods
from tests.oracles.locality import rbf

K = 3


def _pair_oracle(oracle: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    def solve(X, y, must, cannot, **params):
        return oracle(X, must, cannot, K, **fixed, **params)

    return solve


# name -> (estimator parameters, oracle taking (X, y, must_link, cannot_link))
CASES: dict[str, tuple[type, dict[str, Any], Callable[..., Any]]] = {
    "BWDR paper": (pairlens.BWDR, {"shrinkage": 0.0}, _pair_oracle(oracles.bwdr)),
    "BWDR auto": (pairlens.BWDR, {}, _pair_oracle(oracles.bwdr, shrinkage="auto")),
    "BWDR 0.3, threshold 0.8": (
        pairlens.BWDR,
        {"shrinkage": 0.3, "threshold": 0.8},
        _pair_oracle(oracles.bwdr, shrinkage=0.3, threshold=0.8),
    ),
    "WBDR paper": (pairlens.WBDR, {"shrinkage": 0.0}, _pair_oracle(oracles.wbdr)),
    "WBDR auto": (pairlens.WBDR, {}, _pair_oracle(oracles.wbdr, shrinkage="auto")),
    "WBDR threshold 0.8": (
        pairlens.WBDR,
        {"shrinkage": 0.0, "threshold": 0.8},
        _pair_oracle(oracles.wbdr, threshold=0.8),
    ),
    "SSDR": (pairlens.SSDR, {}, _pair_oracle(oracles.ssdr)),
    "SSDR half": (pairlens.SSDR, {"normalization": "half"}, _pair_oracle(oracles.ssdr, normalization="half")),
    "CMM": (pairlens.CMM, {}, _pair_oracle(oracles.cmm)),
    "CFLD": (pairlens.CFLD, {}, _pair_oracle(oracles.cfld)),
    "RCA": (pairlens.RCA, {}, _pair_oracle(oracles.rca)),
    "DCA": (pairlens.DCA, {}, _pair_oracle(oracles.dca)),
    "SLPP": (pairlens.SLPP, {}, _pair_oracle(oracles.slpp)),
    "LPP": (pairlens.LPP, {}, lambda X, y, must, cannot: oracles.lpp(X, K)),
    "LPP gamma": (
        pairlens.LPP,
        {"gamma": 1 / 3.0, "n_neighbors": 8},
        lambda X, y, must, cannot: oracles.lpp(X, K, theta=3.0, n_neighbors=8),
    ),
    "LPPSI": (pairlens.LPPSI, {}, _pair_oracle(oracles.lppsi)),
    "LPPSI beta": (pairlens.LPPSI, {"beta": 0.3}, _pair_oracle(oracles.lppsi, beta=0.3)),
    "CLPP": (pairlens.CLPP, {}, _pair_oracle(oracles.clpp)),
    "NPSSDR": (pairlens.NPSSDR, {}, _pair_oracle(oracles.npssdr)),
    "NPSSDR alpha": (pairlens.NPSSDR, {"alpha": 2.0}, _pair_oracle(oracles.npssdr, gamma=2.0)),
    "SODRPaC": (pairlens.SODRPaC, {}, _pair_oracle(oracles.sodrpac)),
    "SODRPaC lam": (
        pairlens.SODRPaC,
        {"lam": 32.0, "gamma": 1 / 5.0},
        _pair_oracle(oracles.sodrpac, lam=32.0, theta=5.0),
    ),
    "LFDA": (pairlens.LFDA, {}, lambda X, y, must, cannot: oracles.lfda(X, y, K)),
    "SDA": (pairlens.SDA, {}, lambda X, y, must, cannot: oracles.sda(X, y, 2)),
}
LABEL_METHODS = {pairlens.LFDA, pairlens.SDA}


def _table(name: str, request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    if name == "wine":
        X, y = load_wine(return_X_y=True)
    elif name == "wdbc":
        X, y = load_breast_cancer(return_X_y=True)
    else:
        X, y = request.getfixturevalue("real_data")(name)
    X, y = X[:220], y[:220]
    return StandardScaler().fit_transform(X), y


# These have test modules of their own.
ELSEWHERE = {"DSP", "LinearPairLens"}


def test_every_linear_method_has_an_oracle():
    here = {cls.__name__ for cls, _, _ in CASES.values()}
    assert here == {cls.__name__ for cls in linear_methods()} - ELSEWHERE


@pytest.mark.filterwarnings("ignore:BWDR. 3 directions already hold")
@pytest.mark.parametrize("table", ["wine", "wdbc", "sonar", "vehicle"])
@pytest.mark.parametrize("case", CASES)
def test_scatters_and_subspace_agree(case, table, request):
    cls, params, oracle = CASES[case]
    X, y = _table(table, request)
    pairs = Constraints.from_labels(y, n_pairs=250, random_state=3)
    k = 2 if cls is pairlens.SDA else K
    if cls in LABEL_METHODS:
        y = np.where(np.arange(len(y)) % 3 == 0, -1, y)
        known = Constraints.from_labels(y)
        if cls is pairlens.SDA:
            k = min(k, len(np.unique(y[y >= 0])) - 1)
    else:
        known = pairs
    method = cls(n_components=k, **params).fit(X, constraints=known)
    space, used = method._coordinates(X, known)
    attract, repel = (_in_features(space, scatter) for scatter in method._scatters(space, used))
    expected = oracle(X, y, pairs.must_link.tolist(), pairs.cannot_link.tolist())
    assert oracles.relative_difference(attract, expected.attract) < 1e-8
    assert oracles.relative_difference(repel, expected.repel) < 1e-8
    components = expected.components[:k]
    assert oracles.subspace_angle(method.components_, components) < 1e-6
    metric, expected_metric = method.components_.T @ method.components_, components.T @ components
    assert oracles.relative_difference(metric, expected_metric) < 1e-6


def _in_features(space: RowSpace, scatter: np.ndarray) -> np.ndarray:
    basis = space.lift(np.eye(space.dim))
    return basis.T @ scatter @ basis


def test_weights_agree(request):
    X, y = _table("wine", request)
    rng = np.random.default_rng(0)
    pairs = Constraints.from_labels(y, n_pairs=250, random_state=3)
    w_must, w_cannot = rng.random(pairs.n_must_link) + 0.1, rng.random(pairs.n_cannot_link) + 0.1
    known = Constraints(
        pairs.must_link, pairs.cannot_link, len(X), must_link_weight=w_must, cannot_link_weight=w_cannot
    )
    for cls, oracle in ((pairlens.BWDR, oracles.bwdr), (pairlens.WBDR, oracles.wbdr), (pairlens.SSDR, oracles.ssdr)):
        params = {} if cls is pairlens.SSDR else {"shrinkage": "auto"}
        method = cls(n_components=K, **params).fit(X, constraints=known)
        expected = oracle(X, pairs.must_link, pairs.cannot_link, K, w_must=w_must, w_cannot=w_cannot, **params)
        assert oracles.subspace_angle(method.components_, expected.components) < 1e-6


@pytest.mark.parametrize("table", ["wine", "sonar"])
def test_kernel_form_agrees(table, request):
    X, y = _table(table, request)
    pairs = Constraints.from_labels(y, n_pairs=120, random_state=3)
    delta = 1.5
    method = pairlens.KernelLPPSI(n_components=2, gamma=1 / (2 * delta**2)).fit(X, constraints=pairs)
    expected = oracles.kernel_lppsi(X, pairs.must_link.tolist(), pairs.cannot_link.tolist(), 2, delta=delta)
    kernel = rbf(X, delta)
    np.testing.assert_allclose(method.eigenvalues_, expected.eigenvalues, atol=1e-6)
    space = method._coordinates(X)
    attract, repel = method._scatters(space, pairs)
    # K = F F', so the matrices of the dual problem are F (.) F'.
    F = space.rows
    H = np.eye(len(X)) - 1 / len(X)
    np.testing.assert_allclose(F @ F.T, H @ kernel @ H, atol=1e-9)
    assert oracles.relative_difference(F @ attract @ F.T, expected.attract) < 1e-8
    assert oracles.relative_difference(F @ repel @ F.T, expected.repel) < 1e-8


@pytest.mark.parametrize("cls", [pairlens.BWDR, pairlens.WBDR, pairlens.SSDR, pairlens.CMM, pairlens.LPP])
def test_wide_data_gives_the_solution_of_the_features(cls):
    """The Gram route of n < f and the f x f route find the same directions."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 60)) @ np.diag(np.linspace(1, 3, 60)), rng.integers(0, 3, 40)
    pairs = Constraints.from_labels(y, n_pairs=150, random_state=0)
    params = {"shrinkage": 0.0} if cls in (pairlens.BWDR, pairlens.WBDR) else {}
    method = cls(n_components=2, **params).fit(X, constraints=pairs)
    mean = column_means(X)
    primal = RowSpace(X, mean)
    directions = method._solve(*method._scatters(primal, pairs), 2)[1]
    if cls is pairlens.WBDR:
        # Without a floor on null directions, the features hold f - n more of them; those of the rows must agree.
        attract, repel = method._scatters(primal, pairs)
        basis = np.linalg.svd(X - mean, full_matrices=False)[2][:39].T
        directions = basis @ method._solve(basis.T @ attract @ basis, basis.T @ repel @ basis, 2)[1]
    assert oracles.subspace_angle(method.components_, directions.T) < 1e-6


def test_generalized_matches_scipy():
    from scipy.linalg import eigh

    rng = np.random.default_rng(1)
    A, B = (m @ m.T for m in rng.standard_normal((2, 6, 9)))
    values, vectors = generalized(A, B, 6)
    expected = eigh(A, B)[0][::-1]
    np.testing.assert_allclose(values, expected)
    np.testing.assert_allclose(vectors.T @ B @ vectors, np.eye(6), atol=1e-10)
