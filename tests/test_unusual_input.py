"""Rows of any scale and kind, for every estimator: a finite result, or a sentence that says what would be right."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from scipy import sparse

import pairlens
from pairlens import (
    ITML,
    MLKR,
    SCML,
    Constraints,
    LinearPairLens,
    PairClusters,
    PairLens,
    PairMap,
    Preferences,
    RankSVM,
    TableEncoder,
    Triplets,
)
from pairlens._sklearn import Interval
from pairlens.asking import Lens
from pairlens.exceptions import SupervisionWarning
from pairlens.graphs.transformation import transform_constraints
from tests.estimators import all_estimators

ESTIMATORS = [cls for cls in all_estimators() if cls is not TableEncoder]
RESCALING = ("LinearPairLens", "PairClusters", "PairLens", "PairMap")
"""Methods that z-score the features before they square anything."""
CLASSES = np.arange(24) % 3
ROWS = np.random.default_rng(0).standard_normal((24, 4)) + 3 * np.eye(3, 4)[CLASSES]


@pytest.fixture(autouse=True)
def _few_pairs():
    """What the classes of few rows leave open is no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SupervisionWarning)
        yield


def fitted(cls, X, **parameters):
    """Fitted to the classes, or to preferences between them; few iterations where there are many."""
    if cls is pairlens.PairMap:
        parameters |= {"max_iter": 20, "early_exaggeration_iter": 10}
    if cls is pairlens.GBWSDR:
        parameters |= {"n_estimators": 3, "backend": "sklearn"}
    return cls(**parameters).fit(X, CLASSES.astype(float))


def result(model, X):
    return np.asarray(model.transform(X) if hasattr(model, "transform") else model.predict(X))


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("unit", [1e18, 1e-30])
def test_the_unit_of_the_features_is_no_obstacle(cls, unit):
    """Nanoseconds since 1970 are of this size."""
    values = result(fitted(cls, ROWS * unit), ROWS * unit)
    assert np.isfinite(values).all()
    assert values.dtype.kind == "i" or np.ptp(values, axis=0).max() > 0


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("unit", [1e200, 1e-160, 1e-200])
def test_values_whose_squares_are_no_numbers(cls, unit):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        if cls.__name__ in RESCALING:
            assert np.isfinite(result(fitted(cls, ROWS * unit), ROWS * unit)).all()
        else:
            with pytest.raises(ValueError, match=r"leaves the range of floating-point numbers. Rescale X"):
                fitted(cls, ROWS * unit)


@pytest.mark.parametrize("cls", [LinearPairLens, PairClusters, PairLens, PairMap, pairlens.WBDR])
@pytest.mark.parametrize("X", [ROWS * 2e307, ROWS * 1e306 + 1e308, [[10**400], [0], [1]] * 8])
def test_values_whose_sums_are_no_numbers(cls, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match=r"leaves the range of floating-point numbers. Rescale X"):
            fitted(cls, X)


@pytest.mark.parametrize("cls", [LinearPairLens, PairClusters, PairLens, PairMap])
def test_tensors_whose_sums_are_no_numbers(cls):
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"leaves the range of floating-point numbers. Rescale X"):
        fitted(cls, torch.tensor(ROWS * 2e307))


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("unit", [1e149, 1e-140])
def test_values_whose_squares_are_numbers_give_a_result_without_a_warning(cls, unit):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        if cls is RankSVM:
            # It sums higher powers.
            with pytest.raises(ValueError, match="Rescale X"):
                fitted(cls, ROWS * unit)
        else:
            assert np.isfinite(result(fitted(cls, ROWS * unit), ROWS * unit)).all()


@pytest.mark.parametrize("parameters", [{"bounds": (1e-300, 1e300)}, {"gamma": 1e300}], ids=["bounds", "gamma"])
def test_bounds_far_from_all_distances_are_an_error_without_a_warning(parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match="leaves the range of floating-point numbers"):
            fitted(ITML, ROWS * 1e-140 if "gamma" in parameters else ROWS * 1e18, **parameters)


@pytest.mark.parametrize("cls", [pairlens.WBDR, pairlens.KernelWBDR, pairlens.LMNN])
def test_tensors_without_numbers_are_refused(cls):
    torch = pytest.importorskip("torch")
    nowhere = torch.empty((24, 4), device="meta")
    with pytest.raises(ValueError, match="has a shape but no numbers"):
        fitted(cls, nowhere)
    with pytest.raises(ValueError, match="has a shape but no numbers"):
        fitted(cls, ROWS).transform(nowhere)


def numeric_parameters():
    for cls in ESTIMATORS:
        for name, allowed in cls._parameter_constraints.items():
            if any(isinstance(one, Interval) for one in allowed) and "boolean" not in allowed:
                yield pytest.param(cls, name, id=f"{cls.__name__}-{name}")


