"""Former names of parameters and attributes work as they did, and name the new ones."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import pairlens
from pairlens import Constraints, transform_constraints

X, Y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
PAIRS = Constraints.from_labels(Y, n_pairs=60, random_state=0)

PARAMETERS = [
    (pairlens.LPP, {"theta": 4.0}, {"gamma": 0.25}),
    (pairlens.CLPP, {"theta": 4.0}, {"gamma": 0.25}),
    (pairlens.LPPSI, {"theta": 4.0}, {"gamma": 0.25}),
    (pairlens.KernelLPPSI, {"theta": 4.0, "rank": 20}, {"heat_gamma": 0.25, "rank": 20}),
    (pairlens.SODRPaC, {"theta": 8.0}, {"gamma": 0.125}),
    (pairlens.SODRPaC, {"theta": "auto"}, {"gamma": "auto"}),
    (pairlens.NPSSDR, {"gamma": 0.5}, {"alpha": 0.5}),
    (pairlens.KernelNullSpace, {"delta": 2.0}, {"gamma": 0.125}),
    (pairlens.KernelNullSpace, {"delta": "median"}, {"gamma": "median"}),
    (pairlens.DSP, {"delta": 2.0}, {"gamma": 0.125}),
    (pairlens.DSP, {"delta": "median"}, {}),
]


@pytest.mark.parametrize(("cls", "former", "present"), PARAMETERS, ids=str)
def test_a_former_parameter_is_the_present_one(cls, former, present):
    (name,) = set(former) - set(present) or set(former)
    new = next(iter(set(present) - {"rank"}), "gamma")
    model = clone(cls(**former))
    with pytest.warns(FutureWarning, match=f"{cls.__name__}: the parameter {name} is called {new} now"):
        model.fit(X, constraints=PAIRS)
    np.testing.assert_array_equal(model.transform(X), cls(**present).fit(X, constraints=PAIRS).transform(X))
    assert model.get_params()[name] == former[name]


@pytest.mark.parametrize(
    ("model", "former", "present", "convert"),
    [
        (pairlens.SODRPaC(), "theta_", "gamma_", lambda gamma: 1 / gamma),
        (pairlens.DSP(), "delta_", "gamma_", lambda gamma: (2 * gamma) ** -0.5),
        (pairlens.SKKMeans(3, random_state=0), "delta_", "gamma_", lambda gamma: (2 * gamma) ** -0.5),
        (pairlens.KernelNullSpace(), "delta_", "gamma_", lambda gamma: (2 * gamma) ** -0.5),
    ],
    ids=["SODRPaC", "DSP", "SKKMeans", "KernelNullSpace"],
)
def test_a_former_attribute_follows_from_the_present_one(model, former, present, convert):
    model = clone(model)
    assert not hasattr(model, present)
    model.fit(X, constraints=PAIRS)
    with pytest.warns(FutureWarning, match=f"{former} is called {present}"):
        value = getattr(model, former)
    assert value == pytest.approx(convert(getattr(model, present)))
    # What files of earlier versions hold.
    vars(model)[former] = 3.0
    del vars(model)[present]
    assert getattr(model, former) == 3.0
    assert convert(getattr(model, present)) == pytest.approx(3.0)


def test_transform_constraints():
    with pytest.warns(FutureWarning, match="theta is called gamma now"):
        former = transform_constraints(X, PAIRS, theta=4.0)
    assert former == transform_constraints(X, PAIRS, gamma=0.25)
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="theta=-1 must be a positive number"):
        transform_constraints(X, PAIRS, theta=-1)


def test_skkmeans():
    with pytest.warns(FutureWarning, match="SKKMeans: the parameter delta is called gamma now"):
        former = pairlens.SKKMeans(3, delta=2.0, random_state=0).fit(X, constraints=PAIRS)
    present = pairlens.SKKMeans(3, gamma=0.125, random_state=0).fit(X, constraints=PAIRS)
    np.testing.assert_array_equal(former.labels_, present.labels_)