@pytest.mark.parametrize(("cls", "name"), numeric_parameters())
@pytest.mark.parametrize("value", [True, 2**63])
def test_true_and_integers_without_a_type_are_no_numbers(cls, name, value):
    """Python counts True as the integer 1, but whoever writes it means something else."""
    with pytest.raises(ValueError, match=rf"The '{name}' parameter of {cls.__name__} must be .* Got {value} instead"):
        cls(**{name: value}).fit(ROWS, CLASSES.astype(float))


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if "kernel" in inspect.signature(cls).parameters])
@pytest.mark.parametrize("kernel", ["else", "precomputed"])
def test_a_kernel_that_is_none_is_refused(cls, kernel):
    with pytest.raises(ValueError, match=f"The 'kernel' parameter of {cls.__name__} must be"):
        cls(kernel=kernel).fit(ROWS, CLASSES)


@pytest.mark.parametrize("cls", [pairlens.LinearPairLens, pairlens.LPP, pairlens.LSML])
def test_float32_without_room_for_inverses_or_squares(cls):
    tiny = (ROWS * 1e-40).astype(np.float32)
    with pytest.raises(ValueError, match=r"leaves the range of floating-point numbers. Rescale X"):
        fitted(cls, tiny)


def test_sums_of_squares_of_float32_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match="Rescale X"):
            fitted(pairlens.LSML, (ROWS * 1e30).astype(np.float32))


@pytest.mark.parametrize("cls", [pairlens.WBDR, pairlens.PairMap, pairlens.RankSVM, pairlens.SKKMeans])
def test_words_dates_and_masks_are_refused_with_a_remedy(cls):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=list("abcd"))
    with pytest.raises(ValueError, match=r"X must hold numbers, but could not convert .*'cat'.*TableEncoder"):
        fitted(cls, frame.assign(a="cat"))
    with pytest.raises(ValueError, match=r"X must hold numbers, but it has dates beside them.*TableEncoder"):
        fitted(cls, frame.assign(a=pandas.date_range("2020", periods=24)))
    with pytest.raises(ValueError, match=r"X has 1 masked entries, and .* Fill them in"):
        fitted(cls, np.ma.masked_array(ROWS, np.arange(96).reshape(24, 4) == 5))


@pytest.mark.parametrize("cls", [pairlens.WBDR, pairlens.KernelWBDR, pairlens.LMNN])
def test_tensors_with_a_gradient_are_rows_like_others(cls):
    torch = pytest.importorskip("torch")
    plain, recording = torch.tensor(ROWS), torch.tensor(ROWS, requires_grad=True)
    expected = fitted(cls, plain).transform(plain)
    np.testing.assert_array_equal(np.asarray(fitted(cls, recording).transform(recording).__array__()), expected)


def test_lazy_frames_are_collected():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(dict(zip("abcd", ROWS.T)))
    np.testing.assert_array_equal(
        fitted(pairlens.WBDR, frame.lazy()).transform(frame.lazy()), fitted(pairlens.WBDR, frame).transform(frame)
    )
    answers = polars.DataFrame({"a": ["x"], "b": ["y"], "kind": ["same"]})
    assert Constraints.from_frame(answers.lazy(), ids=["x", "y"]).n_must_link == 1


SEEDED = [cls for cls in ESTIMATORS if "random_state" in inspect.signature(cls).parameters]


@pytest.mark.parametrize("cls", SEEDED)
def test_generators_are_seeds_everywhere(cls):
    once, again = (fitted(cls, ROWS, random_state=np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(result(once, ROWS), result(again, ROWS))


def test_what_cancels_out_is_said():
    circle = Preferences([(0, 1), (1, 2), (2, 0)], n_samples=24)
    with pytest.warns(SupervisionWarning, match="the preferences cancel out"):
        assert not RankSVM().fit(ROWS, preferences=circle).coef_.any()
    with pytest.warns(pairlens.exceptions.ConflictWarning):
        both_ways = Triplets([(0, 1, 2), (0, 2, 1)], n_samples=24)
    with pytest.warns(SupervisionWarning, match="no direction is left, so the result is that of PCA"):
        view = SCML(beta=10.0, random_state=0).fit(ROWS, triplets=both_ways)
    assert np.ptp(view.transform(ROWS), axis=0).min() > 0


def test_huge_weights_cause_no_storm_of_warnings():
    heavy = Constraints([(0, 3)], [(0, 1)], n_samples=24, must_link_weight=1e300, cannot_link_weight=1e300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(ITML().fit(ROWS, constraints=heavy).transform(ROWS)).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (CLASSES.astype(str).astype(object) + "x", "y must hold numbers, the target of the regression"),
        (CLASSES + 1j, "they are complex"),
        (CLASSES[:5], "y must have 24 entries, one for each row of X; got 5"),
        (
            np.where(CLASSES == 1, np.inf, 0.0),
            "y must hold finite numbers, and NaN where the target is unknown; got inf",
        ),
        (
            np.stack([CLASSES, CLASSES], axis=1),
            r"y must be one-dimensional, with one value per row; got \(24, 2\)",
        ),
    ],
)
def test_a_wrong_target_is_named(y, message):
    with pytest.raises(ValueError, match=message):
        MLKR().fit(ROWS, y)


def test_one_row_has_a_kernel_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pairlens.KernelNullSpace().fit_transform(ROWS[:1]).shape == (1, 1)


@pytest.mark.parametrize("cls", [pairlens.WBDR, RankSVM, pairlens.LMNN])
def test_weights_of_rows_are_checked(cls):
    model = fitted(cls, ROWS)
    right = "sample_weight must hold 24 finite numbers of at least 0, one for each row"
    for wrong in (np.ones(3), -np.ones(24), np.full(24, np.nan), ["a"] * 24):
        with pytest.raises(ValueError, match=right):
            model.score(ROWS, CLASSES, sample_weight=wrong)
    with pytest.raises(ValueError, match="sample_weight must leave a pair"):
        model.score(ROWS, CLASSES, sample_weight=np.zeros(24))
    assert model.score(ROWS, CLASSES, sample_weight=np.full(24, 2.0)) == pytest.approx(model.score(ROWS, CLASSES))


def test_models_to_compare_have_names():
    with pytest.raises(TypeError, match="models must be a mapping of names to estimators, got list"):
        list(pairlens.selection.compare([pairlens.WBDR()], ROWS, constraints=Constraints.from_labels(CLASSES)))


def test_a_frame_is_no_annotated_data():
    with pytest.raises(TypeError, match="adata must be an AnnData object, got ndarray"):
        pairlens.anndata.embed(ROWS, Constraints.from_labels(CLASSES))


def test_float32_whose_squares_vanish_is_learned_from_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert np.isfinite(fitted(pairlens.WBDR, (ROWS * 1e-30).astype(np.float32)).components_).all()


def in_parts(X):
    """A CSR matrix of the same values, each stored as two halves, from the last column to the first."""
    n, f = X.shape
    columns = np.tile(np.repeat(np.arange(f)[::-1], 2), n)
    return sparse.csr_matrix((np.repeat(X[:, ::-1], 2, axis=1).ravel() / 2, columns, np.arange(n + 1) * 2 * f), X.shape)


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if cls is not pairlens.GBWSDR])
def test_sparse_entries_stored_in_parts_are_their_sums(cls):
    seed = {"random_state": 0} if "random_state" in cls().get_params() else {}
    whole, parts = sparse.csr_matrix(ROWS), in_parts(ROWS)
    stored = [getattr(parts, name).copy() for name in ("data", "indices", "indptr")]
    found, expected = (result(fitted(cls, X, **seed), X) for X in (parts, whole))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * max(1, np.abs(expected).max()))
    for before, now in zip(stored, (parts.data, parts.indices, parts.indptr), strict=True):
        np.testing.assert_array_equal(now, before)


def test_sparse_entries_in_parts_in_questions_and_generated_constraints():
    parts = in_parts(ROWS)
    np.testing.assert_array_equal(Lens(parts).neighbors, Lens(sparse.csr_matrix(ROWS)).neighbors)
    known = Constraints([(0, 3)], [(0, 1)], len(ROWS))
    made, expected = (transform_constraints(X, known, n_neighbors=3) for X in (parts, sparse.csr_matrix(ROWS)))
    assert made == expected


@pytest.mark.parametrize("cls", [LinearPairLens, MLKR, PairClusters, PairLens, PairMap])
def test_numbers_that_vanish_are_zero_also_where_numpy_is_told_to_raise(cls):
    """Rows so far apart that one is no neighbour, or no member of a group, of the other."""
    pytest.importorskip("openTSNE")
    X = np.repeat(np.arange(3.0), 20)[:, None] * 30 + np.random.default_rng(0).standard_normal((60, 4))
    y = np.repeat(np.arange(3), 20)
    known = {"y": y} if cls is MLKR else {"constraints": Constraints.from_labels(y, n_pairs=40, random_state=0)}
    with np.errstate(under="raise"):
        model = cls(random_state=0).fit(X, **known)
        found = model.predict_proba(X + 0.1) if cls is PairClusters else model.transform(X + 0.1)
    assert np.isfinite(found).all()
